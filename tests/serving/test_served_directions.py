"""A bundle of several directions and tags, served: one engine and one queue, and every dialect lists and takes what it has."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import ask
from labelled import formal_and_informal, labelled, loaded

from limelight.serving.app import make_app
from limelight.serving.compat.language_codes import ServedLanguages
from limelight.serving.middleware.metrics import Metrics
from limelight.serving.native import responses
from limelight.serving.queue.models import Models, load
from limelight.serving.queue.observer import BatchReport, NullObserver
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.service import Service, TranslateOptions
from limelight.serving.refusals import BadRequest, NotFound
from limelight.serving.settings import ServeSettings
from limelight.translator import Translator
from tagged_bundle import DIRECTIONS, TAGS, TEXTS, tags_of, translator, write_tagged

CAT = TEXTS[0]
WAYS: list[tuple[str, str, list[str]]] = [("en", "de", []), ("en", "fr", []), ("en", "fr", ["formal"]), ("de", "en", ["ui"])]


@pytest.fixture(scope="module")
def known() -> Translator:
    return translator()


@pytest.fixture(scope="module")
def models(known: Translator) -> Models:
    return Models([ServedModel("multi", known, speed=1_000.0)])


@pytest.fixture(scope="module")
def app(models: Models) -> Iterator[Any]:
    metrics = Metrics()
    service = Service(models, ServeSettings(), metrics)
    yield make_app(service, None, metrics, lambda _: None)
    service.batcher.close()


def post(app: Any, path: str, **body: Any) -> tuple[int, Any]:
    found = ask(app, "POST", path, json=body)
    return found.status_code, found.json()


class Batches(NullObserver):
    def __init__(self) -> None:
        self.told: list[BatchReport] = []

    def batch(self, report: BatchReport) -> None:
        self.told.append(report)


def test_a_mixed_load_shares_batches_and_each_gets_what_it_would_get_alone(models: Models, known: Translator) -> None:
    watching, texts = Batches(), TEXTS[:3]

    async def work() -> list[list[str]]:
        service = Service(models, ServeSettings(), watching)
        try:
            asked = [service.translate(texts, TranslateOptions(models.pick(*way[:2], None, way[2]))) for way in WAYS]
            return [[each.text for each in made] for made in await asyncio.gather(*asked)]
        finally:
            service.batcher.close()

    alone = [
        [each.text for each in known.translate(texts, segment=True, target=target, source=source, tags=tags)]
        for source, target, tags in WAYS
    ]
    assert asyncio.run(work()) == alone
    assert len({tuple(each) for each in alone}) == len(WAYS), "the control: what it is told changes what it says"
    assert max(report.rows for report in watching.told) > len(texts)
    assert len(watching.told) < len(WAYS) and {report.model for report in watching.told} == {"multi"}


def test_the_model_is_picked_by_languages_tags_and_name(models: Models) -> None:
    usual = models.all[0]
    assert models.pick(None, None) is usual and models.pick("en", "de-AT", "multi") is usual
    assert [models.pick(*pair).id for pair in DIRECTIONS] == ["multi", "multi:en-fr", "multi:de-en", "multi:fr-en"]
    assert models.pick(None, "fr").id == "multi:en-fr" and models.pick("fr", None, "multi").id == "multi:fr-en"
    assert models.by_id("multi:fr-en").direction == ("fr", "en") and models.by_id("multi:en-de") is usual
    assert models.pick("fr", "de", "multi").direction == ("fr", "de"), "never taught, but both are known"
    assert models.pick(None, "fr", None, ["ui"]).translator.settings.source_begin[1:] == (tags_of().names["ui"],)
    assert models.pick("en", "fr") == models.pick("EN", "fr-CA"), "made twice, and batched together"
    assert models.pick("eng", "fra") == models.pick("en", "fr") and models.find(None, "ger") is usual
    assert [models.reverse(models.by_id(id)) for id in ("multi", "multi:fr-en")] == [
        models.by_id("multi:de-en"),
        models.by_id("multi:en-fr"),
    ]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("it", "de"), "there are models from en to de, en to fr, de to en, fr to en"),
        (("en", "it", "multi"), "the model multi translates from en to de, en to fr, de to en, fr to en"),
        (("en", "de", "multi:en-fr"), "the model multi:en-fr translates from en to fr"),
        (("en", "fr", None, ["polite"]), "it has formal, ui"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(models: Models, asked: Any, said: str) -> None:
    with pytest.raises(BadRequest) as refused:
        models.pick(*asked)
    assert said in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize("id", ["multi:", "multi:en", "multi:en-it", "multi:it-en", "multi:en-en", "multi:-"])
def test_a_direction_that_there_is_not_is_not_found(models: Models, id: str) -> None:
    with pytest.raises(NotFound, match="has not this direction"):
        models.by_id(id)


def test_regions_count_where_a_bundle_has_several_and_stand_in_names() -> None:
    pairs = (("en", "zh-Hans"), ("en", "zh-Hant"), ("pt-BR", "en"))
    codes = dict(zip(("zh-Hans", "zh-Hant", "en"), tags_of().target.values(), strict=True))
    models = Models([ServedModel("m", translator(tags=tags_of(target=codes, directions=pairs), languages=pairs[0]), speed=1.0)])
    assert models.pick("en", "zh-hant").direction == pairs[1] and models.pick("en", "zh").direction == pairs[0]
    assert models.by_id("m:en-zh-Hant").direction == pairs[1] and models.by_id("m:pt-BR-en").direction == pairs[2]
    assert models.by_id("m:pt-BR-zh-Hant").direction == ("pt-BR", "zh-Hant")


def test_of_several_bundles_the_first_that_knows_the_tags_does_it(known: Translator) -> None:
    first = ServedModel("first", translator(tags=None), speed=1.0)
    models = Models([first, ServedModel("second", known, speed=1.0)])
    assert models.pick("en", "de") is first and models.pick("en", "de", None, ["ui"]).id == "second"
    with pytest.raises(BadRequest, match="it was taught no tag"):
        models.pick("en", "de", "first", ["ui"])


class TestNative:
    def test_languages_and_tags_choose(self, app: Any, known: Translator) -> None:
        for source, target, tags in WAYS:
            status, told = post(app, "/api/v1/translate", text=CAT, source=source, target=target, tags=tags)
            assert (status, told["source"], told["target"]) == (200, source, target) and "zero_shot" not in told
            assert told["results"][0]["text"] == known.translate([CAT], source=source, target=target, tags=tags)[0].text
        assert post(app, "/api/v1/translate", text=CAT, model="multi:fr-en")[1]["model"] == "multi:fr-en"

    def test_what_was_never_taught_is_said_to_be_so(self, app: Any) -> None:
        status, told = post(app, "/api/v1/translate", text=CAT, source="fr", target="de")
        assert (status, told["model"], told["zero_shot"]) == (200, "multi:fr-de", True)

    @pytest.mark.parametrize(("target", "untaught"), [("de", True), ("en", False)])
    def test_a_stream_says_so_at_its_end(self, app: Any, target: str, untaught: bool) -> None:
        asked = {"text": CAT, "source": "fr", "target": target, "stream": True}
        last = ask(app, "POST", "/api/v1/translate", json=asked).text.strip().split("\n\n")[-1]
        assert last.startswith("event: done") and ('"zero_shot": true' in last) == untaught

    def test_html_goes_the_same_way(self, app: Any, known: Translator) -> None:
        _, told = post(app, "/api/v1/translate", text=f"<p>{CAT}</p>", target="fr", tags=["formal"], format="html")
        assert told["results"][0]["text"] == f"<p>{known.translate([CAT], target='fr', tags=['formal'])[0].text}</p>"

    @pytest.mark.parametrize(
        ("tags", "said"),
        [(["polite"], "it has formal, ui"), (["Formal"], "tags.0"), (["formal"] * 17, "at most 16"), ("formal", "list"), ([1], "string")],
    )
    def test_other_tags_are_refused(self, app: Any, tags: Any, said: str) -> None:
        status, told = post(app, "/api/v1/translate", text=CAT, tags=tags)
        assert status in (400, 413) and said in told["error"]["message"]

    def test_models_list_directions_and_tags(self, app: Any) -> None:
        [one] = ask(app, "GET", "/api/v1/models").json()["models"]
        assert (one["id"], one["source"], one["target"], one["reverse"]) == ("multi", "en", "de", "multi:de-en")
        assert one["directions"] == {"en": ["de", "fr"], "de": ["en"], "fr": ["en"]} and one["tags"] == list(TAGS.names)
        assert one["languages"] == {"en": "English", "de": "German", "fr": "French"}
        other = ask(app, "GET", "/api/v1/models/multi:fr-en").json()
        assert (other["id"], other["source"], other["names"]["source"], other["reverse"]) == ("multi:fr-en", "fr", "French", "multi:en-fr")

    def test_scores_are_of_the_direction_and_the_tags(self, app: Any, known: Translator) -> None:
        _, told = post(app, "/api/v1/score", source=CAT, target="a dog", model="multi:en-fr", tags=["ui"])
        alone = known.towards("fr", tags=["ui"]).score([CAT], ["a dog"])[0]
        assert told["log_prob"] == pytest.approx(alone.log_prob, abs=1e-4)
        assert alone.log_prob != pytest.approx(known.score([CAT], ["a dog"])[0].log_prob, abs=1e-3)

    def test_a_trace_has_the_tags_among_its_source_pieces_where_they_can_be_hidden(self, app: Any) -> None:
        asked = {"source": CAT, "model": "multi:en-fr", "tags": ["formal"]}
        _, told = post(app, "/api/v1/trace", **asked)
        assert [token["piece"] for token in told["source"]["tokens"]][:2] == ["<2fr>", "<formal>"]
        assert (told["model"]["id"], told["model"]["src_lang"], told["model"]["tgt_lang"]) == ("multi:en-fr", "en", "fr")
        _, dark = post(app, "/api/v1/trace", **asked, interventions={"mask_source": [1]})
        assert dark["source"]["masked"] == [1] and dark["baseline"]["delta_logp"] != 0

    def test_a_plain_model_is_told_as_before(self) -> None:
        with loaded() as plain:
            served = labelled(plain, ("en", "de"))
            assert not {"directions", "languages", "tags"} & responses.model(served.all[0], served).keys()


class TestPublicDialects:
    def test_all_pairs_are_listed(self, app: Any) -> None:
        told = {each["code"]: each["targets"] for each in ask(app, "GET", "/languages").json()}
        assert told == {"en": ["en", "de", "fr"], "de": ["de", "en"], "fr": ["fr", "en"]}
        assert [each["language"] for each in ask(app, "GET", "/v2/languages").json()] == ["EN", "DE", "FR"]
        targets = ask(app, "GET", "/v2/languages?type=target").json()
        assert [each["language"] for each in targets] == ["DE", "FR", "EN-US", "EN-GB"]
        assert not any(each["supports_formality"] for each in targets), "formal alone is not enough"

    def test_each_direction_is_translated(self, app: Any, known: Translator) -> None:
        for source, target in DIRECTIONS:
            expected = known.translate([CAT], source=source, target=target)[0].text
            assert post(app, "/translate", q=CAT, source=source, target=target)[1]["translatedText"] == expected
            deepl = post(app, "/v2/translate", text=[CAT], source_lang=source.upper(), target_lang=target.upper())[1]
            assert deepl["translations"][0]["text"] == expected
        status, told = post(app, "/translate", q=CAT, source="fr", target="de")
        assert status == 400 and "not available as a target language" in told["error"]

    @pytest.mark.slow
    def test_the_source_is_detected_among_those_of_the_target(self, app: Any) -> None:
        french = "le chat est sur la table et la maison est grande"
        assert post(app, "/translate", q=french, source="auto", target="en")[1]["detectedLanguage"]["language"] == "fr"
        assert post(app, "/v2/translate", text=[french, CAT], target_lang="FR")[1]["translations"][1]["detected_source_language"] == "EN"

    def test_a_document_goes_the_same_way(self, app: Any, known: Translator) -> None:
        for more, tags in (({}, []), ({"tags": ["ui", "formal"]}, ["formal", "ui"])):
            sent = {"files": {"file": ("a.txt", f"{CAT}\n".encode())}, "data": {"source": "fr", "target": "en", **more}}
            place = ask(app, "POST", "/translate_file", **sent).json()["translatedFileUrl"]
            assert ask(app, "GET", place).text == known.translate([CAT], source="fr", target="en", tags=tags)[0].text + "\n"
        status, told = post(app, "/translate", q=CAT, source="en", target="fr", tags=["polite"])
        assert status == 400 and "it has formal, ui" in told["error"]

    def test_formality_is_a_tag_where_the_model_has_it(self, app: Any, known: Translator) -> None:
        plain, formal = (known.translate([CAT], target="de", tags=tags)[0].text for tags in ([], ["formal"]))
        assert plain != formal

        def deepl(formality: str) -> tuple[int, Any]:
            status, told = post(app, "/v2/translate", text=[CAT], source_lang="EN", target_lang="DE", formality=formality)
            return status, told["translations"][0]["text"] if status == 200 else told["message"]

        assert [deepl(each) for each in ("more", "prefer_more", "default", "prefer_less")] == [
            (200, formal), (200, formal), (200, plain), (200, plain)
        ]  # fmt: skip
        assert deepl("less") == (400, "Target language 'DE' doesn't support formality.")

    def test_of_a_bundle_with_many_sources_tags_are_asked_once(self, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
        languages, asked, found = ServedLanguages(models), list[str](), models.by_id

        def by_id(id: str) -> ServedModel:
            asked.append(id)
            return found(id)

        monkeypatch.setattr(models, "by_id", by_id)
        assert languages.knows_tags(None, "en", ["formal", "ui"]) and asked == ["multi"], "not for each of two hundred sources"

    def test_languages_support_formality_where_all_that_leads_there_does(self) -> None:
        both, none = ServedModel("both", formal_and_informal(), speed=1.0), ServedModel("none", translator(tags=None), speed=1.0)
        assert ServedLanguages(Models([both, none])).knows_tags(None, "de", ["formal", "informal"])
        assert not ServedLanguages(Models([none, both])).knows_tags(None, "de", ["formal", "informal"])
        assert ServedLanguages(Models([none, both])).knows_tags("en", "fr", ["formal", "informal"])


@pytest.mark.slow
def test_a_bundle_is_loaded_warmed_up_and_measured_once(tmp_path: Path) -> None:
    loaded = load([str(write_tagged(tmp_path / "multi"))], threads=1)
    try:
        views = [loaded.pick(*pair) for pair in DIRECTIONS]
        assert {each.speed for each in views} == {loaded.all[0].speed} and len({each.translator.engine for each in views}) == 1
    finally:
        loaded.close()
