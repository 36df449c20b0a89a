"""Which words are right, a curve fitted to them, and how well it holds on other text."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from limelight.bundle.confidence import KNOTS, Calibration, Curve
from limelight.evaluation.confidence.calibration import (
    LEAST_SENTENCES,
    LEAST_WORDS,
    Claims,
    ConfidenceCheck,
    check,
    collect,
    fit_calibration,
    fit_curve,
    is_unedited,
    right_words,
)
from limelight.evaluation.confidence.reliability import Numbers, auc, bins, compute_ece
from limelight.translator.confidence import Word

CURVE = Curve(knots=((0.1, 0.1), (0.9, 0.9)))
HONEST = Calibration(words=CURVE, sentences=CURVE, lines=9)


def overconfident(words: int, seed: int, share: float = 1.0) -> Claims:
    """Six words a sentence. What is claimed with c is right with c squared, times `share`."""
    random = np.random.default_rng(seed)
    claimed = random.beta(2, 1, words)
    right = (random.random(words) < share * claimed**2).astype(np.float64)
    sentence = np.arange(words) // 6
    whole = np.bincount(sentence, claimed) / np.bincount(sentence)
    return Claims(claimed, right, sentence, whole)


# --- right words


@pytest.mark.parametrize(
    ("words", "reference", "right"),
    [
        ("Der Hund Hund bellt!", "Der Hund bellt.", [1, 1, 0, 1]),  # each word of the reference answers once
        ("bellt der Hund", "der Hund bellt", [1, 1, 1]),  # wherever it stands
        ("der hund", "Der Hund", [0, 0]),  # in its case
        ("»Hund« - (Katze)", "Hund - Katze", [1, 1, 1]),
        ("Hund ...", "Hund", [1, 0]),
        ("", "Hund", []),
        ("Hund", "", [0]),
    ],
)
def test_a_word_is_right_if_the_reference_has_it(words: str, reference: str, right: list[int]) -> None:
    assert right_words(words.split(), reference) == [bool(each) for each in right]


def test_where_writing_has_no_spaces_letters_are_words() -> None:
    assert right_words(["猫", "が", "い", "た。"], "犬がいる。") == [False, True, True, False]


def test_claims_are_collected_word_by_word() -> None:
    translated = [
        ([Word("Ein", 0.9), Word("Hund.", 0.4)], 0.7),
        ([], 0.2),
        ([Word("Eine", None), Word("Katze", 0.6)], 0.5),
    ]
    found = collect(translated, ["Ein Tier.", "Nichts.", "Eine Katze."])
    assert found.words.tolist() == [0.9, 0.4, 0.6]
    assert found.right.tolist() == [1, 0, 1]
    assert found.sentence.tolist() == [0, 0, 2]
    assert found.whole.tolist() == [0.7, 0.2, 0.5]
    assert found.shares.tolist() == [0.5, 1.0] and found.spoken.tolist() == [0, 2]


# --- curves


def test_a_fitted_curve_makes_overconfidence_honest_on_other_text() -> None:
    calibration = fit_calibration(overconfident(12_000, seed=1))
    assert calibration is not None and calibration.lines == 2_000
    found = check(overconfident(12_000, seed=2), calibration)
    assert found is not None
    assert found.words.claimed_error > 0.1 and found.words.error < 0.02
    assert found.sentences.claimed_error > 0.1 and found.sentences.error < 0.02
    assert found.whole.error < 0.02
    assert calibration.words.at(0.5) == pytest.approx(0.25, abs=0.04)


def test_what_was_fitted_on_another_kind_of_text_is_seen_to_be_wrong() -> None:
    calibration = fit_calibration(overconfident(6_000, seed=1))
    assert calibration is not None
    found = check(overconfident(6_000, seed=2, share=0.5), calibration)
    assert found is not None and found.words.error > 0.2


def test_the_share_that_needs_no_edit_is_fitted_and_holds_on_other_text() -> None:
    def claims(seed: int, sentences: int = 3_000) -> Claims:
        """Each word is right as often as it is claimed; a sentence needs no edit if all of its words are right."""
        random = np.random.default_rng(seed)
        lengths = random.integers(1, 12, sentences)
        sentence = np.repeat(np.arange(sentences), lengths)
        claimed = np.repeat(random.uniform(0.6, 1, sentences), lengths)
        right = (random.random(len(claimed)) < claimed).astype(np.float64)
        return Claims(claimed, right, sentence, claimed[np.cumsum(lengths) - 1], (np.bincount(sentence, 1 - right) == 0).astype(np.float64))

    calibration = fit_calibration(claims(1))
    assert calibration is not None and calibration.unedited is not None
    found = check(claims(2), calibration)
    assert found is not None and found.unedited is not None
    assert found.unedited.error < 0.03 and (found.unedited.auc or 0) > 0.7
    short, long = (calibration.expect_unedited(0.9, words) for words in (2, 12))
    assert short is not None and long is not None and short > long + 0.2, "a long text needs an edit more often than a short one"


def test_too_few_that_need_no_edit_are_not_claimed() -> None:
    known = overconfident(12_000, seed=1)
    few = np.zeros(len(known.whole))
    few[: LEAST_SENTENCES - 1] = 1
    calibration = fit_calibration(Claims(known.words, known.right, known.sentence, known.whole, few))
    assert calibration is not None and calibration.unedited is None and calibration.expect_unedited(0.9, 3) is None
    few[LEAST_SENTENCES - 1] = 1
    calibration = fit_calibration(Claims(known.words, known.right, known.sentence, known.whole, few))
    assert calibration is not None and calibration.unedited is not None


def test_what_needs_no_edit_is_word_for_word_the_reference() -> None:
    assert is_unedited(["Ein", "Hund."], "Ein Hund") and not is_unedited(["Hund", "ein"], "Ein Hund")
    assert not is_unedited(["ein", "Hund"], "Ein Hund") and not is_unedited(["Ein"], "Ein Hund")


def test_a_curve_never_falls_and_has_few_knots_however_noisy_the_text() -> None:
    random = np.random.default_rng(3)
    for words in (LEAST_WORDS, 600, 50_000):
        curve = fit_curve(random.random(words), random.integers(0, 2, words).astype(np.float64), LEAST_WORDS)
        assert 1 <= len(curve.knots) <= KNOTS  # that it rises is checked at its birth
        assert curve.knots[0] == (0, 0) and all(0.3 < true < 0.7 for _, true in curve.knots[1:])


def test_equal_claims_are_one_knot() -> None:
    right = np.tile([1.0, 1.0, 0.0, 1.0], 500)
    [_, (claimed, true)] = fit_curve(np.full(2_000, 1.0), right, LEAST_WORDS).knots
    assert claimed == 1 and true == pytest.approx(0.75)
    assert len(fit_curve(np.zeros(2_000), right, LEAST_WORDS).knots) == 1


def test_a_curve_begins_with_never_and_does_not_end_with_always() -> None:
    claimed = np.linspace(0.2, 1, 1_000)
    curve = fit_curve(claimed, (claimed > 0.5).astype(np.float64), LEAST_WORDS)
    assert curve.at(0.0) == 0 < curve.at(0.1) < curve.at(0.2) < 0.01 and 0.99 < curve.at(1.0) < 1


def test_too_little_text_gives_no_calibration() -> None:
    words = 5 * LEAST_WORDS
    assert words / 6 < 5 * LEAST_SENTENCES < 6 * words
    assert fit_calibration(overconfident(5 * 6 * LEAST_SENTENCES, 1)) is not None
    assert fit_calibration(overconfident(5 * 6 * LEAST_SENTENCES - 6, 1)) is None
    few = overconfident(750, 1)
    assert fit_calibration(Claims(few.words[::2], few.right[::2], few.sentence[::2], few.whole)) is None


# --- reliability


def numbers(*values: float) -> Numbers:
    return np.array(values, np.float64)


def test_the_expected_calibration_error_is_the_mean_distance_of_the_bins() -> None:
    found = bins(numbers(0.05, 0.62, 0.68, 1.0), numbers(0, 0, 1, 1))
    assert [(each.low, each.high, each.count) for each in found] == [(0.0, 0.1, 1), (0.6, 0.7, 2), (0.9, 1.0, 1)]
    assert [each.right for each in found] == [0, 0.5, 1]
    assert compute_ece(found) == pytest.approx((0.05 + 2 * 0.15 + 0.0) / 4)


def test_the_area_under_the_curve_counts_pairs() -> None:
    random = np.random.default_rng(5)
    confidence, right = random.integers(0, 8, 60) / 8, random.integers(0, 2, 60).astype(np.float64)
    pairs = [(a > b) + (a == b) / 2 for a in confidence[right == 1] for b in confidence[right == 0]]
    assert auc(confidence, right) == pytest.approx(np.mean(pairs))
    assert auc(numbers(0.1, 0.9), numbers(0, 1)) == 1 and auc(numbers(0.9, 0.1), numbers(0, 1)) == 0
    assert auc(numbers(0.1, 0.9), numbers(1, 1)) is None
    assert auc(numbers(0.1, 0.9, 0.4), numbers(1, 0, 0.5)) is None


def test_what_was_checked_comes_back_from_json() -> None:
    found = check(overconfident(600, seed=4), HONEST)
    assert found is not None and found.words.auc is not None and found.sentences.auc is None
    assert ConfidenceCheck.of(json.loads(json.dumps(asdict(found)))) == found


def test_without_words_nothing_is_checked() -> None:
    assert check(collect([([], 0.5), ([Word("a", None)], 0.5)], ["a", "a"]), HONEST) is None
