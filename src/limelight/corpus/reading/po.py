"""`read_po` reads pairs from a gettext catalogue, entry by entry.

a plural entry    is two pairs: msgid with msgstr[0], msgid_plural with the last msgstr
`#, fuzzy`        is a pair with the fault FUZZY: a guess nobody has confirmed
`#~` and header   are not read: the one is deleted, the other is no text
no translation    is an empty target
`segment`         is the msgctxt
"""

import re
from collections.abc import Iterator
from typing import Any

from limelight.corpus.reading.lines import read_byte_lines
from limelight.corpus.reading.raw import LONGEST_LINE, PREFIX, CorpusPart, RawUnit, RowFault, batches_of_units
from limelight.corpus.reading.streams import open_bytes
from limelight.errors import DataError

_ESCAPE = re.compile(r'((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]{1,2})+)|\\([abfnrtv\\"])')
_BYTE = re.compile(r"\\x([0-9a-fA-F]+)|\\([0-7]+)")
_CHARACTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"'}
STATEMENT = re.compile(
    r'(?:(msgctxt|msgid|msgid_plural|msgstr|domain|msgstr\[([0-9]{1,4})\])[ \t]*)?"((?:[^"\\]|\\.)*)"'
)
_CHARSET = re.compile(r"charset=([^\s;]+)")
_BLANKS = " \t\r\f\v"


def read_po(part: CorpusPart, rows: int) -> Iterator[Any]:
    return batches_of_units(part, _units(part.paths[0]), rows)


class _Entry:
    """What is known of one entry while its lines come in."""

    def __init__(self) -> None:
        self.texts: dict[
            str, list[str]
        ] = {}  # the strings of a field, joined at the end: each would else be copied with every line
        self.size = 0  # of the field that is being read
        self.line = 0
        self.last = 0  # the greatest msgstr[n]
        self.fault = RowFault.NONE
        self.fuzzy = False
        self.field = ""  # where a line with only a string belongs

    def begin(self, field: str, number: str | None, line: int) -> None:
        if field in self.texts:
            self.spoil(RowFault.MALFORMED, line)
        if number is not None:
            self.last = max(self.last, int(number))
            field = "msgstr" if int(number) == 0 else "msgstr[last]"  # those between are never asked for
            if int(number) and int(number) < self.last:
                field = "ignored"
        if field == "msgid" or not self.line:
            self.line = line
        self.field = field
        self.texts[field], self.size = [], 0

    def add(self, text: str, line: int) -> None:
        if self.field not in self.texts:
            self.spoil(RowFault.MALFORMED, line)
        elif self.size + len(text) > LONGEST_LINE:
            self.texts[self.field] = [self.text(self.field)[:PREFIX]]
            self.size = len(self.texts[self.field][0])
            self.spoil(RowFault.TOO_LONG, line)
        elif self.fault != RowFault.TOO_LONG:
            self.texts[self.field].append(text)
            self.size += len(text)

    def text(self, field: str) -> str:
        return "".join(self.texts.get(field, ()))

    def spoil(self, fault: RowFault, line: int) -> None:
        self.fault = max(self.fault, fault)
        self.line = self.line or line

    @property
    def complete(self) -> bool:
        return "msgstr" in self.texts or "msgstr[last]" in self.texts

    @property
    def header(self) -> bool:
        return (
            "msgid" in self.texts
            and not self.text("msgid")
            and "msgctxt" not in self.texts
            and "msgid_plural" not in self.texts
        )

    def units(self) -> Iterator[RawUnit]:
        if not self.texts and self.fault == RowFault.NONE:
            return
        fault = self.fault
        if "msgid" not in self.texts or not self.complete:
            fault = max(fault, RowFault.MALFORMED)
        elif fault == RowFault.NONE and self.fuzzy:
            fault = RowFault.FUZZY
        context = self.text("msgctxt") if "msgctxt" in self.texts else None
        yield RawUnit(self.text("msgid"), self.text("msgstr"), self.line, context, fault)
        if "msgid_plural" in self.texts:
            last = self.text("msgstr[last]" if "msgstr[last]" in self.texts else "msgstr")
            yield RawUnit(self.text("msgid_plural"), last, self.line, context, fault)


def _units(address: str) -> Iterator[RawUnit]:
    charset = "utf-8"
    entry = _Entry()
    for number, line, long in _lines(address):
        text, broken = _decode(line, charset)
        text = text.strip(_BLANKS)
        begins = text.startswith(("#", "msgctxt", "msgid ", "msgid\t", 'msgid"', "domain"))
        if begins and (entry.complete or ("msgid" in entry.texts and not text.startswith("#"))):
            if entry.header:
                charset = _charset(address, entry.text("msgstr"))
            else:
                yield from entry.units()
            entry = _Entry()
        if text.startswith("#~"):
            entry.fuzzy = False  # the flag above belongs to the deleted entry
        elif text.startswith("#"):
            entry.fuzzy |= text.startswith("#,") and "fuzzy" in re.split(r"[,\s]+", text)
        elif text:
            _take(entry, text, number, charset)
            if broken:
                entry.spoil(RowFault.BROKEN_ENCODING, number)
            if long:
                entry.spoil(RowFault.TOO_LONG, number)
    if entry.header:
        _charset(address, entry.text("msgstr"))
    else:
        yield from entry.units()


def _take(entry: _Entry, text: str, number: int, charset: str) -> None:
    """One line that is no comment, into the entry."""
    statement = STATEMENT.fullmatch(text)
    if statement is None:
        entry.spoil(RowFault.MALFORMED, number)
        return
    keyword, plural, string = statement.groups()
    if keyword == "domain":
        return
    if keyword:
        entry.begin(keyword, plural, number)
    value, broken = unescape(string, charset)
    entry.add(value, number)
    if broken:
        entry.spoil(RowFault.BROKEN_ENCODING, number)


def _lines(address: str) -> Iterator[tuple[int, bytes, bool]]:
    """Number, bytes, and whether it is too long and was cut."""
    number = 0
    with open_bytes(address) as stream:
        for block in read_byte_lines(stream):
            for i in range(len(block)):
                number += 1
                line = block.line(i)
                long = len(line) > LONGEST_LINE
                yield number, line[:PREFIX] if long else line, long


def _decode(line: bytes, charset: str) -> tuple[str, bool]:
    try:
        return line.decode(charset), False
    except UnicodeDecodeError:
        return line.decode(charset, "replace"), True


def unescape(string: str, charset: str) -> tuple[str, bool]:
    r"""C escapes. `\303\251` are bytes of the file's charset, so a run of them is decoded together."""
    if "\\" not in string:
        return string, False
    broken = False

    def replace(match: re.Match[str]) -> str:
        nonlocal broken
        if match[2]:
            return _CHARACTERS[match[2]]
        codes = (
            int(hexadecimal, 16) if hexadecimal else int(octal, 8) for hexadecimal, octal in _BYTE.findall(match[1])
        )
        text, wrong = _decode(bytes(code & 0xFF for code in codes), charset)
        broken |= wrong
        return text

    return _ESCAPE.sub(replace, string), broken


def _charset(address: str, header: str) -> str:
    """What the header says. `CHARSET` stands in templates that nobody has filled in."""
    found = _CHARSET.search(header)
    if not found or found[1].upper() == "CHARSET":
        return "utf-8"
    printable = bytes(range(0x20, 0x7F)).replace(b"\\", b"\\\\")  # doubled, so that it is no escape gone wrong
    try:
        # Rules out UTF-16 and the codecs of Python that are no character sets; lines and quotes must be ASCII bytes.
        if printable.decode(found[1]) == printable.decode("ascii"):
            return found[1]
    except (LookupError, UnicodeError, ValueError):
        pass
    raise DataError(
        f"{address}: its header names the charset {found[1]!r}, which is not known; convert it: "
        f"msgconv -t UTF-8 {address}"
    )
