"""Limits bound what a caller may ask for: requests in a minute, and characters in a month.

A minute is a leaky bucket: what was asked for drains away at the granted rate, and there is room for one minute's worth. A request
larger than the bucket waits until it is empty and then fills it beyond the brim, so that large requests are slow but not impossible.

    LeakyBucket, 60 a minute:  60 at once, then one a second;  one of 120, then nothing for a minute
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from limelight.serving.access.keys import Key
from limelight.serving.refusals import QuotaExceeded, TooMany

MINUTE = 60.0
STRANGERS = 10_000  # addresses that are remembered
LONGEST_WAIT = 30.0  # seconds of a thread for the event loop, which answers at once unless it has ended
STRANGER_REQUESTS = 60  # of one address in a minute


class Usage(NamedTuple):
    """The usage is the characters of this month, and how many are granted. None: no end to it."""

    characters: int
    limit: int | None


@dataclass
class LeakyBucket:
    """A bucket holds how much of the last minute's asking has not drained yet, as of `at`."""

    filled: float = 0.0
    at: float = 0.0

    def wait(self, cost: float, per_minute: float, now: float) -> float:
        """Seconds until there is room for `cost`. 0: there is."""
        self.filled = max(0.0, self.filled - max(0.0, now - self.at) * per_minute / MINUTE)
        self.at = now
        over = self.filled + min(cost, per_minute) - per_minute
        # Draining in floating point leaves crumbs: one part in a billion is no reason to refuse.
        return over / per_minute * MINUTE if over > per_minute * 1e-9 else 0.0

    def take(self, cost: float) -> None:
        self.filled += cost


@dataclass
class UsageAccount:
    """An account holds what one name has used up. `month` is the one that `characters` belong to, as 2026-11."""

    name: str
    month: str = ""
    characters: int = 0
    settled: int = 0  # of these, known to the store
    held: int = 0  # of these, told to the store by the requests themselves, before they are answered
    requests_bucket: LeakyBucket = field(default_factory=LeakyBucket)
    characters_bucket: LeakyBucket = field(default_factory=LeakyBucket)

    @property
    def unsettled(self) -> int:
        return self.characters - self.settled - self.held

    def turn(self, day: date) -> None:
        """A new month begins at nothing."""
        month = f"{day:%Y-%m}"
        if self.month != month:
            self.month, self.characters, self.settled, self.held = month, 0, 0, 0


class Strangers:
    """Requests without a key are limited here. Each address has a bucket; of those that came long ago it is forgotten."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._buckets: dict[str, LeakyBucket] = {}

    def spend(self, address: str) -> None:
        self._buckets[address] = bucket = self._buckets.pop(address, None) or LeakyBucket(at=self._now())
        if len(self._buckets) > STRANGERS:
            del self._buckets[next(iter(self._buckets))]
        _check_rate(bucket, 1, STRANGER_REQUESTS, "", self._now())
        bucket.take(1)


class Caller:
    """A caller sent a request, and is known for as long as it lasts. `name` is empty where no keys are asked for."""

    def __init__(self, account: UsageAccount, key: Key | None, now: Callable[[], float], day: Callable[[], date]) -> None:
        self._account, self._key, self._now, self._day = account, key, now, day
        self._month, self._spent, self._ended = "", 0, False
        self._held: int | None = None if key is None or key.characters_per_month is None else 0

    @property
    def name(self) -> str:
        return self._account.name

    @property
    def spent(self) -> int:
        """Characters, of this request."""
        return self._spent

    def spend(self, characters: int, texts: int = 1) -> None:
        """Before the work begins: all of it is granted, or nothing is taken and the request is refused."""
        account, key, now = self._account, self._key, self._now()
        self._turn()
        if key is not None:
            _check_quota(account.characters + characters, key.characters_per_month)
            _check_rate(account.requests_bucket, texts, key.requests_per_minute, "", now)
            _check_rate(account.characters_bucket, characters, key.characters_per_minute, " characters", now)
            if key.requests_per_minute is not None:
                account.requests_bucket.take(texts)
        self._take(characters)

    def spend_rest(self, paid: int) -> Callable[[int], None]:
        """For the thread of a packed document, which hears of its characters: they can be more than its bytes, which were paid for.

        The quota has to hold the rest. The rate lets it pass, since the request was let in, and those after it wait for longer.
        """
        loop = asyncio.get_running_loop()

        async def take(characters: int) -> None:
            if self._ended:  # nobody waits for it any more
                return
            self._turn()
            _check_quota(self._account.characters + characters, None if self._key is None else self._key.characters_per_month)
            self._take(characters)

        def admit(characters: int) -> None:
            if (rest := characters - paid) > 0:
                asyncio.run_coroutine_threadsafe(take(rest), loop).result(LONGEST_WAIT)

        return admit

    def _turn(self) -> None:
        self._account.turn(self._day())
        if self._month not in ("", self._account.month):  # what it spent before is of the month before
            self._spent, self._held = 0, None if self._held is None else 0

    def _take(self, characters: int) -> None:
        account, key = self._account, self._key
        if key is not None and key.characters_per_minute is not None:
            account.characters_bucket.take(characters)
        account.characters += characters
        self._month, self._spent = account.month, self._spent + characters
        if self._held is not None:
            self._held += characters
            account.held += characters

    async def confirm(self, take: Callable[[str, str, int, int], Awaitable[int | None]], settle: Callable[[], Awaitable[None]]) -> None:
        """Before the answer: what it cost is taken from a quota that several servers share, or the request is refused after all.
        What is held is released here, once it is known what became of it, and not by a client that leaves meanwhile."""
        account, held, month = self._account, self._held, self._month
        if not held or self._key is None or month != account.month:
            return
        limit = self._key.characters_per_month
        assert limit is not None
        self._held = None
        total = None
        try:
            unsettled = account.unsettled
            total = await take(month, account.name, held, limit - max(0, unsettled))
            if total is None and unsettled:  # which the store may have known already: then it was counted twice
                await settle()
                total = await take(month, account.name, held, limit - max(0, account.unsettled))
        finally:
            if month == account.month:
                account.held -= held
                if total is not None:
                    account.characters += total - account.settled - held
                    account.settled = total
        if total is None:
            if month == account.month:
                back = min(held, self._spent)
                account.characters, self._spent = account.characters - back, self._spent - back
            raise _quota_exceeded(limit)

    def release(self) -> None:
        """At the end, whatever it was: what was not confirmed is told with the rest, and so is what comes from now on."""
        if self._held is not None and self._month == self._account.month:
            self._account.held -= self._held
        self._held, self._ended = None, True

    def give_back(self) -> None:
        """The quota is for translations, and none came of it. The rate is for asking, and stays spent."""
        self.release()
        if self._month == self._account.month:
            self._account.characters = max(0, self._account.characters - self._spent)
        self._spent = 0

    def usage(self) -> Usage:
        self._account.turn(self._day())
        return Usage(self._account.characters, None if self._key is None else self._key.characters_per_month)


def _check_quota(characters: int, limit: int | None) -> None:
    if limit is not None and characters > limit:
        raise _quota_exceeded(limit)


def _quota_exceeded(limit: int) -> QuotaExceeded:
    return QuotaExceeded(
        f"Quota exceeded: {limit} characters per month",
        "It begins anew on the first of the month (UTC); the operator of this server can grant more.",
    )


def _check_rate(bucket: LeakyBucket, cost: int, per_minute: int | None, what: str, now: float) -> None:
    """The sentence is LibreTranslate's, which its clients know."""
    if per_minute is None:
        return
    wait = bucket.wait(cost, per_minute, now)
    if wait > 0:
        raise TooMany(
            f"Slowdown: {per_minute}{what} per 1 minute",
            f"There is room for this request in {wait:.0f} s; the operator of this server can grant more.",
            retry_after=wait,
        )
