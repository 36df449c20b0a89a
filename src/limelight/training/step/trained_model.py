"""A model is built, sharded and compiled for training in one of three number formats.

Whichever it is, the optimizer works on float32 weights by name.

masters     bfloat16 weights with float32 masters: fastest where bfloat16 is multiplied
autocast    float32 weights, products in bfloat16: the same quality, a little slower on a CPU
float32     where there is no bfloat16, and to compare with
"""

from collections.abc import Mapping
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.parallel import Parallel
from limelight.runtime import RuntimeChoice, choose_dtype, set_seed
from limelight.training.config import Precision, Recipe
from limelight.training.step.guided_alignment import AlignmentGuide
from limelight.training.step.sharding import Objective, spread


class TrainedModel:
    """A trained model has its weights as the optimizer sees them. In many processes they may be parts of weights."""

    def __init__(
        self,
        model: Transformer,
        precision: Precision,
        parallel: Parallel = Parallel(),  # noqa: B008
        guide: AlignmentGuide | None = None,
    ) -> None:
        self.model, self.precision, self.parallel = model, precision, parallel
        device = next(model.parameters()).device
        self.guide = guide and guide.to(device)
        objective = Objective(model, self.guide)
        self._spread = spread(objective, parallel, device, precision)
        self.same_passes = self._spread.in_step  # must every process make as many passes as the others?
        self.synchronizing = self._spread.synchronizing  # around each pass: after the last the processes have added up their gradients
        # Cut weights are masters themselves: what is gathered of them to compute with is bfloat16.
        own = precision == "masters" and not self._spread.in_step
        self._masters = MasterWeights(model) if own else None
        self.named: dict[str, Tensor] = self._masters.named if self._masters else dict(model.named_parameters())
        self.device = device

    def loss(self, batch: Batch, smoothing: float, r_drop: float | None) -> tuple[Tensor, Tensor]:
        """Loss, with its gradient, and negative log-likelihood, both summed over the pieces."""
        with torch.autocast(self.device.type, torch.bfloat16) if self.precision == "autocast" else nullcontext():
            return self._spread.objective(batch, smoothing, r_drop)

    def take_gradients(self) -> None:
        """After each backward pass: gradients of several add up in float32."""
        if self._masters:
            self._masters.take_gradients()

    def drop_gradients(self) -> None:
        for weight in (*self.named.values(), *self.model.parameters()):
            weight.grad = None

    def publish(self) -> None:
        if self._masters:
            self._masters.publish()


def choose_precision(device: torch.device, asked: Precision | None) -> RuntimeChoice[Precision]:
    if asked is not None:
        return RuntimeChoice(asked, "asked for")
    dtype = choose_dtype(device)
    if dtype.value == torch.bfloat16:
        return RuntimeChoice("masters", f"bfloat16 weights with float32 masters, since {dtype.why}")
    return RuntimeChoice("float32", dtype.why)


def build_model(
    recipe: Recipe,
    device: torch.device,
    weights: Mapping[str, Tensor] | None = None,
    parallel: Parallel = Parallel(),  # noqa: B008
    guide: AlignmentGuide | None = None,
) -> TrainedModel:
    """A model as the recipe says: with random weights, or with those that are given. Those of a run come later."""
    set_seed(recipe.seed)
    model = Transformer(recipe.model).to(device)
    if weights is not None:
        model.load_state_dict(weights)
    model.recompute_activations(recipe.machine.recompute)
    if recipe.machine.compile:
        for block in (*model.encoder.blocks, *model.decoder.blocks):
            block.compile()
    return TrainedModel(model, recipe.machine.precision or "float32", parallel, guide)


class MasterWeights:
    """The masters are float32 copies, by name, of the model's parameters, which become `dtype` in place (Micikevicius et al. 2018)."""

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.bfloat16) -> None:
        self.named: dict[str, Tensor] = {}
        self._weights: list[Tensor] = []
        self._gradients: dict[str, Tensor] = {}
        for name, weight in model.named_parameters():
            self.named[name] = weight.detach().to(torch.float32, copy=True)
            weight.data = weight.data.to(dtype)
            self._weights.append(weight)

    def parameters(self) -> list[Tensor]:
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
        torch._foreach_copy_(self._weights, self.parameters())
