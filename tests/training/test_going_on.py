"""Going on with a run: with more steps, after damage, with an edited recipe, beside another process, after a closed terminal."""

import fcntl
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import Signal, Small, make_corpus, notices, recipe

from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.errors import ConfigError, ModelFileError
from limelight.training.config import Recipe
from limelight.training.events import StepReport, read_events
from limelight.training.recipe.calibrate import ComputeSetup
from limelight.training.recipe.choose import merge
from limelight.training.recipe.request import TrainRequest, TrainResult
from limelight.training.recipe.resolve import _complete_recipe, extend_recipe
from limelight.training.run.folder_lock import LOCK
from limelight.training.run.run import train
from limelight.training.run_folder import CHECKPOINTS, METRICS, RECIPE, SCORES
from limelight.training.step.budget_clock import BudgetClock

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus"))


def go(wanted: Recipe, run: Path, told: list[str] | None = None, **asked: Any) -> TrainResult:
    said = [] if told is None else told
    return train(
        TrainRequest(None, wanted, export=False, **asked),
        run,
        LocalEngine(0),
        lambda event: said.append(getattr(event, "text", "")),
        lambda _: None,
        ["limelight"],
    )


def steps_of(run: Path) -> list[int]:
    return [event.step for event in read_events(run / METRICS) if isinstance(event, StepReport)]


def short(corpus: Path, **changes: Any) -> Recipe:
    return recipe(corpus, **merge({"schedule": {"steps": 6, "warmup": 1}, "validation": {"every": 3, "sentences": 4}}, changes))


def test_more_steps_make_a_finished_run_longer_and_its_old_scores_go(corpus: Path, tmp_path: Path) -> None:
    run, wanted = tmp_path / "run", short(corpus)
    assert go(wanted, run).state == "done"
    (run / SCORES).write_bytes(b'{"evaluation": {"scores": []}}')
    assert go(wanted, run, steps=9).state == "done"
    assert steps_of(run) == list(range(1, 10))
    assert not (run / SCORES).exists(), "there is no test set now, so these were the scores of other weights"


@pytest.mark.parametrize(("name", "warmup"), [("inverse_sqrt", 10), ("cosine", 2)])
def test_fewer_steps_leave_a_curve_without_an_end_as_it_was(corpus: Path, name: str, warmup: int) -> None:
    wanted = short(corpus, schedule={"name": name, "steps": 100, "warmup": 10})
    assert extend_recipe(wanted, TrainRequest(None, wanted, steps=20)).schedule.warmup == warmup
    stand = ComputeSetup(torch.device("cpu"), "float32", 1)
    assert _complete_recipe(TrainRequest(None, wanted, steps=20, threads=1), stand).schedule.warmup == warmup


def begin_with_budget(wanted: Recipe, run: Path, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose budget left `steps` of its steps, as on a machine that is slower than it was measured."""
    with monkeypatch.context() as patch:
        patch.setattr(BudgetClock, "is_looked_at", lambda clock, step: step == 1)
        patch.setattr(BudgetClock, "replan", lambda *_, **__: steps)
        go(wanted, run, budget_seconds=100.0)
    assert steps_of(run)[-1] == steps


@pytest.mark.parametrize("left", [4, 6])
@pytest.mark.parametrize("fixed", [False, True])
def test_a_larger_budget_trains_on(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, fixed: bool) -> None:
    """Also after few steps, replanned or not; of steps that were asked for, only those that there was no time for."""
    run = tmp_path / "run"
    wanted = short(corpus, schedule={"fixed": fixed}, validation={"every": 100})
    begin_with_budget(wanted, run, left, monkeypatch)
    monkeypatch.setattr(BudgetClock, "per_step", lambda clock: 10.0)
    told: list[str] = []
    done = go(wanted, run, budget_seconds=240.0, told=told)
    last = 6 if fixed else steps_of(run)[-1]
    assert done.state == "done" and steps_of(run) == list(range(1, last + 1)) and (fixed or last > 12)
    assert any("adds nothing" in line and "--steps" in line for line in told) == (fixed and left == 6)
    assert [line for line in told if line.startswith("schedule: goes on from step")]
    before = steps_of(run)
    go(wanted, run, budget_seconds=240.0)
    assert steps_of(run) == before, "the same command does nothing"


def test_steps_that_a_budget_had_no_time_for_come_when_it_is_gone(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, wanted = tmp_path / "run", short(corpus)
    begin_with_budget(wanted, run, 4, monkeypatch)
    go(wanted, run, steps=6)
    assert steps_of(run)[-1] == 6


def test_a_dry_run_of_more_says_how_it_would_go_on(corpus: Path, tmp_path: Path) -> None:
    run, wanted = tmp_path / "run", short(corpus)
    go(wanted, run)
    said = go(wanted, run, steps=9, dry_run=True).lines
    assert "schedule: goes on from step 6 (up to step 9)" in said and steps_of(run)[-1] == 6


def test_a_run_that_had_no_patience_left_goes_on_when_more_is_asked_for(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    wanted = short(corpus, optimizer={"learning_rate": 1e-12}).changed(validation={"every": 1, "sentences": 4, "patience": 2})
    go(wanted, run)
    assert steps_of(run) == [1, 2, 3], "the first validation is the best, and two more are no better"
    go(wanted, run, steps=20)
    assert steps_of(run)[-1] == 5


def test_steps_that_were_asked_for_are_not_made_more_by_a_budget(corpus: Path, tmp_path: Path) -> None:
    pace = BudgetClock(budget=1000.0, validation_every=10)
    for _ in range(30):
        pace.add_step(0.01)
    assert pace.replan(30, 60, longer=False) is None
    assert (pace.replan(30, 60) or 0) > 1000
    given = short(corpus).changed(budget_seconds=60.0)
    go(given, tmp_path / "run", steps=4)
    done = Recipe.load(tmp_path / "run" / RECIPE)
    assert (done.schedule.steps, done.schedule.fixed, done.budget_seconds) == (4, True, None)


def test_when_every_checkpoint_is_damaged_the_run_is_refused_and_nothing_of_it_changes(corpus: Path, tmp_path: Path) -> None:
    run, wanted = tmp_path / "run", short(corpus)
    go(wanted, run)
    for tensors in (run / CHECKPOINTS).glob("*/tensors.safetensors"):
        tensors.write_bytes(tensors.read_bytes()[:-1])
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(ModelFileError, match="every checkpoint of it is damaged"):
        go(wanted, run, steps=9)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_recipe_edited_in_the_run_is_refused(corpus: Path, tmp_path: Path) -> None:
    run, wanted = tmp_path / "run", short(corpus)
    go(wanted, run)
    edited = Recipe.load(run / RECIPE)
    edited.changed(label_smoothing=0.2).save(run / RECIPE)
    with pytest.raises(ConfigError, match="changed in label_smoothing"):
        go(wanted, run, steps=9)


def test_the_corpus_may_be_gone_when_a_run_goes_on(corpus: Path, tmp_path: Path) -> None:
    mine = make_corpus(tmp_path / "mine")
    run, wanted = tmp_path / "run", short(mine)
    go(wanted, run)
    for path in mine.glob("numbers.*"):
        path.unlink()
    assert go(wanted, run, steps=8).state == "done"
    assert steps_of(run)[-1] == 8


def test_a_second_process_is_kept_out(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with (run / LOCK).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another process is at work"):
            go(short(corpus), run)


def test_a_closed_terminal_saves_and_stops(corpus: Path, tmp_path: Path) -> None:
    small = Small(corpus, tmp_path / "run")
    assert small.live(Signal(after_step=5, number=signal.SIGHUP)) == 75
    assert small.status == {"state": "preempted", "step": 5, "steps": small.saved.state["schedule"]["steps"]}
    assert notices(small.run, "saved")
