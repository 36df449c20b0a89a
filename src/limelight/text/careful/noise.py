"""Noise functions write a text as people do when nobody checks, with capitals, typing mistakes and no full stop. A translator that never
saw it breaks on it.

Pure functions of a text, and of one random number where chance decides: each choice takes its part of the number by `divmod`, so that
64 bits are enough for all of them. Marks such as ⟦3⟧ hold no letters, and nothing here touches them.
"""

import re
from typing import Final

from limelight.text.languages import base
from limelight.text.normalize import recompose

# Turkish and Azerbaijani tell i from ı: their capitals are İ and I. Python knows those of the others only.
DOTTED: Final = frozenset({"tr", "az"})
TO_UPPER: Final = str.maketrans({"i": "İ"})
TO_LOWER: Final = str.maketrans({"I": "\u0131", "İ": "i"})

# A letter at the beginning of a word: not that after the apostrophe of "don't", nor that after a hyphen.
FIRST_OF_WORD: Final = re.compile(r'(?<![^\s"(\[„“”«»⟧])[^\W\d_]')
ENDS: Final = ".!?…\u3002\uff01\uff1f"

# Words in which a mistake leaves something to read, and how many of them go by for each mistake but the first.
WORD: Final = re.compile(r"[^\W\d_]{4,}")
WORDS_FOR_A_MISTAKE: Final = 8
MOST_MISTAKES: Final = 3
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS: Final = {key: row[max(0, at - 1) : at] + row[at + 1 : at + 2] for row in _ROWS for at, key in enumerate(row)}


def upper(text: str, language: str) -> str:
    """ALL CAPITALS, composed as the text was: some capitals of a composed letter are not."""
    return recompose(_map_dotted(text, language, TO_UPPER).upper())


def lower(text: str, language: str) -> str:
    return _map_dotted(text, language, TO_LOWER).lower()


def lower_first(text: str, language: str) -> str:
    """lower_first("A mat.", "en") -> "a mat." """
    return lower(text[:1], language) + text[1:]


def title(text: str, language: str) -> str:
    """The first letter of each word large; the others stay as they are."""
    return FIRST_OF_WORD.sub(lambda found: _map_dotted(found[0], language, TO_UPPER).title(), text)


def without_final(text: str) -> str:
    return text.rstrip(ENDS).rstrip() if text[-1:] and text[-1] in ENDS else text


def final(text: str) -> str:
    """What ends a sentence: final("A mat!") -> "!"; empty when nothing does."""
    return text[len(without_final(text)) :]


def typos(text: str, draw: int) -> str:
    """One mistake, and more in a long text, in words of at least four letters: two letters swapped, one lost, doubled or mistyped."""
    words = [found.span() for found in WORD.finditer(text)]
    if not words:
        return text
    mistakes: dict[tuple[int, int], str] = {}
    for _ in range(min(MOST_MISTAKES, 1 + len(words) // WORDS_FOR_A_MISTAKE)):
        draw, at = divmod(draw, len(words))
        begin, end = words[at]
        draw, mistakes[begin, end] = mistype(text[begin:end], draw)
    for (begin, end), word in sorted(mistakes.items(), reverse=True):  # from the last on, so that places stay right
        text = text[:begin] + word + text[end:]
    return text


def mistype(word: str, draw: int) -> tuple[int, str]:
    """What is left of the draw, and the word with one mistake in it; its first letter stays unless it is swapped."""
    draw, at = divmod(draw, len(word) - 1)
    draw, how = divmod(draw, 4)
    here, after = word[at], word[at + 1]
    keys = NEIGHBOURS.get(after.lower(), "")
    if how == 1:
        return draw, word[: at + 1] + word[at + 2 :]
    if how == 2:
        return draw, word[: at + 1] + here + word[at + 1 :]
    if how == 3 and keys:
        draw, which = divmod(draw, len(keys))
        return draw, word[: at + 1] + (keys[which].upper() if after.isupper() else keys[which]) + word[at + 2 :]
    return draw, word[:at] + after + here + word[at + 2 :]


def _map_dotted(text: str, language: str, table: dict[int, str]) -> str:
    return text.translate(table) if base(language) in DOTTED else text
