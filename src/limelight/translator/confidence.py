"""The confidence of each word, and of the whole translation, comes from the probabilities of its pieces.

    claimed(word) = product of the probabilities of its pieces ^ (1 - CONTEXT) * mean probability of the sentence ^ CONTEXT

A calibration of the bundle turns what is claimed into the share of such words that were right on text the model had not seen
(docs/confidence.md). The confidence of a sentence is then the mean of its words': the share of them that is expected to be right.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import groupby
from typing import Final, NamedTuple

from limelight.bundle.confidence import Calibration
from limelight.text.pieces.tokenizer import SPACE

# In a sentence that the model finds improbable a word is seldom right, however sure of it the model is. Of 0, 1/3 and 1/2 this one
# orders words best, and on text of another kind it is less wrong than 0 (docs/confidence.md).
CONTEXT: Final = 1 / 3
_BYTE = re.compile("<0x([0-9A-F]{2})>")
# Thai, Lao, Tibetan, Burmese, Khmer; kana and Han: scripts that put no spaces between words.
_UNSPACED = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACED: Final = re.compile("[^ ]+")


class Word(NamedTuple):
    """A word of the translation has its punctuation with it, and says how probably it is right.

    None where the engine told no probabilities and was not asked for them, or where a rule put the word there and not the model.
    """

    text: str
    confidence: float | None


@cache
def _compile_unspaced() -> re.Pattern[str]:
    """Punctuation goes with the letter before it, a mark ⟦0⟧ does not. It takes long to compile, and most languages do without."""
    return re.compile(f"[{_UNSPACED}][^\\w ⟦]*|[^ {_UNSPACED}]+")


def _find_words(text: str) -> Iterator[re.Match[str]]:
    return (_SPACED if text.isascii() or max(text) < _UNSPACED[0] else _compile_unspaced()).finditer(text)


def split_words(text: str) -> list[str]:
    """Between spaces; in scripts that have none each letter by itself: split_words("Das ist 猫だ。") -> ["Das", "ist", "猫", "だ。"]."""
    return [match[0] for match in _find_words(text)]


def words_of(pieces: Sequence[tuple[str, float | None]], whole: float, calibration: Calibration | None = None) -> list[Word]:
    """The words that the pieces spell. `whole`: the mean probability of the sentence, its end included.

    words_of([("▁Kat", 0.5), ("ze", 0.8), (".", 0.9)], 1.0) -> [Word("Katze.", 0.4 ** (2 / 3))]; punctuation at a word does not count.
    """
    spelling, owners = _spelt([text for text, _ in pieces])
    if all(probability is None for _, probability in pieces):
        return [Word(match[0], None) for match in _find_words(spelling)]
    words = []
    for match in _find_words(spelling):
        own = range(owners[match.start()].start, owners[match.end() - 1].stop)
        claimed = _combine_probabilities([pieces[number] for number in own], whole)
        sure = claimed if claimed is None or calibration is None else calibration.words.at(claimed)
        words.append(Word(match[0], sure))
    return words


def sentence_confidence(words: Sequence[Word], whole: float, calibration: Calibration | None) -> float:
    """The share of right words to be expected. Without a calibration `whole`, as the model claims it.

    Where no word has a confidence, the curve of sentences is asked. It knows less: two sentences of equal probability may differ much.
    """
    if calibration is None:
        return whole
    told = [word.confidence for word in words if word.confidence is not None]
    return math.fsum(told) / len(told) if told else calibration.sentences.at(whole)


def transfer_confidence(words: Sequence[Word], text: str) -> list[Word]:
    """The confidences for the words of `text`, which was made of these words by rules: marks became what they stand for.

    transfer_confidence([Word("Zu", 0.9), Word("⟦0⟧", 0.7)], "Zu New York") -> [Word("Zu", 0.9), Word("New", 0.7), Word("York", 0.7)]
    Several words in the place of several others each have the least confidence of those.
    """
    old, new = [word.text for word in words], split_words(text)
    if old == new:
        return list(words)
    result = []
    for _, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        there = [word.confidence for word in words[start:end]]
        if end - start != new_end - new_start:
            least = min((each for each in there if each is not None), default=None)
            there = [least] * (new_end - new_start)
        result += [Word(*pair) for pair in zip(new[new_start:new_end], there, strict=True)]
    return result


def is_punctuation(text: str) -> bool:
    return bool(text) and all(unicodedata.category(letter).startswith("P") for letter in text)


def _combine_probabilities(pieces: Sequence[tuple[str, float | None]], whole: float) -> float | None:
    """Of the pieces with more than punctuation, if there are any: a full stop says little about the word before it."""
    told = [probability for text, probability in pieces if not is_punctuation(text.strip(SPACE))]
    known = [probability for probability in told or [each for _, each in pieces] if probability is not None]
    if len(known) < len(told or pieces):
        return None
    return math.pow(math.prod(known), 1 - CONTEXT) * math.pow(whole, CONTEXT)


def _spelt(pieces: Sequence[str]) -> tuple[str, list[range]]:
    """The text, and for each of its letters the pieces that it comes from: several only where they are bytes."""
    text, owners = "", list[range]()
    for are_bytes, run in groupby(enumerate(pieces), key=lambda numbered: _BYTE.fullmatch(numbered[1]) is not None):
        numbers, some = zip(*run, strict=True)
        if are_bytes:
            letters = bytes(int(piece[3:5], 16) for piece in some).decode(errors="replace")
            text += letters
            owners += [range(numbers[0], numbers[-1] + 1)] * len(letters)
            continue
        for number, piece in zip(numbers, some, strict=True):
            text += piece.replace(SPACE, " ")
            owners += [range(number, number + 1)] * len(piece)
    return text, owners
