"""A `Curve` leads from what a model claims to what was true, by a few knots that are kept in its bundle.
The knots are fitted on text that the model had not learned from.

    Curve(knots=((0.2, 0.1), (0.6, 0.5), (0.9, 0.8))).at(0.75) -> 0.65

A model is sure of itself in its own way. A curve says which share of the words was right that it was so sure of.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Annotated, Self

from pydantic import Field, model_validator

from limelight.config import Settings

KNOTS = 20  # at most: more would follow the chance of the text they were fitted on

Share = Annotated[float, Field(ge=0, le=1)]


class Curve(Settings):
    """A curve is straight lines between knots (claimed, true), level before the first and after the last. It never falls."""

    knots: tuple[tuple[Share, Share], ...] = Field(min_length=1, max_length=KNOTS)

    @model_validator(mode="after")
    def _rises(self) -> Self:
        claimed, true = zip(*self.knots, strict=True)
        problems = []
        if any(b <= a for a, b in pairwise(claimed)):
            problems.append("knots: what is claimed must rise from knot to knot")
        if any(b < a for a, b in pairwise(true)):
            problems.append("knots: what is true must not fall from knot to knot")
        return self.refuse(problems)

    def at(self, claimed: float) -> float:
        after = bisect_right(self.knots, claimed, key=itemgetter(0))
        if after == 0 or after == len(self.knots):
            return self.knots[min(after, len(self.knots) - 1)][1]
        (left, low), (right, high) = self.knots[after - 1 : after + 1]
        return low + (high - low) * (claimed - left) / (right - left)


def multiply_known(chances: Sequence[float | None]) -> float | None:
    """The probability of all together; None where one is not known."""
    known = [chance for chance in chances if chance is not None]
    return math.prod(known) if known and len(known) == len(chances) else None


class Calibration(Settings):
    """Both curves lead to the expected share of right words: of one word its probability to be right, of a sentence the share of its words.

    That of sentences is for engines that tell only the probability of a whole translation. `unedited` leads to the share of texts that were
    word for word what a person had written; None where too few were.
    """

    words: Curve
    sentences: Curve
    unedited: Curve | None = None
    lines: int = Field(ge=1, description="Translated to fit them.")

    def expect_unedited(self, confidence: float, words: int) -> float | None:
        """The probability that a text of so many words needs no edit. A curve on exp(-expected wrong words), so length counts too."""
        return None if self.unedited is None else self.unedited.at(math.exp((confidence - 1) * words))
