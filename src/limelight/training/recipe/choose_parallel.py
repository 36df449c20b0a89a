"""The way in which processes share a model is the one that was asked for, or follows the rule of a plan."""

from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Parallel
from limelight.planning.parallel_rule import choose_layout, divides
from limelight.runtime import RuntimeChoice
from limelight.training.config import MachineSettings


def choose_parallel(config: ModelConfig, machine: MachineSettings, size: int, per_host: int, memory: int | None) -> RuntimeChoice[Parallel]:
    """Choose for `size` processes, `per_host` on a machine, with `memory` bytes for each. None: unknown, so all is thought to fit."""
    if size > 1 and machine.parallel is not None:
        return RuntimeChoice(_build_requested(config, machine, size, per_host), "asked for")
    return RuntimeChoice(*choose_layout(config, size, per_host, memory))


def _build_requested(config: ModelConfig, machine: MachineSettings, size: int, per_host: int) -> Parallel:
    if machine.parallel == "ddp":
        return Parallel("ddp", replicas=size)
    if machine.parallel == "fsdp":
        return Parallel("fsdp", shards=size)
    name = "shard" if machine.parallel == "hybrid" else "tensor"
    width = getattr(machine, name) or per_host
    if size % width:
        raise ConfigError(
            f"machine.{name}={width} does not divide {size} processes; try one of "
            f"{', '.join(str(n) for n in range(1, size + 1) if size % n == 0)}"
        )
    if machine.parallel == "hybrid":
        return Parallel("hybrid", replicas=size // width, shards=width)
    if not divides(config, width):
        raise ConfigError(
            f"machine.tensor={width} does not divide num_heads={config.num_heads}, num_kv_heads={config.kv_heads} and "
            f"d_ff={config.d_ff}: each process holds whole heads"
        )
    return Parallel("tensor", shards=size // width, tensor=width)
