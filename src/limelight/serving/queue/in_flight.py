"""A counter tracks the requests under way, so that a server can stop without losing one."""

import asyncio
import time

# After the signal to stop, requests are still taken for these seconds: what a client sent before it may be in the socket yet.
GRACE = 1.0


class InFlight:
    def __init__(self) -> None:
        self.count = 0
        self.draining = False
        self._refuse_from = float("inf")
        self._none = asyncio.Event()
        self._none.set()

    @property
    def refuses(self) -> bool:
        return time.monotonic() >= self._refuse_from

    def add(self, change: int) -> None:
        self.count += change
        if self.count:
            self._none.clear()
        else:
            self._none.set()

    def drain(self) -> None:
        if not self.draining:
            self.draining = True
            self._refuse_from = time.monotonic() + GRACE

    async def over(self) -> None:
        """Wait, after `drain`, until the grace is over and nothing is under way."""
        await asyncio.sleep(max(0.0, self._refuse_from - time.monotonic()))
        await self._none.wait()
