"""How many machines prepare a corpus in time with Ray Data: the arithmetic behind docs/scale.md, by what was measured on two cores.

python benchmarks/corpus_cluster.py 10_000_000_000 1        pairs, hours

Nothing ran on more than one machine; half of perfect scaling is assumed.
"""

import math
import sys
from dataclasses import dataclass
from typing import Final

from limelight.planning.corpus_work import BYTES, corpus_work

# Seconds of one core for a pair of 136 bytes: 1 M in 27.4 s on 2 cores, less 5.4 to start; identification takes 20 µs a side.
CORE: Final = 44e-6
IDENTIFY: Final = 40e-6
START: Final = 5.4  # seconds
SHUFFLED: Final = 202.0 / BYTES  # bytes of a row in Arrow, which Ray moves between nodes once
CLUSTER: Final = 0.5  # of perfect scaling over several nodes: an assumption
CORES_OF_A_NODE: Final = 32


@dataclass(frozen=True)
class ClusterWork:
    engine: str
    nodes: int
    core_seconds: float
    seconds: float
    shuffled: float  # bytes over the network


def ray_work(pairs: float, cores: int = 2, nodes: int = 1, identify: bool = True) -> ClusterWork:
    core_seconds = pairs * (CORE + (IDENTIFY if identify else 0.0))
    seconds = START + core_seconds / (cores * nodes) / (CLUSTER if nodes > 1 else 1.0)
    return ClusterWork("ray", nodes, core_seconds, seconds, pairs * BYTES * SHUFFLED)


def nodes_for(pairs: float, hours: float, cores: int = CORES_OF_A_NODE) -> ClusterWork:
    """The least that does it in time: one machine by the local engine if it can, else a cluster by Ray."""
    alone = corpus_work(pairs, cores)
    if alone.seconds <= 3_600 * hours:
        return ClusterWork("local", 1, alone.seconds * cores, alone.seconds, 0.0)
    needed = ray_work(pairs, cores).core_seconds / CLUSTER / cores / max(1.0, 3_600 * hours - START)
    return ray_work(pairs, cores, max(2, math.ceil(needed)))


if __name__ == "__main__":
    print(nodes_for(float(sys.argv[1]), float(sys.argv[2])))
