"""`SegmentText` collects the text of one segment from XML events, with inline markup kept, entered or left out.

kept      the native code inside TMX and XLIFF 1 <bpt> <ept> <ph> <it> <ut>: it is what stood in the document
entered   <hi> <g> <pc> <mrk> and all others: their text belongs to the sentence
a tag     XLIFF <x/> <bx/> <ex/> <sc/> <ec/> <cp/>, and codes with nothing inside: `<x id="1"/>`
left out  <sub>: a footnote or a title inside a code, a text of its own
"""

from limelight.corpus.reading.raw import LONGEST_LINE, PREFIX, RowFault
from limelight.corpus.reading.xml.stream import Attributes

CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
TAGS = frozenset({"x", "bx", "ex", "sc", "ec", "sm", "em", "cp"})


class SegmentText:
    """A segment text collects one <seg>, <source> or <target>. It is bounded: what goes beyond LONGEST_LINE is not held."""

    def __init__(self, empty_codes_become_tags: bool) -> None:
        self.tags = empty_codes_become_tags
        self.pieces: list[str] = []
        self.size = 0
        self.subflows = 0
        self.codes: list[tuple[str, int]] = []  # the open codes: the tag to write if nothing comes, and the size before

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sub":
            self.subflows += 1
        elif name in CODES:
            self.codes.append((_tag(name, attributes), self.size))
        elif name in TAGS:
            self.add(_tag(name, attributes))

    def end(self, name: str) -> None:
        if name == "sub":
            self.subflows -= 1
        elif name in CODES:
            tag, before = self.codes.pop()
            if self.tags and self.size == before:
                self.add(tag)

    def add(self, text: str) -> None:
        if self.subflows:
            return
        if self.size <= LONGEST_LINE:
            self.pieces.append(text)
        self.size += len(text)

    def finish(self) -> tuple[str, RowFault]:
        text = "".join(self.pieces)
        return (text, RowFault.NONE) if self.size <= LONGEST_LINE else (text[:PREFIX], RowFault.TOO_LONG)


def _tag(name: str, attributes: Attributes) -> str:
    shown = next((f' {key}="{attributes[key]}"' for key in ("id", "hex") if key in attributes), "")
    return f"<{name}{shown}/>"
