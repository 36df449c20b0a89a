"""`parse_xml` hands the events of an XML file to a listener, from front to back, without entities or DTD. Nothing is fetched.

Files of translations and terms come from strangers. Entities can blow a kilobyte up to gigabytes or read files of this machine,
and no exchange format needs them, so any declaration of one is refused. `<!DOCTYPE tmx SYSTEM "tmx14.dtd">` is let
through, since every TMX has it, and the DTD is never looked for. What expat holds is bounded.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol
from xml.parsers import expat

from limelight.errors import DataError

READ = 64 << 10  # bytes of a block, of what is read from front to back
DEEPEST = 256
LONGEST_TOKEN = 2 << 20  # bytes; expat holds a tag or a comment until it ends
SEPARATOR = " "  # stands between namespace and name; no namespace has a space in it
XML_LANGUAGE = f"http://www.w3.org/XML/1998/namespace{SEPARATOR}lang"

Attributes = dict[str, str]


class XmlListener(Protocol):
    """A listener takes the events of a file for its format. `byte` is where the tag begins."""

    def start(self, name: str, attributes: Attributes, line: int, byte: int) -> None: ...

    def end(self, name: str, byte: int) -> None: ...

    def text(self, text: str) -> None: ...


def parse_xml(
    name: str, blocks: Iterable[bytes], listener: XmlListener, root: str | None = None, encoding: str | None = None
) -> Iterator[None]:
    """Feed the blocks of a file to the listener, and come back after each of them. `name` is for errors.

    The outermost element must be called `root`. Names of its namespace arrive without it and all others as `namespace name`, so that
    <sdl:source> is never taken for <source>. Where no root is asked for, every name arrives without its namespace. `encoding`: whatever the
    file says.
    """
    parser, fed = _build_parser(name, listener, root, encoding), 0
    try:
        for block in blocks:
            parser.Parse(block, False)
            fed += len(block)
            if fed - parser.CurrentByteIndex > LONGEST_TOKEN:
                raise _refusal(name, parser, f"a tag or comment of more than {LONGEST_TOKEN:,} bytes")
            yield
        parser.Parse(b"", True)
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: an encoding Python lacks
        mend = "mend it: xmllint --recover FILE" if fed else "it is empty"
        raise DataError(f"{name}: not well-formed XML ({error}); {mend}") from None


def _build_parser(name: str, listener: XmlListener, root: str | None, encoding: str | None) -> expat.XMLParserType:
    parser = expat.ParserCreate(encoding, SEPARATOR)
    parser.buffer_text = True
    depth, namespace = 0, ""

    def shorten(element: str) -> str:
        return element.rpartition(SEPARATOR)[2] if root is None else element.removeprefix(namespace)

    def start(element: str, attributes: Attributes) -> None:
        nonlocal depth, namespace
        depth += 1
        if depth > DEEPEST:
            line = parser.CurrentLineNumber
            raise DataError(
                f"{name}, line {line}: elements more than {DEEPEST} deep are refused, since no tool writes such; ask who made it"
            )
        if depth == 1:
            local = element.rpartition(SEPARATOR)[2]
            namespace = element.removesuffix(local)
            if root not in (None, local):
                raise DataError(f"{name} begins with <{local}> and not with <{root}>; check its name")
        listener.start(shorten(element), attributes, parser.CurrentLineNumber, parser.CurrentByteIndex)

    def end(element: str) -> None:
        nonlocal depth
        depth -= 1
        listener.end(shorten(element), parser.CurrentByteIndex)

    def doctype(element: str, system: str | None, public: str | None, subset: bool) -> None:
        if subset:
            raise _refusal(name, parser, "a DTD inside the file")

    def declaration(*parts: object) -> int:
        raise _refusal(name, parser, "an entity declaration")

    def unknown(entity: str, parameter: bool) -> None:  # else `&entity;` after a DOCTYPE would vanish from the text
        raise _refusal(name, parser, f"the entity &{entity};, which only a DTD could explain")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = listener.text
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = parser.ExternalEntityRefHandler = declaration
    parser.SkippedEntityHandler = unknown
    return parser


def _refusal(name: str, parser: expat.XMLParserType, what: str) -> DataError:
    return DataError(
        f"{name}, line {parser.CurrentLineNumber}: {what} is refused, since it can be an attack and bring other files "
        "in; if you trust the file, expand and remove it: xmllint --noent --dropdtd --nonet FILE"
    )
