"""A step of a run that is only planned is cut into as many passes as memory wants, and timed."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from limelight.model.config import ModelConfig
from limelight.planning.cost.activations import Where
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.peak import peak
from limelight.planning.cost.shape import BatchShape
from limelight.planning.sizing_rules import TextStats
from limelight.planning.time.described_time import StepTime, step_time
from limelight.planning.time.devices import MEASURED, Device

HELD: Final = 0.9  # of a device's memory
MOST_AT_ONCE: Final = 16_384  # cells of one batch on a CPU: more are no faster (docs/experiments.md)
LEAST_AT_ONCE: Final = 1_024  # target pieces of one pass: below it a batch is not cut to save memory
# Assumptions about accelerators: narrow products reach less of the peak, and a block's forward and backward passes are KERNELS_OF_A_BLOCK.
WIDE: Final = 1_024
# Of CPUs: on one core in float32 `tiny` takes 3,280 target pieces/s and `small` 970 (docs/experiments.md), a third and a half of what the
# figures of devices.toml say.
WIDE_ON_A_CPU: Final = 1_152
KERNELS_OF_A_BLOCK, LAUNCH = 60, 6e-6

Timing = Callable[[ModelConfig, Parallel, BatchShape, bool], StepTime]


@dataclass(frozen=True)
class Step:
    pieces: float  # target pieces, of all devices
    accumulate: int  # passes of each device
    recompute: bool  # blocks are computed twice, since their activations would not fit
    shape: BatchShape  # of one pass of one device
    time: StepTime
    memory: float  # bytes of a device, at most
    fits: bool


def make_timing(device: Device, precision: Precision) -> Timing:
    """Seconds of a pass by the figures of `planning.time.devices`; narrow models reach less, and on accelerators every kernel is begun."""

    def timing(config: ModelConfig, parallel: Parallel, shape: BatchShape, recompute: bool) -> StepTime:
        plain = step_time(config, parallel, precision, shape, device, recompute)
        if device.kind == "cpu":
            slower = 1.0 if device.source == MEASURED else math.sqrt(max(1.0, WIDE_ON_A_CPU / config.d_model))
            return replace(plain, computing=slower * plain.computing)
        slower = max(1.0, WIDE / config.d_model)
        blocks = config.encoder_layers + config.decoder_layers
        begun = blocks * KERNELS_OF_A_BLOCK * (4 / 3 if recompute else 1) * LAUNCH
        return replace(plain, computing=max(slower * plain.computing, begun))

    return timing


def plan_step(
    config: ModelConfig,
    parallel: Parallel,
    precision: Precision,
    text: TextStats,
    device: Device,
    pieces: float,
    timing: Timing,
) -> Step:
    """In more passes while it does not fit; with blocks computed twice if it does not fit in any other way."""
    each = max(1.0, pieces / parallel.data_size)
    cells = each * (text.source + text.target) / text.target
    accumulate = math.ceil(cells / MOST_AT_ONCE) if device.kind == "cpu" else 1
    recompute = False
    where: Where = "cpu" if device.kind == "cpu" else "accelerator"
    while True:
        shape = shape_of(text, each / accumulate)
        needed = peak(config, parallel, precision, shape, where, recompute=recompute).total
        fits = needed <= HELD * device.memory
        if fits or (recompute and each / accumulate <= LEAST_AT_ONCE):
            break
        if each / accumulate > LEAST_AT_ONCE:
            accumulate *= 2
        else:
            accumulate, recompute = 1, True
    once = timing(config, parallel, shape, recompute)
    gathers = accumulate if parallel.sharded else 1  # gradients travel once a step, weights once a pass
    time = StepTime(accumulate * once.computing, gathers * once.hidden, accumulate * once.exposed)
    return Step(pieces, accumulate, recompute, shape, time, needed, fits)


def shape_of(text: TextStats, pieces: float) -> BatchShape:
    source, target = (max(1, round(side / text.pairs)) for side in (text.source, text.target))
    return BatchShape.padded(max(1, round(pieces / target)), source, target)
