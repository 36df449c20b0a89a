"""How fast a run goes, and how many steps its budget allows."""

import json
from typing import Any

import pytest
import torch

from limelight.evaluation.config import Speed
from limelight.training.step import budget_clock as pace_file
from limelight.training.step.budget_clock import FEW, BudgetClock, memory_held, reserve
from limelight.training.validation.final_weights import RemainingBudget


class Clock:
    """Time that passes when told to."""

    now = 1_000.0

    computed = 1.0  # of each second: less on a busy machine

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.computed * self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace_file, "time", clock)
    return clock


def after(clock: Clock, steps: int, seconds: float = 0.5, budget: float | None = 1000.0, every: int = 100) -> BudgetClock:
    """A run that took so many steps."""
    pace = BudgetClock(budget, every)
    for _ in range(steps):
        clock.now += seconds
        pace.add_step(seconds)
    return pace


def test_a_pause_of_the_machine_does_not_count_as_slowness(clock: Clock) -> None:
    pace = after(clock, 20)
    pace.add_step(60.0)
    assert pace.per_step() == 0.5
    assert 10 * pace.per_step() == 5.0
    assert pace.spent.train == 70.0


def test_a_step_carries_its_share_of_validation(clock: Clock) -> None:
    pace = after(clock, 20)
    pace.add_validation(10.0)
    assert pace.per_step() == 0.5 + 10 / 100
    pace.add_validation(20.0)
    assert pace.per_step() == 0.5 + 15 / 100


def test_a_run_that_is_on_time_is_not_planned_anew(clock: Clock) -> None:
    pace = after(clock, 200)
    fitting = 200 + int((1000 - reserve(1000) - 100) / 0.5)
    assert pace.replan(200, fitting) is None
    assert pace.replan(200, fitting - 10) is None  # not worth a change


@pytest.mark.parametrize("planned", [500, 5000])
def test_a_run_that_is_early_or_late_ends_with_the_budget(clock: Clock, planned: int) -> None:
    pace = after(clock, 200)
    steps = pace.replan(200, planned)
    assert steps is not None
    assert pace.elapsed + (steps - 200) * pace.per_step() == pytest.approx(1000 - reserve(1000), abs=0.5)


def test_nothing_is_planned_anew_without_a_budget_or_by_the_first_steps(clock: Clock) -> None:
    assert after(clock, 200, budget=None).replan(200, 5) is None
    assert after(clock, FEW - 1).replan(FEW - 1, 5_000) is None


def test_a_budget_that_is_used_up_leaves_no_step(clock: Clock) -> None:
    assert after(clock, 200, seconds=10).replan(200, 5_000) == 200


def test_a_machine_that_became_slow_between_validations_has_fewer_steps_at_once(clock: Clock) -> None:
    pace = after(clock, 200, every=500)
    assert pace.is_looked_at(200) and not pace.is_looked_at(201)
    assert not after(clock, 200, budget=None).is_looked_at(200)
    fitting = pace.replan(200, 5_000, late=True)
    assert fitting == pace.replan(200, 5_000)
    assert pace.replan(200, int(fitting or 0) * 21 // 20, late=True) is None  # not late enough


def test_time_that_others_take_of_a_machine_counts(clock: Clock) -> None:
    pace = BudgetClock(1000.0, 100)
    for at in range(50):
        clock.now += (seconds := 0.5 if at % 2 else 2.5)
        pace.add_step(seconds)
    assert pace.per_step() > 1.2  # the median would say 0.5


def test_checkpoints_count(clock: Clock) -> None:
    pace = after(clock, 20)
    pace.spent.save += 10.0
    assert pace.per_step() == 0.5 + 10 / 20


def test_what_the_end_takes_is_kept_back_by_how_long_validations_take(clock: Clock) -> None:
    pace = after(clock, 200)
    pace.validations_to_end = 10.0
    assert pace.ending() == reserve(1000)  # nothing is known yet
    pace.add_validation(20.0)
    assert pace.ending() == pytest.approx(1.2 * 10 * 20 + 8)
    pace.add_validation(200.0)
    assert pace.ending() == pytest.approx(1000 / 3)  # more is cut at the end


def test_on_a_busy_machine_the_report_takes_longer(clock: Clock) -> None:
    quiet = after(clock, 200)
    clock.computed = 0.25
    busy = after(clock, 200)
    assert (quiet.busy(), busy.busy()) == (1.0, pytest.approx(4.0))
    assert busy.report() == pytest.approx(4 * quiet.report())


@pytest.mark.parametrize("slower", [1.0, 2.0, 5.0])
def test_a_budget_holds_though_the_machine_is_slower_than_it_was_measured(clock: Clock, slower: float) -> None:
    """A whole run on a clock of its own: steps planned at the speed that was measured, validations, and an end that is cut to fit."""
    pace, step, steps = BudgetClock(600.0, 50), 0, 1000
    pace.validations_to_end = 8.0
    while step < steps:
        step += 1
        clock.now += 0.4 * slower
        pace.add_step(0.4 * slower)
        if step % 50 == 0 or step == steps:
            clock.now += 5 * slower
            pace.add_validation(5.0 * slower)
            steps = pace.replan(step, steps) or steps if step < steps else steps
        elif pace.is_looked_at(step):
            steps = pace.replan(step, steps, late=True) or steps
    remaining = RemainingBudget(pace, 500)
    truly = 3.5 * 5 * slower / 500  # seconds of a sentence
    confidence = remaining.sentences(1000, 0.4)
    clock.now += truly * confidence
    remaining.update_speed(Speed(confidence, truly * confidence, 0, 0))
    scored = remaining.sentences(1000)
    clock.now += truly * scored + 8
    assert scored >= 100 and confidence >= 100
    assert 0.6 * 600 < pace.elapsed <= 1.05 * 600


def test_the_reserve_is_a_quarter_of_a_short_budget_and_little_of_a_long_one() -> None:
    assert (reserve(30), reserve(1800), reserve(100_000)) == (7.5, 56, 2020)


def test_time_goes_on_over_starts_and_not_between_them(clock: Clock) -> None:
    first = after(clock, 30)
    first.spent.before = 12.0
    first.add_validation(3.0)
    first.spent.save += 1.0
    state: dict[str, Any] = json.loads(json.dumps(first.state()))
    elapsed, replanned = first.elapsed, first.replan(30, 5_000)
    clock.now += 9_000
    second = BudgetClock(1000.0, 100)
    second.load(state)
    assert second.elapsed == elapsed == 27.0
    assert second.spent == first.spent and second.spent.total == 31.0
    assert second.replan(30, 5_000) == replanned is not None
    clock.now += 5
    assert second.elapsed == 32.0


def test_preparing_again_counts_when_a_run_goes_on(clock: Clock) -> None:
    state = after(clock, 30).state()
    second = BudgetClock(1000.0, 100)
    second.spent.before = 8.0
    second.load(state)
    assert second.elapsed == 15.0 + 8.0


def test_memory_is_counted_in_bytes() -> None:
    before = memory_held(torch.device("cpu"))
    assert before > 50 * 2**20
    kept = bytearray(64 * 2**20)
    kept[:: 2**12] = b"x" * len(kept[:: 2**12])
    assert memory_held(torch.device("cpu")) >= before
