"""The chunked loss at its edges; its gradients are checked in test_gradients.py."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from limelight.model.loss import rows_at_once, smoothed_loss

N, D, V = 7, 5, 11


def inputs(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(N, D, generator=generator), torch.randn(V, D, generator=generator)
    return x.to(dtype), weight.to(dtype), torch.randint(V, (N,), generator=generator), torch.ones(N, dtype=torch.bool)


def test_a_confidently_wrong_model_is_told_its_whole_loss() -> None:
    x, target, counted = torch.tensor([[200.0, 0.0]]), torch.tensor([1]), torch.tensor([True])
    assert smoothed_loss(x, torch.eye(2), None, target, counted, 0.0).total.item() == pytest.approx(200.0)


def test_a_target_outside_the_vocabulary_is_refused() -> None:
    x, weight, target, counted = inputs()
    with pytest.raises(IndexError):
        smoothed_loss(x, weight, None, target + V, counted, 0.1)


def test_sums_of_two_halves_are_the_sum_of_the_whole() -> None:
    x, weight, target, counted = inputs(torch.float64)
    whole = smoothed_loss(x, weight, None, target, counted, 0.1)
    halves = [smoothed_loss(x[part], weight, None, target[part], counted[part], 0.1) for part in (slice(3), slice(3, N))]
    assert sum(float(half.total) for half in halves) == pytest.approx(float(whole.total), abs=1e-12)
    assert sum(int(half.pieces) for half in halves) == int(whole.pieces) == N


def test_the_nll_is_the_loss_without_smoothing() -> None:
    x, weight, target, counted = inputs(torch.float64)
    smoothed = smoothed_loss(x, weight, None, target, counted, 0.3)
    assert float(smoothed.nll) == pytest.approx(float(smoothed_loss(x, weight, None, target, counted, 0.0).total), abs=1e-12)
    assert float(smoothed.nll) != pytest.approx(float(smoothed.total), abs=1e-3)


def test_under_autocast_value_and_gradient_are_near_those_in_float32() -> None:
    x, weight, target, counted = inputs()
    results = []
    for enabled in (False, True):
        leaf, matrix = x.clone().requires_grad_(), weight.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = smoothed_loss(leaf, matrix, None, target, counted, 0.1).mean
        loss.backward()
        assert leaf.grad is not None and matrix.grad is not None
        assert leaf.grad.dtype == matrix.grad.dtype == torch.float32
        results.append((loss.detach(), leaf.grad, matrix.grad))
    for exact, rounded in zip(*results, strict=True):
        torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.02)


def test_without_gradients_the_value_is_the_same_and_nothing_is_kept() -> None:
    x, weight, target, counted = inputs()
    weight.requires_grad_()
    with torch.no_grad():
        quiet = smoothed_loss(x, weight, None, target, counted, 0.1)
    assert not quiet.total.requires_grad
    expected = F.cross_entropy(x @ weight.T, target, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(quiet.total, expected.detach())


@pytest.mark.parametrize(("vocabulary", "device"), [(100, "cpu"), (8000, "cpu"), (300_000, "cpu"), (37_000, "cuda")])
def test_chunks_are_multiples_of_what_packed_batches_are_rounded_to(vocabulary: int, device: str) -> None:
    rows = rows_at_once(vocabulary, device)
    assert rows >= 256
    assert rows % 256 == 0
