"""ICU messages keep their skeleton of plural forms and selections, and the texts inside are translated:

    You have {n, plural, one {# file} other {# files}} in {folder}.
    texts    You have ... # file ... # files ... in {folder}.

A text is what stands between two of these constructs, with its plain arguments ({folder}). Apostrophes quote as in ICU: '' is one
apostrophe, '{' a brace. One pass, with a bounded depth.
"""

import re
from dataclasses import dataclass

DEEPEST = 8  # constructs inside of each other
_BEGINS = re.compile(r"\{\s{0,9}\w{1,80}\s{0,9},\s{0,9}(plural|selectordinal|select)\s{0,9},")
_OFFSET = re.compile(r"\s{0,9}offset\s{0,9}:\s{0,9}\d{1,9}\s")
_SELECTOR = re.compile(r"\s{0,99}(?:=\d{1,9}|[\w-]{1,80})\s{0,99}\{")
_CLOSES = re.compile(r"\s{0,99}\}")
_QUOTED = re.compile(r"'(?:'|[{}#|][^']*+(?:''[^']*+)*+'?)")
_ORDINAL = re.compile(r"\s*#\w+\s*")  # 1st, 2nd: an ending of the source language


class _NoMessageError(Exception):
    """The braces are not those of a message."""


@dataclass
class _Reading:
    text: str
    at: int = 0


def is_message(text: str) -> bool:
    """Whether this is a message with plural forms or a selection: its braces hold text to be translated."""
    return "{" in text and _BEGINS.search(text) is not None


def texts_of(message: str) -> list[tuple[int, int]] | None:
    """Where its texts stand, without the blanks around them. None where its braces do not fit, or lie too deep."""
    reading, found = _Reading(message), list[tuple[int, int]]()
    try:
        _read(reading, found, 0)
    except _NoMessageError:
        return None
    return found if reading.at == len(message) else None


def unescape(text: str) -> str:
    """A text of a message as a model reads it: with # as a placeholder, and apostrophes that stand for themselves."""
    return text.replace("''", "'").replace("#", "{#}")


def fits(shown: str, translation: str) -> bool:
    """Whether the translation of a text that was `shown` can stand in a message: a brace too many would end it."""
    return all(translation.count(sign) == shown.count(sign) for sign in "{}#")


def escape(shown: str) -> str:
    """Write it as a text of a message: the reverse of `unescape`."""
    return shown.replace("'", "''").replace("{#}", "#")


def _read(reading: _Reading, found: list[tuple[int, int]], depth: int) -> None:
    """One message, up to the brace that closes it or the end. A text that quotes a brace is none to be translated."""
    text, begin, worded, quoted = reading.text, reading.at, False, False
    while reading.at < len(text) and text[reading.at] != "}":
        sign = text[reading.at]
        if sign == "{" and (construct := _BEGINS.match(text, reading.at)):
            _add(text, begin, reading.at, found, worded and not quoted)
            _read_construct(reading, construct, found, depth + 1)
            begin, worded, quoted = reading.at, False, False
        elif sign == "{":
            _skip_argument(reading)
        elif sign == "'" and (quote := _QUOTED.match(text, reading.at)):
            quoted |= quote[0] != "''"
            reading.at = quote.end()
        else:
            worded |= sign.isalpha()
            reading.at += 1
    _add(text, begin, reading.at, found, worded and not quoted)


def _read_construct(reading: _Reading, construct: re.Match[str], found: list[tuple[int, int]], depth: int) -> None:
    text = reading.text
    reading.at = construct.end()
    if depth > DEEPEST:
        raise _NoMessageError
    if construct[1] != "select" and (offset := _OFFSET.match(text, reading.at)):
        reading.at = offset.end()
    branches = 0
    while selector := _SELECTOR.match(text, reading.at):
        reading.at = selector.end()
        _read(reading, found, depth)
        if not text.startswith("}", reading.at):
            raise _NoMessageError
        reading.at += 1
        branches += 1
    closing = _CLOSES.match(text, reading.at)
    if closing is None or not branches:
        raise _NoMessageError
    reading.at = closing.end()


def _skip_argument(reading: _Reading) -> None:
    """{name}, {n, number, #,##0}: a style may have braces of its own."""
    text, depth = reading.text, 0
    while reading.at < len(text):
        sign = text[reading.at]
        depth += (sign == "{") - (sign == "}")
        reading.at += 1
        if not depth:
            return
        if depth > DEEPEST:
            break
    raise _NoMessageError


def _add(text: str, begin: int, end: int, found: list[tuple[int, int]], is_text: bool) -> None:
    core = text[begin:end].strip()
    if is_text and not _ORDINAL.fullmatch(core):
        start = begin + text[begin:end].index(core)
        found.append((start, start + len(core)))
