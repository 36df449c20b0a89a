"""`find_srt` joins a sentence that runs over several subtitles; its translation is split again by length. Numbers and times stay.

Lines of a dialogue (- Yes. - No.) are texts of their own. Tags and positions ({\\an8}, <i>) stay; a cue with tags inside is not joined.
WebVTT is the same with entities, voices (<v Ann>), times inside a cue, and blocks that are no cues (NOTE, STYLE), which stay.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from typing import NamedTuple

from limelight.documents.encodings import Document
from limelight.documents.sentences import InlineItem, Sentence
from limelight.documents.splices import LineCounter, Part, Splice, join_parts, line_places
from limelight.documents.units import DocumentUnit, ExtractionResult, edges, escape, replace_controls

MOST_JOINED = 6  # cues of one sentence; text without full stops would else become one
LONGEST_JOINED = 500  # characters
LONGEST_GAP = 2_000  # milliseconds: after a longer silence someone else speaks
PAUSE_WORTH = 0.15  # of a part's length: a comma so far from the right place is as good as the right place itself

_TIME = r"(?:(\d{1,3}):)?(\d{2}):(\d{2})[,.](\d{1,3})"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_TAG = re.compile(r"</?([A-Za-z]{1,9})\b[^<>\n]{0,200}>|\{\\[^{}\n]{0,200}\}|<[\d:.]{5,20}>")
_DASH = re.compile(r"\s*[-\u2013\u2014]\s*(?=\S)")
_END = re.compile(r"[.!?:\u2026\u266a\u3002\uff01\uff1f\u061f\u0964][\"'\u2019\u201d\u00bb)\]]*$")
_MARKUP = re.compile(r"<[^<>]*>|\{[^{}]*\}")
_SPACE = re.compile(r"[^\S\u00a0\u2000-\u200a\u202f\u205f\u3000]+")  # not what a translator chose, such as the one before a French "?"
_PAUSE = ",;:.!?…)\u3001\u3002\uff0c\uff01\uff1f"
_APART = re.compile(r"[-\u2013\u2014(\[\u266a#]")  # how a cue begins that goes on with nothing


class Cue(NamedTuple):
    """A cue has times in milliseconds, and the lines of its text as places in the document, without their ends."""

    begin: int
    end: int
    lines: tuple[tuple[int, int], ...]


class _Stretch(NamedTuple):
    sentence: Sentence
    cue: Cue
    lines: int
    joinable: bool


def find_srt(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    text = document.text
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = LineCounter(text)
    stretches: list[_Stretch] = []
    for cue in cues(text):
        document.check_time()
        stretches += _stretches(text, cue)
    units = []
    for group in _groups(stretches):
        document.check_time()
        if group[0].sentence.has_words:  # what has none is a group of its own
            units.append(_unit(lines.of(group[0].sentence.start), text, newline, group))
    return ExtractionResult(units)


def _unit(line: int, document: str, newline: str, stretches: Sequence[_Stretch]) -> DocumentUnit:
    """A sentence that stands in one or more stretches. Those of several have no tags."""
    texts = tuple(stretch.sentence.text for stretch in stretches)
    whole_text = " ".join(texts)
    runs = texts if len(texts) > 1 else stretches[0].sentence.runs

    def splice(stretch: _Stretch, parts: Sequence[Part]) -> Splice:
        text = join_parts(document, parts)
        text = _SPACE.sub(" ", text).strip(" ").replace("-->", "→")  # parted, it could stand on a line of its own and begin a cue
        return Splice(stretch.sentence.start, stretch.sentence.end, (in_lines(text, stretch.lines, newline),))

    def write(translations: Sequence[str]) -> list[Splice] | None:
        made = [one.sentence.whole(text) for one, text in zip(stretches, translations, strict=True)]
        splices = [splice(one, parts) for one, parts in zip(stretches, made, strict=True) if parts is not None]
        return splices if len(splices) == len(stretches) else None

    def whole(translation: str) -> list[Splice] | None:
        if translation == whole_text:
            return []
        if len(texts) == 1:
            return write([translation])
        parts = split_by_length(replace_controls(translation).strip(), list(map(len, texts)))
        return None if parts is None else write(parts)

    def apart(translations: Sequence[str]) -> list[Splice]:
        if tuple(translations) == runs:
            return []
        if len(texts) == 1:
            return [splice(stretches[0], stretches[0].sentence.apart(translations))]
        return write(translations) or []

    return DocumentUnit(line, whole_text, whole, runs, apart)


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
    return (int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)) * 1000 + int(rest.ljust(3, "0"))


def _stretches(text: str, cue: Cue) -> Iterator[_Stretch]:
    dashes = [dash.end() for start, end in cue.lines if (dash := _DASH.match(text, start, end))]
    if len(cue.lines) > 1 and len(dashes) == len(cue.lines):
        for start, (_, end) in zip(dashes, cue.lines, strict=True):
            yield _stretch(text, cue, start, end, joinable=False)
    elif cue.lines:
        yield _stretch(text, cue, cue.lines[0][0], cue.lines[-1][1], joinable=True)


def _stretch(text: str, cue: Cue, start: int, end: int, joinable: bool) -> _Stretch:
    sentence = Sentence(_items(text, start, end), text, _reader(text), escape if _is_vtt(text) else replace_controls)
    plain = sentence.has_words and len(sentence.items) == 1
    lines = text.count("\n", sentence.start, sentence.end) + 1
    return _Stretch(sentence, cue, lines, joinable and plain)


def _items(text: str, start: int, end: int) -> list[InlineItem]:
    items, read = [], _reader(text)
    for tag in _TAG.finditer(text, start, end):
        if start < tag.start():
            items.append(InlineItem("text", start, tag.start(), read(text[start : tag.start()])))
        kind = "single" if tag[1] in (None, "v") else "close" if tag[0][1] == "/" else "open"
        items.append(InlineItem(kind, tag.start(), tag.end(), name=(tag[1] or "").lower()))  # type: ignore[arg-type]
        start = tag.end()
    if start < end:
        items.append(InlineItem("text", start, end, read(text[start:end])))
    return items


def _groups(stretches: Sequence[_Stretch]) -> list[list[_Stretch]]:
    groups: list[list[_Stretch]] = []
    for stretch in stretches:
        if groups and _goes_on(groups[-1], stretch):
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
    return groups


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


def _is_vtt(document: str) -> bool:
    return document.startswith("WEBVTT")


def _reader(document: str) -> Callable[[str], str]:
    return (lambda raw: unescape(_read(raw))) if _is_vtt(document) else _read


def split_by_length(text: str, lengths: Sequence[int]) -> list[str] | None:
    """As many parts as there are lengths, none empty, and about as long in proportion. None if the text has too few words for it."""
    places = _places(text)
    if len(places) < len(lengths) - 1:
        return None
    starts = [start for start, _ in places]
    total, each = sum(lengths), len(text) / len(lengths)
    parts: list[str] = []
    cursor = first = wanted = 0
    for number, length in enumerate(lengths[:-1], start=1):
        wanted += length
        ideal = len(text) * wanted / max(total, 1)
        last = len(places) - (len(lengths) - 1 - number)  # enough must be left for the parts that follow
        near = min(max(first, bisect_left(starts, ideal)), last - 1)
        far = min(abs(starts[at] - ideal) for at in (near, max(first, near - 1))) + PAUSE_WORTH * each
        # What is farther away costs more, whatever it is.
        few = range(max(first, bisect_left(starts, ideal - far)), min(last, bisect_right(starts, ideal + far)))
        chosen = min(few, key=lambda at: abs(starts[at] - ideal) - (PAUSE_WORTH * each if text[starts[at] - 1] in _PAUSE else 0.0))
        parts.append(text[cursor : places[chosen][0]])
        cursor, first = places[chosen][1], chosen + 1
    return [*parts, text[cursor:]]


def in_lines(text: str, count: int, newline: str) -> str:
    """A subtitle in as many lines as before, of about the same length; in fewer if it has fewer words."""
    lines = min(count, len(_places(text)) + 1)
    return newline.join(split_by_length(text, [1] * lines) or [text])


def _places(text: str) -> list[tuple[int, int]]:
    """Where it may be cut: spaces that are in no tag. In a script without spaces, between any two characters that are in no tag."""
    tags = [match.span() for match in _MARKUP.finditer(text)]
    spaces = [match.span() for match in _SPACE.finditer(text)]
    found = _outside(spaces, tags)
    if not found and not text.isascii():
        between = [(at, at) for at in range(1, len(text)) if text[at] not in _PAUSE]
        found = _outside(between, tags)
    return found


def _outside(places: list[tuple[int, int]], tags: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the places that are in no tag; both are sorted."""
    result, at = [], 0
    for place in places:
        while at < len(tags) and tags[at][1] <= place[0]:
            at += 1
        if at == len(tags) or place[1] <= tags[at][0]:
            result.append(place)
    return result
