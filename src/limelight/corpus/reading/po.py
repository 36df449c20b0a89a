"""`read_po` reads pairs from a gettext catalogue, entry by entry. `scan_po` finds the entries with the place of each of their strings.

a plural entry    is two pairs: msgid with msgstr[0], msgid_plural with the last msgstr
`#, fuzzy`        is a pair with the fault FUZZY: a guess nobody has confirmed
`#~` and header   are not read: the one is deleted, the other is no text
no translation    is an empty target
`segment`         is the msgctxt
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from limelight.corpus.reading.lines import decode_line, read_byte_lines
from limelight.corpus.reading.raw import LONGEST_LINE, PREFIX, CorpusPart, RawUnit, RowFault
from limelight.corpus.reading.streams import open_bytes
from limelight.errors import DataError

_ESCAPE = re.compile(r'((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]{1,2})+)|\\([abfnrtv\\"])')
_BYTE = re.compile(r"\\x([0-9a-fA-F]+)|\\([0-7]+)")
ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"'}
_STATEMENT = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr|domain|msgstr\[([0-9]{1,4})\])[ \t]*)?"((?:[^"\\]|\\.)*)"')
_BEGINS = ("msgctxt", "msgid ", "msgid\t", 'msgid"', "domain")
_CHARSET = re.compile(r"charset=([^\s;]+)")
_BLANKS = " \t\r\f\v"


class PoLine(NamedTuple):
    """A line has its number, from 1, and its place in the text where that is known."""

    number: int
    text: str
    charset: str
    start: int = 0
    fault: RowFault = RowFault.NONE


@dataclass
class PoString:
    """A string of an entry stands from its keyword to its last quote."""

    keyword: str
    form: int  # n of msgstr[n], else 0
    line: int
    start: int
    end: int = 0
    size: int = 0
    pieces: list[str] = field(default_factory=list)  # joined at the end: each would else be copied with every line

    @property
    def value(self) -> str:
        return "".join(self.pieces)


@dataclass
class PoEntry:
    """An entry is what is known of it while its lines come in. `longest`: of longer strings only the beginning is held."""

    longest: int | None = None
    strings: dict[str, PoString] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    flags_end: int = 0  # after the first "#,"
    start: int | None = None  # of the first line that comes after the flags: "#|" or a keyword
    line: int = 0  # of its msgid, or of the first that says something
    fault: RowFault = RowFault.NONE
    fault_line: int = 0  # of the first
    current: PoString | None = None  # where a line with only a string belongs
    last: PoString | None = None  # the greatest msgstr[n]

    @property
    def complete(self) -> bool:
        return "msgstr" in self.strings or self.last is not None

    def value(self, keyword: str) -> str:
        return self.strings[keyword].value if keyword in self.strings else ""

    def spoil(self, fault: RowFault, line: int) -> None:
        self.fault = max(self.fault, fault)
        self.fault_line, self.line = self.fault_line or line, self.line or line

    def take(self, line: PoLine, text: str) -> None:
        """One line that is no comment."""
        statement = _STATEMENT.fullmatch(text)
        keyword = statement and statement[1]
        if statement is None or (keyword is None and self.current is None):
            self.spoil(RowFault.MALFORMED, line.number)
        elif keyword != "domain":
            if keyword in self.strings or (keyword == "msgstr" and "msgstr[0]" in self.strings):
                self.spoil(RowFault.MALFORMED, line.number)
            start = line.start + line.text.index(text[0])
            if keyword is not None:
                self._begin(PoString(keyword, int(statement[2] or 0), line.number, start))
            value, broken = unescape(statement[3], line.charset)
            self._add(value, line.number, start + len(text))
            if broken:
                self.spoil(RowFault.BROKEN_ENCODING, line.number)
        if line.fault:
            self.spoil(line.fault, line.number)

    def _begin(self, string: PoString) -> None:
        self.current = self.strings[string.keyword] = string
        if string.keyword == "msgid" or not self.line:
            self.line = string.line
        if string.keyword.startswith("msgstr[") and (self.last is None or string.form > self.last.form):
            if self.last is not None and self.last.form and self.longest is not None:
                self.last.pieces.clear()  # a corpus needs the first form and the last one
            self.last = string

    def _add(self, text: str, line: int, end: int) -> None:
        string = self.current
        assert string is not None
        string.end = end
        if self.longest is None:
            string.pieces.append(text)
        elif string.size + len(text) > self.longest:
            string.pieces = [string.value[:PREFIX]]
            string.size = len(string.pieces[0])
            self.spoil(RowFault.TOO_LONG, line)
        elif self.fault != RowFault.TOO_LONG and (string.form == 0 or string is self.last):
            string.pieces.append(text)
            string.size += len(text)


def scan_po(lines: Iterable[PoLine], longest: int | None = None) -> Iterator[PoEntry]:
    """The entries of a catalogue, also those that are spoilt. The last may be empty."""
    entry = PoEntry(longest)
    for line in lines:
        text = line.text.strip(_BLANKS)
        if (entry.complete and text.startswith("#")) or (text.startswith(_BEGINS) and (entry.complete or "msgid" in entry.strings)):
            yield entry
            entry = PoEntry(longest)
        if text.startswith("#~"):
            entry.flags.clear()  # those above belong to the deleted entry
            entry.flags_end, entry.start = 0, None
        elif text.startswith("#,"):
            entry.flags.update(re.split(r"[,\s]+", text))
            entry.flags_end = entry.flags_end or line.start + line.text.index("#,") + 2
        elif text and (not text.startswith("#") or text.startswith("#|")):
            entry.start = line.start if entry.start is None else entry.start
            if not text.startswith("#"):
                entry.take(line, text)
    yield entry


def read_po(part: CorpusPart) -> Iterator[RawUnit]:
    return _Catalogue(part.paths[0]).read()


class _Catalogue:
    def __init__(self, address: str) -> None:
        self.address, self.charset = address, "utf-8"

    def read(self) -> Iterator[RawUnit]:
        for entry in scan_po(self._lines(), LONGEST_LINE):
            named = entry.strings.keys()
            if "msgid" in named and not entry.value("msgid") and not named & {"msgctxt", "msgid_plural"}:
                self.charset = self._find_charset(entry.value("msgstr"))
            elif named or entry.fault:
                yield from _units_of(entry)

    def _lines(self) -> Iterator[PoLine]:
        number = 0
        with open_bytes(self.address) as stream:
            for block in read_byte_lines(stream):
                for i in range(len(block)):
                    number += 1
                    text, fault = decode_line(block.line(i), self.charset)
                    yield PoLine(number, text, self.charset, fault=fault)

    def _find_charset(self, header: str) -> str:
        """What the header says. `CHARSET` stands in templates that nobody has filled in."""
        found = _CHARSET.search(header)
        if not found or found[1].upper() == "CHARSET":
            return "utf-8"
        if not keeps_ascii(found[1]):
            raise DataError(
                f"{self.address}: its header names the charset {found[1]!r}, which is not known; convert it: "
                f"msgconv -t UTF-8 {self.address}"
            )
        return found[1]


def _units_of(entry: PoEntry) -> Iterator[RawUnit]:
    fault = entry.fault
    if "msgid" not in entry.strings or not entry.complete:
        fault = max(fault, RowFault.MALFORMED)
    elif fault == RowFault.NONE and "fuzzy" in entry.flags:
        fault = RowFault.FUZZY
    context = entry.value("msgctxt") if "msgctxt" in entry.strings else None
    target = entry.value("msgstr[0]" if "msgstr[0]" in entry.strings else "msgstr")
    yield RawUnit(entry.value("msgid"), target, entry.line, context, fault)
    if "msgid_plural" in entry.strings:
        last = entry.last.value if entry.last else target
        yield RawUnit(entry.value("msgid_plural"), last, entry.line, context, fault)


def keeps_ascii(charset: str) -> bool:
    """Whether it is known and keeps lines, quotes and tags as ASCII bytes, which UTF-16 and codecs that are no character sets do not."""
    printable = bytes(range(0x20, 0x7F)).replace(b"\\", b"\\\\")  # doubled, so that it is no escape gone wrong
    try:
        return printable.decode(charset) == printable.decode("ascii")
    except (LookupError, UnicodeError, ValueError):
        return False


def unescape(string: str, charset: str) -> tuple[str, bool]:
    r"""C escapes. `\303\251` are bytes of the file's charset, so a run of them is decoded together."""
    if "\\" not in string:
        return string, False
    broken = False

    def replace(match: re.Match[str]) -> str:
        nonlocal broken
        if match[2]:
            return ESCAPED[match[2]]
        codes = (int(byte, 16) if byte else int(octal, 8) for byte, octal in _BYTE.findall(match[1]))
        text, fault = decode_line(bytes(code & 0xFF for code in codes), charset)
        broken |= bool(fault)
        return text

    return _ESCAPE.sub(replace, string), broken
