"""This machine is described as a device of `planning`: memory, cores or GPUs, precision, and measured speed."""

from dataclasses import dataclass
from pathlib import Path

import torch

from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.shape import BatchShape
from limelight.planning.sizing_rules import fits_muon
from limelight.planning.time import devices
from limelight.planning.time.described_time import StepTime
from limelight.planning.time.devices import Device
from limelight.planning.time.planned_step import Timing
from limelight.runtime import choose_device, choose_threads, memory_at_hand
from limelight.training.recipe.calibrate import measure
from limelight.training.step.trained_model import choose_precision


@dataclass(frozen=True)
class LocalMachine:
    device: Device
    count: int
    cores: int
    precision: Precision
    why: str  # this precision


def this_machine(precision: Precision | None, extra: Path | None = None) -> LocalMachine:
    """What torch sees. A GPU is looked up by its name; its memory is what it really has."""
    chosen, cores = choose_device(), choose_threads().value
    numbers = choose_precision(chosen.value, precision)
    if chosen.value.type == "cpu":
        room = memory_at_hand(chosen.value) or 8e9
        return LocalMachine(devices.this_machine(room, cores), 1, cores, numbers.value, numbers.why)
    if chosen.value.type != "cuda":
        raise ConfigError(
            f"this machine has {chosen.value.type}, which nobody has described; write its figures in a file, as devices.toml of the "
            "package does, and give it with --devices FILE --device NAME"
        )
    facts = torch.cuda.get_device_properties(chosen.value)
    found = devices.device(facts.name, extra)  # refused with how to describe another
    return LocalMachine(
        Device(**{**vars(found), "memory": float(facts.total_memory), "price": None}),
        torch.cuda.device_count(),
        cores,
        numbers.value,
        numbers.why,
    )


def calibrate_timing(precision: Precision) -> tuple[Timing, str]:
    """How long a step takes here, for any model and batch, and how that was found out."""
    found = measure(precision)

    def timing(config: ModelConfig, parallel: Parallel, shape: BatchShape, recompute: bool) -> StepTime:
        if parallel.size > 1:
            raise ConfigError("--calibrate measures one process; how several share this machine was not measured")
        return StepTime(found.step_seconds(config, shape, recompute, muon=fits_muon(config)), 0.0, 0.0)

    threads = f"{found.threads} thread{'s' if found.threads > 1 else ''}"
    return (
        timing,
        f"computed from steps of small models, measured here with {threads}; they were {found.spread:.0%} apart",
    )
