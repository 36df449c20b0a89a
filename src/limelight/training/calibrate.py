"""A few real steps, before anything is decided: how many pieces per second, how much memory, and how many threads pay.

Two threads are not always faster than one: when another program is busy, each parallel operation waits for it.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from statistics import mean, median
from typing import Final

import torch

from limelight.corpus.batches import BatchSettings, PairBatch
from limelight.corpus.loader import Loader
from limelight.corpus.shards import Prepared
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.training.config import OptimizerSettings, Precision
from limelight.training.gradients import gradients
from limelight.training.numbers import Numbers
from limelight.training.optim import Optimizers, build
from limelight.training.pace import memory_held

LOOKED_AT: Final = (
    16  # batches for their padding: always so many, since what is chosen must not depend on how fast a machine is
)
WARM_UP: Final = 4  # steps that are not counted: they make kernels and take memory
VECTORS_KEPT: Final = 30  # 31 and 25 were measured for `tiny` and `small` in bfloat16, 35 for `tiny` in float32
PAYS: Final = 1.15  # times as fast as one thread: for less, a thread of its own is worth more to whatever else runs


@dataclass(frozen=True)
class Measured:
    pieces_per_second: float  # target pieces
    threads: int
    one_thread: float | None  # pieces per second with one thread, where that was measured
    bytes_per_cell: float  # that training needs beside the weights, for each source or target piece of a batch
    padding: float  # the part of a batch's cells that holds nothing


@dataclass(frozen=True)
class Stand:
    """What a measurement stands on."""

    device: torch.device
    precision: Precision
    threads: int | None  # None: find out


def calibrate(
    config: ModelConfig,
    prepared: Prepared,
    batch: BatchSettings,
    optimizer: OptimizerSettings,
    stand: Stand,
    seconds: float,
) -> Measured:
    """About `seconds` of training on the first batches. The weights are thrown away."""
    numbers = Numbers(Transformer(config).to(stand.device).train(), stand.precision)
    optimizers = build(numbers.named, optimizer, stand.device)
    optimizers.set_rate(1e-6)
    before = Memory.of(stand.device)
    cores = torch.get_num_threads()
    with Loader(prepared, batch) as loader:
        first = list(islice(loader, LOOKED_AT))
        batches = chain(first, loader)

        def speed(threads: int) -> float:
            torch.set_num_threads(threads)
            _speed(numbers, optimizers, islice(batches, WARM_UP), seconds / 4)
            return _speed(numbers, optimizers, batches, seconds / 4)

        if stand.device.type != "cpu" or stand.threads is not None or cores == 1:
            one, chosen, threads = None, speed(cores), cores
        else:
            one, all_cores = speed(1), speed(cores)
            threads = cores if all_cores > PAYS * one else 1
            torch.set_num_threads(threads)
            chosen = all_cores if threads > 1 else one
    grown = before.grown(stand.device)
    cells = max(share.cells for share in first)  # of a short text fewer than the budget
    per_cell = grown / cells if grown else estimated_bytes(config, stand.precision)
    return Measured(chosen, threads, one, per_cell, mean(share.padding() for share in first))


@dataclass(frozen=True)
class Memory:
    """Bytes held before the first step, and the most that were ever held until then."""

    now: int | None  # None where nobody tells
    most: int

    @classmethod
    def of(cls, device: torch.device) -> "Memory":
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            return cls(torch.cuda.memory_allocated(device), 0)
        return cls(resident(), memory_held(device))

    def grown(self, device: torch.device) -> int | None:
        """What the steps needed at most. None when that cannot be told: where something before them, such as the preparation, held more."""
        most = memory_held(device)
        return most - self.now if self.now is not None and most > max(self.most, self.now) else None


def resident() -> int | None:
    """Bytes of this process that are in memory; None where the system has no /proc."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def estimated_bytes(config: ModelConfig, precision: Precision) -> float:
    """Rough: a cell leaves VECTORS_KEPT vectors of d_model numbers in each block of its side.

        bytes = bytes of a number x d_model x layers x VECTORS_KEPT

    Logits are made a few rows at a time (`limelight.model.loss`) and do not grow with the batch.
    """
    layers = max(config.encoder_layers, config.decoder_layers)
    return (2 if precision == "masters" else 4) * config.d_model * layers * VECTORS_KEPT


def _speed(numbers: Numbers, optimizers: Optimizers, batches: Iterator[PairBatch], seconds: float) -> float:
    """Median target pieces per second; of one step at least, however long it takes."""
    speeds: list[float] = []
    ends = time.perf_counter() + seconds
    for share in batches:
        began = time.perf_counter()
        gradients(numbers, [share], smoothing=0.1, r_drop=None)
        optimizers.clip(1.0)
        optimizers.step()
        optimizers.zero_gradients()
        numbers.publish()
        speeds.append(share.targets / (time.perf_counter() - began))
        if time.perf_counter() > ends:
            break
    return median(speeds)
