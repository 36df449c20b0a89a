"""How many processes share one model: which of them hold the same weights, and which hold parts.

    ddp       every process has all weights; gradients are added up                       the fastest while one device holds it all
    fsdp      weights, gradients and moments are cut over all processes (Zhao et al. 2023)  a model that one device cannot hold
    hybrid    cut within each group of `shard`, the same in every group                   the fast wires inside a machine carry the most
    tensor    each product is cut over `tensor` processes that see the same text          models whose single layers are large
              (Shoeybi et al. 2019), and fsdp over the groups

    choose_parallel(config, machine, size=16, per_host=8, memory=80e9) -> Choice(Parallel("ddp", 16), "all of it fits ...")

Whatever the kind, the processes take the same steps as one process would: docs/scale.md says what each costs.
"""

from typing import Final

from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.planning.parallel import Parallel
from limelight.planning.size import parameters
from limelight.runtime import Choice
from limelight.training.config import MachineSettings

# float32 weights, gradients, both moments of AdamW and the moving average, and bfloat16 weights to compute with.
BYTES_PER_PARAMETER: Final = 22
TWIN: Final = 4  # bytes of a parameter in the model that validates, which every process has whole
ROOM: Final = 0.6  # of a device's memory for these; the rest is for activations
WIDE: Final = 4096  # d_model, from which one layer is large enough to be cut


def choose_parallel(
    config: ModelConfig, machine: MachineSettings, size: int, per_host: int, memory: int | None
) -> Choice[Parallel]:
    """For `size` processes, `per_host` on a machine, with `memory` bytes for each. None: nobody tells, so all is thought to fit."""
    if size == 1:
        return Choice(Parallel(), "there is one")
    count = sum(parameters(config).values())
    needed = BYTES_PER_PARAMETER * count
    room = ROOM * memory - TWIN * count if memory is not None else float("inf")
    said = f"{needed / 1e9:.1f} GB of weights, gradients, moments and averages" + (
        f"; {room / 1e9:.1f} GB of each device are for them" if memory is not None else ""
    )
    if machine.parallel is not None:
        return Choice(_asked(config, machine, size, per_host), "asked for")
    if needed <= room:
        return Choice(Parallel("ddp", replicas=size), f"{said}, so every process holds all of it")
    if needed <= room * per_host < room * size and size % per_host == 0:
        chosen = Parallel("hybrid", replicas=size // per_host, shards=per_host)
        return Choice(chosen, f"{said}: a machine of {per_host} holds it together, which keeps most traffic inside")
    if config.d_model >= WIDE and size > per_host and size % per_host == 0 and divides(config, per_host):
        chosen = Parallel("tensor", shards=size // per_host, tensor=per_host)
        return Choice(chosen, f"{said}, and layers {config.d_model} wide are large enough to be cut inside a machine")
    if needed > room * size:
        said += f", more than {size} hold together: expect it to run out of memory"
    return Choice(Parallel("fsdp", shards=size), f"{said}, so it is cut over all")


def divides(config: ModelConfig, tensor: int) -> bool:
    """Whole heads and equal parts of the feed-forward layer for each."""
    return not (config.num_heads % tensor or config.kv_heads % tensor or config.d_ff % tensor)


def _asked(config: ModelConfig, machine: MachineSettings, size: int, per_host: int) -> Parallel:
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
