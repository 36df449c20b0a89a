"""Pools of a few threads make traces and rank heads, and the inputs of past traces are kept to make them again. The threads run beside the
batches of the engine.

Of a trace its input stays, for its owner, for a while: a sentence and its options. The trace itself is made anew each time, since
its numbers are thousands of times as large.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from limelight.errors import DeadlineError, LengthError, ScoreError
from limelight.serving.desk.requests import TraceRequest
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import Failed, NotFound, Refusal, TooLarge, TooMany, refusal_of

SECONDS = 3600.0  # an input is kept after it was last asked for
MOST = 4096  # inputs of all callers together
NAMELESS = 4  # times as many are kept for all callers without a name together
MEMORY = 0.8  # of what was measured before, when the next is
Result = TypeVar("Result")


class TooLong(TooLarge):
    """A text has more pieces than the desk takes, or a trace more numbers than one answer holds."""

    code = "too_long"


class DeskPool:
    """The pool lives in the event loop. `open` counts what waits and what runs, also where nobody waits for it any more.

    `what` it does is named in refusals, and takes `seconds` before any has been measured.
    """

    def __init__(self, what: str, at_once: int, waiting: int, seconds: float = 0.5) -> None:
        self.open, self.seconds = 0, seconds
        self._what, self._most, self._at_once = what, at_once + waiting, at_once
        self._pool = ThreadPoolExecutor(at_once, what)

    async def run(self, work: Callable[[], Result], deadline: Deadline) -> Result:
        """Run `work` in a thread. If nobody waits any more, or time is over, before its turn comes, it never begins."""
        if self.open >= self._most:
            wait = self.seconds * self.open / self._at_once
            raise TooMany(f"{self.open} {self._what}s wait already", "try again a little later", retry_after=wait)
        loop, running = asyncio.get_running_loop(), self._pool.submit(self._run_timed, work, deadline)
        self.open += 1
        running.add_done_callback(lambda _: self._release(loop))
        made = asyncio.wrap_future(running)
        made.add_done_callback(_consume_exception)
        try:
            async with asyncio.timeout(deadline.left):
                return await asyncio.shield(made)
        except (TimeoutError, DeadlineError):
            raise deadline.late(f"the {self._what}") from None
        except Refusal:
            raise
        except Exception as error:
            raise self._refusal(error) from error
        finally:
            deadline.end()
            made.cancel()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run_timed(self, work: Callable[[], Result], deadline: Deadline) -> Result:
        if deadline.is_over():
            raise deadline.late(f"the {self._what}")
        begin = time.monotonic()
        result = work()
        self.seconds += (1 - MEMORY) * (time.monotonic() - begin - self.seconds)
        return result

    def _release(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count it out in the thread that did it: `made` is over as soon as nobody waits, and the thread may still be at work then."""

        def one_less() -> None:
            self.open -= 1

        with suppress(RuntimeError):  # the loop is gone, and nobody counts
            loop.call_soon_threadsafe(one_less)

    def _refusal(self, error: Exception) -> Refusal:
        """What a translator objects to is the request's fault; all else is ours."""
        if isinstance(error, LengthError):
            return TooLong(str(error), 'ask for fewer layers, such as "layers": [5], or shorten the text')
        if isinstance(error, ScoreError):
            return Failed(
                "the model's scores are no numbers",
                "try it without interventions; else the weights are at fault: the operator has to look at the model",
            )
        return refusal_of(error, Failed(f"the {self._what} failed", "look into the server's log"))


def _consume_exception(made: "asyncio.Future[Result]") -> None:
    if not made.cancelled():
        made.exception()  # whoever waited has heard of it


@dataclass(frozen=True)
class TraceInput:
    """An input is what was asked for. `before`: the name of the same without interventions."""

    served: ServedModel
    asked: TraceRequest
    before: str
    until: float


def new_name() -> str:
    """Return a name that nobody can guess."""
    return f"t_{secrets.token_urlsafe(18)}"


class TraceInputs:
    """The last of each caller are kept. Those without a name are one caller, and push out each other's; so there are more of theirs."""

    def __init__(self, each: int, now: Callable[[], float] = time.monotonic) -> None:
        self._each, self._now = each, now
        self._kept: dict[str, OrderedDict[str, TraceInput]] = {}

    def keep(self, owner: str, name: str, served: ServedModel, asked: TraceRequest, before: str = "") -> None:
        own = self._kept.setdefault(owner, OrderedDict())
        own[name] = TraceInput(served, asked, before, self._now() + SECONDS)
        if len(own) > self._most(owner):
            own.popitem(last=False)
        self.forget_old()

    def find(self, name: str, owner: str) -> TraceInput:
        """What was asked for last goes last. That somebody else has it is not told."""
        own = self._kept.get(owner, OrderedDict())
        found = own.get(name)
        if found is None or found.until <= self._now():
            raise NotFound(
                "there is no such trace",
                f"the last {self._most(owner)} are known for an hour; POST /api/v1/trace makes it again",
            )
        own[name] = replace(found, until=self._now() + SECONDS)
        own.move_to_end(name)
        return found

    def _most(self, owner: str) -> int:
        return self._each if owner else NAMELESS * self._each

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def forget_old(self) -> None:
        now = self._now()
        for owner, own in list(self._kept.items()):
            for name in [name for name, kept in own.items() if kept.until <= now]:
                del own[name]
            if not own:
                del self._kept[owner]
        while len(self) > MOST:
            most = max(self._kept.values(), key=len)
            most.popitem(last=False)
