"""Servers of one store count together what a key has used up: by differences, and what comes in between is not lost."""

import asyncio
import threading
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from limelight.errors import StorageError
from limelight.serving.access.guard import AccessGuard, caller_of
from limelight.serving.access.keys import Key, Keys, digest_of, today
from limelight.serving.access.usage import AWAY, Ledger
from limelight.serving.queue.served_store import CONFIRMERS, ServedStore
from limelight.serving.refusals import Busy, QuotaExceeded
from limelight.serving.settings import ServeSettings
from limelight.store.store import Store, open_store

KEY = Key(name="forum", sha256="0" * 64, characters_per_month=100)
SECRET = "0123456789abcdefghijklmnopqrstuv"
KEYS = Keys((KEY.changed(sha256=digest_of(SECRET)),))


class Days:
    today = date(2026, 11, 30)

    def __call__(self) -> date:
        return self.today


@pytest.fixture
def served(store: Store) -> ServedStore:
    return ServedStore(store)


def settle(ledger: Ledger, store: ServedStore) -> None:
    asyncio.run(ledger.settle(store))


def spend(ledger: Ledger, characters: int) -> None:
    """A request that the store was not asked about."""
    caller = ledger.caller(KEY)
    caller.spend(characters)
    caller.release()


def in_store(served: ServedStore) -> int:
    return served.store.usage.settle(f"{today():%Y-%m}", {})["forum"]


async def send_to(guard: AccessGuard) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://127.0.0.1:5000") as client:
        return await client.get("/api/v1/models", headers={"Authorization": f"Bearer {SECRET}"})


def used(ledger: Ledger) -> int:
    return ledger.caller(KEY).usage().characters


def test_two_servers_add_up_and_refuse_together(served: ServedStore) -> None:
    one, two = Ledger(store=served), Ledger(store=served)
    spend(one, 60)
    spend(two, 30)
    for ledger in (one, two, one):
        settle(ledger, served)
    assert used(one) == used(two) == 90
    with pytest.raises(QuotaExceeded):
        two.caller(KEY).spend(11)
    settle(two, served)
    assert used(two) == 90  # nothing is told twice
    spend(one, 10)
    one.close()
    assert used(Ledger(store=served)) == 100  # what came last is told at the end, and read at the start


def test_what_comes_while_the_store_is_asked_counts(served: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, other = Ledger(store=served), Ledger(store=served)
    spend(ledger, 10)
    spend(other, 5)
    settle(other, served)
    asked = served.store.usage.settle

    def slowly(month: str, more: dict[str, int]) -> dict[str, int]:
        spend(ledger, 7)
        return asked(month, more)

    monkeypatch.setattr(served.store.usage, "settle", slowly)
    settle(ledger, served)
    assert used(ledger) == 22
    monkeypatch.undo()
    settle(ledger, served)
    settle(other, served)
    assert used(ledger) == used(other) == 22


def test_what_is_given_back_is_given_back_to_all(served: ServedStore) -> None:
    one, two = Ledger(store=served), Ledger(store=served)
    caller = one.caller(KEY)
    caller.spend(40)
    caller.release()
    settle(one, served)
    caller.give_back()
    settle(one, served)
    settle(two, served)
    assert used(one) == used(two) == 0


def test_a_month_begins_at_nothing(served: ServedStore) -> None:
    days = Days()
    ledger = Ledger(store=served, day=days)
    spend(ledger, 90)
    settle(ledger, served)
    days.today = date(2026, 12, 1)
    spend(ledger, 20)
    settle(ledger, served)
    assert used(ledger) == 20 and used(Ledger(store=served, day=days)) == 20


def test_a_store_that_is_away_loses_nothing(served: ServedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(store=served)
    spend(ledger, 10)

    def away(*_: object) -> dict[str, int]:
        raise StorageError("away")

    monkeypatch.setattr(served.store.usage, "settle", away)
    with pytest.raises(Busy):
        settle(ledger, served)
    monkeypatch.undo()
    settle(ledger, served)
    again = open_store(f"sqlite:///{tmp_path}/store.db")
    assert again.usage.settle(f"{today():%Y-%m}", {}) == {"forum": 10}
    again.close()


def test_what_is_told_while_the_server_ends_counts_once(served: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, asked, begun, go_on = Ledger(store=served), served.store.usage.settle, threading.Event(), threading.Event()
    spend(ledger, 10)

    def slowly(month: str, more: dict[str, int]) -> dict[str, int]:
        begun.set()
        go_on.wait(10)
        return asked(month, more)

    monkeypatch.setattr(served.store.usage, "settle", slowly)

    async def end() -> None:
        settling = asyncio.ensure_future(ledger.settle(served))
        await asyncio.to_thread(begun.wait, 10)
        settling.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await settling
        ledger.close()

    asyncio.run(end())
    assert used(Ledger(store=served)) == 10


async def answer(ledger: Ledger, characters: int) -> bool:
    """As the guard does: False, if it was refused."""
    caller = ledger.caller(KEY)
    try:
        caller.spend(characters)
        await asyncio.sleep(0)  # others come in between
        await ledger.confirm(caller)
    except QuotaExceeded:
        caller.give_back()
        return False
    return True


@pytest.mark.slow
def test_a_quota_is_exact_over_all_servers(url: str) -> None:
    """Also while each of them settles; what is left is told once."""
    opened = [ServedStore(open_store(url)) for _ in range(3)]
    ledgers = [Ledger(store=each) for each in opened]

    async def ask() -> int:
        settled = (each.settle(store) for each, store in zip(ledgers, opened, strict=True))
        answers = await asyncio.gather(*(answer(ledgers[number % 3], 7) for number in range(60)), *settled)
        return answers.count(True)

    assert asyncio.run(ask()) == 100 // 7
    for ledger, store in zip(ledgers * 2, opened * 2, strict=True):
        settle(ledger, store)
    assert [used(ledger) for ledger in ledgers] == [98, 98, 98]
    for each in opened:
        each.close()


def test_what_is_given_back_makes_room(served: ServedStore) -> None:
    one, two = Ledger(store=served), Ledger(store=served)
    assert asyncio.run(answer(one, 90)) and not asyncio.run(answer(two, 20))
    caller = one.caller(KEY)
    caller.spend(10)
    asyncio.run(one.confirm(caller))
    caller.give_back()  # it failed after all
    settle(one, served)
    assert asyncio.run(answer(two, 10)) and served.store.usage.settle(f"{today():%Y-%m}", {}) == {"forum": 100}


def test_while_the_store_is_away_answers_go_out_at_once_and_are_told_later(served: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One question fails; who waits behind it, and who comes in the next seconds, asks nobody."""
    asked, clock = list[object](), [0.0]
    ledger = Ledger(store=served, now=lambda: clock[0])

    def away(*told: object) -> int:
        asked.append(told)
        raise StorageError("away")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        caller_of(Request(scope)).spend(4)
        await JSONResponse({})(scope, receive, send)

    async def ask(times: int) -> set[int]:
        guard = AccessGuard(app, KEYS, ServeSettings(), ledger)
        return {each.status_code for each in await asyncio.gather(*(send_to(guard) for _ in range(times)))}

    monkeypatch.setattr(served.store.usage, "take", away)
    assert asyncio.run(ask(9)) == {200} and len(asked) <= CONFIRMERS
    before = len(asked)
    assert asyncio.run(ask(1)) == {200} and len(asked) == before
    monkeypatch.undo()
    settle(ledger, served)
    assert in_store(served) == 40
    clock[0] += AWAY
    assert asyncio.run(ask(1)) == {200} and in_store(served) == 44


def test_who_leaves_during_the_question_pays_once(served: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the quota has no room for it, and then not at all."""
    ledger, taken = Ledger(store=served), served.store.usage.take

    async def leave(characters: int) -> None:
        begun, go_on = threading.Event(), threading.Event()

        def slowly(*asked: Any) -> int | None:
            begun.set()
            go_on.wait(10)
            return taken(*asked)

        monkeypatch.setattr(served.store.usage, "take", slowly)
        caller = ledger.caller(KEY)
        caller.spend(characters)
        asking = asyncio.ensure_future(ledger.confirm(caller))
        await asyncio.to_thread(begun.wait, 10)
        for _ in range(3):  # as task groups do, until it ends
            asking.cancel()
            await asyncio.sleep(0)
        caller.release()
        await ledger.settle(served)
        go_on.set()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)
        await ledger.settle(served)

    asyncio.run(leave(70))
    assert in_store(served) == used(ledger) == 70
    served.store.usage.settle(f"{today():%Y-%m}", {"forum": 20})
    asyncio.run(leave(30))
    assert in_store(served) == used(ledger) == 90


@pytest.mark.parametrize(("before", "more", "fits"), [(40, 40, True), (40, 61, False), (-40, 61, False), (-40, 60, True)])
def test_what_is_being_settled_counts_once(
    served: ServedStore, monkeypatch: pytest.MonkeyPatch, before: int, more: int, fits: bool
) -> None:
    """The store has it, and this server does not know so yet. Less than nothing was given back."""
    ledger, asked, done, go_on = Ledger(store=served), served.store.usage.settle, threading.Event(), threading.Event()
    caller = ledger.caller(KEY)
    caller.spend(abs(before))
    caller.release()
    if before < 0:
        settle(ledger, served)
        caller.give_back()
        served.store.usage.settle(f"{today():%Y-%m}", {"forum": 40})  # of another server

    def slowly(month: str, told: dict[str, int]) -> dict[str, int]:
        totals = asked(month, told)
        done.set()
        go_on.wait(10)
        return totals

    async def ask() -> bool:
        settling = asyncio.ensure_future(ledger.settle(served))
        await asyncio.to_thread(done.wait, 10)
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        answered = await answer(ledger, more)
        await settling
        return answered

    monkeypatch.setattr(served.store.usage, "settle", slowly)
    assert asyncio.run(ask()) is fits
    monkeypatch.undo()
    settle(ledger, served)
    assert in_store(served) == used(ledger) == 40 + more * fits


def test_a_request_that_spends_on_both_sides_of_midnight_pays_in_the_new_month_for_what_came_then(served: ServedStore) -> None:
    days = Days()
    ledger = Ledger(store=served, day=days)
    caller = ledger.caller(KEY)
    caller.spend(30)
    days.today = date(2026, 12, 1)
    caller.spend(5)
    asyncio.run(ledger.confirm(caller))
    settle(ledger, served)
    assert served.store.usage.settle("2026-12", {}) == {"forum": 5} and used(ledger) == 5


@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_that_the_quota_has_no_room_for_is_withheld(served: ServedStore, streams: bool) -> None:
    """Two servers have 70 of 100 under way at once, and neither has heard of the other."""
    together = asyncio.Barrier(2)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        caller_of(Request(scope)).spend(70)
        await together.wait()
        secret = StreamingResponse(iter(["sec", "ret"])) if streams else JSONResponse({"text": "secret"})
        await secret(scope, receive, send)

    async def both() -> list[httpx.Response]:
        guards = [AccessGuard(app, KEYS, ServeSettings(), Ledger(store=served)) for _ in range(2)]
        return await asyncio.gather(*map(send_to, guards))

    answers = sorted(asyncio.run(both()), key=lambda each: each.status_code)
    assert [each.status_code for each in answers] == [200, 456]
    assert "secret" in answers[0].text and "secret" not in answers[1].text and "quota_spent" in answers[1].text
    assert served.store.usage.settle(f"{today():%Y-%m}", {}) == {"forum": 70}
