"""Calibration takes a few real steps to measure pieces per second, memory, and how many threads pay:

    calibrate(config, prepared, ...)      the model that will be trained, on its own text
    measure("masters")                    small models on made-up text, from which the steps of any other follow

Two threads are not always faster than one: when another program is busy, each parallel operation waits for it.
"""

import mmap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from statistics import mean, median
from typing import Final

import torch

from limelight.corpus.feeding.batches import BatchSettings, PairBatch
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.shape import BatchShape
from limelight.planning.time.measured_time import Rates, count_muon, fit_rates, work
from limelight.runtime import keep_freed_memory
from limelight.training.config import OptimizerSettings, Precision
from limelight.training.step.budget_clock import memory_held
from limelight.training.step.gradients import gradients
from limelight.training.step.moving_average import MovingAverage
from limelight.training.step.optimizers import Optimizers, build
from limelight.training.step.trained_model import TrainedModel

# Batches for their padding: always as many, since what is chosen must not depend on how fast a machine is.
LOOKED_AT: Final = 16
WARM_UP: Final = 4  # steps that are not counted: they make kernels and take memory
VECTORS_KEPT: Final = 30  # 31 and 25 were measured for `tiny` and `small` in bfloat16, 35 for `tiny` in float32
PAYS: Final = 1.15  # times as fast as one thread: for less, a thread of its own is worth more to whatever else runs


@dataclass(frozen=True)
class CalibrationResult:
    pieces_per_second: float  # target pieces
    threads: int
    one_thread: float | None  # pieces per second with one thread, where that was measured
    bytes_per_cell: float  # that training needs beside the weights, for each source or target piece of a batch
    padding: float  # the part of a batch's cells that holds nothing


@dataclass(frozen=True)
class ComputeSetup:
    device: torch.device
    precision: Precision
    threads: int | None  # None: find out


def calibrate(
    config: ModelConfig,
    prepared: PreparedCorpus,
    batch: BatchSettings,
    optimizer: OptimizerSettings,
    stand: ComputeSetup,
    seconds: float,
    r_drop: float | None = None,
) -> CalibrationResult:
    """About `seconds` of training on the first batches. The weights are thrown away."""
    numbers = TrainedModel(Transformer(config).to(stand.device).train(), stand.precision)
    optimizers = build(numbers.named, optimizer, stand.device)
    optimizers.set_rate(1e-6)
    cores = torch.get_num_threads()
    with Loader(prepared, batch) as loader:
        first = list(islice(loader, LOOKED_AT))  # what a loader learns of its text is no memory of the steps
        before = MemoryBaseline.of(stand.device)
        batches = chain(first, loader)

        def speed(threads: int) -> float:
            torch.set_num_threads(threads)
            _speed(numbers, optimizers, islice(batches, WARM_UP), seconds / 4, r_drop)
            return _speed(numbers, optimizers, batches, seconds / 4, r_drop)

        if stand.device.type != "cpu" or stand.threads is not None or cores == 1:
            one, chosen, threads = None, speed(cores), cores
        else:
            one, all_cores = speed(1), speed(cores)
            threads = cores if all_cores > PAYS * one else 1
            torch.set_num_threads(threads)
            chosen = all_cores if threads > 1 else one
    grown = before.measure_growth(stand.device)
    cells = max(share.cells for share in first)  # of a short text fewer than the budget
    per_cell = grown / cells if grown else estimate_bytes(config, stand.precision)
    return CalibrationResult(chosen, threads, one, per_cell, mean(share.padding() for share in first))


@dataclass(frozen=True)
class StepCosts:
    rates: Rates
    precision: Precision
    threads: int
    spread: float  # by how much usual steps were slower than the fastest, which counts: how busy the machine was

    def step_seconds(self, config: ModelConfig, shape: BatchShape, recompute: bool = False, muon: bool = False) -> float:
        """Estimate a step that was not taken: one batch of this shape, gradients, AdamW or Muon, moving average."""
        taken = work(config, shape, self.precision, recompute)
        return self.rates.seconds(replace(taken, products=taken.products + muon * count_muon(config)))


@dataclass(frozen=True)
class SpeedProbe:
    """A probe is a small model and a batch, chosen so that one kind of work weighs more in its step than elsewhere."""

    layers: tuple[int, int]
    d_model: int
    num_heads: int
    vocab_size: int
    rows: int
    length: int

    @property
    def config(self) -> ModelConfig:
        encoder_layers, decoder_layers = self.layers
        return ModelConfig.preset(
            "tiny",
            self.vocab_size,
            encoder_layers=encoder_layers,
            decoder_layers=decoder_layers,
            d_model=self.d_model,
            d_ff=4 * self.d_model,
            num_heads=self.num_heads,
        )

    @property
    def shape(self) -> BatchShape:
        return BatchShape.packed(self.rows, self.length, self.length, self.rows * self.length, self.rows * self.length)


PROBES: Final = (
    SpeedProbe((1, 1), 128, 4, 1000, 31, 33),  # a little of everything
    SpeedProbe((6, 6), 128, 4, 1000, 7, 33),  # calls
    SpeedProbe((2, 2), 256, 4, 2000, 31, 33),  # moved, products
    SpeedProbe((1, 1), 512, 8, 2000, 23, 33),  # products
    SpeedProbe((2, 2), 512, 8, 500, 2, 33),  # weights
    SpeedProbe((1, 1), 128, 4, 16_000, 23, 33),  # logits
    SpeedProbe((1, 1), 128, 8, 500, 8, 125),  # looks
    SpeedProbe((1, 1), 128, 8, 500, 3, 301),  # fused, in float32; else looks
    SpeedProbe((1, 1), 128, 8, 500, 2, 550),  # fused
)
TURNS: Final = 3  # of all probes
SECONDS_OF_A_PROBE: Final = 1.2  # short steps are taken more often: they are disturbed more easily


def measure(precision: Precision, seconds: float = SECONDS_OF_A_PROBE, probes: Sequence[SpeedProbe] = PROBES) -> StepCosts:
    """Real steps of small models, in turns, at least `seconds` of each; no corpus is needed. 15 s on a core in float32, 30 s in
    a bfloat16 that it has no instructions for. The models are thrown away."""
    keep_freed_memory()  # as a run does
    runs = [_Steps(probe, precision) for probe in probes]
    times: list[list[float]] = [[] for _ in probes]
    for run in runs:
        run.take()  # kernels are made, memory is taken
    for turn in range(1, TURNS + 1):  # a machine that gets slower on the way does so for all of them
        for run, taken in zip(runs, times, strict=True):
            ends = sum(taken) + seconds / TURNS
            while len(taken) < turn or sum(taken) < ends:
                taken.append(run.take())
    # The fastest: what other programs do to a machine can only slow it.
    fastest = [min(taken) for taken in times]
    measured = [(work(probe.config, probe.shape, precision), best) for probe, best in zip(probes, fastest, strict=True)]
    apart = [median(taken) / best - 1 for taken, best in zip(times, fastest, strict=True)]
    return StepCosts(fit_rates(measured), precision, torch.get_num_threads(), median(apart))


class _Steps:
    """A model that takes the same step again and again, all of it but the exchange with other processes."""

    def __init__(self, probe: SpeedProbe, precision: Precision) -> None:
        with torch.random.fork_rng(devices=[]):
            self.numbers = TrainedModel(Transformer(probe.config).train(), precision)
        self.optimizers = build(self.numbers.named, OptimizerSettings(), self.numbers.device)
        self.optimizers.set_rate(1e-6)
        self.average = MovingAverage(self.numbers.named, 0.999)
        ids = torch.arange(probe.rows * probe.length).view(probe.rows, -1) % (probe.vocab_size - 4) + 4
        self.batch, self.pieces = Batch.packed(ids, ids, ids, probe.config.pad_token), ids.numel()

    def take(self) -> float:
        """Seconds. With one thread those that it computed: what other programs take of its core is not of the step's making."""
        clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
        began = clock()
        loss, _ = self.numbers.loss(self.batch, 0.1, None)
        (loss / self.pieces).backward()  # type: ignore[no-untyped-call]
        self.numbers.take_gradients()
        self.optimizers.clip(1.0)
        self.optimizers.step()
        self.numbers.publish()
        self.average.update(1)
        self.optimizers.zero_gradients()
        return clock() - began


@dataclass(frozen=True)
class MemoryBaseline:
    now: int | None  # None where it is unknown
    most: int

    @classmethod
    def of(cls, device: torch.device) -> "MemoryBaseline":
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            return cls(torch.cuda.memory_allocated(device), 0)
        return cls(resident(), memory_held(device))

    def measure_growth(self, device: torch.device) -> int | None:
        """What the steps needed at most. None when that cannot be told: where something before them, such as the preparation, held more."""
        most = memory_held(device)
        return most - self.now if self.now is not None and most > max(self.most, self.now) else None


def resident() -> int | None:
    """Bytes of this process that are in memory; None where the system has no /proc."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * mmap.PAGESIZE
    except OSError:
        return None


def estimate_bytes(config: ModelConfig, precision: Precision) -> float:
    """Rough: a cell leaves VECTORS_KEPT vectors of d_model numbers in each block of its side.

    Logits are made a few rows at a time (`limelight.model.loss`) and do not grow with the batch.
    """
    layers = max(config.encoder_layers, config.decoder_layers)
    return (2 if precision == "masters" else 4) * config.d_model * layers * VECTORS_KEPT


def _speed(numbers: TrainedModel, optimizers: Optimizers, batches: Iterator[PairBatch], seconds: float, r_drop: float | None) -> float:
    """Median target pieces per second; of one step at least, however long it takes."""
    speeds: list[float] = []
    ends = time.perf_counter() + seconds
    for share in batches:
        began = time.perf_counter()
        gradients(numbers, [share], smoothing=0.1, r_drop=r_drop)
        optimizers.clip(1.0)
        optimizers.step()
        optimizers.zero_gradients()
        numbers.publish()
        speeds.append(share.targets / (time.perf_counter() - began))
        if time.perf_counter() > ends:
            break
    return median(speeds)
