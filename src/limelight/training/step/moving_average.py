"""A moving average of the weights is better than the last weights (Polyak and Juditsky 1992).

At step n, with w the weights:

    average = d average + (1 - d) w,  d = min(decay, (1 + n) / (10 + n))

With d = decay alone, the weights from before the first step would still be a third of the average after 1,000 steps of 0.999.
As it is, they are less than 1e-20 of it.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from limelight.training.step.optimizers import alike


class MovingAverage:
    """The average is of these weights, which may change in place; in float32, since 1 - d is too small for bfloat16."""

    def __init__(self, named: Mapping[str, Tensor], decay: float) -> None:
        self.named: dict[str, Tensor] = {name: weight.detach().to(torch.float32, copy=True) for name, weight in named.items()}
        self._weights = list(named.values())
        self._decay = decay

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights as they are after this step; 1 is the first."""
        d = min(self._decay, (1 + step) / (10 + step))
        for averages, weights in zip(alike(list(self.named.values())), alike(self._weights), strict=True):
            torch._foreach_lerp_(averages, [weight.float() for weight in weights], 1 - d)

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint: the tensors themselves, which the next update changes."""
        return {f"average/{name}": tensor for name, tensor in self.named.items()}
