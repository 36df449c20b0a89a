"""Master weights are the float32 copies of a model in bfloat16 (Micikevicius et al. 2018).

The model computes, and keeps its activations, in bfloat16 throughout; the optimizer works on float32 copies, so that
updates smaller than bfloat16 can hold are not lost. Against autocast this spares the casts of every weight and activation in
every step. Sharded training has the same in FSDP2's `MixedPrecisionPolicy`; this is its plain form for one process.
"""

import torch
from torch import Tensor, nn


class MasterWeights:
    """The masters are float32 copies, under the same names, of the model's parameters, which are turned to `dtype` in place."""

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.bfloat16) -> None:
        self.named: dict[str, Tensor] = {}
        self._weights: list[Tensor] = []
        self._gradients: dict[str, Tensor] = {}
        for name, weight in model.named_parameters():
            self.named[name] = weight.detach().to(torch.float32, copy=True)
            weight.data = weight.data.to(dtype)
            self._weights.append(weight)

    def parameters(self) -> list[Tensor]:
        """What the optimizer and the clipping work on."""
        return list(self.named.values())

    def take_gradients(self) -> None:
        """Move each weight's gradient to its master, added to what is there: gradients accumulate in float32."""
        for name, weight in zip(self.named, self._weights, strict=True):
            master = self.named[name]
            if weight.grad is None:
                continue
            if master.grad is not None:
                master.grad.add_(weight.grad)
            elif name in self._gradients:  # the same memory every step, since taking it anew costs page faults
                master.grad = self._gradients[name].copy_(weight.grad)
            else:
                master.grad = self._gradients[name] = weight.grad.float()
            weight.grad = None

    @torch.no_grad()
    def publish(self) -> None:
        """Round the masters into the model."""
        torch._foreach_copy_(self._weights, self.parameters())
