"""`find_xliff` finds the empty targets of XLIFF 1.x and 2.x and says how they are filled. Each is written in
the place and with the inline elements that the format asks for. See docs/documents.md.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from limelight.corpus.reading.language_tags import closeness
from limelight.documents.encodings import Document
from limelight.documents.formats.xml_elements import Element, fill_target, read_elements, write_target
from limelight.documents.splices import Range, Splice
from limelight.documents.units import DocumentUnit, ExtractionResult, TranslatedUnit
from limelight.errors import DataError
from limelight.text.language_names import stated_tag

ITS = "http://www.w3.org/2005/11/its"
ANNOTATOR = "mt-confidence|Limelight"  # ITS asks who measured: its:annotatorsRef
_ATTRIBUTE = re.compile(r"""(?<!\s)(\s++)([^\s=<>"'/]++)(\s*+=\s*+)("[^"]*+"|'[^']*+')""")
_UNTRANSLATED = ("new", "needs-translation", "initial")
_HEADER = "x-gettext-domain-header"  # how catalogues keep their header in XLIFF


def find_xliff(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    reader = _Xliff(document, languages, again)
    read_elements(document, "xliff", ("trans-unit", "segment"), reader.take)
    return ExtractionResult(reader.units, reader.left, finish=reader.finish)


class _Place(NamedTuple):
    unit: Element
    target: Element | None
    was_guess: bool  # it had a translation that nobody had confirmed


class _Xliff:
    def __init__(self, document: Document, languages: tuple[str, str], again: bool) -> None:
        self.document, self.languages, self.again = document, languages, again
        self.units: list[DocumentUnit] = []
        self.left = 0
        self.stated: dict[int, Splice] = {}  # the target language, where a file does not say it yet
        self.checked = -1  # the file whose languages have been compared
        self.its: _Its | None = None

    def take(self, unit: Element, around: list[Element]) -> None:
        source, target = unit.child("source"), unit.child("target")
        if source is None:
            return
        source = unit.child("seg-source") or source  # the same text, cut into sentences
        if not source.sentence().has_text or not self._is_wanted(unit, around, source, target):
            self.left += 1
            return
        self._compare_languages(around)
        if target is None:
            place, name = Range(source.end, source.end), f"{source.prefix}target"
            opening, closing = f"{source.indent}<{name}>", f"</{name}>"
            new = write_target(source, place, opening, closing, _Place(unit, target, was_guess=False))
        else:
            new = fill_target(source, target, _Place(unit, target, not target.is_blank and not _is_copy(source, target)))
        self.units.append(new)
        if self.its is None and unit.name == "trans-unit":
            self.its = _Its(around[0])

    def finish(self, units: Sequence[TranslatedUnit]) -> list[Splice]:
        """The targets with their states, and what the file must declare for them."""
        splices = [splice for each in units if each.splices for splice in self._add_state(each)]
        return [*splices, *self.stated.values(), *([self.its.declarations] if self.its else [])]

    def _add_state(self, each: TranslatedUnit) -> list[Splice]:
        place: _Place = each.unit.origin
        assert each.confidence is not None, "what was written has one"
        needs_review = bool(each.reasons) or place.was_guess
        if place.unit.name == "segment" or self.its is None:
            state = "initial" if needs_review else "translated"
            how = "exact-match" if each.from_memory else f"mt-{each.confidence:.3f}"
            values = {"state": "reviewed"} if each.reviewed else {"state": state, "subState": f"limelight:{how}"}
            return [*each.splices, _change_tag(place.unit, values)]
        values = {"state": "signed-off"} if each.reviewed else self.its.state(None if each.from_memory else each.confidence, needs_review)
        if place.target is not None and not place.target.is_empty_tag:
            return [*each.splices, _change_tag(place.target, values)]
        (splice,) = each.splices
        opening, *rest = splice.parts
        assert isinstance(opening, str), "a new target begins with its tag"
        return [splice._replace(parts=(with_attributes(opening, values), *rest))]

    def _is_wanted(self, unit: Element, around: list[Element], source: Element, target: Element | None) -> bool:
        marks = [element.attributes["translate"] for element in (*around, unit) if "translate" in element.attributes]
        if marks[-1:] == ["no"] or unit.attributes.get("restype") == _HEADER:
            return False
        if target is None or target.is_blank:
            return True
        state = target.attributes.get("state") or unit.attributes.get("state", "")
        if state in _UNTRANSLATED:
            return self.again or _is_copy(source, target)
        return self.again and state.startswith("needs-")

    def _compare_languages(self, around: list[Element]) -> None:
        """Refuse languages of the <file> (1.x) or of the whole (2.x) that are not those of the translator."""
        holder, names = around[0], ("srcLang", "trgLang")
        if "srcLang" not in holder.attributes:
            names = ("source-language", "target-language")
            holder = next((element for element in around if element.name == "file"), holder)
        if holder.start == self.checked:
            return
        self.checked = holder.start
        source, target = (holder.attributes.get(name) for name in names)
        for language, said in zip(self.languages, (source, target), strict=True):
            if said and closeness(language, said) is None:
                raise DataError(
                    f"{self.document.name}, line {holder.line}: this file goes from {source or '(not said)'} to "
                    f"{target or '(not said)'}, and the translator from {self.languages[0]} to {self.languages[1]}; "
                    "take another translator"
                )
        if target is None and (source or names[0] == "source-language"):
            end = holder.inner - 1
            self.stated[holder.start] = Splice(end, end, (_format_attributes({names[1]: stated_tag(self.languages[1])}),))


class _Its:
    """The attributes of ITS for the targets of a document of version 1; `declarations` are those that its root needs for them."""

    def __init__(self, root: Element) -> None:
        tag, text = root.tag, root.document
        declared = re.search(rf"""\sxmlns:([^\s=]+)\s*=\s*["']{re.escape(ITS)}["']""", tag)
        self.prefix: str | None = declared[1] if declared else "its"
        if text.count(ITS) > tag.count(ITS) or (not declared and f"xmlns:{self.prefix}" in text):
            self.prefix = None  # someone else's elements use the namespace or the name in ways of their own
        self.annotated = f"{self.prefix}:annotatorsRef" in tag
        wanted = {} if declared else {f"xmlns:{self.prefix}": ITS}
        wanted |= {f"{self.prefix}:version": "2.0", f"{self.prefix}:annotatorsRef": ANNOTATOR}
        new = {name: value for name, value in wanted.items() if self.prefix and name not in tag}
        self.declarations = Splice(root.inner - 1, root.inner - 1, (_format_attributes(new),))

    def state(self, confidence: float | None, needs_review: bool) -> dict[str, str]:
        """Without a confidence no machine made it."""
        state = "needs-review-translation" if needs_review else "translated"
        attributes = {"state": state, "state-qualifier": "exact-match" if confidence is None else "mt-suggestion"}
        if self.prefix and confidence is not None:
            attributes[f"{self.prefix}:mtConfidence"] = f"{confidence:.3f}"
            if self.annotated:  # by another tool, or for another kind of notes
                attributes[f"{self.prefix}:annotatorsRef"] = ANNOTATOR
        return attributes


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """with_attributes('<a b="1">', {"b": "2", "c": "3"}) -> '<a b="2" c="3">'. All others stay as they are, to the byte."""
    new = dict(values)

    def change(match: re.Match[str]) -> str:
        value = new.pop(match[2], None)
        return match[0] if value is None else f'{match[1]}{match[2]}{match[3]}"{value}"'

    changed = _ATTRIBUTE.sub(change, tag)
    return changed[:-1] + _format_attributes(new) + ">"


def _format_attributes(attributes: Mapping[str, str]) -> str:
    return "".join(f' {name}="{value}"' for name, value in attributes.items())


def _change_tag(element: Element, values: Mapping[str, str]) -> Splice:
    return Splice(element.start, element.inner, (with_attributes(element.tag, values),))


def _is_copy(source: Element, target: Element) -> bool:
    return target.sentence().text == source.sentence().text
