"""Guards see what is wrong with a translation from the two texts alone: it loops, copies, is empty or of odd length.

These are the ways in which a decoder fails as a whole. A guard compares with the source: one that says "no no no no" may well have a
translation that does. Each guard returns a sentence with the figures and without the text, or None when all is well.

    judge("One.", "Eins eins eins eins eins eins eins.")  ->  [Notice("loop", ...)]
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

# A loop of words. What people wrote passes these bounds in 5 of 45,254 translations (docs/translate.md).
PAIR_TIMES, PAIR_ABOVE = 10, 5  # two words that often, and so much more often than any two of the source
PHRASE_ABOVE = 2  # four words so much more often than any four of the source
# A loop inside a word, or in a script without spaces: one unit again and again.
LONGEST_UNIT, RUN_TIMES, RUN_LENGTH, RUN_ABOVE = 40, 4, 16, 12  # characters, times, characters, characters

LARGEST_RATIO = 3.0  # of the lengths in characters, each plus RATIO_FLOOR: "OK" may well be "In Ordnung"
RATIO_FLOOR = 15
COPIED_WORDS = 4  # fewer words that are no names, numbers or codes may be the same in both languages
COPIED_SHARE = 0.9  # of the words
CASELESS_WORD = 4  # letters counted as a word where there may be no spaces: two words of Chinese or one of Hindi

_RUN = re.compile(rf"(.{{1,{LONGEST_UNIT}}}?)\1{{{RUN_TIMES - 1},}}", re.DOTALL)
_EDGES = re.compile(r"^[\W_]+|(?<![\W_])[\W_]+$")  # from its beginning, or a long row of signs would be tried from each of them
_CODE = re.compile(r"[\d!-/:-@\[-`{-~]")  # digits and the signs of ASCII
_INSIDE = str.maketrans("", "", "'\u2019-\u2010\u2011")  # don't, e-mail
HARMLESS: Final = frozenset(("engine", "redecoded", "split", "tags_placed"))  # codes that tell how a translation was made


class Notice(NamedTuple):
    """A notice is something to know about a translation: a code for programs, a sentence for people. Never the text itself."""

    code: str
    message: str


def judge(source: str, text: str, expected: float = 1.0, same_language: bool = False) -> list[Notice]:
    """All that the guards say. `expected`: characters of the target language for one of the source language.

    A translation into another form of the same language may well be its source again.
    """
    if not text.strip():
        return [Notice("empty", f"a source of {len(source)} characters has an empty translation")] if source.strip() else []
    rules: list[tuple[str, Callable[[], str | None]]] = [
        ("loop", lambda: find_looping(source, text)),
        ("too_long", lambda: too_long(source, text, expected)),
        ("too_short", lambda: too_short(source, text, expected)),
        ("copied", lambda: None if same_language else find_copying(source, text)),
    ]
    return [Notice(code, message) for code, rule in rules if (message := rule()) is not None]


def find_looping(source: str, text: str) -> str | None:
    """Two words at least 10 times and 5 times more often than any two of the source; or four words 2 times more often than any four of it;
    or, inside one word, a unit at least 4 times in a row over 16 characters, 12 more than any run of the source.

    find_looping("Yes.", "Ja ja ja ja ja ja ja.") -> 4 words occur 3 times, in the source once
    The last is for "aaaaaaaaaaaaaaaa" and for Chinese, Japanese or Thai, where a whole sentence is one word between spaces. There four
    characters are about two words and come back in good text, so only what repeats at once is a loop.
    """
    words = text.lower().split()
    # Four words that come back are four words that were there before: a cheap look that most text does not pass.
    if len(words) - len(set(words)) >= 4:
        before = source.lower().split()
        pair, pair_before = _most(words, 2), _most(before, 2)
        if pair >= PAIR_TIMES and pair - pair_before >= PAIR_ABOVE:
            return f"2 words occur {pair} times, in the source {_times(pair_before)}"
        # Everything is said once by a source, also by one without spaces, in which no four words can be counted.
        phrase, phrase_before = _most(words, 4), max(1, _most(before, 4))
        if phrase - phrase_before >= PHRASE_ABOVE:
            return f"4 words occur {phrase} times, in the source {_times(phrase_before)}"
    if any(len(word) >= RUN_LENGTH for word in words):
        run = _longest_run(text)
        if run >= RUN_LENGTH and run - (run_before := _longest_run(source)) >= RUN_ABOVE:
            return f"{run} characters in a row repeat a few of them, in the source {run_before}"
    return None


def too_long(source: str, text: str, expected: float = 1.0) -> str | None:
    """(|text| + 15) / (expected |source| + 15) above 3, as in the filter that training text went through."""
    if _ratio(source, text, expected) <= LARGEST_RATIO:
        return None
    return f"{len(text)} characters for a source of {len(source)}"


def too_short(source: str, text: str, expected: float = 1.0) -> str | None:
    if _ratio(source, text, expected) >= 1 / LARGEST_RATIO:
        return None
    return f"{len(text)} characters for a source of {len(source)}"


def find_copying(source: str, text: str) -> str | None:
    """Nine in ten words of the source and of the text are the same, and at least four of them are neither names, nor numbers, nor codes.

    find_copying("the cat sat on it", "The cat sat on it.") -> 5 of 5 words are those of the source
    A name begins with a capital letter; a code has signs or digits in it. Scripts without spaces have a word for every four letters.
    """
    if 2 * len(set(source.casefold().split()) & set(text.casefold().split())) < source.count(" "):
        return None  # a cheap look that most text does not pass
    before, after = _bare_words(source), _bare_words(text)
    same = sum((Counter(before) & Counter(after)).values())
    if same < COPIED_SHARE * max(len(before), len(after)):
        return None
    spoken = sum(_count_words(word) for word in source.split())
    return f"{same} of {len(after)} words are those of the source" if spoken >= COPIED_WORDS else None


def _most(words: Sequence[str], n: int) -> int:
    """How often the most frequent sequence of n words occurs: _most("a b a b a".split(), 2) -> 2."""
    grams = Counter(zip(*(words[i:] for i in range(n)), strict=False))
    return max(grams.values(), default=0)


def _longest_run(text: str) -> int:
    """Characters of the longest row of repeats without a space: _longest_run("so hahahahaha") -> 10."""
    return max((len(match[0]) for word in text.split() for match in _RUN.finditer(word)), default=0)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _ratio(source: str, text: str, expected: float) -> float:
    return (len(text) + RATIO_FLOOR) / (len(source) * expected + RATIO_FLOOR)


def _bare_words(text: str) -> list[str]:
    return [bare for word in text.casefold().split() if (bare := _EDGES.sub("", word))]


def _count_words(word: str) -> int:
    """How many words of a language this is: 0 for names, numbers and codes, 1 for a word, more for a row of characters without spaces."""
    bare = _EDGES.sub("", word).translate(_INSIDE)
    if word[0] in "#@<" or not bare or bare[0].isupper() or not any(map(str.isalpha, bare)) or _CODE.search(bare):
        return 0
    caseless = sum(letter.isalpha() and letter.lower() == letter.upper() for letter in bare)
    return max(1, caseless // CASELESS_WORD)
