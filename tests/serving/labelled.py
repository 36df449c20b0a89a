"""A real server on loopback, in a thread, of as many languages as a test wants: the bundle of the repository under other labels."""

import copy
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from limelight.serving.access.keys import Keys
from limelight.serving.app import make_app
from limelight.serving.middleware.metrics import Metrics
from limelight.serving.queue.models import Models
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.served_store import ServedStore
from limelight.serving.queue.service import Service
from limelight.serving.settings import ServeSettings
from limelight.store.store import open_store
from limelight.translator import Translator

sys.path.insert(0, str(Path(__file__).parents[1]))
from tagged_bundle import tags_of, translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"


@dataclass(frozen=True)
class Serving:
    url: str
    client: httpx.Client
    lines: list[Mapping[str, Any]]  # of the log


def loaded() -> Translator:
    translator = Translator.load(BUNDLE, threads=1)
    translator.stand_by()
    return translator


def labelled(translator: Translator, *pairs: tuple[str, str]) -> Models:
    """labelled(translator, ("en", "de"), ("de", "en")): each a real translator, of English number words into German ones."""
    served = []
    for source, target in pairs:
        other = copy.copy(translator)
        other.settings = translator.settings.changed(languages=(source, target))
        served.append(ServedModel(f"{source}-{target}", other, speed=1_000.0))
    return Models(served)


def formal_and_informal() -> Translator:
    """Its tags are those that DeepL's formality means."""
    formal, informal = tags_of().names.values()
    return translator(tags=tags_of(names={"formal": formal, "informal": informal}))


@contextmanager
def serving(models: Models, **settings: Any) -> Iterator[Serving]:
    """The models stay open; whoever loaded them closes them."""
    lines: list[Mapping[str, Any]] = []
    chosen, metrics = ServeSettings(**settings), Metrics()
    store = None if chosen.store is None else ServedStore(open_store(chosen.store))
    service = Service(models, chosen, metrics, store)
    app = make_app(service, Keys.load(chosen.keys) if chosen.keys else None, metrics, lines.append)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        with httpx.Client(base_url=url, timeout=30) as client:
            yield Serving(url, client, lines)
    finally:
        server.should_exit = True
        thread.join(20)
        service.batcher.close()
        if store is not None:
            store.close()
