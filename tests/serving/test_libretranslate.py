"""The LibreTranslate-compatible API: shapes that mirror `q`, the sentences of its errors, in its order, wherever parameters stand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from labelled import Serving, labelled, loaded, serving

from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.records import read_jsonl
from limelight.documents.kinds import KINDS
from limelight.serving.access.keys import Keys
from limelight.serving.queue.models import Models
from limelight.serving.queue.served_model import ServedModel
from limelight.translator import Translator

pytestmark = pytest.mark.process

LIMITS = {"characters": 200, "texts": 4, "alternatives": 3}
SEVEN, PAIR = "sieben", {"source": "en", "target": "de"}


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with loaded() as translator:
        yield translator


@pytest.fixture(scope="module")
def server(translator: Translator) -> Iterator[Serving]:
    """English to German and back, and German to French: not everything into everything."""
    models = labelled(translator, ("en", "de"), ("de", "en"), ("de", "fr"))
    with serving(models, limits=LIMITS) as server:
        yield server


def asked(server: Serving, **fields: Any) -> httpx.Response:
    return server.client.post("/translate", json={**PAIR, **fields})


def error(response: httpx.Response) -> tuple[int, str]:
    assert list(response.json()) == ["error"]
    return response.status_code, response.json()["error"]


def test_a_text_gives_a_text_and_a_list_gives_a_list(server: Serving) -> None:
    assert asked(server, q="seven").json() == {"translatedText": SEVEN}
    assert asked(server, q=["seven"]).json() == {"translatedText": [SEVEN]}
    assert asked(server, q=["seven", "", "seven two"]).json()["translatedText"][:2] == [SEVEN, ""]


@pytest.mark.parametrize("place", ["query", "urlencoded", "multipart", "both"])
def test_without_json_parameters_are_those_of_the_query_and_of_the_form(server: Serving, place: str) -> None:
    fields = {"q": "seven", **PAIR, "api_key": ""}
    sent: dict[str, Any] = {
        "query": {"params": fields},
        "urlencoded": {"data": fields},
        "multipart": {"files": {name: (None, value) for name, value in fields.items()}},
        "both": {"params": PAIR, "data": {"q": "seven"}},
    }[place]
    assert server.client.post("/translate", **sent).json() == {"translatedText": SEVEN}


def test_json_is_read_alone(server: Serving) -> None:
    response = server.client.post("/translate?q=seven", json=PAIR)
    assert error(response) == (400, "Invalid request: missing q parameter")


def test_line_breaks_of_a_form_are_those_of_unix(server: Serving) -> None:
    response = server.client.post("/translate", data={"q": "seven\r\nseven", **PAIR})
    assert response.json() == {"translatedText": f"{SEVEN}\n{SEVEN}"}


def test_alternatives_are_there_if_asked_for_all_different_and_mirror_the_shape(server: Serving) -> None:
    assert "alternatives" not in asked(server, q="seven", alternatives=0).json()
    assert "alternatives" not in asked(server, q="seven", alternatives=-2).json()
    one = asked(server, q="seven two", alternatives="3").json()
    assert 1 <= len(one["alternatives"]) <= 3
    assert len({one["translatedText"], *one["alternatives"]}) == 1 + len(one["alternatives"])
    several = asked(server, q=["seven two", "😀"], alternatives=3).json()
    assert several["alternatives"] == [one["alternatives"], []]


def test_the_detected_language_is_told_only_for_auto_once_for_each_text(server: Serving) -> None:
    english = "one two three four five six seven eight nine"
    assert "detectedLanguage" not in asked(server, q=english).json()
    told = asked(server, q=english, source="auto").json()["detectedLanguage"]
    assert told["language"] == "en" and 50 < told["confidence"] <= 100
    several = asked(server, q=[english, "😀"], source="AUTO").json()["detectedLanguage"]
    assert len(several) == 2 and several[0] == several[1] and several[0]["language"] == "en"


def test_a_text_that_is_in_the_target_language_already_stays_as_it_is(server: Serving) -> None:
    german = "Der Ausschuss entscheidet im Frühjahr über die neue Brücke."
    found = asked(server, q=german, source="auto").json()
    assert found["translatedText"] == german and found["detectedLanguage"]["language"] == "de"
    assert asked(server, q="seven", source="en", target="en").json() == {"translatedText": "seven"}


def test_auto_into_what_nothing_translates_into_is_refused_but_for_what_is_in_it_already(translator: Translator) -> None:
    with serving(labelled(translator, ("en", "de")), limits=LIMITS) as alone:
        refused = asked(alone, q="Der Ausschuss entscheidet im Frühjahr über die neue Brücke.", source="auto", target="en")
        assert refused.status_code == 400 and "not available as a target language from German" in refused.json()["error"]
        english = "The committee decides about the new bridge in the spring."
        found = asked(alone, q=english, source="auto", target="en").json()
        assert found["translatedText"] == english and found["detectedLanguage"]["language"] == "en"


@pytest.mark.parametrize("text", ["😀", " \n ", "👩‍🚀 … !", "→"])
def test_emoji_and_blanks_come_back_unchanged(server: Serving, text: str) -> None:
    assert asked(server, q=text).json() == {"translatedText": text}


def test_html_keeps_its_tags_and_has_no_alternatives(server: Serving) -> None:
    page = '<p class="ü">seven <!-- seven --><b>seven</b> &amp; 😀</p>'
    found = asked(server, q=page, format="html", alternatives=2).json()
    assert found["alternatives"] == []
    assert found["translatedText"].startswith('<p class="ü">') and found["translatedText"].endswith("</p>")
    assert SEVEN in found["translatedText"] and "<!-- seven -->" in found["translatedText"]
    assert asked(server, q=["<i>seven</i>", "seven"], format="html").json() == {"translatedText": [f"<i>{SEVEN}</i>", SEVEN]}


def test_entities_are_letters_in_html_and_not_in_plain_text(server: Serving) -> None:
    assert asked(server, q="&#115;even", format="html").json() == {"translatedText": SEVEN}
    assert asked(server, q="&#115;even").json() != {"translatedText": SEVEN}


@pytest.mark.parametrize("path", ["/languages", "/health", "/frontend/settings", "/v2/usage", "/v2/languages?type=target"])
def test_a_get_without_a_body_may_say_that_it_is_json(server: Serving, path: str) -> None:
    told = server.client.get(path, headers={"Content-Type": "application/json"})
    assert (told.status_code, told.json()) == (200, server.client.get(path).json())


@pytest.mark.parametrize("body", [b"[1]", b'"seven"', b"{", b"", b'{"q": NaN}', b'{"q": "\\ud800"}', b"\xff"])
def test_a_body_that_is_no_json_object_is_refused(server: Serving, body: bytes) -> None:
    response = server.client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    assert error(response) == (400, "Invalid JSON format")


@pytest.mark.parametrize("path", ["/translate", "/v2/translate"])
def test_json_that_is_sent_as_a_form_is_told_the_header(server: Serving, path: str) -> None:
    """As `curl -d '{...}'` sends it."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    response = server.client.post(path, content=b'{"q": "seven", "source": "en", "target": "de"}', headers=headers)
    assert response.status_code == 400 and "send the header Content-Type: application/json" in response.text


# Each has all the faults of those after it: what is checked first is told first.
ORDER: list[tuple[dict[str, Any], str]] = [
    ({"q": "", "source": "", "target": ""}, "Invalid request: missing q parameter"),
    ({"q": "a" * 201, "source": "", "target": "", "alternatives": "x"}, "Invalid request: missing source parameter"),
    ({"source": "zz", "target": ""}, "Invalid request: missing target parameter"),
    ({"target": "yy"}, "Invalid request: alternatives parameter is not a number"),
    ({"alternatives": 4}, "Invalid request: alternatives parameter must be <= 3"),
    ({"alternatives": 1}, "Invalid request: request (201) exceeds text limit (200)"),
    ({"q": ["a"] * 5}, "Invalid request: request (5) exceeds text limit (4)"),
    ({"q": "a", "format": "foo"}, "zz is not supported"),
    ({"source": "en"}, "yy is not supported"),
    ({"target": "fr"}, "foo format is not supported"),
    ({"format": "text"}, "French (fr) is not available as a target language from English (en)"),
]


def test_errors_have_their_sentences_in_their_order(server: Serving) -> None:
    fields: dict[str, Any] = {}
    for change, sentence in ORDER:
        fields |= change
        assert error(server.client.post("/translate", json=fields)) == (400, sentence)


@pytest.mark.parametrize(
    "fields",
    [{"q": None}, {"q": []}, {"q": 0}, {"q": {}}, {"q": ["seven", 7]}, {"q": 7}, {"q": "seven", "source": 1}]
    + [{"q": "seven", "alternatives": value} for value in (True, [], "1e3", "9" * 5000, {})]
    + [{"q": "seven", "format": 1}],
)  # fmt: skip
def test_values_of_a_wrong_type_are_bad_requests(server: Serving, fields: dict[str, Any]) -> None:
    status, sentence = error(asked(server, **fields))
    assert status == 400 and "Invalid request" in sentence


@pytest.mark.parametrize("code", ["DE", "de-AT", "De_ch"])
def test_languages_are_found_in_any_case_and_region(server: Serving, code: str) -> None:
    assert asked(server, q="seven", target=code).json() == {"translatedText": SEVEN}


def test_every_language_is_listed_with_itself_and_what_it_can_become(server: Serving) -> None:
    assert server.client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["en", "de"]},
        {"code": "de", "name": "German", "targets": ["de", "en", "fr"]},
        {"code": "fr", "name": "French", "targets": ["fr"]},
    ]


def test_brazilian_and_traditional_chinese_have_their_aliases(translator: Translator) -> None:
    with serving(labelled(translator, ("en", "pt-BR"), ("en", "zh"), ("eng_Latn", "zho_Hant"))) as server:
        for code in ("pb", "pt-br", "pt", "zh", "zh-Hans", "zt", "ZH-HANT"):
            assert asked(server, q="seven", target=code).json() == {"translatedText": SEVEN}, code
        listed = {each["code"]: each["name"] for each in server.client.get("/languages").json()}
    assert listed == {
        "en": "English",
        "pt-BR": "Portuguese (Brazil)",
        "zh": "Chinese",
        "zh-Hant": "Chinese (traditional)",
    }


def test_detection_gives_up_to_three_best_first(server: Serving) -> None:
    found = server.client.post("/detect", data={"q": "one two three four five six"}).json()
    assert found[0]["language"] == "en" and 1 <= len(found) <= 3
    sure = [each["confidence"] for each in found]
    assert sure == sorted(sure, reverse=True) and 50 < sure[0] <= 100


def test_what_is_in_no_language_is_english_with_no_confidence(server: Serving) -> None:
    assert server.client.post("/detect", json={"q": "123 😀"}).json() == [{"confidence": 0.0, "language": "en"}]
    assert error(server.client.post("/detect", json={})) == (400, "Invalid request: missing q parameter")


def test_detection_counts_as_requests_and_costs_no_characters(translator: Translator, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    key = Keys.add_key(path, "forum", requests_per_minute=3, characters_per_month=1)
    with serving(labelled(translator, ("en", "de")), keys=path) as server:
        sent = [server.client.post("/detect", json={"q": q, "api_key": key}) for q in (["one", "two"], "three", "four")]
        assert [each.status_code for each in sent] == [200, 200, 429]
    assert [(line.get("characters"), line.get("texts")) for line in server.lines] == [(0, 2), (0, 1), (None, None)]


def test_health_and_settings_are_as_clients_expect_them(server: Serving) -> None:
    assert server.client.get("/health").json() == {"status": "ok"}
    settings = server.client.get("/frontend/settings").json()
    assert settings == {
        "charLimit": 200,
        "frontendTimeout": 500,
        "apiKeys": False,
        "keyRequired": False,
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": [f".{kind}" for kind in KINDS],
        "language": {
            "source": {"code": "auto", "name": "Auto Detect"},
            "target": {"code": "de", "name": "German"},
        },
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/translate"), ("POST", "/languages"), ("GET", "/detect"), ("POST", "/health"), ("GET", "/suggest")],
)
def test_other_methods_are_not_allowed(server: Serving, method: str, path: str) -> None:
    assert error(server.client.request(method, path))[0] == 405


def sent_file(server: Serving, name: str, data: bytes, **fields: Any) -> httpx.Response:
    return server.client.post("/translate_file", files={"file": (name, data)}, data={**PAIR, **fields})


def test_a_file_goes_to_the_model_that_is_named(translator: Translator) -> None:
    """The page sends the one that was chosen; without a name it is the first for the pair."""
    first, second = labelled(translator, ("en", "de")).all[0], labelled(translator, ("en", "de")).all[0]
    with serving(Models([first, ServedModel("second", second.translator, speed=1_000.0)])) as two:
        assert sent_file(two, "a.txt", b"seven", model="second").status_code == 200
        assert sent_file(two, "a.txt", b"seven").status_code == 200
        assert error(sent_file(two, "a.txt", b"seven", model="third"))[0] == 404
        assert [line["model"] for line in two.lines if line["route"] == "/translate_file" and line["status"] == 200][:2] == [
            "second",
            "en-de",
        ]


def test_a_file_is_translated_and_can_be_fetched_once(server: Serving) -> None:
    place = sent_file(server, "../Menü.txt", b"seven\r\n\r\nseven\r\n").json()["translatedFileUrl"]
    assert place.startswith(f"{server.url}/download_file/") and place.endswith(".Men_.txt")
    fetched = server.client.get(place)
    assert fetched.content == b"sieben\r\n\r\nsieben\r\n"
    assert fetched.headers["content-disposition"] == "attachment; filename=\"Men_.txt\"; filename*=UTF-8''Men%C3%BC.txt"
    assert fetched.headers["content-type"] == "application/octet-stream"
    assert error(server.client.get(place))[0] == 404


def test_the_source_of_a_file_may_be_detected(server: Serving) -> None:
    page = b"<html><p>one two three four five six</p><p>seven</p></html>"
    place = sent_file(server, "a.html", page, source="auto").json()["translatedFileUrl"]
    assert b"<p>sieben</p>" in server.client.get(place).content


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.txt", b"", "Invalid request: empty file"),
        ("a.pdf", b"%PDF", "Invalid request: file format not supported"),
        ("a", b"seven", "Invalid request: file format not supported"),
    ],
)
def test_files_that_cannot_be_translated_are_refused(server: Serving, name: str, data: bytes, sentence: str) -> None:
    assert error(sent_file(server, name, data)) == (400, sentence)


def test_a_broken_document_and_a_missing_file_are_bad_requests(server: Serving) -> None:
    assert error(sent_file(server, "a.xliff", b"<xliff><file>"))[0] == 400
    assert error(sent_file(server, "a.txt", b"\x00\x01"))[0] == 400
    assert error(server.client.post("/translate_file", data=PAIR))[0] == 400
    assert error(server.client.get("/download_file/..%2f..%2fetc%2fpasswd"))[0] == 404


def test_files_and_suggestions_may_be_off(translator: Translator) -> None:
    with serving(labelled(translator, ("en", "de")), files=False) as server:
        assert error(sent_file(server, "a.txt", b"seven")) == (403, "Files translation are disabled on this server.")
        assert server.client.get("/frontend/settings").json()["filesTranslation"] is False
        suggestion = server.client.post("/suggest", json={"q": "a", "s": "b", **PAIR})
        assert error(suggestion) == (403, "Suggestions are disabled on this server.")


def test_suggestions_become_pairs_that_prepare_reads(translator: Translator, tmp_path: Path) -> None:
    place = tmp_path / "suggestions.jsonl"
    with serving(labelled(translator, ("en", "de"), ("de", "en")), suggestions=place, limits=LIMITS) as server:
        sent = [
            {"q": "two\u2028lines\n", "s": "zwei", "source": "en", "target": "de"},
            {"q": "drei", "s": "three", "source": "de", "target": "en"},
        ]
        for each in sent:
            assert server.client.post("/suggest", json=each).json() == {"success": True}
        for refused in ({"s": ""}, {"source": "auto"}, {"target": "de"}, {"s": "x" * 201}, {"target": "zz"}):
            assert error(server.client.post("/suggest", json={**sent[1], **refused}))[0] == 400
    assert place.stat().st_mode & 0o077 == 0
    batches = list(read_jsonl(CorpusPart(0, 0, "jsonl", (str(place),), ("en", "de")), 10))
    rows = [(row["source"], row["target"]) for batch in batches for row in batch.to_pylist()]
    assert rows == [("two\u2028lines\n", "zwei"), ("three", "drei")]


def test_a_key_is_taken_from_where_clients_put_it(translator: Translator, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    key = Keys.add_key(path, "forum", requests_per_minute=100)
    other = Keys.add_key(path, "other", requests_per_minute=2)
    with serving(labelled(translator, ("en", "de")), keys=path) as server:
        fields = {"q": "seven", **PAIR}
        post, get = server.client.post, server.client.get
        for sent in ({"json": {**fields, "api_key": key}}, {"data": {**fields, "api_key": key}},
                     {"params": {**fields, "api_key": key}},
                     {"json": {**fields, "api_key": None}, "headers": {"Authorization": f"Bearer {key}"}}):  # fmt: skip
            assert post("/translate", **sent).json() == {"translatedText": SEVEN}
        needed = (400, "Please contact the server operator to get an API key")
        assert error(post("/translate", json=fields)) == needed
        assert error(post("/translate", json={**fields, "api_key": None})) == needed
        assert error(get("/frontend/settings")) == needed and get("/languages").status_code == 200
        assert error(post("/translate", json={**fields, "api_key": key[:-1]})) == (403, "Invalid API key")
        assert error(post("/translate", json={**fields, "api_key": 7})) == (403, "Invalid API key")
        settings = get("/frontend/settings", params={"api_key": key}).json()
        assert settings["apiKeys"] and settings["keyRequired"]
        listed = server.client.request("GET", "/languages", data={"api_key": key})
        assert [each["code"] for each in listed.json()] == ["en", "de"]
        slow = post("/translate", json={**fields, "q": ["seven"] * 3, "api_key": other})
        assert slow.status_code == 200
        slow = post("/translate", json={**fields, "api_key": other})
        assert error(slow) == (429, "Slowdown: 2 per 1 minute") and int(slow.headers["Retry-After"]) >= 1
        file = {"files": {"file": ("a.txt", b"seven")}}
        place = post("/translate_file", **file, data={**PAIR, "api_key": key}).json()["translatedFileUrl"]
        assert error(get(place))[0] == 400
        assert error(get(place, params={"api_key": other}))[0] == 404
        assert get(place, params={"api_key": key}).content == b"sieben"
    assert json.dumps(server.lines).count(key) == 0
