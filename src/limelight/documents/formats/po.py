"""`find_po` finds the empty translations of a gettext catalogue and fills them, and touches nothing else.

msgstr       gets the translation of msgid
msgstr[0]    of msgid, the others of msgid_plural; in languages with one form it gets that of msgid_plural, which has the number in it
#, fuzzy     is a guess that nobody has confirmed: left alone unless asked for `again`; the flag stays, and what was filled and should
             be looked at gets it
#~           is deleted, and left alone; so are the header and the names of translators
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from limelight.corpus.reading.language_tags import closeness

# The reader of catalogues and this room must read the same strings.
from limelight.corpus.reading.po import STATEMENT, unescape
from limelight.corpus.reading.stated_languages import find_header_language
from limelight.documents.encodings import Document
from limelight.documents.formats.placeholder_formats import is_part, keeps_format
from limelight.documents.formats.po_strings import WIDEST, columns, format_string
from limelight.documents.splices import Splice, line_places
from limelight.documents.units import (
    DocumentUnit,
    ExtractionResult,
    Plain,
    Remark,
    TranslatedUnit,
    collect_splices,
    edges,
    has_words,
    replace_controls,
)
from limelight.errors import DataError

MOST_FORMS = 8  # Arabic has six
_FORMS = re.compile(r"nplurals\s{0,9}=\s{0,9}([0-9]{1,2})")
_CREDITS = frozenset(("translator-credits", "translator_credits", "Your names", "Your emails"))
_BEGINS = re.compile(r'#|msgctxt\b|msgid[ \t"]|domain\b')


@dataclass
class _Text:
    """One string of an entry. It stands from its keyword to its last quote."""

    keyword: str
    start: int
    end: int
    line: int
    pieces: list[str] = field(default_factory=list)

    @property
    def value(self) -> str:
        return "".join(self.pieces)


@dataclass
class _Entry:
    texts: dict[str, _Text] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    flags_end: int = 0  # after the first "#,"
    start: int = 0  # of the first line that comes after the flags: "#|" or a keyword
    last: _Text | None = None
    broken: int = 0  # the line of something that is no PO

    @property
    def complete(self) -> bool:
        return any(keyword.startswith("msgstr") for keyword in self.texts)

    @property
    def forms(self) -> dict[int, _Text]:
        """Return msgstr[n] by n, of a plural entry."""
        return {int(name[7:-1]): text for name, text in self.texts.items() if name.startswith("msgstr[")}


class _Style(NamedTuple):
    """How the file is written: its line ends, whether long strings are wrapped, how many plural forms its language has."""

    newline: str
    wrap: bool
    forms: int | None
    again: bool


def find_po(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    entries = list(_entries(document))
    header = next((_value(entry, "msgstr") for entry in entries if _value(entry, "msgid") == ""), "")
    if (tag := find_header_language(header)) is not None and closeness(languages[1], tag) is None:
        raise DataError(
            f"{document.name}: its header says that it is in {tag}, and the translator goes to {languages[1]}; take another "
            f"translator, or mend the header (Language: {languages[1]})"
        )
    said = _FORMS.search(header)
    newline = "\r\n" if "\r\n" in document.text else "\n"
    style = _Style(newline, _is_wrapped(document.text), min(int(said[1]), MOST_FORMS) if said else None, again)
    units: list[DocumentUnit] = []
    owners: dict[int, _Entry] = {}
    remarks, left = [], 0
    for entry in entries:
        document.check_time()
        if entry.broken:
            remarks.append(
                Remark(entry.broken, "malformed", "this entry is no PO, and is left as it is; msgfmt -c says more")
            )
        elif not _value(entry, "msgid") or not entry.complete:
            continue
        else:
            found = list(_units(entry, style))
            units += found
            owners |= {id(unit): entry for unit in found}
            left += not found
    finish = partial(_splices, document.text, newline, owners)
    return ExtractionResult(units, left, tuple(remarks), finish)


def _splices(text: str, newline: str, owners: dict[int, _Entry], units: Sequence[TranslatedUnit]) -> list[Splice]:
    """The translations, and `fuzzy` for each entry of which a form should be looked at."""
    filled = {id(entry) for each in units if each.splices and (entry := owners[id(each.unit)])}
    doubtful = {id(entry): entry for each in units if each.reasons and (entry := owners[id(each.unit)])}
    flags = [_flag(text, newline, doubtful[key]) for key in doubtful.keys() & filled]
    return [*collect_splices(units), *(flag for flag in flags if flag is not None)]


def _flag(text: str, newline: str, entry: _Entry) -> Splice | None:
    """`fuzzy` before the other flags, where gettext writes it; on a line of its own if there are none."""
    if "fuzzy" in entry.flags:
        return None
    if entry.flags_end:
        end = text.find("\n", entry.flags_end)
        others = text[entry.flags_end : end if end >= 0 else len(text)].strip()
        return Splice(entry.flags_end, entry.flags_end, (" fuzzy," if others else " fuzzy",))
    return Splice(entry.start, entry.start, (f"#, fuzzy{newline}",))


def _units(entry: _Entry, style: _Style) -> Iterator[DocumentUnit]:
    if _value(entry, "msgid") in _CREDITS:
        return
    wrap = style.wrap and "no-wrap" not in entry.flags
    fuzzy = style.again and "fuzzy" in entry.flags
    if "msgid_plural" not in entry.texts:
        target = entry.texts.get("msgstr")
        if target is not None and (fuzzy or not target.value):
            yield from _unit(entry, "msgid", target, style.newline, wrap, "")
        return
    forms = entry.forms
    if not forms:
        return
    count = style.forms or len(forms)
    for number, target in sorted(forms.items()):
        if fuzzy or not target.value:
            yield from _unit(entry, _form(entry, number, count), target, style.newline, wrap, "")
    after = max(forms.values(), key=lambda text: text.end)
    for number in range(max(forms) + 1, count):
        target = _Text(f"msgstr[{number}]", after.end, after.end, after.line)
        yield from _unit(entry, _form(entry, number, count), target, style.newline, wrap, style.newline)


def _form(entry: _Entry, number: int, count: int) -> str:
    """Which of its texts a form is the translation of. msgfmt compares them all with msgid_plural, of which they may leave out the end."""
    if number or count == 1 or not is_part(_value(entry, "msgid"), _value(entry, "msgid_plural"), entry.flags):
        return "msgid_plural"
    return "msgid"


def _unit(entry: _Entry, keyword: str, target: _Text, newline: str, wrap: bool, before: str) -> Iterator[DocumentUnit]:
    source = entry.texts[keyword].value
    if has_words(source):
        lead, text, trail = edges(source)
        # In the messages of Java an apostrophe is written twice; a single one quotes, and is left to people.
        java = "java-format" in entry.flags and "'" not in source.replace("''", "")
        write = _Writer(target.keyword, lead, trail, newline, wrap, before, java)
        shown = text.replace("''", "'") if java else text
        fits = partial(_fits, source, write, entry.flags)
        group = entry.texts["msgid"].start if "msgid_plural" in entry.texts else None
        yield Plain(target.line, shown, target.start, target.end, write, fills=True, fits=fits, group=group)


def _fits(source: str, write: "_Writer", flags: set[str], translation: str) -> bool:
    return keeps_format(source, write.value(translation), flags)


@dataclass(frozen=True)
class _Writer:
    keyword: str
    lead: str
    trail: str
    newline: str
    wrap: bool
    before: str
    java: bool

    def __call__(self, translation: str) -> str:
        return self.before + format_string(self.keyword, self.value(translation), self.newline, self.wrap)

    def value(self, translation: str) -> str:
        translation = replace_controls(translation)
        return self.lead + (translation.replace("'", "''") if self.java else translation) + self.trail


def _entries(document: Document) -> Iterator[_Entry]:
    """As the reader of catalogues sees them, with the place of every string."""
    text, entry = document.text, _Entry()
    for number, (start, end) in enumerate(line_places(text), start=1):
        document.check_time()
        line = text[start:end].strip(" \t\r\f\v")
        begins = _BEGINS.match(line)
        if begins and (entry.complete or ("msgid" in entry.texts and not line.startswith("#"))):
            yield entry
            entry = _Entry()
        if line.startswith("#~"):
            entry.flags.clear()  # those above belong to the deleted entry
            entry.flags_end = entry.start = 0
        elif line.startswith("#,"):
            entry.flags.update(re.split(r"[,\s]+", line))
            entry.flags_end = entry.flags_end or text.index("#,", start) + 2
        elif line.startswith("#"):
            entry.start = entry.start or (start if line.startswith("#|") else 0)
        elif line:
            entry.start = entry.start or start
            _take(entry, document, (start + text[start:end].index(line[0]), len(line)), number)
    yield entry


def _take(entry: _Entry, document: Document, place: tuple[int, int], number: int) -> None:
    """One line that is no comment, into the entry."""
    start, end = place[0], place[0] + place[1]
    statement = STATEMENT.fullmatch(document.text, start, end)
    if statement is None or (statement[1] is None and entry.last is None) or statement[1] in entry.texts:
        entry.broken = entry.broken or number
        return
    if statement[1] == "domain":
        return
    if statement[1] is not None:
        entry.last = entry.texts[statement[1]] = _Text(statement[1], start, end, number)
    assert entry.last is not None
    value, broken = unescape(statement[3], document.encoding)
    if broken:
        entry.broken = entry.broken or number
    entry.last.pieces.append(value)
    entry.last.end = end


def _value(entry: _Entry, keyword: str) -> str:
    return entry.texts[keyword].value if keyword in entry.texts else ""


def _is_wrapped(text: str) -> bool:
    """A file with a long line that could have been cut is kept by a tool that does not wrap."""
    return not any(
        text.startswith('"', start) and columns(text[start:end]) > WIDEST + 4 and " " in text[start + 1 : end - 2]
        for start, end in line_places(text)
    )
