"""A translation is compared with its source or reference here, text by text: numbers, placeholders, copies, repetition."""

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import Final

from limelight.text import patterns
from limelight.text.languages import UNSPACED_LETTER
from limelight.text.normalize import recompose

REPEATED_WORDS = 12  # shorter text repeats by chance
REPEATED_TIMES = 4  # "%s, %s, %s and %s" is no fault
_PERCENTAGE: Final = re.compile(r"(?:^|[^%.,\w]|_)\d[\d.,]*(?:%| % )")  # "20 % der", "20%ige": no placeholder begins here
_PLACEHOLDER: Final = re.compile(patterns.PLACEHOLDER)
_MESSAGE_FORMAT: Final = re.compile(patterns.MESSAGE_FORMAT)
_NUMBER: Final = re.compile(patterns.NUMBER)
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_UNSPACED: Final = re.compile(UNSPACED_LETTER)
LETTERS_FOR_A_WORD = 3  # where no blanks part words, to call a text a copy: the names of places are the same in Chinese and Japanese


@cache
def _table_of_digits() -> dict[int, str]:
    return str.maketrans(patterns.digits())


def find_numbers(text: str) -> list[tuple[str, str]]:
    """Numbers of two or more digits, each as its digits and as it is written. One digit may be a word on the other side."""
    found = [(re.sub(r"\D", "", each).translate(_table_of_digits()), each) for each in _NUMBER.findall(text)]
    return [(digits, each) for digits, each in found if len(digits) >= 2]


def find_placeholders(text: str) -> list[tuple[str, str]]:
    """Placeholders, each as it counts (numbering, as in %1$s, may come with a new order) and as it is written."""
    return [(re.sub(r"^%\d+\$", "%", each), each) for each in _PLACEHOLDER.findall(text)]


def numbers_differ(source: str, target: str) -> bool:
    return Counter(key for key, _ in find_numbers(source)) != Counter(key for key, _ in find_numbers(target))


def placeholders_differ(source: str, target: str) -> bool:
    """As multisets; a message of ICU is not looked at, for its braces hold text to be translated."""
    counts = (Counter(key for key, _ in find_placeholders(_PERCENTAGE.sub("", text))) for text in (source, target))
    return next(counts) != next(counts) and not any(map(_MESSAGE_FORMAT.search, (source, target)))


def is_copied(source: str, target: str, words: int) -> bool:
    """The same letters in the same order, in a text of at least `words` words with letters, or so long where no blanks part them."""
    if abs(len(source) - len(target)) > 4 + len(source) // 8:
        return False
    if source[:2].lower() != target[:2].lower() and source[-2:].lower() != target[-2:].lower():
        return False
    spoken = source.count(" ") >= words - 1 and len(_LETTERS.findall(source)) >= words
    spoken = spoken or (not source.isascii() and len(_UNSPACED.findall(source)) >= LETTERS_FOR_A_WORD * words)
    return spoken and _loosen(source) == _loosen(target)


def _loosen(text: str) -> str:
    """Letters alone, without case and the accents of European scripts."""
    apart = recompose(text, "NFD").lower()
    return "".join(sign for sign in apart if unicodedata.category(sign)[0] in "LM" and not "\u0300" <= sign <= "\u036f")


def is_repetitive(text: str, share: float) -> bool:
    """Repeats of one three-word phrase cover more than `share` of the words: what broken decoders and spam leave behind."""
    return text.count(" ") >= REPEATED_WORDS - 1 and has_repeats(text.lower().split(" "), share)


def has_repeats(words: list[str], share: float) -> bool:
    often = sum(count for count in Counter(words).values() if count >= REPEATED_TIMES)
    if often <= share * len(words):  # a cheap look that most texts do not pass
        return False
    places: dict[tuple[str, ...], list[int]] = {}
    for i in range(len(words) - 2):
        phrase = tuple(words[i : i + 3])
        if any(word.strip(".,;:!?").isalpha() for word in phrase):  # "%s, %s, %s" is a list of placeholders
            places.setdefault(phrase, []).append(i)
    most = max(places.values(), key=len, default=[])
    covered = {i + k for i in most for k in range(3)}
    return len(most) >= REPEATED_TIMES and len(covered) > share * len(words)
