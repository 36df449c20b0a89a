"""A trace as a file to be saved."""

import json
from typing import Final

from limelight.errors import ModelFileError, RuntimeChoiceError
from limelight.inspection.names import stage_names
from limelight.inspection.page_file import page_with
from limelight.inspection.saving import arrays, picture_of
from limelight.inspection.trace import Trace
from limelight.inspection.wire import as_json
from limelight.inspection.wire_parts import PARTS, check_size, size
from limelight.serving.desk_schema import ExportRequest, Format
from limelight.serving.refusals import NotFound

TYPES: Final[dict[Format, str]] = {
    "html": "text/html; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "json": "application/json",
    "npz": "application/octet-stream",
}


def file_of(trace: Trace, asked: ExportRequest, most_bytes: int) -> bytes:
    """In memory: nothing of a text goes to the disk. A page opens with the view that was asked for."""
    kind = asked.format
    if kind == "svg":
        return picture_of(trace).svg.encode()
    if kind == "png":
        return _pixels(trace)
    if kind == "npz":
        every = stage_names(trace.model.enc_layers, trace.model.dec_layers)
        check_size(size(trace, False, every, None, None, "f32"), most_bytes)
        return arrays(trace)
    values = {**as_json(trace, PARTS, most_bytes=most_bytes), "trace_id": asked.trace_id}
    if kind == "json":
        return json.dumps(values, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    try:
        return page_with(values if asked.view is None else {**values, "view": asked.view})
    except ModelFileError:
        raise NotFound(
            "the page of the desk was not built here", "the operator runs make web; or ask for svg"
        ) from None


def _pixels(trace: Trace) -> bytes:
    try:
        return picture_of(trace).png()
    except RuntimeChoiceError:
        raise NotFound(
            "nothing here draws a PNG", "the operator runs pip install 'limelight[pictures]'; or ask for svg"
        ) from None
