"""What goes wrong in one of two real processes changes nothing in either; what is wrong in its memory is found before it is saved."""

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from survive_bad_steps import Ground, differing, given_up, learned, left_out, looked_away, silent_flip


@pytest.fixture(scope="module")
def ground(starts_process: None, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """A run that stands where the watchdog knows what is usual."""
    return Ground(tmp_path_factory.mktemp("ground") / "ground", step=12, window=8)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("step.loss:nan", "the loss is not a number"),
        pytest.param("step.gradient:flip", "the gradient ", marks=pytest.mark.long),
    ],
)
def test_a_bad_step_of_one_process_changes_no_bit_in_any(ground: Ground, fault: str, reason: str) -> None:
    found = left_out(ground, fault.partition(":")[0], fault, reason)
    assert found == {"differing": 0, "passed": True}


@pytest.mark.process
def test_a_watchdog_that_looks_away_lets_it_through(tmp_path: Path) -> None:
    """The control."""
    assert looked_away(tmp_path, 13, 8)["passed"]


def test_ten_in_a_row_of_one_process_end_the_run_and_are_kept_for_whoever_wants_to_know(ground: Ground) -> None:
    found = given_up(ground, "given-up", "#1")
    assert found["passed"], found
    assert math.isnan(float(found["again"])) and found["state"] == "failed"


@pytest.mark.long
def test_a_low_bit_of_a_weight_is_found_before_it_is_saved_and_the_next_start_is_as_if_it_had_not_been(
    ground: Ground,
) -> None:
    found = silent_flip(ground)
    assert found == {"named": True, "unseen": True, "differing": 0, "passed": True}
    assert differing(learned(ground.folder / "g"), learned(ground.run)) > 100
