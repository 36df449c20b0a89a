"""The bytes that one process of a run holds beside activations follow from `ModelConfig` alone.

Per parameter that a process holds, with AdamW:

                 weights   masters   gradients   moments   average
    float32         4                    4          8         4         weights to compute with are the ones the optimizer changes
    autocast        4                    4          8         4         and copies in bfloat16 for a while (`planning.cost.activations`)
    masters         2         4          4          8         4         bfloat16 to compute with; gradients of one pass in bfloat16 on top
    masters, cut              4          4          8         4         bfloat16 is only what was gathered

alone and ddp hold every parameter, fsdp over n holds an n-th, up to rows that do not divide. Doubling n halves `state`, but for tables
and for the twin that validates (4 bytes for each parameter of the whole model).
"""

from dataclasses import dataclass
from typing import Literal

from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.weights import Shape, blocks, count_held, cut_by_tensor, elements, select_block_matrices, weights

OptimizerName = Literal["adamw", "muon"]


@dataclass(frozen=True)
class ProcessMemory:
    weights: float
    masters: float
    gradients: float
    moments: float
    average: float
    tables: float  # positions that are not parameters
    twin: float  # the whole model in float32 that validation translates with, in every process, however the rest is cut
    passing: float  # gathered weights, gradients on their way: the most at one moment

    @property
    def state(self) -> float:
        return self.weights + self.masters + self.gradients + self.moments + self.average + self.tables + self.twin

    @property
    def total(self) -> float:
        return self.state + self.passing


def memory(
    config: ModelConfig,
    parallel: Parallel,
    precision: Precision,
    optimizer: OptimizerName = "adamw",
    average: bool = True,
    validates: bool = False,
) -> ProcessMemory:
    named = weights(config)
    p = count_held(named.items(), parallel)
    rounds = precision == "masters"
    apart = rounds and not parallel.sharded  # weights to compute with beside those the optimizer changes
    return ProcessMemory(
        weights=2 * p if apart else 0 if rounds else 4 * p,
        masters=4 * p if rounds else 0,
        gradients=4 * p,
        moments=_moments(named, parallel, optimizer),
        average=4 * p if average else 0,
        tables=_tables(config),
        twin=4 * sum(map(elements, named.values())) + _tables(config) if validates else 0,
        passing=_passing(config, parallel, precision),
    )


def checkpoint_bytes(config: ModelConfig, optimizer: OptimizerName = "adamw", average: bool = True) -> float:
    """Bytes of all files together, whatever the number of processes: weights, moments and the moving average in float32."""
    named = weights(config)
    alone = Parallel()
    copies = 2 if average else 1
    return 4 * copies * count_held(named.items(), alone) + _moments(named, alone, optimizer)


def _moments(named: dict[str, Shape], parallel: Parallel, optimizer: OptimizerName) -> float:
    """AdamW has two for each parameter, Muon one for each of its matrices, those inside the blocks."""
    muon = select_block_matrices(named) if optimizer == "muon" else {}
    adamw = {n: s for n, s in named.items() if n not in muon}
    return 8 * count_held(adamw.items(), parallel) + 4 * count_held(muon.items(), parallel)


def _tables(c: ModelConfig) -> float:
    if c.positions == "sinusoidal":
        return 2 * 4 * (c.max_length + c.position_offset) * c.d_model
    if c.positions == "rotary":
        return 2 * 2 * 4 * max(c.max_length, 16) * c.d_head
    return 0


def _passing(config: ModelConfig, parallel: Parallel, precision: Precision) -> float:
    """Sharded: what stands in no block stays gathered from the first forward pass to the end of the backward pass, of the blocks the one at
    work and the next; the gradient of the one at work, whole, once in the format of the weights and once in float32 on its way.
    Else: the bfloat16 gradients of a pass."""
    number = 2 if precision == "masters" else 4
    if not parallel.sharded:
        return 2 * sum(elements(s) for s in weights(config).values()) if precision == "masters" else 0
    whole = {name: sum(elements(cut_by_tensor(n, s, parallel.tensor)) for n, s in block.items()) for name, block in blocks(config).items()}
    if parallel.shards == 1:  # nothing is let go that could not be gathered again
        return number * sum(whole.values())
    largest = max(size for name, size in whole.items() if name)
    at_work = max(largest, whole[""])
    return number * (whole[""] + 2 * largest) + (number + 4) * at_work
