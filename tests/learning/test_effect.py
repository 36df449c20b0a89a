"""A version is kept only if it is surely better on corrections, and not worse on old text."""

import pytest

from limelight.evaluation.metrics.compare import Difference
from limelight.learning.effect import MOST_LOST, NEW, OLD, decide


def differ(by: float, significant: bool) -> Difference:
    better = None if not significant else "after" if by > 0 else "before"
    return Difference("chrF2", 50.0, 50.0 + by, by, None, None, 0.001 if significant else 0.4, None, better, significant, "")


@pytest.mark.parametrize(
    ("new", "old", "kept"),
    [
        (differ(3.0, True), differ(0.1, False), True),
        (differ(3.0, True), differ(0.5, True), True),  # better on both
        (differ(3.0, True), differ(-0.2, False), True),  # chance
        (differ(3.0, True), differ(-0.2, True), False),  # surely worse
        (differ(3.0, True), differ(-MOST_LOST - 0.1, False), False),  # too much, though a small set cannot prove it
        (differ(0.4, False), differ(0.0, False), False),
        (differ(-3.0, True), differ(1.0, True), False),  # rubbish
        (differ(0.0, False), differ(0.0, False), False),  # nothing was learnt
    ],
)
def test_what_is_kept(new: Difference, old: Difference, kept: bool) -> None:
    assert decide({NEW: new, OLD: old})[0] is kept


def test_the_reason_is_told() -> None:
    assert "held out" in decide({NEW: differ(0.4, False), OLD: differ(0.0, False)})[1]
    assert "forgets" in decide({NEW: differ(4.0, True), OLD: differ(-4.0, True)})[1]
