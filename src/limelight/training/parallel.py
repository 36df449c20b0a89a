"""How many processes share one model: which of them hold the same weights, and which hold parts.

    ddp       every process has all weights; gradients are added up                       the fastest while one device holds it all
    fsdp      weights, gradients and moments are cut over all processes (Zhao et al. 2023)  a model that one device cannot hold
    hybrid    cut within each group of `shard`, the same in every group                   the fast wires inside a machine carry the most
    tensor    each product is cut over `tensor` processes that see the same text          models whose single layers are large
              (Shoeybi et al. 2019), and fsdp over the groups

    choose_parallel(config, machine, size=16, per_host=8, memory=80e9) -> Choice(Parallel("ddp", 16), "all of it fits ...")

Whatever the kind, the processes take the same steps as one process would: docs/scale.md says what each costs.
"""

from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.planning.parallel import Parallel
from limelight.planning.sharing import divides, shared
from limelight.runtime import Choice
from limelight.training.config import MachineSettings


def choose_parallel(
    config: ModelConfig, machine: MachineSettings, size: int, per_host: int, memory: int | None
) -> Choice[Parallel]:
    """For `size` processes, `per_host` on a machine, with `memory` bytes for each. None: nobody tells, so all is thought to fit."""
    if size > 1 and machine.parallel is not None:
        return Choice(_asked(config, machine, size, per_host), "asked for")
    return Choice(*shared(config, size, per_host, memory))


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
