"""`lower_capitals` puts a text that is all capitals into small letters, so that a model can translate it. Notices and headlines are such
texts. A model that learnt from sentences spells them letter by letter, and badly.

    lower_capitals("A MAN SITS ON ⟦0⟧. I SEE HIM.", "en")  ->  "A man sits on ⟦0⟧. I see him."

So it is translated in small letters, and the translation is put in capitals. Names lose theirs on the way, which nobody can see afterwards.
"""

import re
from typing import Final

from limelight.text.careful.noise import lower, upper
from limelight.text.languages import base

LEAST_WORDS: Final = 2  # of two letters or more: "NATO" and "OK" are words as they are
LEAST_LETTERS: Final = 6

_WORD = re.compile(r"[^\W\d_]{2,}")
# What stands between two words is read once, from its beginning: a pattern that began at each of its stops would read it as often.
_WORD_BEGIN = re.compile(r"(?:^\W*+|(?<=\w)\W++)[^\W\d_]")
_STOP = re.compile(r"[.!?]\s")


def uppercase(text: str, language: str) -> str:
    """uppercase("straße", "de") -> "STRAẞE", as the rules have it since 2024; SS would be another word in small letters again."""
    return upper(text.replace("ß", "ẞ"), language)


def lower_capitals(text: str, language: str) -> str | None:
    """In small letters with a capital for each sentence; None for a text that is not all capitals, or too short to tell."""
    if any(map(str.islower, text)) or sum(map(str.isupper, text)) < LEAST_LETTERS:
        return None
    if len(_WORD.findall(text)) < LEAST_WORDS:
        return None
    small = lower(text, language)
    if base(language) == "en":
        small = re.sub(r"\bi\b", "I", small)

    def capitalize(begin: re.Match[str]) -> str:
        return upper(begin[0], language) if begin.start() == 0 or _STOP.search(begin[0]) else begin[0]

    return _WORD_BEGIN.sub(capitalize, small)
