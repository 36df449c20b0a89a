r"""`find_usfm` takes the text of each verse, heading and paragraph of a Scripture file. See docs/documents.md."""

import re

from limelight.documents.encodings import Document
from limelight.documents.sentences import InlineItem, find_sentences
from limelight.documents.splices import LineCounter
from limelight.documents.units import DocumentUnit, ExtractionResult, replace_controls
from limelight.errors import DataError

_CHARACTERS = (
    "add bdit bd bk dc em fig it jmp k lik litl nd no ord pn png pro "  # codespell:ignore
    "qac qs qt rb rq ruby sc sig sls sup tl tr va vp w wa wg wh wj"
)
_MARKER = re.compile(r"\\\+?(?P<name>[a-z][a-z0-9-]*+)(?P<end>\*)?(?P<number>(?<=\\v)\s++[^\s\\]*+|(?<=\\c)\s++[^\s\\]*+)?[ \t]?")
_MILESTONE = re.compile(r"\\[a-z][a-z0-9-]*+\s*+(?:\|[^\\\n]*+)?\\\*")
_NOTES = frozenset(("f", "fe", "x", "ef", "ex", "fig", "va", "vp", "rq", "cat"))  # up to their end they are one thing
_ASIDE = re.compile(r"(?:id|ide|rem|sts|usfm|restore|c|ca|cp|cl|v|b|esb|esbe|cat|periph|lit)\d?")  # what follows on the line is no text
_INLINE = frozenset(_CHARACTERS.split())
_BOOK = re.compile(r"^\\id\s", re.MULTILINE)
_BLANKS = re.compile(r"\s+")


def find_usfm(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    """A sentence ends at every marker that is not of characters."""
    text, lines = document.text, LineCounter(document.text)
    if not _MARKER.match(text.lstrip()) and not _BOOK.search(text):  # before the book there may be a word about its licence
        raise DataError(f"{document.name} does not begin with a marker such as \\id, and no line does so with \\id; is it USFM?")
    units, run, cursor, aside = list[DocumentUnit](), list[InlineItem](), 0, True
    ends = {name: text.rfind(f"\\{name}*") for name in _NOTES}
    at = 0
    while marker := _MARKER.search(text, at):
        document.check_time()
        name, start, at = marker["name"], marker.start(), marker.end()
        if milestone := _MILESTONE.match(text, start):
            run += [_make_text(text, cursor, start)] if not aside and cursor < start else []
            run.append(InlineItem("single", start, milestone.end()))
            at = cursor = milestone.end()
            continue
        bar = text.find("|", cursor, start) if marker["end"] else -1  # attributes belong to the end
        start = bar if bar >= 0 else start
        if not aside and cursor < start:
            run.append(_make_text(text, cursor, start))
        cursor = at
        if name in _NOTES and ends[name] >= at:
            at = cursor = text.index(f"\\{name}*", at) + len(name) + 2
            run.append(InlineItem("single", start, at))
        elif name in _INLINE:
            end = at - (marker["end"] is not None and text[at - 1] in " \t")  # the blank after a closing marker is text
            at = cursor = end
            run.append(InlineItem("close" if marker["end"] else "open", start, end, name=name))
        else:
            units += find_sentences(run, text, _read, _write, lines)
            run, aside = [], _ASIDE.fullmatch(name) is not None and name != "v"
    if not aside and cursor < len(text):
        run.append(_make_text(text, cursor, len(text)))
    units += find_sentences(run, text, _read, _write, lines)
    return ExtractionResult(units)


def _make_text(text: str, start: int, end: int) -> InlineItem:
    return InlineItem("text", start, end, _read(text[start:end]))


def _read(raw: str) -> str:
    return _BLANKS.sub(" ", raw)


def _write(text: str) -> str:
    """A backslash would be a marker, a bar would be attributes, and there is no other way to write them."""
    return replace_controls(_BLANKS.sub(" ", text)).replace("\\", "/").replace("|", "/")
