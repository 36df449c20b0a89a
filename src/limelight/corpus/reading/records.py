"""`read_jsonl` and `read_parquet` read pairs from records with named fields: JSON lines, an object per line, and Parquet.

fields_of({"id", "translation"}, {"translation": {"en", "de"}}, ("en", "de"))  ->  ("translation", "en"), ("translation", "de")

JSON is read by Python's own parser, line by line. Polars' json_decode is twice as fast and not safe here: it skips empty lines, so that
rows shift; it turns numbers into strings; and a lone surrogate becomes a NUL, without a word. Of two equal keys the last
counts; NaN in a field we do not read is let through, as Python writes it.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from limelight.corpus.reading.lines import decode_line, decode_to_strings, read_byte_lines
from limelight.corpus.reading.raw import LONGEST_LINE, CorpusPart, RowFault
from limelight.corpus.reading.raw_batches import assemble
from limelight.corpus.reading.row_tags import FIELD, spell_tags
from limelight.corpus.reading.streams import BLOCK, open_bytes, open_raw
from limelight.errors import DataError

Path = tuple[str, ...]
NESTED = "translation"  # where Hugging Face's translation corpora keep an object with a text for each language
_scan_once: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_WHITESPACE = " \t\r"


def read_jsonl(part: CorpusPart, rows: int) -> Iterator[Any]:
    """A pair per line. Lines that are no JSON or lack a text are MALFORMED; lone surrogates are BROKEN_ENCODING."""
    paths = parse_columns(part.columns) if part.columns else None
    line = 1
    with open_bytes(part.paths[0]) as stream:
        for lines in read_byte_lines(stream, rows):
            texts, faults = decode_to_strings(lines)
            paths = paths or _find_fields(part, texts)
            source, target, tags = _columns(texts, paths, faults)
            spelt = spell_tags(tags, part.paths[0], line)
            yield assemble(part, source, target, np.arange(line, line + len(lines), dtype=np.int64), faults, tags=spelt)
            line += len(lines)


def _columns(texts: list[str], paths: tuple[Path, Path] | None, faults: NDArray[np.uint8]) -> tuple[Any, Any, list[Any]]:
    """Sources, targets and tags; what is found wrong goes into `faults`. A row without a pair has two empty texts."""
    sources, targets, tags = [""] * len(texts), [""] * len(texts), [None] * len(texts)
    for i, text in enumerate(texts):
        source, target, told = _pair(text, paths) if paths else (None, None, None)
        if type(source) is str and type(target) is str:
            sources[i], targets[i], tags[i] = source, target, told
        elif not faults[i]:
            faults[i] = RowFault.MALFORMED
    try:
        return pa.array(sources, pa.string()), pa.array(targets, pa.string()), tags
    except UnicodeEncodeError:  # "\ud800" is valid JSON and no Unicode text
        for side in (sources, targets):
            for i, text in enumerate(side):
                side[i] = whole = _without_surrogates(text)
                if whole != text:
                    faults[i] = max(faults[i], RowFault.BROKEN_ENCODING)
        return pa.array(sources, pa.string()), pa.array(targets, pa.string()), tags


def _pair(text: str, paths: tuple[Path, Path]) -> tuple[Any, Any, Any]:
    """What stands at the two paths and in `tags`, or nothing. scan_once is json.loads without the care for blanks, a third faster."""
    try:
        value, end = _scan_once(text, 0)
        if end != len(text) and text[end:].strip(_WHITESPACE):
            return None, None, None
        source = target = value
        for name in paths[0]:
            source = source[name]
        for name in paths[1]:
            target = target[name]
        return source, target, value.get(FIELD)
    except StopIteration:  # not JSON, or a blank in front
        stripped = text.lstrip(_WHITESPACE)
        return _pair(stripped, paths) if stripped != text else (None, None, None)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None, None, None


def _find_fields(part: CorpusPart, texts: list[str]) -> tuple[Path, Path] | None:
    """From the first object that has a known pair of names. None if no line is an object at all."""
    seen: set[str] = set()
    if texts[0].lstrip(_WHITESPACE).startswith("["):
        raise DataError(f"{part.paths[0]} holds a JSON array; write one object per line instead: jq -c '.[]' {part.paths[0]} > pairs.jsonl")
    for text in texts:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            nested = {name: inner for name, inner in value.items() if isinstance(inner, dict)}
            if found := fields_of(value, nested, part.languages):
                return found
            seen.update(list(value)[:20])
    if seen:
        raise _not_found(part.paths[0], seen, part.languages)
    return None


def _without_surrogates(text: str) -> str:
    """Each lone surrogate becomes one U+FFFD; UTF-16 is where surrogates are units."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_parquet(part: CorpusPart, rows: int) -> Iterator[Any]:
    """A pair per row; a null on either side is MALFORMED. `line` is the row, from 1."""
    address = part.paths[0]
    with open_raw(address) as raw:
        try:
            # pre_buffer would read whole row groups ahead; a buffered stream reads each column a megabyte at a time.
            file = pq.ParquetFile(pa.PythonFile(raw, "r"), pre_buffer=False, buffer_size=BLOCK)
            source_path, target_path = _find_columns(part, file.schema_arrow)
            line, told = 1, [FIELD] if FIELD in file.schema_arrow.names else []
            for batch in file.iter_batches(rows, columns=[".".join(source_path), ".".join(target_path), *told]):
                source, source_faults = _text(_column(batch, source_path))
                target, target_faults = _text(_column(batch, target_path))
                numbers = np.arange(line, line + len(source), dtype=np.int64)
                tags = spell_tags(batch.column(FIELD).to_pylist(), address, line) if told else None
                yield assemble(part, source, target, numbers, np.maximum(source_faults, target_faults), tags=tags)
                line += len(source)
        except (pa.ArrowException, OSError) as error:
            if getattr(error, "errno", None) is not None:  # the disk or the network failed; the file may be whole
                raise
            raise DataError(f"{address}: this Parquet file is cut short or damaged ({error}); fetch or write it again") from None


def _find_columns(part: CorpusPart, schema: Any) -> tuple[Path, Path]:
    nested = {field.name: [inner.name for inner in field.type] for field in schema if pa.types.is_struct(field.type)}
    paths = parse_columns(part.columns) if part.columns else fields_of(schema.names, nested, part.languages)
    if paths is None:
        raise _not_found(part.paths[0], schema.names, part.languages)
    for path in paths:
        kind = _type_at(schema, path)
        if kind is None:
            raise DataError(f"{part.paths[0]} has no column {'.'.join(path)}; it has: {', '.join(schema.names)}")
        if not _is_text(kind):
            raise DataError(f"{part.paths[0]}: column {'.'.join(path)} holds {kind}, not text; name another column")
    return paths


def _type_at(schema: Any, path: Path) -> Any:
    found = pa.struct(list(schema))
    for name in path:
        if not pa.types.is_struct(found) or found.get_field_index(name) < 0:
            return None
        found = found.field(name).type
    return found


def _is_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _column(batch: Any, path: Path) -> Any:
    column = batch.column(path[0])
    return pc.struct_field(column, list(path[1:])) if path[1:] else column


def _text(column: Any) -> tuple[Any, NDArray[np.uint8]]:
    """Plain strings, with a fault for each row. Parquet promises UTF-8 and nothing checks that it was kept."""
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    faults = pc.is_null(column).to_numpy(zero_copy_only=False).astype(np.uint8) * np.uint8(RowFault.MALFORMED)
    data = column.cast(pa.large_binary())
    long = np.flatnonzero(pc.fill_null(pc.binary_length(data), 0).to_numpy() > LONGEST_LINE)
    try:
        if not len(long):
            return pc.fill_null(data.cast(pa.string()), ""), faults
    except pa.ArrowInvalid:
        pass
    texts, found = zip(*(decode_line(value or b"") for value in data.to_pylist()), strict=True)
    return pa.array(texts, pa.string()), np.maximum(faults, np.array(found, np.uint8))


def fields_of(names: Collection[str], nested: Mapping[str, Collection[str]], languages: tuple[str, str]) -> tuple[Path, Path] | None:
    """The first that is there of source/target, src/tgt, source/correction (`learn`), the two languages, and the same in `translation`."""
    for source, target in (("source", "target"), ("src", "tgt"), ("source", "correction"), languages):
        if source in names and target in names:
            return (source,), (target,)
    inner = nested.get(NESTED, ())
    if languages[0] in inner and languages[1] in inner:
        return (NESTED, languages[0]), (NESTED, languages[1])
    return None


def parse_columns(columns: tuple[str, str]) -> tuple[Path, Path]:
    """translation.en -> ("translation", "en"): a dot leads into an object."""
    return tuple(columns[0].split(".")), tuple(columns[1].split("."))


def _not_found(address: str, names: Collection[str], languages: tuple[str, str]) -> DataError:
    shown = ", ".join(sorted(names)[:20]) or "none"
    return DataError(
        f"{address} has no fields named source and target (or correction), src and tgt, {languages[0]} and {languages[1]}, or a "
        f"translation with both languages; it has: {shown}; name the two columns that hold the pair"
    )
