"""A calibration fits what a model claims of its words to what was right, and is checked on other text; it learnt from neither."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from pydantic import TypeAdapter

from limelight.bundle.confidence import KNOTS, Calibration, Curve
from limelight.evaluation.confidence.reliability import Integers, Numbers, Reliability, reliability
from limelight.translator.confidence import Word, split_words

LEAST_WORDS, LEAST_SENTENCES = 100, 25  # that a knot is the mean of
FEWEST = 5  # knots that there must be text for; a curve of fewer would be worse than none
TOO_FEW = f"a calibration takes {FEWEST * LEAST_WORDS} words in {FEWEST * LEAST_SENTENCES} sentences"
DIGITS, APART = 6, 2e-6  # of a knot, and between two: so they stay apart when they are rounded
ENOUGH = 1_000  # sentences to fit on; more make it no better (docs/confidence.md)


@dataclass(frozen=True)
class Claims:
    """Claims of a model about its words and sentences stand beside what was so. Sentence i has the words with `sentence` i, or none."""

    words: Numbers  # claimed of each word, as `words_of` gives it without a calibration
    right: Numbers  # 1 or 0
    sentence: Integers
    whole: Numbers  # mean probability of each sentence
    unedited: Numbers = field(default_factory=lambda: np.zeros(0))  # 1: word for word the reference; none where nobody compared

    def means(self, values: Numbers) -> Numbers:
        counts = np.bincount(self.sentence, minlength=len(self.whole))
        return (np.bincount(self.sentence, values, len(self.whole)) / np.maximum(1, counts))[counts > 0]

    @property
    def shares(self) -> Numbers:
        return self.means(self.right)

    def chances(self, means: Numbers) -> Numbers:
        """exp(-expected wrong words) of each sentence that has any words, by the mean confidence of its words: see `Calibration`."""
        counts = np.bincount(self.sentence, minlength=len(self.whole))
        return np.exp((means - 1) * counts[counts > 0])

    @property
    def spoken(self) -> Integers:
        return np.unique(self.sentence)


@dataclass(frozen=True)
class ConfidenceCheck:
    """The check says how far confidence can be believed, on text that it was not fitted on."""

    words: Reliability
    sentences: Reliability  # by the mean of their words
    whole: Reliability  # by their probability alone, for engines that tell no more
    unedited: Reliability | None = None  # of sentences: is it word for word what a person wrote?

    @classmethod
    def of(cls, value: dict[str, Any]) -> Self:
        return TypeAdapter(cls).validate_python(value)


def collect(translated: Iterable[tuple[Sequence[Word], float]], references: Sequence[str]) -> Claims:
    """Collect of each sentence its words and its mean probability, both as the model claims them, and the reference."""
    claimed, right, sentence, whole, unedited = list[float](), list[bool](), list[int](), list[float](), list[bool]()
    for number, ((words, probability), reference) in enumerate(zip(translated, references, strict=True)):
        whole.append(probability)
        unedited.append(is_unedited([word.text for word in words], reference))
        for word, is_right in zip(words, right_words([word.text for word in words], reference), strict=True):
            if word.confidence is not None:
                claimed.append(word.confidence)
                right.append(is_right)
                sentence.append(number)
    truth = np.array(right, np.float64)
    numbers = np.array(sentence, np.int64), np.array(whole), np.array(unedited, np.float64)
    return Claims(np.array(claimed, np.float64), truth, *numbers)


def is_unedited(words: Sequence[str], reference: str) -> bool:
    """Word for word the reference, in the same order and case; punctuation at the ends of words aside. Others may need no edit either."""
    return [_bare(word) for word in words] == [_bare(word) for word in split_words(reference)]


def right_words(words: Sequence[str], reference: str) -> list[bool]:
    """right_words(["Der", "Hund", "Hund", "bellt!"], "Der Hund bellt.") -> [True, True, False, True]"""
    left = Counter(_bare(word) for word in split_words(reference))
    found = []
    for word in map(_bare, words):
        found.append(left[word] > 0)
        left[word] -= found[-1]
    return found


def fit_calibration(claims: Claims) -> Calibration | None:
    """None where there is too little text."""
    enough = len(claims.words) >= FEWEST * LEAST_WORDS and len(claims.spoken) >= FEWEST * LEAST_SENTENCES
    if not enough:
        return None
    words = fit_curve(claims.words, claims.right, LEAST_WORDS)
    return Calibration(
        words=words,
        sentences=fit_curve(claims.whole[claims.spoken], claims.shares, LEAST_SENTENCES),
        unedited=_fit_unedited(claims, _believe(words, claims)),
        lines=len(claims.whole),
    )


def _believe(words: Curve, claims: Claims) -> Numbers:
    return np.array([words.at(claimed) for claimed in claims.words.tolist()])


def _fit_unedited(claims: Claims, said: Numbers) -> Curve | None:
    """None where fewer sentences than a knot needs were word for word right."""
    if not len(claims.unedited) or claims.unedited[claims.spoken].sum() < LEAST_SENTENCES:
        return None
    return fit_curve(claims.chances(claims.means(said)), claims.unedited[claims.spoken], LEAST_SENTENCES)


def fit_curve(claimed: Numbers, right: Numbers, least: int) -> Curve:
    """Sorted by what is claimed and cut into equal groups, the mean of each is a knot; neighbours that fall are pooled until none does.

    (Isotonic regression by pooling adjacent violators, Ayer et al. 1955, of group means: few knots, none of a handful of words.)
    A group is granted one more observation, the mean of all, so that no curve ends in "always". It begins at 0: what a model finds
    impossible, as on text of another kind, is less often right than the worst of the words that were fitted to.
    """
    order = np.argsort(claimed, kind="stable")
    groups = np.array_split(order, max(1, min(KNOTS - 1, len(order) // least)))
    knots: list[tuple[float, float, int]] = []  # claimed, true, size
    for group in groups:
        true = (right[group].sum() + right.mean()) / (len(group) + 1)
        knots.append((float(claimed[group].mean()), float(true), len(group)))
        while len(knots) > 1 and (knots[-1][1] < knots[-2][1] or knots[-1][0] - knots[-2][0] < APART):
            (a, b, n), (c, d, m) = knots[-2:]
            knots[-2:] = [((a * n + c * m) / (n + m), (b * n + d * m) / (n + m), n + m)]
    first = [(0.0, 0.0)] if knots[0][0] >= APART else []
    return Curve(knots=(*first, *((round(a, DIGITS), round(b, DIGITS)) for a, b, _ in knots)))


def check(claims: Claims, calibration: Calibration) -> ConfidenceCheck | None:
    """None where no word was told."""
    if not len(claims.words):
        return None
    said = _believe(calibration.words, claims)
    whole = claims.whole[claims.spoken]
    alone = np.array([calibration.sentences.at(claimed) for claimed in whole.tolist()])
    unedited = None
    if calibration.unedited is not None and len(claims.unedited):
        chances = claims.chances(claims.means(said))
        expected = np.array([calibration.unedited.at(chance) for chance in chances.tolist()])
        unedited = reliability(expected, claims.unedited[claims.spoken], chances)
    return ConfidenceCheck(
        words=reliability(said, claims.right, claims.words),
        sentences=reliability(claims.means(said), claims.shares, whole),
        whole=reliability(alone, claims.shares, whole),
        unedited=unedited,
    )


def _bare(word: str) -> str:
    """Without the punctuation at its ends; punctuation alone is a word."""
    signs = "".join(sign for sign in set(word) if unicodedata.category(sign).startswith("P"))
    return word.strip(signs) or word
