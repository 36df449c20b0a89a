"""A `ServedStore` asks the store of a server in threads of its own, few at a time, and refuses where it does not answer."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from limelight.errors import DataError, StorageError
from limelight.serving.refusals import BadRequest, Busy, StoreAway

if TYPE_CHECKING:
    from limelight.store.store import Store

logger = logging.getLogger(__name__)

THREADS = 4
SEARCHERS = 2  # threads beside: who writes does not wait for who searches
CONFIRMERS = 2  # and who is to be answered waits for neither
WAITING = 64  # that wait for a thread or have one; others are refused
CONFIRMED = 4096  # that wait to be answered: as many as there are connections, however many those are
TIDIED_EVERY = 3_600.0  # seconds
Result = TypeVar("Result")


class ServedStore:
    def __init__(self, store: "Store") -> None:
        self.store = store
        self._writers, self._searchers = ThreadPoolExecutor(THREADS, "store"), ThreadPoolExecutor(SEARCHERS, "memory")
        self._confirmers = ThreadPoolExecutor(CONFIRMERS, "quota")
        self._waiting = Counter[ThreadPoolExecutor]()

    async def ask(self, work: "Callable[[Store], Result]", search: bool = False, confirm: bool = False) -> Result:
        """What `work` makes of the store, in a thread. Refused where a text cannot be kept, too many wait, or the database is away."""
        threads = self._confirmers if confirm else self._searchers if search else self._writers
        if self._waiting[threads] >= (CONFIRMED if confirm else WAITING):
            raise StoreAway("too many wait for the store", "try again a little later", retry_after=2.0)
        self._waiting[threads] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work, self.store)
        except DataError as error:
            raise BadRequest(str(error)) from None
        except StorageError as error:  # its message has no texts
            logger.error("%s", error)
            raise StoreAway("the store does not answer", "try again a little later", retry_after=5.0) from None
        finally:
            self._waiting[threads] -= 1

    async def tidy(self, days: float) -> None:
        """Delete what is older than so many days, now and every hour, until cancelled."""
        while True:
            with contextlib.suppress(Busy):  # it was logged
                await self.ask(lambda store: store.expire(days))
            await asyncio.sleep(TIDIED_EVERY)

    def close(self) -> None:
        for threads in (self._confirmers, self._searchers, self._writers):
            threads.shutdown(cancel_futures=True)
        self.store.close()
