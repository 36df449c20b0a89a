"""The number of servers that answer a load in time follows from what was measured on one core (docs/operate.md)."""

import math
from dataclasses import dataclass
from typing import Final

from limelight.model.config import ModelConfig
from limelight.planning.cost.compute import flops_of_pair
from limelight.planning.cost.size import parameters

# `small` in float32 by CTranslate2, beam 4, one core of a shared Xeon, lines of 44 source pieces: 18 texts a second from 64 clients.
PIECES_PER_SECOND: Final = 800.0
PIECES_OF_A_TEXT: Final = 44.0
ALONE: Final = 13 / 18  # one text at a time, of what batches reach
ALONE_SECONDS: Final = 0.288  # 95th percentile of a client alone
UTILISATION: Final = 0.6  # at the peak
LATE: Final = 0.05  # of the texts may take longer than the latency asked for
PROCESS: Final = 400e6  # bytes beside weights
MOST: Final = 100_000


@dataclass(frozen=True)
class ServingLoad:
    replicas: int  # with one to spare, of one core each
    capacity: float  # texts a second of one server
    latency: float  # seconds, 95th percentile at the peak
    memory: float  # bytes of one server
    possible: bool  # False: no number of servers is fast enough
    notes: tuple[str, ...]


def replicas(config: ModelConfig, requests: float, *, pieces: float = PIECES_OF_A_TEXT, latency: float | None = None) -> ServingLoad:
    """For a peak of `requests` texts a second of `pieces` source pieces; `latency`: seconds that all but LATE of them may take."""
    measured, length = ModelConfig.preset("small", config.vocab_size), PIECES_OF_A_TEXT
    # Work of a piece against the one measured. Long texts are cut into sentences, so a piece costs the same in them.
    slower = flops_of_pair(config, length, length) / flops_of_pair(measured, length, length)
    capacity = PIECES_PER_SECOND / slower / pieces
    alone = ALONE_SECONDS * slower * pieces / PIECES_OF_A_TEXT
    count = max(1, math.ceil(requests / (UTILISATION * capacity)))
    possible = latency is None or alone <= latency
    notes = []
    if latency is not None and possible:
        while count < MOST and alone + _waiting(requests / count, ALONE * capacity) > latency:
            count = max(count + 1, math.ceil(1.02 * count))
    elif latency is not None:
        ways = "try shorter texts, a smaller model, int8, beam 1"
        notes.append(f"a text alone takes {alone:.2f} s, more than {latency:g} s, so more servers do not help; {ways}")
    if slower != 1:
        notes.append(f"scaled by operations: {slower:.3g} times the work of `small` for a piece; not measured")
    return ServingLoad(
        replicas=count + 1,
        capacity=capacity,
        latency=alone + _waiting(requests / count, ALONE * capacity),
        memory=PROCESS + 4 * sum(parameters(config).values()),
        possible=possible,
        notes=tuple(notes),
    )


def _waiting(arriving: float, capacity: float) -> float:
    """Seconds that all but LATE wait at most before they begin, in a queue of which `capacity` a second are finished (M/M/1).

    P(wait > t) = load e^(-(capacity - arriving) t),   load = arriving / capacity
    """
    if arriving >= capacity:
        return math.inf
    return max(0.0, math.log(arriving / capacity / LATE) / (capacity - arriving)) if arriving else 0.0
