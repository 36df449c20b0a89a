"""Jobs: one at a time, for their owner, with progress, ended when nobody wants them, and never more than there is room for."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from limelight.errors import DataError
from limelight.serving.desk.jobs import LOOK, OWN, REMEMBERED, DeskJob, Jobs, Report
from limelight.serving.refusals import NotFound, TooMany


class Doors:
    """Work that reports, and goes on only when it is let."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self.steps = threading.Semaphore(0)
        self.began: list[str] = []
        self.reports = 0

    def work(self, name: str, passes: int = 3) -> Callable[[Report], Any]:
        def run(report: Report) -> str:
            self.began.append(name)
            self.inside.release()
            for at in range(passes):
                report(at, passes)
                self.reports += 1
                assert self.steps.acquire(timeout=10)
            report(passes, passes)
            return f"result of {name}"

        return run


@contextmanager
def unlocked(doors: Doors) -> Iterator[None]:
    """Whatever happens, no thread stays locked in."""
    try:
        yield
    finally:
        for _ in range(1000):
            doors.steps.release()


def run(
    work: Callable[[Jobs, Doors], Awaitable[Any]], most: int = 4, stopping: Callable[[], bool] = lambda: False
) -> Any:
    async def whole() -> Any:
        doors, jobs = Doors(), Jobs(most, stopping)
        try:
            with unlocked(doors):
                return await work(jobs, doors)
        finally:
            jobs.close()

    return asyncio.run(whole())


async def until(true: Callable[[], bool]) -> None:
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < 10, "it never happened"
        await asyncio.sleep(0.005)


async def ended(job: DeskJob) -> None:
    await until(lambda: job.over)


def test_a_job_tells_how_far_it_is_and_then_what_it_found() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        job = jobs.submit("anna", "en-de", "key", doors.work("one"))
        assert job.as_dict() == {
            "job": job.id, "state": "waiting", "model": "en-de", "done": 0, "total": 0, "result": None,
        }  # fmt: skip
        await until(lambda: job.state == "running" and job.total == 3)
        doors.steps.release()
        await until(lambda: job.done == 1)
        doors.steps.release(2)
        await ended(job)
        assert (job.state, job.done, job.total, job.result) == ("done", 3, 3, "result of one")

    run(work)


def test_jobs_run_one_after_the_other() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        first, second = (jobs.submit("", "m", name, doors.work(name)) for name in ("one", "two"))
        await until(lambda: first.total == 3)
        await asyncio.sleep(0.05)
        assert doors.began == ["one"] and second.state == "waiting"
        doors.steps.release(6)
        await ended(second)
        assert doors.began == ["one", "two"] and first.state == second.state == "done"

    run(work)


def test_only_its_owner_finds_a_job_and_its_name_cannot_be_guessed() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        job = jobs.submit("anna", "m", 1, doors.work("one"))
        assert jobs.find(job.id, "anna") is job and len(job.id) > 20
        for id, owner in ((job.id, "berta"), (job.id, ""), ("j_1", "anna")):
            with pytest.raises(NotFound):
                jobs.find(id, owner)

    run(work)


def test_a_job_that_is_dropped_ends_at_its_next_sign_of_life_and_is_gone() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        job, waiting = (jobs.submit("", "m", name, doors.work(name, 100)) for name in ("one", "two"))
        await until(lambda: doors.reports == 1)
        jobs.drop(waiting)
        jobs.drop(job)
        assert job.state == waiting.state == "cancelled"
        doors.steps.release(100)
        after = jobs.submit("", "m", "three", doors.work("three", 0))
        await ended(after)
        assert after.state == "done" and doors.began == ["one", "three"] and doors.reports == 1
        with pytest.raises(NotFound):
            jobs.find(job.id, "")

    run(work)


def test_what_was_found_is_told_at_once_to_whoever_asks_the_same() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        job = jobs.submit("anna", "m", "key", doors.work("one"))
        assert jobs.submit("anna", "m", "key", doors.work("again")) is job
        doors.steps.release(3)
        await ended(job)
        again = jobs.submit("berta", "m", "key", doors.work("never"))
        assert again.over and again.result == job.result and again.id != job.id
        assert doors.began == ["one"]
        for other in range(REMEMBERED):
            await ended(jobs.submit("", "m", other, lambda report: 0))
        assert not jobs.submit("anna", "m", "key", doors.work("anew")).over

    run(work)


def test_what_failed_is_not_remembered_and_says_why_without_quoting_anything() -> None:
    def fails(error: Exception) -> Callable[[Report], Any]:
        def work(report: Report) -> None:
            raise error

        return work

    async def work(jobs: Jobs, doors: Doors) -> None:
        ours = jobs.submit("", "m", 1, fails(RuntimeError("the secret text")))
        theirs = jobs.submit("", "m", 2, fails(DataError("sentence 3 has no pieces")))
        await ended(theirs)
        assert ours.state == theirs.state == "failed" and ours.error and theirs.error
        assert ours.error["error"]["code"] == "failed" and "secret" not in str(ours.error)
        assert theirs.error["error"] == {"code": "bad_request", "message": "sentence 3 has no pieces", "hint": None}
        assert not jobs.submit("", "m", 1, doors.work("one")).over

    run(work)


def test_there_is_room_for_so_many_and_only_what_is_over_makes_way() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        done = jobs.submit("anna", "m", 0, lambda report: 0)
        await ended(done)
        others = [jobs.submit("", "m", number, doors.work(str(number))) for number in (1, 2)]
        third = jobs.submit("", "m", 3, doors.work("3"))
        with pytest.raises(NotFound):
            jobs.find(done.id, "anna")
        with pytest.raises(TooMany) as caught:
            jobs.submit("anna", "m", 4, doors.work("4"))
        assert caught.value.retry_after is not None and caught.value.retry_after > 0
        assert all(jobs.find(job.id, "") is job for job in (*others, third))

    run(work, most=3)


def test_ones_own_old_jobs_make_way_before_those_of_others() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        theirs, own = (jobs.submit(owner, "m", owner, lambda report: 0) for owner in ("anna", "berta"))
        await ended(own)
        jobs.submit("berta", "m", 3, doors.work("3"))
        assert jobs.find(theirs.id, "anna") is theirs
        with pytest.raises(NotFound):
            jobs.find(own.id, "berta")

    run(work, most=2)


def test_a_caller_with_a_name_leaves_room_for_others() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        for number in range(OWN):
            jobs.submit("anna", "m", number, doors.work("x"))
        with pytest.raises(TooMany):
            jobs.submit("anna", "m", 99, doors.work("x"))
        jobs.submit("berta", "m", 99, doors.work("x"))

    run(work, most=20)


def test_everybody_who_watches_hears_of_every_change_and_of_the_end() -> None:
    async def work(jobs: Jobs, doors: Doors) -> list[list[Any]]:
        job = jobs.submit("", "m", 1, doors.work("one"))

        async def watch() -> list[Any]:
            seen = []
            async for told in jobs.watch(job):
                seen.append((told["state"], told["done"]))
                if told["state"] == "running":
                    doors.steps.release()
            return seen

        return list(await asyncio.gather(watch(), watch()))

    for seen in run(work):
        assert seen[-1] == ("done", 3) and len(set(seen)) == len(seen) >= 2
        assert [done for _, done in seen] == sorted(done for _, done in seen)


def test_a_server_that_stops_drops_its_jobs_and_tells_those_who_watch() -> None:
    stops = threading.Event()

    async def work(jobs: Jobs, doors: Doors) -> None:
        job, waiting = (jobs.submit("", "m", name, doors.work(name, 100)) for name in ("one", "two"))
        await until(lambda: doors.reports == 1)

        async def last(watched: DeskJob) -> str:
            return [told["state"] async for told in jobs.watch(watched)][-1]

        watching = [asyncio.ensure_future(last(each)) for each in (job, waiting)]
        await asyncio.sleep(0.01)
        stops.set()
        begin = time.monotonic()
        assert await asyncio.gather(*watching) == ["cancelled", "cancelled"]
        assert time.monotonic() - begin < 8 * LOOK
        doors.steps.release(100)
        await asyncio.sleep(0.05)
        assert doors.reports == 1 and doors.began == ["one"]

    run(work, stopping=stops.is_set)


def test_jobs_that_are_dropped_while_they_wait_leave_nothing_behind() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        first = jobs.submit("", "en-de", "first", doors.work("first"))
        await until(lambda: first.state == "running")
        for number in range(100):
            jobs.drop(jobs.submit("", "en-de", number, doors.work(str(number))))
        assert jobs._pool._work_queue.qsize() <= 1
        last = jobs.submit("", "en-de", "last", doors.work("last"))
        for _ in range(6):
            doors.steps.release()
        await ended(last)
        assert (first.state, last.state, doors.began) == ("done", "done", ["first", "last"])

    run(work)


def test_the_end_is_told_also_if_it_comes_while_nobody_listens() -> None:
    async def work(jobs: Jobs, doors: Doors) -> None:
        job = jobs.submit("anna", "en-de", "key", doors.work("one", passes=0))
        told = jobs.watch(job)
        assert (await anext(told))["state"] == "waiting"
        await ended(job)
        assert [each["state"] async for each in told] == ["done"]

    run(work)
