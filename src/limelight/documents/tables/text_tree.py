"""A `TextNode` is a value of a JSON or YAML file with its place. `find_texts` finds what is to be translated among them:

    {"menu": {"open": "Open {{name}}", "n": 3}}    ->  Open {{name}}

Keys stay, and so does what is said about a text: of {"message": "Open", "description": "..."} only the message is translated, and nothing
under a key that begins with @, $ or //.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from limelight.documents.encodings import Document
from limelight.documents.splices import LineCounter
from limelight.documents.units import ExtractionResult, Remark, edges, has_words, plain_unit, replace_controls
from limelight.errors import DataError

DEEPEST = 100
HALF: Final = re.compile("[\ud800-\udfff]")
HALF_LEFT: Final = "half a character is no text, so it is left as it is"
_MESSAGES = ("message", "defaultMessage", "string")  # of Chrome, of FormatJS, of Transifex
_BESIDE = frozenset(("id", "key", "description", "placeholders", "context", "comment", "developer_comment", "character_limit", "file"))
_ASIDE = ("@", "$", "//")


class TextNode(NamedTuple):
    """A node is a text, with the place where it is written, or has other nodes inside, by their keys or in order."""

    start: int
    end: int
    text: str | None = None
    children: "tuple[tuple[TextNode | None, TextNode], ...]" = ()  # key and value; a list has no keys
    style: str = ""

    def child(self, key: str) -> "TextNode | None":
        return next((value for name, value in self.children if name is not None and name.text == key), None)


def find_texts(document: Document, root: TextNode, write: Callable[[TextNode, str], str]) -> ExtractionResult:
    """`write` gives what stands in the place of a node when it has another text."""
    lines, units, left, remarks = LineCounter(document.text), [], 0, []
    for node, translated in _walk(root):
        document.check_time()
        lead, core, trail = edges(node.text or "")
        if HALF.search(core):
            remarks.append(Remark(lines.of(node.start), "malformed", HALF_LEFT))
        elif has_words(core) and translated:
            place = node.start, node.end
            units.append(plain_unit(lines.of(node.start), core, place, _writer(write, node, lead, trail)))
        left += has_words(core) and not translated
    return ExtractionResult(units, left, tuple(remarks))


def _writer(write: Callable[[TextNode, str], str], node: TextNode, lead: str, trail: str) -> Callable[[str], str]:
    return lambda translation: write(node, lead + replace_controls(translation) + trail)


def _walk(node: TextNode, translated: bool = True) -> Iterator[tuple[TextNode, bool]]:
    """Every text in order, and whether it is to be translated."""
    if node.text is not None:
        yield node, translated
    keys = {key.text for key, _ in node.children if key is not None}
    message = next((name for name in _MESSAGES if name in keys and keys <= _BESIDE | {name}), None)
    for key, value in node.children:
        name = key.text or "" if key is not None else ""
        meant = (message is None or len(keys) == 1 or name == message) and not name.startswith(_ASIDE)
        yield from _walk(value, translated and meant)


def refuse_depth(document: Document, line: int) -> DataError:
    return DataError(f"{document.name}, line {line}: more than {DEEPEST} levels inside each other; it is no file of texts")
