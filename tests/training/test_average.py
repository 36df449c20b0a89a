"""The moving average of the weights."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from limelight.training.step.moving_average import MovingAverage

STEPS = 60


def weights_at(step: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return {
        "a": torch.randn(3, 4, generator=generator).to(dtype),
        "b": (5 + torch.randn(6, generator=generator)).to(dtype),
    }


def move(named: dict[str, Tensor], average: MovingAverage, steps: range) -> None:
    for step in steps:
        for name, weight in weights_at(step).items():
            named[name].copy_(weight)
        average.update(step)


def averaged(decay: float, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    named = weights_at(0, dtype)
    average = MovingAverage(named, decay)
    move(named, average, range(1, STEPS + 1))
    return average.named


@pytest.mark.parametrize("decay", [0.5, 0.8, 0.999])
def test_the_average_is_its_closed_form(decay: float) -> None:
    """average = sum over n of (1 - d_n) w_n times all later d."""
    ds = [0.0] + [min(decay, (1 + n) / (10 + n)) for n in range(1, STEPS + 1)]
    shares = [(1 - ds[n]) * math.prod(ds[n + 1 :]) for n in range(STEPS + 1)]
    assert sum(shares) == pytest.approx(1)
    for name, value in averaged(decay).items():
        expected = sum(share * weights_at(n)[name].double() for n, share in enumerate(shares))
        torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=1e-6)


def test_the_beginning_is_forgotten() -> None:
    named = {"w": torch.tensor([1e6])}
    average = MovingAverage(named, 0.999)
    named["w"].zero_()
    sizes = [1e6]
    for step in range(1, 100):
        average.update(step)
        sizes.append(average.named["w"].item())
    assert all(after < before for before, after in pairwise(sizes))
    assert sizes[-1] < 1e-5 < 1e6 * 0.999**99


def test_bfloat16_weights_are_averaged_in_float32() -> None:
    values = averaged(0.999, torch.bfloat16)
    for name, value in averaged(0.999).items():
        assert values[name].dtype == torch.float32
        torch.testing.assert_close(values[name], value, rtol=0.01, atol=0.01)
    assert any((value != value.bfloat16()).any() for value in values.values())


def test_the_weights_themselves_are_left_alone_and_need_no_gradient() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    average = MovingAverage({"w": weight}, 0.9)
    average.update(1)
    assert torch.equal(weight, torch.ones(3)) and weight.grad is None
    assert not average.named["w"].requires_grad
    assert average.named["w"].data_ptr() != weight.data_ptr()


def test_a_resumed_average_equals_an_uninterrupted_one_bit_for_bit() -> None:
    named = weights_at(0)
    average = MovingAverage(named, 0.99)
    move(named, average, range(1, 31))
    saved = {name: tensor.clone() for name, tensor in average.tensors().items()}
    assert saved.keys() == {"average/a", "average/b"}

    again = {name: weight.clone() for name, weight in named.items()}
    resumed = MovingAverage(again, 0.99)
    for name, tensor in resumed.tensors().items():
        tensor.copy_(saved[name])
    move(again, resumed, range(31, STEPS + 1))
    assert all(torch.equal(value, resumed.named[name]) for name, value in averaged(0.99).items())

    forgetful = MovingAverage(again, 0.99)  # the control: without loading, the rest of the steps does not bring it back
    move(again, forgetful, range(31, STEPS + 1))
    assert not torch.equal(forgetful.named["a"], resumed.named["a"])
