"""`find_po` finds the empty translations of a gettext catalogue and fills them, and touches nothing else.

msgstr       gets the translation of msgid
msgstr[0]    of msgid, the others of msgid_plural; in languages with one form it gets that of msgid_plural, which has the number in it
#, fuzzy     is a guess that nobody has confirmed: left alone unless asked for `again`; the flag stays, and what was filled and should
             be looked at gets it
#~           is deleted, and left alone; so are the header and the names of translators
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import compress
from typing import NamedTuple

from limelight.corpus.reading.language_tags import closeness, find_header_language
from limelight.corpus.reading.po import ESCAPED, PoEntry, PoLine, PoString, scan_po
from limelight.documents.encodings import Document
from limelight.documents.splices import Splice, line_places
from limelight.documents.units import (
    DocumentUnit,
    ExtractionResult,
    Remark,
    TranslatedUnit,
    collect_splices,
    edges,
    replace_controls,
)
from limelight.errors import DataError

_STRINGS = ('"', "msgid", "msgstr")
WIDEST = 77  # columns between the quotes: lines of gettext have 79
_ESCAPES = {character: f"\\{letter}" for letter, character in ESCAPED.items()}
# Others by three digits, so that no digit of the text is read with them.
_TABLE = str.maketrans({**{chr(code): f"\\{code:03o}" for code in (*range(0x20), 0x7F)}, **_ESCAPES})
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_WORD = re.compile(r"\s*\S+\s*|\s+")
MOST_FORMS = 8  # Arabic has six
_FORMS = re.compile(r"nplurals\s{0,9}=\s{0,9}([0-9]{1,9})")
_CREDITS = frozenset(("translator-credits", "translator_credits", "Your names", "Your emails"))
_FLAGS = re.compile(r"%(?!\d{1,9}\$)[-+ #0'I]{0,9}\d{0,9}(?:\.\d{1,9})?(?=[a-zA-Z])")  # how a value looks, and not what it is
_PERCENT = re.compile(r"%\{[^{}]{0,80}\}|%(?:\([^()]{0,80}\)|<[^<>]{0,80}>)?[-+ #0'I*.,:\d$]{0,40}(?:hh?|ll?|[qjzLt])?(?:.|$)", re.S)
_NUMBERED = re.compile(r"%L?[0-9]{1,2}|%n|%%")
_BRACES = re.compile(r"\{[^{}]{0,400}\}|[{}]")
_SHELL = re.compile(r"\$(?:\w{1,80}|\{[^{}]{0,80}\})")
_DIRECTIVES = {
    **dict.fromkeys(("qt", "qt-plural", "kde", "kde-kuit", "ycp"), _NUMBERED),
    **dict.fromkeys(("python-brace", "java", "csharp", "perl-brace", "c++", "rust"), _BRACES),
    "sh": _SHELL,
}
_OTHERS = frozenset(("lisp", "elisp", "librep", "scheme", "smalltalk"))  # with ~ or other signs: left to their tools
_ALL = frozenset(("python", "lua", "ruby"))  # to which every form of a plural must give all that is filled in by turns
_FREE = re.compile(r"%(?:[%m]|\d{1,3}\$|[({<])|\{\s{0,9}\w|\$")  # with a number or a name, or taking nothing
_QUOTED = re.compile(r"'[^']*+'?")


class _Style(NamedTuple):
    """How the file is written: its line ends, whether long strings are wrapped, how many plural forms its language has."""

    newline: str
    wrap: bool
    forms: int | None
    again: bool


def find_po(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    text = document.text
    entries = list(scan_po(_lines(document)))
    if entries and all(entry.fault for entry in entries):
        raise DataError(f"{document.name}, line {entries[0].fault_line}: no entry of it is PO; msgfmt -c says more")
    header = next((entry.value("msgstr") for entry in entries if not entry.value("msgid")), "")
    if (tag := find_header_language(header)) is not None and closeness(languages[1], tag) is None:
        raise DataError(
            f"{document.name}: its header says that it is in {tag}, and the translator goes to {languages[1]}; take another "
            f"translator, or mend the header (Language: {languages[1]})"
        )
    said = _FORMS.search(header)
    newline = "\r\n" if "\r\n" in text else "\n"
    style = _Style(newline, _is_wrapped(text), min(int(said[1]), MOST_FORMS) if said else None, again)
    units: list[DocumentUnit] = []
    remarks, left = [], 0
    if said and int(said[1]) > MOST_FORMS:
        remarks.append(
            Remark(1, "forms", f"its header asks for {said[1]} plural forms, and no language has so many; {MOST_FORMS} are written")
        )
    if "charset=CHARSET" in header or "nplurals=INTEGER" in header:
        why = "its header is a template's, which msgfmt refuses: msginit fills it in, with charset=UTF-8 and the forms of the language"
        remarks.append(Remark(1, "template", why))
    for entry in entries:
        document.check_time()
        if entry.fault:
            why = "this entry is no PO, and is left as it is; msgfmt -c says more"
            remarks.append(Remark(entry.fault_line, "malformed", why))
        elif entry.value("msgid") and entry.complete:
            found = list(_units(entry, style))
            units += found
            left += not found
    return ExtractionResult(units, left, tuple(remarks), partial(_finish, text, newline))


def _lines(document: Document) -> Iterator[PoLine]:
    for number, (start, end) in enumerate(line_places(document.text), start=1):
        document.check_time()
        yield PoLine(number, document.text[start:end], document.encoding, start)


def _finish(text: str, newline: str, units: Sequence[TranslatedUnit]) -> list[Splice]:
    """The translations, and `fuzzy` for each entry of which a form should be looked at."""
    filled = {id(each.unit.origin) for each in units if each.splices}
    doubtful = {id(each.unit.origin): each.unit.origin for each in units if each.reasons}
    entries = [entry for key, entry in doubtful.items() if key in filled and "fuzzy" not in entry.flags]
    return [*collect_splices(units), *(_flag(text, newline, entry) for entry in entries)]


def _flag(text: str, newline: str, entry: PoEntry) -> Splice:
    """`fuzzy` before the other flags, where gettext writes it; on a line of its own if there are none."""
    if not entry.flags_end:
        assert entry.start is not None  # it has strings
        return Splice(entry.start, entry.start, (f"#, fuzzy{newline}",))
    end = text.find("\n", entry.flags_end)
    others = text[entry.flags_end : end if end >= 0 else len(text)].strip()
    return Splice(entry.flags_end, entry.flags_end, (" fuzzy," if others else " fuzzy",))


def _units(entry: PoEntry, style: _Style) -> Iterator[DocumentUnit]:
    """The texts of an entry. A translation that its program could not use does not fit."""
    plural, fuzzy = "msgid_plural" in entry.strings, style.again and "fuzzy" in entry.flags
    if entry.value("msgid") in _CREDITS:
        return
    named = [each for each in entry.strings.values() if each.keyword.startswith("msgstr[" if plural else "msgstr")]
    targets = sorted((each for each in named if plural or each.keyword == "msgstr"), key=lambda each: each.form)
    if len(targets) > MOST_FORMS:  # every form is written anew, with a text of its own
        return
    count = style.forms or len(targets)
    for target in targets:
        if fuzzy or not target.value:
            yield from _unit(entry, target, count, style, "")
    if plural and targets:
        after = max(targets, key=lambda each: each.end)
        for number in range(targets[-1].form + 1, count):
            target = PoString(f"msgstr[{number}]", number, after.line, after.end, after.end)
            yield from _unit(entry, target, count, style, style.newline)


def _unit(entry: PoEntry, target: PoString, count: int, style: _Style, before: str) -> Iterator[DocumentUnit]:
    """A form is the translation of msgid or of msgid_plural. msgfmt compares all with the latter, of which they may leave out the end."""
    single, many = entry.value("msgid"), entry.value("msgid_plural")
    plural = "msgid_plural" in entry.strings
    source = many if plural and (target.form or count == 1 or not is_part(single, many, entry.flags)) else single
    if not source.strip():
        return
    lead, text, trail = edges(source)
    # In the messages of Java an apostrophe is written twice; a single one quotes, and is left to people.
    java = "java-format" in entry.flags and "'" not in source.replace("''", "")
    wrap = style.wrap and "no-wrap" not in entry.flags

    def whole(translation: str) -> list[Splice] | None:
        translation = replace_controls(translation).strip()
        value = lead + (translation.replace("'", "''") if java else translation) + trail
        if not keeps_format(source, value, entry.flags):
            return None
        written = before + format_string(target.keyword, value, style.newline, wrap)
        return [Splice(target.start, target.end, (written,))]

    shown = text.replace("''", "'") if java else text
    group = entry.strings["msgid"].start if plural else None
    yield DocumentUnit(target.line, shown, whole, group=group, origin=entry)


def _is_wrapped(text: str) -> bool:
    """A tool that does not wrap leaves more long lines that could have been cut than lines that go on within a sentence."""
    long = cut = 0
    for start, end in line_places(text):
        if text.startswith(_STRINGS, start):
            line = text[start:end].rstrip()
            if columns(line) > WIDEST + 4 and " " in line[line.index('"') : -2]:
                long += 1
            cut += line.endswith(' "')
    return long <= cut


def escape(text: str) -> str:
    return text.translate(_TABLE)


def format_string(keyword: str, text: str, newline: str, wrap: bool) -> str:
    lines = _LINE.findall(text)
    one = f'{keyword} "{escape(text)}"'
    if len(lines) <= 1 and (not wrap or columns(one) <= WIDEST + 2):
        return one
    pieces = [piece for line in lines for piece in (_wrap(line) if wrap else [escape(line)])]
    return newline.join([f'{keyword} ""', *(f'"{piece}"' for piece in pieces)])


def columns(text: str) -> int:
    """How wide a text is on a terminal: Chinese characters take two columns."""
    if text.isascii():
        return len(text)
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def _wrap(line: str) -> list[str]:
    pieces, width = [""], 0
    for word in map(escape, _WORD.findall(line)):
        size = columns(word)
        if pieces[-1] and width + size > WIDEST:
            pieces.append("")
            width = 0
        pieces[-1] += word
        width += size
    return pieces


def keeps_format(source: str, translation: str, flags: Collection[str]) -> bool:
    """Whether a program that can use the source can use the translation."""
    return all(_directives(source, name) == _directives(translation, name) for name in _formats(flags))


def is_part(source: str, whole: str, flags: Collection[str]) -> bool:
    """Whether the directives of the source are those that the whole begins with: "one file" of "%d files"."""
    for name in _formats(flags):
        (free, turns), (all_free, all_turns) = (_directives(_FLAGS.sub("%", text), name) for text in (source, whole))
        if free - all_free or turns != (all_turns if name in _ALL else all_turns[: len(turns)]):
            return False
    return True


def _formats(flags: Collection[str]) -> list[str]:
    """_formats({"c-format", "fuzzy", "no-python-format"}) -> ["c"]"""
    names = [flag.removesuffix("-format") for flag in flags if flag.endswith("-format")]
    return [name for name in names if not name.startswith(("no-", "possible-", "impossible-")) and name not in _OTHERS]


def _directives(text: str, name: str) -> tuple[Counter[str], list[str]]:
    """Those that may change places, counted, and those that are filled in one after the other."""
    if name == "java":  # what apostrophes quote is text, and '' is one of them
        text = _QUOTED.sub("", text.replace("''", ""))
    pattern = _DIRECTIVES.get(name, _PERCENT)
    found = [one for one in pattern.findall(text) if one != "%%"]
    free = [pattern is _NUMBERED or _FREE.match(one) is not None for one in found]
    return Counter(compress(found, free)), [one for one, is_free in zip(found, free, strict=True) if not is_free]
