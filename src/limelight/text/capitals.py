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
_BEGINNING = re.compile(r"(?:^|[.!?]\s+)\W*[^\W\d_]")


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
    return _BEGINNING.sub(lambda found: upper(found[0], language), small)
