"""A trace becomes a file to be saved: HTML, SVG, PNG, JSON or NPZ."""

import json
from typing import Final

from limelight.errors import ModelFileError, RuntimeChoiceError
from limelight.inspection.head_names import stage_names
from limelight.inspection.saving.files import arrays, picture_of
from limelight.inspection.saving.page import page_with
from limelight.inspection.trace import Trace
from limelight.inspection.wire.parts import PARTS, check_size, size
from limelight.inspection.wire.trace_json import as_json
from limelight.serving.desk.requests import ExportRequest, Format
from limelight.serving.refusals import NotFound

TYPES: Final[dict[Format, str]] = {
    "html": "text/html; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "json": "application/json",
    "npz": "application/octet-stream",
}


def file_of(trace: Trace, asked: ExportRequest, most_bytes: int) -> bytes:
    """Write the file in memory: nothing of a text goes to the disk. A page opens with the view that was asked for."""
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
        raise NotFound("the page of the desk was not built here", "the operator runs make web; or ask for svg") from None


def _pixels(trace: Trace) -> bytes:
    try:
        return picture_of(trace).png()
    except RuntimeChoiceError:
        raise NotFound("nothing here draws a PNG", "the operator runs pip install 'limelight[pictures]'; or ask for svg") from None
