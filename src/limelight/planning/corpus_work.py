"""Hours, nodes and bytes to prepare a corpus follow from what was measured on two cores (docs/scale.md).

    corpus_work(20e6, cores=2, identify=False).seconds -> 302, as measured
    nodes_for(1e10, hours=1).nodes -> 16 of 32 cores

Core time is in proportion to pairs: 1 and 20 million pairs took the same for each. Beyond that it is extrapolated; what would stop it first
is said in `notes`. Nothing ran on more than one machine.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

Engine = Literal["local", "ray"]

# Seconds of one core for a pair of 136 bytes, all filters but language identification, dedup, encoding, shards. Local: 20 M pairs in 302 s
# on 2 cores; 1 M in 14.3 to 17.6 s. Ray Data: 1 M in 27.4 s on 2 cores, less 5.4 to start.
CORE: Final[dict[Engine, float]] = {"local": 30.2e-6, "ray": 44e-6}
# Language identification: 24.8 s in place of 15.6 for 1 M pairs on 2 cores; with Ray 20 µs a side, as docs/scale.md counts.
IDENTIFY: Final[dict[Engine, float]] = {"local": 18.4e-6, "ray": 40e-6}
START: Final[dict[Engine, float]] = {"local": 0.0, "ray": 5.4}  # seconds; those of the local engine are in its figure
SPREAD: Final = (0.93, 1.17)  # of the local engine's runs of 1 M pairs, against the 20 M
MEASURED: Final = 20e6  # pairs, the most that were
BYTES: Final = 136.0  # of text, of the pairs that were measured
READING: Final = 1e-6  # seconds a pair in the one process that reads, of the local engine
WRITTEN: Final = 252.0 / BYTES  # bytes on disk for a byte of text: 5.05 GB for 20 M pairs
SHUFFLED: Final = 202.0 / BYTES  # bytes of a row in Arrow, which Ray moves between nodes once
MEMORY: Final[
    dict[Engine, tuple[float, float]]
] = {  # bytes of all processes: without a worker, for each; measured for 2 together
    "local": (0.35e9, 0.35e9),
    "ray": (1.0e9, 0.4e9),
}
CLUSTER: Final = 0.5  # of perfect scaling over several nodes: an assumption
BUCKET: Final = 8e3  # bytes that the driver keeps of each shard
SHARD: Final = 32e6  # bytes of text in one, unless asked otherwise
CORES_OF_A_NODE: Final = 32


@dataclass(frozen=True)
class CorpusWork:
    engine: Engine
    nodes: int
    cores: int  # of each node
    core_seconds: float
    seconds: float
    low: float  # seconds: as fast as the fastest run; over several nodes, if it scaled perfectly
    high: float
    written: float  # bytes, if nothing is dropped
    shuffled: float  # bytes over the network
    memory: float  # bytes of a node
    measured: bool  # within what was measured
    notes: tuple[str, ...]


def corpus_work(
    pairs: float,
    cores: int = 2,
    nodes: int = 1,
    engine: Engine = "local",
    identify: bool = True,
    bytes_of_pair: float = BYTES,
) -> CorpusWork:
    """With `cores` on each of `nodes`. Time is taken in proportion to the bytes of a pair."""
    longer = bytes_of_pair / BYTES
    core_seconds = pairs * longer * (CORE[engine] + (IDENTIFY[engine] if identify else 0.0))
    perfect = core_seconds / (cores * nodes)
    reading = pairs * longer * READING if engine == "local" else 0.0
    seconds = START[engine] + max(reading, perfect / (CLUSTER if nodes > 1 else 1.0))
    without, each = MEMORY[engine]
    shuffled = pairs * bytes_of_pair * SHUFFLED if engine == "ray" else 0.0
    memory = without + each * cores + (shuffled / nodes if nodes > 1 else 0.0)
    return CorpusWork(
        engine=engine,
        nodes=nodes,
        cores=cores,
        core_seconds=core_seconds,
        seconds=seconds,
        low=START[engine] + max(reading, SPREAD[0] * perfect),
        high=START[engine] + SPREAD[1] * (seconds - START[engine]),
        written=pairs * bytes_of_pair * WRITTEN,
        shuffled=shuffled,
        memory=memory,
        measured=pairs <= MEASURED and nodes == 1 and cores <= 2,
        notes=tuple(_notes(pairs, bytes_of_pair, cores, nodes, engine, reading, perfect)),
    )


def nodes_for(
    pairs: float, hours: float, cores: int = CORES_OF_A_NODE, identify: bool = True, bytes_of_pair: float = BYTES
) -> CorpusWork:
    """The least that does it in time: one machine by the local engine if it can, else a cluster by Ray."""
    alone = corpus_work(pairs, cores, 1, "local", identify, bytes_of_pair)
    if alone.seconds <= 3_600 * hours:
        return alone
    one = corpus_work(pairs, cores, 1, "ray", identify, bytes_of_pair)
    wanted = max(2, math.ceil(one.core_seconds / CLUSTER / cores / max(1.0, 3_600 * hours - START["ray"])))
    return corpus_work(pairs, cores, wanted, "ray", identify, bytes_of_pair)


def _notes(
    pairs: float, bytes_of_pair: float, cores: int, nodes: int, engine: Engine, reading: float, perfect: float
) -> list[str]:
    """What was not measured, and what breaks first."""
    notes = []
    if pairs > MEASURED:
        notes.append(f"{pairs:,.0f} pairs: {MEASURED:,.0f} were measured, beyond is in proportion")
    if cores > 2:
        notes.append(f"{cores} cores: 2 were measured; that they do not slow each other down is assumed")
    if nodes > 1:
        notes.append(f"{nodes} nodes: nothing ran on several; half of perfect scaling is assumed")
    if engine == "local" and reading > perfect:
        notes.append("one process reads all of it and is the limit: split the input, or use Ray")
    shards = pairs * bytes_of_pair / SHARD
    if shards * BUCKET > 100e6:
        notes.append(f"{shards:,.0f} shards of 32 MB are many: shard_megabytes=1024")
    return notes
