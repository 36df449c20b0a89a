"""`apply_splices` puts new text in place of old text and copies all that lies between, so nothing is written anew:

    apply_splices("<p>Hi</p>", [Splice(3, 5, ("Hallo",))])  ->  "<p>Hallo</p>"

A tag inside a sentence may move with its words, and its attributes may be translated too. So new text is made of strings and of ranges
of the document, and a range is copied with the small splices (attributes) that lie in it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple


class Range(NamedTuple):
    start: int
    end: int


Part = str | Range


class Splice(NamedTuple):
    """A splice replaces the text from `start` up to `end` by `parts`. An insertion has start == end."""

    start: int
    end: int
    parts: tuple[Part, ...]
    small: bool = False  # may lie inside a range that another splice moves, which may be small, too


def join_parts(text: str, parts: Iterable[Part]) -> str:
    return "".join(part if isinstance(part, str) else text[part.start : part.end] for part in parts)


def apply_splices(text: str, splices: Sequence[Splice]) -> str:
    """The document with every splice made. Splices do not overlap, except that small ones may lie inside ranges of large ones."""
    ordered = sorted(splices, key=itemgetter(0, 1))
    small = [splice for splice in ordered if splice.small]
    starts = [splice.start for splice in small]
    pieces: list[str] = []

    def copy(start: int, end: int) -> None:
        for splice in small[bisect_left(starts, start) : bisect_left(starts, end)]:
            if start <= splice.start and splice.end <= end:  # not one inside of another, which copies it
                pieces.append(text[start : splice.start])
                put(splice.parts)
                start = splice.end
        pieces.append(text[start:end])

    def put(parts: Iterable[Part]) -> None:
        for part in parts:
            if isinstance(part, str):
                pieces.append(part)
            else:
                copy(*part)

    cursor = 0
    for splice in ordered:
        if splice.small:
            continue
        assert splice.start >= cursor, "two splices overlap"
        copy(cursor, splice.start)
        put(splice.parts)
        cursor = splice.end
    copy(cursor, len(text))
    return "".join(pieces)


class LineCounter:
    """The counter gives the line number, from 1, of places that are asked for about in order: it counts from the last one, on or back."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def of(self, place: int) -> int:
        self._line += self._text.count("\n", self._at, place) - self._text.count("\n", place, self._at)
        self._at = place
        return self._line


def line_places(text: str) -> list[tuple[int, int]]:
    """Where each line stands, without its end, which is \\n or \\r\\n."""
    places, start = [], 0
    for line in text.split("\n"):
        places.append((start, start + len(line) - line.endswith("\r")))
        start += len(line) + 1
    return places
