"""Rankings of heads: one at a time, with progress, ended when nobody waits for them, and never more than there is room for."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from limelight.errors import DataError
from limelight.serving.desk.importance import OWN, REMEMBERED, HeadRankings, Report
from limelight.serving.refusals import BadRequest, Failed, Stopping, TooMany

Told = list[tuple[str, dict[str, Any]]]


class Doors:
    """Work that reports, and goes on only when it is let."""

    def __init__(self) -> None:
        self.steps = threading.Semaphore(0)
        self.began: list[str] = []
        self.reports = 0

    def work(self, name: str, passes: int = 3) -> Callable[[Report], dict[str, Any]]:
        def run(report: Report) -> dict[str, Any]:
            self.began.append(name)
            for at in range(passes):
                report(at, passes)
                self.reports += 1
                assert self.steps.acquire(timeout=10)
            report(passes, passes)
            return {"of": name}

        return run


@contextmanager
def unlocked(doors: Doors) -> Iterator[None]:
    """Whatever happens, no thread stays locked in."""
    try:
        yield
    finally:
        for _ in range(1000):
            doors.steps.release()


def run(work: Callable[[HeadRankings, Doors], Awaitable[Any]], most: int = 4, stopping: Callable[[], bool] = lambda: False) -> Any:
    async def whole() -> Any:
        doors, rankings = Doors(), HeadRankings(most, stopping)
        try:
            with unlocked(doors):
                return await work(rankings, doors)
        finally:
            rankings.close()

    return asyncio.run(whole())


async def until(true: Callable[[], bool]) -> None:
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < 10, "it never happened"
        await asyncio.sleep(0.005)


def begin(rankings: HeadRankings, owner: str, key: Any, work: Callable[[Report], dict[str, Any]]) -> "asyncio.Task[Told]":
    async def collect() -> Told:
        return [told async for told in rankings.run(key, owner, work)]

    return asyncio.ensure_future(collect())


def test_a_ranking_tells_how_far_it_is_and_then_what_it_found() -> None:
    async def work(rankings: HeadRankings, doors: Doors) -> None:
        doors.steps.release(3)
        told = await begin(rankings, "anna", "key", doors.work("one"))
        assert told == [
            *(("progress", {"done": at, "total": 3}) for at in range(4)),
            ("result", {"of": "one"}),
        ]

    run(work)


def test_rankings_run_one_after_the_other() -> None:
    async def work(rankings: HeadRankings, doors: Doors) -> None:
        first, second = (begin(rankings, "", name, doors.work(name)) for name in ("one", "two"))
        await until(lambda: doors.reports == 1)
        await asyncio.sleep(0.05)
        assert doors.began == ["one"]
        doors.steps.release(6)
        await asyncio.gather(first, second)
        assert doors.began == ["one", "two"]

    run(work)


def test_a_ranking_whose_client_leaves_ends_at_its_next_pass_and_one_that_waits_never_begins() -> None:
    async def work(rankings: HeadRankings, doors: Doors) -> None:
        running, waiting = (begin(rankings, "", name, doors.work(name, 100)) for name in ("one", "two"))
        await until(lambda: doors.reports == 1)
        for task in (waiting, running):
            task.cancel()
        await asyncio.wait({running, waiting})
        doors.steps.release(100)
        assert (await begin(rankings, "", "three", doors.work("three", 0)))[-1] == ("result", {"of": "three"})
        assert doors.began == ["one", "three"] and doors.reports == 1

    run(work)


def test_what_was_found_is_told_at_once_to_whoever_asks_the_same() -> None:
    async def work(rankings: HeadRankings, doors: Doors) -> None:
        doors.steps.release(3)
        told = await begin(rankings, "anna", "key", doors.work("one"))
        assert await begin(rankings, "berta", "key", doors.work("never")) == told[-1:]
        for other in range(REMEMBERED):
            await begin(rankings, "", other, lambda report: {})
        doors.steps.release(3)
        await begin(rankings, "anna", "key", doors.work("anew"))
        assert doors.began == ["one", "anew"]

    run(work)


def test_what_failed_is_not_remembered_and_says_why_without_quoting_anything(caplog: pytest.LogCaptureFixture) -> None:
    def fails(error: Exception) -> Callable[[Report], dict[str, Any]]:
        def work(report: Report) -> dict[str, Any]:
            raise error

        return work

    async def work(rankings: HeadRankings, doors: Doors) -> None:
        with pytest.raises(Failed) as ours:
            await begin(rankings, "", 1, fails(RuntimeError("the secret text")))
        assert "secret" not in ours.value.message and [each.message for each in caplog.records] == ["a ranking failed"]
        with pytest.raises(BadRequest, match="sentence 3 has no pieces"):
            await begin(rankings, "", 2, fails(DataError("sentence 3 has no pieces")))
        assert await begin(rankings, "", 1, lambda report: {"now": 1}) == [("result", {"now": 1})]

    run(work)


def test_there_is_room_for_so_many_and_a_caller_with_a_name_leaves_room_for_others() -> None:
    async def work(rankings: HeadRankings, doors: Doors) -> None:
        own = [begin(rankings, "anna", number, doors.work("x")) for number in range(OWN)]
        await until(lambda: doors.reports == 1)
        with pytest.raises(TooMany, match="of yours"):
            await begin(rankings, "anna", 99, doors.work("x"))
        others = [begin(rankings, "", 99, doors.work("x"))]
        await asyncio.sleep(0.01)
        with pytest.raises(TooMany, match="3 rankings") as caught:
            await begin(rankings, "berta", 100, doors.work("x"))
        assert caught.value.retry_after is not None and caught.value.retry_after > 0
        doors.steps.release(9)
        await asyncio.gather(*own, *others)
        doors.steps.release(3)
        await begin(rankings, "anna", 101, doors.work("x"))

    run(work, most=3)


def test_a_server_that_stops_ends_its_rankings_and_tells_those_who_wait() -> None:
    stops = threading.Event()

    async def work(rankings: HeadRankings, doors: Doors) -> None:
        running, waiting = (begin(rankings, "", name, doors.work(name, 100)) for name in ("one", "two"))
        await until(lambda: doors.reports == 1)
        stops.set()
        doors.steps.release()
        for task in (running, waiting):
            with pytest.raises(Stopping):
                await task
        assert doors.reports == 1 and doors.began == ["one"]

    run(work, stopping=stops.is_set)
