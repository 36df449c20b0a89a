"""A `LiveTrace` is a trace with its model at hand, which can be drawn, saved and sent."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from limelight.inspection.causes import Attribution, Method, PatchMap, Places, Unmatched
from limelight.inspection.drawing.heatmaps import heatmap
from limelight.inspection.drawing.svg import Picture
from limelight.inspection.head_names import Kind
from limelight.inspection.saving.files import save
from limelight.inspection.trace import Trace
from limelight.inspection.tracing.forced_translation import ForcedTranslation
from limelight.inspection.wire.arrays import Encoding
from limelight.inspection.wire.parts import PARTS
from limelight.inspection.wire.trace_json import as_json
from limelight.runtime import one_thread_here


@dataclass(frozen=True, eq=False, kw_only=True)
class LiveTrace(Trace):
    """A live trace is what `Translator.trace` gives."""

    forced: ForcedTranslation = field(repr=False)

    @one_thread_here()
    def why(self, word: str | int, method: Method = "occlusion", instead_of: str | None = None) -> Attribution:
        """What a word of the translation came from: print(trace.why("Hund", instead_of="Katze")). A number names a single piece."""
        return self.forced.attribute(self, word, method, instead_of)

    @one_thread_here()
    def check(self) -> list[Unmatched]:
        """Source words that nothing in the translation came from, and words of the translation that came from nothing."""
        return self.forced.match(self)

    @one_thread_here()
    def patch(self, other: Trace, word: str | int, places: Places = "source") -> PatchMap:
        """How likely the word is when one place computes what it computed for the other sentence: layers by positions, or heads."""
        return self.forced.patch(self, other, word, places)

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
