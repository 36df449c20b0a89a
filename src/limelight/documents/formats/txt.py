"""`find_txt` takes what stands between line breaks and tabs of a plain text as one text each. All else stays: breaks, blanks, lines."""

import re

from limelight.documents.encodings import Document
from limelight.documents.splices import LineCounter
from limelight.documents.units import ExtractionResult, edges, has_words, plain_unit, replace_controls

# Everything that some program takes for the end of a line, and the tab, which parts columns.
_BREAKS = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
_STRETCH = re.compile(f"[^{_BREAKS}]+")
_BREAK = re.compile(f"[{_BREAKS}]+")


def find_txt(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    lines = LineCounter(document.text)
    units = []
    for match in _STRETCH.finditer(document.text):
        document.check_time()
        lead, text, trail = edges(match[0])
        if has_words(text):
            start, end = match.start() + len(lead), match.end() - len(trail)
            units.append(plain_unit(lines.of(start), text, (start, end), _write))
    return ExtractionResult(units)


def _write(translation: str) -> str:
    """One line stays one line, whatever the translator says."""
    return replace_controls(_BREAK.sub(" ", translation))
