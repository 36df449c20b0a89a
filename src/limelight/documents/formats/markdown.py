"""`find_markdown` takes each paragraph, heading, list item and cell of a table as a text, with its inline markup as tags:

    - Open *the* [settings](s.md)    ->  Open <g id="1">the</g> <g id="2">settings</g>

Blocks are found by markdown-it, which tells their lines. Left alone: code, addresses, labels, front matter, footnote marks, comments.
Pieces of HTML between the blocks are read as pages are. A translation stands on one line; whatever it says, the block stays the same block.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from markdown_it import MarkdownIt

from limelight.documents.encodings import Document
from limelight.documents.formats.html import find_html
from limelight.documents.formats.markdown_inline import BREAK, escape, find_markup, read
from limelight.documents.sentences import InlineItem, Sentence, cut
from limelight.documents.splices import LineCounter, Part, Range, Splice, join_parts, line_places
from limelight.documents.units import DocumentUnit, ExtractionResult, Remark

_FRONT = re.compile(r"\A(---|\+\+\+)[ \t]*\n(?s:.*?)^\1[ \t]*$", re.MULTILINE)
# What would begin another block where a paragraph begins: a backslash goes after what is found.
_BEGINS = re.compile(r"\s*(?:\d{1,9}(?=[.)](?:\s|$))|(?=#{1,6}(?:\s|$)|[-+](?:\s|$)|[>=|]|~~~|:::|!!!|\?\?\?))")


class _Block(NamedTuple):
    places: list[tuple[int, int]]
    text: str
    starts: list[int]  # of each line in the text
    cell: bool

    def place(self, at: int) -> int:
        line = bisect_right(self.starts, at) - 1
        return self.places[line][0] + at - self.starts[line]


def find_markdown(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    text, units, remarks = document.text, list[DocumentUnit](), list[Remark]()
    shown = text.replace("\r\n", "\n").replace("\r", " ")
    if front := _FRONT.match(shown):
        shown = re.sub(r"[^\n]", " ", front[0]) + shown[front.end() :]
    environment: dict[str, Any] = {}
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    tokens = parser.parse(shown, environment)
    places, references = line_places(text), environment.get("references", {})
    cursor, lines = 0, LineCounter(text)
    for before, token in pairwise([None, *tokens]):
        document.check_time()
        if token is None or token.map is None:
            continue
        if token.type == "html_block" and token.level == 0:
            units += _find_in_html(document, languages, (token.map[0], places[token.map[0]][0], places[token.map[1] - 1][1]))
        elif token.type == "inline" and before is not None:
            cell = before.type in ("th_open", "td_open")
            cursor = max(cursor, places[token.map[0]][0]) if cell else places[token.map[0]][0]
            block = _find_block(text, places, token, cursor, cell)
            if block is None:
                remarks.append(
                    Remark(token.map[0] + 1, "unplaced", "the text of this block is not where it should be; it is left as it is")
                )
                continue
            cursor = block.places[-1][1]
            units += _find_units(document, lines, block, references)
    return ExtractionResult(units, len(remarks), tuple(remarks))


def _find_block(text: str, places: Sequence[tuple[int, int]], token: Any, cursor: int, cell: bool) -> _Block | None:
    """Where each line of a block stands: what is before it on the line is the list or the quotation that it is in."""
    found, starts, size = list[tuple[int, int]](), list[int](), 0
    for number, line in enumerate(token.content.split("\n"), start=token.map[0]):
        start, end = places[number]
        wanted = line.lstrip(" \t")
        if cell:  # many may stand on a line, which is not copied for each
            wanted = wanted.replace("|", r"\|")
            at = text.find(wanted, max(start, cursor), end)
        else:
            flat = text[start:end].replace("\r", " ")
            at = start + (flat.rfind(wanted) if found else flat.find(wanted, max(0, cursor - start)))
        if at < start:
            return None
        found.append((at, at + len(wanted)))
        starts.append(size)
        size += len(wanted) + 1
    return _Block(found, "\n".join(text[start:end] for start, end in found), starts, cell)


def _find_units(document: Document, lines: LineCounter, block: _Block, references: Any) -> Iterator[DocumentUnit]:
    text = document.text
    for items in _find_items(block, references):
        document.check_time()
        for part in cut(items):
            sentence = Sentence(part, text, read, lambda new: escape(new, bool(references), block.cell))
            if sentence.has_words:
                around = text[part[0].start : sentence.start], text[sentence.end : part[-1].end]
                yield _guard(sentence, text, lines.of(sentence.start), around, references)


def _find_items(block: _Block, references: Any) -> Iterator[list[InlineItem]]:
    """The items of each stretch between hard line breaks and lines that are marks."""
    items: list[InlineItem] = []
    cursor = 0
    for tag in [*find_markup(block.text, references), InlineItem("single", len(block.text), len(block.text))]:
        gap = block.text[cursor : tag.start]
        core = gap.strip()
        lead = cursor + len(gap) - len(gap.lstrip())
        for start, end in ((cursor, lead), (lead, lead + len(core)), (lead + len(core), tag.start)):
            if start < end and (core or start == cursor):
                one = block.text[start:end]
                # Blanks are items of their own: between two lines there may be marks of a quotation, and what follows must begin no block.
                items.append(InlineItem("text", block.place(start), block.place(end - 1) + 1, read(one), written=" " * (one == "\n")))
        raw, cursor = block.text[tag.start : tag.end], tag.end
        if tag.start == tag.end or tag.name == BREAK or raw[:3].lower() == "<br":
            yield items
            items = []
        else:
            items.append(tag._replace(start=block.place(tag.start), end=block.place(tag.end - 1) + 1))
    yield items


def _guard(sentence: Sentence, text: str, line: int, around: tuple[str, str], references: Any) -> DocumentUnit:
    """A unit whose translation has the same markup when it is read again, together with what is around it, and begins no other block."""
    unit = sentence.unit(line)
    written = "".join(item.written or text[item.start : item.end] for item in sentence.items)
    wanted = _list_markup(written.join(around), references)

    def check(splices: list[Splice] | None) -> list[Splice] | None:
        if not splices:
            return splices
        parts = [part for part in splices[0].parts if part]
        if isinstance(parts[0], str) and (begins := _BEGINS.match(parts[0])):
            parts[0] = f"{begins[0]}\\{parts[0][begins.end() :]}"
        same = _list_markup(join_parts(text, parts).join(around), references) == wanted
        return [splices[0]._replace(parts=tuple(parts))] if same else None

    return unit.change_splices(check)


def _list_markup(text: str, references: Any) -> list[str]:
    return sorted(text[item.start : item.end] for item in find_markup(text, references))


def _find_in_html(document: Document, languages: tuple[str, str], place: tuple[int, int, int]) -> Iterator[DocumentUnit]:
    line, start, end = place

    def join(translation: str) -> str:
        return " ".join(translation.split("\n"))  # an empty line would end the piece

    def shift(splices: list[Splice] | None) -> list[Splice] | None:
        def move_part(part: Part) -> Part:
            return part if isinstance(part, str) else Range(part.start + start, part.end + start)

        return splices and [Splice(a + start, b + start, tuple(map(move_part, parts)), small) for a, b, parts, small in splices]

    def move(unit: DocumentUnit) -> DocumentUnit:
        joined = replace(
            unit, line=unit.line + line, whole=lambda new: unit.whole(join(new)), apart=lambda runs: unit.apart(list(map(join, runs)))
        )
        return joined.change_splices(shift)

    yield from map(move, find_html(replace(document, text=document.text[start:end]), languages, False).units)
