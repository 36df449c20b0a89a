"""What is wrong in one process of several is found before it is saved, and the step that ended a run can be computed again by anybody."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from ranks import Ranks
from small_runs import make_corpus, recipe

from limelight.errors import ModelFileError
from limelight.planning.cost.parallel import Parallel
from limelight.training.config import Recipe
from limelight.training.processes.replica_check import bit_sums, refuse_differing
from limelight.training.processes.world import World
from limelight.training.run_folder import PREPARED, RECIPE
from limelight.training.step.step_dump import reproduce


@pytest.fixture(scope="module")
def ranks(starts_process: None) -> Iterator[Ranks]:
    with Ranks(4, "trouble_scenes") as ranks:
        yield ranks


@pytest.mark.parametrize("bit", [0, *(pytest.param(bit, marks=pytest.mark.long) for bit in (12, 30, 31))])
def test_any_single_flip_of_three_is_found_and_its_process_named_by_all(ranks: Ranks, bit: int) -> None:
    for answer in ranks.run(3, "compare_plain", [1], bit):
        assert answer["error"] == "LimelightError"
        assert answer["text"].startswith("rank 1 holds other tensors than the majority of 3 at step 12: weights/down. ")


def test_of_two_both_are_named(ranks: Ranks) -> None:
    for answer in ranks.run(2, "compare_plain", [1], 5):
        assert answer["text"].startswith("ranks 0 and 1 hold different tensors at step 12: weights/down. ")


def test_equal_tensors_are_let_through(ranks: Ranks) -> None:
    """The control, also with the same flip in all of them: only a difference can be seen."""
    assert ranks.run(3, "compare_plain", [], 5) == [None] * 3
    assert ranks.run(2, "compare_plain", [0, 1], 5) == [None] * 2


def test_parts_are_compared_with_the_same_parts_of_other_groups(ranks: Ranks) -> None:
    assert ranks.run(4, "compare_cut", "hybrid", []) == [None] * 4
    for answer in ranks.run(4, "compare_cut", "hybrid", [3]):
        assert answer["text"].startswith("ranks 1 and 3 hold different tensors at step 12: weights/up. ")
    assert ranks.run(2, "compare_cut", "fsdp", [1]) == [None] * 2  # nobody else holds it


def test_one_process_has_nobody_to_compare_with() -> None:
    refuse_differing(World(), Parallel(), {"a": torch.ones(1)}, 1)


def test_every_bit_counts_whatever_the_number_format() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.uint8):
        tensor = torch.ones(3, 5).to(dtype)
        before = bit_sums({"a": tensor})["a"]
        tensor.view(-1).view(torch.uint8)[3] ^= 1
        assert bit_sums({"a": tensor})["a"] != before
    assert bit_sums({}) == {} and bit_sums({"a": torch.zeros(0, 4)}) == {"a": 0}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A recipe, and its text."""
    folder = make_corpus(tmp_path_factory.mktemp("corpus"))
    recipe(folder, batch={"budget": 512}).save(folder / RECIPE)
    return str(folder / RECIPE), str(folder / PREPARED)


@pytest.mark.parametrize(("size", "guided"), [(1, None), (2, None), (2, 0.5)])
def test_a_step_is_computed_again_bit_by_bit_with_its_dropout(
    ranks: Ranks, corpus: tuple[str, str], tmp_path: Path, size: int, guided: float | None
) -> None:
    asked = tmp_path / RECIPE
    Recipe.load(Path(corpus[0])).changed(guided_alignment=guided).save(asked)
    answers = ranks.run(size, "write_down", str(asked), corpus[1], str(tmp_path), None)
    assert str(tmp_path / "trouble" / "step-0000037") in answers[0]["said"]
    expected = sum(float(answer["total"]) for answer in answers) / answers[0]["pieces"]
    again = reproduce(tmp_path / "trouble" / "step-0000037")
    assert again.loss == expected and 0 < again.norm < 100
    assert reproduce(tmp_path / "trouble" / "step-0000037") == again


@pytest.mark.parametrize("poisoned", [0, 1])
def test_no_number_in_the_weights_of_one_process_is_reproduced(
    ranks: Ranks, corpus: tuple[str, str], tmp_path: Path, poisoned: int
) -> None:
    ranks.run(2, "write_down", *corpus, str(tmp_path), poisoned)
    again = reproduce(tmp_path / "trouble" / "step-0000037")
    assert math.isnan(again.loss) and math.isnan(again.norm)
    files = sorted(path.name for path in (tmp_path / "trouble" / "step-0000037").iterdir())
    assert files == ["rank-0000.safetensors", "rank-0001.safetensors", "recipe.toml", "trouble.json", "weights"]


def test_what_cannot_be_written_is_said_and_leaves_nothing(ranks: Ranks, corpus: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "trouble").write_bytes(b"in the way")
    for answer in ranks.run(2, "write_down", *corpus, str(tmp_path), None):
        assert answer["said"].startswith("the step could not be written down: ")
    assert [path.name for path in tmp_path.iterdir()] == ["trouble"]


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"holds no trouble\.json; name a folder such as RUN/trouble/step-0000037"):
        reproduce(tmp_path)
