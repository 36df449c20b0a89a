"""`reliability` measures whether a confidence is what it says. Of all words that have 0.8, eight in ten should be right.

ECE = sum over bins b of n_b / n * |mean confidence of b - share of right ones in b|      (Naeini et al. 2015, Guo et al. 2017)
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

BINS = 10
GUESSING: Final = 0.55  # an `auc` below it is about that of a coin

Numbers = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bin:
    """A bin says of all whose confidence is from `low` to `high` how many they are, how sure on average, and which share is right."""

    low: float
    high: float
    count: int
    confidence: float
    right: float


@dataclass(frozen=True)
class Reliability:
    """The figures are those of words, or of sentences, whose `right` is the share of their right words."""

    count: int
    right: float  # share of all
    error: float  # ECE
    claimed_error: float  # ECE of what the model claims by itself
    auc: float | None  # None for sentences, and where all are right or all wrong
    bins: tuple[Bin, ...]  # those that anything is in
    claimed_bins: tuple[Bin, ...]  # by what the model claims by itself

    @property
    def doubt(self) -> str:
        """Of a confidence that may be right on average and still not know a right word from a wrong one."""
        guesses = self.auc is not None and self.auc < GUESSING
        return ", which is guessing: it does not tell which words are wrong" if guesses else ""


def reliability(confidence: Numbers, right: Numbers, claimed: Numbers) -> Reliability:
    """What was said, what was so, and what the model itself would have said; one number each for every word or sentence."""
    found, claims = bins(confidence, right), bins(claimed, right)
    return Reliability(
        count=len(right),
        right=float(right.mean()),
        error=compute_ece(found),
        claimed_error=compute_ece(claims),
        auc=auc(confidence, right),
        bins=found,
        claimed_bins=claims,
    )


def bins(confidence: Numbers, right: Numbers) -> tuple[Bin, ...]:
    numbers = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    found = []
    for number in np.unique(numbers).tolist():
        here = numbers == number
        means = float(confidence[here].mean()), float(right[here].mean())
        found.append(Bin(number / BINS, (number + 1) / BINS, int(here.sum()), *means))
    return tuple(found)


def compute_ece(found: tuple[Bin, ...]) -> float:
    total = sum(each.count for each in found)
    return sum(each.count / total * abs(each.confidence - each.right) for each in found)


def auc(confidence: Numbers, right: Numbers) -> float | None:
    """How often a right word has more confidence than a wrong one, a tie counting half: 0.5 is guessing, 1 is knowing.

    From the ranks, as Mann and Whitney count it: (sum of ranks of the right - n (n + 1) / 2) / (n * m).
    """
    many, few = int((right == 1).sum()), int((right == 0).sum())
    if many + few < len(right) or not many or not few:
        return None
    _, where, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[where]  # of equals the mean
    return float((ranks[right == 1].sum() - many * (many + 1) / 2) / (many * few))
