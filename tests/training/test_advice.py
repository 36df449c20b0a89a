"""The rules of advice: each fires on the run it is for, says the figures it saw, and is silent on a healthy run."""

import dataclasses
import re
import shlex
from pathlib import Path

import made_runs
import pytest
from made_runs import DIVERGED, HEALTHY, Story, corpus

from limelight.cli.train.recipe_keys import check_changes
from limelight.evaluation.suspicions import SuspicionKind
from limelight.training.events import DirectionScore
from limelight.training.report.advice import SUSPICIONS, advise
from limelight.training.report.advice_learning import Advice, change_command, lengthen_command
from limelight.training.report.headline import sentences
from limelight.training.report.run_record import DirectionResult, read_run

FLAT = (50.0, 54.0, 55.0, 55.5, 55.8, 55.9, 55.9, 56.0, 56.0, 56.0, 56.1, 56.1)
FALLING = (5.0, 4.0, 3.0, 2.5, 2.2, 2.1, 2.0, 1.9, 1.8, 1.8, 1.8)


def advised(folder: Path, story: Story) -> dict[str, Advice]:
    return {advice.code: advice for advice in advise(read_run(made_runs.make(folder / "run", story)))}


def plain(text: str) -> str:
    return re.sub(r"\s", " ", text)


def test_a_healthy_run_gets_no_advice(tmp_path: Path) -> None:
    assert advised(tmp_path, HEALTHY.but(chrf=FLAT)) == {}


def test_the_head_of_a_report_asks_for_time_only_where_its_advice_does(tmp_path: Path) -> None:
    """What ended useless before it saw its text a few times has an advice of its own, which may say that no time is enough."""
    rising = HEALTHY.but(chrf=(*FLAT[:9], 56.1, 56.2, 56.31))
    useless = HEALTHY.but(steps=600, planned=600, chrf=(5.0, 8.0, 11.0, 14.0, 17.0, 20.0), test_chrf=20.0)
    for name, story, longer in (("rising", rising, True), ("useless", useless, False)):
        record = read_run(made_runs.make(tmp_path / name, story))
        told = [each for each in sentences(record) if each.startswith("Still improving")]
        assert [each.endswith(": train longer.") for each in told] == [longer], name


# The story, the rule it is for, what the advice must say, and a story just inside of the bound.
CASES = {
    "longer": (
        HEALTHY.but(chrf=(*FLAT[:9], 56.1, 56.2, 56.31)),
        ["+0.3 chrF", "300 steps", "train longer"],
        HEALTHY.but(chrf=(*FLAT[:9], 56.1, 56.2, 56.29)),
    ),
    "overfits": (
        HEALTHY.but(chrf=(50.0, 54.0, 55.0, 55.5, 57.0, 56.9, 56.9, 56.8, 56.8, 56.7, 56.6, 56.5)),
        ["step 500 of 1 200", "model.dropout=0.3, now 0.2"],
        HEALTHY.but(chrf=(50.0, 54.0, 55.0, 55.5, 55.6, 55.7, 55.8, 55.9, 57.0, 56.8, 56.7, 56.6)),
    ),
    "underfits": (
        HEALTHY.but(chrf=FLAT, train_nll=2.1),
        ["model.dropout=0.2", "larger model"],
        HEALTHY.but(chrf=FLAT, train_nll=1.9),
    ),
    "unstable": (
        HEALTHY.but(chrf=FLAT, skipped=(40, 41, 600)),
        ["3 of 1 200 steps", "3 times the loss is not a number", "step 40", "learning_rate=0.0007", "warmup=600"],
        HEALTHY.but(chrf=FLAT, skipped=(40, 41)),
    ),
    "padding": (
        HEALTHY.but(chrf=FLAT, padding=0.16),
        ["16.0 %", "batch.window="],
        HEALTHY.but(chrf=FLAT, padding=0.149),
    ),
    "waiting": (
        HEALTHY.but(chrf=FLAT, waited=0.11),
        ["11.0 %", "machine.workers=2"],
        HEALTHY.but(chrf=FLAT, waited=0.099),
    ),
    "long_sentences": (
        HEALTHY.but(chrf=FLAT, long_chrf=48.0),
        ["chrF 48.0 for 21–40 words", "57.2 for all"],  # noqa: RUF001
        HEALTHY.but(chrf=FLAT, long_chrf=49.0),
    ),
    "below_validation": (
        HEALTHY.but(chrf=FLAT, test_chrf=51.0, long_chrf=51.0),
        ["51.0 on the test set", "56.1 on the validation set"],
        HEALTHY.but(chrf=FLAT, test_chrf=51.2, long_chrf=51.0),
    ),
    "small_corpus": (
        HEALTHY.but(chrf=FLAT, corpora=(corpus("few", {"train": 9_999, "valid": 10}, {}),)),
        ["9 999 training pairs", "--from"],
        HEALTHY.but(chrf=FLAT, corpora=(corpus("few", {"train": 10_000}, {}),)),
    ),
    "dropped": (
        HEALTHY.but(chrf=FLAT, corpora=(corpus("bad", {"train": 69_000}, {"wrong_language": 20_000, "copied": 11_000}),)),
        ["31.0 %", "20 000", "wrong language"],
        HEALTHY.but(chrf=FLAT, corpora=(corpus("bad", {"train": 70_000}, {"copied": 30_000}),)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("code", CASES)
def test_a_rule_fires_beyond_its_bound_and_says_what_it_saw(tmp_path: Path, code: str) -> None:
    story, words, _ = CASES[code]
    found = advised(tmp_path, story)
    assert list(found) == [code]
    told = plain(f"{found[code].seen} / {found[code].do} / {found[code].command}")
    assert [word for word in words if word not in told] == [], told


@pytest.mark.slow
@pytest.mark.parametrize("code", CASES)
def test_a_rule_is_silent_within_its_bound(tmp_path: Path, code: str) -> None:
    assert advised(tmp_path, CASES[code][2]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(SuspicionKind))
def test_suspicions_become_advice_when_they_are_many(tmp_path: Path, kind: SuspicionKind) -> None:
    bound, serious, _ = SUSPICIONS[kind]
    many = round(1000 * bound) + 1
    found = advised(tmp_path / "many", HEALTHY.but(chrf=FLAT, suspicious={kind.value: many}))
    assert list(found) == [f"suspicious_{kind.name.lower()}"]
    assert (f"{many} of 1 000" in plain(next(iter(found.values())).seen)) is True
    assert next(iter(found.values())).serious == serious
    assert advised(tmp_path / "few", HEALTHY.but(chrf=FLAT, suspicious={kind.value: many - 1})) == {}


@pytest.mark.slow
def test_a_rising_validation_loss_is_overfitting_even_while_the_score_rises(tmp_path: Path) -> None:
    found = advised(tmp_path / "rising", HEALTHY.but(chrf=FLAT, valid_nll=(*FALLING, 1.86)))
    assert "rose from 1.800 at step 900 to 1.860 at step 1 200" in plain(found["overfits"].seen)
    assert advised(tmp_path / "level", HEALTHY.but(chrf=FLAT, valid_nll=(*FALLING, 1.85))) == {}


def test_a_diverged_run_is_serious_and_comes_first(tmp_path: Path) -> None:
    found = advised(tmp_path, DIVERGED.but(padding=0.2))
    assert list(found) == ["unstable", "padding"]
    assert found["unstable"].serious
    assert plain(found["unstable"].seen).startswith("diverged at step 312; 10 of 312 steps were left out")


def test_a_diverged_run_is_unstable_also_when_no_step_was_left_out(tmp_path: Path) -> None:
    assert "unstable" in advised(tmp_path, DIVERGED.but(skipped=()))


def test_spikes_are_counted_by_kind_and_not_by_their_figures(tmp_path: Path) -> None:
    record = read_run(made_runs.make(tmp_path / "run", HEALTHY.but(chrf=FLAT)))
    reasons = {
        7: "the loss 31.2 is 9.1 standard deviations above the last 128 steps (2.1)",
        8: "the loss 44 is 12 standard deviations above the last 128 steps (2.1)",
        9: "the gradient is infinite",
    }
    steps = tuple(dataclasses.replace(step, skipped=reasons.get(step.step)) for step in record.steps)
    (found,) = advise(dataclasses.replace(record, steps=steps))
    assert "(2 times the loss was out of proportion, 1 times the gradient is infinite)" in plain(found.seen)


def test_an_interrupted_run_is_not_told_to_train_longer(tmp_path: Path) -> None:
    assert "longer" not in advised(tmp_path, HEALTHY.but(steps=800, state="interrupted", chrf=tuple(range(20, 28))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("limelight train a.en a.de -o x --budget 30m", "limelight train a.en a.de -o x --budget 60m"),
        ("limelight train a.en a.de --budget=1h30m", "limelight train a.en a.de --budget=2h60m"),
        ("limelight train 'a 1.tsv' -o x9 --steps 1234567", "limelight train 'a 1.tsv' -o x9 --steps 2469134"),
        ("limelight train r.toml schedule.steps=700", "limelight train r.toml schedule.steps=700 --steps 2400"),
        ("limelight train en-de", "limelight train en-de --steps 2400"),
        ("limelight demo", None),
        ("limelight learn en-de", None),
        ("", None),
    ],
)
def test_the_longer_command_doubles_time_or_steps_and_changes_nothing_else(tmp_path: Path, command: str, expected: str | None) -> None:
    run = made_runs.make(tmp_path / "run", HEALTHY.but(command=tuple(shlex.split(command))))
    assert lengthen_command(read_run(run)) == expected


def test_a_run_that_needed_less_than_its_budget_is_given_more_steps(tmp_path: Path) -> None:
    for number, command in enumerate(("limelight train a.en a.de --budget 30m -o x", "limelight train a.en a.de --budget=30m -o x")):
        record = read_run(made_runs.make(tmp_path / f"run-{number}", HEALTHY.but(command=tuple(shlex.split(command)))))
        assert record.recipe is not None
        fixed = record.recipe.changed(schedule=record.recipe.schedule.changed(fixed=True))
        assert lengthen_command(dataclasses.replace(record, recipe=fixed)) == "limelight train a.en a.de -o x --steps 2400"


def test_the_test_set_of_one_direction_is_held_against_its_own_validation(tmp_path: Path) -> None:
    """The mean of all directions says nothing of one that is harder."""
    record = read_run(made_runs.make(tmp_path / "run", HEALTHY.but(chrf=FLAT, test_chrf=49.0, long_chrf=49.0)))
    assert record.scores is not None and record.best is not None
    rows = tuple(DirectionResult(name, True, 100, []) for name in ("en-cs", "en-de"))
    scores = dataclasses.replace(record.scores, directions=rows)
    for own, expected in ((50.0, False), (55.0, True)):
        ways = (DirectionScore("en-cs", 20.0, own), DirectionScore("en-de", 30.0, 60.0))
        valid = dataclasses.replace(record.best, directions=ways)
        changed = dataclasses.replace(record, scores=scores, validations=(*record.validations[:-1], valid))
        assert ("below_validation" in {each.code for each in advise(changed)}) == expected


def test_advice_on_length_starts_from_the_penalty_of_the_run(tmp_path: Path) -> None:
    record = read_run(made_runs.make(tmp_path / "run", HEALTHY.but(chrf=FLAT)))
    assert record.scores is not None
    for kind, wanted in ((SuspicionKind.SHORT, "1.8 (now 1.4)"), (SuspicionKind.LONG, "1 (now 1.4)")):
        scores = dataclasses.replace(record.scores, search={"length_penalty": 1.4}, suspicious={kind.value: record.scores.sentences})
        (found,) = [each for each in advise(dataclasses.replace(record, scores=scores)) if each.code.startswith("suspicious")]
        assert f"--length-penalty {wanted}" in found.do


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("limelight train a.en a.de -o x --seed 2", "limelight train a.en a.de --seed 2 a=1 -o {run}-2"),
        ("limelight train a.en --output=x a.de", "limelight train a.en a.de a=1 -o {run}-2"),
        ("limelight train a.en a.de", "limelight train a.en a.de a=1 -o {run}-2"),
        ("", None),
    ],
)
def test_other_settings_need_another_folder(tmp_path: Path, command: str, expected: str | None) -> None:
    run = made_runs.make(tmp_path / "run", HEALTHY.but(command=tuple(shlex.split(command))))
    assert change_command(read_run(run), "a=1") == (expected and expected.format(run=run))


@pytest.mark.slow
def test_every_setting_that_advice_names_can_be_set(tmp_path: Path) -> None:
    """As it would be typed after `limelight train`."""
    stories = [story for story, _, _ in CASES.values()]
    stories += [HEALTHY.but(chrf=FLAT, suspicious={kind.value: 100 for kind in SuspicionKind})]
    stories += [HEALTHY.but(chrf=FLAT, valid_nll=(*FALLING, 1.9))]
    told = " ".join(advice.do for i, story in enumerate(stories) for advice in advised(tmp_path / str(i), story).values())
    named = re.findall(r"[a-z_]+(?:\.[a-z_]+)+=[\w.]*\w", told)
    assert len(named) >= 8
    check_changes(named)
