"""The recurrent networks that the Transformer is measured against must be right, or the comparison says nothing."""

import sys
from pathlib import Path
from random import Random

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from digits import END, PAD, START, VOCABULARY, make_batch, training_strings
from limelight.decoding.config import SearchSettings
from limelight.decoding.search import search
from limelight.decoding.steps import Request
from limelight.engines.torch import OnHost
from recurrent_models import Bidirectional, Recurrent, turned

STRINGS = [[6, 4, 9, 13, 8], [5], [7, 7, 12]]


def tiny(input_feeding: bool, seed: int = 0) -> Recurrent:
    torch.manual_seed(seed)
    return Recurrent(VOCABULARY, input_feeding, d_model=18, hidden=22, drop=0.0)


def test_two_directions_equal_torchs_own_on_a_packed_sequence() -> None:
    torch.manual_seed(0)
    ours, theirs = Bidirectional(5, 6), nn.LSTM(5, 3, batch_first=True, bidirectional=True)
    for direction, suffix in ((ours.ahead, "l0"), (ours.back, "l0_reverse")):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(theirs, f"{name}_{suffix}").data.copy_(getattr(direction, f"{name}_l0").data)
    x, lengths = torch.randn(3, 7, 5), torch.tensor([4, 7, 1])
    packed, _ = theirs(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    found = ours(x, turned(lengths, 7)) * (torch.arange(7) < lengths[:, None])[..., None]
    torch.testing.assert_close(found, expected)


def step_by_step_nll(model: Recurrent, strings: list[list[int]]) -> Tensor:
    total = torch.zeros(())
    for string in strings:
        state = model.start(torch.tensor([[*string, END]]))
        for piece, following in zip([START, *reversed(string)], [*reversed(string), END], strict=True):
            log_probs, state = model.step(torch.tensor([piece]), state)
            total = total - log_probs[0, following]
    return total


@pytest.mark.parametrize("input_feeding", [False, True])
def test_the_loss_and_its_gradient_are_those_of_single_steps(input_feeding: bool) -> None:
    """Also that padding changes nothing: the batch has it, the single sentences do not."""
    model = tiny(input_feeding)
    alone = step_by_step_nll(model, STRINGS)
    alone.backward()
    expected = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    together = model.loss(make_batch(STRINGS, "reverse"))
    together.total.backward()
    torch.testing.assert_close(together.total, alone)
    torch.testing.assert_close({name: p.grad for name, p in model.named_parameters()}, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("input_feeding", [False, True])
def test_a_tiny_recurrent_model_learns_to_reverse_and_a_search_can_use_it(input_feeding: bool) -> None:
    random, model = Random(0), tiny(input_feeding)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    batches = [make_batch(training_strings(32, random), "reverse") for _ in range(8)]
    before = model.loss(batches[0]).mean.item()
    for step in range(60):
        model.loss(batches[step % 8]).mean.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert model.loss(batches[0]).mean.item() < 0.7 * before
    found = search(OnHost(model.eval()), [Request(string) for string in STRINGS], SearchSettings(beam=1))
    for string, outcome in zip(STRINGS, found, strict=True):
        alone = search(OnHost(model), [Request(string)], SearchSettings(beam=1))[0].hypotheses[0].ids
        assert outcome.hypotheses[0].ids == alone
        assert PAD not in alone
