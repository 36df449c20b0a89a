"""Dropout keeps the mean, drops at the rate it says, repeats under a seed, and draws nothing in eval mode."""

import math

import pytest
import torch
from torch import Tensor

from limelight.model.dropout import add_dropout, dropout, keep_mask
from strategies import normal, tiny_case

every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
every_rate = pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
odd_shapes = pytest.mark.parametrize("shape", [(1,), (7,), (8,), (3, 5, 11), (2, 0)], ids=str)


def rounded(rate: float) -> float:
    """What a CPU draws: rates in steps of 1/256."""
    return round(rate * 256) / 256


def seeded(function, *inputs, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    return function(*inputs)


@every_dtype
def test_a_rate_of_zero_is_the_identity_and_draws_nothing(dtype: torch.dtype):
    x, y = normal(3, 7).to(dtype), normal(3, 7, seed=1).to(dtype)
    before = torch.get_rng_state()
    assert dropout(x, 0.0) is x
    assert torch.equal(add_dropout(x, y, 0.0), x + y)
    assert torch.equal(torch.get_rng_state(), before)


@every_rate
@every_dtype
def test_an_element_is_dropped_or_scaled_by_one_over_the_kept_share(dtype: torch.dtype, rate: float):
    x = normal(41, 25).to(dtype)
    out = seeded(dropout, x, rate)
    scale = torch.tensor(1 / (1 - rounded(rate)), dtype=dtype)
    assert out.dtype == dtype
    assert out.shape == x.shape
    assert torch.all((out == 0) | (out == x * scale))
    assert 0 < torch.count_nonzero(out) < x.numel()


@every_rate
@every_dtype
def test_the_observed_rate_is_the_rate_rounded_to_a_256th(dtype: torch.dtype, rate: float):
    """Within four standard errors of a share p among n draws, sqrt(p (1 - p) / n)."""
    n, p = 1_000_003, rounded(rate)
    observed = (seeded(keep_mask, torch.empty(n, dtype=dtype), rate) == 0).sum().item() / n
    assert abs(observed - p) < 4 * math.sqrt(p * (1 - p) / n)


@every_rate
def test_the_mean_is_preserved(rate: float):
    """The mask of a kept share k has mean 1 and variance (1 - k) / k; again four standard errors."""
    n, p = 1_000_003, rounded(rate)
    mean = seeded(dropout, torch.ones(n, dtype=torch.float64), rate).mean().item()
    assert abs(mean - 1) < 4 * math.sqrt(p / (1 - p) / n)


def test_neighbouring_elements_are_dropped_independently():
    """Eight masks come from one draw: their bytes must not know of each other. The standard error of a correlation is 1/sqrt(n)."""
    masks_N8 = seeded(keep_mask, torch.empty(100_000, 8, dtype=torch.float64), 0.3)
    correlations_88 = torch.corrcoef(masks_N8.T) - torch.eye(8)
    assert correlations_88.abs().max().item() < 5 / math.sqrt(100_000)


@odd_shapes
@every_dtype
def test_any_size_gets_a_mask_of_its_own_shape(dtype: torch.dtype, shape: tuple[int, ...]):
    mask = seeded(keep_mask, torch.empty(shape, dtype=dtype), 0.5)
    assert mask.shape == shape
    assert mask.dtype == dtype
    assert set(mask.flatten().tolist()) <= {0.0, 2.0}


def test_an_input_that_is_not_contiguous_is_dropped_like_any_other():
    x = normal(5, 9).T
    assert torch.equal(seeded(dropout, x, 0.5), seeded(dropout, x.contiguous(), 0.5))


@every_dtype
def test_the_same_seed_gives_the_same_mask_and_another_seed_another(dtype: torch.dtype):
    x = normal(3, 41).to(dtype)
    first, again, other = (seeded(dropout, x, 0.5, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@odd_shapes
@every_dtype
def test_add_dropout_is_x_plus_dropout_of_y(dtype: torch.dtype, shape: tuple[int, ...]):
    x, y = normal(*shape).to(dtype), normal(*shape, seed=1).to(dtype)
    fused, plain = seeded(add_dropout, x, y, 0.3), x + seeded(dropout, y, 0.3)
    ulp = torch.finfo(dtype).eps  # one rounding in the fused form, two in the other
    torch.testing.assert_close(fused, plain, rtol=2 * ulp, atol=4 * ulp)


def test_add_dropout_takes_a_stream_and_an_update_of_different_dtypes():
    """As under autocast: the stream is float32, what a projection adds is bfloat16."""
    x, y = normal(3, 7).float(), normal(3, 7, seed=1).bfloat16()
    out = seeded(add_dropout, x, y, 0.3)
    assert out.dtype == torch.float32
    assert torch.equal(out, x + seeded(dropout, y, 0.3))


@pytest.mark.parametrize("function", [dropout, lambda y, rate: add_dropout(torch.ones_like(y), y, rate)])
def test_the_gradient_flows_through_kept_elements_only(function):
    y = normal(5, 13).requires_grad_()
    mask = seeded(keep_mask, y.detach(), 0.4)
    seeded(function, y, 0.4).sum().backward()
    assert torch.equal(y.grad, mask)
    assert 0 < torch.count_nonzero(mask) < mask.numel()


@pytest.mark.parametrize("where", ["dropout", "attention_dropout", "activation_dropout"])
def test_a_model_draws_while_training_and_nothing_in_eval_mode(where: str):
    case = tiny_case(**{where: 0.5})
    source, target = case.batch.source, case.batch.target_in
    before = torch.get_rng_state()
    assert torch.equal(case.model(source, target), case.model(source, target))
    assert torch.equal(torch.get_rng_state(), before)
    case.model.train()
    assert not torch.equal(case.model(source, target), case.model(source, target))
