"""Whatever is sent, the answer is as the document says, nothing invalid is accepted, and the server lives on (AT-19, short form)."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzzing import fuzz
from native_server import Running, running, stored
from starlette.responses import JSONResponse
from stored_requests import stored as stored_requests

from limelight.serving.queue.models import Models

pytestmark = [
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]  # of what schemathesis imports
REQUESTS = 160


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    made = stored()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(starts_process: None, models: Models, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    # Small limits: what is too much is then drawn often, and the engine is not what is tested here.
    limits = {"characters": 120, "texts": 3, "terms": 3}
    with running(models, limits=limits, suggestions=tmp_path_factory.mktemp("fuzz") / "suggestions.jsonl") as made:
        yield made


def test_requests_drawn_from_the_document_are_answered_as_it_says(server: Running) -> None:
    process = os.getpid()
    report = fuzz(server.url, REQUESTS, seed=1)
    assert report.problems == []
    assert report.requests >= 0.8 * REQUESTS and min(report.modes["valid"], report.modes["invalid"]) > REQUESTS / 4
    assert report.accepted > report.modes["valid"] / 5, "hardly anything was translated, so little was tested"
    assert max(report.statuses) < 500
    assert os.getpid() == process and server.client.get("/api/v1/health").status_code == 200


@pytest.mark.parametrize("path", sorted({each.path for each in stored_requests()}))
def test_stored_requests_are_refused_in_the_words_of_the_route(server: Running, path: str) -> None:
    for each in (each for each in stored_requests() if each.path == path):
        response = server.client.post(path, content=each.body, headers={"Content-Type": each.kind})
        assert 400 <= response.status_code < 500, (each.name, response.status_code, response.text[:200])
        told = response.json()
        message = told["message"] if path.startswith("/v2") else told["error"]
        message = message["message"] if path.startswith("/api") else message
        assert isinstance(message, str) and 0 < len(message) < 2_000, each.name


def test_there_are_two_hundred_stored_requests() -> None:
    assert len(list(stored_requests())) >= 200


@pytest.mark.long
def test_a_server_that_breaks_its_word_is_found_out(models: Models, tmp_path: Path, monkeypatch: Any) -> None:
    """The first test can fail: of three routes one falls over, one takes everything, one answers in another shape."""

    async def falls(self: Any, request: Any) -> Any:
        raise RuntimeError("on purpose")

    async def takes_all(self: Any, request: Any) -> Any:
        return JSONResponse({"model": "m", "log_prob": -1.0, "confidence": 0.5, "pieces": []})

    async def other_shape(self: Any) -> Any:
        return JSONResponse({"models": {"en-de": {}}})

    monkeypatch.setattr("limelight.serving.native.routes.Native.tokenize", falls)
    monkeypatch.setattr("limelight.serving.native.routes.Native.score", takes_all)
    monkeypatch.setattr("limelight.serving.native.routes.Native.models", other_shape)
    with running(models, limits={"characters": 50, "texts": 2}) as broken:
        problems = fuzz(broken.url, 60, seed=2).problems
    assert any("tokenize" in problem and " 500" in problem for problem in problems)
    assert any("/score invalid" in problem and "AcceptedNegativeData" in problem for problem in problems)
    assert any("GET /api/v1/models valid" in problem and "JsonSchemaError" in problem for problem in problems)
