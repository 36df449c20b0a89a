"""From the command line of `limelight plan` to what is planned: texts, recipes, devices, time, and errors that name the fix."""

from pathlib import Path
from typing import Any

import pytest

from limelight.cli.plan.request import PlanOptions, PlanRequest, how_many, parse_plan_request
from limelight.corpus.config import PrepareSettings
from limelight.errors import LimelightError
from limelight.model.config import ModelConfig
from limelight.training.config import Recipe

FILES = ["corpus.en", "corpus.de"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With corpus.en, corpus.de, recipe.toml and the folder of a run, as the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).write_bytes(b"a\n")
    data = PrepareSettings(languages=("en", "de"), corpora=[{"name": "corpus", "paths": FILES}])
    recipe = Recipe(data=data, model=ModelConfig.preset("tiny", 500), seed=7)
    recipe.save(tmp_path / "recipe.toml")
    (tmp_path / "run").mkdir()
    recipe.save(tmp_path / "run" / "recipe.toml")
    return tmp_path


def asked(*inputs: str, **options: Any) -> PlanRequest:
    return parse_plan_request(list(inputs), PlanOptions(**options))


def refused(inputs: list[str], *words: str, **options: Any) -> None:
    with pytest.raises(LimelightError) as caught:
        asked(*inputs, **options)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_two_files_are_a_text_for_this_machine() -> None:
    found = asked(*FILES, budget="2h")
    assert found.data is not None
    assert found.data.languages == ("en", "de")
    assert (found.seconds, found.device, found.count) == (7_200, None, None)
    assert found.start == ["limelight", "train", "corpus.en", "corpus.de"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"budget": "8xH100 24h"}, (86_400, "H100", 8)),
        ({"budget": "24h", "device": "8xH100"}, (86_400, "H100", 8)),
        ({"budget": "24h", "device": "h100", "count": 8}, (86_400, "h100", 8)),
        ({"device": "L4"}, (None, "L4", None)),
        ({"budget": "H100 24h", "device": "H100"}, (86_400, "H100", 1)),
    ],
)
def test_devices_are_said_in_several_ways(options: dict[str, Any], found: tuple[Any, ...]) -> None:
    said = asked(*FILES, **options)
    assert (said.seconds, said.device, said.count) == found


@pytest.mark.parametrize(("text", "number"), [("29000", 29_000), ("29,000", 29_000), ("500k", 500_000), ("2.5M", 2_500_000), ("1B", 10**9)])
def test_many_pairs_are_written_short(text: str, number: int) -> None:
    assert how_many("--pairs", text) == number


@pytest.mark.parametrize("text", ["many", "", "10X", "-5", "0", "0.0001k"])
def test_what_is_no_number_of_pairs_is_refused(text: str) -> None:
    with pytest.raises(LimelightError, match=r"--pairs .* is no number of pairs; write it as .* 10M"):
        how_many("--pairs", text)


def test_a_recipe_is_planned_with_what_is_changed_in_it() -> None:
    found = asked("recipe.toml", "model.d_model=256", "schedule.steps=50", "schedule.warmup=5", "machine.precision=float32")
    assert found.recipe is not None
    assert found.recipe.model.d_model == 256
    assert (found.steps, found.precision) == (50, "float32")
    assert found.start[:3] == ["limelight", "train", "recipe.toml"]


def test_a_run_is_planned_by_its_recipe_and_its_text_is_not_prepared_again(folder: Path) -> None:
    assert asked("run").prepared is None
    (folder / "run" / "prepared").mkdir()
    (folder / "run" / "prepared" / "manifest.json").write_bytes(b"{}")
    assert asked("run").prepared == Path("run/prepared")


def test_a_prepared_text_is_trained_on_as_it_is(folder: Path) -> None:
    """Its files alone would be prepared anew, without its sets, weights and filters."""
    (folder / "ready").mkdir()
    (folder / "ready" / "manifest.json").write_bytes(b"{}")
    found = asked("ready", budget="2h")
    assert found.prepared == Path("ready") and found.start == ["limelight", "train", "ready"]


def test_keys_reach_the_model_and_the_preparation() -> None:
    found = asked(*FILES, "model.dropout=0.3", "data.filters.copied=off")
    assert found.model == {"dropout": 0.3}
    assert found.data is not None
    assert found.data.filters.copied == "off"


def test_nothing_at_all_is_refused_with_an_example() -> None:
    refused([], "nothing to plan", "limelight plan corpus.en corpus.de --budget 2h")


def test_all_problems_are_told_at_once() -> None:
    refused(
        FILES,
        "no such preset",
        "--requests 10",
        "two devices",
        preset="huge",
        latency=5.0,
        budget="8xH100 2h",
        device="L4",
    )


@pytest.mark.parametrize(
    ("inputs", "words", "options"),
    [
        (FILES, ("8 and 16 devices", "say once"), {"budget": "8xH100 2h", "count": 16}),
        (FILES, ("has no unit", "2m"), {"budget": "2"}),
        (["recipe.toml"], ("a recipe has its model",), {"preset": "base"}),
        (["recipe.toml", "corpus.en"], ("planned alone",), {}),
        ([*FILES, "dropout=0.3"], ("did you mean `model.dropout`",), {}),
        (["corpus.en"], ("has no partner",), {}),
        (["corpus.en", "corpus.xx"], ("corpus.xx", "does not exist"), {"source": None}),
    ],
)
def test_what_cannot_be_planned_says_why(inputs: list[str], words: tuple[str, ...], options: dict[str, Any]) -> None:
    refused(inputs, *words, **options)
