"""`read_parquet` reads pairs from two text columns of a Parquet file, a few rows at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from limelight.corpus.reading import fields
from limelight.corpus.reading.raw import LONGEST_LINE, PREFIX, CorpusPart, RowFault, assemble
from limelight.corpus.reading.streams import BLOCK, open_raw
from limelight.errors import DataError


def read_parquet(part: CorpusPart, rows: int) -> Iterator[Any]:
    """A pair per row; a null on either side is MALFORMED. `line` is the row, from 1."""
    address = part.paths[0]
    with open_raw(address) as raw:
        try:
            # pre_buffer would read whole row groups ahead; a buffered stream reads each column a megabyte at a time.
            file = pq.ParquetFile(pa.PythonFile(raw, "r"), pre_buffer=False, buffer_size=BLOCK)
            source_path, target_path = _find_columns(part, file.schema_arrow)
            line = 1
            for batch in file.iter_batches(rows, columns=[".".join(source_path), ".".join(target_path)]):
                source, source_faults = _text(_column(batch, source_path))
                target, target_faults = _text(_column(batch, target_path))
                numbers = np.arange(line, line + len(source), dtype=np.int64)
                yield assemble(part, source, target, numbers, np.maximum(source_faults, target_faults))
                line += len(source)
        except (pa.ArrowException, OSError) as error:
            if getattr(error, "errno", None) is not None:  # the disk or the network failed; the file may be whole
                raise
            raise DataError(
                f"{address}: this Parquet file is cut short or damaged ({error}); fetch or write it again"
            ) from None


def _find_columns(part: CorpusPart, schema: Any) -> tuple[fields.Path, fields.Path]:
    nested = {field.name: [inner.name for inner in field.type] for field in schema if pa.types.is_struct(field.type)}
    paths = (
        fields.parse_columns(part.columns) if part.columns else fields.fields_of(schema.names, nested, part.languages)
    )
    if paths is None:
        raise DataError(fields.not_found(part.paths[0], schema.names, part.languages))
    for path in paths:
        kind = _type_at(schema, path)
        if kind is None:
            raise DataError(f"{part.paths[0]} has no column {'.'.join(path)}; it has: {', '.join(schema.names)}")
        if not _is_text(kind):
            raise DataError(f"{part.paths[0]}: column {'.'.join(path)} holds {kind}, not text; name another column")
    return paths


def _type_at(schema: Any, path: fields.Path) -> Any:
    found = pa.struct(list(schema))
    for name in path:
        if not pa.types.is_struct(found) or found.get_field_index(name) < 0:
            return None
        found = found.field(name).type
    return found


def _is_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _column(batch: Any, path: fields.Path) -> Any:
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
    texts = []
    for i, value in enumerate(data.to_pylist()):
        text = (value or b"")[: LONGEST_LINE + 1]
        if len(text) > LONGEST_LINE:
            faults[i], text = RowFault.TOO_LONG, text[:PREFIX]
            texts.append(text.decode("utf-8", "ignore"))
            continue
        texts.append(text.decode("utf-8", "replace"))
        if texts[-1].encode() != text:
            faults[i] = RowFault.BROKEN_ENCODING
    return pa.array(texts, pa.string()), faults
