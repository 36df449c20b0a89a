"""`find_tmx` finds the TMX units without a variant in the target language. Each gets one, after that in the source language."""

from limelight.corpus.reading.language_tags import closeness
from limelight.corpus.reading.xml.formats import MOST_TAGS, XML_LANGUAGE
from limelight.documents.encodings import Document
from limelight.documents.formats.xml_elements import Element, read_elements
from limelight.documents.formats.xml_sentences import FilledTarget, indent_before, is_blank, prefix_of, sentence_of
from limelight.documents.splices import Range
from limelight.documents.units import DocumentUnit, ExtractionResult
from limelight.errors import DataError


def find_tmx(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    reader = _Tmx(document, languages)
    read_elements(document, "tmx", ("tu",), reader.take)
    if reader.tags and not reader.units and not reader.left:
        raise DataError(
            f"{document.name}: no unit has a text in {languages[0]}, which the translator reads; its languages are: "
            f"{', '.join(sorted(reader.tags))}; take another translator"
        )
    return ExtractionResult(reader.units, reader.left)


class _Tmx:
    def __init__(self, document: Document, languages: tuple[str, str]) -> None:
        self.document, self.languages = document, languages
        self.units: list[DocumentUnit] = []
        self.left = 0
        self.tags: set[str] = set()

    def take(self, unit: Element, _: list[Element]) -> None:
        variants = [child for child in unit.children if child.name == "tuv" and child.child("seg") is not None]
        if len(self.tags) < MOST_TAGS:
            self.tags.update(map(_language, variants))
        source = self._closest(variants, self.languages[0])
        if source is None:
            return
        target = self._closest([variant for variant in variants if variant is not source], self.languages[1])
        sentence = sentence_of(_segment(source), self.document.text)
        if not sentence.has_words or (target is not None and not is_blank(_segment(target), self.document.text)):
            self.left += 1
        elif target is None:
            self.units.append(self._insert(source))
        else:
            self.units.append(self._fill(_segment(source), _segment(target)))

    def _closest(self, variants: list[Element], language: str) -> Element | None:
        ranked = [(closeness(language, _language(one)), at) for at, one in enumerate(variants)]
        best = min(((rank, at) for rank, at in ranked if rank is not None), default=None)
        return None if best is None else variants[best[1]]

    def _fill(self, source: Element, target: Element) -> FilledTarget:
        text = self.document.text
        place, opening, closing = Range(target.inner, target.close), "", ""
        if target.is_empty_tag:
            place = Range(target.start, target.end)
            opening, closing = text[target.start : target.end - 2].rstrip() + ">", f"</{prefix_of(target, text)}seg>"
        return FilledTarget(
            source.line, sentence_of(source, text), Range(source.inner, source.close), place, opening, closing
        )

    def _insert(self, variant: Element) -> FilledTarget:
        """A variant of its own, laid out like that of the source; its notes and properties are not copied."""
        text, seg = self.document.text, _segment(variant)
        prefix, name = prefix_of(variant, text), "xml:lang" if XML_LANGUAGE in variant.attributes else "lang"
        after = text[seg.end : variant.close]
        opening = f'{indent_before(variant, text)}<{prefix}tuv {name}="{self.languages[1]}">{indent_before(seg, text)}<{prefix}seg>'
        closing = f"</{prefix}seg>{after if not after.strip() else ''}</{prefix}tuv>"
        content, place = Range(seg.inner, seg.close), Range(variant.end, variant.end)
        return FilledTarget(seg.line, sentence_of(seg, text), content, place, opening, closing)


def _segment(variant: Element) -> Element:
    seg = variant.child("seg")
    assert seg is not None, "only variants with a segment are looked at"
    return seg


def _language(variant: Element) -> str:
    return variant.attributes.get(XML_LANGUAGE) or variant.attributes.get("lang", "")
