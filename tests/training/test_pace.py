"""How fast a run goes, and how many steps its budget allows."""

import json
from typing import Any

import pytest
import torch

from limelight.training import pace as pace_file
from limelight.training.pace import FEW, Pace, memory_held, reserve


class Clock:
    """Time that passes when told to."""

    now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace_file, "time", clock)
    return clock


def after(clock: Clock, steps: int, seconds: float = 0.5, budget: float | None = 1000.0, every: int = 100) -> Pace:
    """A run that took so many steps."""
    pace = Pace(budget, every)
    for _ in range(steps):
        clock.now += seconds
        pace.stepped(seconds)
    return pace


def test_a_pause_of_the_machine_does_not_count_as_slowness(clock: Clock) -> None:
    pace = after(clock, 20)
    pace.stepped(60.0)
    assert pace.per_step() == 0.5
    assert pace.left(10) == 5.0
    assert pace.spent.train == 70.0


def test_a_step_carries_its_share_of_validation(clock: Clock) -> None:
    pace = after(clock, 20)
    pace.validated(10.0)
    assert pace.per_step() == 0.5 + 10 / 100
    pace.validated(20.0)
    assert pace.per_step() == 0.5 + 15 / 100


def test_a_run_that_is_on_time_is_not_planned_anew(clock: Clock) -> None:
    pace = after(clock, 200)
    fitting = 200 + int((1000 - reserve(1000) - 100) / 0.5)
    assert pace.replanned(200, fitting) is None
    assert pace.replanned(200, fitting - 10) is None  # not worth a change


@pytest.mark.parametrize("planned", [500, 5000])
def test_a_run_that_is_early_or_late_ends_with_the_budget(clock: Clock, planned: int) -> None:
    pace = after(clock, 200)
    steps = pace.replanned(200, planned)
    assert steps is not None
    assert pace.elapsed + pace.left(steps - 200) == pytest.approx(1000 - reserve(1000), abs=0.5)


def test_nothing_is_planned_anew_without_a_budget_or_by_the_first_steps(clock: Clock) -> None:
    assert after(clock, 200, budget=None).replanned(200, 5) is None
    assert after(clock, FEW - 1).replanned(FEW - 1, 5_000) is None


def test_a_budget_that_is_used_up_leaves_no_step(clock: Clock) -> None:
    assert after(clock, 200, seconds=10).replanned(200, 5_000) == 200


def test_the_reserve_is_a_quarter_of_a_short_budget_and_little_of_a_long_one() -> None:
    assert (reserve(30), reserve(1800), reserve(100_000)) == (7.5, 56, 2020)


def test_time_goes_on_over_starts_and_not_between_them(clock: Clock) -> None:
    first = after(clock, 30)
    first.spent.before = 12.0
    first.validated(3.0)
    first.saved(1.0)
    state: dict[str, Any] = json.loads(json.dumps(first.state()))
    elapsed, replanned = first.elapsed, first.replanned(30, 5_000)
    clock.now += 9_000
    second = Pace(1000.0, 100)
    second.load(state)
    assert second.elapsed == elapsed == 27.0
    assert second.spent == first.spent and second.spent.total == 31.0
    assert second.replanned(30, 5_000) == replanned is not None
    clock.now += 5
    assert second.elapsed == 32.0


def test_preparing_again_counts_when_a_run_goes_on(clock: Clock) -> None:
    state = after(clock, 30).state()
    second = Pace(1000.0, 100)
    second.spent.before = 8.0
    second.load(state)
    assert second.elapsed == 15.0 + 8.0


def test_memory_is_counted_in_bytes() -> None:
    before = memory_held(torch.device("cpu"))
    assert before > 50 * 2**20
    kept = bytearray(64 * 2**20)
    kept[:: 2**12] = b"x" * len(kept[:: 2**12])
    assert memory_held(torch.device("cpu")) >= before
