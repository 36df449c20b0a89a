"""`read_elements` hands over elements of an XML document with their places in it, and `fill_target` writes a translation into one.

Only what lies inside a wanted element (a unit of translation) is held, and handed over when it ends. Of inline elements are

pairs     <g> <pc> <hi> <mrk> and all others with text inside; <bpt>...<ept>, <bx/>...<ex/>, <sc/>...<ec/>, <sm/>...<em/>
singles   <x/> <ph> <it> <ut> <cp/>, marks that say so (<mrk translate="no">), comments
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from limelight.documents.encodings import Document
from limelight.documents.sentences import InlineItem, Sentence
from limelight.documents.splices import Part, Range, Splice
from limelight.documents.units import DocumentUnit, escape
from limelight.errors import DataError
from limelight.safe_xml import Attributes, parse_xml

MOST_INSIDE = 20_000  # elements of one unit

_TAG = re.compile(r"""<[^"'>]*(?:(?:"[^"]*"|'[^']*')[^"'>]*)*>""")
_NAME = re.compile(r"<([^\s/>]*)")
_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_SINGLES = frozenset(("x", "ph", "it", "ut", "cp"))
_OPENING = frozenset(("bpt", "bx", "sc", "sm"))
_CLOSING = frozenset(("ept", "ex", "ec", "em"))
# Never fails once it has begun: what does not end would be searched again from each of its beginnings.
_ASIDE = re.compile(r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)


@dataclass
class Element:
    """An element is <name>inner</name>: `start` and `end` around all of it, `inner` and `close` around what is inside."""

    name: str  # without the namespace of the document; `namespace name` if it has another one
    attributes: Attributes
    document: str = field(repr=False)
    line: int
    start: int
    inner: int
    close: int = 0
    end: int = 0
    children: list["Element"] = field(default_factory=list)

    @property
    def is_empty_tag(self) -> bool:
        """<name/>"""
        return self.end == self.inner

    @property
    def tag(self) -> str:
        """<xlf:name a="b">"""
        return self.document[self.start : self.inner]

    @property
    def prefix(self) -> str:
        """<xlf:source> -> xlf:"""
        prefix, colon, _ = self.written_name.rpartition(":")
        return prefix + colon

    @property
    def written_name(self) -> str:
        name = _NAME.match(self.document, self.start)
        assert name is not None
        return name[1]

    @property
    def indent(self) -> str:
        """The blanks before the tag: a new element after it is written in the same way."""
        start = self.start
        while start and self.document[start - 1] in " \t\r\n":
            start -= 1
        return self.document[start : self.start]

    @property
    def is_blank(self) -> bool:
        """No text inside, and no elements but <mrk> that hold none either."""
        if any(child.name != "mrk" or not child.is_blank for child in self.children):
            return False
        return not any(item.text.strip() for gap in self.gaps() for item in gap if item.kind == "text")

    def child(self, name: str) -> "Element | None":
        return next((child for child in self.children if child.name == name), None)

    def sentence(self) -> Sentence:
        return Sentence(list(self.items()), self.document, read, write)

    def items(self) -> Iterator[InlineItem]:
        for gap, child in zip(self.gaps(), [*self.children, None], strict=True):
            yield from gap
            if child is not None:
                yield from child.as_inline()

    def gaps(self) -> Iterator[list[InlineItem]]:
        starts = [self.inner, *(child.end for child in self.children)]
        ends = [*(child.start for child in self.children), self.close]
        for start, end in zip(starts, ends, strict=True):
            yield list(_texts_between(start, end, self.document))

    def as_inline(self) -> Iterator[InlineItem]:
        if self.name in _OPENING:
            yield InlineItem("open", self.start, self.end, name=f"code {self._key('rid', 'i', 'id')}")
        elif self.name in _CLOSING and self.attributes.get("isolated") != "yes":
            yield InlineItem("close", self.start, self.end, name=f"code {self._key('startRef', 'rid', 'i', 'id')}")
        elif self.name in _SINGLES or self.name in _CLOSING or self.is_empty_tag or self._is_protected:
            yield InlineItem("single", self.start, self.end)
        else:
            yield InlineItem("open", self.start, self.inner, name=f"element {self.start}")
            yield from self.items()
            yield InlineItem("close", self.close, self.end, name=f"element {self.start}")

    @property
    def _is_protected(self) -> bool:
        return self.attributes.get("translate") == "no" or self.attributes.get("mtype") == "protected"

    def _key(self, *names: str) -> str:
        """What an opening code and its closing one have in common."""
        return next((self.attributes[name] for name in names if name in self.attributes), "")


Take = Callable[[Element, list[Element]], None]  # a wanted element, and those around it from the root down


def read_elements(document: Document, root: str | None, wanted: tuple[str, ...], take: Take) -> None:
    """Hand over every wanted element in order. The root must have that name, if one is given."""
    is_alias = document.encoding != "utf-8" and codecs.lookup(document.encoding).name == "utf-8"  # "utf8", which expat does not know
    listener = _Elements(document, wanted, take)
    for _ in parse_xml(document.name, [document.data], listener, root, "utf-8" if is_alias else None):
        pass


class _Elements:
    def __init__(self, document: Document, wanted: tuple[str, ...], take: Take) -> None:
        self.document, self.wanted, self.take = document, wanted, take
        self.open: list[Element] = []
        self.inside = 0  # elements held; 0 outside of wanted ones
        self.bytes, self.characters = len(document.mark), 0  # the same place, counted twice

    def start(self, name: str, attributes: Attributes, line: int, byte: int) -> None:
        self.document.check_time()
        place = self._place(byte)
        tag = _TAG.match(self.document.text, place)
        assert tag is not None, "expat has found a tag here"
        element = Element(name, attributes, self.document.text, line, place, tag.end())
        if self.inside or name in self.wanted:
            self.inside += 1
            if self.inside > 1:
                self.open[-1].children.append(element)
            if self.inside > MOST_INSIDE:
                said = f"a unit of more than {MOST_INSIDE:,} elements; is it one?"
                raise DataError(f"{self.document.name}, line {line}: {said}")
        self.open.append(element)

    def end(self, name: str, byte: int) -> None:
        element = self.open.pop()
        if self.document.text[element.inner - 2] == "/":
            element.close = element.end = element.inner
        else:
            element.close = self._place(byte)
            element.end = self.document.text.index(">", element.close) + 1
        if self.inside and name in self.wanted and not any(one.name in self.wanted for one in self.open):
            self.take(element, self.open)
            self.inside = 0

    def text(self, text: str) -> None:
        """Texts are what stands between the places of tags."""

    def _place(self, byte: int) -> int:
        """A place in characters. Places come in order, so each byte is decoded once."""
        self.characters += len(self.document.data[self.bytes : byte].decode(self.document.encoding))
        self.bytes = byte
        return self.characters


def fill_target(source: Element, target: Element, origin: Any = None) -> DocumentUnit:
    if not target.is_empty_tag:
        return write_target(source, Range(target.inner, target.close), "", "", origin)
    opening, closing = target.tag[:-2].rstrip() + ">", f"</{target.written_name}>"
    return write_target(source, Range(target.start, target.end), opening, closing, origin)


def write_target(source: Element, place: Range, opening: str, closing: str, origin: Any = None) -> DocumentUnit:
    """Write the translation of an element in a place, also when it is the same in both languages. What stands around it is copied."""
    sentence = source.sentence()
    before, after = Range(source.inner, sentence.start), Range(sentence.end, source.close)

    def splice(parts: Sequence[Part]) -> list[Splice]:
        return [Splice(*place, (opening, before, *parts, after, closing))]

    def whole(translation: str) -> list[Splice] | None:
        parts = sentence.whole(translation)
        return None if parts is None else splice(parts)

    def apart(translations: Sequence[str]) -> list[Splice]:
        return splice(sentence.apart(translations))

    return DocumentUnit(source.line, sentence.text, whole, sentence.runs, apart, origin=origin)


def read(raw: str) -> str:
    """Text as XML means it: references are characters, and every line ends with \\n."""
    if "\r" in raw:
        raw = raw.replace("\r\n", "\n").replace("\r", "\n")
    return _REFERENCE.sub(_character, raw) if "&" in raw else raw


def write(text: str) -> str:
    """As text of an element: what XML would read otherwise is written as a reference."""
    return escape(text).replace("\r", "&#13;")


def _character(match: re.Match[str]) -> str:
    return _NAMED[match[3]] if match[3] else chr(int(match[1], 16) if match[1] else int(match[2]))


def _texts_between(start: int, end: int, document: str) -> Iterator[InlineItem]:
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
