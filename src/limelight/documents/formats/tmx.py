"""`find_tmx` finds the TMX units without a variant in the target language. Each gets one, after that in the source language."""

from limelight.corpus.reading.language_tags import closeness
from limelight.corpus.reading.xml_formats import MOST_TAGS
from limelight.documents.encodings import Document
from limelight.documents.formats.xml_elements import Element, fill_target, read_elements, write_target
from limelight.documents.splices import Range
from limelight.documents.units import DocumentUnit, ExtractionResult
from limelight.errors import DataError
from limelight.safe_xml import XML_LANGUAGE
from limelight.text.language_names import stated_tag


def find_tmx(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    units: list[DocumentUnit] = []
    tags: set[str] = set()
    left = 0

    def take(unit: Element, _: list[Element]) -> None:
        nonlocal left
        variants = [(child, seg) for child in unit.children if child.name == "tuv" and (seg := child.child("seg"))]
        if len(tags) < MOST_TAGS:
            tags.update(_language(variant) for variant, _ in variants)
        if (source := _choose(document, variants, languages[0])) is None:
            return
        target = _choose(document, [pair for pair in variants if pair is not source], languages[1])
        if not source[1].sentence().has_words or (target is not None and not target[1].is_blank):
            left += 1
        else:
            units.append(fill_target(source[1], target[1]) if target else _insert(*source, stated_tag(languages[1])))

    read_elements(document, "tmx", ("tu",), take)
    if tags and not units and not left:
        raise DataError(
            f"{document.name}: no unit has a text in {languages[0]}, which the translator reads; its languages are: "
            f"{', '.join(sorted(tags))}; take another translator"
        )
    return ExtractionResult(units, left)


def _choose(document: Document, variants: list[tuple[Element, Element]], language: str) -> tuple[Element, Element] | None:
    ranked = list[tuple[int, int]]()
    for at, (one, _) in enumerate(variants):
        document.check_time()
        if (rank := closeness(language, _language(one))) is not None:
            ranked.append((rank, at))
    return variants[min(ranked)[1]] if ranked else None


def _insert(variant: Element, seg: Element, language: str) -> DocumentUnit:
    """A variant of its own, laid out like that of the source; its notes and properties are not copied."""
    prefix, name = variant.prefix, "xml:lang" if XML_LANGUAGE in variant.attributes else "lang"
    after = variant.document[seg.end : variant.close]
    opening = f'{variant.indent}<{prefix}tuv {name}="{language}">{seg.indent}<{prefix}seg>'
    closing = f"</{prefix}seg>{after if not after.strip() else ''}</{prefix}tuv>"
    return write_target(seg, Range(variant.end, variant.end), opening, closing)


def _language(variant: Element) -> str:
    return variant.attributes.get(XML_LANGUAGE) or variant.attributes.get("lang", "")
