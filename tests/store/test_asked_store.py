"""A served store is asked in threads: searches have their own, and end when nobody waits for them any more."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from limelight.serving.native.matches import MOST_SEARCHED, check_memory, recall_texts
from limelight.serving.native.requests import TranslateRequest
from limelight.serving.queue import served_store
from limelight.serving.queue.served_store import ServedStore
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import Busy, Late, TooLarge
from limelight.store.memory import MemoryMatch
from limelight.store.store import Store

PAIR = ("en", "de")


def test_who_writes_does_not_wait_for_who_searches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_store, "WAITING", 8)
    served, go_on = ServedStore(store), threading.Event()

    async def ask() -> int:
        searches = [asyncio.ensure_future(served.ask(lambda _: go_on.wait(10), search=True)) for _ in range(8)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await served.ask(lambda _: None, search=True)
        written = await served.ask(lambda opened: opened.corrections.add("en", "de", "a", "b", "c"))
        go_on.set()
        assert all(await asyncio.gather(*searches))
        return written

    assert asyncio.run(ask()) == 1
    served.close()


def test_who_is_to_be_answered_waits_for_nobody_who_writes_and_keeps_nobody_out(store: Store) -> None:
    served, go_on = ServedStore(store), threading.Event()

    async def ask() -> None:
        writes = [asyncio.ensure_future(served.ask(lambda _: go_on.wait(10))) for _ in range(served_store.THREADS)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(served.ask(lambda _: "room", confirm=True), 5) == "room"
        go_on.set()
        await asyncio.gather(*writes)
        go_on.clear()
        many = [asyncio.ensure_future(served.ask(lambda _: go_on.wait(10), confirm=True)) for _ in range(served_store.WAITING + 1)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(served.ask(lambda _: "written"), 5) == "written"
        go_on.set()
        assert all(await asyncio.gather(*many))

    asyncio.run(ask())
    served.close()


@pytest.mark.parametrize("leaves", [True, False])
def test_a_search_ends_when_its_client_leaves_or_its_time_is_over(store: Store, monkeypatch: pytest.MonkeyPatch, leaves: bool) -> None:
    service: Any = SimpleNamespace(store=ServedStore(store))
    looked_for, begun, go_on = list[str](), threading.Event(), threading.Event()
    deadline = Deadline(60 if leaves else 0.3)

    def find(_: object, text: str, most: int) -> list[MemoryMatch]:
        looked_for.append(text)
        begun.set()
        go_on.wait(10)
        return []

    monkeypatch.setattr(store.memory, "find", find)

    async def ask() -> None:
        searching = asyncio.ensure_future(recall_texts(service, PAIR, TranslateRequest(text=["a", "b", "c"], matches=True), deadline))
        await asyncio.to_thread(begun.wait, 10)
        if leaves:
            searching.cancel()
        with pytest.raises(asyncio.CancelledError if leaves else Late):
            await searching
        go_on.set()

    asyncio.run(ask())
    service.store.close()  # waits for the thread
    assert looked_for == ["a"]


def test_so_many_texts_are_looked_for_at_once() -> None:
    service: Any = SimpleNamespace(store=object())
    served: Any = SimpleNamespace(translator=SimpleNamespace(settings=SimpleNamespace(takes_matches=True)))
    for wish in ({"matches": True}, {"memory": "tell"}):
        check_memory(service, TranslateRequest(text=["a"] * MOST_SEARCHED, **wish), served)
        with pytest.raises(TooLarge, match="128"):
            check_memory(service, TranslateRequest(text=["a"] * (MOST_SEARCHED + 1), **wish), served)
    check_memory(service, TranslateRequest(text=["a"] * (MOST_SEARCHED + 1), memory="use"), served)
