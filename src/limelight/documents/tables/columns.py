"""`find_columns` translates one column of a CSV or TSV file into another, or in its place. See docs/documents.md."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from limelight.corpus.reading.language_tags import closeness
from limelight.documents.encodings import Document
from limelight.documents.splices import LineCounter, Splice
from limelight.documents.units import DocumentUnit, ExtractionResult, edges, has_words, replace_controls
from limelight.errors import ConfigError, DataError

MOST_COLUMNS = 10_000
MOST_NAMES = 200  # columns that are looked at for the name of a language
_TAG = re.compile(r"(?:x|[A-Za-z]{2,3})(?:[-_][A-Za-z0-9]{2,8}){0,2}")
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"')
MOST_LACKING = 100  # that a row may be short of: each is written
_BREAKS = re.compile(r"[\t\r\n\v\f\x85\u2028\u2029]+")


class _Cell(NamedTuple):
    start: int
    end: int
    text: str
    quoted: bool


def find_columns(signs: str, document: Document, languages: tuple[str, str], again: bool, column: str | None = None) -> ExtractionResult:
    """`signs`: what may stand between two columns; the one that the first line has most of does."""
    sign = max(signs, key=document.text.partition("\n")[0].count)
    rows = _read_rows(document, sign)
    first = next(rows, [])
    source, target, has_head = _choose([cell.text.strip() for cell in first], languages, column)
    lines, units, left = LineCounter(document.text), list[DocumentUnit](), 0
    for row in rows if has_head else (first, *rows):
        document.check_time()
        if len(row) <= source or not has_words(row[source].text):
            continue
        if source != target and len(row) > target and row[target].text.strip():
            left += 1
            continue
        units.append(_make_unit(lines.of(row[source].start), row, (source, target), sign))
    return ExtractionResult(units, left)


def _read_rows(document: Document, sign: str) -> Iterator[list[_Cell]]:
    text, at, row = document.text, 0, list[_Cell]()
    plain = re.compile(rf"[^{sign}\r\n]*+")
    while True:
        found = _QUOTED.match(text, at)
        if found is None or text[found.end() : found.end() + 1] not in ("", sign, "\r", "\n"):
            found = plain.match(text, at)
        assert found is not None, "a cell may be empty"
        is_quoted = found.re is _QUOTED
        row.append(_Cell(found.start(), found.end(), found[1].replace('""', '"') if is_quoted else found[0], is_quoted))
        if len(row) > MOST_COLUMNS:
            raise DataError(f"{document.name} has a row of more than {MOST_COLUMNS:,} columns; is it a table?")
        at = found.end() + 1
        if text[found.end() : at] != sign:
            yield row
            row, at = [], at + (text[found.end() : at + 1] == "\r\n")
            if at >= len(text):
                return


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:10]) + (", ..." if len(names) > 10 else "")


def _choose(names: Sequence[str], languages: tuple[str, str], column: str | None) -> tuple[int, int, bool]:
    """The source column, the target column, and whether the first row has their names."""
    if column is None:
        for wanted in (("source", "target"), languages):
            found = [_find_name(names, name) for name in wanted]
            if None not in found and found[0] != found[1]:
                return found[0] or 0, found[1] or 0, True
        raise ConfigError(
            f"no columns are called {languages[0]} and {languages[1]}, or source and target; say which to take: --column SOURCE=TARGET, "
            f"by their names in the first row ({_list_names(names)}) or, if it has none, by their numbers; "
            "--column NAME translates one in its place"
        )
    source, _, target = column.partition("=")
    target = target or source
    if source.isdecimal() and target.isdecimal() and 0 < int(source) <= MOST_COLUMNS and 0 < int(target) <= MOST_COLUMNS:
        return int(source) - 1, int(target) - 1, False
    if missing := [name for name in dict.fromkeys((source, target)) if name not in names]:
        said = f"the first row has no column {' and no column '.join(missing)}; it has {_list_names(names)}"
        raise ConfigError(f"{said}; write one as it stands there, or give its number")
    return names.index(source), names.index(target), True


def _find_name(names: Sequence[str], wanted: str) -> int | None:
    if wanted.lower() in (lower := [name.lower() for name in names]):
        return lower.index(wanted.lower())
    tags = [(name, at) for at, name in enumerate(names[:MOST_NAMES]) if _TAG.fullmatch(name)] if _TAG.fullmatch(wanted) else []
    ranked = [(rank, at) for name, at in tags if (rank := closeness(wanted, name)) is not None and rank < 3]  # "No" is a number, not nb
    return min(ranked)[1] if ranked else None


def _make_unit(line: int, row: Sequence[_Cell], columns: tuple[int, int], sign: str) -> DocumentUnit:
    source, target = columns
    lead, text, trail = edges(row[source].text)
    lacking = max(0, target + 1 - len(row))
    if lacking > MOST_LACKING:
        raise DataError(f"line {line} has {len(row)} columns, and the target is column {target + 1}; is the sign between columns another?")
    place = (row[-1].end,) * 2 if lacking else (row[target].start, row[target].end)
    write: Callable[[str], str] = partial(_write, sign, row[source].quoted or (not lacking and row[target].quoted))

    def whole(translation: str) -> list[Splice]:
        if source == target and translation == text:
            return []
        return [Splice(*place, (sign * lacking + write(lead + replace_controls(translation) + trail),))]

    return DocumentUnit(line, text, whole)


def _write(sign: str, quoted: bool, text: str) -> str:
    text = text if quoted else _BREAKS.sub(" ", text)
    if quoted or sign in text or text.startswith('"') or (sign != "\t" and '"' in text):
        return '"' + text.replace('"', '""') + '"'
    return text
