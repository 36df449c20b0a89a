"""A running server takes over what a translator has learnt, and goes back, without a lost or a mixed answer."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from limelight.bundle.versions import HISTORY, LEARNT
from limelight.serving.queue import takeover
from limelight.serving.queue.models import Models, load

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from labelled import Serving, serving

from learning_versions import copy_bundle, learn_by_hand, put_in_use

TEXTS = ["three four", "four three", "three", "four"] * 4
FIRST = ["drei vier", "vier drei", "drei", "vier"] * 4
SECOND = ["vier drei", "drei vier", "vier", "drei"] * 4
CLIENTS = 16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_bundle(tmp_path / "num")


@pytest.fixture
def models(folder: Path) -> Iterator[Models]:
    loaded = load([str(folder)], threads=1)
    yield loaded
    loaded.close()


def look(models: Models) -> bool:
    async def once() -> bool:
        return await takeover.Takeover(models, 0.0).look(models.all[0])

    return asyncio.run(once())


def test_another_version_is_taken_over_and_the_first_again(folder: Path, models: Models) -> None:
    first = models.all[0]
    assert not look(models)
    learn_by_hand(folder)
    assert look(models)
    assert [each.text for each in models.all[0].translator.translate(TEXTS)] == SECOND
    assert not look(models)
    put_in_use(folder, 0)
    assert look(models)
    assert [each.text for each in models.all[0].translator.translate(TEXTS)] == FIRST
    assert models.all[0] is not first
    assert models.by_id("num") is models.all[0]


def test_what_cannot_be_used_is_refused_once_and_the_old_one_stays(folder: Path, models: Models, caplog: pytest.LogCaptureFixture) -> None:
    (folder / LEARNT).mkdir()
    (folder / LEARNT / HISTORY).write_bytes(b"{")
    first = models.all[0]

    async def twice() -> list[bool]:
        following = takeover.Takeover(models, 0.0)
        return [await following.look(first), await following.look(first)]

    assert asyncio.run(twice()) == [False, False]
    assert models.all[0] is first
    assert caplog.text.count("is not taken over") == 1


@pytest.mark.process
def test_nothing_is_lost_or_mixed_under_load(folder: Path, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeover, "EVERY", 0.05)
    with serving(models) as server:
        answers, over = list[list[str]](), threading.Event()

        def ask(dialect: Callable[[httpx.Client], list[str]]) -> None:
            with httpx.Client(base_url=server.url, timeout=60) as client:
                while not over.is_set():
                    answers.append(dialect(client))

        with ThreadPoolExecutor(CLIENTS) as clients:
            asking = [clients.submit(ask, (ask_native, ask_libretranslate)[number % 2]) for number in range(CLIENTS)]
            try:
                wait_for(lambda: answers.count(FIRST) >= CLIENTS)
                learn_by_hand(folder)
                wait_for(lambda: version_of(server) == 1 and answers[-1] == SECOND)
                put_in_use(folder, 0)
                wait_for(lambda: version_of(server) == 0 and answers[-1] == FIRST)
            finally:
                over.set()
        for each in asking:
            each.result()  # a request that was refused or lost has raised
    assert SECOND in answers
    assert all(each in (FIRST, SECOND) for each in answers)


def ask_native(client: httpx.Client) -> list[str]:
    answer = client.post("/api/v1/translate", json={"text": TEXTS}).raise_for_status()
    return [each["text"] for each in answer.json()["results"]]


def ask_libretranslate(client: httpx.Client) -> list[str]:
    body = {"q": TEXTS, "source": "en", "target": "de"}
    return list(client.post("/translate", json=body).raise_for_status().json()["translatedText"])


def version_of(server: Serving) -> int:
    return int(server.client.get("/api/v1/models").json()["models"][0]["version"])


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
