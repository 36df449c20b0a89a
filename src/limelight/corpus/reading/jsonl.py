"""`read_jsonl` reads pairs from JSON lines, an object per line.

Python's own parser, line by line. Polars' json_decode is twice as fast and not safe here: it skips empty lines, so that
rows shift; it turns numbers into strings; and a lone surrogate becomes a NUL, without a word. Of two equal keys the last
counts; NaN in a field we do not read is let through, as Python writes it.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from limelight.corpus.reading import fields
from limelight.corpus.reading.lines import decode_to_strings, read_byte_lines
from limelight.corpus.reading.raw import CorpusPart, RowFault, assemble
from limelight.corpus.reading.streams import open_bytes
from limelight.errors import DataError

_scan_once: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_WHITESPACE = " \t\r"


def read_jsonl(part: CorpusPart, rows: int) -> Iterator[Any]:
    """A pair per line. Lines that are no JSON or lack a text are MALFORMED; lone surrogates are BROKEN_ENCODING."""
    paths = fields.parse_columns(part.columns) if part.columns else None
    line = 1
    with open_bytes(part.paths[0]) as stream:
        for lines in read_byte_lines(stream, rows):
            texts, faults = decode_to_strings(lines)
            paths = paths or _find_fields(part, texts)
            source, target = _columns(texts, paths, faults)
            yield assemble(part, source, target, np.arange(line, line + len(lines), dtype=np.int64), faults)
            line += len(lines)


def _columns(
    texts: list[str], paths: tuple[fields.Path, fields.Path] | None, faults: NDArray[np.uint8]
) -> tuple[Any, Any]:
    """Sources and targets; what is found wrong goes into `faults`. A row without a pair has two empty texts."""
    sources, targets = [""] * len(texts), [""] * len(texts)
    for i, text in enumerate(texts):
        source, target = _pair(text, paths) if paths else (None, None)
        if type(source) is str and type(target) is str:
            sources[i], targets[i] = source, target
        elif not faults[i]:
            faults[i] = RowFault.MALFORMED
    try:
        return pa.array(sources, pa.string()), pa.array(targets, pa.string())
    except UnicodeEncodeError:  # "\ud800" is valid JSON and no Unicode text
        for side in (sources, targets):
            for i, text in enumerate(side):
                side[i] = whole = _without_surrogates(text)
                if whole != text:
                    faults[i] = max(faults[i], RowFault.BROKEN_ENCODING)
        return pa.array(sources, pa.string()), pa.array(targets, pa.string())


def _pair(text: str, paths: tuple[fields.Path, fields.Path]) -> tuple[Any, Any]:
    """What stands at the two paths, or nothing. scan_once is json.loads without the care for blanks, a third faster."""
    try:
        source, end = _scan_once(text, 0)
        if end != len(text) and text[end:].strip(_WHITESPACE):
            return None, None
        target = source
        for name in paths[0]:
            source = source[name]
        for name in paths[1]:
            target = target[name]
        return source, target
    except StopIteration:  # not JSON, or a blank in front
        stripped = text.lstrip(_WHITESPACE)
        return _pair(stripped, paths) if stripped != text else (None, None)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None, None


def _find_fields(part: CorpusPart, texts: list[str]) -> tuple[fields.Path, fields.Path] | None:
    """From the first object that has a known pair of names. None if no line is an object at all."""
    seen: set[str] = set()
    if texts[0].lstrip(_WHITESPACE).startswith("["):
        raise DataError(
            f"{part.paths[0]} holds a JSON array; write one object per line instead: "
            f"jq -c '.[]' {part.paths[0]} > pairs.jsonl"
        )
    for text in texts:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            nested = {name: inner for name, inner in value.items() if isinstance(inner, dict)}
            if found := fields.fields_of(value, nested, part.languages):
                return found
            seen.update(list(value)[:20])
    if seen:
        raise DataError(fields.not_found(part.paths[0], seen, part.languages))
    return None


def _without_surrogates(text: str) -> str:
    """Each lone surrogate becomes one U+FFFD; UTF-16 is where surrogates are units."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
