"""What a plan says of a text and of a run, against the text prepared and the formulas it is made of."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from made_sentences import sentences
from prepare_command import pieces_model, write_pairs

from limelight.corpus import prepare as preparing
from limelight.corpus.config import CorpusSettings, FilterSettings, HeldOutSettings, PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.prepare import prepare
from limelight.errors import ConfigError, DataError
from limelight.model.config import ModelConfig
from limelight.planning.cost.memory import checkpoint_bytes
from limelight.planning.cost.parallel import Parallel
from limelight.planning.cost.shape import BatchShape
from limelight.planning.time.described_time import StepTime
from limelight.planning.time.devices import device
from limelight.training.config import Recipe
from limelight.training.forecast.forecast import ForecastRequest, curves, forecast
from limelight.training.forecast.simulated_ranks import simulate_step
from limelight.training.forecast.text_sample import sample_text
from limelight.training.forecast.text_size import EpochSize, measure_prepared, typical


@pytest.fixture(autouse=True)
def no_report() -> Any:
    """Its pictures take longer to draw than a small corpus to prepare."""
    with mock.patch.object(preparing, "page", lambda manifest: ""):
        yield


def settings(folder: Path, count: int = 400, times: int = 1, **more: Any) -> PrepareSettings:
    paths = write_pairs(list(sentences(count)) * times, folder)
    corpus = CorpusSettings(name="train", paths=[str(path) for path in paths], **more)
    return PrepareSettings(
        languages=("en", "de"),
        corpora=[corpus],
        filters=FilterSettings(wrong_language="off"),
        held_out=HeldOutSettings(valid_pairs=20, test_pairs=20),
        given_pieces=[str(pieces_model())],
    )


def seen_by_sample(asked: PrepareSettings, work: Path, most: int) -> EpochSize:
    work.mkdir()
    return sample_text(asked, LocalEngine(0), work, lambda progress: None, most)


def seen_prepared(asked: PrepareSettings, folder: Path) -> EpochSize:
    prepare(asked, folder, LocalEngine(0), lambda progress: None)
    return measure_prepared(folder)


def test_a_sample_tells_pairs_and_pieces_of_the_whole_text(tmp_path: Path) -> None:
    asked = settings(tmp_path)
    whole, sample = seen_prepared(asked, tmp_path / "whole"), seen_by_sample(asked, tmp_path / "work", 100)
    assert sample.sampled == 100
    assert (sample.read, sample.pairs, sample.vocab_sizes) == (400, whole.pairs, whole.vocab_sizes)
    assert sample.source == pytest.approx(whole.source, rel=0.05)
    assert sample.target == pytest.approx(whole.target, rel=0.05)


def test_a_text_that_fits_into_the_sample_is_told_exactly_but_for_what_is_held_out(tmp_path: Path) -> None:
    asked = settings(tmp_path)
    held_out = HeldOutSettings(valid_pairs=0, test_pairs=0)
    whole = seen_prepared(asked.changed(held_out=held_out), tmp_path / "whole")
    sample = seen_by_sample(asked.changed(held_out=held_out), tmp_path / "work", 1000)
    assert (sample.pairs, sample.source, sample.target) == pytest.approx((whole.pairs, whole.source, whole.target))
    assert sample.longest == whole.longest


def test_a_text_whose_every_second_sentence_is_short_is_told_as_well(tmp_path: Path) -> None:
    """As Multi30k is: one in so many would take only the long ones, or only the short ones."""
    made = sentences(600)
    long = [(f"{a} {b}", f"{c} {d}") for (a, c), (b, d) in zip(made[:200], made[200:400], strict=True)]
    paths = write_pairs([pair for both in zip(long, made[400:], strict=True) for pair in both], tmp_path / "text")
    asked = settings(tmp_path).changed(corpora=[CorpusSettings(name="train", paths=[str(path) for path in paths])])
    whole, sample = seen_prepared(asked, tmp_path / "whole"), seen_by_sample(asked, tmp_path / "work", 200)
    assert sample.target == pytest.approx(whole.target, rel=0.08)


def test_copies_are_counted_in_the_whole_text_since_a_sample_has_few_of_them(tmp_path: Path) -> None:
    once = seen_by_sample(settings(tmp_path / "a"), tmp_path / "one", 50)
    twice = seen_by_sample(settings(tmp_path / "b", times=2), tmp_path / "two", 50)
    assert twice.read == 2 * once.read
    assert twice.pairs == pytest.approx(once.pairs, rel=0.02)
    assert twice.dropped == pytest.approx(0.5, abs=0.02)


def test_a_corpus_that_is_seen_twice_has_twice_the_pairs(tmp_path: Path) -> None:
    plain = seen_by_sample(settings(tmp_path / "a"), tmp_path / "one", 100)
    weighed = seen_by_sample(settings(tmp_path / "b", weight=2.0), tmp_path / "two", 100)
    assert weighed.pairs == pytest.approx(2 * plain.pairs)


def test_a_sample_writes_nothing_beside_its_folder(tmp_path: Path) -> None:
    asked = settings(tmp_path / "text")
    before = sorted(tmp_path.rglob("*"))
    seen_by_sample(asked, tmp_path / "work", 50)
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_relative_to(tmp_path / "work")]
    assert [path for path in sorted(tmp_path.rglob("*")) if not path.is_relative_to(tmp_path / "work")] == before


def test_an_empty_text_is_refused_with_what_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="check-only"):
        seen_by_sample(settings(tmp_path, count=0), tmp_path / "work", 50)


def asked_of(on: str = "H100", **more: Any) -> ForecastRequest:
    values: dict[str, Any] = {
        "seen": typical(4.5e6),
        "device": device(on),
        "count": 1,
        "precision": "masters",
        "seconds": 7_200.0,
    }
    return ForecastRequest(**{**values, **more})


@pytest.mark.slow
def test_a_plan_keeps_to_the_budget_with_all_that_comes_before_and_after_training() -> None:
    for seconds in (600.0, 7_200.0, 86_400.0):
        found = forecast(asked_of(seconds=seconds))
        assert found.preparing > 0
        assert found.seconds <= 1.01 * seconds or found.preparing > 0.5 * seconds


@pytest.mark.slow
def test_more_time_and_more_devices_never_make_a_plan_worse() -> None:
    losses = [forecast(asked_of(seconds=3_600.0 * hours, is_prepared=True)).chosen.expected.loss for hours in (1, 4, 16)]
    assert losses == sorted(losses, reverse=True)
    times = [forecast(asked_of(seconds=None, name="base", count=count)).chosen.seconds for count in (1, 2, 8)]
    assert times == sorted(times, reverse=True)


@pytest.mark.slow
def test_a_preset_that_was_asked_for_is_planned_even_if_it_is_never_advised() -> None:
    found = forecast(asked_of(name="toy"))
    assert found.chosen.name == "toy"
    assert found.chosen.config.d_model == ModelConfig.preset("toy", 8000).d_model


@pytest.mark.slow
def test_keys_of_the_model_are_in_every_size_that_is_weighed() -> None:
    found = forecast(asked_of(model={"norm": "rms", "decoder_layers": 2}))
    assert {each.config.norm for each in (found.chosen, *found.others)} == {"rms"}
    assert {each.config.decoder_layers for each in (found.chosen, *found.others)} == {2}


@pytest.mark.slow
def test_every_size_is_weighed_once() -> None:
    for question in (asked_of(), asked_of(model={"norm": "rms"}), asked_of(recipe=recipe())):
        found = forecast(question)
        names = [each.name for each in (found.chosen, *found.others)]
        assert len(names) == len(set(names)), names


def recipe(**more: Any) -> Recipe:
    data = PrepareSettings(languages=("en", "de"), corpora=[CorpusSettings(name="a", paths=["a.en", "a.de"])])
    values: dict[str, Any] = {
        "data": data, "model": ModelConfig.preset("small", 8_000, dropout=0.25), "schedule": {"steps": 1234}, "batch": {"budget": 8_192},
    }  # fmt: skip
    return Recipe(**{**values, **more})


@pytest.mark.slow
def test_a_recipe_decides_model_batch_and_steps() -> None:
    found = forecast(asked_of(recipe=recipe(accumulate=3), seconds=None))
    assert found.chosen.steps == 1234
    assert found.chosen.accumulate == 3
    assert found.chosen.pieces == pytest.approx(3 * 8_192 / 2)  # half of the cells are of the target
    assert found.chosen.config == recipe().model
    assert found.chosen.name == "small"


@pytest.mark.slow
def test_a_batch_that_grows_needs_no_more_memory_since_it_comes_in_parts() -> None:
    schedule = {"steps": 1000, "warmup": 100}
    plain, grown = (forecast(asked_of(recipe=recipe(schedule={**schedule, "batch_growth": each}), seconds=None)) for each in (1, 5))
    assert grown.shape == plain.shape and grown.peak.total == plain.peak.total


@pytest.mark.slow
def test_every_pass_gathers_the_weights_that_several_devices_share() -> None:
    asked = {"count": 64, "seconds": None, "timing": lambda *_: StepTime(1.0, 0.25, 0.5)}
    made = [
        forecast(asked_of(recipe=recipe(model=ModelConfig.preset("3b", 32_000), accumulate=passes), **asked)).chosen for passes in (1, 8)
    ]
    assert all(each.parallel.sharded for each in made)
    assert [each.step for each in made] == [StepTime(1.0, 0.25, 0.5), StepTime(8.0, 2.0, 4.0)]


@pytest.mark.slow
def test_batches_that_grow_take_longer_and_see_more() -> None:
    schedule = {"steps": 1000, "warmup": 100}
    plain, grown = (forecast(asked_of(recipe=recipe(schedule={**schedule, "batch_growth": each}), seconds=None)).chosen for each in (1, 5))
    assert grown.pieces == pytest.approx(2 * plain.pieces) and grown.epochs == pytest.approx(2 * plain.epochs)
    assert grown.step.computing == pytest.approx(2 * plain.step.computing)


@pytest.mark.slow
def test_two_passes_of_r_drop_take_twice_as_long() -> None:
    plain, twice = (forecast(asked_of(recipe=recipe(r_drop=each), seconds=None)).chosen.step for each in (None, 1.0))
    assert twice.computing == pytest.approx(2 * plain.computing)


@pytest.mark.slow
def test_a_measured_speed_takes_the_place_of_the_assumed_one() -> None:
    found = forecast(asked_of("CPU-AVX512", timing=lambda *_: StepTime(2.5, 0.0, 0.0), name="small"))
    assert found.chosen.step.worst == pytest.approx(2.5 * found.chosen.accumulate)


@pytest.mark.slow
def test_the_memory_of_long_sentences_is_planned_for_and_they_need_more() -> None:
    question = asked_of("CPU-AVX512", name="small")
    long = replace(question, seen=replace(question.seen, longest=(500, 500)))
    assert forecast(long).peak.total > 1.2 * forecast(question).peak.total


@pytest.mark.slow
def test_disk_holds_one_checkpoint_more_than_are_kept() -> None:
    found = forecast(asked_of(recipe=recipe(checkpoints={"keep": 4})))
    assert found.disk["checkpoints"] == 5 * checkpoint_bytes(found.chosen.config)


@pytest.mark.slow
def test_muon_keeps_less_in_memory_and_on_disk() -> None:
    by = {name: forecast(asked_of(recipe=recipe(optimizer={"name": name}))) for name in ("adamw", "muon")}
    assert by["muon"].peak.parts["moments"] < 0.9 * by["adamw"].peak.parts["moments"]
    assert by["muon"].disk["checkpoints"] < 0.95 * by["adamw"].disk["checkpoints"]


@pytest.mark.slow
def test_an_outlook_is_json() -> None:
    import json

    values = json.loads(json.dumps(forecast(asked_of()).values()))
    assert values["memory"]["total"] == pytest.approx(sum(values["memory"]["parts"].values()))
    assert values["seconds"]["total"] == pytest.approx(sum(v for k, v in values["seconds"].items() if k != "total"))
    assert sum(values["model"]["parameters"].values()) > 1e6


def test_curves_say_when_more_devices_stop_to_help() -> None:
    found = curves(asked_of(seen=typical(200_000)))
    assert found.devices[0].count == 1
    assert found.devices[-1].count == 1024
    assert found.useful < 1024  # a small text


@pytest.mark.slow
def test_what_is_played_equals_the_formulas_and_a_wrong_formula_is_found_out() -> None:
    shape = BatchShape.padded(4, 8, 8)
    found = simulate_step(ModelConfig.preset("toy", 503), Parallel("fsdp", shards=1024), "masters", shape)
    assert found.ranks == 1024
    assert not found.differing
    assert all(row.counted > 0 for row in found.rows if "all-reduce" not in row.what)
    wrong = replace(found, rows=(*found.rows, replace(found.rows[0], planned=found.rows[0].planned + 1)))
    assert len(wrong.differing) == 1


@pytest.mark.parametrize(
    ("parallel", "precision", "said"),
    [
        (Parallel(), "masters", "this plan has one"),
        (Parallel("fsdp", shards=2048), "masters", "at most 1,024"),
        (Parallel("ddp", replicas=8), "float32", "--precision masters"),
    ],
)
def test_what_cannot_be_played_is_refused(parallel: Parallel, precision: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        simulate_step(ModelConfig.preset("toy", 503), parallel, precision, BatchShape.padded(4, 8, 8))
