"""Two processes that are stopped and go on as two new ones are the two that were never stopped: 0 differing bits, in every way to share.

The whole of it, with other seeds and steps, is `python benchmarks/survive_resume.py`.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import survive_resume
from survive_ranks import ONE, Stage
from survive_resume import Lose, chance, moments, nothing, place

pytestmark = pytest.mark.process

K, STEPS = 7, 12


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("stage"), STEPS)


@pytest.fixture(scope="module")
def straight(stage: Stage) -> dict[str, Path]:
    """By kind, each trained when it is first asked for."""
    return {}


def trained(stage: Stage, straight: dict[str, Path], kind: str) -> Path:
    if kind not in straight:
        straight[kind] = stage.new(kind)
        assert set(stage.train(straight[kind], kind)) == {0}, straight[kind].with_suffix(".said").read_bytes().decode()
    return straight[kind]


SLOW = [pytest.param(kind, marks=pytest.mark.long) for kind in (ONE, "ddp", "hybrid", "tensor")]


@pytest.mark.parametrize("kind", ["fsdp", *SLOW])
def test_processes_that_were_stopped_go_on_bit_by_bit(stage: Stage, straight: dict[str, Path], kind: str) -> None:
    run = trained(stage, straight, kind)
    assert survive_resume.parts_missing(run, kind) == []
    assert survive_resume.case(stage, run, kind, K) == []


CONTROLS = [chance, *(pytest.param(lose, marks=pytest.mark.long) for lose in (nothing, place, moments))]


@pytest.mark.parametrize("lose", CONTROLS)
def test_what_a_checkpoint_of_several_processes_forgets_is_found(stage: Stage, straight: dict[str, Path], lose: Lose) -> None:
    """The control of the test above: without one part of the state it must not pass. One from which nothing was taken must."""
    found = survive_resume.control(stage, trained(stage, straight, "fsdp"), "fsdp", K, lose)
    assert bool(found) == (lose is not nothing), found[:5]
