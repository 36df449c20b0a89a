"""Many tasks share a translator: each gets its own translations, and what waits runs together."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from limelight.async_translator import MOST_TOGETHER, AsyncTranslator
from limelight.errors import ConfigError, DeadlineError
from limelight.translator import Translation, Translator
from tagged_bundle import TEXTS, translator


class Counting:
    """A translator that remembers what was asked of it together."""

    def __init__(self, inner: Translator) -> None:
        self.inner, self.batches, self.closed = inner, list[int](), False

    def translate(self, texts: Sequence[str], **options: Any) -> list[Translation]:
        self.batches.append(len(texts))
        return self.inner.translate(texts, **options)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def counting() -> Counting:
    return Counting(translator())


def run(counting: Counting, *asked: dict[str, Any]) -> list[Any]:
    async def ask() -> list[Any]:
        async with AsyncTranslator(counting) as shared:  # type: ignore[arg-type]
            return await asyncio.gather(*(shared.translate(**each) for each in asked), return_exceptions=True)

    return asyncio.run(ask())


def test_two_hundred_calls_are_a_few_batches_and_each_gets_its_own(counting: Counting) -> None:
    asked = [{"texts": [TEXTS[n % 3]], "target": ("de", "fr")[n % 2]} for n in range(200)]
    found = run(counting, *asked)
    alone = {(text, target): counting.inner.translate([text], target=target)[0].text for text in TEXTS[:3] for target in ("de", "fr")}
    assert [each[0].text for each in found] == [alone[each["texts"][0], each["target"]] for each in asked]
    assert sum(counting.batches) == 200 and len(counting.batches) <= 4 and counting.closed


def test_a_batch_has_room_for_so_many(counting: Counting) -> None:
    run(counting, *[{"texts": ["he was"] * (MOST_TOGETHER // 2)}] * 3)
    assert counting.batches == [MOST_TOGETHER, MOST_TOGETHER // 2]


def test_what_fails_fails_for_those_who_asked_it_alone(counting: Counting) -> None:
    found = run(counting, {"texts": ["he"]}, {"texts": ["he"], "tags": ["polite"]}, {"texts": "he"}, {"texts": []})
    assert isinstance(found[0][0], Translation) and isinstance(found[1], ConfigError) and isinstance(found[2], TypeError)
    assert found[3] == []


def test_what_belongs_to_the_texts_of_one_call_stays_with_them(counting: Counting) -> None:
    asked = [{"texts": [TEXTS[0]], "phrases": [[word]]} for word in ("blue", "big")]
    found = run(counting, *asked, {"texts": ["he was"], "timeout": 60.0}, {"texts": ["he was"], "timeout": 60.0})
    assert "blue" in found[0][0].text and "big" in found[1][0].text
    assert counting.batches == [1, 1, 1, 1]


def test_one_that_fails_does_not_fail_its_company(counting: Counting) -> None:
    whole = counting.translate

    def fail(texts: Sequence[str], **options: Any) -> list[Translation]:
        if "she was" in texts:
            raise ConfigError("no")
        return whole(texts, **options)

    counting.translate = fail  # type: ignore[method-assign]
    found = run(counting, {"texts": ["he was"]}, {"texts": ["she was"]}, {"texts": ["it was"]})
    assert isinstance(found[0][0], Translation) and isinstance(found[1], ConfigError) and isinstance(found[2][0], Translation)


def test_nobody_waits_for_ever_when_the_block_is_left_in_a_hurry(counting: Counting) -> None:
    async def ask() -> bool:
        shared = AsyncTranslator(counting)  # type: ignore[arg-type]
        waits = asyncio.create_task(shared.translate([TEXTS[0]] * 50))
        try:
            async with asyncio.timeout(0.01):
                async with shared:
                    await asyncio.sleep(0)
        except TimeoutError:
            pass
        found = await asyncio.wait_for(waits, 60)
        await asyncio.to_thread(shared._thread.shutdown)  # it closes after the batch
        return len(found) == 50

    assert asyncio.run(ask()) and counting.closed


class Slow(Counting):
    """It waits in its thread until it may go on, and notes what is closed under it."""

    def __init__(self, inner: Translator) -> None:
        super().__init__(inner)
        self.begun, self.may_go_on, self.busy, self.harmed = threading.Event(), threading.Event(), False, False
        self.timeouts = list[float]()

    def translate(self, texts: Sequence[str], **options: Any) -> list[Translation]:
        self.busy = True
        self.timeouts += [options["timeout"]] if "timeout" in options else []
        self.begun.set()
        assert self.may_go_on.wait(20)
        found = super().translate(texts, **options)
        self.busy = False
        return found

    def close(self) -> None:
        self.harmed, self.closed = self.busy, True


@pytest.mark.parametrize("all_of_it", [False, True])
def test_an_engine_is_not_closed_under_its_batch(counting: Counting, all_of_it: bool) -> None:
    """`all_of_it`: as Ctrl-C does, every task is cancelled, and not the one alone that leaves the block."""
    slow = Slow(counting.inner)

    async def leave() -> None:
        async with AsyncTranslator(slow) as shared:  # type: ignore[arg-type]
            tasks.append(asyncio.create_task(shared.translate(["he was"])))
            await asyncio.to_thread(slow.begun.wait, 20)
            at_end.set()

    async def ask() -> None:
        leaving = asyncio.create_task(leave())
        await at_end.wait()
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()} if all_of_it else [leaving]:
            task.cancel()
        await asyncio.sleep(0)
        await asyncio.gather(leaving, return_exceptions=True)
        slow.may_go_on.set()

    tasks, at_end = list[asyncio.Task[Any]](), asyncio.Event()
    asyncio.run(ask())
    for thread in threading.enumerate():
        if thread.name.startswith("translate"):
            thread.join(20)
    assert slow.closed and not slow.harmed


def test_waiting_takes_of_the_time_of_a_call(counting: Counting) -> None:
    slow = Slow(counting.inner)

    async def ask() -> list[Any]:
        async with AsyncTranslator(slow) as shared:  # type: ignore[arg-type]
            first = asyncio.create_task(shared.translate(["he was"]))
            later = [asyncio.create_task(shared.translate(["it was"], timeout=limit)) for limit in (1e-9, 60.0)]
            await asyncio.to_thread(slow.begun.wait, 20)
            slow.may_go_on.set()
            return await asyncio.gather(first, *later, return_exceptions=True)

    found = asyncio.run(ask())
    assert isinstance(found[1], DeadlineError) and len(found[2]) == 1
    assert slow.timeouts[0] == 0 and 0 < slow.timeouts[1] < 60


def test_a_task_that_is_cancelled_is_not_translated(counting: Counting) -> None:
    async def ask() -> list[Translation]:
        async with AsyncTranslator(counting) as shared:  # type: ignore[arg-type]
            gone, stays = (asyncio.create_task(shared.translate([text])) for text in ("he was", "she was"))
            await asyncio.sleep(0)
            gone.cancel()
            return await stays

    assert len(asyncio.run(ask())) == 1
    assert sum(counting.batches) in (1, 2)  # it may have been in work already


def test_whoever_asks_after_the_end_is_told_so(counting: Counting) -> None:
    async def ask() -> None:
        async with AsyncTranslator(counting) as shared:  # type: ignore[arg-type]
            pass
        await shared.translate(["he was"])

    with pytest.raises(ConfigError, match="the translator was closed"):
        asyncio.run(ask())
