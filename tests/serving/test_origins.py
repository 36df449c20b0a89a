"""Pages of other sites: what a browser sends for them without asking first, over real sockets."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from native_server import Running, running, stored

from limelight.serving.queue.models import Models

EVIL = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
OLD = {"Origin": "https://evil.example"}  # browsers say Sec-Fetch-Site only where the server is on loopback or has TLS
NATIVE = {
    "/api/v1/translate": {"text": "one"},
    "/api/v1/tokenize": {"text": "one"},
    "/api/v1/score": {"source": "one", "target": "eins"},
    "/api/v1/trace": {"source": "one two"},
    "/api/v1/importance": {"sentences": ["one two"]},
    "/api/v1/export": {"trace_id": "x", "format": "json"},
    "/api/v1/why": {"trace_id": "x", "piece": 0},
    "/api/v1/documents": {"name": "a.txt", "data": "b25l"},
    "/api/v1/documents/file": {"name": "a.txt", "data": "b25l", "segments": {}},
}
KEEPING = ["/translate_file", "/suggest", "/v2/document", "/v2/glossaries"]
FORM = {"q": "seven", "source": "en", "target": "de"}


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    made = stored()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(starts_process: None, models: Models) -> Iterator[Running]:
    with running(models, hosts=("mt.example",)) as found:
        yield found


def sent(server: Running, path: str, body: Any, kind: str | None, **headers: str) -> httpx.Response:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return server.client.post(path, content=json.dumps(body), headers=told | ({"Content-Type": kind} if kind else {}))


@pytest.mark.parametrize("path", NATIVE)
@pytest.mark.parametrize("kind", ["text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", None])
def test_our_own_api_takes_nothing_that_is_not_called_json(server: Running, path: str, kind: str | None) -> None:
    refused = sent(server, path, NATIVE[path], kind)
    assert refused.status_code == 415
    told = refused.json()["error"]
    assert told["code"] == "wrong_type" and "Content-Type: application/json" in told["hint"]


@pytest.mark.parametrize("path", NATIVE)
@pytest.mark.parametrize("foreign", [EVIL, OLD, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}])
@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
def test_our_own_api_does_nothing_for_pages_of_other_sites(server: Running, path: str, foreign: dict[str, str], kind: str) -> None:
    refused = sent(server, path, NATIVE[path], kind, **foreign)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "foreign_origin" and "hosts" in refused.json()["error"]["hint"]
    assert server.client.delete("/api/v1/trace/x", headers=foreign).status_code == 403


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://mt.example"},
        {"Origin": "https://mt.example"},
    ],
)
def test_the_page_programs_and_the_names_of_this_server_are_not_foreign(server: Running, own: dict[str, str]) -> None:
    assert sent(server, "/api/v1/translate", {"text": "seven"}, "application/json; charset=utf-8", **own).is_success
    assert sent(server, "/api/v1/trace", {"source": "seven"}, "application/json", **own).is_success
    file = {"file": ("a.txt", b"seven")}
    assert server.client.post("/translate_file", data=FORM, files=file, headers=own).is_success
    here = {"Origin": server.url}
    assert sent(server, "/api/v1/translate", {"text": "seven"}, "application/json", **here).is_success


@pytest.mark.parametrize("path", KEEPING)
@pytest.mark.parametrize("foreign", [EVIL, OLD])
def test_pages_of_other_sites_leave_nothing_on_the_server(server: Running, path: str, foreign: dict[str, str]) -> None:
    file = {"file": ("a.txt", b"seven")}
    refused = server.client.post(path, data={**FORM, "target_lang": "DE"}, files=file, headers=foreign)
    assert refused.status_code == 403 and "Pages of other sites" in refused.text


def test_pages_of_other_sites_may_translate_by_the_public_dialects_unless_that_is_forbidden(server: Running, models: Models) -> None:
    body = {"text": ["seven"], "target_lang": "DE"}
    assert server.client.post("/translate", data=FORM, headers=EVIL).status_code == 200
    assert server.client.post("/v2/translate", json=body, headers=EVIL).status_code == 200
    with running(models, cors="off") as closed:
        for client in ({}, {"Sec-Fetch-Site": "same-origin"}):
            assert closed.client.post("/translate", data=FORM, headers=client).status_code == 200
        assert closed.client.post("/translate", data=FORM, headers=EVIL).status_code == 403
        assert closed.client.post("/v2/translate", json=body, headers=OLD).status_code == 403
        asked = "/v2/translate?text=seven&target_lang=DE"
        assert [closed.client.get(asked, headers=each).status_code for each in (EVIL, OLD, {})] == [403, 403, 200]
        assert closed.client.get("/languages", headers=EVIL).status_code == 200, "but cannot be read by the page"


@pytest.mark.parametrize("host", ["", "elsewhere.example", "10.0.0.1"])
def test_probes_need_no_name_of_this_server_and_all_else_does(server: Running, host: str) -> None:
    for path in ("/healthz", "/readyz"):
        assert server.client.get(path, headers={"Host": host}).status_code == 200
    assert server.client.get("/languages", headers={"Host": host}).status_code == 400
