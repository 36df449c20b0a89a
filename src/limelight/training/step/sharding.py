"""Sharding spreads one model over processes by DistributedDataParallel, `fully_shard` and tensor parallelism.

Gradients are added up over the processes, not averaged: the loss is divided by the target pieces of all of them beforehand, so that a
process with longer sentences counts for more, and the number of processes changes nothing.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.parallel.style import ParallelStyle
from torch.nn.parallel import DistributedDataParallel

from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.parallel import Parallel
from limelight.planning.cost.weights import BY_INPUTS, BY_OUTPUTS
from limelight.training.config import Precision
from limelight.training.step.guided_alignment import AlignmentGuide, watch_guided


class Objective(nn.Module):
    """The objective is loss and negative log-likelihood, summed over the target pieces of a batch. With a guide, one head is told too
    where to look."""

    def __init__(self, model: Transformer, guide: AlignmentGuide | None = None) -> None:
        super().__init__()
        self.model, self.guide = model, guide

    def forward(self, batch: Batch, smoothing: float, r_drop: float | None) -> tuple[Tensor, Tensor]:
        if self.guide is None:
            return self.measure(batch, smoothing, r_drop)
        with watch_guided(self.model) as seen:
            loss, nll = self.measure(batch, smoothing, r_drop)
        return loss + sum(self.guide.measure(each, batch) for each in seen) / len(seen), nll

    def measure(self, batch: Batch, smoothing: float, r_drop: float | None) -> tuple[Tensor, Tensor]:
        if r_drop is not None:
            return r_drop_loss(self.model, batch, smoothing, r_drop)
        found = self.model.loss(batch, smoothing)
        return found.total, found.nll


@dataclass(frozen=True)
class Spread:
    objective: Callable[..., tuple[Tensor, Tensor]]
    synchronizing: Callable[[bool], AbstractContextManager[object]]  # around each pass; True for the last of a step
    in_step: bool = False  # every pass exchanges weights, so that all processes must make the same passes


def spread(objective: Objective, parallel: Parallel, device: torch.device, precision: Precision) -> Spread:
    if parallel.kind == "alone":
        return Spread(objective, lambda last: nullcontext())
    if parallel.kind == "ddp" and precision != "masters":
        return _wrap_ddp(objective, device)
    # With masters, replicas too go through `fully_shard`, over one shard each: it keeps float32 weights behind those in bfloat16.
    # Neighbours share a product, neighbours of those share weights: ranks count up inside a machine, where wires are fast.
    sizes = (parallel.replicas, parallel.shards, parallel.tensor)
    mesh = init_device_mesh(device.type, sizes, mesh_dim_names=("replicas", "shards", "tensor"))
    if parallel.tensor > 1:
        # It would tell of every weight that is gathered in two steps, which happens at validations only.
        logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)
        _cut_products(objective.model, mesh["tensor"])
    _cut_weights(objective, mesh["replicas", "shards"] if parallel.replicas > 1 else mesh["shards"], precision)
    assert isinstance(objective, FSDPModule)
    whole: FSDPModule = objective

    def synchronizing(last: bool) -> AbstractContextManager[object]:
        # Between groups once a step. Within a group after every pass: gradients of all weights are what nobody has room for.
        whole.set_requires_all_reduce(last)
        return nullcontext()

    return Spread(objective, synchronizing, in_step=True)


def _wrap_ddp(objective: Objective, device: torch.device) -> Spread:
    wrapped = DistributedDataParallel(
        objective,
        device_ids=[device.index] if device.type == "cuda" else None,
        forward_sync_buffers=False,  # tables of positions, the same everywhere
        gradient_as_bucket_view=True,
        init_sync=False,  # the same seed, or the same checkpoint, made them
    )
    wrapped.register_comm_hook(None, _sum_gradients)
    return Spread(wrapped, lambda last: nullcontext() if last else wrapped.no_sync())


def _sum_gradients(_: Any, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
    work: Any = dist.all_reduce(bucket.buffer(), async_op=True)
    added: torch.futures.Future[Tensor] = work.get_future().then(lambda done: done.value()[0])
    return added


def _cut_products(model: Transformer, mesh: DeviceMesh) -> None:
    """Each process computes some of the heads, and some of the feed-forward layer's inner width; the rest it has whole."""
    styles: dict[str, type[ParallelStyle]] = dict.fromkeys(BY_OUTPUTS, ColwiseParallel) | dict.fromkeys(BY_INPUTS, RowwiseParallel)
    for block in (*model.encoder.blocks, *model.decoder.blocks):
        last = {name: name.rpartition(".")[2] for name, _ in block.named_modules()}
        parallelize_module(block, mesh, {name: styles[part]() for name, part in last.items() if part in styles})
    for light in model.spotlights():
        light.attention.num_heads //= mesh.size()
        light.attention.kv_heads //= mesh.size()


def _cut_weights(objective: Objective, mesh: DeviceMesh, precision: Precision) -> None:
    """Block by block, so that one block at a time is whole; the embeddings and what else there is are whole during a pass.

    With `masters` the cut weights are float32 and what is computed with is bfloat16; gradients are added up in float32.
    """
    policy = MixedPrecisionPolicy()
    if precision == "masters":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    cut = mesh.size(mesh.ndim - 1) > 1  # else there is nothing to gather again for the backward pass
    model = objective.model
    for block in (*model.encoder.blocks, *model.decoder.blocks):
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=cut)
    fully_shard(objective, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    for module in objective.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


def whole(weight: Tensor) -> Tensor:
    """All of a weight that is cut. Called by all processes, in the same order."""
    return weight.full_tensor() if isinstance(weight, DTensor) else weight


def copies(weight: Tensor, size: int) -> int:
    """How many of `size` processes hold each number of this weight."""
    if not isinstance(weight, DTensor):
        return size
    parts = 1
    for dimension, placement in enumerate(weight.placements):
        if not placement.is_replicate():  # a strided shard is none by its own word
            parts *= weight.device_mesh.size(dimension)
    return size // parts


def r_drop_loss(model: Transformer, batch: Batch, smoothing: float, alpha: float) -> tuple[Tensor, Tensor]:
    """Two passes with different dropout should say the same.

        loss = (CE(p1) + CE(p2)) / 2 + alpha / 4 (KL(p1 | p2) + KL(p2 | p1)),  summed over the target pieces

    The original adds both cross-entropies and alpha / 2 of the divergences; halved, the learning rate keeps its meaning.
    Returns the loss with its gradient, and the negative log-likelihood of the first pass.
    """
    target = batch.target_grid.take(batch.target_out)
    filled = batch.target_grid.is_piece(target.device)  # filler repeats the first piece: it must not count
    counted = target != model.config.pad_token if filled is None else filled
    log_p = []
    for _ in range(2):
        x = model.decode(batch, model.encode(batch.source, batch.source_grid))
        # All positions, also those that do not count: their number is round, and each new one would cost a new kernel and its memory.
        logits = model.logits(x)
        log_p.append(torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1))
    cross = [-each.gather(-1, target[..., None])[..., 0][counted].sum() for each in log_p]
    uniform = [-each.mean(-1)[counted].sum() for each in log_p]
    smoothed = [(1 - smoothing) * c + smoothing * u for c, u in zip(cross, uniform, strict=True)]
    p_less_p = log_p[0].exp() - log_p[1].exp()
    divergences = (p_less_p * (log_p[0] - log_p[1])).sum(-1)[counted].sum()  # KL(p1 | p2) + KL(p2 | p1)
    return (smoothed[0] + smoothed[1]) / 2 + alpha / 4 * divergences, cross[0].detach()
