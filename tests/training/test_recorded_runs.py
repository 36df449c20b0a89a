"""Advice on real runs that failed, each in one way: what went wrong is said, and nothing that is not so.

`recorded/record_runs.py` made them, on number words.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from limelight.evaluation.verdict import Use
from limelight.training.report.advice import advise
from limelight.training.report.advice_learning import Advice
from limelight.training.report.headline import describe_verdict, fine
from limelight.training.report.run_record import RunRecord, read_run
from limelight.training.run.result import result_of

RECORDED = Path(__file__).parent / "recorded"
# Of each run the advice that it must get, and those that would be false of it.
FAILURES = {
    "too_short": ({"too_short"}, {"overfits", "underfits", "longer", "small_corpus", "another_kind", "suspicious_empty"}),
    "too_small": ({"small_corpus"}, {"overfits", "underfits", "too_short", "another_kind", "unstable"}),
    "swapped": ({"another_kind"}, {"overfits", "underfits", "too_short", "longer", "small_corpus"}),
    "wrong_language": ({"another_kind"}, {"overfits", "underfits", "too_short", "longer", "small_corpus"}),
    "overfitted": ({"overfits"}, {"too_short", "longer", "underfits", "another_kind", "unstable"}),
    "diverged": ({"unstable"}, {"overfits", "underfits", "too_short", "longer", "another_kind"}),
}  # fmt: skip


def recorded(name: str) -> tuple[RunRecord, dict[str, Advice]]:
    record = read_run(RECORDED / name)
    assert not record.unreadable
    return record, {each.code: each for each in advise(record)}


@pytest.mark.parametrize("name", FAILURES)
def test_a_run_that_failed_is_told_why_and_nothing_false(name: str) -> None:
    _, advice = recorded(name)
    wanted, false = FAILURES[name]
    assert wanted <= set(advice) and not false & set(advice)


@pytest.mark.parametrize("name", FAILURES)
def test_no_run_that_failed_gets_a_tick(name: str) -> None:
    record, _ = recorded(name)
    advice = advise(record)
    assert not fine(record, advice)
    assert "✔" not in "".join(str(part) for part in describe_verdict(record, advice).parts)
    verdict = record.verdict
    assert verdict is None or verdict.use is Use.NOT_USABLE


def test_who_saw_a_tenth_of_its_text_is_told_to_train_longer_and_not_of_learning_by_heart() -> None:
    record, advice = recorded("too_short")
    assert record.epochs is not None and record.epochs < 0.2 and len(record.validations) >= 4
    told = " ".join(f"{each.seen} {each.do}" for each in advice.values())
    assert "by heart" not in told and "dropout" not in told
    assert advice["too_short"].serious and "train longer" in advice["too_short"].do
    more = re.findall(r"--steps (\d+)", advice["too_short"].command or "")
    assert more and int(more[0]) >= 10 * record.planned_steps


def test_a_validation_set_of_another_kind_is_told_from_one_that_is_hard() -> None:
    for name in ("swapped", "wrong_language"):
        _, advice = recorded(name)
        assert advice["another_kind"].serious
        assert all(word in advice["another_kind"].do for word in ("swapped", "another language", "shifted"))


def test_a_verdict_asks_for_more_time_only_where_time_is_missing() -> None:
    asked = {name: "more time" in (verdict.because if (verdict := recorded(name)[0].verdict) else "") for name in FAILURES}
    assert asked == {name: name == "too_short" for name in FAILURES}
    diverged = recorded("diverged")[0].verdict
    assert diverged is not None and "lower learning rate" in diverged.because


def test_a_verdict_does_not_ask_for_time_that_is_never_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the run the plan says so, and its verdict must not say otherwise."""
    shortfall = recorded("too_short")[0].shortfall
    assert shortfall is not None
    monkeypatch.setattr(RunRecord, "shortfall", replace(shortfall, pieces=None))
    record, advice = recorded("too_short")
    assert "no time is enough" in advice["too_short"].do
    assert record.verdict is not None and record.epochs is not None
    assert ("more time" in record.verdict.because) == ("train longer first" in advice["too_short"].do) == (record.epochs < 1)


def test_what_was_learnt_by_heart_had_been_seen_often() -> None:
    record, advice = recorded("overfitted")
    assert record.epochs is not None and record.epochs > 4
    assert "by heart" in advice["overfits"].do


def test_the_end_of_a_run_says_what_it_is_good_for() -> None:
    result = result_of(RECORDED / "too_short", "done")
    assert result.lines[1].startswith("NOT USABLE: ") and "times" in result.lines[2]
    assert result.values["verdict"]["use"] == "not usable"
