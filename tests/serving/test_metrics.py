"""What Prometheus reads."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from limelight.serving.middleware.metrics import BoundedLabels, Metrics, router
from limelight.serving.queue.observer import BatchReport, ServiceObserver
from limelight.serving.queue.service import Pressure
from limelight.serving.settings import ServeSettings


@dataclass
class Standing:
    """A service as metrics see it."""

    state: str = "draining"
    now: Pressure = field(default_factory=lambda: Pressure(0, 0, 0.0))

    @property
    def models(self) -> Any:
        translator = SimpleNamespace(engine=SimpleNamespace(name="torch"))
        return SimpleNamespace(all=[SimpleNamespace(id="en-de", source="en", target="de", translator=translator)])

    def pressure(self) -> Pressure:
        return self.now


def read(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(metrics.text().decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def test_requests_are_counted_by_route_and_status_and_timed_by_route() -> None:
    metrics = Metrics()
    for status in (200, 200, 503):
        metrics.request("/translate", status, 0.03)
    found = read(metrics)
    assert found["limelight_requests_total", (("route", "/translate"), ("status", "200"))] == 2
    assert found["limelight_requests_total", (("route", "/translate"), ("status", "503"))] == 1
    assert found["limelight_request_seconds_sum", (("route", "/translate"),)] == pytest.approx(0.09)
    assert found["limelight_request_seconds_bucket", (("le", "0.025"), ("route", "/translate"))] == 0
    assert found["limelight_request_seconds_bucket", (("le", "0.05"), ("route", "/translate"))] == 3


def test_batches_stages_and_refusals_are_counted() -> None:
    metrics: ServiceObserver = Metrics()
    metrics.batch(BatchReport("en-de", rows=3, pieces=60, fill=0.25, seconds=0.2))
    metrics.batch(BatchReport("en-de", rows=5, pieces=40, fill=0.75, seconds=0.4))
    metrics.stage("wait", 0.5)
    metrics.count_refusal("busy")
    assert isinstance(metrics, Metrics)
    found = read(metrics)
    assert found["limelight_pieces_total", (("model", "en-de"),)] == 100
    assert found["limelight_batch_rows_sum", ()] == 8
    assert found["limelight_batch_pieces_sum", ()] == 100
    assert found["limelight_batch_fill_sum", ()] == 1.0
    assert found["limelight_batch_seconds_count", ()] == 2
    assert found["limelight_stage_seconds_sum", (("stage", "wait"),)] == 0.5
    assert found["limelight_refusals_total", (("reason", "busy"),)] == 1


def test_queue_and_state_are_those_of_the_moment_they_are_read() -> None:
    metrics, service = Metrics(), Standing()
    metrics.attach(service)  # type: ignore[arg-type]
    assert read(metrics)["limelight_state", (("state", "draining"),)] == 1
    service.state, service.now = "ready", Pressure(4, 120, 1.5)
    found = read(metrics)
    assert {labels: value for (name, labels), value in found.items() if name == "limelight_state"} == {
        (("state", "ready"),): 1,
        (("state", "draining"),): 0,
    }
    assert found["limelight_queue_requests", ()] == 4
    assert found["limelight_queue_pieces", ()] == 120
    assert found["limelight_queue_wait_seconds", ()] == 1.5
    labels = {"model": "en-de", "source": "en", "target": "de", "engine": "torch"}
    assert found["limelight_model_info", tuple(sorted(labels.items()))] == 1
    assert found["limelight_pieces_total", (("model", "en-de"),)] == 0


def test_a_label_cannot_grow_without_end() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.request(f"/made/up/{number}", 200, 0.1)
        metrics.count_refusal(f"reason-{number}")
        metrics.stage(f"stage-{number}", 0.1)
        metrics.batch(BatchReport(f"model-{number}", 1, 1, 1.0, 0.1))
    found = read(metrics)
    for name in ("limelight_requests_total", "limelight_refusals_total", "limelight_pieces_total"):
        assert len([key for key in found if key[0] == name]) <= 101
    assert found["limelight_requests_total", (("route", "other"), ("status", "200"))] == 900


def test_names_that_are_known_stay_known() -> None:
    names = BoundedLabels(most=2)
    assert [names.of(name) for name in "abcba"] == ["a", "b", "other", "b", "a"]


def test_two_servers_in_one_process_do_not_mix() -> None:
    first, second = Metrics(), Metrics()
    first.count_refusal("busy")
    assert ("limelight_refusals_total", (("reason", "busy"),)) not in read(second)


def test_the_route_gives_what_prometheus_understands() -> None:
    metrics, app = Metrics(), FastAPI()
    metrics.request("/translate", 200, 0.1)
    app.include_router(router(metrics, ServeSettings()))

    async def scrape() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.get("/metrics")

    answer = asyncio.run(scrape())
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=")
    assert 'limelight_requests_total{route="/translate",status="200"} 1.0' in answer.text
    assert "process_resident_memory_bytes" in answer.text
