"""Padded and packed layouts of a batch."""

import pytest
import torch

from limelight.errors import LengthError
from limelight.model.config import ModelConfig
from limelight.model.grid import ROUND_TO, Grid
from limelight.model.transformer import Batch, Transformer

VISIBLE = torch.tensor([[True, True, False], [True, True, True], [True, False, False]])


def test_spread_and_collect_undo_each_other() -> None:
    grid = Grid.packed(VISIBLE)
    x = torch.randn(len(grid.cells), 5)
    assert torch.equal(grid.collect(grid.spread(x))[: grid.pieces], x[: grid.pieces])


def test_a_packed_stream_has_a_round_length_and_room_for_filler() -> None:
    for pieces in (1, ROUND_TO - 1, ROUND_TO, ROUND_TO + 1):
        grid = Grid.packed(torch.ones(1, pieces, dtype=torch.bool))
        assert grid.pieces == pieces
        assert len(grid.cells) % ROUND_TO == 0
        assert pieces < len(grid.cells) <= pieces + ROUND_TO


def test_ids_and_columns_follow_the_pieces() -> None:
    grid = Grid.packed(VISIBLE)
    ids = torch.arange(9).view(3, 3)
    assert grid.take(ids)[: grid.pieces].tolist() == [0, 1, 3, 4, 5, 6]
    assert grid.columns(ids.device)[: grid.pieces].tolist() == [0, 1, 0, 1, 2, 0]
    assert grid.is_piece(ids.device).sum() == grid.pieces


def test_a_padded_grid_changes_nothing() -> None:
    x = torch.randn(3, 3, 5)
    grid = Grid.padded(x[..., 0])
    assert grid.spread(x) is x
    assert grid.collect(x) is x
    assert grid.is_piece(x.device) is None


def test_filler_gets_no_gradient_from_attention() -> None:
    grid = Grid.packed(VISIBLE)
    x = torch.randn(len(grid.cells), 5, requires_grad=True)
    grid.spread(x).sum().backward()
    assert torch.all(x.grad[: grid.pieces] == 1)
    assert torch.all(x.grad[grid.pieces :] == 0)


def test_an_empty_source_depends_on_no_other_row() -> None:
    """A row of padding alone must give the same loss packed and padded, whatever stands beside it."""
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=11, d_model=12, d_ff=10, num_heads=3, encoder_layers=1, decoder_layers=1)).eval()
    target_in, target_out = torch.tensor([[2, 7], [2, 8]]), torch.tensor([[0, 0], [8, 3]])
    losses = []
    for first in (5, 9):
        source = torch.tensor([[first, 6, 3], [0, 0, 0]])
        losses.append(model.loss(Batch.packed(source, target_in, target_out, 0)).total.item())
        losses.append(model.loss(Batch.padded(source, target_in, target_out)).total.item())
    assert max(losses) - min(losses) < 1e-5


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_the_columns_added_to_a_narrow_batch_do_not_count_as_length(positions: str) -> None:
    shape = {"vocab_size": 11, "d_model": 12, "d_ff": 10, "num_heads": 3, "encoder_layers": 1, "decoder_layers": 1}
    model = Transformer(ModelConfig(**shape, positions=positions, max_length=5)).eval()
    ids = torch.randint(4, 11, (2, 6))
    fits, too_long = ids[:, :5], ids
    packed = model.loss(Batch.packed(fits, fits, fits, 0)).total
    torch.testing.assert_close(packed, model.loss(Batch.padded(fits, fits, fits)).total)
    for make in (
        lambda: Batch.packed(too_long, too_long, too_long, 0),
        lambda: Batch.padded(too_long, too_long, too_long),
    ):
        with pytest.raises(LengthError, match="6 pieces"):
            model.loss(make())
