"""Switches of a recipe: batches that grow, both directions at first, a search chosen at the end, the latest weights, a rate too high."""

import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from prepared_corpora import make
from small_runs import DONE, STOPPED, Signal, Small, batches, check_equal, make_corpus, recipe, story

from limelight import bundle
from limelight.config import Settings
from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.planning.sizing_rules import TOO_HIGH, explain_high_rate, peak_rate
from limelight.training.checkpoints.best_weights import BestWeights
from limelight.training.config import AverageSettings, Recipe, ScheduleSettings, ValidationSettings
from limelight.training.recipe.request import TrainRequest
from limelight.training.recipe.resolve import _check_both_directions, extend_recipe
from limelight.training.run_folder import BUNDLE, RunFacts
from limelight.training.step.budget_clock import BudgetClock
from limelight.training.step.learning_rate import compute_growth_ahead, count_batches
from limelight.training.validation.final_weights import PENALTIES, RemainingBudget, Winner, choose_search, choose_winner
from limelight.training.validation.validator import ValidationResult

# Recipes.


def test_what_is_usual_is_not_written() -> None:
    for settings, keys in (
        (ScheduleSettings(), {"batch_growth", "both_directions"}),
        (AverageSettings(), {"latest"}),
        (ValidationSettings(), {"search"}),
    ):
        assert not keys & settings.model_dump().keys()
        assert type(settings).from_toml(settings.to_toml()) == settings
    changed: list[Settings] = [
        ScheduleSettings(batch_growth=2, both_directions=0.3),
        AverageSettings(latest=True),
        ValidationSettings(search=True),
    ]
    for each in changed:
        assert type(each).from_toml(each.to_toml()) == each != type(each)()


def test_a_growth_that_adds_no_batch_is_refused(tmp_path: Path) -> None:
    data = {"languages": ("en", "de"), "corpora": [{"name": "a", "paths": ["a"]}]}
    given: dict[str, Any] = {"data": data, "model": {"vocab_size": 100}, "schedule": {"batch_growth": 1.2}}
    with pytest.raises(ConfigError, match=r"batch_growth=1\.2 adds no whole batch to accumulate=1; try 2"):
        Recipe(**given)
    assert Recipe(**given, accumulate=5).schedule.batch_growth == 1.2


def test_a_run_that_is_given_more_steps_keeps_its_warm_up() -> None:
    given = recipe(Path("nowhere"), schedule={"steps": 1000, "warmup": 300})
    asked = {steps: extend_recipe(given, TrainRequest(data=None, steps=steps)).schedule for steps in (2000, 500)}
    assert (asked[2000].steps, asked[2000].warmup) == (2000, 300)
    assert (asked[500].steps, asked[500].warmup) == (500, 50)


# Batches that grow.


def test_batches_grow_from_the_middle_to_the_end() -> None:
    settings = ScheduleSettings(steps=100, warmup=1, batch_growth=3)
    counts = [count_batches(step, settings, 4) for step in range(1, 101)]
    assert set(counts[:50]) == {4} and counts[-1] == 12 and counts == sorted(counts)
    assert count_batches(300, settings, 4) == 12  # a run that was cut short of its schedule, and one beyond it
    assert {count_batches(step, ScheduleSettings(steps=100), 4) for step in range(1, 101)} == {4}


@pytest.mark.parametrize("step", [0, 20, 50, 70, 99, 100])
@pytest.mark.parametrize("growth", [1.0, 2.0, 5.0])
def test_the_steps_to_come_are_known_to_be_heavier(step: int, growth: float) -> None:
    settings = ScheduleSettings(steps=100, warmup=1, batch_growth=growth)
    ahead = [count_batches(each, settings, 50) for each in range(step + 1, 101)] or [1]
    now = count_batches(step, settings, 50) if step < 100 else 1
    assert compute_growth_ahead(step, settings, 50) == pytest.approx(sum(ahead) / len(ahead) / now, rel=0.03)


def test_a_budget_has_room_for_fewer_steps_when_they_become_heavier() -> None:
    pace = BudgetClock(1000.0, 100)
    for _ in range(60):
        pace.add_step(1.0)
    usual, heavier = pace.replan(60, 5_000), pace.replan(60, 5_000, heavier=2.0)
    assert usual is not None and heavier is not None and heavier - 60 == pytest.approx((usual - 60) / 2, abs=1)


# Both directions at first.

SETTINGS = BatchSettings(budget=180, window=160, longest=40)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return PreparedCorpus.open(make(tmp_path_factory.mktemp("turned") / "prepared"))


def rows_of(loader: Loader, count: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Source and target of each row of the next batches, without padding."""
    found = []
    for _ in range(count):
        share = next(loader)
        found += [
            tuple(tuple(int(number) for number in side if number) for side in pair) for pair in zip(share.source, share.target, strict=True)
        ]
    return found  # type: ignore[return-value]


def test_an_epoch_has_every_pair_both_ways_round(prepared: PreparedCorpus) -> None:
    pairs = prepared.split("train")
    with Loader(prepared, SETTINGS.changed(budget=400, longest=None), turned=True) as loader:
        numbers = Counter(int(number) for share in loader.epoch(0) for number in share.samples)
    forward, turned = (Counter({n % pairs.rows: c for n, c in numbers.items() if (n >= pairs.rows) == way}) for way in (False, True))
    assert forward.keys() == turned.keys() and len(forward) == pairs.rows
    assert forward.total() == pytest.approx(turned.total(), abs=3)


def test_what_comes_turned_is_the_other_side(prepared: PreparedCorpus) -> None:
    plain, both = prepared.split("train"), prepared.split("train", turned=True)
    some = np.array([0, 7, 300])
    for one, other in zip(plain.ids(some), reversed(both.ids(some + plain.rows)), strict=True):
        assert one.values.tolist() == other.values.tolist()
    assert [side.to_pylist() for side in plain.texts(some)] == [side.to_pylist() for side in reversed(both.texts(some + plain.rows))]


def test_after_turning_forward_all_is_one_way_round_and_a_state_says_which(prepared: PreparedCorpus) -> None:
    rows = prepared.split("train").rows
    with Loader(prepared, SETTINGS, turned=True) as loader:
        for _ in range(11):
            batch = next(loader)
        halfway = json.loads(json.dumps(loader.state))
        assert halfway["turned"] and batch.state == loader.state
        expected = rows_of(loader, 5)
        loader.turn_forward()
        later = json.loads(json.dumps(loader.state))
        assert "turned" not in later and loader.state["epoch"] == 1 and not loader.turned
        after = rows_of(loader, 30)
        assert all(int(number) < rows for _ in range(40) for number in next(loader).samples)
    with Loader(prepared, SETTINGS, state=halfway, turned=True) as again:
        assert rows_of(again, 5) == expected
        again.turn_forward()
        assert rows_of(again, 30) == after
    with Loader(prepared, SETTINGS, state=later) as again:
        assert rows_of(again, 30) == after
    with pytest.raises(ConfigError, match="turned was None, now True"):
        Loader(prepared, SETTINGS, state=later, turned=True)


def test_an_epoch_is_as_many_pairs_either_way(prepared: PreparedCorpus) -> None:
    counts = [Loader(prepared, SETTINGS, turned=turned).pairs_per_epoch for turned in (False, True)]
    assert counts[0] == pytest.approx(counts[1], abs=2)


def test_ranks_get_shares_of_the_same_batches(prepared: PreparedCorpus) -> None:
    one = Loader(prepared, SETTINGS, turned=True)
    two = [Loader(prepared, SETTINGS, turned=True, rank=rank, world=2) for rank in range(2)]
    for step in range(30):
        if step == 12:
            for loader in (one, *two):
                loader.turn_forward()
        whole, parts = next(one), [next(loader) for loader in two]
        assert sorted(whole.samples) == sorted(np.concatenate([part.samples for part in parts]))
        assert {part.targets for part in parts} == {whole.targets}


def test_both_directions_are_refused_with_every_reason(prepared: PreparedCorpus, tmp_path: Path) -> None:
    given = recipe(tmp_path, schedule={"both_directions": 0.3})
    _check_both_directions(given, prepared)
    apart = PreparedCorpus(
        prepared.folder,
        prepared.manifest.changed(
            pieces=prepared.manifest.pieces * 2,
            settings={"marks": {"pad": 0, "start": 2, "end": 3, "source_begin": [7]}},
        ),
    )
    with pytest.raises(ConfigError) as caught:
        _check_both_directions(given, apart)
    assert len(caught.value.problems) == 2 and "data.pieces.joint=true" in str(caught.value)
    _check_both_directions(given.changed(schedule=ScheduleSettings(steps=40, warmup=10)), apart)
    marks = SimpleNamespace(source_begin=(), target_begin=())
    synthetic = {"corpora": [{"tags": ["synthetic"]}]}
    made = SimpleNamespace(manifest=SimpleNamespace(pieces=[0], directions=[0], marks=marks, settings=synthetic))
    with pytest.raises(ConfigError, match="synthetic pairs would be learnt as targets"):
        _check_both_directions(given, made)  # type: ignore[arg-type]


# The search that is chosen at the end.


class SearchJudge:
    """Scores a search by how near it is to `wanted`, and counts."""

    def __init__(self, beam: int, penalty: float) -> None:
        self.beam, self.penalty, self.asked = beam, penalty, list[SearchSettings]()
        self.search = SearchSettings(beam=1)

    def validate(self, weights: Any, threads: int) -> ValidationResult:
        self.asked.append(self.search)
        far = abs(self.search.beam - self.beam) + 10 * abs(self.search.length_penalty - self.penalty)
        return ValidationResult(1.0, far, -far, ())


def choose(
    judge: SearchJudge, validation: dict[str, Any], seconds: float | None = None, **more: Any
) -> tuple[SearchSettings, dict[str, float]]:
    pace = BudgetClock(seconds, 100)
    pace.add_validation(1.0)
    given = recipe(Path("nowhere"), validation=validation, **more)
    return choose_search(Winner("w", {}, {}), given, judge, 1, RemainingBudget(pace, 10), lambda *_: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_length_penalty_that_translates_best_is_found(penalty: float) -> None:
    judge = SearchJudge(4, penalty)
    found, compared = choose(judge, {"search": True})
    assert found == SearchSettings(length_penalty=penalty)
    assert len(judge.asked) == len(compared) == len(PENALTIES)
    assert compared[f"beam 4, length penalty {penalty:g}"] == 0.0
    assert judge.search == SearchSettings(beam=1), "the validator is as it was"


def test_of_equals_the_papers_search_stays() -> None:
    class Same(SearchJudge):
        def validate(self, weights: Any, threads: int) -> ValidationResult:
            return ValidationResult(1.0, 5.0, 5.0, ())

    assert choose(Same(4, 0.6), {"search": True})[0] == SearchSettings()


def test_a_search_is_chosen_only_where_that_was_asked_for_and_affordable() -> None:
    judge = SearchJudge(8, 1.4)
    assert choose(judge, {}) == (SearchSettings(), {})
    assert choose(judge, {"search": True}, seconds=1.0) == (SearchSettings(), {})
    brought = SearchSettings(beam=6, no_repeat_ngram=3)
    old = {"bundle": "b", "inherits": {"search": brought.model_dump()}}
    assert choose(judge, {"search": True}, fine_tuning=old) == (brought, {})
    assert judge.asked == []


# Averages.


def test_means_of_fewer_are_tried_too(tmp_path: Path) -> None:
    kept = BestWeights(tmp_path / "best", 5)
    for step, score in ((1, 1.0), (2, 5.0), (3, 4.0), (4, 3.0), (5, 2.0)):
        kept.offer(step, score, {"w": torch.full((2,), float(step))})
    assert float(kept.mean()["w"][0]) == 3.0 and float(kept.mean(2)["w"][0]) == 2.5

    class Judge:
        def validate(self, weights: Any, threads: int) -> ValidationResult:
            return ValidationResult(1.0, 0.0, 50 - abs(float(weights["w"][0]) - 2.5), ())

    won = choose_winner({"w": torch.zeros(2)}, 9, kept, Judge(), "chrf", 1)  # type: ignore[arg-type]
    assert won.name == "mean of the 2 best" and float(won.weights["w"][0]) == 2.5
    assert "mean of the 5 best" in won.compared


def test_the_latest_weights_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    kept = BestWeights(tmp_path, 2, latest=True)
    for step, score in ((1, 9.0), (2, 5.0), (3, 1.0)):
        kept.offer(step, score, {"w": torch.full((2,), float(step))})
    assert sorted(step for step, _ in kept.scores()) == [2, 3] and float(kept.mean()["w"][0]) == 2.5
    again = BestWeights(tmp_path, 2, latest=True)
    again.offer(4, 0.0, {"w": torch.full((2,), 4.0)})
    assert sorted(step for step, _ in again.scores()) == [3, 4]


# A rate that is too high.


def test_a_rate_is_warned_of_by_width_depth_and_the_place_of_norms() -> None:
    def shape(d_model: int, layers: int, norm: str) -> ModelConfig:
        return ModelConfig(vocab_size=100, d_model=d_model, encoder_layers=layers, decoder_layers=layers, num_heads=4, norm_order=norm)

    assert explain_high_rate(shape(128, 4, "post"), 0.005) is None  # the published recipe of this shape
    assert "128 wide, norms after the sub-layers and 4 layers" in (explain_high_rate(shape(128, 4, "post"), 0.007) or "")
    assert explain_high_rate(shape(128, 4, "pre"), 0.007) is None
    assert explain_high_rate(shape(512, 4, "post"), 0.005) is not None
    assert explain_high_rate(shape(128, 12, "post"), 0.005) is not None
    assert explain_high_rate(shape(128, 12, "pre"), 0.005) is None
    for config in (shape(256, 3, "pre"), shape(512, 6, "post"), shape(1024, 6, "post")):
        assert explain_high_rate(config, peak_rate(config)) is None, "a rate that a run chooses by itself is never too high"
        assert explain_high_rate(config, 1.01 * TOO_HIGH * peak_rate(config)) is not None
        assert explain_high_rate(config, 1.01 * TOO_HIGH * peak_rate(config), muon=True) is None, "Muon bears more"


# Whole runs.


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus"))


SWITCHED: dict[str, Any] = {
    "schedule": {"steps": 12, "warmup": 3, "batch_growth": 3, "both_directions": 0.34},
    "average": {"decay": None, "best": 2, "latest": True},
    "validation": {"search": True, "every": 6, "sentences": 2},
}


@pytest.mark.process
def test_a_run_with_every_switch_goes_on_at_the_step_and_the_sample(corpus: Path, tmp_path: Path) -> None:
    straight = Small(corpus, tmp_path / "straight", SWITCHED)
    assert straight.live() == DONE
    run = Small(corpus, tmp_path / "run", SWITCHED)
    assert run.live(Signal(after_step=3)) == STOPPED  # in the midst of the steps that come both ways round
    assert run.saved.step == 3 and "turned" in run.saved.state["loader"]
    assert run.live() == DONE
    check_equal(run, straight)
    schedule = recipe(corpus, **SWITCHED).schedule
    assert len(batches(straight.run)) == sum(count_batches(step, schedule, 1) for step in range(1, 13)) > 12
    facts = RunFacts.load(straight.run)
    assert len(facts.searched) == len(PENALTIES)
    search = bundle.read(straight.run / BUNDLE).settings.search
    best = max(facts.searched, key=lambda name: facts.searched[name])
    assert best == f"beam {search.beam}, length penalty {search.length_penalty:g}"
    assert "mean of the 2 latest" in facts.compared


@pytest.mark.process
def test_two_processes_take_the_steps_of_one(tmp_path: Path) -> None:
    """Without dropout, to rounding: growing batches and turned pairs are the same for any number of processes."""
    from survive_ranks import ONE, Stage

    changes = {"schedule": {"steps": 12, "warmup": 3, "batch_growth": 3, "both_directions": 0.4}, "model": {"dropout": 0.0}}
    stage = Stage(tmp_path, 12, **changes)
    told = {}
    for kind in (ONE, "ddp"):
        run = stage.new(kind)
        assert set(stage.train(run, kind)) == {0}
        told[kind] = [line for line in story(run) if line[0] == "step"]
    assert len(told[ONE]) == 12
    for one, two in zip(told[ONE], told["ddp"], strict=True):
        assert one[:5] == two[:5], "steps and pieces"
        assert float.fromhex(one[6]) == pytest.approx(float.fromhex(two[6]), rel=2e-4)


@pytest.mark.process
def test_a_run_says_that_its_rate_is_high(corpus: Path, tmp_path: Path) -> None:
    changes = {"schedule": {"steps": 2, "warmup": 1}, "optimizer": {"learning_rate": 0.05}, "validation": {"every": 2, "sentences": 2}}
    run = Small(corpus, tmp_path / "run", changes)
    assert run.live() == DONE
    assert any(each.name == "rate" and each.why.startswith("high for 64 wide") for each in RunFacts.load(run.run).chosen)
