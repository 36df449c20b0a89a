"""The learning rate over the steps."""

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from limelight.training.config import ScheduleSettings
from limelight.training.step.learning_rate import rate

NAMES = ["inverse_sqrt", "cosine", "stable_decay"]
ENDING = ["cosine", "stable_decay"]


@st.composite
def schedules(draw: st.DrawFn, names: list[str] = NAMES) -> ScheduleSettings:
    steps = draw(st.integers(2, 400))
    return ScheduleSettings.model_validate(
        {
            "name": draw(st.sampled_from(names)),
            "steps": steps,
            "warmup": draw(st.integers(0, steps - 1)),
            "decay": draw(st.floats(0.001, 1)),
            "floor": draw(st.floats(0, 1)),
        }
    )


def curve(settings: ScheduleSettings) -> list[float]:
    """curve(settings)[n] is the rate at step n; there is no step 0."""
    return [math.nan, *(rate(step, settings) for step in range(1, settings.steps + 20))]


@pytest.mark.slow
@given(schedules())
def test_the_rate_is_a_part_of_the_peak(settings: ScheduleSettings) -> None:
    assert all(0 <= value <= 1 for value in curve(settings)[1:])
    assert all(value > 0 for value in curve(settings)[1 : settings.steps])


@given(schedules())
def test_it_rises_in_a_straight_line_to_exactly_one_and_never_again(settings: ScheduleSettings) -> None:
    rates = curve(settings)
    for step in range(1, settings.warmup + 1):
        assert rates[step] == step / settings.warmup
    later = rates[max(1, settings.warmup) :]
    assert later == sorted(later, reverse=True)


@given(schedules(ENDING))
def test_it_ends_exactly_at_the_floor_and_stays_there(settings: ScheduleSettings) -> None:
    assert set(curve(settings)[settings.steps :]) == {settings.floor}
    assert all(value >= settings.floor for value in curve(settings)[max(1, settings.warmup) :])


@given(schedules())
def test_it_does_not_jump(settings: ScheduleSettings) -> None:
    assume(settings.warmup > 0)
    rates = curve(settings)
    falling = settings.steps - settings.warmup
    if settings.name == "stable_decay":
        falling = min(falling, settings.decay * settings.steps)
    steepest = max(1 / settings.warmup, (math.pi / 2) / falling)
    assert all(abs(after - before) <= steepest + 1e-12 for before, after in pairwise(rates[1:]))


def test_the_papers_schedule_is_its_equation_divided_by_its_peak() -> None:
    def paper(step: int) -> float:
        return 512**-0.5 * min(step**-0.5, step * 4000**-1.5)

    settings = ScheduleSettings(name="inverse_sqrt", warmup=4000, steps=10)
    for step in (1, 2, 3999, 4000, 4001, 16_000, 100_000):
        assert rate(step, settings) == pytest.approx(paper(step) / paper(4000), rel=1e-12)


def test_without_warmup_the_papers_schedule_starts_at_its_peak() -> None:
    settings = ScheduleSettings(name="inverse_sqrt", warmup=0)
    assert rate(1, settings) == 1
    assert rate(16, settings) == 0.25


def test_the_cosine_is_half_way_down_in_the_middle_and_slow_at_both_ends() -> None:
    settings = ScheduleSettings(name="cosine", warmup=100, steps=1100, floor=0.2)
    assert rate(600, settings) == pytest.approx(0.6)
    assert rate(350, settings) == pytest.approx(0.2 + 0.8 * (1 + math.sqrt(0.5)) / 2)
    assert rate(101, settings) > 0.99999
    assert rate(1099, settings) < 0.20001


def test_stable_decay_stays_at_its_peak_until_the_last_part() -> None:
    settings = ScheduleSettings(name="stable_decay", warmup=10, steps=1000, decay=0.2, floor=0.1)
    assert {rate(step, settings) for step in range(10, 801)} == {1.0}
    assert rate(900, settings) == pytest.approx(0.55)
    assert rate(801, settings) == pytest.approx(1 - 0.9 / 200)


def test_stable_decay_over_all_steps_falls_from_the_end_of_the_warmup() -> None:
    settings = ScheduleSettings(name="stable_decay", warmup=100, steps=1100, decay=1.0, floor=0.0)
    assert rate(100, settings) == 1
    for step in (101, 600, 1099):
        assert rate(step, settings) == pytest.approx((1100 - step) / 1000)


def test_a_run_of_a_single_step_ends_at_once() -> None:
    assert rate(1, ScheduleSettings(steps=1, warmup=400, floor=0.5)) == 0.5
