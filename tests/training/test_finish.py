"""The end of a run: which weights win. The bundle and its scores are looked at where a whole run is made."""

from pathlib import Path
from typing import Any

import pytest
import torch

from limelight.training.checkpoints.best_weights import BestWeights
from limelight.training.validation.final_weights import choose_winner
from limelight.training.validation.validator import ValidationResult

LAST = 9  # the step of the last weights


class Judge:
    """Scores weights by their only number: the nearer to `wanted`, the better, of 100."""

    def __init__(self, wanted: float) -> None:
        self.wanted = wanted

    def validate(self, weights: Any, threads: int) -> ValidationResult:
        distance = abs(float(weights["w"].mean()) - self.wanted)
        return ValidationResult(1.0, distance, 100 - distance, ())


@pytest.mark.parametrize(
    ("wanted", "name"),
    [(1.0, "weights at the end"), (7.0, "best validation (step 2)"), (6.0, "mean of the 2 best")],
)
def test_the_weights_that_translate_best_win(tmp_path: Path, wanted: float, name: str) -> None:
    kept, watched = BestWeights(tmp_path / "best", 3), []
    for step, value in ((1, 5.0), (2, 7.0)):
        kept.offer(step, value, {"w": torch.full((2,), value)})
    last = {"w": torch.ones(2)}
    won = choose_winner(last, LAST, kept, Judge(wanted), "chrf", 1, lambda *done: watched.append(done))  # type: ignore[arg-type]
    assert won.name == name and float(won.weights["w"].mean()) == wanted
    assert won.compared == {
        "weights at the end": 100 - abs(1 - wanted),
        "best validation (step 2)": 100 - abs(7 - wanted),
        "mean of the 2 best": 100 - abs(6 - wanted),
    }
    assert watched == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(("wanted", "name"), [(6.9, "best validation (step 2)"), (6.4, "mean of the 2 latest")])
def test_the_mean_of_the_latest_wins_unless_another_is_better_by_more_than_chance(tmp_path: Path, wanted: float, name: str) -> None:
    kept = BestWeights(tmp_path / "best", 3, latest=True)
    for step, value in ((1, 5.0), (2, 7.0)):
        kept.offer(step, value, {"w": torch.full((2,), value)})
    assert choose_winner({"w": torch.ones(2)}, LAST, kept, Judge(wanted), "chrf", 1).name == name  # type: ignore[arg-type]
    near = choose_winner({"w": torch.ones(2)}, LAST, kept, Judge(6.6), "chrf", 1)  # type: ignore[arg-type]
    assert near.name == "mean of the 2 latest" and near.compared["best validation (step 2)"] > near.compared[near.name]


def test_the_metric_of_the_recipe_decides(tmp_path: Path) -> None:
    kept = BestWeights(tmp_path / "best", 3)
    kept.offer(2, 7.0, {"w": torch.full((2,), 7.0)})
    won = choose_winner({"w": torch.ones(2)}, LAST, kept, Judge(1.0), "bleu", 1)  # type: ignore[arg-type]
    assert won.name == "best validation (step 2)"


def test_weights_are_not_compared_with_themselves(tmp_path: Path) -> None:
    last, kept = {"w": torch.ones(2)}, BestWeights(tmp_path / "best", 3)
    assert list(choose_winner(last, LAST, kept, Judge(1.0), "chrf", 1).compared) == ["weights at the end"]  # type: ignore[arg-type]
    kept.offer(LAST, 1.0, last)
    assert list(choose_winner(last, LAST, kept, Judge(1.0), "chrf", 1).compared) == ["weights at the end"]  # type: ignore[arg-type]


def test_a_score_that_is_known_is_not_measured_again(tmp_path: Path) -> None:
    kept, asked = BestWeights(tmp_path / "best", 3), []
    kept.offer(2, 7.0, {"w": torch.full((2,), 7.0)})

    class Counting(Judge):
        def validate(self, weights: Any, threads: int) -> ValidationResult:
            asked.append(float(weights["w"].mean()))
            return super().validate(weights, threads)

    won = choose_winner({"w": torch.ones(2)}, LAST, kept, Counting(7.0), "chrf", 1, known=ValidationResult(1.0, 0.0, 100.5, ()))  # type: ignore[arg-type]
    assert asked == [7.0]
    assert won.name == "weights at the end" and won.compared == {
        "weights at the end": 100.5,
        "best validation (step 2)": 100.0,
    }


def test_of_equal_scores_and_of_chance_the_lower_loss_wins(tmp_path: Path) -> None:
    def rank(nll: float, chrf: float) -> float:
        return ValidationResult(nll, 0.0, chrf, ()).rank("chrf")

    assert rank(6.3, 0.2) > rank(6.9, 0.3), "chrF of 0.2 and of 0.3 says nothing"
    assert rank(6.3, 40.0) > rank(6.9, 40.0) and rank(6.9, 40.01) > rank(6.3, 40.0)
    assert rank(6.3, 40.0) == rank(6.30001, 40.0), "else a run that no longer learns would never lose patience"
    assert rank(float("nan"), 40.0) < rank(6.3, 40.0) and rank(float("nan"), 40.0) > 39

    class Unsure:
        def validate(self, weights: Any, threads: int) -> ValidationResult:
            return ValidationResult(6.3, 0.0, 0.1, ())

    kept = BestWeights(tmp_path / "best", 1)
    kept.offer(2, rank(6.3, 0.1), {"w": torch.full((2,), 7.0)})
    known = ValidationResult(6.9, 0.0, 0.3, ())
    won = choose_winner({"w": torch.ones(2)}, LAST, kept, Unsure(), "chrf", 1, known=known)  # type: ignore[arg-type]
    assert won.name == "best validation (step 2)" and won.compared == {"weights at the end": 0.3, "best validation (step 2)": 0.1}
