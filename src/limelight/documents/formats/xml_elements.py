"""`read_elements` hands over elements of an XML document with their places in it. expat checks it under the rules of the corpus reader: no
entities, no DTD.

Only what lies inside a wanted element (a unit of translation) is held, and handed over when it ends.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from xml.parsers import expat

from limelight.corpus.reading.raw import RawUnit as Row

# One parser of XML from strangers for the whole house.
from limelight.corpus.reading.xml.stream import Attributes, build_parser, local_name
from limelight.documents.encodings import Document
from limelight.errors import DataError

MOST_INSIDE = 20_000  # elements of one unit

_TAG = re.compile(r"""<[^"'>]*(?:(?:"[^"]*"|'[^']*')[^"'>]*)*>""")
_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclass
class Element:
    """An element is <name>inner</name>: `start` and `end` around all of it, `inner` and `close` around what is inside."""

    name: str  # without the namespace of the document; `namespace name` if it has another one
    attributes: Attributes
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

    def child(self, name: str) -> "Element | None":
        return next((child for child in self.children if child.name == name), None)


Take = Callable[[Element, list[Element]], None]  # a wanted element, and those around it from the root down


def read_elements(document: Document, root: str, wanted: tuple[str, ...], take: Take) -> None:
    """Hand over every wanted element in order. The root must have that name."""
    listener = _Elements(document, root, wanted, take)
    listener.parser = build_parser(document.name, listener)
    try:
        listener.parser.Parse(document.data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: an encoding Python lacks
        raise DataError(
            f"{document.name}: not well-formed XML ({error}); mend it: xmllint --recover {document.name}"
        ) from None


class _Elements:
    parser: expat.XMLParserType

    def __init__(self, document: Document, root: str, wanted: tuple[str, ...], take: Take) -> None:
        self.document, self.root, self.wanted, self.take = document, root, wanted, take
        self.units: list[Row] = []  # the stream's protocol has it; nothing is collected here
        self.open: list[Element] = []
        self.namespace = ""
        self.inside = 0  # elements held; 0 outside of wanted ones
        self.bytes, self.characters = len(document.mark), 0  # the same place, counted twice

    def start(self, name: str, attributes: Attributes, line: int) -> None:
        self.document.check_time()
        if not self.open:
            self._check_root(name)
        place = self._place()
        tag = _TAG.match(self.document.text, place)
        assert tag is not None, "expat has found a tag here"
        element = Element(name.removeprefix(self.namespace), attributes, line, place, tag.end())
        if self.inside or element.name in self.wanted:
            self.inside += 1
            if self.inside > 1:
                self.open[-1].children.append(element)
            if self.inside > MOST_INSIDE:
                raise DataError(
                    f"{self.document.name}, line {line}: a unit of more than {MOST_INSIDE:,} elements; is it one?"
                )
        self.open.append(element)

    def end(self, _: str) -> None:
        element = self.open.pop()
        if self.document.text[element.inner - 2] == "/":
            element.close = element.end = element.inner
        else:
            element.close = self._place()
            element.end = self.document.text.index(">", element.close) + 1
        if self.inside and element.name in self.wanted and not any(one.name in self.wanted for one in self.open):
            self.take(element, self.open)
            self.inside = 0

    def text(self, text: str) -> None:
        """Texts are what stands between the places of tags."""

    def finish(self) -> None:
        """Nothing is held back."""

    def _place(self) -> int:
        """Where expat is, in characters. Places come in order, so each byte is decoded once."""
        index = self.parser.CurrentByteIndex
        self.characters += len(self.document.data[self.bytes : index].decode(self.document.encoding))
        self.bytes = index
        return self.characters

    def _check_root(self, name: str) -> None:
        self.namespace = name.removesuffix(local_name(name))
        if local_name(name) != self.root:
            raise DataError(
                f"{self.document.name} begins with <{local_name(name)}> and not with <{self.root}>; check its name"
            )


def read(raw: str) -> str:
    """Text as XML means it: references are characters, and every line ends with \\n."""
    if "\r" in raw:
        raw = raw.replace("\r\n", "\n").replace("\r", "\n")
    return _REFERENCE.sub(_character, raw) if "&" in raw else raw


def _character(match: re.Match[str]) -> str:
    if match[3]:
        return _NAMED[match[3]]
    return chr(int(match[1], 16) if match[1] else int(match[2]))
