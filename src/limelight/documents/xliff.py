"""XLIFF 1.x and 2.x: empty targets are filled, in the place and with the inline elements that the format asks for.

A target is empty when it is missing, blank, or a copy of its source in the state `new` or `needs-translation`. Other targets whose
state says that they need work are translated only when asked for `again`. What is marked translate="no" is left alone.
"""

from limelight.corpus.reading.language_tags import closeness
from limelight.documents.encodings import Document
from limelight.documents.splices import Range, Splice
from limelight.documents.units import Found, Unit
from limelight.documents.xml_elements import Element, read_elements
from limelight.documents.xml_sentences import Filled, indent_before, is_blank, prefix_of, sentence_of
from limelight.errors import DataError

_UNTRANSLATED = ("new", "needs-translation", "initial")
_HEADER = "x-gettext-domain-header"  # how catalogues keep their header in XLIFF


def find_xliff(document: Document, languages: tuple[str, str], again: bool) -> Found:
    reader = _Xliff(document, languages, again)
    read_elements(document, "xliff", ("trans-unit", "segment"), reader.take)
    return Found(reader.units, reader.left, splices=tuple(reader.stated.values()))


class _Xliff:
    def __init__(self, document: Document, languages: tuple[str, str], again: bool) -> None:
        self.document, self.languages, self.again = document, languages, again
        self.units: list[Unit] = []
        self.left = 0
        self.stated: dict[int, Splice] = {}  # the target language, where a file does not say it yet
        self.checked = -1  # the file whose languages have been compared

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
        self.units.append(Filled(source.line, sentence, content, place, opening, closing))

    def _is_wanted(self, unit: Element, around: list[Element], source: Element, target: Element | None) -> bool:
        marks = [element.attributes["translate"] for element in (*around, unit) if "translate" in element.attributes]
        if marks[-1:] == ["no"] or unit.attributes.get("restype") == _HEADER:
            return False
        if target is None or is_blank(target, self.document.text):
            return True
        state = target.attributes.get("state") or unit.attributes.get("state", "")
        copied = sentence_of(target, self.document.text).text == sentence_of(source, self.document.text).text
        if state in _UNTRANSLATED and copied:
            return True
        return self.again and (state in _UNTRANSLATED or state.startswith("needs-"))

    def _compare_languages(self, around: list[Element]) -> None:
        """Of the <file> (1.x) or of the whole (2.x): they must be those of the translator."""
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
