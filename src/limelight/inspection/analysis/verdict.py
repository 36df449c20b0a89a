"""A verdict says how changes affect a translation: how much less probable it is, where, and how far the new one is."""

from collections.abc import Sequence

from limelight.decoding.risk import pairwise_chrf
from limelight.inspection.trace import Verdict


def verdict(
    before: str, after: str, pieces: list[str], without: Sequence[float], under: Sequence[float], given: int
) -> Verdict:
    """The baseline and the new text; the baseline's pieces, and their log-probabilities without the changes and under them.

    The first `given` pieces were never a choice and count nothing.
    """
    deltas = [changed - own for own, changed in zip(without, under, strict=True)]
    return Verdict(before, sum(without[given:]), sum(deltas[given:]), deltas, likeness(before, after), pieces)


def likeness(one: str, other: str) -> float:
    """chrF of the second against the first, 0 to 100; 100 also for two empty texts."""
    return 100.0 if one == other else float(pairwise_chrf([other, one])[0, 1])
