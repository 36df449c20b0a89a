"""Ready-made clients, unchanged, against a real server: three libraries, and requests shaped as well-known programs send them."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import deepl
import httpx
import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import AuthorizationException
from labelled import Serving, formal_and_informal, labelled, loaded, serving
from libretranslatepy import LibreTranslateAPI

from limelight.serving.access.keys import Keys
from limelight.serving.queue.models import Models
from limelight.serving.queue.served_model import ServedModel
from tagged_bundle import TEXTS

SEVEN, CAT = "sieben", TEXTS[0]


@pytest.fixture(scope="module")
def keyed(starts_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, str]]:
    """A server that asks for a key, with English, German and Portuguese; and the key."""
    path: Path = tmp_path_factory.mktemp("keys") / "keys.toml"
    key = Keys.add_key(path, "clients")
    with (
        loaded() as translator,
        serving(labelled(translator, ("en", "de"), ("de", "en"), ("en", "pt")), keys=path) as server,
    ):
        yield server, key


class TestLibretranslatepy:
    def test_it_translates_lists_languages_and_detects(self, keyed: tuple[Serving, str]) -> None:
        api = LibreTranslateAPI(keyed[0].url, keyed[1])
        assert api.translate("seven", "en", "de") == SEVEN
        assert [each["code"] for each in api.languages()] == ["en", "de", "pt"]
        assert api.detect("one two three four five six")[0]["language"] == "en"


class TestDeepTranslator:
    def test_it_translates_with_everything_in_the_query(self, keyed: tuple[Serving, str]) -> None:
        there = LibreTranslator("English", "German", api_key=keyed[1], custom_url=f"{keyed[0].url}/")
        assert there.translate("seven") == SEVEN
        assert there.translate_batch(["seven", "seven"]) == [SEVEN, SEVEN]

    def test_it_understands_that_its_key_is_wrong(self, keyed: tuple[Serving, str]) -> None:
        wrong = LibreTranslator("en", "de", api_key="wrong", custom_url=f"{keyed[0].url}/")
        with pytest.raises(AuthorizationException):
            wrong.translate("seven")


class TestDeepl:
    """The official package. It sends its languages as the body of a GET and wants billed characters."""

    @pytest.fixture
    def client(self, keyed: tuple[Serving, str]) -> Iterator[deepl.DeepLClient]:
        with closing(deepl.DeepLClient(keyed[1], server_url=keyed[0].url)) as client:
            yield client

    def test_it_translates_one_and_several_texts(self, client: deepl.DeepLClient) -> None:
        one = client.translate_text("seven", target_lang="DE")
        assert isinstance(one, deepl.TextResult)
        assert (one.text, one.detected_source_lang, one.billed_characters) == (SEVEN, "EN", 5)
        several = client.translate_text(["seven", "seven"], source_lang="EN", target_lang="PT-BR")
        assert [each.text for each in several] == [SEVEN, SEVEN]  # type: ignore[union-attr]

    def test_it_translates_tags_and_splits_as_told(self, client: deepl.DeepLClient) -> None:
        xml = client.translate_text(
            "<p>seven</p><x>seven</x>",
            source_lang="EN",
            target_lang="DE",
            tag_handling="xml",
            ignore_tags=["x"],
            split_sentences=deepl.SplitSentences.NO_NEWLINES,
            formality=deepl.Formality.PREFER_MORE,
            preserve_formatting=True,
            model_type=deepl.ModelType.QUALITY_OPTIMIZED,
            context="numbers",
        )
        assert isinstance(xml, deepl.TextResult)
        assert (xml.text, xml.model_type_used) == (f"<p>{SEVEN}</p><x>seven</x>", "quality_optimized")

    def test_it_lists_languages_and_usage(self, client: deepl.DeepLClient) -> None:
        assert [each.code for each in client.get_source_languages()] == ["EN", "DE"]
        targets = client.get_target_languages()
        assert [each.code for each in targets] == ["DE", "EN-US", "EN-GB", "PT-BR", "PT-PT"]
        assert not any(each.supports_formality for each in targets)
        assert client.get_usage().character.count is not None

    def test_it_keeps_a_glossary_and_translates_by_it(self, client: deepl.DeepLClient, tmp_path: Path) -> None:
        pairs = [(each.source_lang, each.target_lang) for each in client.get_glossary_languages()]
        assert pairs == [("de", "en"), ("en", "de"), ("en", "pt")]
        made = client.create_glossary("terms", "EN", "DE", {"seven": "Siebending"})
        assert (made.name, made.source_lang, made.target_lang, made.entry_count) == ("terms", "EN", "DE", 1)
        assert made.ready and [each.glossary_id for each in client.list_glossaries()] == [made.glossary_id]
        assert client.get_glossary(made.glossary_id).name == "terms"
        assert client.get_glossary_entries(made) == {"seven": "Siebending"}
        found = client.translate_text("seven", source_lang="EN", target_lang="DE", glossary=made)
        assert isinstance(found, deepl.TextResult) and "Siebending" in found.text
        given, out = tmp_path / "a.txt", tmp_path / "b.txt"
        given.write_bytes(b"seven\n")
        client.translate_document_from_filepath(given, out, source_lang="EN", target_lang="DE", glossary=made)
        assert b"Siebending" in out.read_bytes()
        with pytest.raises(deepl.DeepLException, match="for EN to DE"):
            client.translate_text("seven", source_lang="EN", target_lang="PT-BR", glossary=made.glossary_id)
        client.delete_glossary(made)
        for gone in (lambda: client.get_glossary(made.glossary_id), lambda: client.delete_glossary(made)):
            with pytest.raises(deepl.GlossaryNotFoundException):
                gone()
        assert client.list_glossaries() == []
        csv = client.create_glossary_from_csv("csv", "EN", "DE", 'one,"Eins, ja"\n"two, too",Zwei,en,de\n')
        assert client.get_glossary_entries(csv) == {"one": "Eins, ja", "two, too": "Zwei"}
        client.delete_glossary(csv)

    def test_it_sends_a_document_and_fetches_it(self, client: deepl.DeepLClient, tmp_path: Path) -> None:
        given, out = tmp_path / "a.txt", tmp_path / "b.txt"
        given.write_bytes(b"seven\n")
        status = client.translate_document_from_filepath(given, out, source_lang="EN", target_lang="DE")
        assert status.done and out.read_bytes() == b"sieben\n"

    def test_its_errors_are_of_the_right_kind_and_not_tried_again(self, client: deepl.DeepLClient, keyed: tuple[Serving, str]) -> None:
        with pytest.raises(deepl.DeepLException, match="doesn't support formality"):
            client.translate_text("seven", target_lang="DE", formality="more")
        with (
            closing(deepl.DeepLClient("wrong", server_url=keyed[0].url)) as stranger,
            pytest.raises(deepl.AuthorizationException),
        ):
            stranger.translate_text("seven", target_lang="DE")


def posted(keyed: tuple[Serving, str], path: str, **sent: Any) -> Any:
    response = keyed[0].client.post(path, **sent)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.process
def test_requests_shaped_as_those_of_mastodon(tmp_path: Path) -> None:
    """Every request says that it is JSON, also the one for the languages, which has neither a body nor a key. Posts come as several pieces
    of HTML with the key beside them, and null for a language that is not known is sent as auto."""
    key = Keys.add_key(tmp_path / "keys.toml", "mastodon")
    as_sent = {
        "User-Agent": "Mastodon/4.5.0 (http.rb/5.3.1)",
        "Accept-Encoding": "gzip",
        "Content-Type": "application/json",
    }
    with (
        loaded() as translator,
        serving(
            labelled(translator, ("en", "de"), ("de", "en"), ("en", "pt")),
            keys=tmp_path / "keys.toml",
            open_languages=True,
        ) as server,
        httpx.Client(base_url=server.url, headers=as_sent, timeout=30) as client,
    ):
        listed = client.get("/languages").json()
        assert {each["code"]: [to for to in each["targets"] if to != each["code"]] for each in listed} == {
            "en": ["de", "pt"],
            "de": ["en"],
            "pt": [],
        }
        body = {"q": ["<p>seven</p>", "seven"], "source": "en", "target": "de", "format": "html", "api_key": key}
        found = client.post("/translate", content=json.dumps(body)).json()
        assert found == {"translatedText": [f"<p>{SEVEN}</p>", SEVEN]}
        body |= {"q": ["<p>one two three four five six</p>"], "source": "auto"}
        found = client.post("/translate", content=json.dumps(body)).json()
        assert found["detectedLanguage"][0]["language"] == "en" and isinstance(found["translatedText"], list)
        assert client.post("/translate", content=json.dumps({**body, "api_key": "wrong"})).status_code == 403


def test_requests_shaped_as_those_of_discourse(keyed: tuple[Serving, str]) -> None:
    """urlencoded; first it asks for the language, then for the translation as HTML."""
    text = "<p>one two three four five six</p>"
    assert posted(keyed, "/detect", data={"q": text, "api_key": keyed[1]})[0]["language"] == "en"
    fields = {"q": "<p>seven</p>", "source": "en", "target": "de", "format": "html", "api_key": keyed[1]}
    assert posted(keyed, "/translate", data=fields)["translatedText"] == f"<p>{SEVEN}</p>"


def test_requests_shaped_as_those_of_zotero(keyed: tuple[Serving, str]) -> None:
    """JSON; of a language only what stands before the hyphen; `error` must not be in the answer."""
    body = {"q": "seven", "source": "en", "target": "de", "format": "text", "api_key": keyed[1]}
    found = posted(keyed, "/translate", json=body)
    assert found["translatedText"] == SEVEN and "error" not in found


@pytest.mark.parametrize("source", ["en", "EN", "auto"])
def test_requests_shaped_as_those_of_clients_of_deeplx(keyed: tuple[Serving, str], source: str) -> None:
    """PDFMathTranslate, pot and Zotero: one text, no list; the answer is read from `data`. A list is answered as ever."""
    path, body = f"/v2/translate?auth_key={keyed[1]}", {"text": "one two three four five six", "source_lang": source, "target_lang": "de"}
    found = posted(keyed, path, json=body)
    assert found["data"] == found["translations"][0]["text"] != ""
    assert "data" not in posted(keyed, path, json={**body, "text": [body["text"]]})


def test_the_engine_of_the_page_as_calibre_uses_it(keyed: tuple[Serving, str]) -> None:
    """The words of the engine are put into its JSON as text, quotation marks escaped; the answer is read by the expression."""
    page = (Path(__file__).parents[2] / "docs" / "works-with.md").read_bytes().decode()
    engine = json.loads(page.split("```json\n")[1].split("```")[0])
    asked = engine["request"]
    given = json.dumps({**asked["data"], "api_key": keyed[1]})
    for mark, value in (("<source>", "en"), ("<target>", "de"), ("<text>", 'seven "seven"'.replace('"', '\\"'))):
        given = given.replace(mark, value)
    path = asked["url"].removeprefix("http://127.0.0.1:5000")
    response = posted(keyed, path, content=given.encode(), headers=asked["headers"])
    assert engine["response"] == "response['translatedText']" and isinstance(response["translatedText"], str)
    broken = keyed[0].client.post(path, content=given.replace("seven", "a\nb").encode(), headers=asked["headers"])
    assert broken.status_code == 400


def test_requests_shaped_as_those_of_an_extension_of_a_browser(keyed: tuple[Serving, str]) -> None:
    """Linguist's translators are pages of another origin, and send JSON."""
    origin = {"Origin": "chrome-extension://gbefmodhlophhakmoecijeppjblibmie"}
    answer = keyed[0].client.post(
        "/translate", json={"q": ["seven", "seven"], "source": "en", "target": "de", "api_key": keyed[1]}, headers=origin
    )
    assert answer.json()["translatedText"] == [SEVEN, SEVEN] and answer.headers["access-control-allow-origin"] == "*"


def test_requests_shaped_as_those_of_weblate(keyed: tuple[Serving, str]) -> None:
    """LibreTranslate by a form; DeepL by JSON with its placeholders as tags that are to be ignored."""
    fields = {"q": "seven", "source": "en", "target": "de", "api_key": keyed[1]}
    assert posted(keyed, "/translate", data=fields)["translatedText"] == SEVEN
    header = {"Authorization": f"DeepL-Auth-Key {keyed[1]}"}
    body = {
        "text": ['seven <x id="6"></x>'],
        "source_lang": "EN",
        "target_lang": "DE",
        "tag_handling": "xml",
        "ignore_tags": ["x"],
        "formality": "prefer_more",
    }
    found = posted(keyed, "/v2/translate", json=body, headers=header)["translations"][0]
    assert found["text"] == f'{SEVEN} <x id="6"></x>'
    asked = ("/v2/languages?type=source", "/v2/languages?type=target", "/v2/glossary-language-pairs")
    answers: list[httpx.Response] = [keyed[0].client.get(path, headers=header) for path in asked]
    assert [answer.status_code for answer in answers] == [200, 200, 200]


@pytest.mark.process
def test_official_clients_use_every_direction_and_the_formality_of_one_model() -> None:
    known = formal_and_informal()
    with (
        serving(Models([ServedModel("multi", known, speed=1_000.0)])) as server,
        closing(deepl.DeepLClient("x", server_url=server.url)) as client,
    ):
        libre = LibreTranslateAPI(f"{server.url}/")
        assert {each["code"]: each["targets"][1:] for each in libre.languages()} == {"en": ["de", "fr"], "de": ["en"], "fr": ["en"]}
        assert libre.translate(CAT, "fr", "en") == known.translate([CAT], source="fr", target="en")[0].text
        targets = client.get_target_languages()
        assert [each.code for each in targets] == ["DE", "FR", "EN-US", "EN-GB"] and all(each.supports_formality for each in targets)
        for formality, tag in ((deepl.Formality.MORE, "formal"), (deepl.Formality.PREFER_LESS, "informal")):
            made = client.translate_text(CAT, source_lang="EN", target_lang="FR", formality=formality, context="pets")
            assert isinstance(made, deepl.TextResult) and made.text == known.translate([CAT], target="fr", tags=[tag])[0].text
