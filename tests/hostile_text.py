"""Texts that make a careless pattern go back and try again: one short thing again and again, and an end on which it fails.

`PUMPS` are for everything; `texts_against` makes those for one pattern, of its own letters, by reading it as `re` does.
"""

import itertools
import re
import string
from collections.abc import Callable, Iterator
from re import _constants as code  # type: ignore[attr-defined]  # what a parsed pattern is made of
from re import _parser  # type: ignore[attr-defined]
from typing import Any

Text = Callable[[int], str]
REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)

PUMPS = (
    *" \t\u00a0\n\u0085aAé10-_.,'\"“«»!?<>&{}[()%$@/\\~:;#*+=|^⟦\u0301\u200b\u200d\u2581\ufe0f字ก😀",
    *("</", "<a ", "<!--", "<a b=", "&#", "&a", "{{", "%(", "⟦0⟧", "e\u0301", "🇩🇪", "a ", "A. ", ". ", ".)", "1 ", "1.", "12 345 "),
    *("\u0301\u0316", "a-", "- ", "a'", "a@", "/a", "a/", "a.b", "__a", "a\u200b ", "\u200b ", "www.", "http://"),
)  # fmt: skip
TAILS = ("", "\0", "a")
MOST = 200  # texts for one pattern
HARMLESS = 64  # times that a pattern repeats something, repetitions inside of others multiplied


def repeated(pump: str, head: str = "", tail: str = "") -> Text:
    """About n characters: the head, the pump again and again, the tail."""
    return lambda n: head + pump * max(1, (n - len(head) - len(tail)) // len(pump)) + tail


def pairs_of_pumps() -> Iterator[tuple[str, str]]:
    """Of single signs, one of each kind."""
    return itertools.permutations(" \na1-_.,'\"“»!<>&{[(%$/\\⟦\u0301\u2581字😀", 2)


def texts_against(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """(head, pump, tail): what leads to each repetition of the pattern, what it repeats alone and with the next, what it fails on."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    found: dict[tuple[str, str], None] = {}
    whole = _walk(_parser.parse(source, pattern.flags), "", found)
    found |= {("", pump): None for pump in (whole, *(head for head, _ in found))}
    found |= {(head, first + second): None for (head, first), (_, second) in itertools.pairwise(list(found))}
    made = ((head, pump, tail) for head, pump in found if pump for tail in TAILS)
    return list(itertools.islice(made, MOST))


def may_be_slow(pattern: re.Pattern[Any]) -> bool:
    """Whether anything of it is repeated without a bound that is small. What cannot go back far is not slow."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    return _times(_parser.parse(source, pattern.flags)) > HARMLESS


def _times(parsed: Any) -> int:
    """How often the innermost of it can be repeated."""
    most = 1
    for kind, value in parsed:
        if kind in REPEATS:
            most = max(most, int(value[1]) * _times(value[2]))
        elif kind is code.BRANCH:
            most = max(most, *map(_times, value[1]))
        elif kind in (code.SUBPATTERN, code.ASSERT, code.ASSERT_NOT):
            most = max(most, _times(value[-1]))
        elif kind is code.ATOMIC_GROUP:
            most = max(most, _times(value))
    return most


def _walk(parsed: Any, head: str, found: dict[tuple[str, str], None]) -> str:
    """An example of what is matched, as short as can be; every repetition on the way goes into `found`."""
    written = ""
    for kind, value in parsed:
        written += _example(kind, value, head + written, found)
    return written


def _example(kind: Any, value: Any, head: str, found: dict[tuple[str, str], None]) -> str:
    if kind is code.LITERAL:
        return chr(value)
    if kind in (code.NOT_LITERAL, code.IN, code.ANY):
        return _letters(kind, value)[0]
    if kind in REPEATS:
        least, most, body = value
        inside = _walk(body, head, found)
        if most > 1:
            found[(head, inside)] = None
            if len(body) == 1 and body[0][0] in (code.NOT_LITERAL, code.IN, code.ANY):
                found |= {(head, letter): None for letter in _letters(*body[0])[1:]}
        return inside * max(min(least, 20), int(most > 0))
    if kind is code.SUBPATTERN:
        return _walk(value[-1], head, found)
    if kind is code.ATOMIC_GROUP:
        return _walk(value, head, found)
    if kind is code.BRANCH:
        first, *_ = [_walk(branch, head, found) for branch in value[1]]
        return first
    if kind is code.ASSERT and value[0] > 0:
        _walk(value[1], head, found)
    return ""


def _letters(kind: Any, value: Any) -> list[str]:
    """Up to four characters of a class, of different kinds."""
    tried = " aA1.-<'\"é字\u00a0\u0301/_\\" + string.printable + "".join(map(chr, range(0xA1, 0x3100, 7)))
    items = value if kind is code.IN else []
    own = [chr(each[1] if each[0] is code.LITERAL else each[1][0]) for each in items if each[0] in (code.LITERAL, code.RANGE)]
    if kind is code.ANY:
        return list(tried[:4])
    fits = [letter for letter in tried if _is_in(letter, kind, value)]
    return list(dict.fromkeys([*fits[:3], *(letter for letter in own[:3] if _is_in(letter, kind, value))])) or ["a"]


def _is_in(letter: str, kind: Any, value: Any) -> bool:
    if kind is code.NOT_LITERAL:
        return ord(letter) != value
    negated = value[0][0] is code.NEGATE
    return negated != any(_has(each, letter) for each in value)


def _has(item: Any, letter: str) -> bool:
    kind, value = item
    if kind is code.LITERAL:
        return ord(letter) == value
    if kind is code.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    if kind is code.CATEGORY:
        name = str(value).lower()
        there = {"digit": letter.isdecimal(), "space": letter.isspace(), "word": letter.isalnum() or letter == "_"}
        kind_of = name.rpartition("_")[2]
        return there[kind_of] != ("not_" in name)
    return False
