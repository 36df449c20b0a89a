"""The `ExchangeEngine` protocol runs the stages of `prepare`, on a laptop or on a cluster. Both run the same pure functions and leave the
same bytes.

An engine knows nothing of languages or filters. It reads parts, maps batches, brings rows of equal bucket together, finishes each bucket.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from limelight.corpus.reading.raw import CorpusPart

OUTCOMES = "outcomes"
Stage = Callable[[pa.RecordBatch], pa.Table]
"""Rows in, rows out, each with its `bucket` (int32). Pure: the same rows in any batch give the same rows."""

Finish = Callable[[int, pa.Table], dict[str, Any]]
"""Bucket number and all of its rows, in any order -> a small JSON value. Writes files whole or not at all; doing it twice is harmless."""

Job = TypeVar("Job")
Work = Callable[[Job], dict[str, Any]]


@dataclass(frozen=True)
class Progress:
    """Progress says how far an engine is: `done` of `total` in the unit of the step, `pairs` read so far."""

    step: str
    done: float
    total: float
    pairs: int = 0


Watch = Callable[[Progress], None]


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def outcome_at(folder: Path, bucket: int) -> Path:
    """What the finish of a bucket gave. It is there when all that the finish wrote is."""
    return folder / OUTCOMES / f"bucket-{bucket:05d}.json"


class ExchangeEngine(Protocol):
    """Equal inputs give equal results on every engine and with any number of workers."""

    def exchange(
        self, parts: Sequence[CorpusPart], stage: Stage, buckets: int, finish: Finish, folder: Path, watch: Watch
    ) -> Iterator[dict[str, Any]]:
        """Read every part, map each batch, gather rows by `bucket`, finish each bucket. Results in the order of the buckets.

        `folder` is for intermediate files, by which an interrupted exchange may go on.
        """
        ...

    def each(self, jobs: Sequence[Job], work: Work[Job], watch: Watch) -> Iterator[dict[str, Any]]:
        """Independent jobs, as many at once as there are workers. Results in the order of the jobs."""
        ...

    def close(self) -> None:
        """Ends its processes."""
        ...
