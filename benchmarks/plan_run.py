"""One of the processes of `plan.py`: a fresh one that trains a model as a run does, and says what it held at most and how long steps took.

It reads one line for each step it is to take, so that several such processes can take turns.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

import limelight.training.run.run  # all that a run loads, used or not: it is part of what the process holds
from limelight import runtime
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.training.config import OptimizerSettings
from limelight.training.processes.world import World
from limelight.training.step.moving_average import MovingAverage
from limelight.training.step.optimizers import build
from limelight.training.step.train_state import TrainState
from limelight.training.step.trained_model import TrainedModel

assert limelight.training.run.run


def most_held() -> int:
    """Bytes that this process ever had in memory at once, by the kernel's account."""
    lines = Path("/proc/self/status").read_bytes().decode().split("\n")
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


class Run:
    def __init__(self, asked: dict[str, Any]) -> None:
        config = ModelConfig.preset(asked["model"], asked["vocab"], **asked["changes"])
        torch.manual_seed(1)
        self.numbers = TrainedModel(Transformer(config), asked["precision"])
        # As a validator does, if there is one.
        self.twin = Transformer(config).eval().requires_grad_(False) if asked["validates"] else None
        optimizers = build(self.numbers.named, OptimizerSettings(), self.numbers.device)
        self.standing = TrainState(self.numbers, optimizers, MovingAverage(self.numbers.named, 0.999), World())
        self.numbers.model.train()
        self.numbers.model.recompute_activations(asked["recompute"])
        draw = torch.Generator().manual_seed(1)
        rows, S, T = asked["shape"]
        self.sides = [torch.randint(4, asked["vocab"], (rows, length), generator=draw) for length in (S, T)]
        self.steps = 0

    def take(self) -> tuple[float, float]:
        """Seconds of a step, as `training.step.step` takes it: that it computed, and by the clock on the wall."""
        began, wall = time.process_time(), time.perf_counter()
        self.steps += 1
        source, target = self.sides
        loss, _ = self.numbers.loss(Batch.packed(source, target, target, 0), 0.1, None)
        (loss / target.numel()).backward()
        self.numbers.take_gradients()
        loss.item()
        del loss
        self.standing.optimizers.clip(1.0)
        self.standing.optimizers.set_rate(1e-4)
        self.standing.optimizers.step()
        self.numbers.publish()
        assert self.standing.average is not None
        self.standing.average.update(self.steps)
        self.standing.optimizers.zero_gradients()
        return time.process_time() - began, time.perf_counter() - wall


def main() -> None:
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    if asked.get("core") is not None:
        os.sched_setaffinity(0, {asked["core"]})
    program = most_held()
    runtime.keep_freed_memory()
    run = Run(asked)
    for _ in sys.stdin:
        seconds, wall = run.take()
        said = {"program": program, "held": most_held(), "seconds": seconds, "wall": wall}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
