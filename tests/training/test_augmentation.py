"""Which changes of the text a run chooses, and what it says of them."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from made_sentences import sentences
from prepare_command import FAST, given_pieces, here, write_pairs
from prepared_corpora import make

from limelight.bundle import BundleSettings, Learnt, write
from limelight.corpus.feeding.alter import DRAWN, KINDS
from limelight.corpus.feeding.augment import AugmentSettings
from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shard_cache import ShardCache
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import ConfigError
from limelight.model import ModelConfig, Transformer
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.training.config import Recipe, decisive, refuse_changed
from limelight.training.recipe import augmentation, choose, resolve
from limelight.training.recipe.augmentation import NAMES, choose_augmentation, derive_learnt, describe_augmentation, has_tags
from limelight.training.recipe.calibrate import CalibrationResult, ComputeSetup
from limelight.training.recipe.choose import Plan, RecipePlanner
from limelight.training.recipe.request import TrainRequest

USUAL = AugmentSettings(names=NAMES)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    folder = tmp_path_factory.mktemp("augmentation")
    paths = write_pairs(sentences(200), folder)
    assert here("prepare", *paths, *FAST, given_pieces(), "-o", folder / "prepared").code == 0
    return PreparedCorpus.open(folder / "prepared")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    """In pieces as others learn them: without placeholders and tags."""
    return PreparedCorpus.open(make(tmp_path_factory.mktemp("foreign") / "prepared"))


@pytest.fixture
def measured_with(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings of the batches that a plan was calibrated with."""
    seen: list[Any] = []

    def measured(config: Any, prepared: Any, batch: Any, *rest: Any) -> CalibrationResult:
        seen.append(batch)
        return CalibrationResult(10_000, 1, None, 1.0, 0.0)

    monkeypatch.setattr(choose, "calibrate", measured)
    return seen


def plan(prepared: PreparedCorpus, batch: dict[str, Any] | None = None) -> Plan:
    changes = {} if batch is None else {"batch": batch}
    asked = TrainRequest(data=None, changes=changes, preset="toy", steps=5)
    return RecipePlanner(prepared, ComputeSetup(torch.device("cpu"), "float32", 1), asked).plan()


def test_text_is_changed_unless_one_says_otherwise(prepared: PreparedCorpus, measured_with: list[Any]) -> None:
    made = plan(prepared)
    assert made.recipe.batch.augment == USUAL == measured_with[0].augment
    told = next(each for each in made.chosen if each.name == "augment")
    assert told.value.startswith("protect 90 % of pairs with placeholders; 3 % with marks to copy, 1 % upper case, 2 % title case")
    assert told.why == "so that case, typos and placeholders do not break it"


def test_one_may_ask_for_none_or_for_other_shares(prepared: PreparedCorpus, measured_with: list[Any]) -> None:
    none = plan(prepared, {"augment": None})
    assert none.recipe.batch.augment is None and measured_with[0].augment is None
    told = next(each for each in none.chosen if each.name == "augment")
    assert (told.value, told.why) == ("none", "asked for")
    some = plan(prepared, {"augment": {"upper": 0.1}, "longest": 70}).recipe.batch
    assert some.augment == USUAL.changed(upper=0.1) and some.longest == 70
    most = plan(prepared, {"augment": {"typos": 0.82}}).recipe.batch.augment
    assert most is not None and (most.typos, most.share("names")) == (0.82, 0.0), "what nobody asked for gives way"
    fetched = replace(prepared, cache=cast(ShardCache, object()))
    assert choose_augmentation(fetched, {})[0] == USUAL.changed(names=0), "names are learnt from text at hand"


def test_a_recipe_says_it_and_gives_it_back(prepared: PreparedCorpus, measured_with: list[Any]) -> None:
    for batch in (None, {"augment": None}, {"augment": {"typos": 0.2}}):
        recipe = plan(prepared, batch).recipe
        assert Recipe.from_toml(recipe.to_toml()) == recipe
    assert "[batch.augment]" not in plan(prepared, {"augment": None}).recipe.to_toml()


def test_pieces_of_others_leave_out_what_they_cannot_show_and_say_so(foreign: PreparedCorpus) -> None:
    settings, told = choose_augmentation(foreign, {})
    assert settings == USUAL.changed(protect=0, copied=0, terms=0) and "matches" not in told.why
    assert told.value.startswith("1 % upper case, 2 % title case") and "terms" not in told.value
    assert told.why.endswith(
        "; without protect and copied, since the pieces have no placeholders; without terms, since the pieces have no <tag:1>"
    )


def test_a_translator_that_is_told_matches_goes_on_so_unless_one_says_otherwise(prepared: PreparedCorpus, foreign: PreparedCorpus) -> None:
    assert choose_augmentation(prepared, {})[0] == USUAL and USUAL.matches == 0
    settings, told = choose_augmentation(prepared, {}, takes_matches=True)
    assert settings == USUAL.changed(matches=0.15) and "15 % with the translation of a similar text" in told.value
    assert choose_augmentation(prepared, {"augment": {"matches": 0}}, takes_matches=True)[0] == USUAL
    assert choose_augmentation(foreign, {}, takes_matches=True)[0] == USUAL.changed(protect=0, copied=0, terms=0)


@pytest.mark.parametrize("taught", [False, True])
def test_a_run_asks_the_translator_that_it_goes_on_from(
    prepared: PreparedCorpus, measured_with: list[Any], tmp_path: Path, taught: bool
) -> None:
    pieces = (prepared.folder / "pieces.model").read_bytes()
    config = ModelConfig.preset("toy", Tokenizer(pieces).size)
    settings = BundleSettings(languages=("en", "de"), model=config, learnt=Learnt(marks=16, matches=taught))
    write(tmp_path / "old", settings, Transformer(config).state_dict(), pieces)
    asked, stand = TrainRequest(data=None, bundle=tmp_path / "old", replay=0.0, steps=5), ComputeSetup(torch.device("cpu"), "float32", 1)
    recipe = resolve._choose_recipe(asked, prepared, stand, 0.0, lambda choice: None)
    assert recipe.batch.augment == AugmentSettings(matches=0.15 if taught else 0.0), "no names: it has them"


def test_a_model_was_taught_what_its_text_showed(prepared: PreparedCorpus) -> None:
    for share in (0.0, 0.1):
        learnt = derive_learnt(prepared, AugmentSettings(matches=share))
        assert learnt is not None and learnt.matches is (share > 0)
        assert ("matches" in learnt.model_dump()) is (share > 0), "other bundles stay as they were"


def test_what_was_asked_for_and_cannot_be_shown_is_refused_by_the_batches(foreign: PreparedCorpus) -> None:
    settings, told = choose_augmentation(foreign, {"augment": {"protect": 0.5}})
    assert settings is not None and settings.protect == 0.5 and "without copied, since" in told.why
    with pytest.raises(ConfigError, match=r"protect=0\.5, but the pieces have no placeholders; set it to 0"):
        Loader(foreign, BatchSettings(augment=settings))


def test_what_is_said_names_every_share_and_no_other() -> None:
    assert describe_augmentation(AugmentSettings(**dict.fromkeys(KINDS, 0.0))) == "none"
    assert describe_augmentation(AugmentSettings(**{**dict.fromkeys(DRAWN, 0.0), "merged": 0.125})) == (
        "protect 90 % of pairs with placeholders; 12.5 % merged with the next"
    )


def test_a_run_goes_on_and_one_whose_changes_were_changed_does_not(prepared: PreparedCorpus, measured_with: list[Any]) -> None:
    old, new = plan(prepared, {"augment": None}).recipe, plan(prepared).recipe
    before = decisive(old)
    refuse_changed(old, before, Path("run"))
    for recipe, saved in ((new, before), (old, decisive(new))):
        with pytest.raises(ConfigError, match="its recipe was changed in batch"):
            refuse_changed(recipe, saved, Path("run"))


def test_a_bundle_says_whether_its_text_had_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared: PreparedCorpus) -> None:
    pairs = sentences(200)
    marked = [(f"<b>{one}</b> one", f"<b>{other}</b> eins") if at % 4 else (one, other) for at, (one, other) in enumerate(pairs)]
    paths = write_pairs(marked, tmp_path)
    assert here("prepare", *paths, *FAST, given_pieces(), "-o", tmp_path / "prepared").code == 0
    tagged = PreparedCorpus.open(tmp_path / "prepared")
    fed = tagged.split("train").rows
    for enough, expected in ((fed * 3 // 4 - 20, True), (fed * 3 // 4 + 20, False)):  # three of four have them
        monkeypatch.setattr(augmentation, "ENOUGH_TAGS", enough)
        assert has_tags(tagged) is expected
    learnt = derive_learnt(prepared, AugmentSettings())
    assert learnt is not None and learnt.tags is False
    assert has_tags(replace(tagged, cache=cast(ShardCache, object()))) is None, "text at an address is not fetched for it"
    unmarked = derive_learnt(tagged, AugmentSettings(protect=0, copied=0))
    assert unmarked is not None and unmarked.tags is None
