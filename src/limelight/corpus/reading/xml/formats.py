"""`read_tmx` and `read_xliff` read pairs from TMX 1.x, XLIFF 1.x and XLIFF 2, the formats of translators. `segment_text` says what becomes
of inline markup.
"""

from collections.abc import Iterator
from typing import Any

from limelight.corpus.reading.language_tags import closeness
from limelight.corpus.reading.raw import CorpusPart, RawUnit, RowFault, batches_of_units
from limelight.corpus.reading.xml.segment_text import SegmentText
from limelight.corpus.reading.xml.stream import SEPARATOR, Attributes, local_name, read_units
from limelight.errors import DataError

XML_LANGUAGE = f"http://www.w3.org/XML/1998/namespace{SEPARATOR}lang"
MOST_VARIANTS = 16  # texts held of one unit in the two languages; a unit may have any number
MOST_TAGS = 50  # languages remembered for an error


def read_tmx(part: CorpusPart, rows: int) -> Iterator[Any]:
    """A pair per <tu>; a unit without both languages is MALFORMED. `segment` is its tuid."""
    return batches_of_units(part, read_units(part.paths[0], _Tmx(part)), rows)


def read_xliff(part: CorpusPart, rows: int) -> Iterator[Any]:
    """A pair per <trans-unit> (1.x) or <segment> (2.x). No target is an empty target; <alt-trans> is not read."""
    return batches_of_units(part, read_units(part.paths[0], _Xliff(part)), rows)


class _Format:
    """What both share: where we are, the segment being read, and the units found."""

    root = ""
    empty_codes_become_tags = False

    def __init__(self, part: CorpusPart) -> None:
        self.address = part.paths[0]
        self.languages = part.languages
        self.units: list[RawUnit] = []
        self.namespace = ""
        self.open: list[str] = []  # names from the root down; those of other namespaces as `namespace name`
        self.segment: SegmentText | None = None
        self.depth = 0  # of the segment

    def start(self, name: str, attributes: Attributes, line: int) -> None:
        if not self.open:
            self._check_root(name)
        # Only our own names lose their namespace, so that <sdl:source> is never taken for <source>.
        name = name.removeprefix(self.namespace)
        if self.segment is not None:
            self.segment.start(name, attributes)
        elif self.open and self.is_text(name, self.open[-1]):
            self.segment, self.depth = SegmentText(self.empty_codes_become_tags), len(self.open)
        else:
            self.enter(name, attributes, line)
        self.open.append(name)

    def end(self, _: str) -> None:
        name = self.open.pop()
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

    def _check_root(self, name: str) -> None:
        self.namespace = name.removesuffix(local_name(name))
        if local_name(name) != self.root:
            raise DataError(
                f"{self.address} begins with <{local_name(name)}> and not with <{self.root}>; check its name"
            )

    def is_text(self, name: str, parent: str) -> bool:
        raise NotImplementedError

    def enter(self, name: str, attributes: Attributes, line: int) -> None:
        raise NotImplementedError

    def take(self, name: str, text: str, fault: RowFault) -> None:
        raise NotImplementedError

    def leave(self, name: str) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Called after the last unit."""


class _Tmx(_Format):
    root = "tmx"

    def __init__(self, part: CorpusPart) -> None:
        super().__init__(part)
        self.line, self.tag = 0, ""
        self.tuid: str | None = None
        self.variants: list[tuple[str, str, RowFault]] = []
        self.tags: set[str] = set()
        self.read = self.paired = 0

    def is_text(self, name: str, parent: str) -> bool:
        return name == "seg" and parent == "tuv"

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
        source, target = self._choose()
        fault = RowFault.MALFORMED
        if source is not None and target is not None:
            fault = max(self.variants[source][2], self.variants[target][2])
            self.paired += 1
        texts = ["" if chosen is None else self.variants[chosen][1] for chosen in (source, target)]
        self.units.append(RawUnit(texts[0], texts[1], self.line, self.tuid, fault))
        self.read += 1

    def _choose(self) -> tuple[int | None, int | None]:
        """The closest two variants, which are never one and the same; the first where several are as close."""
        ranks = [[closeness(language, tag) for tag, _, _ in self.variants] for language in self.languages]
        sources, targets = ([(rank, i) for i, rank in enumerate(side) if rank is not None] for side in ranks)
        pairs = [(a + b, i, j) for a, i in sources for b, j in targets if i != j]
        if pairs:
            return min(pairs)[1:]
        return (min(sources)[1], None) if sources else (None, min(targets)[1] if targets else None)

    def finish(self) -> None:
        if self.read and not self.paired:
            shown = ", ".join(sorted(self.tags)) or "none"
            raise DataError(
                f"{self.address}: none of its {self.read:,} units has both {self.languages[0]} and {self.languages[1]}; "
                f"its languages are: {shown}; name two of these"
            )


class _Xliff(_Format):
    root = "xliff"
    empty_codes_become_tags = True

    def __init__(self, part: CorpusPart) -> None:
        super().__init__(part)
        self.line, self.unit = 0, ""
        self.id: str | None = None
        self.swapped = False
        self.texts = {"source": "", "target": ""}
        self.fault = RowFault.NONE

    def is_text(self, name: str, parent: str) -> bool:
        # The parent matters: <alt-trans> and <match> have a <source> and a <target> too, of some other sentence.
        return name in self.texts and parent in ("trans-unit", "segment")

    def enter(self, name: str, attributes: Attributes, line: int) -> None:
        if name == "xliff":
            self._compare_languages(attributes.get("srcLang"), attributes.get("trgLang"), line)
        elif name == "file" and "source-language" in attributes:
            self._compare_languages(attributes["source-language"], attributes.get("target-language"), line)
        elif name == "unit":
            self.unit = attributes.get("id", "")
        elif name in ("trans-unit", "segment"):
            self.line, self.fault = line, RowFault.NONE
            self.texts = {"source": "", "target": ""}
            self.id = attributes.get("id")
            if name == "segment":
                self.id = "/".join(filter(None, [self.unit, self.id])) or None

    def take(self, name: str, text: str, fault: RowFault) -> None:
        self.texts[name] = text
        self.fault = max(self.fault, fault)

    def leave(self, name: str) -> None:
        if name in ("trans-unit", "segment"):
            source, target = self.texts["source"], self.texts["target"]
            if self.swapped:
                source, target = target, source
            self.units.append(RawUnit(source, target, self.line, self.id, self.fault))

    def _compare_languages(self, source: str | None, target: str | None, line: int) -> None:
        """A file from German to English serves a corpus from English to German too; one in French does not."""
        if source is None:
            return
        self.swapped = False
        if self._fit(self.languages, (source, target)):
            return
        if target is not None and self._fit(self.languages[::-1], (source, target)):
            self.swapped = True
            return
        raise DataError(
            f"{self.address}, line {line}: this file goes from {source} to {target or '(not said)'}, and the corpus from "
            f"{self.languages[0]} to {self.languages[1]}; leave it out, or name its languages"
        )

    @staticmethod
    def _fit(languages: tuple[str, str], tags: tuple[str, str | None]) -> bool:
        return all(
            tag is None or closeness(language, tag) is not None for language, tag in zip(languages, tags, strict=True)
        )
