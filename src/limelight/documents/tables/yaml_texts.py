"""`find_yaml` takes the texts of a YAML file of an i18n library. PyYAML tells where they stand, and nothing is made of what they say."""

import json
import re
from itertools import accumulate
from typing import Any

try:
    import yaml
except ImportError:  # it comes with an extra
    yaml = None

from limelight.documents.encodings import Document
from limelight.documents.tables.text_tree import DEEPEST, TextNode, find_texts, refuse_depth
from limelight.documents.units import ExtractionResult, edges
from limelight.errors import ConfigError, DataError

_TEXT = "tag:yaml.org,2002:str"
_BREAKS = {chr(code): f"\\x{code:02X}" for code in range(0x7F, 0xA0)}  # that YAML forbids, or takes for the end of a line
_BREAKS |= {"\u2028": "\\L", "\u2029": "\\P", "\ufeff": "\\uFEFF"}
_BEFORE = re.compile(r"(?:[&!]\S*\s++)+")  # an anchor, a tag
_BRACKETS = re.compile(r"[\[\]{}]")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))  # that are no texts
_PLAIN = re.compile(r"[^\W\d_][^\n\r\t\x7f-\x9f\u2028\u2029\ufeff{}\[\],#:&*!|>'\"%@`?]*")


def find_yaml(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    if yaml is None:
        raise ConfigError('YAML needs PyYAML, which is not installed; add it: pip install "limelight[documents]"')
    for number, line in enumerate(document.text.split("\n"), start=1):  # the parser takes the square of their depth on a line
        if max(accumulate(1 if sign in "[{" else -1 for sign in _BRACKETS.findall(line)), default=0) > DEEPEST:
            raise refuse_depth(document, number)
    try:
        root = _YamlReader(document, yaml.SafeLoader(document.text), yaml.ScalarNode).read()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f", line {mark.line + 1}" if mark else ""
        raise DataError(f"{document.name}{at}: no YAML ({getattr(error, 'problem', None) or 'a character that it forbids'})") from None
    return find_texts(document, root, lambda node, text: _write(document.text, node, text))


class _YamlReader:
    def __init__(self, document: Document, loader: Any, scalar: Any) -> None:
        self.document, self.loader, self.scalar = document, loader, scalar

    def read(self) -> TextNode:
        found = []
        while self.loader.check_event():
            event = self.loader.get_event()
            if type(event).__name__ in ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent"):
                found.append((None, self._value(event, 0)))
        return TextNode(0, len(self.document.text), None, tuple(found))

    def _value(self, event: Any, depth: int) -> TextNode:
        self.document.check_time()
        start, end, kind = event.start_mark.index, event.end_mark.index, type(event).__name__
        if kind == "ScalarEvent":
            tag = event.tag or self.loader.resolve(self.scalar, event.value, event.implicit)
            before = _BEFORE.match(self.document.text, start, end)
            start = before.end() if before else start
            return TextNode(start, end, event.value if tag == _TEXT else None, style=event.style or "plain")
        if kind == "AliasEvent":
            return TextNode(start, end)
        if depth >= DEEPEST:
            raise refuse_depth(self.document, event.start_mark.line + 1)
        children: list[tuple[TextNode | None, TextNode]] = []
        while type(event := self.loader.get_event()).__name__ not in ("MappingEndEvent", "SequenceEndEvent"):
            key = self._value(event, depth + 1) if kind == "MappingStartEvent" else None
            children.append((key, self._value(self.loader.get_event() if key else event, depth + 1)))
        return TextNode(start, end, None, tuple(children))


def _write(document: str, node: TextNode, text: str) -> str:
    raw, core = document[node.start : node.end], edges(text)[1]
    if node.style in "|>" and (block := _write_block(raw, node.style, core.split("\n"))):
        return block
    if node.style == "plain" and _PLAIN.fullmatch(text) and text == core and text.lower() not in _WORDS:
        return text
    if node.style == "'" and "\n" not in text and not any(char in text for char in _BREAKS):
        return "'" + text.replace("'", "''") + "'"
    trail = raw[len(raw.rstrip()) :] if node.style in "|>" else ""  # a block lasts to the beginning of the next line
    return "".join(_BREAKS.get(char, char) for char in json.dumps(text, ensure_ascii=False)) + trail


def _write_block(raw: str, style: str, lines: list[str]) -> str | None:
    """The lines of a block in place of the old ones, with their indent; None where a block cannot hold them."""
    head, _, body = raw.partition("\n")
    old = body.strip()
    if not old or re.search(r"\d", head.partition("#")[0]) or any(line != line.strip() or set(line) & {*_BREAKS, "\r"} for line in lines):
        return None
    indent = body[: len(body) - len(body.lstrip())].rpartition("\n")[2]
    newline = "\r\n" if head.endswith("\r") else "\n"
    between = newline * (style == ">") + indent  # where lines are folded, one more line end stands before every line with text
    start = len(raw) - len(body) + body.index(old)
    return raw[:start] + newline.join(between + line if at and line else line for at, line in enumerate(lines)) + raw[start + len(old) :]
