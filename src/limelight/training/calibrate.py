"""A few real steps, before anything is decided: how many pieces per second, how much memory, and how many threads pay.

Two threads are not always faster than one: when another program is busy, each parallel operation waits for it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
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

WARM_UP: Final = 4  # steps that are not counted: they make kernels and take memory
PAYS: Final = 1.15  # times as fast as one thread: for less, a thread of its own is worth more to whatever else runs


@dataclass(frozen=True)
class Measured:
    pieces_per_second: float  # target pieces
    threads: int
    one_thread: float | None  # pieces per second with one thread, where that was measured
    bytes_per_cell: float  # of activations, for each source or target piece of a batch


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
    held = memory_held(stand.device)
    cores = torch.get_num_threads()
    with Loader(prepared, batch) as loader:

        def speed(threads: int) -> float:
            torch.set_num_threads(threads)
            _speed(numbers, optimizers, islice(loader, WARM_UP), seconds / 4)
            return _speed(numbers, optimizers, loader, seconds / 4)

        if stand.device.type != "cpu" or stand.threads is not None or cores == 1:
            one, chosen, threads = None, speed(cores), cores
        else:
            one, all_cores = speed(1), speed(cores)
            threads = cores if all_cores > PAYS * one else 1
            torch.set_num_threads(threads)
            chosen = all_cores if threads > 1 else one
    return Measured(chosen, threads, one, (memory_held(stand.device) - held) / batch.budget)


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
