"""A `TargetFinder` finds the words that a glossary asks for in a translation, inflected and in compounds.

Case, accents and what stands between words, spaces or hyphens, do not count. Targets of one word are looked for as they are. For those of
several, the words of the translation are kept by all that they begin and end with, so that many targets cost little more than one.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from limelight.text.careful.term_tree import SPACELESS
from limelight.text.normalize import recompose

LONGEST_TERM = 200  # characters
# By length: "Ja" is not in "Jahr"; "Typ" is in "Typen" and "Regeltyp", not in "typisch"; longer words may be anywhere in a word.
_SHORT, _LONG = 2, 4
_ENDING = 4  # letters after the stem of a word before the last: "neue Datei" is in "der neuen Dateien"
_CASE_ENDINGS = "аеийоуыьюя"  # of Slavic nouns; without it the plural of many would be another word
_ACCENTS = re.compile("[\u0300-\u036f]")
_BETWEEN = re.compile(r"[\s\u2010\u2011-]+")  # "Cloud Connector" is Cloud-Connector
_SPACELESS = f"[{SPACELESS}]"  # compiled by the first glossary
_SIGNS = re.compile(r"\W+")
_LETTERS = re.compile(rf"\w{{0,{_ENDING}}}")


class TargetFinder:
    def __init__(self, translation: str) -> None:
        self._given, self._text = translation, _BETWEEN.sub(" ", _fold(translation))
        self._known: dict[str, bool] = {}

    def has(self, target: str) -> bool:
        """Does it occur, in any case, from a word's beginning on or inside a compound, with any ending?

        Short targets are held more strictly: two letters are a word of their own, three may have an ending.
        """
        if target not in self._known:
            folded = _fold(target)
            self._known[target] = self._has(folded) if _BETWEEN.sub("", folded) else target in self._given
        return self._known[target]

    def _has(self, target: str) -> bool:
        # Only what a space follows is inflected: "E-Mail" is not in "eine Mail".
        parts = [list(filter(None, _BETWEEN.split(word))) for word in target.split()]
        *first, (last, _) = [(word, word is not part[-1]) for part in parts for word in part]
        if re.search(_SPACELESS, last):
            return " ".join(word for word, _ in [*first, (last, False)]) in self._text
        last = last[:-1] if len(last) > _LONG and last[-1] in _CASE_ENDINGS else last
        if not first:
            return last in self._text and (len(last) >= _LONG or self._has_short(last))
        found = ~0  # bit i: word i may come next
        for number, (word, is_joined) in enumerate(first):
            stem = word if is_joined or len(word) <= _LONG else word[:-2]
            inside = number == 0 and len(word) >= _LONG
            found = (found & self._words.get((stem, is_joined, inside), 0)) << 1
        return bool(found & self._beginnings.get(last, 0))

    def _has_short(self, word: str) -> bool:
        before, after = (r"(?<!\w)", "") if len(word) <= _SHORT else (r"(?:(?<!\w)|(?<=\w{5}))", r"\w{0,3}")
        return re.search(f"{before}{re.escape(word)}{after}(?!\\w)", self._text) is not None

    @cached_property
    def _beginnings(self) -> dict[str, int]:
        """What words begin with, to the numbers of these words as bits. What is short must not go on for long."""
        found = defaultdict[str, int](int)
        for number, word in self._number_words():
            for end in range(1, min(len(word), LONGEST_TERM) + 1):
                most = _ENDING if end >= _LONG else 3 if end > _SHORT else 0
                if len(_following(word, end)) <= most:
                    found[word[:end]] |= 1 << number
        return found

    @cached_property
    def _words(self) -> dict[tuple[str, bool, bool], int]:
        """(letters, is it all of the word or may an ending follow, may a compound begin before it), to the numbers of words."""
        found = defaultdict[tuple[str, bool, bool], int](int)
        for number, word in self._number_words():
            endings = len(_following(word[::-1], 0))
            for stem, is_all in ((word[: len(word) - n], n == 0) for n in range(endings + 1)):
                for begin in range(max(0, len(stem) - LONGEST_TERM), len(stem)):
                    for kind in (False, True)[: 1 + is_all]:
                        found[stem[begin:], kind, True] |= 1 << number
                        found[stem[begin:], kind, False] |= (begin == 0) << number
        return found

    def _number_words(self) -> Iterator[tuple[int, str]]:
        """The words between spaces; one with a bracket or quotation mark before it counts without, too."""
        for number, word in enumerate(self._text.split(" ")):
            yield number, word
            if signs := _SIGNS.match(word):
                yield number, word[signs.end() :]


def _following(word: str, at: int) -> str:
    """The letters from there on, as many as an ending has."""
    letters = _LETTERS.match(word, at)
    return letters[0] if letters else ""


def _fold(text: str) -> str:
    """Without case and the accents of European scripts: "Bäume" has the letters of "Baum"."""
    return _ACCENTS.sub("", recompose(text.casefold(), "NFD"))
