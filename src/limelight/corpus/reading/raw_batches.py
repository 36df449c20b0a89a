"""The `RAW` schema describes the batches of rows that every reader yields."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from limelight.corpus.reading.raw import BATCH_BYTES, CorpusPart, RawUnit

RAW = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("corpus", pa.int16(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),  # from 1
        pa.field("segment", pa.string()),
        pa.field("fault", pa.uint8(), nullable=False),
        pa.field("tags", pa.string()),  # of the row, as `row_tags` spells them
    ]
)


def assemble(
    part: CorpusPart, source: Any, target: Any, lines: Any, faults: NDArray[np.uint8], segments: Any = None, tags: Any = None
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
            pa.nulls(rows, pa.string()) if tags is None else tags,
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
