"""A simulation takes one step as rank 0 of many ranks and compares what it counts with the formulas of a plan.

Tensors have no storage and nothing is sent (torch's fake process group), so that a model of 10 billion parameters takes the memory of its
names. What is not simulated is time: for that a plan has formulas and assumptions alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import torch
import torch.distributed as dist
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore

from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.collective_counter import CollectiveCounter
from limelight.planning.cost.communication import SENT, WORDS, communication
from limelight.planning.cost.memory import memory
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.weights import weights
from limelight.training.config import OptimizerSettings
from limelight.training.step.moving_average import MovingAverage
from limelight.training.step.optimizers import build
from limelight.training.step.sharding import Objective, spread

MOST: Final = 1_024  # ranks


@dataclass(frozen=True)
class FormulaCheck:
    what: str
    planned: float  # by formula
    counted: float  # in the real model


@dataclass(frozen=True)
class Simulation:
    ranks: int
    rows: tuple[FormulaCheck, ...]

    @property
    def differing(self) -> list[FormulaCheck]:
        return [row for row in self.rows if row.planned != row.counted]


def simulate_step(config: ModelConfig, parallel: Parallel, precision: Precision, shape: BatchShape) -> Simulation:
    """Bytes and calls of one pass; how many rows a batch has changes the work, and only the sums of tensor parallelism beside it."""
    _refuse(parallel, precision)
    held, counted = _step(config, parallel, precision, shape)
    planned = memory(config, parallel, precision)
    # AdamW has a number of its own for each weight: the steps it has taken.
    formulas = {
        "weights": planned.masters if precision == "masters" else planned.weights,
        "gradients": planned.gradients,
        "moments": planned.moments + 4 * len(weights(config)),
        "moving average": planned.average,
    }
    rows = [FormulaCheck(f"bytes of {what}", formulas[what], held[what]) for what in formulas]
    traffic = [each for each in communication(config, parallel, precision, shape).traffic if each.purpose != WORDS]
    for name in SENT:
        mine = [each for each in traffic if each.collective == name]
        said = name.replace("_", "-")
        rows.append(FormulaCheck(f"calls of {said}", sum(each.calls for each in mine), counted[name].calls))
        rows.append(FormulaCheck(f"bytes in {said}", sum(each.payload for each in mine), counted[name].payload))
    return Simulation(parallel.size, tuple(rows))


def _refuse(parallel: Parallel, precision: Precision) -> None:
    if parallel.size == 1:
        raise ConfigError("--simulate plays many devices, and this plan has one; give more, such as --budget '8xH100 24h'")
    if parallel.size > MOST:
        raise ConfigError(f"--simulate plays at most {MOST:,} devices, not {parallel.size:,}; the formulas hold without it")
    if parallel.kind == "ddp" and precision != "masters":
        raise ConfigError(
            f"--simulate cannot play replicas in {precision}: torch's DistributedDataParallel wants real tensors; try --precision masters"
        )


class _LogitsOnly(Objective):
    """Every weight takes part as in the loss, but nothing looks at a number: there are none."""

    def forward(self, batch: Batch, smoothing: float, r_drop: float | None) -> tuple[Tensor, Tensor]:
        total = self.model(batch.source, batch.target_in).sum()
        return total, total.detach()


def _step(config: ModelConfig, parallel: Parallel, precision: Precision, shape: BatchShape) -> tuple[dict[str, int], CollectiveCounter]:
    with _world(parallel.size):
        with torch.device("meta"):
            objective = _LogitsOnly(Transformer(config))
        called = spread(objective, parallel, torch.device("cpu"), precision)
        with FakeTensorMode(allow_non_fake_inputs=True):  # type: ignore[no-untyped-call, unused-ignore]
            objective.to_empty(device="cpu")
            source = torch.ones(shape.rows, shape.S, dtype=torch.long)
            target = torch.ones(shape.rows, shape.T, dtype=torch.long)
            with CollectiveCounter() as counting, called.synchronizing(True):
                total, _ = called.objective(Batch.padded(source, target, target), 0.0, None)
                total.backward()  # type: ignore[no-untyped-call, unused-ignore]
            named = dict(objective.model.named_parameters())
            optimizers = build(named, OptimizerSettings(), torch.device("cpu"))
            held = {
                "weights": sum(map(_local, named.values())),
                "gradients": sum(_local(weight.grad) for weight in named.values() if weight.grad is not None),
                "moments": sum(map(_local, optimizers.tensors().values())),
                "moving average": sum(map(_local, MovingAverage(named, 0.999).tensors().values())),
            }
    return held, counting


@contextmanager
def _world(size: int) -> Iterator[None]:
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=size)  # type: ignore[no-untyped-call, unused-ignore]
    try:
        yield
    finally:
        dist.destroy_process_group()


def _local(weight: Tensor) -> int:
    part = weight.to_local() if isinstance(weight, DTensor) else weight
    return part.numel() * part.element_size()
