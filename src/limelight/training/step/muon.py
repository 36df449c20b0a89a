"""Muon takes matrices of one shape together, in the format that the device multiplies: one product in place of many small ones.

    orthogonal(X)      X / |X|, and five times  X = a X + (b X X^T + c (X X^T)^2) X      Newton and Schulz (Jordan et al. 2024)

torch's own takes one matrix after the other, always in bfloat16, which a CPU without such instructions imitates. Everything else, and what
is remembered, is as there.
"""

import math
from typing import Any

import torch
from torch import Tensor


class StackedMuon(torch.optim.Muon):
    def __init__(self, weights: list[Tensor], *, dtype: torch.dtype, **settings: Any) -> None:
        super().__init__(weights, **settings)
        self.dtype = dtype  # to make steps orthogonal in

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """A weight without a gradient stays as it is."""
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            shapes: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = {}
            for weight in (each for each in group["params"] if each.grad is not None):
                memory = self.state[weight].setdefault("momentum_buffer", torch.zeros_like(weight)).lerp_(weight.grad, 1 - momentum)
                shapes.setdefault(tuple(weight.shape), []).append((weight, weight.grad.lerp(memory, momentum)))
            for shape, some in shapes.items():
                stacked = torch.stack([step for _, step in some]).to(self.dtype)
                steps = make_orthogonal(stacked, group["ns_coefficients"], group["ns_steps"], group["eps"])
                for (weight, _), step in zip(some, steps, strict=True):
                    weight.mul_(1 - rate * group["weight_decay"]).add_(step, alpha=-0.2 * math.sqrt(max(shape)) * rate)


def make_orthogonal(x_NAB: Tensor, coefficients: tuple[float, float, float], rounds: int, epsilon: float) -> Tensor:
    """(N, A, B) with singular values of about 1: between 0.5 and 1.5."""
    a, b, c = coefficients
    tall = x_NAB.shape[1] > x_NAB.shape[2]
    x = x_NAB.mT.contiguous() if tall else x_NAB
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp_min(epsilon)
    for _ in range(rounds):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
