"""The lines of a plan: figures as people read them, warnings that cannot be overlooked, wrapped on a terminal and not in a pipe."""

from dataclasses import replace
from typing import Any

import pytest

from limelight.cli.plan.lines import THIS_MACHINE, Beside, Line, lines, wrap_lines
from limelight.cli.plan.plan import format_budget
from limelight.planning.serving_load import replicas
from limelight.planning.time.devices import device, this_machine
from limelight.reporting.units import duration, money, percent, round_figure, short, size
from limelight.training.forecast.forecast import Forecast, ForecastRequest, forecast
from limelight.training.forecast.simulated_ranks import FormulaCheck, Simulation
from limelight.training.forecast.text_size import typical


def planned(**more: Any) -> Forecast:
    values: dict[str, Any] = {
        "seen": typical(1e6),
        "device": device("L4"),
        "count": 1,
        "precision": "masters",
        "seconds": 3_600.0,
    }
    return forecast(ForecastRequest(**{**values, **more}))


def line(found: Forecast, name: str, **beside: Any) -> Line:
    return next(each for each in lines(found, Beside(**beside)) if each.name == name)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (size(1.94e9), "1.9 GB"),
        (size(80e9), "80 GB"),
        (size(12), "12 B"),
        (short(7_600_000), "7.6 M"),
        (short(12), "12"),
        (duration(0.4), "0.4 s"),
        (duration(42), "42 s"),
        (duration(16_680), "4 h 38 min"),
        (duration(7_200), "2 h"),
        (duration(3_599), "1 h"),
        (duration(30 * 86_400), "30.0 days"),
        (percent(0.0001), "< 0.1 %"),
        (percent(0.0), "nothing"),
        (round_figure(6_454_581), "6,450,000"),
        (round_figure(42), "42"),
        (money(7_487.99), "7,490 USD"),
        (money(0.07), "0.07 USD"),
        (format_budget(86_400), "1d"),
        (format_budget(7_200), "2h"),
        (format_budget(5_400), "90m"),
        (format_budget(90), "90s"),
    ],
)
def test_figures_are_short(made: str, said: str) -> None:
    assert made == said


@pytest.mark.slow
def test_what_does_not_fit_is_said_in_capitals() -> None:
    small = replace(device("L4"), memory=2e9)
    assert "DOES NOT FIT" in line(planned(device=small, name="big"), "Memory").why
    assert "DOES NOT FIT" not in line(planned(name="small"), "Memory").why


@pytest.mark.slow
def test_a_run_that_takes_longer_than_the_budget_says_so() -> None:
    assert "LONGER" in line(planned(name="big", steps=10_000_000), "Time").why
    assert "LONGER" not in line(planned(), "Time").why


@pytest.mark.slow
def test_a_budget_that_is_too_short_for_anything_usable_is_said_in_capitals() -> None:
    """As `train` says it, with the time that would do."""
    here = this_machine(8e9, 2)
    said = line(planned(device=here, precision="float32", seconds=150.0, seen=typical(5e3)), "Expect")
    assert said.value.startswith("NOT ENOUGH for a usable translator") and "--budget" in said.why
    assert "NOT ENOUGH" not in line(planned(), "Expect").value


@pytest.mark.slow
def test_an_assumed_speed_says_what_half_of_it_would_mean() -> None:
    assert "at half the speed, which is assumed" in line(planned(), "Expect").value
    assert "at half the speed" not in line(planned(steps=40_000), "Expect").value


@pytest.mark.slow
def test_this_machine_is_called_so_where_it_is_described() -> None:
    assert this_machine(8e9, 2).name == THIS_MACHINE
    assert "--calibrate" in line(planned(device=this_machine(8e9, 2)), "Speed").why
    assert "--calibrate" not in line(planned(device=device("CPU-AVX512")), "Speed").why


@pytest.mark.slow
def test_a_full_disk_is_told() -> None:
    assert "ONLY 5.0 MB" in line(planned(), "Disk", free_disk=5e6).why
    assert "are free here" in line(planned(), "Disk", free_disk=5e15).why


@pytest.mark.slow
def test_one_device_is_shared_with_nobody() -> None:
    assert not [each for each in lines(planned(), Beside()) if each.name == "Devices"]
    assert "8 x L4, ddp" in line(planned(count=8), "Devices").value


@pytest.mark.slow
def test_a_simulation_that_differs_is_not_called_equal() -> None:
    rows = (FormulaCheck("bytes of weights", 10, 10), FormulaCheck("bytes in all-gather", 10, 11))
    said = line(planned(), "Played", simulation=Simulation(8, rows))
    assert "DIFFERS" in said.value
    assert "bytes in all-gather: 11, not 10" in said.value


@pytest.mark.slow
def test_a_latency_that_no_server_reaches_is_said() -> None:
    found = planned()
    load = replicas(found.chosen.config, 5, latency=0.001)
    assert "NOT possible" in line(found, "Serving", serving=load, requests=5, latency=0.001).value


def test_lines_are_wrapped_on_a_terminal_and_whole_in_a_pipe() -> None:
    made = [Line("Model", "word " * 40, "reason " * 10)]
    assert len(wrap_lines(made, None)) == 1
    narrow = wrap_lines(made, 80)
    assert max(map(len, narrow)) <= 80
    assert all(each.startswith(" " * 9) for each in narrow[1:])


def test_a_rate_that_is_too_high_is_said() -> None:
    found = planned()
    assert "Rate" not in [each.name for each in lines(found, Beside())]
    high = replace(found, chosen=replace(found.chosen, learning_rate=0.5))
    assert line(high, "Rate").value == "0.5" and line(high, "Rate").why.startswith("high for")
