"""A `LiveTrace` is a trace with its model at hand, which can be drawn, saved and sent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limelight.inspection.drawing.heatmaps import heatmap
from limelight.inspection.drawing.svg import Picture
from limelight.inspection.head_names import Kind
from limelight.inspection.saving.files import save
from limelight.inspection.trace import Trace
from limelight.inspection.wire.arrays import Encoding
from limelight.inspection.wire.parts import PARTS
from limelight.inspection.wire.trace_json import as_json


class LiveTrace(Trace):
    """A live trace is what `Translator.trace` gives."""

    def heatmap(self, kind: Kind = "cross", layer: int = -1, head: int | None = None) -> Picture:
        """One head; without `head` the mean of its layer. Layers from the end count as in Python."""
        return heatmap(self, kind, layer, head)

    def save(self, path: str | Path, *, head: str | None = None, encoding: Encoding = "u8") -> None:
        """By its ending: .html is the whole desk in one file, .svg and .png a picture, .json, .csv and .npz the numbers."""
        save(self, path, head=head, encoding=encoding)

    def as_json(
        self,
        include: Sequence[str] = PARTS,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        encoding: Encoding = "u8",
    ) -> dict[str, Any]:
        """As the server sends it (`wire`)."""
        return as_json(self, include, layers, heads, encoding)
