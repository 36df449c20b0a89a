"""A translator of several directions and tags: its views share one engine, and what a sentence becomes depends on nothing but itself."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from table_engine import TableEngine
from table_engine import tokenizer as table_tokenizer
from table_engine import translator as table_translator

from limelight.bundle import BundleSettings, BundleTags, read
from limelight.decoding.config import SearchSettings
from limelight.engines.stepping import SteppingEngine
from limelight.errors import ConfigError
from limelight.interop.ctranslate2.export import export
from limelight.model.config import ModelConfig
from limelight.text.careful.glossary import Glossary
from limelight.translator import Translation, Translator
from limelight.translator.directions import MOST_VIEWS
from limelight.translator.pipeline import TranslationOptions
from tagged_bundle import DIRECTIONS, TEXTS, settings_of, tags_of, tokenizer, translator, write_tagged

VIEWS = [{"target": "de"}, {"target": "fr"}, {"target": "fr", "tags": ["formal"]}, {"target": "en", "tags": ["ui"]}]
PLAIN = SearchSettings(beam=2, max_length=10)
ALL = TranslationOptions(align=True, probabilities=True)
CLOSE = 1e-4


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Translator]:
    folder = write_tagged(tmp_path_factory.mktemp("tagged") / "multi")
    export(read(folder), "float32", TEXTS)
    with Translator.load(folder, threads=2, engine="ctranslate2") as found:
        yield found


def run_mixed(known: Translator, texts: list[str]) -> list[tuple[Translation, Translation]]:
    """Sentences of all views in one batch, each beside what it becomes alone."""
    views = [known.towards(**view) for view in VIEWS]
    alone = [view.translate([text], PLAIN, align=True, segment=False, probabilities=True)[0] for text in texts for view in views]
    planned = [sentence for text in texts for view in views for sentence in view.plan([text], PLAIN, segment=False).asked]
    together = known.run(planned, PLAIN, ALL)
    assert None not in together
    return list(zip(alone, together, strict=True))  # type: ignore[arg-type]


def assert_same(pairs: list[tuple[Translation, Translation]]) -> None:
    for alone, together in pairs:
        plain = replace(together, score=alone.score, confidence=alone.confidence, pieces=alone.pieces, words=alone.words)
        assert plain == replace(alone, alternatives=plain.alternatives)
        assert together.score == pytest.approx(alone.score, abs=CLOSE)
        assert [p.text for p in together.pieces] == [p.text for p in alone.pieces]
        assert [p.probability for p in together.pieces] == pytest.approx([p.probability for p in alone.pieces], abs=1e-3)
    assert len({alone.text for alone, _ in pairs}) > len({alone.source for alone, _ in pairs}), (
        "the control: what it is told changes what it says"
    )


def test_a_sentence_does_not_depend_on_the_directions_of_its_company() -> None:
    assert_same(run_mixed(translator(), TEXTS[:2]))


@pytest.mark.slow
def test_nor_does_it_with_the_other_engine(exported: Translator) -> None:
    assert_same(run_mixed(exported, TEXTS))


@pytest.mark.slow
def test_nor_does_it_step_by_step(exported: Translator) -> None:
    stepping = SteppingEngine(exported.engine)  # type: ignore[arg-type]
    assert_same(run_mixed(Translator(stepping, settings_of(), tokenizer(), tokenizer()), TEXTS[:2]))


@pytest.mark.slow
def test_both_engines_say_the_same_in_every_direction(exported: Translator) -> None:
    known = translator()
    for view in VIEWS:
        ours, theirs = (each.translate(TEXTS, PLAIN, guards=False, **view) for each in (known, exported))  # type: ignore[arg-type]
        assert [one.text for one in theirs] == [one.text for one in ours]


def test_what_begin_postpones_is_ended_in_its_own_direction() -> None:
    known = translator()
    views = [known.towards("de"), known.towards("fr", tags=["ui"])]
    planned = [sentence for view in views for sentence in view.plan([TEXTS[3]], PLAIN).asked]
    begun = known.begin(planned, PLAIN, TranslationOptions())
    late = [each for each in begun if not isinstance(each, Translation) and each is not None]
    assert len(late) == 2, "a lost %s is searched again"
    ended = known.end(late, PLAIN, TranslationOptions())
    assert [each and each.text for each in ended] == [view.translate([TEXTS[3]], PLAIN)[0].text for view in views]


def test_arguments_of_translate_are_those_of_towards() -> None:
    known = translator()
    for view in VIEWS:
        found = known.translate(TEXTS[:2], PLAIN, **view)  # type: ignore[arg-type]
        assert found == known.towards(**view).translate(TEXTS[:2], PLAIN)  # type: ignore[arg-type]
    assert known.translate(TEXTS[:1], PLAIN) == known.translate(TEXTS[:1], PLAIN, target="de", source="en", tags=[])


def test_tags_stand_before_the_source_in_the_one_order_that_there_is() -> None:
    known, ids = translator(), tokenizer().id_of_control
    plain = translator(tags=None).source_ids(["the cat"])[0]
    assert known.source_ids(["the cat"]) == [[ids("<2de>"), *plain]]
    assert known.towards("en", "fr", ["ui", "formal"]).source_ids(["the cat", ""]) == [
        [ids("<2en>"), ids("<formal>"), ids("<ui>"), *plain],
        [],
    ]


def test_a_view_scores_and_traces_with_its_tags() -> None:
    known = translator()
    view = known.towards("fr", tags=["formal"])
    ours, others = view.score(["the cat"], ["a dog"])[0], known.score(["the cat"], ["a dog"])[0]
    assert ours.log_prob != others.log_prob
    traced = view.trace("the cat", "a dog")
    assert [token.piece for token in traced.source.tokens][:2] == ["<2fr>", "<formal>"]
    assert traced.target.logp == pytest.approx(ours.log_prob, abs=CLOSE)
    assert (traced.model.source, traced.model.target) == ("en", "fr")
    assert known.trace("the cat").source.tokens[0].piece == "<2de>"


def test_a_tag_can_be_masked_like_any_other_piece_of_the_source() -> None:
    view = translator().towards("fr", tags=["formal"])
    dark = view.trace("the cat", "a dog", mask_source=[1])
    assert dark.attention["cross"][..., 1].max() == 0
    assert dark.baseline is not None and dark.baseline.delta_logp != 0


def test_what_a_model_begins_with_depends_on_the_direction_and_is_not_shown() -> None:
    """As with M2M100 and NLLB: the table engine says what it was asked to begin with."""
    ids = table_tokenizer().tag
    tags = BundleTags(source={"en": ids(2), "de": ids(3), "fr": ids(4)}, target_begin={"en": ids(2), "de": ids(3), "fr": ids(4)})
    settings = BundleSettings(languages=("en", "de"), model=ModelConfig.preset("toy", table_tokenizer().size), tags=tags)
    engine = TableEngine()
    known = Translator(engine, settings, table_tokenizer(), table_tokenizer())
    views = [known, known.towards("fr"), known.towards("fr", "de")]
    planned = [sentence for view in views for sentence in view.plan(["the cat"]).asked]
    known.run(planned, PLAIN, ALL)
    (batch,) = engine.batches
    assert [(each.source[0], list(each.prefix), each.given) for each in batch] == [
        (ids(2), [ids(3)], 1), (ids(2), [ids(4)], 1), (ids(3), [ids(4)], 1)
    ]  # fmt: skip
    assert known.towards("fr").target_ids(["the cat"])[0][0] == ids(4)


def test_closing_a_view_closes_nothing_and_closing_the_translator_all() -> None:
    engine = TableEngine()
    known = table_translator(engine)
    with known.towards("de"):
        pass
    assert not engine.closed and known.translate(["the cat"])[0].text
    known.close()
    assert engine.closed


def test_views_are_found_again_and_not_kept_without_bound() -> None:
    known = translator()
    view = known.towards("fr", tags=["ui"])
    assert known.towards("fr", tags=["ui"]) is view and view.towards("fr", tags=("ui",)) is view
    for count in range(MOST_VIEWS + 5):
        known.towards("fr", tags=["ui"] * count)
    assert len(known._directions._views) == MOST_VIEWS


def test_a_glossary_belongs_to_the_direction_that_it_is_for() -> None:
    known = translator()
    known.glossary = Glossary.of({"cat": "Katze"})
    assert known.towards("de", tags=["formal"]).glossary is known.glossary
    assert known.towards("fr").glossary is None and known.towards("fr").towards("de").glossary is known.glossary


def test_the_directions_of_a_translator_are_those_of_its_bundle_the_usual_one_first() -> None:
    assert translator().directions == list(DIRECTIONS) == translator().towards("fr").directions
    assert translator(tags=None).directions == [("en", "de")]


def test_what_there_is_not_is_refused_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match="there is no 'it', but de, en, fr"):
        translator().translate(["the cat"], target="it")
    with pytest.raises(ConfigError, match="there is no ''"):
        translator().translate(["the cat"], target="")
    with pytest.raises(ConfigError, match="it was taught no tag"):
        translator(tags=None).translate(["the cat"], tags=["formal"])
    with pytest.raises(TypeError, match="a list of names"):
        translator().translate(["the cat"], tags="formal")


def test_names_alone_need_no_direction() -> None:
    known = translator(tags=tags_of(target={}, directions=()))
    assert known.directions == [("en", "de")]
    assert known.source_ids(["the cat"]) == translator(tags=None).source_ids(["the cat"])
    assert known.towards(tags=["ui"]).source_ids(["the cat"])[0][0] == tokenizer().id_of_control("<ui>")
