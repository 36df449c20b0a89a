"""Metrics for Prometheus count requests and refusals, and measure times, queues and how full batches are.

Every label has few values: routes are templates, models are those that are served, reasons are codes of refusals. Pieces per second are
rate(limelight_pieces_total[1m]); the share of time that an engine works is rate(limelight_batch_seconds_sum[1m]) over its workers.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector
from starlette.responses import Response

from limelight.serving.http.described_routes import TEXT, DescribedRoutes
from limelight.serving.middleware.otel import stage
from limelight.serving.queue.observer import BatchReport
from limelight.serving.queue.service import Service, State
from limelight.serving.settings import ServeSettings

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
        self._routes, self._reasons, self._stages, self._models = (BoundedLabels() for _ in range(4))
        counter, histogram = partial(Counter, registry=here), partial(Histogram, registry=here)
        self._requests = counter("limelight_requests", "Requests answered.", ["route", "status"])
        told = "From a request to the end of its answer."
        self._request_seconds = histogram("limelight_request_seconds", told, ["route"], buckets=SECONDS)
        told = "Of a request, in one stage."
        self._stage_seconds = histogram("limelight_stage_seconds", told, ["stage"], buckets=SECONDS)
        self._refusals = counter("limelight_refusals", "Requests refused.", ["reason"])
        self._rows = histogram("limelight_batch_rows", "Sentences of a batch.", buckets=ROWS)
        self._batch_pieces = histogram("limelight_batch_pieces", "Source pieces of a batch.", buckets=PIECES)
        self._fill = histogram("limelight_batch_fill", "Share of a batch's room that was used.", buckets=SHARES)
        self._batch_seconds = histogram("limelight_batch_seconds", "Of the engine, for a batch.", buckets=SECONDS)
        self._pieces = counter("limelight_pieces", "Source pieces translated.", ["model"])

    def attach(self, service: Service) -> None:
        """From now on the queue, the state and the models are those of this service, read when somebody asks."""
        here = self.registry
        waiting: dict[tuple[str, str], Callable[[], float]] = {
            ("requests", "Requests that wait or are under way."): lambda: service.pressure().requests,
            ("pieces", "Source pieces that wait."): lambda: service.pressure().pieces,
            ("wait_seconds", "Seconds of work that wait."): lambda: service.pressure().wait_seconds,
        }
        for (name, told), value in waiting.items():
            Gauge(f"limelight_queue_{name}", told, registry=here).set_function(value)
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


def router(metrics: Metrics, settings: ServeSettings) -> APIRouter:
    async def figures() -> Response:
        """Figures for Prometheus."""
        return Response(await asyncio.to_thread(metrics.text), media_type=CONTENT_TYPE_LATEST)

    routes = DescribedRoutes(settings)
    routes.add("GET", "/metrics", figures, content={"text/plain": TEXT})
    return routes.api
