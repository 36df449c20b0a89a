"""A process that others wait for in vain is named by them, and in time. Nobody is ended who is only slow, or was stopped like all."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from watched_ranks import STRIKES_AT, Scene

from limelight.training.processes.heartbeat import PATIENCE, Heartbeat

pytestmark = pytest.mark.process

PATIENT = 2.0
LATE = 2.0  # seconds after the patience, in which the lost one must have been named


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    what = {"size": 2, "patience": PATIENT, "agent": True, **request.param}
    started = Scene(tmp_path / "scene", **what).start()
    started.wait_for_strike()
    yield started
    started.ended(0)


FROZEN = ({"happens": "stop", "size": 3}, "rank 1 (host ", "has not been heard of for 2 s; its last word: ")
FROZEN_MAIN = ({"happens": "stop", "rank": 0}, "rank 0 (host ", "has not been heard of for 2 s; its last word: ")
FROZEN_STORE = (
    {"happens": "stop", "rank": 0, "agent": False},
    "rank 0, which keeps the store at 127.0.0.1:",
    " for 2 s",
)
ASLEEP = (
    {"happens": "sleep", "size": 3},
    "rank 1 (host ",
    f"has not got on for 2 s in forward of step {STRIKES_AT}, at strike (watched_ranks.py:",
)
MAIN_ASLEEP = ({"happens": "sleep", "rank": 0}, "rank 0 (host ", ASLEEP[2])


@pytest.mark.parametrize(("scene", "named", "how"), [FROZEN, FROZEN_MAIN, FROZEN_STORE, ASLEEP, MAIN_ASLEEP], indirect=["scene"])
def test_one_that_is_lost_is_named_in_time_and_the_others_end(scene: Scene, named: str, how: str) -> None:
    codes = scene.ended(within=PATIENT + 5 * LATE)
    others = [rank for rank in range(scene.size) if rank != scene.rank]
    assert {codes[rank] for rank in others} == {70}
    for rank in others:
        when, words = scene.said(rank)[0]
        assert words.startswith(named) and how in words
        assert PATIENT - 1 < when - scene.struck < PATIENT + LATE  # its last word may be a while older
        assert f"Rank {rank} (host " in words and f"was in gradients of step {STRIKES_AT}, at all_reduce (" in words


@pytest.mark.parametrize("scene", [{"happens": "kill", "size": 3}], indirect=True)
def test_one_that_died_is_named_when_the_collective_breaks(scene: Scene) -> None:
    codes = scene.ended(within=PATIENT + 5 * LATE)
    assert codes[1] == -signal.SIGKILL and codes[0] == codes[2] == 1
    for rank in (0, 2):
        (named,) = {words.split(" (")[0] for _, words in scene.said(rank)}
        assert named == "rank 1"


@pytest.mark.parametrize("scene", [{"happens": "raise", "size": 3}], indirect=True)
def test_one_that_failed_says_why_in_the_log_of_the_others(scene: Scene) -> None:
    assert scene.ended(within=PATIENT + 5 * LATE) == [1, 1, 1]
    for rank in (0, 2):
        (words,) = {words for _, words in scene.said(rank)}
        assert words.endswith(f"failed in forward of step {STRIKES_AT}: ValueError: no such piece")


@pytest.mark.parametrize("scene", [{"happens": "long"}], indirect=True)
def test_a_long_phase_may_take_longer_than_the_patience(scene: Scene) -> None:
    """The control: the same pause in a phase that is not long ends the run, as above."""
    assert scene.ended(within=10 * PATIENT) == [0, 0]
    assert [scene.said(rank) for rank in range(2)] == [[], []]


@pytest.mark.parametrize("scene", [{"happens": "stop", "patience": 1000.0}], indirect=True)
def test_without_a_vigil_the_others_would_wait(scene: Scene) -> None:
    """The control: it is no collective that ends them."""
    assert scene.ended(within=PATIENT + LATE) == [None, None]


def test_a_job_that_was_suspended_as_a_whole_goes_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", size=2, patience=0.8, happens="nothing").start()
    scene.wait_for_strike()
    scene.tell(signal.SIGSTOP)
    time.sleep(3.0)
    scene.tell(signal.SIGCONT)
    assert scene.ended(within=20.0) == [0, 0]


def test_the_environment_stands_above_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    vigil = Heartbeat(0, 2, 300.0, ("127.0.0.1", 1))
    vigil.patience = 100.0
    assert (vigil.patience, vigil.beat) == (100.0, 1.0)
    monkeypatch.setenv(PATIENCE, "5")
    vigil.patience = 100.0
    assert (vigil.patience, vigil.beat) == (5.0, 0.5)


def test_to_say_what_one_does_costs_next_to_nothing() -> None:
    vigil, calls = Heartbeat(0, 2, 100.0, ("127.0.0.1", 1)), 10_000
    began = time.process_time()
    for step in range(calls):
        vigil.phase("gradients", step, long=False)
    assert (time.process_time() - began) / calls < 20e-6
