"""`find_srt` joins a sentence that runs over several subtitles; its translation is split again by length. Numbers and times stay:

    1                                    1
    00:00:01,000 --> 00:00:03,000        00:00:01,000 --> 00:00:03,000
    The ice cap shows,                   Die Eiskappe zeigt
    in a sense,                          gewissermaßen

Lines of a dialogue (- Yes. - No.) are texts of their own. Tags and positions ({\\an8}, <i>) stay; a cue with tags inside is not joined.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from limelight.documents.encodings import Document
from limelight.documents.formats.cue_parts import in_lines, split_by_length
from limelight.documents.inline import InlineItem
from limelight.documents.sentences import Sentence
from limelight.documents.splices import LineCounter, Part, Splice, line_places
from limelight.documents.units import DocumentUnit, ExtractionResult, edges, replace_controls

MOST_JOINED = 6  # cues of one sentence; text without full stops would else become one
LONGEST_JOINED = 500  # characters
LONGEST_GAP = 2_000  # milliseconds: after a longer silence someone else speaks

_TIMES = re.compile(
    r"\s*(\d{1,3}):(\d{2}):(\d{2})[,.](\d{1,3})\s*-->\s*(\d{1,3}):(\d{2}):(\d{2})[,.](\d{1,3})(?:\s.*)?"
)
_TAG = re.compile(r"</?([A-Za-z]{1,9})\b[^<>\n]{0,200}>|\{\\[^{}\n]{0,200}\}")
_DASH = re.compile(r"\s*[-\u2013\u2014]\s*(?=\S)")
_END = re.compile(r"[.!?:\u2026\u266a\u3002\uff01\uff1f\u061f\u0964][\"'\u2019\u201d\u00bb)\]]*$")
_APART = re.compile(r"[-\u2013\u2014(\[\u266a#]")  # how a cue begins that goes on with nothing


class Cue(NamedTuple):
    """A cue has times in milliseconds, and the lines of its text as places in the document, without their ends."""

    begin: int
    end: int
    lines: tuple[tuple[int, int], ...]


class _Stretch(NamedTuple):
    """A cue or one line of a dialogue, ready to be translated."""

    sentence: Sentence
    cue: Cue
    lines: int
    joinable: bool


@dataclass(frozen=True)
class SpokenSentence:
    """The sentence stands in one or more stretches."""

    line: int
    document: str
    newline: str
    stretches: tuple[_Stretch, ...]
    text: str = field(init=False)
    runs: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        texts = tuple(stretch.sentence.text for stretch in self.stretches)
        object.__setattr__(self, "text", " ".join(texts))
        object.__setattr__(self, "runs", texts if len(texts) > 1 else self.stretches[0].sentence.runs)

    def whole(self, translation: str) -> list[Splice] | None:
        if translation == self.text:
            return []
        if len(self.stretches) == 1:
            return self._write(self.stretches, [translation])
        parts = split_by_length(
            replace_controls(translation).strip(), [len(stretch.sentence.text) for stretch in self.stretches]
        )
        return None if parts is None else self._write(self.stretches, parts)

    def apart(self, translations: Sequence[str]) -> list[Splice]:
        if tuple(translations) == self.runs:
            return []
        if len(self.stretches) > 1:
            written = self._write(self.stretches, translations)
            assert written is not None, "stretches of several cues have no tags"
            return written
        sentence = self.stretches[0].sentence
        return [self._splice(self.stretches[0], self._resolve(sentence.apart(translations)))]

    def _write(self, stretches: Sequence[_Stretch], translations: Sequence[str]) -> list[Splice] | None:
        splices = []
        for stretch, translation in zip(stretches, translations, strict=True):
            parts = stretch.sentence.whole(translation)
            if parts is None:
                return None
            splices.append(self._splice(stretch, self._resolve(parts)))
        return splices

    def _splice(self, stretch: _Stretch, text: str) -> Splice:
        text = " ".join(text.split()).replace("-->", "→")  # parted, it could stand on a line of its own and begin a cue
        text = in_lines(text, stretch.lines, self.newline)
        return Splice(stretch.sentence.start, stretch.sentence.end, (text,))

    def _resolve(self, parts: Sequence[Part]) -> str:
        return "".join(part if isinstance(part, str) else self.document[part.start : part.end] for part in parts)


def find_srt(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    text = document.text
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = LineCounter(text)
    stretches: list[_Stretch] = []
    for cue in cues(text):
        document.check_time()
        stretches += [stretch for stretch in _stretches(text, cue) if stretch.sentence.has_words]
    units: list[DocumentUnit] = []
    for group in _groups(stretches):
        document.check_time()
        units.append(SpokenSentence(lines.of(group[0].sentence.start), text, newline, tuple(group)))
    return ExtractionResult(units)


def cues(text: str) -> list[Cue]:
    """Every line with times, and the lines after it up to an empty one, or up to the number of the next cue."""
    places = line_places(text)
    times = {at: found for at, (start, end) in enumerate(places) if (found := _TIMES.fullmatch(text[start:end]))}
    result = []
    for at, found in times.items():
        inside = []
        for number in range(at + 1, len(places)):
            start, end = places[number]
            blank = not text[start:end].strip()
            if blank or number in times or (number + 1 in times and text[start:end].strip().isdigit()):
                break
            inside.append((start, end))
        result.append(Cue(_milliseconds(found.groups()[:4]), _milliseconds(found.groups()[4:]), tuple(inside)))
    return result


def _milliseconds(groups: Sequence[str]) -> int:
    hours, minutes, seconds, rest = groups
    return (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1000 + int(rest.ljust(3, "0"))


def _stretches(text: str, cue: Cue) -> Iterator[_Stretch]:
    if not cue.lines:
        return
    dashes = [_DASH.match(text, start, end) for start, end in cue.lines]
    if len(cue.lines) > 1 and all(dashes):
        for dash, (_, end) in zip(dashes, cue.lines, strict=True):
            assert dash is not None
            yield _stretch(text, cue, dash.end(), end, joinable=False)
        return
    yield _stretch(text, cue, cue.lines[0][0], cue.lines[-1][1], joinable=True)


def _stretch(text: str, cue: Cue, start: int, end: int, joinable: bool) -> _Stretch:
    sentence = Sentence(_items(text, start, end), text, _read, replace_controls)
    plain = bool(sentence.text) and len(sentence.items) == 1
    lines = text.count("\n", sentence.start, sentence.end) + 1
    return _Stretch(sentence, cue, lines, joinable and plain)


def _items(text: str, start: int, end: int) -> list[InlineItem]:
    items = []
    for tag in _TAG.finditer(text, start, end):
        if start < tag.start():
            items.append(InlineItem("text", start, tag.start(), _read(text[start : tag.start()])))
        kind = "single" if tag[1] is None else "close" if tag[0][1] == "/" else "open"
        items.append(InlineItem(kind, tag.start(), tag.end(), name=(tag[1] or "").lower()))  # type: ignore[arg-type]
        start = tag.end()
    if start < end:
        items.append(InlineItem("text", start, end, _read(text[start:end])))
    return items


def _groups(stretches: Sequence[_Stretch]) -> Iterator[list[_Stretch]]:
    group: list[_Stretch] = []
    for stretch in stretches:
        if group and not _goes_on(group, stretch):
            yield group
            group = []
        group.append(stretch)
    if group:
        yield group


def _goes_on(group: Sequence[_Stretch], stretch: _Stretch) -> bool:
    last = group[-1]
    if not (last.joinable and stretch.joinable) or _END.search(last.sentence.text):
        return False
    if not 0 <= stretch.cue.begin - last.cue.end <= LONGEST_GAP or _APART.match(stretch.sentence.text):
        return False
    size = sum(len(one.sentence.text) for one in (*group, stretch))
    return len(group) < MOST_JOINED and size <= LONGEST_JOINED


def _read(raw: str) -> str:
    lead, core, trail = edges(raw)
    return (" " if lead else "") + " ".join(core.split()) + (" " if trail else "")
