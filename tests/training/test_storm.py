"""kill -9 at any moment, also in the midst of saving: the run ends as if nothing had been.

The whole of it, with the launcher and more kills, is `python benchmarks/survive_storm.py`.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import survive_storm


@pytest.mark.long
@pytest.mark.parametrize(
    ("kills", "kind", "background"),
    [(4, "fsdp", False), pytest.param(10, "ddp", True, marks=pytest.mark.long)],
)
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bits(tmp_path: Path, kills: int, kind: str, background: bool) -> None:
    stage = survive_storm.stage_for(tmp_path, kills, background)
    found = survive_storm.stormed(stage, kind, background, True, kills, seed=1)
    assert survive_storm.problems(found) == []
    assert found["differ_in_the_control"] > 0  # one bit of one weight
