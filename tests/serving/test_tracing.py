"""One span for each request, where somebody collects them."""

import asyncio
from typing import Any

import pytest
from asking import ask
from fastapi import FastAPI
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.serving.middleware.metrics import Metrics
from limelight.serving.middleware.otel import OtelTracing
from limelight.serving.middleware.request_log import RequestLog, note


def app_of(tracing: OtelTracing) -> FastAPI:
    metrics = Metrics()
    around = Middleware(RequestLog, metrics=metrics, log=lambda line: None, tracing=tracing)
    app = FastAPI(middleware=[around])

    async def translate(request: Request) -> Response:
        note(request, pieces=3, model="en-de")
        metrics.stage("prepare", 0.5)
        metrics.stage("wait", 9.0)  # told in the name of another request
        await asyncio.create_task(later())
        return JSONResponse({})

    async def later() -> None:
        metrics.stage("translate", 0.25)

    async def crash(word: str) -> Response:
        raise ValueError(word)

    app.add_api_route("/api/v1/translate", translate, methods=["POST"])
    app.add_api_route("/api/v1/crash/{word}", crash)
    return app


def spans_of(exporter: InMemorySpanExporter, tracing: OtelTracing) -> list[Any]:
    tracing.close()
    return list(exporter.get_finished_spans())


def test_a_request_is_one_span_with_its_stages_in_the_callers_trace() -> None:
    exporter = InMemorySpanExporter()
    tracing = OtelTracing(exporter)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    sent = {"traceparent": parent, "tracestate": "canary=canary", "baggage": "canary=canary"}
    ask(app_of(tracing), "POST", "/api/v1/translate", headers=sent)
    (span,) = spans_of(exporter, tracing)
    assert span.name == "POST /api/v1/translate"
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert span.attributes["http.response.status_code"] == 200 and span.attributes["limelight.pieces"] == 3
    assert [(event.name, event.attributes["limelight.seconds"]) for event in span.events] == [
        ("prepare", 0.5),
        ("translate", 0.25),
    ]
    assert span.resource.attributes["service.name"] == "limelight"
    assert "canary" not in span.to_json()


def test_a_crash_is_in_the_trace_without_its_words() -> None:
    exporter = InMemorySpanExporter()
    tracing = OtelTracing(exporter)
    ask(app_of(tracing), "GET", "/api/v1/crash/canary")
    (span,) = spans_of(exporter, tracing)
    assert not span.status.is_ok and "ValueError" in span.attributes["error.type"]
    assert "canary" not in span.to_json()


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1"}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1"}, True),
    ],
)
def test_traces_are_made_only_when_the_environment_asks_for_them(environment: dict[str, str], wanted: bool) -> None:
    tracing = OtelTracing.from_environment(environment)
    assert (tracing is not None) is wanted
    if tracing is not None:
        tracing.close()
