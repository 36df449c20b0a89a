"""`split_by_length` cuts a translated sentence into its subtitles, and `in_lines` a subtitle into its lines.

split_by_length("Ein Satz, der lange dauert", [10, 16])  ->  ["Ein Satz,", "der lange dauert"]
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

_TAG = re.compile(r"<[^<>]*>|\{[^{}]*\}")
_SPACE = re.compile(r"\s+")
_PAUSE = ",;:.!?…)\u3001\u3002\uff0c\uff01\uff1f"
PAUSE_WORTH = 0.15  # of a part's length: a comma so far from the right place is as good as the right place itself


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
        chosen = min(few, key=lambda at: _cost(text, starts[at], ideal, each))
        parts.append(text[cursor : places[chosen][0]])
        cursor, first = places[chosen][1], chosen + 1
    return [*parts, text[cursor:]]


def in_lines(text: str, count: int, newline: str) -> str:
    """A subtitle in as many lines as before, of about the same length; in fewer if it has fewer words."""
    lines = min(count, len(_places(text)) + 1)
    return newline.join(split_by_length(text, [1] * lines) or [text])


def _cost(text: str, place: int, ideal: float, each: float) -> float:
    return abs(place - ideal) - (PAUSE_WORTH * each if text[place - 1] in _PAUSE else 0.0)


def _places(text: str) -> list[tuple[int, int]]:
    """Where it may be cut: spaces that are in no tag. In a script without spaces, between any two characters that are in no tag."""
    tags = [match.span() for match in _TAG.finditer(text)]
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
