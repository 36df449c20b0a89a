"""One of the processes of `scale.py`, on one core: takes real steps, of gradient, norm, words, AdamW and moving average, on one batch, and
says how long they took, what they waited for, what they sent and what they held.

A step's time is split by what the kernel says of the main thread: computing, wanting to compute while others have the core, and sleeping,
which is waiting for the other processes and for the bytes on their way.
"""

import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from limelight import runtime
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.collective_counter import CollectiveCounter
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.training.config import OptimizerSettings
from limelight.training.processes.world import World
from limelight.training.step.moving_average import MovingAverage
from limelight.training.step.optimizers import build
from limelight.training.step.trained_model import TrainedModel


@dataclass(frozen=True)
class Clock:
    wall: float
    computing: float
    queueing: float  # for a core that somebody else has

    @classmethod
    def now(cls) -> "Clock":
        computing, queueing, _ = Path("/proc/thread-self/schedstat").read_bytes().split()
        return cls(time.perf_counter(), int(computing) / 1e9, int(queueing) / 1e9)

    def since(self, began: "Clock") -> dict[str, float]:
        wall, computing = self.wall - began.wall, self.computing - began.computing
        queueing = self.queueing - began.queueing
        return {"seconds": wall, "computing": computing, "queueing": queueing, "waiting": wall - computing - queueing}


class Run:
    """A model that trains in one of the ways."""

    def __init__(self, config: ModelConfig, parallel: Parallel, precision: Precision, world: World) -> None:
        torch.manual_seed(1)
        self.world = world
        self.numbers = TrainedModel(Transformer(config).train(), precision, parallel)
        self.optimizers = build(self.numbers.named, OptimizerSettings(), torch.device("cpu"), world)
        self.average = MovingAverage(self.numbers.named, 0.999)
        self.steps = 0

    def step(self, batch: Batch) -> None:
        self.steps += 1
        pieces = int((batch.target_out != 0).sum()) * self.numbers.parallel.data_size
        with self.numbers.synchronizing(True):
            loss, nll = self.numbers.loss(batch, 0.1, None)
            (loss / pieces).backward()
        self.numbers.take_gradients()
        norm = self.optimizers.clip(1.0)
        self.world.all_reduce([float(loss), float(nll), norm, 0, 0, 0, 0, 0, 0])
        self.optimizers.step()
        self.numbers.publish()
        self.average.update(self.steps)
        self.optimizers.zero_gradients()

    def held(self) -> dict[str, int]:
        """Bytes of this process's parts, exactly."""
        named = self.numbers.named.values()
        moments = [t for n, t in self.optimizers.tensors().items() if not n.endswith("/step")]
        kinds = {"weights": named, "moments": moments, "average": self.average.named.values()}
        return {kind: sum(_local(tensor) for tensor in tensors) for kind, tensors in kinds.items()}


def _local(tensor: Any) -> int:
    part = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return int(part.numel() * part.element_size())


def batch_of(asked: dict[str, Any], rank: int) -> Batch:
    draw = torch.Generator().manual_seed(rank)
    sides = [torch.randint(4, asked["vocab"], (asked["rows"], asked["length"]), generator=draw) for _ in range(2)]
    return Batch.packed(sides[0], sides[1], sides[1], 0)


def on_the_wire() -> int:
    """Bytes that went through the loopback device of this network namespace."""
    lines = Path("/proc/net/dev").read_bytes().decode().split("\n")
    return next(int(line.split()[9]) for line in lines if line.strip().startswith("lo:"))


def resident() -> int:
    """Bytes of memory of this process's own, without the libraries that all share."""
    lines = Path("/proc/self/status").read_bytes().decode().split("\n")
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def weak(asked: dict[str, Any], world: World) -> dict[str, Any]:
    """The same batch for each process: alone, two that do not know of each other, and together; in turns."""
    config, size = ModelConfig.preset(asked["model"], asked["vocab"]), world.size
    precision: Precision = asked["precision"]
    ways = {
        "alone": Parallel(),
        "strangers": Parallel(),
        "ddp": Parallel("ddp", replicas=size),
        "fsdp": Parallel("fsdp", shards=size),
    }
    runs = {way: Run(config, parallel, precision, world if parallel.kind != "alone" else World()) for way, parallel in ways.items()}
    batch = batch_of(asked, world.rank)
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for turn in range(asked["rounds"] + 1):
        for way, run in runs.items():
            dist.barrier()
            if way == "alone" and not world.main:
                continue
            times = []
            for _ in range(asked["steps"]):
                began = Clock.now()
                run.step(batch)
                times.append(Clock.now().since(began))
            if turn:  # the first turn warms up
                found[way].append({name: statistics.median(each[name] for each in times) for name in times[0]})
    return {"ways": found}


def wire(asked: dict[str, Any], world: World) -> dict[str, Any]:
    """Each way in turn: what is handed to torch.distributed in a step, and what then goes through the loopback device."""
    config = ModelConfig.preset(asked["model"], asked["vocab"])
    found = []
    for way in asked["ways"]:
        run = Run(config, Parallel(**way["parallel"]), way["precision"], world)
        batch = batch_of(asked, run.numbers.parallel.data_rank(world.rank))
        run.step(batch)  # DistributedDataParallel arranges its buckets in the first one
        with CollectiveCounter() as counted:
            run.step(batch)
        dist.barrier()
        before = on_the_wire()
        dist.barrier()
        for _ in range(asked["steps"]):
            run.step(batch)
        dist.barrier()
        sent = (on_the_wire() - before) / asked["steps"] / world.size
        found.append({"sent": sent, "counted": {name: vars(each) for name, each in counted.counted.items()}})
    return {"ways": found}


def holding(asked: dict[str, Any], world: World) -> dict[str, Any]:
    before = resident()
    config = ModelConfig.preset(asked["model"], asked["vocab"], **asked.get("changes", {}))
    run = Run(config, Parallel(**asked["parallel"]), asked["precision"], world)
    batch = batch_of(asked, world.rank)
    for _ in range(asked["steps"]):
        run.step(batch)
    runtime.give_back_memory()
    return {"resident": resident() - before, "held": run.held()}


def main() -> None:
    asked = json.loads(sys.argv[1])
    rank = int(os.environ.get("RANK", "0"))
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    if asked["job"] != "memory":
        runtime.keep_freed_memory()  # as a run does: taking it anew costs page faults
    world = World()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
        world = World(rank, dist.get_world_size(), rank)
    found = {"weak": weak, "wire": wire, "memory": holding}[asked["job"]](asked, world)
    everyone = world.gather(found)
    if world.main:
        sys.stdout.write(json.dumps(everyone) + "\n")
    if world.size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
