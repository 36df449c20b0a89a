"""Threads do the work on texts that is not the engine's: parsing, cutting into sentences, joining answers.

What is short is done at once, in the event loop; what is longer goes to a thread, so that others need not wait. There is one thread for
what a moment suffices for, and one for long texts, since all of this holds Python's lock: more threads would only make the event loop wait
longer for its turn.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from limelight.errors import DeadlineError, LimelightError
from limelight.serving.refusals import BadRequest, Busy, Late

# Bytes of text that are read in the event loop. The slowest known takes 40 microseconds a byte (the pieces of what no piece fits), so that
# is 10 ms; an ordinary sentence takes 2.
SMALL = 256
EACH = 8  # bytes that a text counts for beside its own
LONG = 20_000  # bytes of text from which on it goes to the second thread: up to a second
MOST = 4_000_000  # bytes that wait to be read
_UNREAD = "the text was not even read in time", "give it more time, or send less at once"
Result = TypeVar("Result")


def one_thread() -> ThreadPoolExecutor:
    """Make the default executor of a server's event loop: `aside` has many callers, and all of them together have one thread."""
    return ThreadPoolExecutor(1, "aside")


async def aside(size: int, work: Callable[[], Result], small: int = SMALL) -> Result:
    """Run `work`, beside the event loop unless its size is small."""
    return work() if size <= small else await asyncio.to_thread(work)


def weight(texts: Iterable[str]) -> int:
    """What texts cost to read grows with their bytes, whatever their script; and an empty one costs as much as a word."""
    return sum(len(text.encode()) + EACH for text in texts)


class TextThread:
    def __init__(self) -> None:
        self.waiting = 0  # bytes
        self._pool = ThreadPoolExecutor(1, "reading")

    async def run(self, size: int, work: Callable[[], Result], seconds: float) -> Result:
        """Run `work` in `seconds` at most. What a translator objects to is the request's fault."""
        try:
            return work() if size <= SMALL else await self._in_thread(size, work, seconds)
        except DeadlineError:
            raise Late(*_UNREAD) from None
        except LimelightError as error:
            raise BadRequest(str(error)) from None

    async def _in_thread(self, size: int, work: Callable[[], Result], seconds: float) -> Result:
        if self.waiting and self.waiting + size > MOST:
            raise Busy("too much text waits to be read", "try again a little later", retry_after=2.0)
        self.waiting += size
        try:
            async with asyncio.timeout(seconds):
                pool = self._pool if size > LONG else None
                return await asyncio.get_running_loop().run_in_executor(pool, work)
        except TimeoutError:
            raise Late(*_UNREAD) from None
        finally:
            self.waiting -= size

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
