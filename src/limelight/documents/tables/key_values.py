r"""`find_properties` and `find_strings` take the values of files that have a key and a text on a line:

    open.file = Open \u201c{0}\u201d\      .properties of Java, with escapes and lines that go on
                now
    "open.file" = "Open \"%@\"";           .strings of iOS and macOS

Keys, comments, blanks and line ends stay. What the encoding of a .properties file lacks is written as \uXXXX, as in all files that are
ASCII; where a text has {0} in it, apostrophes are doubled as Java's MessageFormat wants them, unless the file does not.
"""

import re
from collections.abc import Callable

from limelight.documents.encodings import Document
from limelight.documents.splices import LineCounter
from limelight.documents.units import DocumentUnit, ExtractionResult, Remark, edges, has_words, plain_unit, replace_controls

_GOES_ON = r"\\(?:\r\n?|\n)[ \t\f]*+"
# A logical line: what is before the value, and the value, each over line ends that a backslash hides.
_PROPERTY = re.compile(
    rf"(?:^|(?<=\r))(?P<before>[ \t\f]*+(?![#!\r\n])(?:[^\\\r\n \t\f=:]|{_GOES_ON}|\\.)*+"
    rf"(?:[ \t\f]|{_GOES_ON})*+[=:]?(?:[ \t\f]|{_GOES_ON})*+)"
    rf"(?P<value>(?:[^\\\r\n]|{_GOES_ON}|\\.)*+)",
    re.MULTILINE,
)
_ENTRY = re.compile(
    r'/\*(?:[^*]|\*(?!/))*+(?:\*/)?|//[^\n]*+|(?P<key>"(?:[^"\\]|\\.)*+"|(?<![\w.$:/-])[\w.$:/-]++)\s*+=\s*+"(?P<value>(?:[^"\\]|\\.)*+)"\s*+;|"(?:[^"\\]|\\.)*+"?',
    re.DOTALL,
)
_ESCAPE = re.compile(rf"\\u([0-9a-fA-F]{{4}})|{_GOES_ON}|\\(.)", re.DOTALL)
_STRING_ESCAPE = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_NAMES = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\f": r"\f", "\\": r"\\"}
_PLACEHOLDER = re.compile(r"\{\d")


def find_properties(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    units, lines = [], LineCounter(document.text)
    for found in _PROPERTY.finditer(document.text):
        document.check_time()
        text = _read(_ESCAPE, found["value"])
        message = _PLACEHOLDER.search(text) is not None and "'" not in text.replace("''", "")
        if has_words(text):
            units.append(_make_unit(lines, found, text.replace("''", "'") if message else text, _properties_writer(document, message)))
    return ExtractionResult(units)


def find_strings(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    units, remarks, lines = [], [], LineCounter(document.text)
    for found in _ENTRY.finditer(document.text):
        document.check_time()
        if found["key"] is None:
            if found[0][0] == '"':
                why = 'this is no entry ("key" = "text";), and is left as it is; plutil -lint says more'
                remarks.append(Remark(lines.of(found.start()), "malformed", why))
        elif has_words(text := _read(_STRING_ESCAPE, found["value"])):
            units.append(_make_unit(lines, found, text, _write_string))
    return ExtractionResult(units, len(remarks), tuple(remarks))


def _make_unit(lines: LineCounter, found: re.Match[str], text: str, write: Callable[[str], str]) -> DocumentUnit:
    lead, core, trail = edges(text)
    return plain_unit(lines.of(found.start()), core, found.span("value"), lambda new: write(lead + replace_controls(new) + trail))


def _read(escape: re.Pattern[str], raw: str) -> str:
    """Two escapes of surrogates are one character; a surrogate alone stays, and cannot be translated."""

    def character(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _LETTERS.get(found[2] or "", found[2] or "")

    text = escape.sub(character, raw)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if escape.search(raw) else text


def _properties_writer(document: Document, message: bool) -> Callable[[str], str]:
    def write(text: str) -> str:
        text = "".join(_NAMES.get(char, char) for char in (text.replace("'", "''") if message else text))
        text = "\\" + text if text[:1] == " " else text
        return "".join(char if not document.lacks(char) else _write_code(char) for char in text) if document.lacks(text) else text

    return write


def _write_code(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _write_string(text: str) -> str:
    return "".join(_NAMES.get(char, char) for char in text).replace('"', r"\"")
