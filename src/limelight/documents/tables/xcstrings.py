"""`find_xcstrings` fills what has no translation in a string catalogue of Xcode, from the source language or, as Xcode, from the key."""

from collections.abc import Iterator, Sequence, Set

from limelight.corpus.reading.language_tags import closeness
from limelight.documents.encodings import Document
from limelight.documents.splices import LineCounter, Splice
from limelight.documents.tables.json_texts import read_json, write_json
from limelight.documents.tables.text_tree import HALF, HALF_LEFT, TextNode
from limelight.documents.units import DocumentUnit, ExtractionResult, Remark, TranslatedUnit, edges, has_words, replace_controls
from limelight.errors import DataError
from limelight.text.language_names import stated_tag

_DONE, _DOUBTFUL = '"translated"', '"needs_review"'


def find_xcstrings(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    root = read_json(document)
    strings, language = root.child("strings"), root.child("sourceLanguage")
    if strings is None or language is None or language.text is None:
        raise DataError(f"{document.name} has no sourceLanguage or no strings, so it is no string catalogue; check its name")
    if closeness(languages[0], language.text) is None:
        raise DataError(f"{document.name} is in {language.text}, and the translator is from {languages[0]}; take another translator")
    lines, units, left, remarks = LineCounter(document.text), list[DocumentUnit](), 0, list[Remark]()
    for key, entry in strings.children:
        document.check_time()
        if key is None or key.text is None:
            raise DataError(f"{document.name}: strings is no object, so it is no string catalogue; check its name")
        if document.text[entry.start] != "{":
            left += has_words(key.text)
            continue
        found = list(_fill(document, lines, (key, entry), language.text, (stated_tag(languages[1]), again)))
        if any(HALF.search(unit.text) for unit in found):
            remarks.append(Remark(lines.of(key.start), "malformed", HALF_LEFT))
            continue
        units += found
        left += not found and has_words(key.text)
    return ExtractionResult(units, left, tuple(remarks), finish=_finish)


def _fill(
    document: Document, lines: LineCounter, string: tuple[TextNode, TextNode], source: str, aim: tuple[str, bool]
) -> Iterator[DocumentUnit]:
    """A unit for each text of the source's localization, whose splices together are the new one."""
    key, entry = string
    wanted, known = entry.child("shouldTranslate"), entry.child("localizations")
    if wanted is not None and document.text[wanted.start : wanted.end] == "false":
        return
    if known is not None and document.text[known.start] != "{":
        return
    model = known.child(source) if known is not None else None
    all_texts = list(_list_units(model)) if model is not None else []
    (target, again), same = aim, {key.text, "", *(value.text for _, value in all_texts)}
    near = list[tuple[int | None, TextNode, TextNode]]()
    for name, each in known.children if known else ():
        document.check_time()
        if name is not None:
            near.append((closeness(target, name.text or ""), name, each))
    old = [one for one in near if one[0] == 0] or [one for one in near if one[0] and one[1].text != source]
    if not all(each is not model and _is_new(each, None if again else same) for _, _, each in old):
        return
    place, opening, closing, indent = _find_place(document.text, string, target)
    for _, name, each in [one for one in old if one[0] != 2][:1]:  # a more general one stays beside it
        if not {*_list_forms(each)} <= {*(_list_forms(model) if model else ())}:
            return  # plural forms of its own, which a copy of the source's would lose
        place, opening, closing, indent = (each.start, each.end), "", "", _indent_of(document.text, name)
    texts = [one for one in all_texts if has_words(one[1].text or "")]  # the others are copied as they are
    if not (texts if all_texts else has_words(key.text or "")):
        return
    if not texts:
        inner = indent + "    "
        opening += f'{{{indent}  "stringUnit" : {{{inner}"state" : '
        yield _make_unit(document, lines.of(key.start), key, place, (opening, f',{inner}"value" : ', f"{indent}  }}{indent}}}{closing}"))
        return
    assert model is not None
    cursor = model.start
    for number, (state, value) in enumerate(texts, start=1):
        before = document.text[cursor : value.start], ""
        if state is not None and cursor <= state.start < value.start:
            before = document.text[cursor : state.start], document.text[state.end : value.start]
        cursor = value.end
        after = document.text[cursor : model.end] + closing if number == len(texts) else ""
        yield _make_unit(document, lines.of(key.start), value, place, (opening + before[0], before[1], after))
        opening = ""


def _make_unit(document: Document, line: int, source: TextNode, place: tuple[int, int], around: tuple[str, str, str]) -> DocumentUnit:
    lead, text, trail = edges(source.text or "")
    before, between, after = around
    state = _DONE if between else ""

    def whole(translation: str) -> list[Splice]:
        value = write_json(document, lead + replace_controls(translation) + trail)
        return [Splice(*place, (before, state, between, value, after))]

    return DocumentUnit(line, text, whole, group=place[0])


def _finish(units: Sequence[TranslatedUnit]) -> list[Splice]:
    made = []
    for each in units:
        for splice in each.splices:
            before, state, *rest = splice.parts
            made.append(splice._replace(parts=(before, _DOUBTFUL if state and each.reasons else state, *rest)))
    return made


def _is_new(node: TextNode, same: Set[str | None] | None) -> bool:
    """Is a localization one that nobody wrote, whatever it says, or if it says one of these?"""
    units = list(_list_units(node))
    return bool(units) and all(state and state.text == "new" and (same is None or value.text in same) for state, value in units)


def _list_units(node: TextNode) -> Iterator[tuple[TextNode | None, TextNode]]:
    for key, child in node.children:
        value = child.child("value") if key is not None and key.text == "stringUnit" else None
        if value is not None and value.text is not None:
            yield child.child("state"), value
        else:
            yield from _list_units(child)


def _list_forms(node: TextNode, inside: int = 0) -> Iterator[int]:
    """A number for each variation and substitution of a localization, by the names on the way to it."""
    for key, child in node.children:
        if key is not None and key.text != "stringUnit":
            place = hash((inside, key.text))
            yield place
            yield from _list_forms(child, place)


def _find_place(text: str, string: tuple[TextNode, TextNode], target: str) -> tuple[tuple[int, int], str, str, str]:
    """Where a localization goes, what is before and after it, and the line end with the indent of its name."""
    key, entry = string
    known = entry.child("localizations")
    if known is not None and known.children:
        name, last = known.children[-1]
        assert name is not None
        indent = _indent_of(text, name)
        return (last.end, last.end), f',{indent}"{target}" : ', "", indent
    indent = _indent_of(text, key) + "  "
    opening, closing = f'{indent}"localizations" : {{{indent}  "{target}" : ', f"{indent}}}"
    if known is not None:
        return (known.start, known.end), f'{{{indent}  "{target}" : ', closing, indent + "  "
    if entry.children:
        return (entry.children[-1][1].end,) * 2, "," + opening, closing, indent + "  "
    return (entry.start, entry.end), "{" + opening, f"{closing}{indent[:-2]}}}", indent + "  "


def _indent_of(text: str, node: TextNode) -> str:
    start = node.start
    while start and text[start - 1] in " \t\r\n":
        start -= 1
    blanks = text[start : node.start]
    return blanks[blanks.rfind("\n") :] if "\n" in blanks else "\n"
