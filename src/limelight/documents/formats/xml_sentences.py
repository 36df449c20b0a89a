"""A `FilledTarget` writes a translated `<source>` or `<seg>` with its inline elements into an empty target.

pairs     <g> <pc> <hi> <mrk> and all others with text inside; <bpt>...<ept>, <bx/>...<ex/>, <sc/>...<ec/>, <sm/>...<em/>
singles   <x/> <ph> <it> <ut> <cp/>, marks that say so (<mrk translate="no">), comments
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from limelight.documents.formats.xml_elements import Element, read
from limelight.documents.inline import InlineItem
from limelight.documents.sentences import Sentence
from limelight.documents.splices import Part, Range, Splice
from limelight.documents.units import replace_controls

_SINGLES = frozenset(("x", "ph", "it", "ut", "cp"))
_OPENING = frozenset(("bpt", "bx", "sc", "sm"))
_CLOSING = frozenset(("ept", "ex", "ec", "em"))
# Never fails once it has begun: what does not end would be searched again from each of its beginnings.
_ASIDE = re.compile(r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class FilledTarget:
    """A filled target is a sentence that is written into an empty target, also when it is the same in both languages."""

    line: int
    sentence: Sentence
    content: Range  # of the source: what stands around the sentence is copied
    place: Range  # in which the target is written
    opening: str
    closing: str

    @property
    def text(self) -> str:
        return self.sentence.text

    @property
    def runs(self) -> tuple[str, ...]:
        return self.sentence.runs

    def whole(self, translation: str) -> list[Splice] | None:
        parts = self.sentence.whole(translation)
        return None if parts is None else self._splices(parts)

    def apart(self, translations: Sequence[str]) -> list[Splice]:
        return self._splices(self.sentence.apart(translations))

    def _splices(self, parts: tuple[Part, ...]) -> list[Splice]:
        before = Range(self.content.start, self.sentence.start)
        after = Range(self.sentence.end, self.content.end)
        return [Splice(*self.place, (self.opening, before, *parts, after, self.closing))]


def sentence_of(element: Element, document: str) -> Sentence:
    return Sentence(list(_items(element, document)), document, read, write)


def write(text: str) -> str:
    """As text of an element: what XML would read otherwise is written as a reference."""
    text = replace_controls(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")


def is_blank(element: Element | None, document: str) -> bool:
    """No text inside, and no elements but <mrk> that hold none either."""
    if element is None:
        return True
    if any(child.name != "mrk" or not is_blank(child, document) for child in element.children):
        return False
    return not any(item.text.strip() for item in _items(element, document) if item.kind == "text")


def indent_before(element: Element, document: str) -> str:
    """The blanks before a tag: a new element after it is written in the same way."""
    start = element.start
    while start and document[start - 1] in " \t\r\n":
        start -= 1
    return document[start : element.start]


def prefix_of(element: Element, document: str) -> str:
    """<xlf:source> -> xlf:"""
    name = re.compile(r"<([^\s/>]*)").match(document, element.start)
    assert name is not None
    prefix, colon, _ = name[1].rpartition(":")
    return prefix + colon


def _items(element: Element, document: str) -> Iterator[InlineItem]:
    cursor = element.inner
    for child in element.children:
        yield from texts_between(cursor, child.start, document)
        yield from _inline(child, document)
        cursor = child.end
    if not element.is_empty_tag:
        yield from texts_between(cursor, element.close, document)


def _inline(child: Element, document: str) -> Iterator[InlineItem]:
    if child.name in _OPENING:
        yield InlineItem("open", child.start, child.end, name=f"code {_key(child, 'rid', 'i', 'id')}")
    elif child.name in _CLOSING and child.attributes.get("isolated") != "yes":
        yield InlineItem("close", child.start, child.end, name=f"code {_key(child, 'startRef', 'rid', 'i', 'id')}")
    elif child.name in _SINGLES or child.name in _CLOSING or child.is_empty_tag or _is_protected(child):
        yield InlineItem("single", child.start, child.end)
    else:
        name = f"element {child.start}"
        yield InlineItem("open", child.start, child.inner, name=name)
        yield from _items(child, document)
        yield InlineItem("close", child.close, child.end, name=name)


def _key(child: Element, *names: str) -> str:
    """What an opening code and its closing one have in common."""
    return next((child.attributes[name] for name in names if name in child.attributes), "")


def _is_protected(child: Element) -> bool:
    return child.attributes.get("translate") == "no" or child.attributes.get("mtype") == "protected"


def texts_between(start: int, end: int, document: str) -> Iterator[InlineItem]:
    """What stands between two tags: text, and CDATA, which is text too; comments and instructions stand for themselves."""
    for aside in _ASIDE.finditer(document, start, end):
        if start < aside.start():
            yield InlineItem("text", start, aside.start(), read(document[start : aside.start()]))
        if aside[1] is None:
            yield InlineItem("single", aside.start(), aside.end())
        else:
            yield InlineItem("text", aside.start(), aside.end(), aside[1])
        start = aside.end()
    if start < end:
        yield InlineItem("text", start, end, read(document[start:end]))
