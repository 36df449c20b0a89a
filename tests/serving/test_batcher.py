"""Batches and admission with an engine that only sleeps: what is tested is who goes when, not what is translated."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from limelight.serving.queue.batcher import RequestBatcher
from limelight.serving.queue.observer import BatchReport, NullObserver
from limelight.serving.queue.work import Deadline, Unfinished, within
from limelight.serving.refusals import Busy, Failed, Late, TooLarge
from limelight.serving.settings import QueueSettings


@dataclass(eq=False)
class Sleeping:
    """A kind that takes a while and answers in capitals."""

    seconds: float = 0.01
    model: str = "m"
    batch_pieces: int = 100
    batches: list[list[str]] = field(default_factory=list)
    at_once: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, payloads: Sequence[Any]) -> list[Any]:
        with self.lock:
            self.batches.append(list(payloads))
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        time.sleep(self.seconds)
        with self.lock:
            self.at_once -= 1
        if any("poison" in each for each in payloads):
            raise RuntimeError("this text is in no log")
        return [each.upper() for each in payloads]


def run(work: Callable[[RequestBatcher], Awaitable[Any]], workers: int = 1, speed: float = 1000.0, **settings: Any) -> Any:
    async def whole() -> Any:
        batcher = RequestBatcher(workers, speed, QueueSettings(**settings), NullObserver())
        try:
            return await work(batcher)
        finally:
            batcher.close()

    return asyncio.run(whole())


def submitted(batcher: RequestBatcher, kind: Sleeping, texts: list[str], pieces: int = 10, **more: Any) -> Any:
    return batcher.submit(kind, texts, [pieces] * len(texts), more.pop("flow", None), **more)


def test_results_come_in_the_order_of_the_request() -> None:
    async def work(batcher: RequestBatcher) -> list[Any]:
        texts = [f"t{number}" for number in range(50)]
        return await within(submitted(batcher, Sleeping(0.001), texts), Deadline(5))

    assert run(work) == [f"T{number}" for number in range(50)]


@pytest.mark.process
def test_what_waits_while_a_batch_runs_shares_the_next_one() -> None:
    kind = Sleeping(0.05)

    async def work(batcher: RequestBatcher) -> None:
        await asyncio.gather(*[within(submitted(batcher, kind, [f"t{n}"]), Deadline(5)) for n in range(9)])

    run(work)
    assert [len(batch) for batch in kind.batches][:2] == [1, 8]  # an idle server does not wait for company


def test_a_busy_server_waits_for_company_but_not_for_long() -> None:
    kind = Sleeping(0.001)

    async def work(batcher: RequestBatcher) -> float:
        await within(submitted(batcher, kind, ["first"]), Deadline(5))
        begin = time.monotonic()
        jobs = [submitted(batcher, kind, ["second"])]
        await asyncio.sleep(0.02)
        jobs.append(submitted(batcher, kind, ["third"]))
        for job in jobs:
            await within(job, Deadline(5))
        return time.monotonic() - begin

    assert run(work, window_ms=80.0) >= 0.075
    assert kind.batches == [["first"], ["second", "third"]]


def test_a_full_batch_waits_for_nobody() -> None:
    kind = Sleeping(0.001)

    async def work(batcher: RequestBatcher) -> float:
        await within(submitted(batcher, kind, ["first"]), Deadline(5))
        begin = time.monotonic()
        await within(submitted(batcher, kind, ["x"] * 10), Deadline(5))
        return time.monotonic() - begin

    assert run(work, window_ms=900.0) < 0.5


@pytest.mark.process
@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_batches_run_than_there_are_workers(workers: int) -> None:
    kind = Sleeping(0.01)

    async def work(batcher: RequestBatcher) -> None:
        await within(submitted(batcher, kind, ["x"] * 120), Deadline(5))

    run(work, workers=workers)
    assert kind.most == workers


@pytest.mark.process
def test_what_left_the_queue_never_reaches_the_engine() -> None:
    kind = Sleeping(0.05)

    async def work(batcher: RequestBatcher) -> None:
        stays = submitted(batcher, kind, ["stays"])
        leaves = submitted(batcher, kind, [f"leaves{n}" for n in range(20)])
        batcher.leave(leaves)
        await within(stays, Deadline(5))
        await asyncio.sleep(0.1)
        assert not batcher.jobs and not batcher.queue.pieces

    run(work)
    assert kind.batches == [["stays"]]


@pytest.mark.process
def test_a_request_whose_time_is_over_is_late_not_answered() -> None:
    async def work(batcher: RequestBatcher) -> float:
        kind = Sleeping(0.3)
        submitted(batcher, kind, ["runs"])
        begin = time.monotonic()
        with pytest.raises(Late):
            await within(submitted(batcher, kind, ["waits"]), Deadline(0.1))
        return time.monotonic() - begin

    assert 0.09 < run(work) < 0.2


@pytest.mark.process
def test_a_queue_longer_than_allowed_is_refused_at_once_with_a_time_to_come_back() -> None:
    async def work(batcher: RequestBatcher) -> Busy:
        kind = Sleeping(0.05)
        for _ in range(30):
            submitted(batcher, kind, ["x"], pieces=100)
        with pytest.raises(Busy) as refusal:
            for _ in range(100):
                submitted(batcher, kind, ["x"], pieces=100)
        return refusal.value

    refusal = run(work, speed=1000.0, wait_seconds=5.0)
    assert refusal.status == 503
    assert refusal.retry_after is not None and refusal.retry_after >= 0


def test_an_idle_server_takes_a_request_however_slow_it_believes_to_be() -> None:
    async def work(batcher: RequestBatcher) -> list[Any]:
        return await within(submitted(batcher, Sleeping(), ["x"], pieces=100), Deadline(5))

    assert run(work, speed=20.0, wait_seconds=0.001) == ["X"]


def test_a_request_that_could_never_be_done_in_time_is_too_large() -> None:
    async def work(batcher: RequestBatcher) -> None:
        with pytest.raises(TooLarge, match="200 s"):
            submitted(batcher, Sleeping(), ["x"] * 100, pieces=2000)
        idle = submitted(batcher, Sleeping(), ["x"] * 100, pieces=200)  # what it believes of its speed may be wrong
        with pytest.raises(TooLarge, match="20 s"):
            submitted(batcher, Sleeping(), ["x"] * 100, pieces=200)
        batcher.leave(idle)

    run(work, speed=1000.0, timeout_seconds=5.0)


@pytest.mark.process
def test_one_text_that_fails_fails_nobody_else() -> None:
    async def work(batcher: RequestBatcher) -> list[Any]:
        kind = Sleeping(0.02)
        first = submitted(batcher, kind, ["first"])
        jobs = [submitted(batcher, kind, [text]) for text in ("good", "poison", "fine")]
        await within(first, Deadline(5))
        return await asyncio.gather(*[within(job, Deadline(5)) for job in jobs], return_exceptions=True)

    good, poisoned, fine = run(work)
    assert (good, fine) == (["GOOD"], ["FINE"])
    assert isinstance(poisoned, Failed) and "log" not in poisoned.message
    assert isinstance(poisoned.__cause__, RuntimeError)


@pytest.mark.process
def test_after_a_failure_no_more_run_at_once_than_before_and_who_left_not_at_all() -> None:
    kind = Sleeping(0.02)

    async def work(batcher: RequestBatcher) -> None:
        first = submitted(batcher, kind, ["first"])
        jobs = [submitted(batcher, kind, [text]) for text in ("poison", *(f"t{n}" for n in range(8)))]
        await within(first, Deadline(5))
        while len(kind.batches) < 3:
            await asyncio.sleep(0.001)
        for job in jobs[3:]:
            batcher.leave(job)
        await asyncio.gather(*[within(job, Deadline(5)) for job in jobs[:3]], return_exceptions=True)
        await asyncio.sleep(0.1)

    run(work)
    assert kind.most == 1
    assert len(kind.batches) <= 6  # first, all, poison and the two who stayed, and one that had begun


def test_a_batch_that_was_ended_early_tells_only_of_slowness() -> None:
    """Else requests with hardly any time would make a server believe that it is fast, and let in more than it can do."""
    batcher = RequestBatcher(1, 1000.0, QueueSettings(), NullObserver())
    for _ in range(50):
        batcher._update_speed(100, 1.0, 0.001, ended=True)
    assert batcher.speed == 1000
    for _ in range(50):
        batcher._update_speed(100, 1.0, 1.0, ended=True)
    assert batcher.speed < 200
    batcher.close()


def test_a_minute_of_standstill_does_not_spoil_the_estimate() -> None:
    batcher = RequestBatcher(1, 1000.0, QueueSettings(), NullObserver())
    for _ in range(50):
        batcher._update_speed(100, 1.0, 0.1)
    batcher._update_speed(100, 1.0, 60.0)
    assert batcher.speed > 500
    for _ in range(100):
        batcher._update_speed(100, 1.0, 0.4)  # a machine that is slower from now on is believed
    assert 200 < batcher.speed < 300
    batcher.close()


def test_a_loop_that_was_held_up_once_is_no_reason_to_refuse_for_good() -> None:
    async def work(batcher: RequestBatcher) -> None:
        batcher._lag, batcher._last_end = 40.0, time.monotonic()
        assert batcher.wait_for(10, None) > 60
        batcher._last_end -= 30  # seconds without a batch that could tell of it
        assert batcher.wait_for(10, None) < 0.2
        await within(submitted(batcher, Sleeping(0.0), ["x"]), Deadline(5))
        assert batcher.wait_for(10, None) < 1, "a batch does not bring back what had faded"

    run(work, speed=1_000.0)


@pytest.mark.process
def test_the_speed_is_learnt_from_full_batches() -> None:
    async def work(batcher: RequestBatcher) -> float:
        for _ in range(20):
            await within(submitted(batcher, Sleeping(0.05), ["x"] * 10), Deadline(5))
        return batcher.speed

    assert 700 < run(work, speed=5_000.0, wait_seconds=60.0) < 3000  # 100 pieces in 50 ms


def test_watchers_hear_of_batches_and_waits() -> None:
    class Ears(NullObserver):
        def __init__(self) -> None:
            self.batches: list[BatchReport] = []
            self.stages: list[str] = []

        def batch(self, report: BatchReport) -> None:
            self.batches.append(report)

        def stage(self, name: str, seconds: float) -> None:
            self.stages.append(name)

    ears = Ears()

    async def work() -> None:
        batcher = RequestBatcher(1, 1000.0, QueueSettings(), ears)
        await within(submitted(batcher, Sleeping(), ["x"] * 5), Deadline(5))
        batcher.close()

    asyncio.run(work())
    assert [(report.model, report.rows, report.pieces) for report in ears.batches] == [("m", 5, 50)]
    assert ears.batches[0].fill == 0.5
    assert ears.stages == ["wait"]


@dataclass(eq=False)
class Beginning(Sleeping):
    """A kind that leaves texts with a question mark to a slower one."""

    rest: Sleeping = field(default_factory=lambda: Sleeping(0.3))

    def run(self, payloads: Sequence[Any]) -> list[Any]:
        return [Unfinished(self.rest, each) if "?" in each else each.upper() for each in payloads]


def two_queues(work: Callable[[RequestBatcher], Awaitable[Any]], **settings: Any) -> Any:
    async def whole() -> Any:
        queue = QueueSettings(**settings)
        batcher = RequestBatcher(1, 1000.0, queue, NullObserver(), RequestBatcher(1, 100.0, queue, NullObserver()))
        try:
            return await work(batcher)
        finally:
            batcher.close()

    return asyncio.run(whole())


@pytest.mark.process
def test_what_is_unfinished_is_done_beside_those_who_need_not_wait_for_it() -> None:
    kind = Beginning()

    async def work(batcher: RequestBatcher) -> tuple[list[Any], float, float]:
        began = time.monotonic()
        slow = submitted(batcher, kind, ["one", "two?"])
        quick = await within(submitted(batcher, kind, ["three"]), Deadline(5))
        after = time.monotonic() - began
        assert not slow.done.done()
        return quick + await within(slow, Deadline(5)), after, time.monotonic() - began

    made, quick, slow = two_queues(work)
    assert made == ["THREE", "ONE", "TWO?"]
    assert quick < 0.2 and slow >= 0.3


@pytest.mark.process
def test_what_is_unfinished_shares_batches_too() -> None:
    kind = Beginning()

    async def work(batcher: RequestBatcher) -> None:
        await asyncio.gather(*[within(submitted(batcher, kind, [f"{n}?"]), Deadline(5)) for n in range(6)])

    two_queues(work)
    assert [len(batch) for batch in kind.rest.batches] == [1, 5]


@pytest.mark.process
def test_whoever_leaves_takes_what_is_unfinished_along() -> None:
    kind = Beginning()

    async def work(batcher: RequestBatcher) -> None:
        first, second = submitted(batcher, kind, ["first?"]), submitted(batcher, kind, ["second?"])
        await asyncio.sleep(0.1)
        assert batcher.slower is not None and len(batcher.slower.queue) == 1
        batcher.leave(second)
        assert len(batcher.slower.queue) == 0
        await within(first, Deadline(5))
        assert not batcher.jobs and not batcher.slower.jobs

    two_queues(work)
    assert kind.rest.batches == [["first?"]]


@pytest.mark.process
def test_what_fails_the_second_time_fails_its_request_alone() -> None:
    kind = Beginning()

    async def work(batcher: RequestBatcher) -> None:
        bad, good = submitted(batcher, kind, ["fine", "poison?", "x?"]), submitted(batcher, kind, ["well?"])
        with pytest.raises(Failed):
            await within(bad, Deadline(5))
        assert await within(good, Deadline(5)) == ["WELL?"]
        assert batcher.slower is not None and not batcher.slower.jobs and not batcher.jobs

    two_queues(work)


@pytest.mark.process
def test_a_long_queue_of_what_is_unfinished_closes_the_door_but_for_what_cannot_be() -> None:
    """One team's placeholders are no reason to send another team away."""
    kind = Beginning()

    async def work(batcher: RequestBatcher) -> None:
        jobs = [submitted(batcher, kind, [f"{n}?"], pieces=100) for n in range(9)]
        await asyncio.sleep(0.1)
        assert not len(batcher.queue) and batcher.backlog > 2
        with pytest.raises(Busy):
            submitted(batcher, kind, ["late?"], further=True)
        assert await within(submitted(batcher, kind, ["plain"]), Deadline(1)) == ["PLAIN"]
        for job in jobs:
            batcher.leave(job)

    two_queues(work, wait_seconds=2)
