"""Optimizers change the weights: AdamW, or Muon for the matrices inside the blocks and AdamW for the rest.

AdamW (Loshchilov and Hutter 2019), g the gradient, n the step, all by element:

    m = beta1 m + (1 - beta1) g             w = w - rate decay w - rate m' / (sqrt(v') + epsilon)
    v = beta2 v + (1 - beta2) g^2           m' = m / (1 - beta1^n),  v' = v / (1 - beta2^n)

Muon (Jordan et al. 2024), G the gradient of an A x B matrix, orthogonal() setting all singular values to about 1:

    M = momentum M + (1 - momentum) G       W = W - rate decay W - 0.2 sqrt(max(A, B)) rate orthogonal(lerp(G, M, momentum))

The factor 0.2 sqrt(max(A, B)) gives each element the size of step that AdamW would (Liu et al. 2025); twice that is better here.
Weight decay is for matrices, embeddings among them; biases and norms have none.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn.utils import get_total_norm

from limelight.runtime import choose_dtype
from limelight.training.config import OptimizerSettings
from limelight.training.processes.world import World
from limelight.training.step.muon import StackedMuon
from limelight.training.step.sharding import copies

ADAMW, MUON = "adamw", "muon"
FUSED = frozenset({"cpu", "cuda", "mps", "xpu"})  # devices for which torch has all of AdamW's step as one kernel


def build(
    named: Mapping[str, Tensor],
    settings: OptimizerSettings,
    device: torch.device,
    world: World = World(),  # noqa: B008
) -> "Optimizers":
    """The optimizers of these weights, or float32 masters, by name. They are changed in place."""
    blocks = {name for name, weight in named.items() if ".blocks." in f".{name}" and weight.ndim == 2}
    kinds = {name: MUON if settings.name == "muon" and name in blocks else ADAMW for name in named}
    makers = {ADAMW: _adamw, MUON: _muon}
    optimizers = {}
    for kind, make in makers.items():
        if weights := [weight for name, weight in named.items() if kinds[name] == kind]:
            optimizers[kind] = make(weights, settings, device)
    return Optimizers(named, kinds, optimizers, world)


class Optimizers:
    """One or two of torch's optimizers act as one, whose memory has a name for each tensor."""

    def __init__(
        self,
        named: Mapping[str, Tensor],
        kinds: Mapping[str, str],
        optimizers: Mapping[str, torch.optim.Optimizer],
        world: World,
    ) -> None:
        self._weights, self._world = list(named.values()), world
        self._optimizers = dict(optimizers)
        self._memory: dict[str, Tensor] = {}
        for name, weight in named.items():
            # torch makes this memory when a weight has its first gradient, the same zeros. Made here, it is complete at any
            # moment: whatever a checkpoint lacks is missing, not late.
            optimizer = self._optimizers[kinds[name]]
            optimizer.state[weight] = fresh = _fresh_memory(kinds[name], weight, optimizer.defaults)
            self._memory |= {f"{kinds[name]}/{name}/{key}": tensor for key, tensor in fresh.items()}

    def set_rate(self, rate: float) -> None:
        for optimizer in self._optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = rate

    def step(self) -> None:
        """Change the weights by their gradients. A weight without one stays as it is."""
        for optimizer in self._optimizers.values():
            optimizer.step()

    def zero_gradients(self) -> None:
        for weight in self._weights:
            weight.grad = None

    @torch.no_grad()
    def clip(self, most: float | None) -> float:
        """g = g min(1, most / |g|), with |g| the length of all gradients as one vector; returns |g| from before.

        When |g| is infinite or no number, no factor would help: the gradients stay, for the caller to leave out this step.
        """
        norm = self._norm()
        if most is not None and math.isfinite(norm) and norm > most:
            for weights in alike(self._weights):
                torch._foreach_mul_([weight.grad for weight in weights if weight.grad is not None], most / norm)
        return norm

    def _norm(self) -> float:
        """Where weights are cut, each process knows the length of its parts. The squares add up, once for every copy of a part."""
        cut = [weights for weights in alike(self._weights) if isinstance(weights[0], DTensor)]
        plain = [weight.grad for weight in self._weights if weight.grad is not None and not isinstance(weight, DTensor)]
        if not cut:
            return float(get_total_norm(plain))
        parts = [[each.grad.to_local() for each in weights if isinstance(each.grad, DTensor)] for weights in cut]
        squares = [float(get_total_norm(some)) ** 2 for some in parts]
        shared = self._world.all_reduce(squares)
        held = [copies(weights[0], self._world.size) for weights in cut]
        return math.sqrt(sum(s / n for s, n in zip(shared, held, strict=True)) + float(get_total_norm(plain)) ** 2)

    def tensors(self) -> dict[str, Tensor]:
        """The memory, such as "adamw/encoder.norm.weight/exp_avg": the tensors themselves, which the next step changes."""
        return dict(self._memory)


def alike(weights: Sequence[Tensor]) -> list[list[Tensor]]:
    """Plain ones, and those that are cut over the same processes in the same ways: what one kernel may work on together."""
    kinds: dict[object, list[Tensor]] = {}
    for weight in weights:
        cut = (weight.device_mesh, weight.placements) if isinstance(weight, DTensor) else None
        kinds.setdefault(cut, []).append(weight)
    return list(kinds.values())


def _adamw(weights: list[Tensor], settings: OptimizerSettings, device: torch.device) -> torch.optim.Optimizer:
    matrices = [weight for weight in weights if weight.ndim >= 2]
    others = [weight for weight in weights if weight.ndim < 2]
    fused = device.type in FUSED
    groups: list[dict[str, Any]] = []
    for some, decay in ((matrices, settings.weight_decay), (others, 0.0)):
        groups += [{"params": alike, "weight_decay": decay} for alike in alike(some)]
    return torch.optim.AdamW(
        groups,
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        fused=fused,
        foreach=not fused,
    )


def _muon(weights: list[Tensor], settings: OptimizerSettings, device: torch.device) -> torch.optim.Optimizer:
    asked: dict[str, Any] = {
        "lr": settings.learning_rate,
        "momentum": settings.momentum,
        "weight_decay": settings.weight_decay,
        "adjust_lr_fn": "match_rms_adamw",
    }
    if any(isinstance(weight, DTensor) for weight in weights):
        return torch.optim.Muon(weights, **asked)
    return StackedMuon(weights, dtype=choose_dtype(device).value, **asked)


def _fresh_memory(kind: str, weight: Tensor, defaults: Mapping[str, object]) -> dict[str, Tensor]:
    if kind == MUON:
        return {"momentum_buffer": torch.zeros_like(weight)}
    # The fused kernel counts steps where the weights are; the other way counts on the host.
    where = weight.device if defaults["fused"] else torch.device("cpu")
    return {
        "step": torch.zeros((), dtype=torch.float32, device=where),
        "exp_avg": torch.zeros_like(weight),
        "exp_avg_sq": torch.zeros_like(weight),
    }
