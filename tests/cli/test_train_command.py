"""`limelight train` as a person meets it: one real run, then what can be done with it, and messages that name the fix."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from made_sentences import apart, sentences
from prepare_command import Outcome, here, outside, write_pairs

from limelight import Translator
from limelight.bundle import read
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.training.config import Recipe
from limelight.training.events import StepReport, ValidReport, read_events
from limelight.training.run_folder import BUNDLE, CHECKPOINTS, METRICS, PREPARED, RunFacts, read_status

pytestmark = pytest.mark.process

# The model that tells languages takes two seconds to load, and a search for the best number of threads as long.
FAST = ("--threads", "1", "--precision", "float32", "--workers", "0")
QUICK = ("--steps", "4", *FAST)
FILTER = "data.filters.wrong_language=off"
PAIRS = sentences(300)
STORED = Path(__file__).parents[1] / "bundles" / "format-1"


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """A run sets the threads of its process, which here is that of all tests."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    write_pairs(PAIRS, folder, "corpus")
    return folder


@pytest.fixture(scope="module")
def line(place: Path) -> list[Any]:
    return ["train", place / "corpus.en", place / "corpus.de", "-o", place / "run", "--preset", "toy", *QUICK, FILTER]


@pytest.fixture(scope="module")
def first(line: list[Any]) -> Outcome:
    """The real command, in a process of its own."""
    return outside(*line, "--json")


@pytest.fixture(scope="module")
def run(place: Path, first: Outcome) -> Path:
    assert first.code == 0, first.err
    return place / "run"


def refused(code: int, *arguments: object) -> str:
    done = here("train", *arguments)
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    return done.err


def test_two_files_become_a_translator(run: Path) -> None:
    files = {path.name for path in run.iterdir()}
    assert {"recipe.toml", "metrics.jsonl", "samples.jsonl", "status.json", "run.json", "scores.json"} <= files
    assert {"report.md", "report.html", "bundle", "checkpoints", "best", "prepared"} <= files
    assert read_status(run)["state"] == "done"
    done = outside("translate", run, "On monday the doctor found a wooden box.", "--threads", "1")
    assert done.code == 0 and done.out.strip(), done.err


def test_programs_get_one_object(run: Path, first: Outcome) -> None:
    result = first.report
    assert (result["state"], result["folder"], result["step"]) == ("done", str(run), 4)
    assert [score["name"] for score in result["scores"]][:2] == ["BLEU", "chrF2"]
    assert set(result["seconds"]) >= {"prepare", "calibrate", "train", "validate", "score"}


def test_every_step_and_choice_is_recorded(run: Path) -> None:
    events = read_events(run / METRICS)
    assert [event.step for event in events if isinstance(event, StepReport)] == [1, 2, 3, 4]
    assert [event.step for event in events if isinstance(event, ValidReport)] == [4]
    facts = RunFacts.load(run)
    assert {"device", "numbers", "model", "batch", "schedule", "dropout"} <= {chosen.name for chosen in facts.chosen}
    assert facts.command[:2] == ["limelight", "train"] and facts.winner in facts.compared
    recipe = Recipe.load(run / "recipe.toml")
    assert (recipe.schedule.steps, recipe.machine.threads, recipe.model.d_model) == (4, 1, 64)
    scores = read(run).settings.scores
    assert scores and scores[0].test_set == "test set split off from the corpus" and scores[0].signature


def test_the_same_command_says_at_once_that_it_is_done(run: Path, line: list[Any]) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    done = here(*line)
    assert done.code == 0 and "BLEU" in done.out and f"limelight translate {run}" in done.out
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_another_command_on_the_folder_is_refused(run: Path, line: list[Any]) -> None:
    told = refused(2, *line[1:], "--seed", "5")
    assert str(run) in told and "another folder with -o" in told


def test_another_command_does_not_write_over_a_translator_whose_checkpoints_are_gone(run: Path, line: list[Any], tmp_path: Path) -> None:
    """Who deletes them to save space, and leaves out -o another day, keeps the translator."""
    shutil.copytree(run, moved := tmp_path / "run")
    shutil.rmtree(moved / CHECKPOINTS)
    before = (moved / BUNDLE / "model.safetensors").read_bytes()
    other = [moved if each == run else each for each in line[1:]]
    told = refused(2, *other, "--seed", "5")
    again = refused(2, *["9" if each == "4" else each for each in map(str, other)])  # more steps of the same run
    assert "cannot go on without its checkpoints" in again
    assert "another folder with -o" in told and (moved / BUNDLE / "model.safetensors").read_bytes() == before


def test_a_folder_that_is_no_run_is_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_bytes(b"mine")
    told = refused(2, place / "corpus.en", place / "corpus.de", "-o", tmp_path, *QUICK)
    assert "is no run; give another folder" in told
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_a_dry_run_says_what_would_be_trained_and_trains_nothing(place: Path, tmp_path: Path) -> None:
    done = here("train", place / "corpus.en", place / "corpus.de", "-o", tmp_path / "dry", *QUICK, FILTER, "--dry-run")
    assert done.code == 0, done.err
    for name in ("model: tiny", "schedule: 4 steps", "nothing was trained"):
        assert name in done.out
    assert "chosen" not in done.err, "each choice is said once"
    assert not (tmp_path / "dry" / "recipe.toml").exists() and not (tmp_path / "dry" / "checkpoints").exists()


@pytest.mark.long
def test_an_edited_recipe_is_trained_in_another_folder(run: Path, tmp_path: Path) -> None:
    recipe = Recipe.load(run / "recipe.toml")
    recipe.changed(label_smoothing=0.2, seed=8).save(tmp_path / "mine.toml")
    done = here("train", tmp_path / "mine.toml", "-o", tmp_path / "other", "--workers", "0", "optimizer.beta2=0.9")
    assert done.code == 0, done.err
    other = Recipe.load(tmp_path / "other" / "recipe.toml")
    assert (other.label_smoothing, other.seed, other.optimizer.beta2) == (0.2, 8, 0.9)
    assert other.model == recipe.model
    same = CorpusManifest.load(tmp_path / "other" / PREPARED), CorpusManifest.load(run / PREPARED)
    assert same[0].text_address == same[1].text_address


@pytest.mark.long
def test_a_translation_memory_is_enough(tmp_path: Path) -> None:
    units = "".join(f'<tu><tuv xml:lang="en"><seg>{s}</seg></tuv><tuv xml:lang="de"><seg>{t}</seg></tuv></tu>' for s, t in PAIRS[:120])
    head = '<?xml version="1.0" encoding="UTF-8"?><tmx version="1.4"><header srclang="en"/><body>'
    (tmp_path / "memory.tmx").write_bytes(f"{head}{units}</body></tmx>".encode())
    done = here(
        "train", tmp_path / "memory.tmx", "--source", "en", "--target", "de", "-o", tmp_path / "out", "--preset", "toy",
        "data.pieces.joint=false", "data.pieces.size=300", "batch.sampling.dropout=0.1", "machine.workers=0", *QUICK, FILTER,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert {"source.model", "target.model"} <= {path.name for path in (tmp_path / "out" / "bundle").iterdir()}
    with closing(Translator.load(tmp_path / "out")) as translator:
        assert len(translator.translate(["The doctor found a box."])) == 1


def test_fine_tuning_goes_on_from_a_run(run: Path, tmp_path: Path) -> None:
    """With a rate of nearly nothing the weights end where they began: at those of the old translator."""
    paths = write_pairs(apart(120, PAIRS, seed=4), tmp_path, "new")
    done = here(
        "train", *paths, "--from", run, "-o", tmp_path / "tuned", "--replay", "0.25", "optimizer.learning_rate=1e-12",
        *QUICK, FILTER,
    )  # fmt: skip
    assert done.code == 0, done.err
    old, new = read(run), read(tmp_path / "tuned")
    assert (new.folder / "pieces.model").read_bytes() == (old.folder / "pieces.model").read_bytes()
    for name, weight in new.weights().items():
        torch.testing.assert_close(weight, old.weights()[name], rtol=0, atol=1e-6, msg=name)
    train = sources(tmp_path / "tuned", "train")
    assert len(train & sources(run, "train")) > 200
    assert not train & (sources(run, "test") | sources(run, "valid"))
    assert not sources(tmp_path / "tuned", "test") & sources(run, "train")
    recipe = Recipe.load(tmp_path / "tuned" / "recipe.toml")
    assert recipe.fine_tuning is not None and recipe.fine_tuning.replay == 0.25
    assert "25% of the pairs" in next(c.value for c in RunFacts.load(tmp_path / "tuned").chosen if c.name == "replay")


def sources(run: Path, split: Any) -> set[str]:
    pairs = PreparedCorpus.open(run / PREPARED).split(split)
    return set(pairs.texts(np.arange(pairs.rows, dtype=np.int64))[0].to_pylist())


def test_what_a_translator_has_cannot_be_chosen_again(place: Path, tmp_path: Path) -> None:
    files = (place / "corpus.en", place / "corpus.de")
    told = refused(2, *files, "--from", STORED, "--preset", "tiny", "--vocab-size", "500", "-o", tmp_path / "x")
    assert "--preset tiny: leave it out" in told and "--vocab-size 500: leave it out" in told
    told = refused(2, *files, "--from", STORED, "model.d_model=48", "-o", tmp_path / "x", *QUICK, FILTER)
    assert "model.d_model=48, but it has d_model=" in told
    told = refused(65, *files, "--from", STORED, "--replay", "0.5", "-o", tmp_path / "y", *QUICK, FILTER)
    assert "--replay-data" in told
    told = refused(66, *files, "--from", place, "-o", tmp_path / "z", *QUICK)
    assert "is no bundle" in told and "folder of a bundle or of a run" in told


def test_too_little_text_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    paths = write_pairs(PAIRS[:12], tmp_path, "few")
    told = refused(65, *paths, "-o", tmp_path / "run", *QUICK, FILTER)
    assert "could be set aside for validation" in told and "--valid, or more text" in told
    assert read_status(tmp_path / "run")["state"] == "failed" and (tmp_path / "run" / "report.md").exists()


def test_a_short_model_leaves_out_long_pairs_and_there_may_be_no_test_set(place: Path, tmp_path: Path) -> None:
    line = [
        "train", place / "corpus.en", place / "corpus.de", "-o", tmp_path / "run", "--preset", "toy", "model.max_length=40",
        "data.held_out.test_pairs=0", "schedule.steps=3", *FAST, FILTER,
    ]  # fmt: skip
    done = here(*line)
    assert done.code == 0, done.err
    recipe = Recipe.load(tmp_path / "run" / "recipe.toml")
    assert (recipe.batch.longest, recipe.schedule.steps) == (39, 3)
    assert "there is no test set" in done.err
    assert not (tmp_path / "run" / "scores.json").exists()
    assert json.loads(here(*line, "--json").out)["scores"] == []
