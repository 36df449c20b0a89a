"""`read_line_pairs` reads two line-parallel files, and `read_tsv` reads one file with a pair on each line."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limelight.corpus.reading.drift import describe_drift
from limelight.corpus.reading.lines import DecodedLines, read_lines
from limelight.corpus.reading.raw import CorpusPart, RowFault
from limelight.corpus.reading.raw_batches import assemble
from limelight.corpus.reading.row_tags import FIELD, spell_tags
from limelight.errors import DataError


def read_line_pairs(part: CorpusPart, rows: int) -> Iterator[Any]:
    """Two files, line n beside line n. Different counts are an error, which comes last: only then are they known."""
    readers = [read_lines(path, rows) for path in part.paths]
    held = [next(reader, None) for reader in readers]
    line = 1
    while held[0] is not None and held[1] is not None:
        count = min(len(held[0]), len(held[1]))  # a batch is smaller where its lines are long, on one side or the other
        source, target = held[0].part(0, count), held[1].part(0, count)
        numbers = np.arange(line, line + count, dtype=np.int64)
        yield assemble(part, source.texts, target.texts, numbers, np.maximum(source.faults, target.faults))
        line += count
        held = [_after(lines, count, reader) for lines, reader in zip(held, readers, strict=True)]
    if held[0] is not None or held[1] is not None:
        (first, second), counts = part.paths, [line - 1 + _count(*rest) for rest in zip(held, readers, strict=True)]
        raise DataError(
            f"{first} has {counts[0]:,} lines and {second} has {counts[1]:,}; line pairs need as many on both sides. "
            f"{describe_drift(first, second)}"
        )


def read_tsv(part: CorpusPart, rows: int) -> Iterator[Any]:
    """A pair per line, in two columns (1 and 2 if none are given); other columns are ignored, too few are MALFORMED. A first line that
    names a column `tags`, and those of the pair, is a head: then rows have tags."""
    columns, told = _column_numbers(part), None
    line = 1
    for lines in read_lines(part.paths[0], rows):
        if line == 1 and (head := _read_head(part, lines.texts[0].as_py())):
            columns, told = head[:2], head[2]
            lines = lines.part(1, len(lines) - 1)
            line = 2
            if not len(lines):
                continue
        cells = pc.split_pattern(lines.texts, "\t")
        starts = cells.offsets.to_numpy()[:-1]
        counts = pc.list_value_length(cells).to_numpy()
        short = counts < max(columns)
        source, target = (pc.fill_null(cells.values.take(pa.array(starts + number - 1, mask=short)), "") for number in columns)
        faults = np.maximum(lines.faults, np.where(short, np.uint8(RowFault.MALFORMED), np.uint8(RowFault.NONE)))
        tags = None
        if told is not None:
            missing = pa.array(starts + told - 1, mask=counts < told)
            tags = spell_tags(cells.values.take(missing).to_pylist(), part.paths[0], line)
        yield assemble(part, source, target, np.arange(line, line + len(lines), dtype=np.int64), faults, tags=tags)
        line += len(lines)


def _read_head(part: CorpusPart, first: str) -> tuple[int, int, int] | None:
    """The numbers of source, target and tags in the first line, if it names them."""
    names = [name.strip() for name in first.split("\t")]
    if part.columns is not None or FIELD not in names:
        return None
    pairs = ((source, target) for source, target in (("source", "target"), ("src", "tgt"), part.languages))
    found = next((pair for pair in pairs if all(name in names for name in pair)), None)
    return None if found is None else (names.index(found[0]) + 1, names.index(found[1]) + 1, names.index(FIELD) + 1)


def _after(lines: DecodedLines | None, count: int, reader: Iterator[DecodedLines]) -> DecodedLines | None:
    """What is left of some lines after the first `count`, or the next ones."""
    if lines is not None and len(lines) > count:
        return lines.part(count, len(lines) - count)
    return next(reader, None)


def _count(lines: DecodedLines | None, reader: Iterator[DecodedLines]) -> int:
    return (0 if lines is None else len(lines)) + sum(len(more) for more in reader)


def _column_numbers(part: CorpusPart) -> tuple[int, int]:
    if part.columns is None:
        return 1, 2
    if not all(column.isascii() and column.isdigit() and int(column) > 0 for column in part.columns):
        raise DataError(
            f"{part.paths[0]}: the columns of a TSV are numbers from 1, not {' and '.join(part.columns)}; "
            f"for the first and the third give 1 and 3"
        )
    return int(part.columns[0]), int(part.columns[1])
