"""Text that is all capitals, as notices and headlines are. A model that learnt from sentences spells it letter by letter, and badly.

    calmed("A MAN SITS ON ⟦0⟧. I SEE HIM.", "en")  ->  "A man sits on ⟦0⟧. I see him."

So it is translated in small letters, and the translation is put in capitals. Names lose theirs on the way, which nobody can see afterwards.
"""

import re
from typing import Final

from limelight.text.languages import base
from limelight.text.noise import lower, upper

LEAST_WORDS: Final = 2  # of two letters or more: "NATO" and "OK" are words as they are
LEAST_LETTERS: Final = 6

_WORD = re.compile(r"[^\W\d_]{2,}")
# What stands between two words is read once, from its beginning: a pattern that began at each of its stops would read it as often.
_WORD_BEGIN = re.compile(r"(?:^\W*+|(?<=\w)\W++)[^\W\d_]")
_STOP = re.compile(r"[.!?]\s")


def shouted(text: str, language: str) -> str:
    """shouted("straße", "de") -> "STRAẞE", as the rules have it since 2024; SS would be another word in small letters again."""
    return upper(text.replace("ß", "ẞ"), language)


def calmed(text: str, language: str) -> str | None:
    """In small letters with a capital for each sentence; None for a text that is not all capitals, or too short to tell."""
    if any(map(str.islower, text)) or sum(map(str.isupper, text)) < LEAST_LETTERS:
        return None
    if len(_WORD.findall(text)) < LEAST_WORDS:
        return None
    small = lower(text, language)
    if base(language) == "en":
        small = re.sub(r"\bi\b", "I", small)
    return _WORD_BEGIN.sub(lambda begin: upper(begin[0], language) if _begins_sentence(begin) else begin[0], small)


def _begins_sentence(begin: re.Match[str]) -> bool:
    return begin.start() == 0 or _STOP.search(begin[0]) is not None
