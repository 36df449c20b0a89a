"""The optimizers: which weight takes which step, clipping, and going on from a checkpoint bit by bit."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.training.config import OptimizerSettings
from limelight.training.step.muon import make_orthogonal
from limelight.training.step.optimizers import Optimizers, build
from limelight.training.step.trained_model import MasterWeights

CPU = torch.device("cpu")
ADAMW, MUON = OptimizerSettings(learning_rate=0.01), OptimizerSettings(name="muon", learning_rate=0.01)
BOTH = pytest.mark.parametrize("settings", [ADAMW, MUON], ids=["adamw", "muon"])
UP = "encoder.blocks.0.feed_forward.up"


def toy_weights() -> dict[str, Tensor]:
    torch.manual_seed(0)
    model = Transformer(ModelConfig.preset("toy", 13, encoder_layers=1, decoder_layers=1))
    return dict(model.named_parameters())


def give_gradients(named: dict[str, Tensor], step: int) -> None:
    """Other ones at each step, and of very different sizes."""
    generator = torch.Generator().manual_seed(step)
    for place, weight in enumerate(named.values()):
        weight.grad = torch.randn(weight.shape, generator=generator) * 10.0 ** (place % 5 - 3)


def take_steps(optimizers: Optimizers, named: dict[str, Tensor], steps: range) -> None:
    for step in steps:
        give_gradients(named, step)
        optimizers.clip(1.0)
        optimizers.set_rate(0.01 / step)
        optimizers.step()
        optimizers.zero_gradients()


def restore(optimizers: Optimizers, saved: dict[str, Tensor]) -> None:
    """As a checkpoint is loaded: into the tensors themselves."""
    for name, tensor in optimizers.tensors().items():
        tensor.copy_(saved[name])


def interrupted(settings: OptimizerSettings, damage: Callable[[dict[str, Tensor]], Any]) -> dict[str, Tensor]:
    """Five steps, everything through the bytes of a file and into new objects, five steps more."""
    named = toy_weights()
    optimizers = build(named, settings, CPU)
    take_steps(optimizers, named, range(1, 6))
    weights, memory = save({name: weight.detach() for name, weight in named.items()}), save(optimizers.tensors())

    again = {name: weight.requires_grad_() for name, weight in load(weights).items()}
    again = {name: again[name] for name in named}
    loaded = load(memory)
    damage(loaded)
    optimizers = build(again, settings, CPU)
    restore(optimizers, loaded)
    take_steps(optimizers, again, range(6, 11))
    return again


def uninterrupted(settings: OptimizerSettings) -> dict[str, Tensor]:
    named = toy_weights()
    take_steps(build(named, settings, CPU), named, range(1, 11))
    return named


def differing(some: dict[str, Tensor], others: dict[str, Tensor]) -> set[str]:
    assert some.keys() == others.keys()
    return {name for name, weight in some.items() if not torch.equal(weight, others[name])}


@pytest.mark.slow
@BOTH
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(settings: OptimizerSettings) -> None:
    assert differing(interrupted(settings, lambda loaded: None), uninterrupted(settings)) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (ADAMW, f"adamw/{UP}.weight/exp_avg"),
        (ADAMW, f"adamw/{UP}.weight/exp_avg_sq"),
        (ADAMW, f"adamw/{UP}.weight/step"),
        (MUON, f"muon/{UP}.weight/momentum_buffer"),
        (MUON, f"adamw/{UP}.bias/exp_avg_sq"),
    ],
)
def test_every_part_of_the_memory_matters(settings: OptimizerSettings, name: str) -> None:
    """The control of the test above: without it, it is red."""
    spoiled = interrupted(settings, lambda loaded: loaded[name].zero_())
    assert differing(spoiled, uninterrupted(settings)) == {name.split("/")[1]}


def test_adamw_is_torchs_own_with_decay_for_matrices_alone() -> None:
    named, plain = toy_weights(), list(toy_weights().items())
    settings = OptimizerSettings(weight_decay=0.3, learning_rate=0.01, beta1=0.8, beta2=0.9, epsilon=1e-4)
    take_steps(build(named, settings, CPU), named, range(1, 4))

    groups = [
        {"params": [weight for _, weight in plain if weight.ndim == 2], "weight_decay": 0.3},
        {"params": [weight for _, weight in plain if weight.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.01, betas=(0.8, 0.9), eps=1e-4, foreach=False)
    for step in range(1, 4):
        give_gradients(dict(plain), step)
        torch.nn.utils.clip_grad_norm_([weight for _, weight in plain], 1.0)
        for group in optimizer.param_groups:
            group["lr"] = 0.01 / step
        optimizer.step()
    for name, weight in plain:
        torch.testing.assert_close(named[name], weight, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("units", [[], ["amx"]], ids=["float32", "bfloat16"])
def test_muon_is_torchs_own_with_our_settings(units: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it computes in float32, which rounds less."""
    monkeypatch.setattr("limelight.runtime.bfloat16_units", lambda: units)
    named, plain = toy_weights(), toy_weights()
    settings = OptimizerSettings(name="muon", weight_decay=0.3, learning_rate=0.01, momentum=0.8)
    take_steps(build(named, settings, CPU), named, range(1, 4))

    matrices = {name: weight for name, weight in plain.items() if "blocks" in name and weight.ndim == 2}
    optimizer = torch.optim.Muon(matrices.values(), lr=0.01, momentum=0.8, weight_decay=0.3, adjust_lr_fn="match_rms_adamw")
    for step in range(1, 4):
        give_gradients(plain, step)
        torch.nn.utils.clip_grad_norm_(plain.values(), 1.0)
        optimizer.param_groups[0]["lr"] = 0.01 / step
        optimizer.step()
    for name, weight in matrices.items():
        # We clip by most / norm, torch by most / (norm + 1e-6): with another momentum or decay the gap is above 1e-3.
        torch.testing.assert_close(named[name], weight, rtol=0, atol=2e-4)


@pytest.mark.parametrize("shape", [(3, 8, 5), (2, 5, 8), (1, 6, 6)])
def test_a_step_is_made_orthogonal(shape: tuple[int, ...]) -> None:
    made = make_orthogonal(torch.randn(shape, generator=torch.Generator().manual_seed(1)), (3.4445, -4.775, 2.0315), 5, 1e-7)
    assert made.shape == shape and torch.equal(make_orthogonal(torch.zeros(shape), (3.4445, -4.775, 2.0315), 5, 1e-7), torch.zeros(shape))
    values = torch.linalg.svdvals(made)
    assert values.min() > 0.5 and values.max() < 1.5


def test_muon_steps_the_matrices_of_the_blocks_and_adamw_the_rest() -> None:
    named = toy_weights()
    kinds = {tuple(name.split("/")[:2]) for name in build(named, MUON, CPU).tensors()}
    matrices = {name for kind, name in kinds if kind == "muon"}
    assert matrices == {name for name in named if "blocks" in name and named[name].ndim == 2}
    assert {"encoder.blocks.0.attention.qkv.weight", "decoder.blocks.0.feed_forward.down.weight"} <= matrices
    assert {name for kind, name in kinds if kind == "adamw"} == named.keys() - matrices
    assert ("adamw", "target_embedding.weight") in kinds


def test_muon_moves_a_matrix_about_as_far_as_adamw_does() -> None:
    moved = {}
    for settings in (ADAMW, MUON):
        named = toy_weights()
        before = named[f"{UP}.weight"].detach().clone()
        take_steps(build(named, settings, CPU), named, range(1, 2))
        moved[settings.name] = (named[f"{UP}.weight"].detach() - before).square().mean().sqrt().item() / 0.01
    assert moved["adamw"] == pytest.approx(1, rel=0.05)  # its first step is the sign of the gradient
    assert 0.1 < moved["muon"] < 0.4  # 0.2 is what AdamW's later steps have (Liu et al. 2025)


@BOTH
def test_the_memory_is_what_torch_would_have_made(settings: OptimizerSettings) -> None:
    """Ours is made before the first step; torch makes its own with the first gradient."""
    named, theirs = toy_weights(), toy_weights()
    optimizers, late = build(named, settings, CPU), build(theirs, settings, CPU)
    for optimizer in late._optimizers.values():
        optimizer.state.clear()
    take_steps(optimizers, named, range(1, 4))
    take_steps(late, theirs, range(1, 4))
    assert differing(named, theirs) == set()
    for name, tensor in optimizers.tensors().items():
        kind, weight, key = name.split("/")
        made = late._optimizers[kind].state[theirs[weight]]
        assert torch.equal(tensor, made[key]) and tensor.dtype == made[key].dtype
        assert sum(other.startswith(f"{kind}/{weight}/") for other in optimizers.tensors()) == len(made)


def test_the_fused_step_and_the_other_agree_and_share_checkpoints() -> None:
    fused, other = toy_weights(), toy_weights()
    one, two = build(fused, ADAMW, CPU), build(other, ADAMW, torch.device("meta"))  # a device without the fused kernel
    assert one._optimizers["adamw"].defaults["fused"] and not two._optimizers["adamw"].defaults["fused"]
    take_steps(one, fused, range(1, 4))
    take_steps(two, other, range(1, 4))
    for name, weight in fused.items():
        torch.testing.assert_close(weight, other[name], rtol=1e-4, atol=1e-6)
    restore(two, one.tensors())
    assert all(torch.equal(tensor, two.tensors()[name]) for name, tensor in one.tensors().items())


@BOTH
def test_a_weight_without_a_gradient_stays_as_it_is(settings: OptimizerSettings) -> None:
    named = toy_weights()
    before = {name: weight.detach().clone() for name, weight in named.items()}
    optimizers = build(named, settings, CPU)
    give_gradients(named, 1)
    idle = {f"{UP}.weight", "encoder.norm.bias", "target_embedding.weight"}
    for name in idle:
        named[name].grad = None
    optimizers.clip(1.0)
    optimizers.step()
    assert differing(named, before) == named.keys() - idle
    optimizers.zero_gradients()
    assert all(weight.grad is None for weight in named.values())
    assert optimizers.clip(1.0) == 0


@pytest.mark.slow
@BOTH
def test_masters_are_stepped_like_parameters(settings: OptimizerSettings) -> None:
    torch.manual_seed(0)
    masters = MasterWeights(Transformer(ModelConfig.preset("toy", 13, encoder_layers=1, decoder_layers=1)))
    take_steps(build(masters.named, settings, CPU), masters.named, range(1, 11))
    assert differing(masters.named, uninterrupted(settings)) == set()


def test_clipping_shortens_long_gradients_and_keeps_their_direction() -> None:
    named = {"a": torch.zeros(2), "b": torch.zeros(1), "c": torch.zeros(1)}
    optimizers = build(named, ADAMW, CPU)
    named["a"].grad, named["b"].grad = torch.tensor([2.0, -3.0]), torch.tensor([6.0])
    assert optimizers.clip(None) == optimizers.clip(7.0) == 7
    assert torch.equal(named["a"].grad, torch.tensor([2.0, -3.0]))
    assert optimizers.clip(3.5) == 7
    assert torch.equal(named["a"].grad, torch.tensor([1.0, -1.5])) and torch.equal(named["b"].grad, torch.tensor([3.0]))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_clipping_leaves_gradients_that_are_no_numbers_as_they_are(bad: float) -> None:
    named = {"a": torch.zeros(2), "b": torch.zeros(1)}
    optimizers = build(named, ADAMW, CPU)
    named["a"].grad, named["b"].grad = torch.tensor([2.0, bad]), torch.tensor([6.0])
    assert str(optimizers.clip(1.0)) == str(abs(bad))
    assert torch.equal(named["b"].grad, torch.tensor([6.0])) and named["a"].grad[0] == 2
    assert str(named["a"].grad[1].item()) == str(bad)
