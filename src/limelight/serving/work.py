"""Work that is queued: what may share a batch, a request on its way, and how long it is waited for."""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from limelight.serving.queue import Request
from limelight.serving.refusals import Late


class Kind(Hashable, Protocol):
    """What sentences have in common that may share a batch."""

    @property
    def model(self) -> str: ...

    @property
    def batch_pieces(self) -> int:
        """Source pieces of a batch with which its engine is fastest."""

    def run(self, payloads: Sequence[Any]) -> list[Any]:
        """One result for each, in order, or `Unfinished`; in a thread of its own."""


@dataclass(frozen=True)
class Unfinished:
    """Instead of a result: more work of another kind, which takes longer. Its result is the result."""

    kind: Kind
    payload: Any


@dataclass(eq=False)
class Job:
    """A request on its way. `done` gets the results, one for each payload in order; `told` hears of each as it comes."""

    request: Request
    done: "asyncio.Future[list[Any]]"
    results: list[Any]
    begun: float | None = None  # when the engine took its first sentence
    left: int = 0
    told: Callable[[int, Any], None] | None = None
    arrived: float = field(default_factory=time.monotonic)
    further: list["Job"] = field(default_factory=list)  # for what was unfinished


async def within(job: Job, seconds: float) -> list[Any]:
    """The results, or `Late`."""
    try:
        async with asyncio.timeout(seconds):
            return await job.done
    except TimeoutError:
        raise Late(f"the answer was not there after {seconds:g} s", "give it more time, or send less at once") from None
