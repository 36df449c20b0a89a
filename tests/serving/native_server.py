"""A real server on a free port of loopback, in a thread, for tests of the native API and of the document that describes all of it."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import uvicorn
from fastapi import FastAPI

from limelight.serving.access.keys import Keys
from limelight.serving.app import make_app
from limelight.serving.middleware.metrics import Metrics
from limelight.serving.queue.models import Models, load
from limelight.serving.queue.service import Service
from limelight.serving.settings import ServeSettings

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"


@dataclass(frozen=True)
class Running:
    url: str
    app: FastAPI
    service: Service
    client: httpx.Client
    lines: list[Mapping[str, Any]]  # of the log

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.client.post(f"/api/v1/{path}", json=body)


def stored(names: tuple[str, ...] = ("en-de",)) -> Models:
    """The bundle of the repository: English number words to German ones."""
    return load([f"{name}={BUNDLE}" for name in names], threads=1)


@contextmanager
def running(models: Models, known: Keys | None = None, loop: Literal["auto", "asyncio"] = "auto", **settings: Any) -> Iterator[Running]:
    """The models stay open; whoever loaded them closes them."""
    lines: list[Mapping[str, Any]] = []
    chosen, metrics = ServeSettings(**settings), Metrics()
    service = Service(models, chosen, metrics)
    app = make_app(service, known, metrics, lines.append)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, loop=loop, log_level="critical", access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=url, timeout=30) as client:
            yield Running(url, app, service, client, lines)
    finally:
        server.should_exit = True
        thread.join(20)
        service.batcher.close()
    assert not thread.is_alive()
