"""Several directions in one run: each is validated and scored for itself, and the translator knows all of them."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from prepare_command import here
from tagged_corpora import in_language, multi, prepare, write

from limelight.bundle import BundleSettings, BundleTags, read
from limelight.corpus.config import PrepareSettings
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.model import ModelConfig, Transformer
from limelight.training.config import Inherited, ValidationSettings
from limelight.training.events import DirectionScore, ValidReport, event_of, line_of
from limelight.training.recipe.replay import aim_at, special_ids_of
from limelight.training.recipe.text_stats import PreparedText, choose_temperature
from limelight.training.report.run_record import read_run
from limelight.training.validation.direction_sets import list_zero_shot, pair_zero_shot, sample_directions
from limelight.training.validation.validator import Validator, build_tags
from limelight.translator import Translator

SMALL = {"encoder_layers": 1, "decoder_layers": 1, "max_length": 100}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return multi(
        tmp_path_factory.mktemp("both"),
        "de",
        "fr",
        both_directions=True,
        held_out={"valid_pairs": 6, "test_pairs": 12, "largest_share": 0.2},
    )


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    place = tmp_path_factory.mktemp("tagged")
    paths = [write(place, f"a.{code}", in_language(code)) for code in ("en", "de")]
    more = [write(place, f"b.{code}", in_language(code, seed=3)) for code in ("en", "de")]
    return prepare(place / "prepared", [{"name": "a", "paths": paths}, {"name": "b", "paths": more, "tags": ("ui",)}])


def untrained(prepared: PreparedCorpus) -> Transformer:
    return Transformer(ModelConfig.preset("toy", prepared.manifest.vocab_sizes[1], **SMALL))


def test_each_direction_has_its_sentences_of_all_over_the_set(both: PreparedCorpus):
    sets = sample_directions(both.validation_pairs(), 8)
    assert [each.direction for each in sets] == [("en", "de"), ("en", "fr"), ("de", "en"), ("fr", "en")]
    assert [len(each.sources) for each in sets] == [2] * 4
    forward, turned = sets[0], sets[2]
    assert (forward.sources, forward.references) == (turned.references, turned.sources)
    every = sample_directions(both.validation_pairs(), 10_000)
    assert sum(len(each.sources) for each in every) == both.validation_pairs().fed


def test_sentences_are_told_the_tags_of_their_corpus(tagged: PreparedCorpus):
    (found,) = sample_directions(tagged.validation_pairs(), 1000)
    english = set(in_language("en", seed=3))
    assert set(found.names) == {(), ("ui",)}
    assert all((source in english) == (names == ("ui",)) for source, names in zip(found.sources, found.names, strict=True))


def test_directions_that_were_never_trained_are_paired_through_the_shared_language(both: PreparedCorpus, tagged: PreparedCorpus):
    assert list_zero_shot(both.manifest) == [("de", "fr"), ("fr", "de")]
    found = pair_zero_shot(both.split("test"), 11)
    assert [(each.direction, each.trained, len(each.sources)) for each in found] == [(("de", "fr"), False, 11), (("fr", "de"), False, 11)]
    assert all(reference == f"fr {source}" for source, reference in zip(found[0].sources, found[0].references, strict=True))
    assert list_zero_shot(tagged.manifest) == []
    assert pair_zero_shot(tagged.split("test"), 11) == []


def test_a_validation_asks_each_direction_and_means_them(both: PreparedCorpus):
    validator = Validator(untrained(both), both, both.tokenizers(), ValidationSettings(sentences=8))
    found = validator.validate(validator.weights, threads=1)
    assert [each.direction for each in found.directions] == ["en-de", "en-fr", "de-en", "fr-en"]
    assert found.chrf == pytest.approx(np.mean([each.chrf for each in found.directions]))
    assert len(validator.sources) == 8
    assert validator.usual.direction == ("en", "de")
    with validator.translator(1) as translator:
        assert translator.directions == list(both.manifest.directions)


def test_sentences_are_translated_with_what_they_are_told(tagged: PreparedCorpus, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[object, ...]] = []
    towards = Translator.towards
    monkeypatch.setattr(Translator, "towards", lambda self, *told: asked.append(told) or towards(self, *told))
    validator = Validator(untrained(tagged), tagged, tagged.tokenizers(), ValidationSettings(sentences=6))
    found = validator.validate(validator.weights, threads=1)
    assert sorted(asked) == [("de", "en", ()), ("de", "en", ("ui",))]
    assert found.directions == ()


def test_the_tags_of_a_bundle_are_those_of_the_pieces(both: PreparedCorpus, tagged: PreparedCorpus):
    found = build_tags(both)
    tokenizer = both.tokenizers()[0]
    assert found is not None
    assert found.target == {code: tokenizer.id_of_control(f"<2{code}>") for code in ("de", "fr", "en")}
    names = build_tags(tagged)
    assert names is not None
    assert (list(names.names), names.target, names.directions) == (["ui"], {}, (("en", "de"),))


def test_the_temperature_is_chosen_with_its_reason(both: PreparedCorpus, tagged: PreparedCorpus, tmp_path: Path):
    assert choose_temperature(tagged, {}) == (1.0, None)
    temperature, said = choose_temperature(both, {})
    assert temperature == 1.0
    assert said is not None
    assert "in proportion" in said.why
    uneven = multi(tmp_path, "de", "fr", counts={"de": 300, "fr": 60})
    temperature, said = choose_temperature(uneven, {})
    assert (temperature, said.value) == (3.0, "2, temperature 3")
    assert "the smallest, en-fr" in said.why
    assert choose_temperature(uneven, {"temperature": 2.0})[1].why.startswith("asked for")


def test_text_that_is_fed_both_ways_counts_twice(both: PreparedCorpus):
    text, pairs = PreparedText.of(both.manifest), both.split("train")
    lengths = pairs.lengths(np.arange(pairs.fed))
    assert text.pairs == pairs.fed
    assert text.source == pytest.approx(lengths[0].sum() + 2 * pairs.fed)  # the language and the end
    assert text.target == pytest.approx(lengths[1].sum() + pairs.fed)


def test_events_have_directions_only_where_there_are_several():
    plain = ValidReport(1, 2.0, 3.0, 4.0, 5.0, 6.0, True, ())
    assert "directions" not in json.loads(line_of(plain))
    several = ValidReport(1, 2.0, 3.0, 4.0, 5.0, 6.0, True, (), (DirectionScore("en-de", 5.0, 6.0),))
    assert [event_of(line_of(event)) for event in (plain, several)] == [plain, several]


def test_fine_tuning_in_one_direction_tells_its_language_and_keeps_the_others():
    tags = BundleTags(target={"de": 20, "fr": 21}, names={"ui": 22}, directions=(("en", "de"), ("en", "fr")))
    old = BundleSettings(languages=("en", "de"), model=ModelConfig(vocab_size=100), tags=tags)
    new = PrepareSettings(languages=("en", "fr"), corpora=[{"name": "a", "paths": ["x"]}])
    marks = special_ids_of(aim_at(old, new))
    assert marks is not None
    assert marks.source_begin == (21,)
    joined = Inherited(tags=tags).join_tags((("en", "fr"),))
    assert joined is not None
    assert joined.directions == (("en", "fr"), ("en", "de")) and joined.inherited == (("en", "de"),)
    again = Inherited(tags=joined).join_tags((("en", "de"), ("en", "fr")))
    assert again is not None and again.inherited == ()
    made = BundleSettings(languages=("en", "fr"), model=old.model, tags=joined, source_begin=marks.source_begin)
    assert made.aim("de").source_begin == (20,)


@pytest.mark.slow
@pytest.mark.process
def test_a_run_of_three_languages_ends_in_a_translator_of_all_of_them(tmp_path: Path):
    paths = [write(tmp_path, f"m.{code}", in_language(code, 200)) for code in ("en", "de", "fr")]
    shape = [f"model.{key}={value}" for key, value in SMALL.items()]
    done = here(
        "train", *paths, "-o", tmp_path / "run", "--both-directions", "--preset", "toy", "--steps", 3, "--workers", 0, "--vocab-size", 420,
        "data.filters.wrong_language=off", "data.held_out.valid_pairs=6", "data.held_out.test_pairs=12",
        "data.held_out.largest_share=0.2", "--no-export", "-q", *shape,
    )  # fmt: skip
    assert done.code == 0, done.err
    settings = read(tmp_path / "run" / "bundle").settings
    assert settings.directions == [("en", "de"), ("en", "fr"), ("de", "en"), ("fr", "en")]
    record = read_run(tmp_path / "run")
    assert record.scores is not None
    scored = [(each.direction, each.trained) for each in record.scores.directions]
    assert scored == [("en-de", True), ("en-fr", True), ("de-en", True), ("fr-en", True), ("de-fr", False), ("fr-de", False)]
    assert {score.test_set.partition(", ")[2] for score in settings.scores} >= {"en-de", "fr-en", "de-fr (never trained)"}
    assert "Scores of each direction" in (tmp_path / "run" / "report.md").read_text()
    assert [each.direction for each in record.validations[-1].directions] == ["en-de", "en-fr", "de-en", "fr-en"]
