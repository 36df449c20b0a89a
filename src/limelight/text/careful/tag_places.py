"""`find_tag_places` says where the tags of a sentence belong in its translation, by where each piece of the translation came from.

    A <b>girl</b> runs.   and   Ein  Mädchen  läuft  .      Mädchen came from girl   ->   Ein <b>Mädchen</b> läuft.

A pair of tags stands around the run of words that came from what it is around. What stood inside another stands inside it again, and beside
it what stood beside it, so tags are nested as they were. A tag without another stands where what came before it parts best from what came
after it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.floating]

Letters = Sequence[tuple[int, int]]
Range = tuple[int, int]
HALF = 0.5  # of what a word came from; with less it is not of the pair
LITTLE = 0.2  # of a word: then nothing of the translation is what was between the tags


class TagPlace(NamedTuple):
    """A tag, by the number of its span, and where it stands: how many letters come before, and is it between marks of punctuation?"""

    number: int
    letters: int
    follows_punctuation: bool = False
    precedes_punctuation: bool = False


@dataclass
class TagElement:
    """An element is a pair of tags, or one without another: then it has no `closing`, and `stop` is `begin`."""

    opening: int  # the number of the span
    closing: int | None
    begin: int  # letters of the source before it, and before its end
    stop: int
    edges: tuple[bool, bool] = (False, False)  # does it begin, or end, with punctuation?
    children: list["TagElement"] = field(default_factory=list)
    range: Range = (0, 0)  # words of the translation


def build_elements(tags: Sequence[TagPlace], nested: Sequence[tuple[int, int]]) -> list[TagElement]:
    """`tags` in their order; `nested`: (opening, closing), never crossing."""
    closing_of = dict(nested)
    closings = set(closing_of.values())
    roots: list[TagElement] = []
    opened: list[TagElement] = []
    for tag in tags:
        if tag.number in closings:
            ended = opened.pop()
            ended.stop, ended.edges = tag.letters, (ended.edges[0], tag.follows_punctuation)
            continue
        one = TagElement(tag.number, closing_of.get(tag.number), tag.letters, tag.letters, (tag.precedes_punctuation, False))
        (opened[-1].children if opened else roots).append(one)
        if one.closing is not None:
            opened.append(one)
    return roots


def find_tag_places(elements: Sequence[TagElement], letters: Letters, came_from: "Floats", solid: Sequence[bool]) -> list[tuple[int, int]]:
    """(Word of the translation before which it stands, number of the tag), in the order in which they stand.

    `letters`: begin and end of each source piece; `came_from`: what each word of the translation took from each source piece; `solid`: is
    it more than punctuation?
    """
    _place(elements, 0, len(came_from), letters, came_from, solid)
    return list(_list_places(elements))


def _place(elements: Sequence[TagElement], low: int, high: int, letters: Letters, came_from: "Floats", solid: Sequence[bool]) -> None:
    """Pairs come first, those that have most; then what has no other, beside them."""
    free = [(low, high)]
    pairs = [(_list_shares(one, letters, came_from), one) for one in elements if one.stop > one.begin]
    for taken, one in sorted(pairs, key=lambda pair: -max(pair[0], default=0.0)):
        one.range = _find_run(one, taken, free, letters, came_from, solid)
        free = [part for begin, end in free for part in _cut_out(begin, end, one.range)]
        _place(one.children, *one.range, letters, came_from, solid)
    for one in elements:
        if one.stop <= one.begin:
            at = _find_border(one.begin, free, letters, came_from)
            one.range = at, at
            _place(one.children, at, at, letters, came_from, solid)


def _list_shares(one: TagElement, letters: Letters, came_from: "Floats") -> list[float]:
    """What each word took from between the tags."""
    inside = [_share(one.begin, one.stop, *piece) for piece in letters]
    return [sum(share * part for share, part in zip(inside, word, strict=True)) for word in came_from.tolist()]


def _find_run(
    one: TagElement, taken: Sequence[float], free: Sequence[Range], letters: Letters, came_from: "Floats", solid: Sequence[bool]
) -> Range:
    """The words of which most is from between the tags, together; else the one that took most; else the next one where the tags stood."""
    gains = [inside - HALF * whole for inside, whole in zip(taken, came_from.sum(axis=1).tolist(), strict=True)]
    begins, ends = ([edge or word for word in solid] for edge in one.edges)
    best, run = max(_best_run(gains, *part, begins, ends) for part in free)
    words = [at for begin, end in free for at in range(begin, end) if begins[at] and ends[at]]
    if best > 0 or not words:
        return run
    most = max(words, key=lambda at: taken[at])
    if taken[most] < LITTLE:
        border = _find_border(one.begin, free, letters, came_from)
        most = min(words, key=lambda at: (abs(at - border), -at))
    return most, most + 1


def _share(begin: float, stop: float, first: float, last: float) -> float:
    """The part of a piece that stands between two places."""
    if last <= first:
        return float(begin <= first < stop)
    return max(0.0, min(stop, last) - max(begin, first)) / (last - first)


def _best_run(gains: Sequence[float], low: int, high: int, begins: Sequence[bool], ends: Sequence[bool]) -> tuple[float, Range]:
    """The run of words that has most together, from one that may begin it to one that may end it."""
    best, found = float("-inf"), (low, low)
    begin, total = low, float("-inf")
    for at in range(low, high):
        if begins[at] and total <= 0:
            begin, total = at, 0.0
        total += gains[at]
        if ends[at] and total > best:
            best, found = total, (begin, at + 1)
    return best, found


def _find_border(place: int, free: Sequence[Range], letters: Letters, came_from: "Floats") -> int:
    """Where most of what stands before came from before the place, and most of what follows from behind it."""
    before = [_share(0, place, *piece) - HALF for piece in letters]
    turns = [sum(share * part for share, part in zip(before, word, strict=True)) for word in came_from.tolist()]
    reached = list(accumulate(turns, initial=0.0))
    return max((at for begin, end in free for at in range(begin, end + 1)), key=lambda at: reached[at])


def _cut_out(begin: int, end: int, taken: Range) -> list[Range]:
    """What is left of a part of the translation on both sides of a run; nothing of it can be inside."""
    if taken[0] < begin or taken[1] > end:
        return [(begin, end)]
    return [(begin, taken[0]), (taken[1], end)]


def _list_places(elements: Sequence[TagElement]) -> Iterator[tuple[int, int]]:
    for one in sorted(elements, key=lambda each: each.range):
        yield one.range[0], one.opening
        if one.closing is not None:
            yield from _list_places(one.children)
            yield one.range[1], one.closing
