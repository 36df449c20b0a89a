"""A signal at any moment: the run saves, says so, and the same command goes on without a step lost or taken twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from small_runs import (
    DONE,
    INTERRUPTED,
    SHORT,
    STOPPED,
    Signal,
    Small,
    check_equal,
    make_corpus,
    notices,
    recipe,
    remains,
    story,
)

from limelight.training.checkpoints import checkpoint
from limelight.training.run_folder import CHECKPOINTS, METRICS, RunFacts
from limelight.training.step.budget_clock import BudgetClock

OFTEN = {**SHORT, "checkpoints": {"every_seconds": 1e-6}}  # a checkpoint after every step
GRADIENTS, SAVE = "limelight.training.step.step:gradients", "limelight.training.checkpoints.writer:write_tensors"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def straight(starts_process: None, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Small:
    run = Small(corpus, tmp_path_factory.mktemp("straight") / "run", SHORT)
    assert run.live() == DONE
    return run


# The moment, in which function it is, at which call in a new process, and the step that is saved then.
MOMENTS = [
    ("while the text is prepared", "limelight.training.run.leader:prepare", 1, 0),
    ("while a recipe is made", "limelight.training.run.leader:resolve_recipe", 1, 0),
    ("before the first step", "limelight.training.run.loop:TrainingLoop.run", 1, 0),
    ("in the fifth step", GRADIENTS, 5, 5),
    ("before it has gone on", "limelight.training.run.leader:extend_recipe", 1, 5),
    ("in the second validation", "limelight.training.validation.validator:Validator._nll", 1, 8),
    ("in the last save", SAVE, 1, 12),
    ("while the best weights are chosen", "limelight.training.run.leader:choose_winner", 1, 12),
    ("while the report is written", "limelight.training.run.leader:write_report", 1, 12),
]


def test_signals_at_any_moment_lose_no_step(corpus: Path, straight: Small, tmp_path: Path) -> None:
    """One run, stopped nine times."""
    run = Small(corpus, tmp_path / "run", SHORT, prepared=False, reports=True)
    ways = [(signal.SIGTERM, STOPPED, "preempted"), (signal.SIGINT, INTERRUPTED, "interrupted")]
    for number, (moment, inside, nth, step) in enumerate(MOMENTS):
        sent, code, state = ways[number % 2]
        assert run.live(Signal(inside=inside, nth=nth, number=sent)) == code, moment
        assert (run.status["state"], run.status["step"]) == (state, step), moment
        saved = f"saved at step {step}" if step else "nothing was saved yet"
        assert run.has_report and saved in " ".join(run.said), moment
        assert run.stopped_within < 20, moment
        assert (checkpoint.latest(run.run / CHECKPOINTS).checkpoint is None) if step == 0 else run.saved.step == step, moment
    assert run.live() == DONE
    assert run.status["state"] == "done"
    check_equal(run, straight)


def test_a_second_signal_ends_it_at_once_and_leaves_the_checkpoint_before(corpus: Path, straight: Small, tmp_path: Path) -> None:
    run = Small(corpus, tmp_path / "run", OFTEN)
    # In a save, the first signal is heard after the next step. There is a save before the first step, too.
    assert run.live(Signal(inside=SAVE, nth=3)) == STOPPED
    assert run.saved.step == 3
    for inside, left in ((GRADIENTS, 3), (SAVE, 3)):
        assert run.live(Signal(inside=inside, nth=1, times=2)) == STOPPED
        assert run.stopped_within < 2
        assert run.saved.step == left == run.status["step"] and f"saved at step {left}" in " ".join(run.said)
        assert [path.name for path in (run.run / CHECKPOINTS).iterdir() if path.name.startswith(".")] == []
    assert run.live() == DONE
    assert story(run.run) == story(straight.run)
    left, wanted = remains(run.run), remains(straight.run)
    assert all(left[name] == wanted[name] for name in wanted if name.startswith(("checkpoint ", "bundle ")))


@pytest.mark.process
def test_a_run_that_succeeds_does_not_repeat_the_problem_of_an_earlier_start(corpus: Path, tmp_path: Path) -> None:
    run = Small(corpus, tmp_path / "run", {"schedule": {"steps": 4, "warmup": 1}})
    (run.run / "bundle").write_bytes(b"a file where a folder should be")
    assert run.live() not in (DONE, STOPPED)
    assert run.status["state"] == "failed" and RunFacts.load(run.run).problem
    (run.run / "bundle").unlink()
    assert run.live() == DONE
    assert RunFacts.load(run.run).problem is None


@pytest.mark.long
def test_a_signal_to_the_processes_that_make_batches_does_not_end_them(corpus: Path, straight: Small, tmp_path: Path) -> None:
    """As from a keyboard, it goes to the whole group: here while those processes load what they need."""
    run = Small(corpus, tmp_path / "run", {**SHORT, "machine": {"workers": 2}})
    first = Signal(inside="limelight.training.run.loop:TrainingLoop._take_step", number=signal.SIGINT, group=True)
    assert run.live(first) == INTERRUPTED
    assert run.saved.step == 1
    assert run.live() == DONE
    check_equal(run, straight)


@pytest.mark.slow
def test_the_command_itself_is_interrupted_and_goes_on(corpus: Path, straight: Small, tmp_path: Path) -> None:
    run = Small(corpus, tmp_path / "run", {**SHORT, "machine": {"workers": 2}})
    recipe(corpus, **run.changes).save(tmp_path / "recipe.toml")
    command = [sys.executable, "-m", "limelight", "train", "recipe.toml", "-o", "run", "--plain", "--workers", "0"]

    def start() -> subprocess.Popen[bytes]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes)

    process = start()
    until = time.monotonic() + 200
    while not (run.run / METRICS).exists() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=200)
    assert process.returncode == INTERRUPTED, err.decode()
    assert b"Traceback" not in err and b"run the same command again to go on" in err
    step = run.status["step"]
    assert run.status["state"] == "interrupted" and (not step or run.saved.step == step)
    process = start()
    _, err = process.communicate(timeout=200)
    assert process.returncode == DONE, err.decode()
    assert story(run.run) == story(straight.run) and remains(run.run) == remains(straight.run)
    assert [notice.step for notice in notices(run.run, "resumed")] == [step] * (step > 0)


def test_the_time_before_training_counts_at_every_start() -> None:
    first, second = BudgetClock(budget=None, validation_every=10), BudgetClock(budget=None, validation_every=10)
    first.spent.before = 5.0
    first.add_step(1.0)
    state = first.state()
    second.spent.before = 3.0
    second.load(state)
    assert second.spent.total == 9.0 and 3.0 <= second.elapsed - state["elapsed"] < 4.0


@pytest.mark.long
def test_signals_at_random_moments_change_nothing(corpus: Path, tmp_path: Path) -> None:
    chance = Random(1)
    changes = {"checkpoints": {"every_seconds": 0.2}, "schedule": {"steps": 250}, "validation": {"every": 60}}
    straight = Small(corpus, tmp_path / "straight", changes)
    began = time.monotonic()
    assert straight.live() == DONE
    lasts = time.monotonic() - began
    run = Small(corpus, tmp_path / "run", changes, prepared=False)
    codes = []
    while not codes or codes[-1] != DONE:
        assert len(codes) < 60
        process = run.begin()
        process.join(chance.uniform(0.1, 0.5 + len(codes) / 20) * lasts)
        if process.exitcode is None:
            number = chance.choice([signal.SIGTERM, signal.SIGINT])
            os.kill(process.pid, number)
            process.join(100)
        codes.append(process.exitcode)
        assert codes[-1] in (STOPPED, INTERRUPTED, DONE, -signal.SIGTERM, 1)  # the last two: before `train` began
        assert not checkpoint.latest(run.run / CHECKPOINTS).refused
    assert codes.count(STOPPED) + codes.count(INTERRUPTED) >= 3
    check_equal(run, straight)
