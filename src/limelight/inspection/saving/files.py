"""A trace is saved as a file, whose ending decides the format. See docs/inspect.md."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from limelight.errors import ConfigError
from limelight.files import write_whole
from limelight.inspection.drawing.heatmaps import heatmap, mask, select_weights
from limelight.inspection.drawing.svg import Picture
from limelight.inspection.head_names import Head, stage_names
from limelight.inspection.saving.page import page_with
from limelight.inspection.trace import Trace
from limelight.inspection.wire.arrays import Encoding
from limelight.inspection.wire.trace_json import as_json

NEWLINE: Final = "\r\n"  # of CSV (RFC 4180)


def save(
    trace: Trace,
    path: str | Path,
    *,
    head: str | None = None,
    picture: Picture | None = None,
    encoding: Encoding = "u8",
) -> None:
    """`head`: of a picture or a table, instead of the one that aligns. `picture`: what .svg and .png show instead of a head.
    `encoding`: of the weights in .json, where u8 is small and f32 is all there is. The file is whole or absent."""
    path = Path(path)
    kinds: dict[str, Callable[[], bytes]] = {
        ".html": lambda: page_with(as_json(trace)),
        ".svg": lambda: (picture or picture_of(trace, head)).svg.encode(),
        ".png": lambda: (picture or picture_of(trace, head)).png(),
        ".json": lambda: json.dumps(as_json(trace, encoding=encoding), ensure_ascii=False, allow_nan=False).encode() + b"\n",
        ".csv": lambda: table(trace, head).encode(),
        ".npz": lambda: arrays(trace),
    }
    make = kinds.get(path.suffix.lower())
    if make is None:
        raise ConfigError(f"{path} says by its ending what it shall be, and {path.suffix or 'none'} is none of {', '.join(kinds)}")
    content = make()
    try:
        write_whole(path, content)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}); give a file in a folder that you may write to") from None


def picture_of(trace: Trace, head: str | None = None) -> Picture:
    """One head, by its name; the one that aligns unless another is named."""
    kind, layer, number = Head.parse(head or trace.align.head)
    return heatmap(trace, kind, layer, number)


def table(trace: Trace, head: str | None = None) -> str:
    """The weights of one head: a row of pieces, then a row for each piece that looks. A masked cell is empty."""
    kind, layer, number = Head.parse(head or trace.align.head)
    weights, _ = select_weights(trace, kind, layer, number)
    rows, columns = trace.axes(kind)
    hidden, written = mask(trace, kind), io.StringIO(newline="")
    writer = csv.writer(written, lineterminator=NEWLINE)
    writer.writerow([f"{kind}.{layer}.{number}", *columns])
    for row, piece in enumerate(rows):
        found = ["" if hidden(row, c) else f"{weights[row, c]:.6f}" for c in range(len(columns))]
        writer.writerow([piece, *found])
    return written.getvalue()


def arrays(trace: Trace) -> bytes:
    """`numpy.load` gives them back under the names of the stages: numpy.load("cat.npz")["enc.0.scores"]. Pieces are there too, as
    "pieces.source", "pieces.inputs" and "pieces.target"."""
    pieces = {
        "pieces.source": [each.piece for each in trace.source.tokens],
        "pieces.inputs": trace.target.inputs,
        "pieces.target": [each.piece for each in trace.target.tokens],
    }
    written = io.BytesIO()
    found = trace.stages(stage_names(trace.model.enc_layers, trace.model.dec_layers))
    np.savez_compressed(written, **found, **{name: np.array(each) for name, each in pieces.items()})  # type: ignore[arg-type]
    return written.getvalue()
