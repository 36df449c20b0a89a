"""The number of servers that answer a load in time follows from what was measured on one core (docs/operate.md).

    replicas(small, requests=100, pieces=60).replicas -> 14
    replicas(small, requests=10, pieces=44, latency=0.6)             more of them, so that the 95th percentile of waiting stays below

Capacity: S source pieces a second of a core in full batches, of which a server is to be busy UTILISATION, and one to spare:

    N = ceil(D / (u S)) + 1

Latency: one at a time a core does ALONE of what it does in batches, and before it is busy nothing is batched. So the queue of a server with
c cores is M/M/c with that rate (Erlang C), and a text takes the 95th percentile of a client alone and then that of waiting. For one core at
half load this says 0.92 s; measured were 1.07 s, 2.6 to 4.6 times that of a client alone. For other models all of it is scaled by
operations.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

from limelight.model.config import ModelConfig
from limelight.planning.cost.compute import flops_of_pair
from limelight.planning.cost.size import parameters

Numbers = Literal["float32", "int8"]

# `small` in float32 by CTranslate2, beam 4, one core of a shared Xeon, lines of 44 source pieces: 18 texts a second from 64 clients.
PIECES_PER_SECOND: Final = 800.0
PIECES_OF_A_TEXT: Final = 44.0
BEAM: Final = 4
ALONE: Final = 13 / 18  # one text at a time, of what batches reach
ALONE_SECONDS: Final = 0.288  # 95th percentile of a client alone
INT8: Final = 370 / 239  # times as fast, one file on two cores (docs/experiments.md)
UTILISATION: Final = 0.6  # at the peak
LATE: Final = 0.05  # of the texts may take longer than the latency asked for
PROCESS: Final = 400e6  # bytes beside weights
BYTES: Final[dict[Numbers, int]] = {"float32": 4, "int8": 1}
MOST: Final = 100_000


@dataclass(frozen=True)
class ServingLoad:
    replicas: int  # with one to spare
    cores: int  # of each
    capacity: float  # texts a second of one server
    busy: float  # at the peak, of its capacity, while all are there
    latency: float  # seconds, 95th percentile at the peak
    memory: float  # bytes of one server
    possible: bool  # False: no number of servers is fast enough
    notes: tuple[str, ...]


def replicas(
    config: ModelConfig,
    requests: float,
    *,
    pieces: float = PIECES_OF_A_TEXT,
    latency: float | None = None,
    cores: int = 1,
    numbers: Numbers = "float32",
    beam: int = BEAM,
) -> ServingLoad:
    """For a peak of `requests` texts a second of `pieces` source pieces; `latency`: seconds that all but LATE of them may take."""
    slower = _slower(config, beam, numbers)
    capacity = cores * PIECES_PER_SECOND / slower / pieces
    alone = ALONE_SECONDS * slower * pieces / PIECES_OF_A_TEXT
    count = max(1, math.ceil(requests / (UTILISATION * capacity)))
    possible = latency is None or alone <= latency
    if latency is not None and possible:
        while count < MOST and alone + _waiting(requests / count, ALONE * capacity, cores) > latency:
            count = max(count + 1, math.ceil(1.02 * count))
    notes = [] if possible else [_why_not(alone, latency or 0.0, numbers, beam)]
    if slower != 1:
        notes.append(f"scaled by operations: {slower:.3g} times the work of `small` for a piece; not measured")
    if cores > 1:
        notes.append("one core was measured; that more of them add up is assumed")
    return ServingLoad(
        replicas=count + 1,
        cores=cores,
        capacity=capacity,
        busy=requests / (count + 1) / capacity,
        latency=alone + _waiting(requests / count, ALONE * capacity, cores),
        memory=PROCESS + BYTES[numbers] * sum(parameters(config).values()),
        possible=possible,
        notes=tuple(notes),
    )


def _slower(config: ModelConfig, beam: int, numbers: Numbers) -> float:
    """Work of a piece against the one measured. Beams cost in proportion to their width."""
    measured = ModelConfig.preset("small", config.vocab_size)
    length = PIECES_OF_A_TEXT  # long texts are cut into sentences, so a piece costs the same in them
    return (
        flops_of_pair(config, length, length)
        / flops_of_pair(measured, length, length)
        * beam
        / BEAM
        / (INT8 if numbers == "int8" else 1.0)
    )


def _waiting(arriving: float, capacity: float, cores: int) -> float:
    """Seconds that all but LATE wait at most before they begin, in a queue for `cores` that together finish `capacity` a second (M/M/c).

    P(wait > t) = C e^(-(capacity - arriving) t),   C: the probability of Erlang to find all of them busy
    """
    if arriving >= capacity:
        return math.inf
    found_busy = _erlang_c(arriving / capacity * cores, cores)
    return max(0.0, math.log(found_busy / LATE) / (capacity - arriving)) if found_busy > 0 else 0.0


def _erlang_c(load: float, cores: int) -> float:
    """By the recursion of Erlang B: B(0) = 1, B(n) = a B(n-1) / (n + a B(n-1)); C = B / (1 - a/c (1 - B))."""
    blocked = 1.0
    for n in range(1, cores + 1):
        blocked = load * blocked / (n + load * blocked)
    return blocked / (1 - load / cores * (1 - blocked))


def _why_not(alone: float, latency: float, numbers: Numbers, beam: int) -> str:
    ways = (
        ["shorter texts", "a smaller model"]
        + (["int8"] if numbers != "int8" else [])
        + (["beam 1"] if beam > 1 else [])
    )
    return (
        f"a text alone takes {alone:.2f} s, more than {latency:g} s, so more servers do not help; try {', '.join(ways)}"
    )
