"""bfloat16 weights with float32 masters."""

import pytest
import torch
from torch import nn

from limelight.training.step.trained_model import MasterWeights


def small_model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(6, 4)


def test_the_model_holds_the_rounded_masters() -> None:
    model = small_model()
    before = model.weight.detach().clone()
    masters = MasterWeights(model)
    assert model.weight.dtype == torch.bfloat16
    assert torch.equal(masters.named["weight"], before)
    assert torch.equal(model.weight, before.bfloat16())


@pytest.mark.slow
def test_updates_too_small_for_bfloat16_are_not_lost() -> None:
    model = small_model()
    masters = MasterWeights(model)
    start = model.weight.detach().clone()
    optimizer = torch.optim.SGD(masters.parameters(), lr=1e-5)
    alone = small_model().bfloat16()
    alone_optimizer = torch.optim.SGD(alone.parameters(), lr=1e-5)
    for _ in range(2000):
        for parameter in (*model.parameters(), *alone.parameters()):
            parameter.grad = torch.ones_like(parameter)
        masters.take_gradients()
        optimizer.step()
        optimizer.zero_grad()
        masters.publish()
        alone_optimizer.step()
    moved = (start.float() - model.weight.detach().float()).mean().item()
    assert abs(moved - 0.02) < 0.001
    assert (start.float() - alone.weight.detach().float()).mean().item() < 0.01  # without masters most of it is lost


def test_gradients_add_up_in_float32() -> None:
    model = small_model()
    masters = MasterWeights(model)
    for size in (1.0, 2.0**-10):
        model.weight.grad = torch.full_like(model.weight, size)
        masters.take_gradients()
    gradient = masters.named["weight"].grad
    assert gradient is not None
    assert torch.all(gradient == 1 + 2.0**-10)
    assert model.weight.grad is None
    assert masters.named["bias"].grad is None
