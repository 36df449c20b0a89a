"""`segments` cuts a text into sentences and what stands between them, so that joining them loses nothing.

sentencex knows where sentences end in some 300 languages (decision 0023). What it is not asked: a line break ends a segment whatever it
says, and a tag, an address or a placeholder is never cut. `split_long` parts a sentence that a model cannot take.
"""

import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from limelight.text.careful.spans import Range, find
from limelight.text.languages import base
from limelight.text.sentence_ends import BREAKS, sentence_starts, unquote

# What may stand around a sentence without being a part of it: white space, and what `normalize` drops as invisible.
INVISIBLE = "\u00ad\u200b\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
BLANK = "".join(filter(str.isspace, map(chr, range(0x3001)))) + INVISIBLE
_LINE = re.compile(f"[^{BREAKS}]+")
_CLOSERS = re.compile(rf"(?:</[^<>]*>|[\"“](?!\w)|”|[^\S{BREAKS}]?»(?!\w))*\s*")

# sentencex knows two letters; published multilingual models call the same languages by three.
_TWO_LETTERS = {
    "amh": "am", "arb": "ar", "ben": "bn", "bul": "bg", "cat": "ca", "ces": "cs", "dan": "da", "deu": "de", "ell": "el", "eng": "en",
    "fin": "fi", "fra": "fr", "guj": "gu", "hin": "hi", "hun": "hu", "hye": "hy", "isl": "is", "ita": "it", "jpn": "ja", "kan": "kn",
    "kaz": "kk", "mal": "ml", "mar": "mr", "mya": "my", "nld": "nl", "nob": "nb", "pan": "pa", "pol": "pl", "por": "pt", "ron": "ro",
    "rus": "ru", "slk": "sk", "spa": "es", "swe": "sv", "tam": "ta", "tel": "te", "tur": "tr", "ukr": "uk", "zho": "zh",
}  # fmt: skip

# Where a long sentence is cut rather than elsewhere, best first.
_CUTS = (
    re.compile(r"[.!?…;:][\"'”“»)\]]*\s+|[。\uff01\uff1f\uff1b\uff1a]"),
    re.compile(r",\s+|\s[\u2013\u2014-]\s+|[\uff0c、]"),
    re.compile(
        r"(?<!\s)\s+(?=(?:and|or|but|because|which|while|und|oder|aber|weil|dass|denn|sondern|"  # codespell:ignore
        r"et|ou|mais|car|y|pero|porque|ed|ma|perché|e|mas|en|maar|omdat|och|og|eller|men|ale|oraz|и|или|но)\s)",
        re.IGNORECASE,
    ),
    re.compile(r"\s+"),
)


@dataclass(frozen=True)
class Segment:
    text: str
    after: str


@dataclass(frozen=True)
class Segments:
    """Segments are a text in parts: `lead`, then `text` and `after` of each part, is the text again, whatever it was."""

    lead: str
    parts: tuple[Segment, ...]


def segments(text: str, language: str) -> Segments:
    """The sentences of a text. A line break ends one, unless it stands inside a tag; no part is blank, and nothing is lost.

    segments(" One.  Two.\\n\\nThree", "en")  ->  lead " ", parts "One." "  ", "Two." "\\n\\n", "Three" ""
    A language that sentencex does not know is cut by the rules of English.
    """
    code = base(language)
    code = _TWO_LETTERS.get(code, code)
    spans = find(text)
    seen = unquote(_as_words(text, spans))
    starts = list[int]()
    for line in _LINE.finditer(seen):
        reached = line.start()
        for at in sentence_starts(line.group(), code):
            starts.append(_before_its_signs(text, seen, reached, line.start() + at))
            reached = line.start() + at
        starts.append(line.end())  # the break is blank, and goes to what stands before it
    return _split_at(text, _Spans(spans).outside(starts))


def split_long(text: str, length: Callable[[str], int], longest: int) -> list[Segment]:
    """A sentence in parts with `length(part)` at most `longest`: cut after a clause, a comma, before "and", at a space, or anywhere.

    Cuts are near where they part the text evenly. Joined, the parts are the text. A span that must stay whole (a tag, an address) is not
    cut, nor a letter from its accent: such a part alone may be longer than `longest`.
    """
    spans = _Spans(find(text))
    candidates = [spans.outside([match.end() for match in cut.finditer(text)]) for cut in _CUTS]
    places, todo = list[int](), [(0, len(text))]
    while todo:
        start, end = todo.pop()
        size = length(text[start:end].strip(BLANK))
        if size > longest and (place := _best_place(text, start, end, math.ceil(size / longest), candidates, spans)):
            places.append(place)
            todo += [(start, place), (place, end)]
    parted = _split_at(text, places)
    first, *others = parted.parts or (Segment("", ""),)
    return [Segment(parted.lead + first.text, first.after), *others]


class _Spans:
    def __init__(self, found: Sequence[Range]) -> None:
        self.starts = [start for start, _, _ in found]
        self.ends = [end for _, end, _ in found]

    def cuts(self, place: int) -> bool:
        """Is there a span on both sides of this place?"""
        at = bisect_left(self.starts, place) - 1
        return at >= 0 and place < self.ends[at]

    def outside(self, places: Sequence[int]) -> list[int]:
        return [place for place in places if not self.cuts(place)]


def _split_at(text: str, starts: Sequence[int]) -> Segments:
    """The text cut at the given places; the blank ends of a part go to its `after`, what is all blank to the `after` before it."""
    lead, parts = list[str](), list[tuple[str, list[str]]]()
    bounds = sorted({0, *starts, len(text)})
    for start, end in pairwise(bounds):
        part = text[start:end]
        rest = part.lstrip(BLANK)
        (parts[-1][1] if parts else lead).append(part[: len(part) - len(rest)])
        if rest:
            body = rest.rstrip(BLANK)
            parts.append((body, [rest[len(body) :]]))
    return Segments("".join(lead), tuple(Segment(body, "".join(after)) for body, after in parts))


def _as_words(text: str, spans: Sequence[Range]) -> str:
    """The text as sentencex sees it, of the same length: tags are blanks, whatever else must stay whole is a word."""
    pieces, reached = list[str](), 0
    for start, end, kind in spans:
        if kind in ("number", "emoji"):  # a word would hide what it is
            continue
        blank = kind == "tag" or text[start:end].lower() in ("&nbsp;", "&#160;", "&#xa0;")
        pieces += [text[reached:start], " " * (end - start) if blank else "X" + "x" * (end - start - 1)]
        reached = end
    return "".join([*pieces, text[reached:]])


def _before_its_signs(text: str, seen: str, reached: int, start: int) -> int:
    """Which tags and quotation marks before a sentence are its own: not those that close, and none before a space."""
    edge = reached + len(seen[reached:start].rstrip())
    closers = _CLOSERS.match(text, edge)
    return min(start, closers.end()) if closers else start


def _best_place(text: str, start: int, end: int, parts: int, candidates: Sequence[list[int]], spans: _Spans) -> int | None:
    """Where to cut text[start:end], which is to become `parts` parts: the best kind of place near the even cut, of these the nearest."""
    ideal = start + (end - start) * (parts // 2) // parts
    radius = max(1, (end - start) // (2 * parts))
    part = text[start:end]
    first, last = end - len(part.lstrip(BLANK)), start + len(part.rstrip(BLANK))  # neither side is to be blank
    lowest, highest = max(first + 1, ideal - radius), min(last - 1, ideal + radius)
    for places in candidates:
        near = places[bisect_left(places, lowest) : bisect_right(places, highest)]
        if near:
            return min(near, key=lambda place: abs(place - ideal))
    for away in range(end - start):
        for place in (ideal - away, ideal + away):
            if start < place < end and not spans.cuts(place) and not _joins(text, place):
                return place
    return None


def _joins(text: str, place: int) -> bool:
    """Do the characters before and after this place make one sign? An accent, a variant, a joiner, a colour of skin."""
    after = text[place]
    colours = "\U0001f3fb" <= after <= "\U0001f3ff"
    return colours or unicodedata.category(after).startswith("M") or "\u200d" in text[place - 1 : place + 1]
