"""The gradient of a step: however its pairs are cut, in every number format, and with R-Drop."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from limelight.corpus.feeding.batches import BatchShare
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.parallel import Parallel
from limelight.training.config import Precision
from limelight.training.step import gradients as step_gradients
from limelight.training.step.gradients import batch_of, gradients
from limelight.training.step.sharding import r_drop_loss
from limelight.training.step.trained_model import TrainedModel, choose_precision

V = 23
LENGTHS = ((5, 3), (9, 7), (2, 8), (6, 4), (7, 2))  # pieces of source and target, ends included


def model_of(dropout: float = 0.0, **more: Any) -> Transformer:
    torch.manual_seed(3)
    config = ModelConfig(vocab_size=V, d_model=24, d_ff=40, num_heads=3, encoder_layers=2, decoder_layers=1, dropout=dropout, **more)
    return Transformer(config).train()


def share_of(rows: list[int]) -> BatchShare:
    """These of the pairs, padded to the longest of them."""
    chance = np.random.default_rng(5)
    pairs = [[np.append(chance.integers(4, V, length - 1), 3) for length in both] for both in LENGTHS]
    sides = []
    for side in (0, 1):
        width = max(len(pairs[row][side]) for row in rows)
        sides.append(np.stack([np.pad(pairs[row][side], (0, width - len(pairs[row][side]))) for row in rows]))
    targets = sum(LENGTHS[row][1] for row in rows)
    return BatchShare(0, 0, 0, np.array(rows), sides[0], sides[1], rows=len(rows), targets=targets)


def taken(model: Transformer, shares: list[BatchShare], precision: Precision = "float32", **more: Any) -> dict[str, Tensor]:
    numbers = TrainedModel(model, precision)
    gradients(numbers, shares, **{"smoothing": 0.1, "r_drop": None, **more})
    found = {name: weight.grad for name, weight in numbers.named.items()}
    assert all(gradient is not None for gradient in found.values())
    return {name: gradient.clone() for name, gradient in found.items() if gradient is not None}


def assert_equal(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float) -> None:
    for name, gradient in one.items():
        torch.testing.assert_close(gradient, other[name], rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize("cut", [[[0], [1, 2, 3, 4]], [[3, 0, 4], [2, 1]], [[4], [3], [2], [1], [0]]])
def test_accumulated_parts_equal_one_batch(cut: list[list[int]]) -> None:
    """Shares of 3 and of 21 target pieces: a mean of means would weigh them equally."""
    whole = taken(model_of(), [share_of([0, 1, 2, 3, 4])])
    assert_equal(whole, taken(model_of(), [share_of(rows) for rows in cut]), 1e-5)


def test_losses_are_per_target_piece_of_the_whole_step() -> None:
    whole = gradients(TrainedModel(model_of(), "float32"), [share_of([0, 1, 2, 3, 4])], 0.1, None)
    parts = gradients(TrainedModel(model_of(), "float32"), [share_of([1]), share_of([0, 2, 3, 4])], 0.1, None)
    plain = gradients(TrainedModel(model_of(), "float32"), [share_of([0, 1, 2, 3, 4])], 0.0, None)
    assert (parts.loss, parts.nll) == pytest.approx((whole.loss, whole.nll), rel=1e-6)
    assert (plain.loss, plain.nll) == pytest.approx((whole.nll, whole.nll), rel=1e-6)
    assert abs(whole.loss - whole.nll) > 5e-4  # smoothing counts in the one alone


def test_a_step_of_very_few_pieces_counts_for_less() -> None:
    """The pair has 3 target pieces: as one of 12, each of them weighs a quarter."""
    full, less = (taken(model_of(), [share_of([0])], least=least) for least in (3, 12))
    assert_equal({name: gradient / 4 for name, gradient in full.items()}, less, 1e-6)
    assert_equal(full, taken(model_of(), [share_of([0])]), 1e-6)


def test_a_batch_that_does_not_fit_into_memory_is_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of this machine holds two rows, as far as the step can tell; half-made gradients are thrown away."""
    whole, heard = taken(model_of(), [share_of([0, 1, 2, 3, 4])]), []
    room_for = 2
    inside = step_gradients.batch_of

    def small(*arguments: Any) -> Batch:
        batch = inside(*arguments)
        if len(batch.source) > room_for:
            raise torch.OutOfMemoryError("too much")
        return batch

    monkeypatch.setattr(step_gradients, "batch_of", small)
    shares = [share_of([0]), share_of([1, 2, 3, 4])]
    assert_equal(whole, taken(model_of(), shares, notice=heard.append), 1e-5)
    assert heard == ["out of memory: the batch of 1 pairs is computed in 2 parts"]
    room_for = 0
    with pytest.raises(torch.OutOfMemoryError):
        taken(model_of(), shares)


def test_an_exchange_that_has_begun_is_not_made_again() -> None:
    """Where processes add up their gradients in the backward pass, a second try would find the exchange half made."""

    def refuse(_: Tensor) -> None:
        raise torch.OutOfMemoryError("too much")

    for parallel, raised in ((Parallel(), torch.OutOfMemoryError), (Parallel("ddp", replicas=2), ConfigError)):
        numbers = TrainedModel(model_of(), "float32")
        numbers.parallel = parallel
        next(iter(numbers.named.values())).register_hook(refuse)
        with pytest.raises(raised):
            gradients(numbers, [share_of([0])], 0.1, None)


@pytest.mark.parametrize("precision", ["masters", "autocast"])
def test_bfloat16_formats_give_about_the_gradient_of_float32(precision: Precision) -> None:
    """bfloat16 keeps 8 bits: the gradient as one vector is within 3 % of the exact one, and the optimizer sees float32."""
    exact = taken(model_of(), [share_of([0, 1, 2, 3, 4])])
    found = taken(model_of(), [share_of([0, 1]), share_of([2, 3, 4])], precision)
    assert {gradient.dtype for gradient in found.values()} == {torch.float32}
    one, other = (torch.cat([each[name].flatten() for name in exact]) for each in (exact, found))
    assert float((one - other).norm() / one.norm()) < 0.03


def test_only_masters_hold_the_model_in_bfloat16() -> None:
    formats = {p: next(TrainedModel(model_of(), p).model.parameters()).dtype for p in ("masters", "autocast", "float32")}
    assert formats == {"masters": torch.bfloat16, "autocast": torch.float32, "float32": torch.float32}


def test_weights_loaded_by_name_reach_the_model() -> None:
    numbers = TrainedModel(model_of(), "masters")
    with torch.no_grad():
        for weight in numbers.named.values():
            weight.add_(1)
    numbers.publish()
    for name, weight in numbers.model.named_parameters():
        assert torch.equal(weight, numbers.named[name].bfloat16()), name


def test_a_format_that_was_asked_for_is_taken() -> None:
    assert choose_precision(torch.device("cpu"), "autocast").value == "autocast"
    assert choose_precision(torch.device("cpu"), None).value in ("masters", "float32")


def plain_r_drop(model: Transformer, batch: Batch, smoothing: float, alpha: float) -> Tensor:
    """Row by row and piece by piece, from the definition in the paper of Liang et al."""
    log_p = []
    for _ in range(2):
        x = model.decode(batch, model.encode(batch.source, batch.source_grid))
        log_p.append(model.logits(x).log_softmax(-1))
    wanted = batch.target_grid.take(batch.target_out)
    total = torch.zeros((), dtype=log_p[0].dtype)
    for i in range(batch.target_grid.pieces):
        aim = torch.full((V,), smoothing / V, dtype=log_p[0].dtype)
        aim[wanted[i]] += 1 - smoothing
        one, two = log_p[0][i], log_p[1][i]
        total = total - (aim @ one + aim @ two) / 2
        total = total + alpha / 4 * (F.kl_div(two, one, log_target=True, reduction="sum"))
        total = total + alpha / 4 * (F.kl_div(one, two, log_target=True, reduction="sum"))
    return total


def test_r_drop_and_its_gradient_equal_the_plain_formula() -> None:
    model = model_of(dropout=0.3).double()
    batch = batch_of(share_of([0, 1, 2]), torch.device("cpu"), 0)
    found = []
    for loss_of in (lambda: r_drop_loss(model, batch, 0.1, 2.5)[0], lambda: plain_r_drop(model, batch, 0.1, 2.5)):
        torch.manual_seed(7)
        model.zero_grad()
        loss = loss_of()
        loss.backward()
        found.append((float(loss.detach()), {name: weight.grad.clone() for name, weight in model.named_parameters()}))  # type: ignore[union-attr]
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    assert_equal(found[0][1], found[1][1], 1e-9)


def test_r_drop_without_dropout_is_the_plain_loss() -> None:
    whole = [share_of([0, 1, 2, 3, 4])]
    assert_equal(taken(model_of(), whole), taken(model_of(), whole, r_drop=5.0), 1e-5)


def test_r_drop_costs_more_the_less_two_passes_agree() -> None:
    model, batch = model_of(dropout=0.3), batch_of(share_of([0, 1, 2]), torch.device("cpu"), 0)
    losses = []
    for alpha in (1e-9, 1.0, 3.0):
        torch.manual_seed(7)
        losses.append(float(r_drop_loss(model, batch, 0.1, alpha)[0].detach()))
    assert losses[1] > losses[0] + 0.01
    assert losses[2] - losses[0] == pytest.approx(3 * (losses[1] - losses[0]), rel=1e-3)
