"""`read_units` parses XML from front to back with expat, without entities or DTD, in bounded memory. Nothing is fetched.

Files of translations come from strangers. Entities can blow a kilobyte up to gigabytes or read files of this machine,
and no exchange format needs them, so any declaration of one is refused. `<!DOCTYPE tmx SYSTEM "tmx14.dtd">` is let
through, since every TMX has it, and the DTD is never looked for.
"""

from collections.abc import Iterator
from typing import Protocol
from xml.parsers import expat

from limelight.corpus.reading.raw import RawUnit
from limelight.corpus.reading.streams import open_bytes
from limelight.errors import DataError

READ = 64 << 10
DEEPEST = 256
LONGEST_TOKEN = 2 << 20  # bytes; expat holds a tag or a comment until it ends
SEPARATOR = " "  # stands between namespace and name; no namespace has a space in it

Attributes = dict[str, str]


class Listener(Protocol):
    """A listener takes the events of a file for its format. It collects finished units, and the stream hands them on."""

    units: list[RawUnit]

    def start(self, name: str, attributes: Attributes, line: int) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...

    def finish(self) -> None: ...


def read_units(address: str, listener: Listener) -> Iterator[RawUnit]:
    """Feed the file to the listener and yield what it finds. Names arrive as `namespace name` or `name`."""
    parser = build_parser(address, listener)
    fed = 0
    with open_bytes(address) as stream:
        try:
            while block := stream.read(READ):
                parser.Parse(block, False)
                fed += len(block)
                if fed - parser.CurrentByteIndex > LONGEST_TOKEN:
                    raise _refusal(address, parser, f"a tag or comment of more than {LONGEST_TOKEN:,} bytes")
                yield from listener.units
                listener.units.clear()
            if fed:  # a file of no bytes has no units; XML would call it an error
                parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: an encoding Python lacks
            raise DataError(f"{address}: not well-formed XML ({error}); mend it: xmllint --recover {address}") from None
    yield from listener.units
    listener.finish()


def local_name(name: str) -> str:
    """`urn:oasis:names:tc:xliff:document:1.2 source` -> `source`"""
    return name.rpartition(SEPARATOR)[2]


def build_parser(address: str, listener: Listener) -> expat.XMLParserType:
    parser = expat.ParserCreate(namespace_separator=SEPARATOR)
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise _refusal(address, parser, f"elements more than {DEEPEST} deep")
        listener.start(name, attributes, parser.CurrentLineNumber)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        listener.end(name)

    def doctype(name: str, system: str | None, public: str | None, subset: bool) -> None:
        if subset:
            raise _refusal(address, parser, "a DTD inside the file")

    def entity(*declaration: object) -> None:
        raise _refusal(address, parser, "an entity declaration")

    def reference(*reference: object) -> int:
        raise _refusal(address, parser, "a reference to an external entity")

    def unknown(
        name: str, parameter: bool
    ) -> None:  # without this, `&name;` after a DOCTYPE would vanish from the text
        raise _refusal(address, parser, f"the entity &{name};, which only a DTD could explain")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = listener.text
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = entity
    parser.ExternalEntityRefHandler = reference
    parser.SkippedEntityHandler = unknown
    return parser


def _refusal(address: str, parser: expat.XMLParserType, what: str) -> DataError:
    return DataError(
        f"{address}, line {parser.CurrentLineNumber}: {what} is refused, since it can be an attack; if you trust the file, "
        f"expand and remove it: xmllint --noent --dropdtd --nonet {address}"
    )
