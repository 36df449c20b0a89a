"""Seconds and bytes to prepare a corpus on one machine follow from what was measured on two cores (docs/scale.md)."""

from dataclasses import dataclass
from typing import Final

# Seconds of one core for a pair of 136 bytes, all filters but language identification, dedup, encoding, shards: 20 M pairs in 302 s on 2
# cores; 1 M in 14.3 to 17.6 s.
CORE: Final = 30.2e-6
IDENTIFY: Final = 18.4e-6  # language identification: 24.8 s in place of 15.6 for 1 M pairs on 2 cores
MEASURED: Final = 20e6  # pairs, the most that were
BYTES: Final = 136.0  # of text, of the pairs that were measured
READING: Final = 1e-6  # seconds a pair in the one process that reads
WRITTEN: Final = 252.0 / BYTES  # bytes on disk for a byte of text: 5.05 GB for 20 M pairs
MEMORY: Final = 0.35e9  # bytes of a process; measured for 2 and the one that reads together
BUCKET: Final = 8e3  # bytes that the driver keeps of each shard
SHARD: Final = 32e6  # bytes of text in one, unless asked otherwise


@dataclass(frozen=True)
class CorpusWork:
    cores: int
    seconds: float
    written: float  # bytes, if nothing is dropped
    memory: float  # bytes
    notes: tuple[str, ...]  # what was not measured, and what breaks first


def corpus_work(pairs: float, cores: int = 2, identify: bool = True, bytes_of_pair: float = BYTES) -> CorpusWork:
    longer = bytes_of_pair / BYTES
    computing = pairs * longer * (CORE + (IDENTIFY if identify else 0.0)) / cores
    reading = pairs * longer * READING
    notes = []
    if pairs > MEASURED:
        notes.append(f"{pairs:,.0f} pairs: {MEASURED:,.0f} were measured, beyond is in proportion")
    if cores > 2:
        notes.append(f"{cores} cores: 2 were measured; that they do not slow each other down is assumed")
    if reading > computing:
        notes.append("one process reads all of it and is the limit: split the input, or use Ray")
    shards = pairs * bytes_of_pair / SHARD
    if shards * BUCKET > 100e6:
        notes.append(f"{shards:,.0f} shards of 32 MB are many: shard_megabytes=1024")
    written = pairs * bytes_of_pair * WRITTEN
    return CorpusWork(cores, max(reading, computing), written, MEMORY * (1 + cores), tuple(notes))
