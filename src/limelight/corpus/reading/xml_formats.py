"""`read_tmx` and `read_xliff` read pairs from TMX 1.x, XLIFF 1.x and XLIFF 2, the formats of translators, as streams.

What becomes of inline markup:
kept      the native code inside TMX and XLIFF 1 <bpt> <ept> <ph> <it> <ut>: it is what stood in the document
entered   <hi> <g> <pc> <mrk> and all others: their text belongs to the sentence
a tag     XLIFF <x/> <bx/> <ex/> <sc/> <ec/> <cp/>, and codes with nothing inside: `<x id="1"/>`
left out  <sub>: a footnote or a title inside a code, a text of its own
"""

from collections.abc import Iterator
from itertools import chain

from limelight.corpus.reading.language_tags import closeness
from limelight.corpus.reading.raw import LONGEST_LINE, PREFIX, CorpusPart, RawUnit, RowFault
from limelight.corpus.reading.streams import open_bytes
from limelight.errors import DataError
from limelight.safe_xml import READ, XML_LANGUAGE, Attributes, parse_xml

MOST_VARIANTS = 16  # texts held of one unit in the two languages; a unit may have any number
MOST_TAGS = 50  # languages remembered for an error
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
_TAGS = frozenset({"x", "bx", "ex", "sc", "ec", "sm", "em", "cp"})
_UNITS = ("trans-unit", "segment")


def read_tmx(part: CorpusPart) -> Iterator[RawUnit]:
    """A pair per <tu>; a unit without both languages is MALFORMED. `segment` is its tuid."""
    return _Tmx(part).read()


def read_xliff(part: CorpusPart) -> Iterator[RawUnit]:
    """A pair per <trans-unit> (1.x) or <segment> (2.x). No target is an empty target; <alt-trans> is not read."""
    return _Xliff(part).read()


class SegmentText:
    """A segment text collects one <seg>, <source> or <target>. It is bounded: what goes beyond LONGEST_LINE is not held."""

    def __init__(self, empty_codes_become_tags: bool) -> None:
        self.tags = empty_codes_become_tags
        self.pieces: list[str] = []
        self.size = self.subflows = 0
        self.codes: list[tuple[str, int]] = []  # the open codes: the tag to write if nothing comes, and the size before

    def start(self, name: str, attributes: Attributes) -> None:
        shown = next((f' {key}="{attributes[key]}"' for key in ("id", "hex") if key in attributes), "")
        if name == "sub":
            self.subflows += 1
        elif name in _CODES:
            self.codes.append((f"<{name}{shown}/>", self.size))
        elif name in _TAGS:
            self.add(f"<{name}{shown}/>")

    def end(self, name: str) -> None:
        if name == "sub":
            self.subflows -= 1
        elif name in _CODES:
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


class _Format:
    """What both share: where we are, the segment being read, and the units found."""

    root = ""
    # The parent matters: <alt-trans> and <match> have a <source> and a <target> too, of some other sentence.
    texts: frozenset[tuple[str, str]]

    def __init__(self, part: CorpusPart) -> None:
        self.address, self.languages = part.paths[0], part.languages
        self.units: list[RawUnit] = []
        self.open: list[str] = [""]  # names from the root down
        self.segment: SegmentText | None = None
        self.depth = self.line = 0  # of the segment; of the unit

    def read(self) -> Iterator[RawUnit]:
        with open_bytes(self.address) as stream:
            if not (first := stream.read(READ)):  # a file of no bytes has no units; XML would call it an error
                return
            for _ in parse_xml(self.address, chain([first], iter(lambda: stream.read(READ), b"")), self, self.root):
                yield from self.units
                self.units.clear()
        yield from self.units
        self.finish()

    def start(self, name: str, attributes: Attributes, line: int, _: int) -> None:
        if self.segment is not None:
            self.segment.start(name, attributes)
        elif (self.open[-1], name) in self.texts:
            self.segment, self.depth = SegmentText(self.root == "xliff"), len(self.open)
        else:
            self.enter(name, attributes, line)
        self.open.append(name)

    def end(self, name: str, _: int) -> None:
        self.open.pop()
        if self.segment is None:
            self.leave(name)
        elif len(self.open) == self.depth:
            text, fault = self.segment.finish()
            self.segment = None
            self.take(name, text, fault)
        else:
            self.segment.end(name)

    def text(self, text: str) -> None:
        if self.segment is not None:
            self.segment.add(text)

    # What a format does where an element that is no text begins and ends, with each text, and after the last unit.

    def enter(self, name: str, attributes: Attributes, line: int) -> None: ...

    def leave(self, name: str) -> None: ...

    def take(self, name: str, text: str, fault: RowFault) -> None: ...

    def finish(self) -> None: ...


class _Tmx(_Format):
    root = "tmx"
    texts = frozenset({("tuv", "seg")})

    def __init__(self, part: CorpusPart) -> None:
        super().__init__(part)
        self.tag = ""
        self.tuid: str | None = None
        self.variants: list[tuple[str, str, RowFault]] = []
        self.tags: set[str] = set()
        self.units_read = self.paired = 0

    def enter(self, name: str, attributes: Attributes, line: int) -> None:
        if name == "tu":
            self.line, self.tuid, self.variants = line, attributes.get("tuid"), []
        elif name == "tuv":
            self.tag = attributes.get(XML_LANGUAGE) or attributes.get("lang", "")
            if len(self.tags) < MOST_TAGS:
                self.tags.add(self.tag)

    def take(self, name: str, text: str, fault: RowFault) -> None:
        wanted = any(closeness(language, self.tag) is not None for language in self.languages)
        if wanted and len(self.variants) < MOST_VARIANTS:
            self.variants.append((self.tag, text, fault))

    def leave(self, name: str) -> None:
        if name != "tu":
            return
        chosen = [None if at is None else self.variants[at] for at in self._choose()]
        faults = [each[2] for each in chosen if each is not None]
        self.paired += len(faults) == 2
        texts = ["" if each is None else each[1] for each in chosen]
        fault = max(faults) if len(faults) == 2 else RowFault.MALFORMED
        self.units.append(RawUnit(texts[0], texts[1], self.line, self.tuid, fault))
        self.units_read += 1

    def _choose(self) -> tuple[int | None, int | None]:
        """The closest two variants, which are never one and the same; the first where several are as close."""
        ranks = [[closeness(language, tag) for tag, _, _ in self.variants] for language in self.languages]
        sources, targets = ([(rank, i) for i, rank in enumerate(side) if rank is not None] for side in ranks)
        pairs = [(a + b, i, j) for a, i in sources for b, j in targets if i != j]
        if pairs:
            return min(pairs)[1:]
        return (min(sources)[1], None) if sources else (None, min(targets)[1] if targets else None)

    def finish(self) -> None:
        if self.units_read and not self.paired:
            shown = ", ".join(sorted(self.tags)) or "none"
            raise DataError(
                f"{self.address}: none of its {self.units_read:,} units has both {self.languages[0]} and "
                f"{self.languages[1]}; its languages are: {shown}; name two of these"
            )


_GUESSES = ("new", "initial", "needs-")  # states of what nobody has translated, or looked at


class _Xliff(_Format):
    root = "xliff"
    texts = frozenset((unit, name) for unit in _UNITS for name in ("source", "target"))

    def __init__(self, part: CorpusPart) -> None:
        super().__init__(part)
        self.unit = ""
        self.id: str | None = None
        self.swapped = self.header = self.guess = False
        self.pair: dict[str, str] = {}
        self.fault = RowFault.NONE

    def enter(self, name: str, attributes: Attributes, line: int) -> None:
        if name == "xliff":
            self._compare_languages(attributes.get("srcLang"), attributes.get("trgLang"), line)
        elif name == "file" and "source-language" in attributes:
            self._compare_languages(attributes["source-language"], attributes.get("target-language"), line)
        elif name == "unit":
            self.unit = attributes.get("id", "")
        elif name in _UNITS:
            self.line, self.fault, self.pair = line, RowFault.NONE, {}
            self.guess = attributes.get("state", "").startswith(_GUESSES)
            self.header = attributes.get("restype") == "x-gettext-domain-header"  # what gettext has as its first entry
            self.id = attributes.get("id")
            if name == "segment":
                self.id = "/".join(filter(None, [self.unit, self.id])) or None

    def start(self, name: str, attributes: Attributes, line: int, at: int) -> None:
        if name == "target" and self.segment is None and (self.open[-1], name) in self.texts:
            self.guess |= attributes.get("state", "").startswith(_GUESSES)
        super().start(name, attributes, line, at)

    def take(self, name: str, text: str, fault: RowFault) -> None:
        self.pair[name] = text
        self.fault = max(self.fault, fault)

    def leave(self, name: str) -> None:
        if name in _UNITS and not self.header:
            source, target = (self.pair.get(side, "") for side in ("source", "target"))
            if self.swapped:
                source, target = target, source
            fault = self.fault or (RowFault.FUZZY if self.guess and self.pair.get("target") else RowFault.NONE)
            self.units.append(RawUnit(source, target, self.line, self.id, fault))

    def _compare_languages(self, source: str | None, target: str | None, line: int) -> None:
        """A file from German to English serves a corpus from English to German too; one in French does not."""
        if source is None:
            return
        self.swapped = not self._fit((source, target))
        if self.swapped and (target is None or not self._fit((target, source))):
            raise DataError(
                f"{self.address}, line {line}: this file goes from {source} to {target or '(not said)'}, and the corpus from "
                f"{self.languages[0]} to {self.languages[1]}; leave it out, or name its languages"
            )

    def _fit(self, tags: tuple[str | None, str | None]) -> bool:
        pairs = zip(self.languages, tags, strict=True)
        return all(tag is None or closeness(language, tag) is not None for language, tag in pairs)
