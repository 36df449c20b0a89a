"""A `Sentence` shows its markup to the translator as short tags, and gets the document's own tags back:

    Open <a href="https://...">the settings</a> of <img src="x.png"> now
    Open <g id="1">the settings</g> of <x id="2"/> now

The tags are those of XLIFF, numbered, so that it is known which is which when they come back in another order. A translation is taken
only if every tag is there once, inside the same tag as before, and none that held words is empty: then the document keeps its tree, and
only siblings inside one sentence may have changed places. Else the texts between the tags are translated one by one (`apart`).

Before that its items, the words, tags and single things inside, are
cut          into sentences, at tags that belong to nothing inside
folded       a pair without words inside is one thing: <code>x</code>, <a id="here"></a>, <sup>2</sup>
trimmed      blanks, single things and tags around the whole go to the edges, where the translator need not see them
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from limelight.documents.splices import LineCounter, Part, Range, Splice
from limelight.documents.units import DocumentUnit, edges, has_words

BLANKS = " \t\r\n\f"  # white space of XML and HTML; a no-break space is text
_TAGS = re.compile(r'<g id="(\d{1,6})">|(</g>)|<x id="(\d{1,6})"/>')
_LIKE_OURS = re.compile(r"<\s{0,9}/?\s{0,9}[gx]\b")  # in the document's own text: then ours could not be told from it
MOST_TAGS = 999_999


def count_characters(texts: Sequence[str]) -> int:
    """Those of a document itself: our tags, which stand for its own, are none of them."""
    return sum(len(_TAGS.sub("", text)) for text in texts)


class InlineItem(NamedTuple):
    kind: Literal["text", "open", "close", "single"]
    start: int
    end: int
    text: str = ""  # of a text: as its reader sees it
    name: str = ""  # of a tag: what an opening and its closing have in common
    written: str = ""  # what is written for it, where that is not what stands there


class Pairing(NamedTuple):
    partner: dict[int, int]  # of each opening and closing that belong together, in both directions
    stray: frozenset[int]  # tags without a partner, and tags that are not nested with them


class _Shape(NamedTuple):
    parents: dict[int, tuple[int, bool]]  # of each number: that of the tag around it, and whether it is a single one
    worded: set[int]  # those with words inside


class Sentence:
    """A sentence has its items without its edges. `start` and `end` are the place of its core in the document."""

    def __init__(self, items: Sequence[InlineItem], document: str, read: Callable[[str], str], write: Callable[[str], str]) -> None:
        self.items = trim_edges(fold_pairs(items), document, read)
        self.write = write
        self.start = self.items[0].start if self.items else 0
        self.end = self.items[-1].end if self.items else 0
        self._pairing = pair(self.items)
        tags = [at for at, item in enumerate(self.items) if item.kind in ("open", "single")]
        self._place = dict(enumerate(tags, start=1))
        alike = any(_LIKE_OURS.search(item.text) for item in self.items if item.kind == "text")
        shown = "" if self._pairing.stray or alike or len(tags) > MOST_TAGS else self._number_tags()
        # Blanks that were written as &nbsp; or &#10; are no edge of the document, but one of the text.
        self._lead, self.text, self._trail = edges(shown)

    @property
    def has_words(self) -> bool:
        return any(map(_is_run, self.items))

    @property
    def has_text(self) -> bool:
        """Words, or numbers and signs without a tag among them, which a memory may have."""
        return self.has_words or bool(self.text and not self._place)

    @property
    def runs(self) -> tuple[str, ...]:
        """The words of each text between tags, without the blanks around them; nothing where the whole is one such text."""
        if self.text and not self._place:
            return ()
        return tuple(edges(item.text)[1] for item in self.items if _is_run(item))

    def whole(self, translation: str) -> tuple[Part, ...] | None:
        """The translation with the document's own tags; None if they are not all in their places.

        In a sentence without tags whatever looks like one is text.
        """
        if not self._place:
            return (self.write(self._lead + translation + self._trail),)
        before, now = _find_shape(self.text), _find_shape(translation)
        if now is None or before is None or now.parents != before.parents or not before.worded <= now.worded:
            return None
        if _LIKE_OURS.search(_TAGS.sub("", translation)):  # half a tag is worse than none
            return None
        parts: list[Part] = [self.write(self._lead)]
        inside: list[int] = []  # the open tags
        cursor = 0
        for match in _TAGS.finditer(translation):
            parts.append(self.write(translation[cursor : match.start()]))
            cursor = match.end()
            at = self._pairing.partner[inside.pop()] if match[2] else self._place[int(match[1] or match[3])]
            parts.append(self._write_tag(at))
            if match[1]:
                inside.append(at)
        return (*parts, self.write(translation[cursor:] + self._trail))

    def apart(self, translations: Sequence[str]) -> tuple[Part, ...]:
        parts: list[Part] = []
        runs = iter(translations)
        for at, item in enumerate(self.items):
            lead, core, trail = edges(item.text)
            new = next(runs) if _is_run(item) else core
            same = new == core and not (item.kind == "text" and item.written)
            parts.append(self._write_tag(at) if same else self.write(lead + new + trail))
        return tuple(parts)

    def unit(self, line: int) -> DocumentUnit:
        """The sentence in its own place. What comes back unchanged stays as it was, to the byte."""

        def whole(translation: str) -> list[Splice] | None:
            if translation == self.text:
                return []
            parts = self.whole(translation)
            return None if parts is None else [Splice(self.start, self.end, parts)]

        def apart(translations: Sequence[str]) -> list[Splice]:
            return [Splice(self.start, self.end, self.apart(translations))]

        return DocumentUnit(line, self.text, whole, self.runs, apart)

    def _number_tags(self) -> str:
        pieces, number = [], 0
        for item in self.items:
            number += item.kind in ("open", "single")
            tag = {"open": f'<g id="{number}">', "close": "</g>", "single": f'<x id="{number}"/>'}.get(item.kind)
            pieces.append(item.text if tag is None else tag)
        return "".join(pieces)

    def _write_tag(self, at: int) -> Part:
        return self.items[at].written or Range(self.items[at].start, self.items[at].end)


def find_sentences(
    items: Sequence[InlineItem],
    document: str,
    read: Callable[[str], str],
    write: Callable[[str], str],
    lines: LineCounter,
) -> Iterator[DocumentUnit]:
    """A unit for each sentence with words; they are cut at tags that belong to nothing inside."""
    for part in cut(items) if any(map(_is_run, items)) else ():
        sentence = Sentence(part, document, read, write)
        if sentence.has_words:
            yield sentence.unit(lines.of(sentence.start))


def _is_run(item: InlineItem) -> bool:
    return item.kind == "text" and has_words(item.text)


def _find_shape(text: str) -> _Shape | None:
    """Inside which tag each stands, and which have words inside; None where they are not nested, or one comes twice."""
    parents: dict[int, tuple[int, bool]] = {}
    worded: set[int] = set()
    inside, cursor = [0], 0
    for match in _TAGS.finditer(text):
        if has_words(text[cursor : match.start()]):
            worded.add(inside[-1])
        cursor = match.end()
        if match[2]:
            closed = inside.pop()
            if not closed:
                return None
            if closed in worded:
                worded.add(inside[-1])
            continue
        number = int(match[1] or match[3])
        if number in parents:
            return None
        parents[number] = inside[-1], match[1] is None
        if match[1]:
            inside.append(number)
    return _Shape(parents, worded - {0}) if inside == [0] else None


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
    # Pairs are nested, so one look at each is enough: a pair around a broken one has its stray inside too.
    before = [0, *accumulate(alone)]
    broken = {at for at, other in partner.items() if before[max(at, other)] > before[min(at, other)]}
    stray = frozenset(at for at, is_alone in enumerate(alone) if is_alone) | broken
    return Pairing({at: other for at, other in partner.items() if at not in broken}, stray)


def cut(items: Sequence[InlineItem]) -> list[list[InlineItem]]:
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
    words = [0, *accumulate(_is_run(item) for item in items)]
    result: list[InlineItem] = []
    at = 0
    while at < len(items):
        end = partner.get(at, -1)
        if end > at and words[end] == words[at]:
            inside = [item.written for item in items[at : end + 1]]
            result.append(InlineItem("single", items[at].start, items[end].end, written="".join(inside) if all(inside) else ""))
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
