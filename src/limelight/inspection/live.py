"""A trace with its model at hand: what can be drawn of it, written and sent, in one place for those who hold it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limelight.inspection.drawing import Picture
from limelight.inspection.names import Kind
from limelight.inspection.pictures import heatmap
from limelight.inspection.saving import save
from limelight.inspection.trace import Trace
from limelight.inspection.wire import as_json
from limelight.inspection.wire_arrays import Encoding
from limelight.inspection.wire_parts import PARTS


class LiveTrace(Trace):
    """What `Translator.trace` gives."""

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
