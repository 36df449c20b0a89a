"""Work on texts that is not the engine's: cutting them into sentences, putting translations together. What is short is done at once, in the
event loop; what is long goes to a thread, so that others need not wait, and so much of it that it will be done in time.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from limelight.errors import LimelightError
from limelight.serving.refusals import BadRequest, Busy, Late

SMALL = 2_000  # characters, a few milliseconds
MOST = 4_000_000  # characters that wait for the thread, a few seconds
Result = TypeVar("Result")


class Reading:
    def __init__(self) -> None:
        self.waiting = 0  # characters
        self._pool = ThreadPoolExecutor(1, "reading")

    async def run(self, characters: int, work: Callable[[], Result], seconds: float) -> Result:
        """`work`, in so many seconds at most. What a translator objects to is the request's fault."""
        try:
            if characters <= SMALL:
                return work()
            return await self._in_thread(characters, work, seconds)
        except LimelightError as error:
            raise BadRequest(str(error)) from None

    async def _in_thread(self, characters: int, work: Callable[[], Result], seconds: float) -> Result:
        if self.waiting and self.waiting + characters > MOST:
            raise Busy("too much text waits to be read", "try again a little later", retry_after=2.0)
        self.waiting += characters
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except TimeoutError:
            raise Late("the text was not even read in time", "give it more time, or send less at once") from None
        finally:
            self.waiting -= characters

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
