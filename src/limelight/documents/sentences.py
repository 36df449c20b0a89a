"""A `Sentence` shows its markup to the translator as short tags, and gets the document's own tags back:

    Open <a href="https://...">the settings</a> of <img src="x.png"> now
    Open <g id="1">the settings</g> of <x id="2"/> now

The tags are those of XLIFF, numbered, so that it is known which is which when they come back in another order. A translation is taken
only if every tag is there once, inside the same tag as before, and none that held words is empty: then the document keeps its tree, and
only siblings inside one sentence may have changed places. Else the texts between the tags are translated one by one (`apart`).
"""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate

from limelight.documents.inline import InlineItem, fold_pairs, pair, trim_edges
from limelight.documents.splices import Part, Range
from limelight.documents.units import edges, has_words

_TAGS = re.compile(r'<g id="(\d{1,6})">|(</g>)|<x id="(\d{1,6})"/>')
_LIKE_OURS = re.compile(r"<\s{0,9}/?\s{0,9}[gx]\b")  # in the document's own text: then ours could not be told from it
MOST_TAGS = 999_999


class Sentence:
    """A sentence has its items without its edges. `start` and `end` are the place of its core in the document."""

    def __init__(
        self, items: Sequence[InlineItem], document: str, read: Callable[[str], str], write: Callable[[str], str]
    ) -> None:
        self.items = trim_edges(fold_pairs(items), document, read)
        self.write = write
        self.start = self.items[0].start if self.items else 0
        self.end = self.items[-1].end if self.items else 0
        pairing = pair(self.items)
        self._partner = pairing.partner
        self._number = list(accumulate(int(item.kind in ("open", "single")) for item in self.items))
        self._place = {self._number[at]: at for at, item in enumerate(self.items) if item.kind in ("open", "single")}
        self._parents, self._worded = self._shape()
        alike = any(_LIKE_OURS.search(item.text) for item in self.items if item.kind == "text")
        shown = "" if pairing.stray or alike or len(self._place) > MOST_TAGS else self._number_tags()
        # Blanks that were written as &nbsp; or &#10; are no edge of the document, but one of the text.
        self._lead, self.text, self._trail = edges(shown)

    @property
    def has_words(self) -> bool:
        return any(item.kind == "text" and has_words(item.text) for item in self.items)

    @property
    def runs(self) -> tuple[str, ...]:
        """The words of each text between tags, without the blanks around them; nothing where the whole is one such text."""
        if self.text and not self._place:
            return ()
        return tuple(edges(item.text)[1] for item in self.items if item.kind == "text" and has_words(item.text))

    def whole(self, translation: str) -> tuple[Part, ...] | None:
        """The translation with the document's own tags; None if they are not all in their places.

        In a sentence without tags whatever looks like one is text.
        """
        if not self._place:
            return (self.write(self._lead + translation + self._trail),)
        parts: list[Part] = [self.write(self._lead)]
        inside: list[int] = []  # numbers of the open tags
        seen: set[int] = set()
        worded: set[int] = set()  # numbers with words inside, in the translation
        cursor = 0
        for match in _TAGS.finditer(translation):
            between = translation[cursor : match.start()]
            cursor = match.end()
            parts.append(self.write(between))
            if has_words(between):
                worded.update(inside[-1:])
            if match[2]:
                if not inside:
                    return None
                closed = inside.pop()
                worded.update(inside[-1:] if closed in worded else ())
                parts.append(self._range(self._partner[self._place[closed]]))
                continue
            number = int(match[1] or match[3])
            if number in seen or not self._fits(number, inside, "open" if match[1] else "single"):
                return None
            seen.add(number)
            parts.append(self._range(self._place[number]))
            if match[1]:
                inside.append(number)
        rest = translation[cursor:]
        if inside or seen != self._place.keys() or not self._worded <= worded:
            return None
        if _LIKE_OURS.search(_TAGS.sub("", translation)):  # half a tag is worse than none
            return None
        return (*parts, self.write(rest + self._trail))

    def apart(self, translations: Sequence[str]) -> tuple[Part, ...]:
        """Tags and blanks as they were, with the translated runs between them."""
        parts: list[Part] = []
        runs = iter(translations)
        for at, item in enumerate(self.items):
            if item.kind == "text" and has_words(item.text):
                lead, core, trail = edges(item.text)
                new = next(runs)
                parts.append(self._range(at) if new == core else self.write(lead + new + trail))
            else:
                parts.append(self._range(at))
        return tuple(parts)

    def _shape(self) -> tuple[dict[int, int | None], set[int]]:
        """Inside which tag each stands, and which have words inside: by number."""
        parents: dict[int, int | None] = {}
        words = [0, *accumulate(item.kind == "text" and has_words(item.text) for item in self.items)]
        worded: set[int] = set()
        open_: list[int] = []
        for number, at in self._place.items():
            while open_ and self._partner.get(self._place[open_[-1]], -1) < at:
                open_.pop()
            parents[number] = open_[-1] if open_ else None
            if (end := self._partner.get(at)) is not None:
                open_.append(number)
                if words[end] > words[at]:
                    worded.add(number)
        return parents, worded

    def _fits(self, number: int, inside: list[int], kind: str) -> bool:
        """Whether it is one of ours, of that kind, and inside the same tag as in the document."""
        at = self._place.get(number)
        if at is None or self.items[at].kind != kind:
            return False
        return self._parents[number] == (inside[-1] if inside else None)

    def _number_tags(self) -> str:
        shown = {"text": "{text}", "open": '<g id="{number}">', "close": "</g>", "single": '<x id="{number}"/>'}
        pieces = zip(self.items, self._number, strict=True)
        return "".join(shown[item.kind].format(text=item.text, number=number) for item, number in pieces)

    def _range(self, at: int) -> Range:
        return Range(self.items[at].start, self.items[at].end)
