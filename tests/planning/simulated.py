"""The real model, cut by the real code, under torch's fake process group: one process plays rank 0 of any number, with tensors that have
no storage. Nothing is computed and nothing is sent, but every collective is called, with its shapes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore

from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.collective_counter import CollectiveCounter
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.shape import BatchShape
from limelight.training.config import OptimizerSettings
from limelight.training.step.moving_average import MovingAverage
from limelight.training.step.optimizers import build
from limelight.training.step.sharding import Objective, spread


class LogitsOnly(Objective):
    """Every weight takes part as in the loss, but nothing looks at a number: there are none."""

    def forward(self, batch: Batch, smoothing: float, r_drop: float | None) -> tuple[Tensor, Tensor]:
        total = self.model(batch.source, batch.target_in).sum()
        return total, total.detach()


@contextmanager
def fake_world(size: int) -> Iterator[None]:
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=size)
    try:
        yield
    finally:
        dist.destroy_process_group()


class Simulated:
    """One step of rank 0: what it called, and what it holds."""

    def __init__(self, config: ModelConfig, parallel: Parallel, precision: Precision, shape: BatchShape) -> None:
        with fake_world(parallel.size):
            with torch.device("meta"):
                objective = LogitsOnly(Transformer(config))
            called = spread(objective, parallel, torch.device("cpu"), precision)
            with FakeTensorMode(allow_non_fake_inputs=True):
                objective.to_empty(device="cpu")
                source = torch.ones(shape.rows, shape.S, dtype=torch.long)
                target = torch.ones(shape.rows, shape.T, dtype=torch.long)
                with CollectiveCounter() as self.counted, called.synchronizing(True):
                    total, _ = called.objective(Batch.padded(source, target, target), 0.0, None)
                    total.backward()
                named = dict(objective.model.named_parameters())
                self.weights = sum(map(_local, named.values()))
                self.gradients = sum(_local(weight.grad) for weight in named.values() if weight.grad is not None)
                optimizers = build(named, OptimizerSettings(), torch.device("cpu"))
                self.moments = sum(map(_local, optimizers.tensors().values()))
                self.average = sum(map(_local, MovingAverage(named, 0.999).tensors().values()))


def _local(weight: Tensor) -> int:
    """Bytes of this process's part."""
    part = weight.to_local() if isinstance(weight, DTensor) else weight
    return part.numel() * part.element_size()
