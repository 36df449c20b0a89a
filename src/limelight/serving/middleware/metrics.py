"""Metrics for Prometheus count requests and refusals, and measure times, queues and how full batches are.

Every label has few values: routes are templates, models are those that are served, reasons are codes of refusals. Pieces per second are
rate(limelight_pieces_total[1m]); the share of time that an engine works is rate(limelight_batch_seconds_sum[1m]) over its workers.
"""

import asyncio
from collections.abc import Callable

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector
from starlette.responses import Response

from limelight.serving.middleware.otel import stage
from limelight.serving.queue.observer import BatchReport
from limelight.serving.queue.service import Service, State

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PIECES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
STATES: tuple[State, ...] = ("ready", "draining")
MOST_NAMES = 100  # of one label; there are never so many, unless something goes wrong


class BoundedLabels:
    """The first `most` names stay, and others become "other": a label cannot grow without end."""

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._known: set[str] = set()
        self._most = most

    def of(self, name: str) -> str:
        if name in self._known or len(self._known) < self._most:
            self._known.add(name)
            return name
        return "other"


class Metrics:
    """`Metrics` observes a service, and hears of requests from `RequestLog`. A registry of its own: two servers in a process do not mix."""

    def __init__(self) -> None:
        self.registry = here = CollectorRegistry()
        ProcessCollector(registry=here)
        self._routes, self._reasons, self._stages, self._models = (
            BoundedLabels(),
            BoundedLabels(),
            BoundedLabels(),
            BoundedLabels(),
        )
        self._requests = Counter("limelight_requests", "Requests answered.", ["route", "status"], registry=here)
        self._request_seconds = _histogram(
            "limelight_request_seconds", "From a request to the end of its answer.", SECONDS, here, ["route"]
        )
        self._stage_seconds = _histogram(
            "limelight_stage_seconds", "Of a request, in one stage.", SECONDS, here, ["stage"]
        )
        self._refusals = Counter("limelight_refusals", "Requests refused.", ["reason"], registry=here)
        self._rows = _histogram("limelight_batch_rows", "Sentences of a batch.", ROWS, here)
        self._batch_pieces = _histogram("limelight_batch_pieces", "Source pieces of a batch.", PIECES, here)
        self._fill = _histogram("limelight_batch_fill", "Share of a batch's room that was used.", SHARES, here)
        self._batch_seconds = _histogram("limelight_batch_seconds", "Of the engine, for a batch.", SECONDS, here)
        self._pieces = Counter("limelight_pieces", "Source pieces translated.", ["model"], registry=here)

    def attach(self, service: Service) -> None:
        """From now on the queue, the state and the models are those of this service, read when somebody asks."""
        here = self.registry
        _gauge(
            "limelight_queue_requests",
            "Requests that wait or are under way.",
            lambda: service.pressure().requests,
            here,
        )
        _gauge("limelight_queue_pieces", "Source pieces that wait.", lambda: service.pressure().pieces, here)
        _gauge(
            "limelight_queue_wait_seconds",
            "Seconds of work that wait.",
            lambda: service.pressure().wait_seconds,
            here,
        )
        states = Gauge("limelight_state", "1 for the state that the server is in.", ["state"], registry=here)
        for state in STATES:
            states.labels(state).set_function(lambda state=state: float(service.state == state))  # type: ignore[misc]
        models = Gauge("limelight_model_info", "Models served.", ["model", "source", "target", "engine"], registry=here)
        for served in service.models.all:
            models.labels(served.id, served.source, served.target, served.translator.engine.name).set(1)
            # 0 from the start, so that the first pieces show in its rate.
            self._pieces.labels(self._models.of(served.id))

    def request(self, route: str, status: int, seconds: float) -> None:
        route = self._routes.of(route)
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def batch(self, report: BatchReport) -> None:
        self._rows.observe(report.rows)
        self._batch_pieces.observe(report.pieces)
        self._fill.observe(report.fill)
        self._batch_seconds.observe(report.seconds)
        self._pieces.labels(self._models.of(report.model)).inc(report.pieces)

    def stage(self, name: str, seconds: float) -> None:
        self._stage_seconds.labels(self._stages.of(name)).observe(seconds)
        stage(name, seconds)

    def count_refusal(self, reason: str) -> None:
        self._refusals.labels(self._reasons.of(reason)).inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)


def router(metrics: Metrics) -> APIRouter:
    routes = APIRouter()

    @routes.get("/metrics", response_class=Response)
    async def figures() -> Response:
        """Figures for Prometheus."""
        return Response(await asyncio.to_thread(metrics.text), media_type=CONTENT_TYPE_LATEST)

    return routes


def _histogram(
    name: str,
    what: str,
    buckets: tuple[float, ...],
    registry: CollectorRegistry,
    labels: tuple[str, ...] | list[str] = (),
) -> Histogram:
    return Histogram(name, what, labels, buckets=buckets, registry=registry)


def _gauge(name: str, what: str, value: Callable[[], float], registry: CollectorRegistry) -> None:
    Gauge(name, what, registry=registry).set_function(value)
