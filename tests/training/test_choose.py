"""What a run decides by itself, from the text and the time at hand."""

import math
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from made_sentences import sentences
from prepare_command import FAST, given_pieces, here, write_pairs

from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError, DataError, RuntimeChoiceError
from limelight.model.config import ModelConfig
from limelight.planning.cost.size import parameters
from limelight.planning.shortfall import NOT_ENOUGH
from limelight.planning.sizing_rules import BATCH, LEAST_BATCH, LEAST_STEPS, LEAST_TRAINING, peak_rate
from limelight.runtime import count_threads
from limelight.training.config import FineTuning, Inherited, OptimizerSettings, Recipe
from limelight.training.recipe import calibrate as calibrate_file
from limelight.training.recipe import choose
from limelight.training.recipe.calibrate import (
    CalibrationResult,
    ComputeSetup,
    MemoryBaseline,
    calibrate,
    estimate_bytes,
)
from limelight.training.recipe.choose import Plan, RecipePlanner, merge
from limelight.training.recipe.request import TrainRequest
from limelight.training.recipe.resolve import extend_recipe, resolve_recipe
from limelight.training.recipe.text_stats import PreparedText, frequencies, frequencies_in
from limelight.training.run_folder import RunChoice

CPU = ComputeSetup(torch.device("cpu"), "float32", 1)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    folder = tmp_path_factory.mktemp("choose")
    paths = write_pairs(sentences(300), folder)
    assert here("prepare", *paths, *FAST, given_pieces(), "-o", folder / "prepared").code == 0
    return PreparedCorpus.open(folder / "prepared")


def with_text(prepared: PreparedCorpus, target: int) -> PreparedCorpus:
    """The same corpus, which says that it has so many target pieces."""
    manifest = prepared.manifest
    rows = sum(shard.rows for shard in manifest.splits["train"])
    figures = {side: {"pieces": target - rows} for side in ("source", "target")}
    return replace(prepared, manifest=manifest.changed(statistics={"pieces": {"train": figures}}))


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A machine of 10,000 target pieces per second for `small`, and in proportion for others. Returns how long was measured."""
    asked: list[float] = []
    small = sum(parameters(ModelConfig.preset("small", 600)).values())

    def measured(
        config: ModelConfig, prepared: Any, batch: Any, optimizer: Any, stand: Any, seconds: float, r_drop: float | None
    ) -> CalibrationResult:
        asked.append(seconds)
        passes = 2 if r_drop else 1
        return CalibrationResult(10_000 * small / sum(parameters(config).values()) / passes, 1, None, 1.0, 0.0)

    monkeypatch.setattr(choose, "calibrate", measured)
    return asked


def plan(prepared: PreparedCorpus, changes: dict[str, Any] | None = None, **more: Any) -> Plan:
    given = {name: more.pop(name) for name in ("spent", "model", "fine_tuning") if name in more}
    asked = TrainRequest(data=None, changes=changes or {}, **more)
    return RecipePlanner(prepared, CPU, asked, **given).plan()


def why(made: Plan, name: str) -> RunChoice:
    return next(each for each in made.chosen if each.name == name)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    ("text", "budget", "width"),
    [
        (20_000, 3_600, 128),  # too little text for more
        (500_000, 3_600, 128),  # by Muon a narrow one
        (2_000_000, 36_000, 256),
        (500_000, 60, 128),  # too little time
        (20_000_000, 7_200, 256),  # base would see fewer pieces than it has weights
        (20_000_000, 20 * 86_400, 512),
    ],
)
def test_the_model_is_as_large_as_text_and_time_have_use_for(prepared: PreparedCorpus, text: int, budget: float, width: int) -> None:
    assert plan(with_text(prepared, text), budget_seconds=budget).recipe.model.d_model == width


@pytest.mark.usefixtures("fast")
def test_a_value_that_a_person_gave_wins_over_every_rule(prepared: PreparedCorpus) -> None:
    changes = {
        "model": {"dropout": 0.45, "max_length": 90},
        "optimizer": {"learning_rate": 1e-4},
        "batch": {"budget": 700},
        "accumulate": 3,
        "validation": {"every": 7},
        "average": {"decay": 0.5},
    }
    made = plan(prepared, changes, preset="toy", steps=50)
    recipe = made.recipe
    assert (recipe.model.dropout, recipe.model.max_length, recipe.optimizer.learning_rate) == (0.45, 90, 1e-4)
    assert (recipe.batch.budget, recipe.accumulate, recipe.validation.every, recipe.average.decay) == (700, 3, 7, 0.5)
    assert recipe.schedule.steps == 50
    assert (why(made, "batch").why, why(made, "schedule").why, why(made, "model").why) == ("asked for",) * 3


@pytest.mark.usefixtures("fast")
def test_a_new_model_learns_by_muon_where_that_was_measured(prepared: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """From nothing, in one process, on a CPU, up to a width; and whatever a person asks for."""
    request = TrainRequest(data=None, preset="small", steps=50)
    here = plan(prepared, preset="small", steps=50)
    assert here.recipe.optimizer.name == "muon" and "in equal time" in why(here, "optimizer").why
    rounded = RecipePlanner(prepared, ComputeSetup(torch.device("cpu"), "masters", 1), request).plan()
    assert rounded.recipe.optimizer.name == "muon"
    asked = plan(prepared, {"optimizer": {"name": "adamw"}}, preset="small", steps=50)
    wide = plan(prepared, preset="base", steps=50)
    older = FineTuning(bundle="old", replay=0.5)
    going_on = plan(prepared, steps=50, model=here.recipe.model, fine_tuning=older)
    elsewhere = RecipePlanner(prepared, ComputeSetup(torch.device("xpu"), "masters", 1), request).plan()
    monkeypatch.setenv("WORLD_SIZE", "2")
    others = [asked, wide, going_on, elsewhere, plan(prepared, preset="small", steps=50)]
    assert [each.recipe.optimizer.name for each in others] == ["adamw"] * 5
    assert all("optimizer" not in {choice.name for choice in each.chosen} for each in others)


@pytest.mark.usefixtures("fast")
def test_pairs_that_the_model_has_no_positions_for_are_left_out_of_batches(prepared: PreparedCorpus) -> None:
    recipe = plan(prepared, {"model": {"max_length": 30}}, preset="toy", steps=5).recipe
    assert (recipe.batch.longest, recipe.model.max_length) == (29, 30)


@pytest.mark.usefixtures("fast")
def test_the_largest_pair_that_is_allowed_fits_into_a_batch(prepared: PreparedCorpus) -> None:
    batch = plan(prepared, preset="toy", steps=5).recipe.batch
    assert batch.longest is not None and batch.budget >= 2 * (batch.longest + 1)


@pytest.mark.usefixtures("fast")
def test_the_steps_take_the_time_of_the_budget(prepared: PreparedCorpus) -> None:
    """What is reserved for the end, spent before and given to validation is not trained in."""
    made = plan(with_text(prepared, 500_000), preset="small", budget_seconds=1_000, spent=100)
    pieces = made.recipe.schedule.steps * BATCH[0]
    assert 0.9 * (1_000 - 35 - 100) * 10_000 < pieces < (1_000 - 35 - 100) * 10_000
    assert "within the budget" in why(made, "schedule").why


def test_what_frequencies_tell_is_the_entropy_of_the_pieces(prepared: PreparedCorpus, tmp_path: Path) -> None:
    """By hand, from the ids and one end for each pair; of a text that is gone nothing."""
    pairs = prepared.split("train")
    ids = pairs.ids(np.arange(pairs.rows, dtype=np.int64))[1].values.tolist()
    counts = Counter([*ids, *[prepared.manifest.marks.end] * pairs.rows]).values()
    entropy = -sum(n / sum(counts) * math.log(n / sum(counts)) for n in counts)
    assert frequencies(prepared) == frequencies_in(prepared.folder) == pytest.approx(entropy)
    assert frequencies_in(tmp_path) is None


@pytest.mark.usefixtures("fast")
def test_a_budget_that_ends_in_nothing_usable_is_told_before_it_is_spent(prepared: PreparedCorpus) -> None:
    """And the one that it names is not told so."""
    text = with_text(prepared, 500_000)
    made = plan(text, preset="small", budget_seconds=60)
    said = why(made, "expect")
    assert said.value.startswith(NOT_ENOUGH)
    minutes = float(re.findall(r"--budget (\d+)m", said.why)[0])
    enough = plan(text, preset="small", budget_seconds=60 * minutes)
    assert "expect" not in [each.name for each in enough.chosen]
    assert "--steps" in why(plan(text, preset="small", steps=30), "expect").why


@pytest.mark.usefixtures("fast")
def test_a_text_that_is_learnt_before_the_time_is_up_ends_the_run(prepared: PreparedCorpus) -> None:
    """As without a budget; and the time that is left makes no more steps of it."""
    text = with_text(prepared, 500_000)
    long, short = (plan(text, preset="small", budget_seconds=hours * 3_600) for hours in (5, 0.4))
    assert long.recipe.schedule.steps < 5 * 3_600 * 10_000 / BATCH[0] / 2
    assert why(long, "schedule").value.endswith("40.0 epochs") and "before the budget" in why(long, "schedule").why
    assert (long.recipe.schedule.fixed, short.recipe.schedule.fixed) == (True, False)


@pytest.mark.usefixtures("fast")
def test_r_drop_has_half_the_steps(prepared: PreparedCorpus) -> None:
    one, two = (plan(prepared, changes, preset="small", budget_seconds=1_000).recipe.schedule.steps for changes in ({}, {"r_drop": 5.0}))
    assert two == pytest.approx(one / 2, rel=0.01)


@pytest.mark.usefixtures("fast")
def test_a_budget_that_preparation_used_up_is_said(prepared: PreparedCorpus) -> None:
    made = plan(with_text(prepared, 500_000), preset="small", budget_seconds=30, spent=55.0)
    reason = why(made, "schedule").why
    assert "55 of the 30 seconds" in reason and "give a larger one" in reason
    assert "within the budget" not in reason
    assert made.recipe.schedule.steps == max(LEAST_STEPS, int(LEAST_TRAINING * 10_000 / BATCH[0]))


@pytest.mark.usefixtures("fast")
def test_without_a_budget_it_stops_when_it_no_longer_improves(prepared: PreparedCorpus) -> None:
    made = plan(with_text(prepared, 1_000_000))
    assert made.recipe.validation.patience is not None
    assert made.recipe.budget_seconds is None
    assert why(made, "schedule").value.endswith("40.0 epochs")
    assert "about 67 minutes at most" in why(made, "schedule").why
    assert plan(prepared, budget_seconds=600).recipe.validation.patience is None


@pytest.mark.usefixtures("fast")
def test_epochs_are_those_of_the_batches_that_will_be_seen(prepared: PreparedCorpus) -> None:
    made = plan(with_text(prepared, 70_000), {"batch": {"budget": 1_400}}, preset="toy", steps=1_000)
    assert why(made, "schedule").value == "1,000 steps, 10.0 epochs"
    assert why(made, "dropout") == RunChoice("dropout", "0.2", "the text is seen 10.0 times")


@pytest.mark.usefixtures("fast")
def test_a_text_that_is_seen_more_often_gets_more_dropout(prepared: PreparedCorpus) -> None:
    rates = [plan(with_text(prepared, text), steps=1_000).recipe.model.dropout for text in (20_000, 200_000, 900_000)]
    assert rates == [0.3, 0.2, 0.1]


@pytest.mark.slow  # it is the first that measures
def test_a_text_that_is_seen_many_times_is_validated_once_each(prepared: PreparedCorpus) -> None:
    """The weights are the mean of the last ten validations, which are an epoch apart then."""
    often, seldom = (plan(with_text(prepared, text), steps=3_000).recipe for text in (200_000, 900_000))
    assert often.schedule.name == "inverse_sqrt" and often.average.latest and often.validation.every == 65
    assert seldom.schedule.name == "stable_decay" and not seldom.average.latest and seldom.validation.every == 150


@pytest.mark.usefixtures("fast")
def test_a_long_run_with_enough_to_validate_on_chooses_its_search(prepared: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    few = prepared.split("valid").fed
    assert not plan(prepared, steps=1_000).recipe.validation.search, "too few to choose by"
    monkeypatch.setattr(choose, "LEAST_TO_CHOOSE_BY", few)
    assert plan(prepared, steps=1_000).recipe.validation.search
    assert not plan(prepared, steps=400).recipe.validation.search
    assert not plan(prepared, steps=1_000, budget_seconds=600).recipe.validation.search
    assert not plan(prepared, {"validation": {"search": False}}, steps=1_000).recipe.validation.search


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("brought", "parent", "chooses"), [(False, None, True), (True, None, False), (True, "en to de", True)])
def test_what_brings_a_search_along_chooses_none(
    prepared: PreparedCorpus, monkeypatch: pytest.MonkeyPatch, brought: bool, parent: str | None, chooses: bool
) -> None:
    monkeypatch.setattr(choose, "LEAST_TO_CHOOSE_BY", prepared.split("valid").fed)
    search = SearchSettings(length_penalty=1.4 if brought else SearchSettings().length_penalty)
    old = FineTuning(bundle="b", inherits=Inherited(search=search), parent=parent)
    model = ModelConfig.preset("toy", prepared.manifest.vocab_sizes[1])
    made = plan(prepared, steps=1_000, fine_tuning=old, model=model)
    assert made.recipe.validation.search == any(each.name == "search" for each in made.chosen) == chooses


@pytest.mark.usefixtures("fast")
def test_a_step_sees_a_small_part_of_a_short_text(prepared: PreparedCorpus) -> None:
    """Also in a long run, for which the batch would grow."""
    made = plan(with_text(prepared, 60_000), {"model": {"max_length": 100}}, preset="toy", steps=100_000)
    assert made.recipe.batch.budget == 2 * 6_000 and made.recipe.accumulate == 1
    assert "6,000 target pieces a step" in why(made, "batch").value and "short" in why(made, "batch").why
    assert why(made, "schedule").value == "100,000 steps, 10000.0 epochs"
    tiny = plan(with_text(prepared, 2_000), {"model": {"max_length": 100}}, preset="toy", steps=100_000).recipe
    assert tiny.batch.budget == 2 * LEAST_BATCH
    long = plan(with_text(prepared, 900_000), preset="toy", steps=100_000)
    assert long.recipe.batch.budget * long.recipe.accumulate == pytest.approx(2 * BATCH[1], abs=4)


@pytest.mark.usefixtures("fast")
def test_a_text_that_one_batch_holds_is_seen_once_in_a_step(prepared: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little memory there is: the longest pair needs a larger batch than this text."""
    monkeypatch.setattr(choose, "memory_at_hand", lambda device: 300)
    made = plan(with_text(prepared, 900), preset="toy", steps=100)
    assert made.recipe.accumulate == 1 and why(made, "schedule").value == "100 steps, 100.0 epochs"
    assert plan(with_text(prepared, 90_000), preset="toy", steps=100).recipe.accumulate > 1


def test_padding_is_no_text(prepared: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    text = with_text(prepared, 500_000)
    chosen, asked_for = [], []
    for padding in (0.0, 0.2):
        measured = CalibrationResult(10_000.0, 1, None, 1.0, padding)
        monkeypatch.setattr(choose, "calibrate", lambda *given, measured=measured: measured)
        chosen.append(plan(text, preset="small", budget_seconds=1_000).recipe)
        asked_for.append(plan(text, {"batch": {"budget": 4_000}}, preset="small", budget_seconds=1_000).recipe)
    dense, padded = chosen
    assert padded.batch.budget == pytest.approx(dense.batch.budget / 0.8, rel=0.001)
    assert padded.schedule.steps == pytest.approx(dense.schedule.steps, rel=0.001)
    dense, padded = asked_for
    assert padded.batch.budget == dense.batch.budget == 4_000
    assert padded.schedule.steps == pytest.approx(dense.schedule.steps / 0.8, rel=0.001)


def test_little_is_measured_when_the_steps_are_given(prepared: PreparedCorpus, fast: list[float]) -> None:
    plan(prepared, preset="toy", steps=20)
    plan(prepared, preset="toy", budget_seconds=600)
    assert fast == [2.0, 12.0]


@pytest.mark.usefixtures("fast")
def test_fine_tuning_keeps_the_shape_and_learns_slower(prepared: PreparedCorpus) -> None:
    old = ModelConfig.preset("tiny", prepared.manifest.vocab_sizes[1], max_length=200)
    tuning = FineTuning(bundle="en-de", replay=0.5)
    new = plan(prepared, preset="tiny", steps=400).recipe
    recipe = plan(prepared, {"model": {"dropout": 0.25}}, model=old, fine_tuning=tuning, steps=400).recipe
    assert recipe.model == old.changed(dropout=0.25)
    assert recipe.batch.longest == 199
    assert recipe.optimizer.learning_rate == peak_rate(new.model) / 4
    assert recipe.fine_tuning == tuning
    often = plan(prepared, model=old.changed(dropout=0.15), fine_tuning=tuning, steps=100_000)
    assert often.recipe.model.dropout == 0.15
    assert why(often, "dropout").why == "that of the translator it goes on from"
    with pytest.raises(ConfigError, match=r"(?s)without --from.*model.d_model=64, but it has d_model=128"):
        plan(prepared, {"model": {"d_model": 64}}, model=old, fine_tuning=tuning, steps=4)


@pytest.mark.usefixtures("fast")
def test_a_recipe_survives_its_file(prepared: PreparedCorpus, tmp_path: Path) -> None:
    recipe = plan(prepared, budget_seconds=600, seed=9).recipe
    recipe.save(tmp_path / "recipe.toml")
    assert Recipe.load(tmp_path / "recipe.toml") == recipe


def test_weights_of_corpora_count_in_how_much_text_there_is(prepared: PreparedCorpus) -> None:
    manifest = prepared.manifest
    once = PreparedText.of(manifest)
    thrice = PreparedText.of(manifest.changed(corpora=[each.changed(weight=3.0) for each in manifest.corpora]))
    assert (thrice.pairs, thrice.source, thrice.target) == pytest.approx((3 * once.pairs, 3 * once.source, 3 * once.target))


def test_changes_are_merged_key_by_key() -> None:
    assert merge({"a": {"x": 1, "y": 2}, "b": None}, {"a": {"y": 3}, "b": {"z": 4}}) == {
        "a": {"x": 1, "y": 3},
        "b": {"z": 4},
    }


def test_a_measurement_counts_target_pieces(prepared: PreparedCorpus) -> None:
    config = ModelConfig.preset("toy", prepared.manifest.vocab_sizes[1])
    batch = choose.BatchSettings(budget=800)
    found = calibrate(config, prepared, batch, OptimizerSettings(), CPU, 0.2)
    assert found.pieces_per_second > 100
    assert (found.threads, found.one_thread) == (torch.get_num_threads(), None)
    assert 0 < found.padding < 0.5
    assert found.bytes_per_cell > 100


@pytest.mark.slow
def test_a_measurement_takes_both_passes_of_r_drop(prepared: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float | None] = []
    gradients = calibrate_file.gradients
    monkeypatch.setattr(calibrate_file, "gradients", lambda *given, **more: asked.append(more["r_drop"]) or gradients(*given, **more))
    config = ModelConfig.preset("toy", prepared.manifest.vocab_sizes[1])
    calibrate(config, prepared, choose.BatchSettings(budget=800), OptimizerSettings(), CPU, 0.01, 5.0)
    assert set(asked) == {5.0}


def test_memory_that_was_held_before_does_not_hide_what_a_step_needs(prepared: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system tells the most that was ever held, and preparing a corpus may hold more than a few steps."""
    config = ModelConfig.preset("toy", prepared.manifest.vocab_sizes[1])
    monkeypatch.setattr(calibrate_file, "memory_held", lambda device: 1 << 50)
    found = calibrate(config, prepared, choose.BatchSettings(budget=800), OptimizerSettings(), CPU, 0.01)
    assert found.bytes_per_cell == estimate_bytes(config, "float32") == 4 * 64 * 2 * 30
    assert estimate_bytes(config, "masters") == 2 * 64 * 2 * 30


def test_memory_grows_from_what_is_held_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier peak, which is free again, is not held."""
    monkeypatch.setattr(calibrate_file, "memory_held", lambda device: 900)
    assert MemoryBaseline(now=300, most=800).measure_growth(CPU.device) == 600
    assert MemoryBaseline(now=300, most=900).measure_growth(CPU.device) is None
    assert MemoryBaseline(now=None, most=800).measure_growth(CPU.device) is None


# From what is asked for to a recipe.


def asked(prepared: PreparedCorpus, tmp_path: Path, **more: Any) -> tuple[Recipe, list[RunChoice]]:
    said: list[RunChoice] = []
    data = choose.Recipe.model_fields["data"].annotation(**prepared.manifest.settings)  # type: ignore[misc, union-attr]
    before = torch.get_num_threads()
    try:
        return resolve_recipe(TrainRequest(**{"data": data, "preset": "toy", **more}), prepared, 0.0, said.append), said
    finally:
        torch.set_num_threads(before)


@pytest.mark.usefixtures("fast")
def test_a_key_of_the_recipe_is_as_good_as_its_option(prepared: PreparedCorpus, tmp_path: Path) -> None:
    changes = {
        "schedule": {"steps": 6},
        "seed": 4,
        "machine": {"precision": "autocast", "device": "cpu", "threads": 1},
    }
    by_key, said = asked(prepared, tmp_path, changes=changes)
    by_name, _ = asked(prepared, tmp_path, steps=6, seed=4, precision="autocast", device="cpu", threads=1)
    assert by_key == by_name
    assert by_key.schedule.warmup < 6 and by_key.batch.seed == 4
    assert RunChoice("numbers", "autocast", "asked for") in said
    budget, _ = asked(prepared, tmp_path, changes={"budget_seconds": 60.0})
    assert budget == asked(prepared, tmp_path, budget_seconds=60.0)[0]


@pytest.mark.usefixtures("fast")
def test_a_device_that_is_not_there_is_refused_wherever_it_is_written(prepared: PreparedCorpus, tmp_path: Path) -> None:
    recipe, _ = asked(prepared, tmp_path, steps=3)
    for more in (
        {"changes": {"machine": {"device": "hpu"}}},
        {"data": None, "recipe": recipe.changed(machine=recipe.machine.changed(device="hpu"))},
    ):
        with pytest.raises(RuntimeChoiceError, match="try cpu"):
            asked(prepared, tmp_path, **more)


@pytest.mark.usefixtures("fast")
def test_what_is_asked_wins_over_what_is_written(prepared: PreparedCorpus, tmp_path: Path) -> None:
    recipe, _ = asked(prepared, tmp_path, steps=30, seed=2, precision="float32", threads=1)
    again, _ = asked(prepared, tmp_path, data=None, recipe=recipe)
    assert again == recipe
    other, _ = asked(prepared, tmp_path, data=None, recipe=recipe, steps=40, seed=3, precision="autocast")
    assert (other.schedule.steps, other.seed, other.machine.precision) == (40, 3, "autocast")


@pytest.mark.usefixtures("fast")
def test_threads_of_a_recipe_that_this_machine_has_not_are_left_out_and_those_asked_for_are_not(
    prepared: PreparedCorpus, tmp_path: Path
) -> None:
    recipe, _ = asked(prepared, tmp_path, steps=30, threads=1)
    written = recipe.changed(machine=recipe.machine.changed(threads=4096))
    here, said = asked(prepared, tmp_path, data=None, recipe=written)
    assert here.machine.threads == count_threads().value
    assert any(each.name == "threads" and "in place of 4096" in each.why for each in said)
    more = count_threads().value + 1
    for given in ({"threads": more}, {"changes": {"machine": {"threads": more}}}):
        assert asked(prepared, tmp_path, data=None, recipe=written, **given)[0].machine.threads == more


@pytest.mark.usefixtures("fast")
def test_a_model_of_other_pieces_is_refused(prepared: PreparedCorpus, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"500 and 500 pieces.*data.pieces.size"):
        asked(prepared, tmp_path, steps=3, changes={"model": {"vocab_size": 500}})


def test_text_too_short_to_validate_is_refused_before_anything_is_measured(
    prepared: PreparedCorpus, tmp_path: Path, fast: list[float]
) -> None:
    splits = {**prepared.manifest.splits, "valid": []}
    short = replace(prepared, manifest=prepared.manifest.changed(splits=splits))
    with pytest.raises(DataError, match=r"could be set aside for validation.*--valid, or more text"):
        asked(short, tmp_path, steps=3)
    assert fast == []


@pytest.mark.usefixtures("fast")
def test_more_time_or_steps_make_the_same_run_longer(prepared: PreparedCorpus, tmp_path: Path) -> None:
    recipe, _ = asked(prepared, tmp_path, steps=30)
    assert extend_recipe(recipe, TrainRequest(data=recipe.data)) == recipe
    assert extend_recipe(recipe, TrainRequest(data=recipe.data, steps=50)).schedule.steps == 50
    assert extend_recipe(recipe, TrainRequest(data=recipe.data, budget_seconds=90.0)).budget_seconds == 90


@pytest.mark.usefixtures("fast")
def test_a_run_that_goes_on_takes_the_device_and_the_threads_that_are_asked_for(prepared: PreparedCorpus, tmp_path: Path) -> None:
    recipe, _ = asked(prepared, tmp_path, steps=30)
    was, told = recipe.changed(machine=recipe.machine.changed(threads=4096, device="cuda", precision="float32")), list[RunChoice]()
    moved = extend_recipe(was, TrainRequest(data=recipe.data, threads=1, device="cpu"), told.append).machine
    assert (moved.threads, moved.device) == (1, "cpu") and [each.name for each in told] == ["device", "threads"]
    assert extend_recipe(was, TrainRequest(data=recipe.data)).machine.threads == count_threads().value  # the machine has no 4,096
    with pytest.raises(ConfigError, match="this run computes in float32"):
        extend_recipe(was, TrainRequest(data=recipe.data, precision="masters"))
