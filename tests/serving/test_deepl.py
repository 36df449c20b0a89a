"""The DeepL-compatible API: what its clients send and expect, and nothing left out in silence."""

import io
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from labelled import Serving, labelled, loaded, serving

from limelight.serving.access.keys import Keys
from limelight.serving.compat.deepl.request import DeepLRequest
from limelight.serving.compat.detect import Detector, LanguageProbabilities
from limelight.translator import Translator

pytestmark = pytest.mark.process

LIMITS = {"characters": 200, "texts": 4}
SEVEN = "sieben"
GERMAN = "Der Ausschuss entscheidet im Frühjahr über die neue Brücke."


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with loaded() as translator:
        yield translator


@pytest.fixture(scope="module")
def server(translator: Translator) -> Iterator[Serving]:
    models = labelled(translator, ("en", "de"), ("fr", "de"), ("de", "en"), ("de", "pt-BR"))
    with serving(models, limits=LIMITS) as server:
        yield server


def asked(server: Serving, **fields: Any) -> httpx.Response:
    return server.client.post("/v2/translate", json={"text": ["seven"], "target_lang": "DE", **fields})


def texts(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [each["text"] for each in response.json()["translations"]]


def message(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["message"]


def test_texts_are_translated_each_by_itself_in_order(server: Serving) -> None:
    found = asked(server, text=["seven", "", "😀", "seven"], source_lang="EN").json()
    entry = {"detected_source_language": "EN", "text": SEVEN}
    assert found == {"translations": [entry, {**entry, "text": ""}, {**entry, "text": "😀"}, entry]}


@pytest.mark.parametrize("shape", ["bare", "form", "query", "get"])
def test_texts_come_as_a_string_in_a_form_or_in_the_query(server: Serving, shape: str) -> None:
    fields = {"text": "seven", "target_lang": "de", "source_lang": "en"}
    several = {**fields, "text": ["seven", "seven"]}
    response = {
        "bare": lambda: server.client.post("/v2/translate", json=fields),
        "form": lambda: server.client.post("/v2/translate", data=several),
        "query": lambda: server.client.post("/v2/translate", params=several),
        "get": lambda: server.client.get("/v2/translate", params=several),
    }[shape]()
    assert texts(response) == [SEVEN] * (1 if shape == "bare" else 2)


def test_billed_characters_and_the_kind_of_model_are_told_when_asked_for(server: Serving) -> None:
    told = asked(server, text="seven 😀", show_billed_characters=True, model_type="latency_optimized").json()
    assert told["translations"][0]["billed_characters"] == 7
    assert told["translations"][0]["model_type_used"] == "quality_optimized"
    form = server.client.post("/v2/translate", data={"text": "seven", "target_lang": "DE", "show_billed_characters": "1"})
    assert form.json()["translations"][0]["billed_characters"] == 5
    assert set(asked(server).json()["translations"][0]) == {"detected_source_language", "text"}


def test_the_source_of_each_text_is_detected_among_those_that_lead_to_the_target(server: Serving) -> None:
    french = "Le comité se réunira au printemps pour décider du nouveau pont."
    found = asked(server, text=["one two three four five six", french, GERMAN]).json()["translations"]
    assert [each["detected_source_language"] for each in found] == ["EN", "FR", "DE"]
    assert found[2]["text"] == GERMAN  # it is in the target language already


@pytest.mark.parametrize(("code", "language"), [("EN-US", "de"), ("en-gb", "de"), ("PT-BR", "de"), ("PT-PT", "de"), ("DE", "en")])
def test_regions_of_targets_are_understood(server: Serving, code: str, language: str) -> None:
    assert texts(asked(server, target_lang=code, source_lang=language.upper())) == [SEVEN]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"text": None}, "Parameter 'text' not specified"),
        ({"text": []}, "Parameter 'text' not specified"),
        ({"target_lang": None}, "Value for 'target_lang' not supported."),
        ({"target_lang": "FR"}, "Value for 'target_lang' not supported."),
        ({"target_lang": "ZZ"}, "Value for 'target_lang' not supported."),
        ({"source_lang": "ZZ"}, "Value for 'source_lang' not supported."),
        ({"source_lang": "PT"}, "Value for 'source_lang' not supported."),
        ({"formality": "more"}, "Target language 'DE' doesn't support formality."),
        ({"formality": "polite"}, "Value for 'formality' not supported."),
        ({"glossary_id": "a"}, "Parameter 'glossary_id' needs 'source_lang'."),
        ({"glossary_ids": ["a"]}, "Parameter 'glossary_ids' is not supported by this server."),
        ({"style_id": "a"}, "Parameter 'style_id' is not supported by this server."),
        ({"translation_memory_id": "a"}, "Parameter 'translation_memory_id' is not supported by this server."),
        ({"custom_instructions": ["be nice"]}, "Parameter 'custom_instructions' is not supported by this server."),
        ({"split_sentences": "2"}, "Value for 'split_sentences' not supported."),
        ({"tag_handling": "markdown"}, "Value for 'tag_handling' not supported."),
        ({"ignore_tags": ["x"]}, "Parameter 'ignore_tags' needs 'tag_handling' to be xml."),
        ({"tag_handling": "html", "splitting_tags": "p"}, "Parameter 'splitting_tags' needs 'tag_handling' to be xml."),
        ({"outline_detection": False}, "Parameter 'outline_detection' needs 'tag_handling' to be xml."),
        ({"tag_handling": "xml", "text": "<b>seven"}, "a text cannot be parsed"),
    ],
)
def test_what_cannot_be_done_is_a_bad_request_that_says_so(server: Serving, fields: dict[str, Any], sentence: str) -> None:
    assert message(asked(server, **fields)) == (400, sentence)


@pytest.mark.parametrize(
    "fields",
    [
        {"text": 7},
        {"text": [None]},
        {"text": {}},
        {"target_lang": 3},
        {"source_lang": []},
        {"split_sentences": []},
        {"show_billed_characters": "maybe"},
        {"preserve_formatting": []},
        {"tag_handling": 1},
        {"formality": {}},
    ],
)
def test_values_of_a_wrong_type_are_bad_requests(server: Serving, fields: dict[str, Any]) -> None:
    assert asked(server, **fields).status_code == 400


def test_too_much_is_413_which_clients_do_not_send_again(server: Serving) -> None:
    assert asked(server, text=["seven"] * 5).status_code == 413
    assert asked(server, text="x" * 201).status_code == 413


@pytest.mark.parametrize(
    "fields",
    [
        {"formality": "prefer_less"},
        {"formality": "default", "preserve_formatting": True, "context": "numbers", "enable_beta_languages": True},
        {"glossary_id": None, "glossary_ids": [], "tag_handling_version": "v2"},
    ],
)
def test_what_changes_nothing_here_is_accepted(server: Serving, fields: dict[str, Any]) -> None:
    assert texts(asked(server, **fields)) == [SEVEN]


def test_sentences_are_split_as_asked(server: Serving) -> None:
    text = "seven\nseven"
    assert texts(asked(server, text=text)) == [f"{SEVEN}\n{SEVEN}"]
    assert texts(asked(server, text=text, split_sentences="1")) == [f"{SEVEN}\n{SEVEN}"]
    for whole in ("0", "nonewlines"):
        assert "\n" not in texts(asked(server, text=text, split_sentences=whole))[0]
    joined = texts(asked(server, text="seven seven"))
    assert texts(asked(server, text="seven \n seven", split_sentences="nonewlines")) == joined


def test_a_thousand_blanks_take_no_longer_than_a_thousand_letters() -> None:
    texts = ["a" + " " * 4_998 + "a"] * 128
    asked = DeepLRequest(texts, "en", "de", "nonewlines", None, billed=False, model_type=False)
    begin = time.perf_counter()
    assert asked.join_lines() == texts
    assert time.perf_counter() - begin < 0.5
    assert replace(asked, texts=[" a \t\r\n\n b  c\rd "]).join_lines() == ["a b  c d"]


def test_tags_are_kept_and_their_rules_followed(server: Serving) -> None:
    assert texts(asked(server, text="<p>seven</p>", tag_handling="html")) == [f"<p>{SEVEN}</p>"]
    xml = {"tag_handling": "xml", "text": "<p>seven</p><x>seven</x>"}
    assert texts(asked(server, **xml)) == [f"<p>{SEVEN}</p><x>{SEVEN}</x>"]
    for tags in (["x", "y"], "y, x"):
        assert texts(asked(server, **xml, ignore_tags=tags)) == [f"<p>{SEVEN}</p><x>seven</x>"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("place", ["params", "data"])
def test_languages_are_listed_for_sources_and_targets_also_with_a_get_that_has_a_body(server: Serving, method: str, place: str) -> None:
    def listed(kind: str) -> Any:
        return server.client.request(method, "/v2/languages", **{place: {"type": kind}})

    assert listed("source").json() == [
        {"language": "EN", "name": "English"},
        {"language": "FR", "name": "French"},
        {"language": "DE", "name": "German"},
    ]
    assert listed("target").json() == [
        {"language": "DE", "name": "German", "supports_formality": False},
        {"language": "EN-US", "name": "English (American)", "supports_formality": False},
        {"language": "EN-GB", "name": "English (British)", "supports_formality": False},
        {"language": "PT-BR", "name": "Portuguese (Brazil)", "supports_formality": False},
    ]
    wrong = "Parameter 'type' is invalid. 'source' and 'target' are valid values."
    assert message(listed("both")) == (400, wrong)


def test_sources_are_the_default(server: Serving) -> None:
    assert server.client.get("/v2/languages").json()[0] == {"language": "EN", "name": "English"}


def test_every_answer_can_be_traced(server: Serving) -> None:
    for path in ("glossary-language-pairs", "glossaries", "glossaries/1"):
        assert server.client.get(f"/v2/{path}").headers["X-Trace-ID"]


def test_a_document_is_sent_asked_after_and_fetched_once(server: Serving) -> None:
    sent = server.client.post("/v2/document", data={"target_lang": "DE", "source_lang": "EN"}, files={"file": ("a.txt", b"seven\n")}).json()
    assert set(sent) == {"document_id", "document_key"}
    place, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
    told = server.client.post(place, json=key).json()
    assert (told["status"], told["billed_characters"]) == ("done", 6)
    assert server.client.post(f"{place}/result", json={"document_key": "0" * 64}).status_code == 404
    assert server.client.post(f"{place}/result", json=key).content == b"sieben\n"
    assert server.client.post(f"{place}/result", json=key).status_code == 404


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("a.pdf", {}),
        ("a.txt", {"target_lang": "ZZ"}),
        ("a.txt", {"output_format": "html"}),
        ("a.txt", {"formality": "more"}),
        ("a.txt", {"glossary_id": "a"}),
    ],
)
def test_a_document_that_cannot_be_translated_as_asked_is_refused(server: Serving, name: str, fields: dict[str, str]) -> None:
    sent = {"target_lang": "DE", **fields}
    assert server.client.post("/v2/document", data=sent, files={"file": (name, b"seven")}).status_code == 400


def test_the_key_is_asked_for_and_usage_counts_what_was_translated(translator: Translator, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    key = Keys.add_key(path, "a", characters_per_month=12)
    with serving(labelled(translator, ("en", "de")), keys=path) as server:
        fields = {"text": "seven", "source_lang": "EN", "target_lang": "DE"}
        assert server.client.post("/v2/translate", json=fields).status_code == 403
        assert server.client.get("/v2/usage").status_code == 403
        assert texts(server.client.post("/v2/translate", json={**fields, "auth_key": key})) == [SEVEN]
        header = {"Authorization": f"DeepL-Auth-Key {key}"}
        assert texts(server.client.post("/v2/translate", json=fields, headers=header)) == [SEVEN]
        assert server.client.post("/v2/translate", json={**fields, "target_lang": "ZZ"}, headers=header).is_client_error
        usage = server.client.get("/v2/usage", headers=header).json()
        assert usage == {"character_count": 10, "character_limit": 12}
        assert server.client.post("/v2/translate", json=fields, headers=header).status_code == 456
        assert server.client.get("/v2/usage", headers=header).json()["character_count"] == 10


def test_a_packed_document_costs_the_characters_in_it(translator: Translator, tmp_path: Path) -> None:
    path, file = tmp_path / "keys.toml", io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.xhtml", f"<html><body>{'<p>seven seven</p>' * 400}</body></html>")
    assert len(file.getvalue()) < 1000
    keys = [Keys.add_key(path, str(granted), characters_per_month=granted, characters_per_minute=600) for granted in (1000, 10_000)]
    poor, rich = ({"Authorization": f"DeepL-Auth-Key {key}"} for key in keys)
    sent: dict[str, Any] = {"data": {"source_lang": "EN", "target_lang": "DE"}, "files": {"file": ("a.epub", file.getvalue())}}
    with serving(labelled(translator, ("en", "de")), keys=path) as server:
        assert server.client.post("/v2/document", headers=poor, **sent).status_code == 456
        assert server.client.get("/v2/usage", headers=poor).json()["character_count"] == 0
        made = server.client.post("/v2/document", headers=rich, **sent).json()
        told = server.client.post(f"/v2/document/{made['document_id']}", json={"document_key": made["document_key"]}, headers=rich).json()
        used = server.client.get("/v2/usage", headers=rich).json()["character_count"]
        assert told["billed_characters"] == used == 400 * len("seven seven")
        assert server.client.post("/v2/document", headers=rich, **sent).status_code == 429


def test_a_document_that_is_not_packed_costs_its_bytes(translator: Translator, tmp_path: Path) -> None:
    """Though its texts, with our tags in the place of its own, would be more."""
    path = tmp_path / "keys.toml"
    header = {"Authorization": f"DeepL-Auth-Key {Keys.add_key(path, 'a', characters_per_month=10_000)}"}
    page = ("<p><b>seven</b> <i>one</i></p>" * 20).encode()
    with serving(labelled(translator, ("en", "de")), keys=path) as server:
        sent: dict[str, Any] = {"data": {"source_lang": "EN", "target_lang": "DE"}, "files": {"file": ("a.html", page)}}
        assert server.client.post("/v2/document", headers=header, **sent).status_code == 200
        assert server.client.get("/v2/usage", headers=header).json()["character_count"] == len(page)


def test_who_may_ask_no_more_has_no_language_detected_either(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys.toml"
    header = {"Authorization": f"DeepL-Auth-Key {Keys.add_key(path, 'a', requests_per_minute=2)}"}
    looked: list[int] = []
    real = Detector.look

    def counting(self: Detector, texts: Sequence[str]) -> list[LanguageProbabilities]:
        looked.append(len(texts))
        return real(self, texts)

    monkeypatch.setattr(Detector, "look", counting)
    with serving(labelled(translator, ("en", "de")), keys=path) as server:
        sent = [
            ("/v2/translate", {"json": {"text": ["seven", "one two three"], "target_lang": "DE"}}),
            ("/v2/document", {"data": {"target_lang": "DE"}, "files": {"file": ("a.txt", b"seven")}}),
            ("/translate", {"json": {"q": "seven", "source": "auto", "target": "de"}}),
            ("/translate_file", {"data": {"source": "auto", "target": "de"}, "files": {"file": ("a.txt", b"seven")}}),
            ("/detect", {"json": {"q": "seven"}}),
        ]
        statuses = [server.client.post(place, headers=header, **given).status_code for place, given in sent]  # type: ignore[arg-type]
    assert statuses == [200, 429, 429, 429, 429] and looked == [2]
