"""How many documents are under way at once, whatever becomes of those who asked."""

import asyncio
import threading
from typing import Any

import pytest

from limelight.serving.queue.documents import AT_ONCE, WAITING, DocumentPool
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import Busy, Late


def test_a_document_that_nobody_waits_for_keeps_its_place_until_its_thread_is_free() -> None:
    begun: list[int] = []
    go_on = threading.Event()

    async def translate(texts: Any) -> list[Any]:
        return []

    async def work() -> None:
        pool = DocumentPool()

        def send(number: int, seconds: float) -> Any:
            def finish(_: object) -> None:
                begun.append(number)
                go_on.wait(20)

            return pool.translate(b"123\n", "txt", ("en", "de"), translate, Deadline(seconds), finish)

        given = await asyncio.gather(*(send(number, 0.1) for number in range(AT_ONCE + WAITING)), return_exceptions=True)
        assert [type(each) for each in given] == [Late] * (AT_ONCE + WAITING)
        assert pool.open == AT_ONCE + WAITING, "two threads still work, and the others lie before them"
        with pytest.raises(Busy):
            await send(99, 0.1)
        go_on.set()
        while pool.open:
            await asyncio.sleep(0.01)
        assert sorted(begun) == list(range(AT_ONCE)), "what nobody waits for any more is not begun"
        await send(100, 5)
        assert begun[-1] == 100
        pool.close()

    asyncio.run(asyncio.wait_for(work(), 20))
