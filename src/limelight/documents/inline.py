"""Inline items are the words, tags and single things inside a sentence, which are paired, cut, folded and trimmed.

pair        which tags belong together
cut         a line of items into sentences, at tags that belong to nothing inside
fold_pairs  a pair without words inside is one thing: <code>x</code>, <a id="here"></a>, <sup>2</sup>
trim_edges  blanks, single things and tags around the whole go to the edges, where the translator need not see them
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

from limelight.documents.units import has_words

BLANKS = " \t\r\n\f"  # white space of XML and HTML; a no-break space is text


class InlineItem(NamedTuple):
    """An item is a stretch of the document."""

    kind: Literal["text", "open", "close", "single"]
    start: int
    end: int
    text: str = ""  # of a text: as its reader sees it
    name: str = ""  # of a tag: what an opening and its closing have in common


@dataclass(frozen=True)
class Pairing:
    partner: dict[int, int]  # of each opening and closing that belong together, in both directions
    stray: frozenset[int]  # tags without a partner, and tags that are not nested with them


def pair(items: Sequence[InlineItem]) -> Pairing:
    """<b>x</b></i> -> {0: 2, 2: 0} and the stray 3. A pair with a stray inside is no pair: <b>x</i></b> has three strays."""
    partner: dict[int, int] = {}
    if not any(item.kind in ("open", "close") for item in items):
        return Pairing(partner, frozenset())
    open_: list[int] = []
    for at, item in enumerate(items):
        if item.kind == "open":
            open_.append(at)
        elif item.kind == "close" and open_ and items[open_[-1]].name == item.name:
            partner[at], partner[open_[-1]] = open_[-1], at
            open_.pop()
    alone = [item.kind in ("open", "close") and at not in partner for at, item in enumerate(items)]
    before = [
        0,
        *accumulate(alone),
    ]  # pairs are nested, so one look at each is enough: a pair around a broken one has its stray inside too
    broken = {at for at, other in partner.items() if before[max(at, other)] > before[min(at, other)]}
    stray = frozenset(at for at, is_alone in enumerate(alone) if is_alone) | broken
    return Pairing({at: other for at, other in partner.items() if at not in broken}, stray)


def cut(items: Sequence[InlineItem]) -> list[list[InlineItem]]:
    """Cut at every stray tag, which belongs to no part."""
    parts: list[list[InlineItem]] = [[]]
    stray = pair(items).stray
    for at, item in enumerate(items):
        if at in stray:
            parts.append([])
        else:
            parts[-1].append(item)
    return [part for part in parts if part]


def fold_pairs(items: Sequence[InlineItem]) -> list[InlineItem]:
    """Every outermost pair without words inside becomes a single thing."""
    partner = pair(items).partner
    words = [0, *accumulate(item.kind == "text" and has_words(item.text) for item in items)]
    result: list[InlineItem] = []
    at = 0
    while at < len(items):
        end = partner.get(at, -1)
        if end > at and words[end] == words[at]:
            result.append(InlineItem("single", items[at].start, items[end].end))
            at = end
        else:
            result.append(items[at])
        at += 1
    return result


def trim_edges(items: Sequence[InlineItem], document: str, read: Callable[[str], str]) -> list[InlineItem]:
    """The items from the first that matters to the last. `read` turns what stands in the document into what its reader sees."""
    partner = pair(items).partner
    first, last = 0, len(items) - 1
    while first <= last:
        if _is_edge(items[first]):
            first += 1
        elif _is_edge(items[last]):
            last -= 1
        elif partner.get(first) == last:
            first, last = first + 1, last - 1
        else:
            break
    inner = list(items[first : last + 1])
    if inner:
        inner[0] = _without_blanks(inner[0], document, read, left=True)
        inner[-1] = _without_blanks(inner[-1], document, read, left=False)
    return inner


def _is_edge(item: InlineItem) -> bool:
    return item.kind == "single" or (item.kind == "text" and not item.text.strip())


def _without_blanks(item: InlineItem, document: str, read: Callable[[str], str], left: bool) -> InlineItem:
    raw = document[item.start : item.end]
    bare = raw.lstrip(BLANKS) if left else raw.rstrip(BLANKS)
    if item.kind != "text" or bare == raw:
        return item
    start, end = (item.end - len(bare), item.end) if left else (item.start, item.start + len(bare))
    return item._replace(start=start, end=end, text=read(bare))
