"""The `RAW` schema describes the rows that every reader yields, each a pair with its place and its fault.

A reader drops nothing. A row it cannot use comes with a fault, so that later read = kept + dropped holds to the row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ROWS = 32_768
BATCH_BYTES = 16 << 20  # a batch also ends here, so that long sentences cost no more memory than short ones
LONGEST_LINE = 1 << 20  # bytes; no sentence is this long, so such a line is a broken file or an attack
PREFIX = 1_024  # bytes kept of a line that is too long: enough to recognise it in a report


class RowFault(IntEnum):
    """A fault says why a row cannot be used as it stands. Of several the greater stays; FUZZY is said only if nothing else is wrong."""

    NONE = 0
    MALFORMED = 1
    BROKEN_ENCODING = 2
    TOO_LONG = 3
    FUZZY = 4


RAW = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("corpus", pa.int16(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),  # from 1
        pa.field("segment", pa.string()),
        pa.field("fault", pa.uint8(), nullable=False),
    ]
)


@dataclass(frozen=True)
class CorpusPart:
    """A part is one thing to be read. It has two paths for line pairs, else one; it travels to worker processes as JSON."""

    corpus: int
    file: int
    format: str
    paths: tuple[str, ...]
    languages: tuple[str, str]
    columns: tuple[str, str] | None = None
    swapped: bool = False  # what is read as source is the target

    def __post_init__(self) -> None:
        # JSON has lists where we have tuples; CorpusPart(**json.loads(...)) must equal the part that was sent.
        object.__setattr__(self, "paths", tuple(self.paths))
        object.__setattr__(self, "languages", tuple(self.languages))
        object.__setattr__(self, "columns", None if self.columns is None else tuple(self.columns))


class RawUnit(NamedTuple):
    """A unit is one row on its way into a batch, from a format that is read piece by piece."""

    source: str
    target: str
    line: int
    segment: str | None = None
    fault: RowFault = RowFault.NONE


def assemble(
    part: CorpusPart, source: Any, target: Any, lines: Any, faults: NDArray[np.uint8], segments: Any = None
) -> Any:
    """Columns -> one RecordBatch of RAW. `source` and `target` are Arrow string arrays, `lines` a numpy or Arrow array."""
    rows = len(source)
    return pa.RecordBatch.from_arrays(
        [
            source,
            target,
            pa.repeat(pa.scalar(part.corpus, pa.int16()), rows),
            pa.repeat(pa.scalar(part.file, pa.int32()), rows),
            pa.array(lines, pa.int64()),
            pa.nulls(rows, pa.string()) if segments is None else segments,
            pa.array(faults, pa.uint8()),
        ],
        schema=RAW,
    )


def batches_of_units(part: CorpusPart, units: Iterable[RawUnit], rows: int) -> Iterator[Any]:
    """Units -> batches of `rows`, or fewer where the text reaches BATCH_BYTES."""
    held: list[RawUnit] = []
    size = 0
    for unit in units:
        held.append(unit)
        size += len(unit.source) + len(unit.target)
        if len(held) == rows or size >= BATCH_BYTES:
            yield _batch_of(part, held)
            held, size = [], 0
    if held:
        yield _batch_of(part, held)


def _batch_of(part: CorpusPart, units: list[RawUnit]) -> Any:
    source, target, lines, segments, faults = zip(*units, strict=True)
    return assemble(
        part,
        pa.array(source, pa.string()),
        pa.array(target, pa.string()),
        np.array(lines, np.int64),
        np.array(faults, np.uint8),
        pa.array(segments, pa.string()),
    )
