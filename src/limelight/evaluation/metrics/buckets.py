"""`by_length` scores short and long sentences apart. A system that is fine on the whole may fall apart on long ones, or on headlines."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.metrics.metrics import MetricCounts

WORDS = (10, 20, 40)
CHARACTERS = (20, 40, 80)  # where writing does not separate words; half a word of English each
FEW = 100  # sentences; below this a bucket's score says little, and is marked
SPACED = 0.05  # spaces per character; English has 0.18, Chinese next to none
CASELESS = 0.5  # of the letters: a list of single German words has no spaces either, but is no Chinese
LOOKED_AT = 1_000  # sentences


@dataclass(frozen=True)
class BucketScore:
    metric: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class LengthBucket:
    """A bucket has the sentences of `shortest` to `longest` words (or characters); no `longest` in the last."""

    shortest: int
    longest: int | None
    unit: str
    sentences: int
    few: bool
    scores: list[BucketScore]

    @property
    def name(self) -> str:
        if self.longest is None:
            return f"{self.shortest} and more"
        return f"up to {self.longest}" if self.shortest == 0 else f"{self.shortest}–{self.longest}"  # noqa: RUF001


def by_length(texts: Sequence[str], counted: Sequence[MetricCounts], settings: EvaluateSettings) -> list[LengthBucket]:
    """Buckets of the length of `texts` (the sources, or the references where there are none). Empty ones are left out."""
    spaced = is_spaced(texts)
    lengths = np.array([len(text.split()) if spaced else len(text) for text in texts])
    inner = WORDS if spaced else CHARACTERS
    numbers = np.searchsorted(inner, lengths)
    buckets = []
    for number in range(len(inner) + 1):
        sentences = np.flatnonzero(numbers == number)
        if len(sentences):
            shortest = inner[number - 1] + 1 if number else 0
            longest = inner[number] if number < len(inner) else None
            unit = "words" if spaced else "characters"
            parts = [counts.part(sentences) for counts in counted]
            scores = [BucketScore(part.name, part.value, *part.interval(settings)) for part in parts]
            buckets.append(LengthBucket(shortest, longest, unit, len(sentences), len(sentences) < FEW, scores))
    return buckets


def is_spaced(texts: Sequence[str]) -> bool:
    """Do spaces separate words here? Not in Chinese, Japanese or Thai."""
    some = "".join(texts[:LOOKED_AT])
    letters = [letter for letter in some if letter.isalpha()]
    caseless = sum(letter.lower() == letter.upper() for letter in letters)
    return caseless <= CASELESS * len(letters) or some.count(" ") >= SPACED * len(some)
