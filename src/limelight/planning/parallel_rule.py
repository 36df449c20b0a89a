"""A rule chooses how devices share a model, from its size and their memory, for a run and for a plan."""

from typing import Final

from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Parallel
from limelight.planning.cost.size import parameters

# float32 weights, gradients, both moments of AdamW and the moving average, and bfloat16 weights to compute with.
BYTES_PER_PARAMETER: Final = 22
TWIN: Final = 4  # bytes of a parameter in the model that validates, which every process has whole
ROOM: Final = 0.6  # of a device's memory for these; the rest is for activations
WIDE: Final = 4096  # d_model, from which one layer is large enough to be cut


def choose_layout(config: ModelConfig, size: int, per_host: int, memory: float | None) -> tuple[Parallel, str]:
    """For `size` processes, `per_host` on a machine, with `memory` bytes for each. None: not known, so all is thought to fit."""
    if size == 1:
        return Parallel(), "there is one"
    count = sum(parameters(config).values())
    needed = BYTES_PER_PARAMETER * count
    room = ROOM * memory - TWIN * count if memory is not None else float("inf")
    said = f"{needed / 1e9:.1f} GB of weights, gradients, moments and averages" + (
        f"; {room / 1e9:.1f} GB of each device are for them" if memory is not None else ""
    )
    if needed <= room:
        return Parallel("ddp", replicas=size), f"{said}, so every process holds all of it"
    if needed <= room * per_host < room * size and size % per_host == 0:
        chosen = Parallel("hybrid", replicas=size // per_host, shards=per_host)
        return chosen, f"{said}: a machine of {per_host} holds it together, which keeps most traffic inside"
    if config.d_model >= WIDE and size > per_host and size % per_host == 0 and divides(config, per_host):
        chosen = Parallel("tensor", shards=size // per_host, tensor=per_host)
        return chosen, f"{said}, and layers {config.d_model} wide are large enough to be cut inside a machine"
    if needed > room * size:
        said += f", more than {size} hold together: expect it to run out of memory"
    return Parallel("fsdp", shards=size), f"{said}, so it is cut over all"


def divides(config: ModelConfig, tensor: int) -> bool:
    """Whole heads and equal parts of the feed-forward layer for each."""
    return not (config.num_heads % tensor or config.kv_heads % tensor or config.d_ff % tensor)
