"""Queued work has a kind that may share a batch, a request that waits for it, and a deadline."""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from limelight.errors import DeadlineError
from limelight.serving.queue.fair_queue import RequestSentences
from limelight.serving.refusals import Late


class Deadline:
    """A deadline ends the time of a request. The thread that works for it asks at every step, so what nobody waits for ends at once.

    with deadline: ...      what leaves by an exception, such as a client that went away, ends it before its time
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self._ends = seconds, time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self._ends - time.monotonic())

    def is_over(self) -> bool:
        return time.monotonic() >= self._ends

    def end(self) -> None:
        self._ends = float("-inf")

    def late(self, what: str = "the answer") -> Late:
        hint = "give it more time (timeout; at most queue.timeout_seconds of the server), or send less at once"
        return Late(f"{what} was not there after {self.seconds:g} s, the time that the request had", hint)

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            self.end()


class BatchKind(Hashable, Protocol):
    """A kind is what sentences have in common that may share a batch."""

    @property
    def model(self) -> str: ...

    @property
    def batch_pieces(self) -> int:
        """Source pieces of a batch with which its engine is fastest."""

    def run(self, payloads: Sequence[Any]) -> list[Any]:
        """One result for each, in order, `Unfinished`, or a `DeadlineError` if its time was over; in a thread of its own."""


@dataclass(frozen=True)
class Unfinished:
    """An unfinished sentence needs more work of another kind, which takes longer. Its result is the result."""

    kind: BatchKind
    payload: Any


@dataclass(eq=False)
class QueuedRequest:
    """The request is on its way. `done` gets the results, one for each payload in order; `told` hears of each as it comes."""

    request: RequestSentences
    done: "asyncio.Future[list[Any]]"
    results: list[Any]
    begun: float | None = None  # when the engine took its first sentence
    left: int = 0
    told: Callable[[int, Any], None] | None = None
    arrived: float = field(default_factory=time.monotonic)
    further: list["QueuedRequest"] = field(default_factory=list)  # for what was unfinished


async def within(job: QueuedRequest, deadline: Deadline) -> list[Any]:
    """Wait for the results, or raise `Late`."""
    try:
        async with asyncio.timeout(deadline.left):
            return await job.done
    except (TimeoutError, DeadlineError):
        raise deadline.late() from None


async def hear_next(told: "asyncio.Queue[tuple[int, Any]]", job: QueuedRequest, deadline: Deadline) -> tuple[int, Any]:
    """The next that is done. A job that failed has nothing more to tell."""
    if not told.empty():
        return told.get_nowait()
    hears: asyncio.Future[Any] = asyncio.ensure_future(told.get())
    try:
        waits: set[asyncio.Future[Any]] = {hears, job.done}
        await asyncio.wait(waits, timeout=deadline.left, return_when=asyncio.FIRST_COMPLETED)
        if hears.done():
            found: tuple[int, Any] = hears.result()
            return found
        if job.done.done() and not isinstance(job.done.exception(), DeadlineError):
            job.done.result()  # raises what went wrong
        raise deadline.late()
    finally:
        hears.cancel()
