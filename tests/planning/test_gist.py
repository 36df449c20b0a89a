"""What a budget cannot buy is said, with the time that would, by the law that plans go by."""

import pytest

from limelight.model.config import ModelConfig
from limelight.planning.scaling import predict_loss
from limelight.planning.shortfall import GIST, NOT_ENOUGH, find_shortfall, format_budget
from limelight.planning.sizing_rules import TextStats, budget_for, training_seconds

TINY = ModelConfig.preset("tiny", 4_000)
VERSES = TextStats(5_000, 160_000, 176_000, frequencies=6.4)
CAPTIONS = TextStats(29_000, 450_000, 515_000)


def test_minutes_on_thousands_of_pairs_are_not_enough_and_the_time_that_is_does() -> None:
    short = find_shortfall(TINY, CAPTIONS, seen=52_000, steps=17, pieces_per_second=2_400, spent=30)
    assert short is not None and short.value.startswith(NOT_ENOUGH) and "0.1 times" in short.why
    assert short.pieces is not None and short.seconds is not None and "--budget" in short.why
    assert predict_loss(TINY, short.pieces, CAPTIONS.target).loss <= GIST
    assert training_seconds(short.seconds, 30) * 2_400 == pytest.approx(short.pieces, rel=0.01)
    assert find_shortfall(TINY, CAPTIONS, short.pieces, short.pieces / 3_072) is None


def test_the_loss_of_a_run_that_saw_a_tenth_of_five_thousand_verses_is_told_as_it_was() -> None:
    """Six steps, as a budget of 150 seconds has on a busy machine: it was 7.34, and 3.82 had been expected."""
    short = find_shortfall(TINY, VERSES, seen=18_000, steps=6)
    assert short is not None and short.expected.loss == pytest.approx(7.34, abs=0.5)
    assert short.expected.low < 7.34 < short.expected.high


def test_so_few_pairs_are_told_to_look_for_more_beside_time() -> None:
    """Few of a simple text; of verses no time is enough."""
    simple = TextStats(6_900, 110_000, 122_000)
    few, more = (find_shortfall(TINY, text, 60_000, 20, 2_400) for text in (simple, CAPTIONS))
    assert few is not None and few.seconds is not None and "--from" in few.why
    verses = find_shortfall(TINY, VERSES, 60_000, 20, 2_400)
    assert verses is not None and verses.seconds is None and "--from" in verses.why
    assert verses.passes < 1 and "more time comes first" in verses.why  # of a text that is not even seen once
    often = find_shortfall(TINY, VERSES, 10 * VERSES.target, 20, 2_400)
    assert often is not None and "no time is enough" in often.why and "comes first" not in often.why
    assert more is not None and "--from" not in more.why and "would do" in more.why


def test_a_text_that_no_time_is_enough_for_is_not_given_one() -> None:
    short = find_shortfall(TINY, TextStats(200, 2_000, 2_000), 60_000, 20, 2_400)
    assert short is not None and short.pieces is None and short.seconds is None
    assert "no time is enough" in short.why and "--budget" not in short.why


def test_without_a_speed_steps_are_told_instead_of_time() -> None:
    short = find_shortfall(TINY, CAPTIONS, 20 * 3_072, 20)
    assert short is not None and f"--steps {short.steps}" in short.why and "--budget" not in short.why


def test_what_is_within_reach_is_not_warned_of() -> None:
    assert find_shortfall(ModelConfig.preset("small", 4_000), CAPTIONS, 11e6, 3_400) is None


@pytest.mark.parametrize("seconds", [4.0, 50.0, 66.0, 1_000.0, 90_000.0])
def test_a_budget_for_so_much_training_has_so_much(seconds: float) -> None:
    assert training_seconds(budget_for(seconds, 7.0), 7.0) == pytest.approx(max(5.0, seconds))


def test_times_are_rounded_up_as_budgets_are_written() -> None:
    assert [format_budget(seconds) for seconds in (40, 1_480, 3_600, 8_000, 200_000)] == [
        "5m",
        "25m",
        "60m",
        "2.5h",
        "3d",
    ]
