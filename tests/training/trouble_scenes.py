"""What processes do in the tests of replicas and of steps that are written down."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.model.transformer import Transformer
from limelight.planning.cost.parallel import Parallel
from limelight.training.config import Recipe
from limelight.training.processes.replica_check import refuse_differing
from limelight.training.processes.world import World
from limelight.training.step import step_dump
from limelight.training.step.gradients import gradients
from limelight.training.step.guided_alignment import AlignmentGuide
from limelight.training.step.train_state import read_rng_states
from limelight.training.step.trained_model import TrainedModel


def flip(tensor: Tensor, bit: int) -> None:
    tensor.view(-1).view(torch.int32)[7] ^= 1 << bit


def compare_plain(world: World, flipped: list[int], bit: int) -> None:
    torch.manual_seed(3)
    tensors = {"weights/up": torch.randn(5, 7), "weights/down": torch.randn(3, 4), "optimizer/step": torch.tensor(17.0)}
    if world.rank in flipped:
        flip(tensors["weights/down"], bit)
    refuse_differing(world, Parallel("ddp", replicas=world.size), tensors, 12)


def compare_cut(world: World, kind: str, flipped: list[int]) -> None:
    torch.manual_seed(3)
    whole = torch.randn(8, 6)
    if kind == "hybrid":
        mesh = init_device_mesh("cpu", (2, world.size // 2))
        parallel, placements = Parallel("hybrid", replicas=2, shards=world.size // 2), [Replicate(), Shard(0)]
    else:
        mesh, parallel, placements = (
            init_device_mesh("cpu", (world.size,)),
            Parallel("fsdp", shards=world.size),
            [Shard(0)],
        )
    tensor = distribute_tensor(whole, mesh, placements)
    if world.rank in flipped:
        flip(tensor.to_local(), 3)
    refuse_differing(world, parallel, {"weights/up": tensor}, 12)


def write_down(world: World, recipe: str, prepared: str, run: str, poisoned: int | None) -> dict[str, Any]:
    """A step of a model with dropout, and what each process saw of it."""
    torch.manual_seed(5)
    settings = Recipe.load(Path(recipe))
    corpus, weight = PreparedCorpus.open(Path(prepared)), settings.guided_alignment
    guide = AlignmentGuide.learn(corpus, weight) if weight else None
    numbers = TrainedModel(Transformer(settings.model).train(), "float32", guide=guide)
    with Loader(corpus, settings.batch, rank=world.rank, world=world.size) as loader:
        shares = [next(loader)]
    if world.rank == poisoned:
        with torch.no_grad():
            next(iter(numbers.named.values())).view(-1)[:] = math.nan
    torch.manual_seed(100 + world.rank)
    chance = read_rng_states(numbers.device)
    losses = gradients(numbers, shares, settings.label_smoothing, None, least=settings.batch.budget // 4)
    evidence = step_dump.Evidence(37, "the loss is not a number", shares, chance, losses, 1.0)
    said = step_dump.dump_step(Path(run), world, settings, numbers, evidence)
    return {"said": said, "total": str(losses.total), "pieces": losses.pieces}
