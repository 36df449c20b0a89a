"""`find_runs` takes the paragraphs of Word and PowerPoint, whose text stands in runs that have one form each. See docs/documents.md."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from limelight.documents.encodings import Document
from limelight.documents.formats.xml_elements import Element, read, read_elements, write
from limelight.documents.sentences import InlineItem, Sentence, fold_pairs
from limelight.documents.splices import Splice, join_parts
from limelight.documents.units import DocumentUnit, ExtractionResult, has_words

_AROUND = frozenset(("hyperlink", "ins", "smartTag"))  # around runs, and may be there twice
_NOTHING = frozenset(("pPr", "rPr", "proofErr", "lastRenderedPageBreak", "endParaRPr", "softHyphen"))
_KEPT = frozenset(("bookmarkStart", "bookmarkEnd", "commentRangeStart", "commentRangeEnd"))
_BREAKS = frozenset(("tab", "br", "cr", "fldChar", "instrText", "ptab", "AlternateContent", "pict", "object"))
_SPELLING = re.compile(r' (?:dirty|err|smtClean|lang|altLang)="[^"]*"|<\w+:(?:lang|noProof)\b[^<>]*/>')
_PRESERVE = ' xml:space="preserve"'  # else Word drops blanks at the edges of a text
_FILLED_IN = re.compile(r"\s*+(?:MERGEFIELD|FILENAME|AUTHOR|LASTSAVEDBY|USERNAME|USERINITIALS|DOCPROPERTY|DOCVARIABLE|TEMPLATE)\b", re.I)
_SHOWN = "shown"  # instead of the code of a field, after the code
_MOST_COPIED = 100_000  # characters of one form, which each of its texts is written with
_EMPTY = re.compile(r"<(\w+:rPr)>\s*</\1>|<\w+:rPr\s*/>")


class _Piece(NamedTuple):
    """A text or a single thing, the form that it has, and the place of all that would be written anew with it."""

    start: int
    end: int
    form: tuple[str, str]  # what opens it and closes it
    outside: tuple[int, int]
    single: str = ""


def find_runs(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    units, left = list[DocumentUnit](), 0

    def take(paragraph: Element, around: list[Element]) -> None:
        nonlocal left
        document.check_time()
        boxes = [paragraph]
        while boxes:
            inside, box = list[Element](), boxes.pop()
            hidden = _find_hidden(box)
            left += len(hidden)
            shown = (piece and (None if piece.start in hidden else piece) for piece in _list_pieces(box, ("", ""), inside))
            for is_break, pieces in groupby(shown, key=lambda piece: piece is None):
                units.extend([] if is_break else _make_units([piece for piece in pieces if piece], document.text))
            boxes += inside

    read_elements(document, None, ("p",), take)
    return ExtractionResult(units, left)


def _find_hidden(paragraph: Element) -> set[int]:
    """Where texts begin that belong to the code of a field, or that Word fills in, or that hold more than text (CDATA, comments); a field
    without an end in its paragraph hides none."""
    texts, change, fields = list[int](), Counter[int](), list[tuple[int, str]]()  # of each open field: its first text, its code
    for element in _walk(paragraph):
        kind = next((value for key, value in element.attributes.items() if key.endswith("fldCharType")), "")
        if element.name == "t":
            texts.append(element.inner)
            change[len(texts) - 1] += (odd := "<!" in element.document[element.inner : element.close])
            change[len(texts)] -= odd
        elif element.name == "instrText" and fields and len(fields[-1][1]) < 99:
            fields[-1] = fields[-1][0], fields[-1][1] + element.document[element.inner : element.close][:99]
        elif kind == "begin":
            fields.append((len(texts), ""))
        elif fields and (kind == "end" or (kind == "separate" and not _FILLED_IN.match(fields[-1][1]))):
            first, code = fields.pop()
            change[first] += code != _SHOWN
            change[len(texts)] -= code != _SHOWN
            fields += [(len(texts), _SHOWN)] if kind == "separate" else []
    depths = accumulate(change[number] for number in range(len(texts)))
    return {start for start, depth in zip(texts, depths, strict=True) if depth > 0}


def _walk(element: Element) -> Iterator[Element]:
    """What is inside, in order, without paragraphs of their own."""
    for child in element.children:
        if child.name != "p":
            yield child
            yield from _walk(child)


def _list_pieces(element: Element, around: tuple[str, str], boxes: list[Element]) -> Iterator[_Piece | None]:
    """The pieces of a paragraph, None where a sentence ends. Paragraphs inside go to `boxes`."""
    for child in element.children:
        place = child.start, child.end
        if child.name == "p":
            boxes.append(child)
        elif child.name == "r":
            yield from _list_run(child, around, boxes)
        elif child.name in _KEPT:
            yield _Piece(*place, ("", ""), place, child.document[child.start : child.end])
        elif child.name in _AROUND and not any(map(_cuts, child.children)) and len(child.tag) * len(child.children) <= _MOST_COPIED:
            inner = _list_pieces(child, (child.tag, f"</{child.written_name}>"), boxes)
            yield from [piece and piece._replace(outside=place) for piece in inner]
        elif child.name not in _NOTHING:
            yield None
            code = next((value for key, value in child.attributes.items() if key.endswith("instr")), "")
            if child.name not in ("fld", "oMath", "oMathPara") and not _FILLED_IN.match(code):  # what the program writes, a formula
                yield from _list_pieces(child, ("", ""), boxes)
            yield None


def _cuts(element: Element) -> bool:
    """Whether a sentence ends in it."""
    if element.name != "r":
        return element.name != "p" and element.name not in _KEPT and element.name not in _NOTHING
    names = {child.name for child in element.children if child.name not in _NOTHING}
    return bool(names & _BREAKS or ("t" in names and names - {"t", "noBreakHyphen"}))


def _list_run(run: Element, around: tuple[str, str], boxes: list[Element]) -> Iterator[_Piece | None]:
    text, name, properties = run.document, run.written_name, run.child("rPr")
    raw = text[properties.start : properties.end] if properties is not None else ""
    opening, closing = f"{around[0]}<{name}>{_EMPTY.sub('', _SPELLING.sub('', raw))}", f"</{name}>{around[1]}"
    parts = [child for child in run.children if child.name not in _NOTHING]
    if _cuts(run) or len(opening) * len(parts) > _MOST_COPIED:  # each text in its place, as others may stand between them
        for child in parts:
            yield None
            if child.name == "t" and not child.is_empty_tag:
                yield _Piece(child.inner, child.close, ("", ""), (child.inner, child.close))
            else:
                yield from _list_pieces(child, ("", ""), boxes)
        yield None
        return
    for child in parts:
        if child.name != "t":
            kept = f"{opening}{text[child.start : child.end]}{closing}"
            yield _Piece(child.start, child.end, ("", ""), (run.start, run.end), kept)
        elif not child.is_empty_tag:
            mark = f"<{child.written_name}{_PRESERVE * ('/wordprocessingml' in text[:9000])}>"
            yield _Piece(child.inner, child.close, (opening + mark, f"</{child.written_name}>{closing}"), (run.start, run.end))


def _make_units(pieces: Sequence[_Piece], text: str) -> Iterator[DocumentUnit]:
    edges = [at for at, piece in enumerate(pieces) if not piece.single]
    if edges:  # single things at an edge stay where they are, unless they share a wrapper with text
        low, high = edges[0], edges[-1]
        while low and pieces[low - 1].outside == pieces[low].outside:
            low -= 1
        while high + 1 < len(pieces) and pieces[high + 1].outside == pieces[high].outside:
            high += 1
        pieces = pieces[low : high + 1]
    if not any(has_words(text[piece.start : piece.end]) for piece in pieces if not piece.single):
        return
    weight: Counter[tuple[str, str]] = Counter()
    for piece in pieces:
        weight[piece.form] += 0 if piece.single else sum(map(str.isalpha, text[piece.start : piece.end]))
    base = weight.most_common(1)[0][0]
    items = list(_list_items(pieces, base, text))
    sentence = Sentence(items, text, read, write)
    unit = sentence.unit(1)
    if len(pieces) == 1:
        yield unit
        return
    folded, first, last = fold_pairs(items), sentence.items[0], sentence.items[-1]
    at = next(at for at, item in enumerate(folded) if item.kind == first.kind and item.start <= first.start <= first.end <= item.end)
    until = at + len(sentence.items)
    before = "".join(item.written for item in folded[:at]) + text[folded[at].start : first.start]
    after = text[last.end : folded[until - 1].end] + "".join(item.written for item in folded[until:])

    def surround(splices: list[Splice] | None) -> list[Splice] | None:
        """All of the pieces anew, without runs that are empty."""
        if not splices:
            return splices
        new = join_parts(text, splices[0].parts)
        written = f"{base[0]}{before}{new}{after}{base[1]}".replace(f"{base[0]}{base[1]}", "")
        return [Splice(pieces[0].outside[0], pieces[-1].outside[1], (written,))]

    yield unit.change_splices(surround)


def _list_items(pieces: Sequence[_Piece], base: tuple[str, str], text: str) -> Iterator[InlineItem]:
    """Every item is written as if it stood in a run of the base form."""
    within = base
    for piece in [*pieces, pieces[-1]._replace(start=pieces[-1].end, form=base, single="")]:
        form = base if piece.single else piece.form
        name = f"{piece.start}"
        if within not in (base, form):
            yield InlineItem("close", piece.start, piece.start, name="run", written=within[1] + base[0])
        if form not in (base, within):
            yield InlineItem("open", piece.start, piece.start, name="run", written=base[1] + form[0])
        within = form
        if piece.single:
            yield InlineItem("single", piece.start, piece.end, name=name, written=base[1] + piece.single + base[0])
        elif piece.start < piece.end:
            raw = text[piece.start : piece.end]
            yield InlineItem("text", piece.start, piece.end, read(raw), written=raw)
