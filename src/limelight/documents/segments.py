"""`list_segments` shows a translated document as segments that a person reviews one by one, the worst first.

A segment is a text of the document and has its number as a name, "12"; where the texts between the tags were translated one by one, each of
these is a segment, "12.0", "12.1". By these names `FoundUnits.take_given` takes them back, in the same document.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from limelight.decoding.guards import Notice
from limelight.documents.translating import UNSURE_BELOW, TranslatedDocument, find_reasons, read_run
from limelight.documents.units import TranslatedUnit, UnitTranslation


@dataclass(frozen=True)
class ReviewSegment:
    """`text` is empty and `result` None where the document keeps its own."""

    name: str
    line: int
    source: str
    text: str
    result: UnitTranslation | None
    reasons: tuple[Notice, ...]


def list_segments(done: TranslatedDocument) -> list[ReviewSegment]:
    found = [segment for number, unit in enumerate(done.units) for segment in _cut(number, unit)]
    return sorted(found, key=lambda each: rank(None if each.result is None else each.result.confidence, each.reasons))


def rank(confidence: float | None, reasons: Sequence[Notice]) -> tuple[bool, bool, float]:
    """The order of a review: first what has no translation, then what has a fault, then by confidence."""
    has_fault = any(reason.code != "unsure" for reason in reasons)
    return confidence is not None, not has_fault, confidence or 0.0


def _cut(number: int, unit: TranslatedUnit) -> Iterator[ReviewSegment]:
    line, runs = unit.unit.line, unit.unit.runs
    if unit.confidence is None or len(unit.results) != len(runs) or all(notice.code != "apart" for notice in unit.notices):
        result = None if unit.confidence is None else unit.results[0]
        yield ReviewSegment(str(number), line, unit.source, unit.text, result, unit.reasons)
        return
    for at, (run, result) in enumerate(zip(runs, unit.results, strict=True)):
        reasons = find_reasons([result], result.warnings, UNSURE_BELOW)
        yield ReviewSegment(f"{number}.{at}", line, run, read_run(run, result), result, reasons)
