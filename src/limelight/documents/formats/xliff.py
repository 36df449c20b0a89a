"""`find_xliff` finds the empty targets of XLIFF 1.x and 2.x and says how they are filled. Each is written in
the place and with the inline elements that the format asks for.

A target is empty when it is missing, blank, or a copy of its source in the state `new` or `needs-translation`. Other targets whose
state says that they need work are translated only when asked for `again`. What is marked translate="no" is left alone.
What was filled gets a state (`xliff_states`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from limelight.corpus.reading.language_tags import closeness
from limelight.documents.encodings import Document
from limelight.documents.formats.xliff_states import States, of_segment, with_attributes
from limelight.documents.formats.xml_elements import Element, read_elements
from limelight.documents.formats.xml_sentences import FilledTarget, indent_before, is_blank, prefix_of, sentence_of
from limelight.documents.splices import Range, Splice
from limelight.documents.units import DocumentUnit, ExtractionResult, TranslatedUnit
from limelight.errors import DataError

_UNTRANSLATED = ("new", "needs-translation", "initial")
_HEADER = "x-gettext-domain-header"  # how catalogues keep their header in XLIFF


def find_xliff(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    reader = _Xliff(document, languages, again)
    read_elements(document, "xliff", ("trans-unit", "segment"), reader.take)
    return ExtractionResult(reader.units, reader.left, finish=reader.finish)


class _Place(NamedTuple):
    """Where the state of a target goes."""

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
        self.places: dict[int, _Place] = {}  # by the identity of the unit
        self.states: States | None = None

    def take(self, unit: Element, around: list[Element]) -> None:
        source, target = unit.child("source"), unit.child("target")
        if source is None:
            return
        source = unit.child("seg-source") or source  # the same text, cut into sentences
        sentence = sentence_of(source, self.document.text)
        if not sentence.has_words or not self._is_wanted(unit, around, source, target):
            self.left += 1
            return
        self._compare_languages(around)
        text, prefix = self.document.text, prefix_of(source, self.document.text)
        opening, closing = f"<{prefix}target>", f"</{prefix}target>"
        if target is None:
            place = Range(source.end, source.end)
            opening = indent_before(source, text) + opening
        elif target.is_empty_tag:
            place = Range(target.start, target.end)
            opening = text[target.start : target.end - 2].rstrip() + ">"
        else:
            place, opening, closing = Range(target.inner, target.close), "", ""
        content = Range(source.inner, source.close)
        self.units.append(FilledTarget(source.line, sentence, content, place, opening, closing))
        was_guess = not is_blank(target, text) and not self._is_copy(source, target)
        self.places[id(self.units[-1])] = _Place(unit, target, was_guess)
        if self.states is None and unit.name == "trans-unit":
            self.states = States(around[0], text)

    def finish(self, units: Sequence[TranslatedUnit]) -> list[Splice]:
        """The targets with their states, and what the file must declare for them."""
        splices = [splice for each in units if each.splices for splice in self._add_state(each)]
        return [*splices, *self.stated.values(), *([self.states.declarations] if self.states else [])]

    def _add_state(self, each: TranslatedUnit) -> list[Splice]:
        place = self.places[id(each.unit)]
        assert each.confidence is not None, "what was written has one"
        needs_review = bool(each.reasons) or place.was_guess
        if place.unit.name == "segment" or self.states is None:
            return [*each.splices, self._tag(place.unit, of_segment(each.confidence, needs_review))]
        attributes = self.states.of_target(each.confidence, needs_review)
        if place.target is not None and not place.target.is_empty_tag:
            return [*each.splices, self._tag(place.target, attributes)]
        (splice,) = each.splices
        opening, *rest = splice.parts
        assert isinstance(opening, str), "a new target begins with its tag"
        return [Splice(splice.start, splice.end, (with_attributes(opening, attributes), *rest))]

    def _tag(self, element: Element, attributes: dict[str, str]) -> Splice:
        tag = self.document.text[element.start : element.inner]
        return Splice(element.start, element.inner, (with_attributes(tag, attributes),))

    def _is_wanted(self, unit: Element, around: list[Element], source: Element, target: Element | None) -> bool:
        marks = [element.attributes["translate"] for element in (*around, unit) if "translate" in element.attributes]
        if marks[-1:] == ["no"] or unit.attributes.get("restype") == _HEADER:
            return False
        if target is None or is_blank(target, self.document.text):
            return True
        state = target.attributes.get("state") or unit.attributes.get("state", "")
        if state in _UNTRANSLATED and self._is_copy(source, target):
            return True
        return self.again and (state in _UNTRANSLATED or state.startswith("needs-"))

    def _is_copy(self, source: Element, target: Element | None) -> bool:
        text = self.document.text
        return target is not None and sentence_of(target, text).text == sentence_of(source, text).text

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
            self.stated[holder.start] = Splice(
                holder.inner - 1, holder.inner - 1, (f' {names[1]}="{self.languages[1]}"',)
            )
