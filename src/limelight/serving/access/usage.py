"""A ledger counts what every caller has used up, in memory and, where a folder is given, across restarts:

    STATE/usage.json   {"month": "2026-11", "characters": {"forum": 81234}}

The file is written whole every few seconds while there is something new, and at the end. A server that is killed forgets the last seconds.
Where there is a store, it stands there instead, and the servers of that store count together: each tells every other second what came,
and asks before an answer goes out whether the quota of its caller has room for it.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import math
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, NonNegativeInt

from limelight.config import Settings
from limelight.errors import ConfigError, StorageError
from limelight.files import write_whole
from limelight.serving.access.keys import Key, today
from limelight.serving.access.rate_limits import Caller, UsageAccount
from limelight.serving.queue.served_store import ServedStore
from limelight.serving.refusals import Busy, StoreAway

if TYPE_CHECKING:
    from limelight.store.store import Store

logger = logging.getLogger(__name__)

WRITTEN_EVERY = 10.0
SETTLED_EVERY = 2.0
AWAY = 5.0  # seconds for which nobody asks a store that did not answer: each question would wait as long as the first
FAILED = "what keys have used up could not be written"


class UsageFile(Settings):
    month: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}$")
    characters: dict[str, NonNegativeInt] = Field(default_factory=dict, max_length=100_000)


class Ledger:
    """A ledger has one account for each name that ever called: as many as there are keys, and one for those without."""

    def __init__(
        self,
        state: Path | None = None,
        store: ServedStore | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        day: Callable[[], date] = today,
    ) -> None:
        self._path = None if state is None or store is not None else state / "usage.json"
        self._store = store
        self._now, self._day = now, day
        self._accounts: dict[str, UsageAccount] = {}
        self._states = itertools.count()
        self._newest, self._written = -1, b""
        self._disk = threading.Lock()
        self._settling, self._away_until = asyncio.Lock(), -math.inf
        if self._path is not None:
            self._open(self._path)
        if store is not None:
            self._take_totals(f"{day():%Y-%m}", {}, store.store.usage.settle(f"{day():%Y-%m}", {}))

    def caller(self, key: Key | None) -> Caller:
        name = "" if key is None else key.name
        account = self._accounts.setdefault(name, UsageAccount(name))
        return Caller(account, key, self._now, self._day)

    async def keep(self) -> None:
        """Write now and then, until cancelled. On a thread: a slow disk must not make requests wait."""
        while True:
            await asyncio.sleep(WRITTEN_EVERY if self._store is None else SETTLED_EVERY)
            try:
                if self._store is not None:
                    await self.settle(self._store)
                    continue
                await asyncio.to_thread(self._write, next(self._states), self._content())
            except Busy:  # it was logged; what came is told the next time
                pass
            except Exception:  # the disk is full or gone, or worse: the server goes on, and tries again the next time
                logger.exception(FAILED)

    async def settle(self, store: ServedStore) -> None:
        """Tell the store what came since the last time, and hear what came to all its servers. Who cancels it waits for it all the same:
        what was told and not taken note of would be told again."""
        telling = asyncio.ensure_future(self._settle(store))
        try:
            await asyncio.shield(telling)
        except asyncio.CancelledError:
            await asyncio.gather(telling, return_exceptions=True)
            raise

    async def _settle(self, store: ServedStore) -> None:
        async with self._settling:  # two at once would both tell the same
            month, more = self._collect_unsettled()
            self._take_totals(month, more, await store.ask(lambda opened: opened.usage.settle(month, more)))

    async def confirm(self, caller: Caller) -> None:
        """Take what a request cost from a quota that the servers of a store share. While the store is away, it is told later.
        Where the client leaves meanwhile, the question goes on without it: what was taken must be taken note of."""
        if (store := self._store) is None or self._now() < self._away_until:
            return

        async def take(*asked: Any) -> int | None:
            return await store.ask(lambda opened: self._take(opened, *asked), confirm=True)

        with contextlib.suppress(Busy):  # it was logged
            await asyncio.shield(caller.confirm(take, lambda: self._settle(store)))

    def _take(self, opened: "Store", month: str, name: str, characters: int, most: int) -> int | None:
        """In a thread. Who waited for one while the store went away does not wait for the store, too."""
        if self._now() < self._away_until:
            raise StoreAway("the store does not answer")
        try:
            return opened.usage.take(month, name, characters, most)
        except StorageError:
            self._away_until = self._now() + AWAY
            raise

    def close(self) -> None:
        try:
            self._write(next(self._states), self._content())
            if self._store is not None:
                self._store.store.usage.settle(*self._collect_unsettled())
        except (OSError, StorageError):
            logger.exception(FAILED)

    def _collect_unsettled(self) -> tuple[str, dict[str, int]]:
        month = f"{self._day():%Y-%m}"
        own = [account for account in self._accounts.values() if account.month == month and account.unsettled]
        return month, {account.name: account.unsettled for account in own}

    def _take_totals(self, month: str, more: dict[str, int], totals: dict[str, int]) -> None:
        """What was spent while the store was asked is not in the totals yet."""
        for name, total in totals.items():
            account = self._accounts.setdefault(name, UsageAccount(name))
            if month == f"{self._day():%Y-%m}":
                account.turn(self._day())
                account.characters += total - account.settled - more.get(name, 0)
                account.settled = total

    def _open(self, path: Path) -> None:
        """Read it and write it at once: a folder that cannot be used is better told at the start than in the log of a server that runs."""
        try:
            if path.exists():
                self._read(path)
            self._write(next(self._states), self._content())
        except OSError as error:
            raise ConfigError(
                f"state={path.parent} cannot be used: {error.strerror}; it must be a folder that the server may write to"
            ) from None

    def _read(self, path: Path) -> None:
        try:
            file = UsageFile(**json.loads(path.read_bytes()))
        except (ValueError, TypeError, ConfigError):
            raise ConfigError(f"{path} is damaged; remove it, and the quotas of this month begin at nothing") from None
        self._accounts = {name: UsageAccount(name, file.month, characters) for name, characters in file.characters.items()}

    def _content(self) -> bytes:
        month = f"{self._day():%Y-%m}"
        used = {account.name: account.characters for account in self._accounts.values() if account.month == month}
        return json.dumps({"month": month, "characters": used}, sort_keys=True).encode("utf-8")

    def _write(self, state: int, content: bytes) -> None:
        """Write, on any thread. One that had to wait while the server ended must not put an older state over the newer one."""
        with self._disk:
            if self._path is None or state < self._newest:
                return
            if content != self._written:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(self._path, content)
            self._newest, self._written = state, content
