"""AT-24: nothing that clients send stays anywhere: not in logs, metrics, traces or files."""

import asyncio
import io
import json
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from limelight.serving.access.keys import Keys
from limelight.serving.middleware.logs import json_lines, take_over
from limelight.serving.middleware.otel import OtelTracing
from limelight.serving.queue.models import Models, load
from limelight.serving.server import Server
from limelight.serving.settings import ServeSettings
from limelight.translator import Translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
NASTY = "\r\n\x1b[31m\u2028\u2029\x85\x00"


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    models = load([f"en-de={BUNDLE}"], threads=1)
    yield models
    models.close()


def shapes(canary: str, key: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Ways in which a text, or anything else of a client's, can come in: good, bad and malicious."""
    text, wrong = f"three {canary} four", key[:-1] + "!"
    bearer = {"Authorization": f"Bearer {key}"}
    return [
        ("POST", "/translate", {"json": {"q": text, "source": "en", "target": "de", "api_key": key}}),
        ("POST", "/translate", {"json": {"q": text, "source": canary, "target": "de", "api_key": key}}),
        ("POST", "/translate", {"json": {"q": text, "source": "en", "target": "de", "format": canary, "api_key": key}}),
        ("POST", "/translate", {"json": {"q": text, "source": "en", "target": "de", "api_key": wrong}}),
        ("POST", "/translate", {"params": {"q": text, "source": "en", "target": "de", "api_key": key}}),
        ("POST", "/translate", {"content": f'{{"q": "{canary}', "headers": {"Content-Type": "application/json"}}),
        ("POST", "/translate", {"json": {"q": text + NASTY, "source": "en", "target": "de", "api_key": key}}),
        ("POST", "/detect", {"data": {"q": text, "api_key": key}}),
        ("POST", "/v2/translate", {"json": {"text": [text], "target_lang": "DE"}, "headers": bearer}),
        ("POST", "/v2/translate", {"json": {"text": [text], "target_lang": canary}, "headers": bearer}),
        ("GET", f"/v2/usage?auth_key={key}&x={canary}", {}),
        ("POST", "/api/v1/translate", {"json": {"text": text, "pieces": True}, "headers": bearer}),
        ("POST", "/api/v1/translate", {"json": {"text": text, "stream": True}, "headers": bearer}),
        ("POST", "/api/v1/translate", {"json": {"text": text, canary: 1}, "headers": bearer}),
        ("POST", "/api/v1/translate", {"json": {"text": text, "model": canary}, "headers": bearer}),
        ("POST", "/api/v1/translate", {"json": {"text": f"crash {canary}"}, "headers": bearer}),
        ("POST", "/api/v1/translate", {"content": canary.encode() + b"\xff", "headers": bearer}),
        ("POST", "/api/v1/tokenize", {"json": {"text": text, "side": "source"}, "headers": bearer}),
        ("GET", f"/api/v1/models/{canary}", {"headers": bearer}),
        ("GET", f"/{canary}?{canary}", {"headers": {**bearer, "X-Canary": canary, "User-Agent": canary}}),
        ("GET", "/healthz", {"headers": {"Host": f"{canary}.example"}}),
        ("GET", "/healthz", {"headers": {"traceparent": canary, "Cookie": canary, "X-Request-Id": canary}}),
        ("CANARY" + canary.upper(), "/", {"headers": bearer}),
        (
            "POST",
            "/translate_file",
            {
                "files": {"file": (f"{canary}.txt", text.encode())},
                "data": {"source": "en", "target": "de", "api_key": key},
            },
        ),
    ]


def leaks(words: Iterable[str], written: Iterable[str]) -> list[str]:
    everything = "\n".join(written).lower()
    return [word for word in words if word.lower() in everything]


def test_the_search_finds_a_word_that_is_there() -> None:
    """The control of the next."""
    log = io.BytesIO()
    json_lines(log)({"path": "/Canary1\u2028", "places": ["canary2"]})
    assert leaks(["canary1", "CANARY2", "canary3"], [log.getvalue().decode()]) == ["canary1", "CANARY2"]


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [4, pytest.param(42, marks=pytest.mark.long)])
def test_nothing_that_clients_send_is_found_in_logs_metrics_traces_or_files(
    models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """Every shape, each time with a canary of its own; the long form makes it a thousand."""
    left = tmp_path / "temporary"
    left.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(left))
    monkeypatch.setattr(Translator, "plan", crashing(Translator.plan))
    key = Keys.add_key(tmp_path / "keys.toml", "forum")
    log, exporter = io.BytesIO(), InMemorySpanExporter()
    tracing = OtelTracing(exporter)
    canaries, statuses = [], []

    async def everything() -> str:
        server = Server.of(models, ServeSettings(keys=tmp_path / "keys.toml", metrics=True), json_lines(log), tracing)
        transport = httpx.ASGITransport(server.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
            for at in list(range(len(shapes("", key)))) * rounds:
                canaries.append("c" + secrets.token_hex(8))
                method, path, more = shapes(canaries[-1], key)[at]
                statuses.append((await client.request(method, path, **more)).status_code)
            metrics = (await client.get("/metrics", headers={"X-API-Key": key})).text
        server.service.batcher.close()
        return metrics

    undo = take_over(json_lines(log))
    try:
        metrics = asyncio.run(everything())
    finally:
        undo()
    tracing.close()
    spans = [span.to_json() for span in exporter.get_finished_spans()]
    files = [path.name + path.read_bytes().decode("latin-1") for path in left.rglob("*") if path.is_file()]
    assert leaks([*canaries, key, key[:-1]], [log.getvalue().decode(), metrics, *spans, *files]) == []

    lines = [line for line in map(json.loads, log.getvalue().split(b"\n")[:-1]) if "id" in line]
    assert [line["status"] for line in lines[:-1]] == statuses and len(spans) == len(lines)
    assert {200, 400, 403, 404, 405} <= set(statuses) and statuses.count(500) == rounds
    assert {line["caller"] for line in lines if "caller" in line} == {"forum"}
    translated = [line for line in lines if line["route"] == "/translate" and line["status"] == 200]
    assert translated and all(line["characters"] and line["model"] == "en-de" for line in translated)


def crashing(plan: Callable[..., Any]) -> Callable[..., Any]:
    """A mistake of ours whose message quotes the text."""

    def crashes(self: Translator, texts: Sequence[str], *rest: Any, **more: Any) -> Any:
        if texts[0].startswith("crash"):
            raise RuntimeError(f"could not plan {texts[0]}")
        return plan(self, texts, *rest, **more)

    return crashes


@pytest.mark.slow
def test_libraries_that_make_traces_of_their_own_are_told_not_to(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    """FastAPI sends queries and messages of exceptions to whatever provider the process has, unless it is told not to."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    assert trace.get_tracer_provider() is provider

    async def asked() -> None:
        server = Server.of(models, ServeSettings(), json_lines(io.BytesIO()))
        transport = httpx.ASGITransport(server.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
            await client.get("/healthz?q=canary")
        server.service.batcher.close()

    asyncio.run(asked())
    assert [span.to_json() for span in exporter.get_finished_spans()] == []
