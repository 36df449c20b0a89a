r"""`find_xml_texts` takes the texts of an XML file by a table of the elements that hold them:

    <string name="open">Don\'t open <b>it</b></string>                  strings.xml of Android: Don't open <g id="1">it</g>
    <data name="Open"><value>Open</value><comment>x</comment></data>    .resx of .NET: Open

Left alone: all other elements, all attributes, what is marked translatable="false", and <xliff:g>, which stands for itself.
"""

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

from limelight.documents.encodings import Document
from limelight.documents.formats.xml_elements import Element, read, read_elements, write
from limelight.documents.sentences import InlineItem, find_sentences
from limelight.documents.splices import LineCounter
from limelight.documents.units import DocumentUnit, ExtractionResult, edges, has_words, plain_unit, replace_controls

_CDATA = re.compile(r"\s*+<!\[CDATA\[([^\]]*+(?:\](?!\]>)[^\]]*+)*+)\]\]>\s*+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)|\"", re.DOTALL)
_QUOTED = re.compile(r'(?<!\\)(?:\\\\)*+"')
_SPECIAL = re.compile(r"^[@?]|[\\'\"\n\t]")
_WRITTEN_BLANKS = re.compile(r"(?<!\\)(?:\\\\)*+((?:\\u0020)+)")
_POINTER = re.compile(r"\s*+[@?]")  # to another text, or to one of the theme
_LETTERS = {"n": "\n", "t": "\t"}
_NAMES = {"\n": r"\n", "\t": r"\t"}


class TextTable(NamedTuple):
    """A table says which elements of which file hold texts, and how text is written in them. Names have no namespaces."""

    root: str | None
    wanted: tuple[str, ...]
    texts: Callable[[Element], list[Element]]  # of a wanted element
    read: Callable[[str], str] = read  # what stands there -> what it means
    write: Callable[[str], str] = write
    singles: frozenset[str] = frozenset()  # elements that stand for themselves inside a sentence
    cuts: frozenset[str] = frozenset()  # elements at which a sentence ends


def find_xml_texts(table: TextTable, document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    units: list[DocumentUnit] = []
    lines, left = LineCounter(document.text), 0

    def take(element: Element, around: list[Element]) -> None:
        nonlocal left
        texts = table.texts(element)
        left += not texts
        for text in texts:
            document.check_time()
            units.extend(_find_units(table, text, lines))

    read_elements(document, table.root, table.wanted, take)
    return ExtractionResult(units, left)


def _find_units(table: TextTable, element: Element, lines: LineCounter) -> Iterator[DocumentUnit]:
    cdata = _CDATA.fullmatch(element.document, element.inner, element.close)
    if cdata and table is ANDROID:  # stays one: what is in it is no XML
        bare = _QUOTED.search(cdata[1]) is not None and r"\"" not in cdata[1]  # as in <a href="x">
        lead, text, trail = edges(_read_escapes(cdata[1].replace('"', r"\"") if bare else cdata[1]))
        if has_words(text):
            yield plain_unit(element.line, text, cdata.span(1), lambda new: _write_cdata(lead + new + trail, bare))
        return
    found = list(list_items(element, table))
    if table is ANDROID and any(item and item.kind == "text" and _QUOTED.search(element.document, item.start, item.end) for item in found):
        table = table._replace(write=lambda new: f'"{ANDROID.write(new)}"' if new else "")
    elif table is ANDROID:
        found = [part for item in found for part in _keep_blanks(item, element)]
    for _, items in groupby(found, key=lambda item: item is None):
        yield from find_sentences([item for item in items if item], element.document, table.read, table.write, lines)


def _keep_blanks(item: InlineItem | None, element: Element) -> Iterator[InlineItem | None]:
    """Blanks that are written as escapes at an edge of the text, and several of them anywhere, would be lost as blanks: they stand for
    themselves. One between two words may be a blank."""
    if item is None or item.kind != "text":
        yield item
        return
    at = item.start
    for blanks in _WRITTEN_BLANKS.finditer(element.document, item.start, item.end):
        begin, end = blanks.span(1)
        at_edge = not element.document[element.inner : begin].strip() or not element.document[end : element.close].strip()
        if at_edge or end - begin > len(r"\u0020"):
            yield from _list_text(element, at, begin)
            yield InlineItem("single", begin, end)
            at = end
    yield from _list_text(element, at, item.end)


def _list_text(element: Element, start: int, end: int) -> Iterator[InlineItem]:
    if start < end:
        yield InlineItem("text", start, end, _read_android(element.document[start:end]))


def list_items(element: Element, table: TextTable) -> Iterator[InlineItem | None]:
    """What stands inside an element; None where a sentence ends."""
    for gap, child in zip(element.gaps(), [*element.children, None], strict=True):
        for item in gap:
            raw = element.document[item.start : item.end]
            yield item._replace(text=table.read(raw)) if item.kind == "text" and not raw.startswith("<![CDATA[") else item
        if child is None:
            return
        name = child.name.rpartition(" ")[2]
        if name in table.cuts:
            yield None
            yield from list_items(child, table)
            yield None
        elif name in table.singles or child.is_empty_tag:
            yield InlineItem("single", child.start, child.end)
        else:
            yield InlineItem("open", child.start, child.inner, name=f"{child.start}")
            yield from list_items(child, table)
            yield InlineItem("close", child.close, child.end, name=f"{child.start}")


def _list_android(element: Element) -> list[Element]:
    if element.attributes.get("translatable") == "false" or element.attributes.get("translate") == "no":
        return []
    texts = [element] if element.name == "string" else [child for child in element.children if child.name == "item"]
    return [text for text in texts if not _POINTER.match(text.document, text.inner)]


def _list_resx(element: Element) -> list[Element]:
    """A value with a type is an image, a size or the like; names with >> are those of controls."""
    value, attributes = element.child("value"), element.attributes
    is_text = not {"type", "mimetype"} & attributes.keys() and not attributes.get("name", "").startswith(">>")
    return [value] if value is not None and is_text else []


def _read_android(raw: str) -> str:
    text = read(raw)
    return _read_escapes(text if _QUOTED.search(text) else re.sub(r"[ \t\n]+", " ", text))


def _read_escapes(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        name = found[1] or ""
        return chr(int(name[1:], 16)) if len(name) == 5 else _LETTERS.get(name, name)

    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two halves are one character


def _write_escapes(text: str) -> str:
    return _SPECIAL.sub(lambda found: _NAMES.get(found[0], f"\\{found[0]}"), replace_controls(text).replace("\r", " "))


def _write_cdata(text: str, bare: bool) -> str:
    written = _write_escapes(text).replace("]]>", "]]]]><![CDATA[>")
    return written.replace(r"\"", '"') if bare and text.count('"') % 2 == 0 else written


ANDROID = TextTable(
    "resources", ("string", "plurals", "string-array"), _list_android, _read_android, lambda new: write(_write_escapes(new)), frozenset("g")
)
RESX = TextTable("root", ("data",), _list_resx)
