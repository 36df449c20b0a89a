"""A run that is stopped and goes on in a new process is the run that was not stopped: 0 differing bits."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import (
    DONE,
    SHORT,
    STEPS,
    STOPPED,
    Signal,
    Small,
    check_equal,
    last_step_of_first_epoch,
    make_corpus,
    recipe,
)

from limelight.training.checkpoints import checkpoint
from limelight.training.run_folder import CHECKPOINTS
from limelight.training.step.trained_model import build_model

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def straight(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Small:
    run = Small(corpus, tmp_path_factory.mktemp("straight") / "run")
    assert run.live() == DONE
    return run


def test_stopped_four_times_it_is_the_run_that_was_never_stopped(corpus: Path, straight: Small, tmp_path: Path) -> None:
    """After the first step, an ordinary one, the last of an epoch and the last but one; batches from two other processes."""
    boundary = last_step_of_first_epoch(straight.run)
    assert 15 < boundary < STEPS - 5
    run = Small(corpus, tmp_path / "run", {"machine": {"workers": 2}})
    for step in (1, 13, boundary, STEPS - 1):
        assert run.live(Signal(after_step=step)) == STOPPED
        assert run.saved.step == step
    assert run.live() == DONE
    check_equal(run, straight)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stopped_anywhere_it_is_the_run_that_was_never_stopped(corpus: Path, tmp_path: Path, seed: int) -> None:
    changes = {"seed": seed, "batch": {"seed": seed}}
    straight = Small(corpus, tmp_path / "straight", changes)
    assert straight.live() == DONE
    boundary = last_step_of_first_epoch(straight.run)
    for step in (1, 13, boundary - 1, boundary, boundary + 1, STEPS - 1):
        run = Small(corpus, tmp_path / f"run-{step}", {**changes, "machine": {"workers": seed % 3}})
        assert run.live(Signal(after_step=step)) == STOPPED
        assert run.live() == DONE
        check_equal(run, straight)


@pytest.mark.long
def test_blocks_that_are_computed_again_give_the_same_run(corpus: Path, straight: Small, tmp_path: Path) -> None:
    """With dropout: the same numbers are dropped the second time. It may begin in the middle of a run."""
    run = Small(corpus, tmp_path / "run")
    assert run.live(Signal(after_step=13)) == STOPPED
    again = Small(corpus, run.run, {"machine": {"recompute": True}})
    assert build_model(recipe(corpus, **again.changes), torch.device("cpu")).model.decoder.recompute
    assert again.live() == DONE
    check_equal(again, straight)


KINDS: dict[str, dict[str, Any]] = {
    "bfloat16 with masters": {"machine": {"precision": "masters"}},
    "two batches to a step": {"accumulate": 2},
    "pieces by chance": {"batch": {"sampling": {"alpha": 0.3, "candidates": 8}}},
    "changed text": {"batch": {"augment": {"upper": 0.2, "typos": 0.2, "merged": 0.2}}},
    "autocast": {"machine": {"precision": "autocast"}},
    "R-Drop": {"r_drop": 2.0},
    "a guided head": {"guided_alignment": 0.05},
    "muon, no average": {"optimizer": {"name": "muon"}, "average": {"decay": None}},
}
TOGETHER = {
    "machine": {"precision": "masters", "workers": 1},
    "accumulate": 2,
    "batch": {**KINDS["pieces by chance"]["batch"], **KINDS["changed text"]["batch"]},
}
ALONE = ("autocast", "R-Drop", "a guided head", "muon, no average")  # what is not among these


@pytest.mark.long
def test_masters_with_two_batches_to_a_step_pieces_by_chance_and_changed_text_go_on_exactly(corpus: Path, tmp_path: Path) -> None:
    check_goes_on(corpus, tmp_path, TOGETHER)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name if name in ALONE else pytest.param(name, marks=pytest.mark.long) for name in KINDS])
def test_every_way_to_train_goes_on_exactly(corpus: Path, tmp_path: Path, kind: str) -> None:
    check_goes_on(corpus, tmp_path, KINDS[kind])


def check_goes_on(corpus: Path, folder: Path, kind: dict[str, Any]) -> None:
    runs = [Small(corpus, folder / name, {**SHORT, **kind}) for name in ("straight", "stopped")]
    assert runs[0].live() == DONE
    assert runs[1].live(Signal(after_step=7)) == STOPPED
    assert runs[1].live() == DONE
    check_equal(runs[1], runs[0])


@pytest.fixture(scope="module")
def short(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Small:
    run = Small(corpus, tmp_path_factory.mktemp("short") / "run", SHORT)
    assert run.live() == DONE
    return run


def test_a_validation_that_was_given_up_comes_again(corpus: Path, short: Small, tmp_path: Path) -> None:
    """The first, and the one after the last step."""
    run = Small(corpus, tmp_path / "run", SHORT)
    for step, nth in ((4, 1), (12, 3)):
        assert run.live(Signal(inside="limelight.training.validation.validator:Validator._nll", nth=nth)) == STOPPED
        assert run.saved.step == step and run.saved.state["progress"]["validated"] == step - 4
    assert run.live() == DONE
    check_equal(run, short)


@pytest.fixture(scope="module")
def stopped(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Small:
    run = Small(corpus, tmp_path_factory.mktemp("stopped") / "run", SHORT)
    assert run.live(Signal(after_step=7)) == STOPPED
    return run


def without_chance(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    tensors["chance/cpu/0"] = torch.Generator().manual_seed(1).get_state()


def without_place(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    state["loader"] |= {"epoch": 0, "window": 0, "batch": 0, "number": 0}


def without_moment(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    name = next(name for name in tensors if name.endswith("encoder.blocks.0.feed_forward.up.weight/exp_avg"))
    tensors[name] = torch.zeros_like(tensors[name])


def with_one_bit(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    name = next(name for name in tensors if name.startswith("weights/decoder.blocks.1"))
    tensors[name].view(-1).view(torch.int32)[0] ^= 1


def without_average(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    for name in tensors:
        if name.startswith("average/"):
            tensors[name] = tensors["weights/" + name.removeprefix("average/")].clone()


def without_usual(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    state["trouble"]["losses"] = state["trouble"]["losses"][:-1]


SLOW = [with_one_bit, without_average, without_usual]
LOSSES = [without_chance, without_place, without_moment, *(pytest.param(lose, marks=pytest.mark.long) for lose in SLOW)]


@pytest.mark.parametrize("lose", LOSSES)
def test_whatever_a_checkpoint_forgets_is_found_by_these_tests(
    corpus: Path, short: Small, stopped: Small, tmp_path: Path, lose: Any
) -> None:
    """The control of the tests above: a checkpoint without one part of the state must not pass them."""
    shutil.copytree(stopped.run, tmp_path / "run")
    shutil.copy(stopped.run.with_suffix(".seen"), tmp_path / "run.seen")
    run = Small(corpus, tmp_path / "run", SHORT)
    tensors, state = run.saved.tensors(), run.saved.state
    lose(tensors, state)
    checkpoint.save(run.run / CHECKPOINTS, run.saved.step, tensors, state, keep=2)
    assert run.live() == DONE
    with pytest.raises(AssertionError):
        check_equal(run, short)
