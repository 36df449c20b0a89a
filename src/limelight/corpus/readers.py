"""`read` yields the pairs of a file of any known format as Arrow batches, and `find` lists what there is to read.

for part in find(["data/"], ("en", "de")):
    for batch in read(part):
        ...

Memory does not grow with the files. A file that cannot be read to its end is a DataError; a row that cannot be used is a
row with a RowFault. An empty file has no rows.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.compute as pc

from limelight.corpus.reading.finding import LINES, find, format_of
from limelight.corpus.reading.formats import read_line_pairs, read_tsv
from limelight.corpus.reading.language_tags import guess_languages
from limelight.corpus.reading.po import read_po
from limelight.corpus.reading.raw import ROWS, CorpusPart, RawUnit, RowFault
from limelight.corpus.reading.raw_batches import RAW, batches_of_units
from limelight.corpus.reading.records import read_jsonl, read_parquet
from limelight.corpus.reading.xml_formats import read_tmx, read_xliff
from limelight.errors import DataError

__all__ = ["RAW", "READERS", "ROWS", "CorpusPart", "RowFault", "find", "format_of", "guess_languages", "read"]


def _in_batches(read_units: Callable[[CorpusPart], Iterator[RawUnit]]) -> Callable[[CorpusPart, int], Iterator[Any]]:
    return lambda part, rows: batches_of_units(part, read_units(part), rows)


READERS: dict[str, Callable[[CorpusPart, int], Iterator[Any]]] = {
    LINES: read_line_pairs,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "tmx": _in_batches(read_tmx),
    "xliff": _in_batches(read_xliff),
    "po": _in_batches(read_po),
}


def read(part: CorpusPart, rows: int = ROWS) -> Iterator[Any]:
    """The pairs of a part as Arrow RecordBatches of RAW, `rows` at a time. Same file and same rows, same batches."""
    if part.format not in READERS:
        raise DataError(f"{part.format!r} is no format that is read; known are: {', '.join(READERS)}")
    needed = 2 if part.format == LINES else 1
    if len(part.paths) != needed:
        raise DataError(f"{part.format} is read from {needed} file(s), not from {len(part.paths)}: {', '.join(part.paths)}")
    batches = READERS[part.format](part, rows)
    if part.partial:
        batches = filter(len, map(_without_gaps, batches))
    if not part.swapped:
        return batches
    return (batch.select(["target", "source", *RAW.names[2:]]).rename_columns(RAW.names) for batch in batches)


def _without_gaps(batch: Any) -> Any:
    """The rows with text on both sides: not every sentence of many languages is there in all of them."""
    filled = [pc.not_equal(pc.utf8_trim_whitespace(batch.column(side)), "") for side in ("source", "target")]
    return batch.filter(pc.and_(*filled))
