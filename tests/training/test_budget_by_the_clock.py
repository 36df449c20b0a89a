"""A budget is the time of the whole command: real runs, by the clock on the wall."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import warm_process

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from made_sentences import sentences
from prepare_command import write_pairs

pytestmark = pytest.mark.process

SMALL = ("--preset", "toy", "--threads", "1", "--workers", "0", "--plain", "data.filters.wrong_language=off")


def run(folder: Path, budget: str) -> tuple[subprocess.CompletedProcess[str], float]:
    paths = write_pairs(sentences(2_000), folder)
    command = [sys.executable, "-c", "from limelight.cli.main import main; main()", "train", *map(str, paths)]
    began = time.monotonic()
    done = warm_process.run([*command, "-o", str(folder / "run"), "--budget", budget, *SMALL], capture_output=True, text=True, check=False)
    return done, time.monotonic() - began


@pytest.mark.long
@pytest.mark.slow
def test_a_run_ends_with_its_budget(tmp_path: Path) -> None:
    """However busy the machine is: what does not fit is cut, and said."""
    done, seconds = run(tmp_path, "60s")
    assert done.returncode == 0, done.stderr
    spent = json.loads((tmp_path / "run" / "run.json").read_bytes())["seconds"]
    assert seconds < 60 + 20, (seconds, spent)
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.slow
def test_a_budget_that_is_over_before_training_is_refused_with_a_larger_one(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "1s")
    assert done.returncode == 2, done.stderr
    assert "the budget of 1 s is too small" in done.stderr and "minutes or more" in done.stderr
