"""Jobs do work that takes longer than a request may, one at a time in a thread; others wait their turn.

    job = jobs.submit("anna", "en-de", key, work)      work(report) -> result; report(done, total) now and then
    jobs.find(job.id, "anna")                          nobody else finds it, and nobody can guess its name

A job ends when it is done, when its owner says so, or when the server stops; then `report` raises, so it ends at its next sign of life.
What was found is remembered by what was asked for: the same question is answered at once.
"""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from limelight.errors import ConfigError, DataError
from limelight.serving.http.error_dialects import words
from limelight.serving.refusals import BadRequest, Failed, NotFound, Refusal, TooMany

logger = logging.getLogger(__name__)

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
Report = Callable[[int, int], None]
Work = Callable[[Report], Any]
REMEMBERED = 64  # results
OWN = 2  # jobs of a caller that has a name, before they are over: the others want their turn
GUESS = 10.0  # seconds that a job takes, if none has told anything yet
LOOK = 0.25  # seconds between two looks at whether the server stops


class Cancelled(Exception):  # noqa: N818 (nothing is broken)
    """Nobody wants the job any more."""


@dataclass(eq=False)
class DeskJob:
    """A job has made `done` of `total` passes. `error` is a refusal in the words of our own API."""

    owner: str
    model: str
    key: Hashable
    work: Work | None = None  # until it is over
    id: str = field(default_factory=lambda: f"j_{secrets.token_urlsafe(18)}")
    state: JobState = "waiting"
    done: int = 0
    total: int = 0
    result: Any = None
    error: dict[str, Any] | None = None
    unwanted: bool = False  # read by the thread
    began: float | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def over(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    @property
    def seconds_left(self) -> float:
        """As far as one can tell."""
        if self.began is None or not self.done:
            return GUESS
        return (time.monotonic() - self.began) / self.done * (self.total - self.done)

    def as_dict(self) -> dict[str, Any]:
        told = {"job": self.id, "state": self.state, "model": self.model, "done": self.done, "total": self.total}
        return {**told, "result": self.result, **({} if self.error is None else self.error)}


class Jobs:
    """The jobs live in the event loop; `stopping` says whether the server stops."""

    def __init__(self, most: int, stopping: Callable[[], bool]) -> None:
        self._most, self._stopping = most, stopping
        self._jobs: dict[str, DeskJob] = {}
        self._known: OrderedDict[Hashable, Any] = OrderedDict()
        self._pool = ThreadPoolExecutor(1, "job")
        self._busy = False  # the thread is, perhaps with what nobody wants any more

    def submit(self, owner: str, model: str, key: Hashable, work: Work) -> DeskJob:
        """A new job; or one that is over already, where the same was asked before; or the very one that is under way."""
        if key in self._known:
            self._known.move_to_end(key)
            self._make_room(owner)
            return self._add(DeskJob(owner, model, key, state="done", result=self._known[key]))
        for job in self._jobs.values():
            if (job.key, job.owner) == (key, owner) and not job.over:
                return job
        self._check_share(owner)
        self._make_room(owner)
        job = self._add(DeskJob(owner, model, key, work))
        self._begin_next()
        return job

    def find(self, id: str, owner: str) -> DeskJob:
        job = self._jobs.get(id)
        if job is None or job.owner != owner:  # that somebody else has it is not told
            raise NotFound("there is no such job", f"jobs are forgotten when there are more than {self._most}")
        return job

    def drop(self, job: DeskJob) -> None:
        """End a job if it is not over, and forget it."""
        self._jobs.pop(job.id, None)
        self._end(job, "cancelled")

    async def watch(self, job: DeskJob) -> AsyncIterator[dict[str, Any]]:
        """Yield how a job stands, now and whenever that changes; the last time when it is over."""
        while True:
            changed, over = job.changed, job.over  # as they are told, not as they are when somebody asks on
            yield job.as_dict()
            if over:
                return
            while not changed.is_set():
                if self._stopping():
                    self.close()
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), LOOK)

    def close(self) -> None:
        """All that is not over is dropped."""
        for job in self._jobs.values():
            self._end(job, "cancelled")
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin_next(self) -> None:
        """The thread gets one job at a time: what is dropped while it waits leaves nothing behind."""
        waiting = [(job, job.work) for job in self._jobs.values() if job.state == "waiting" and job.work is not None]
        if waiting and not self._busy and not self._stopping():
            self._busy = True
            self._pool.submit(self._run, *waiting[0], asyncio.get_running_loop())

    def _add(self, job: DeskJob) -> DeskJob:
        self._jobs[job.id] = job
        return job

    def _check_share(self, owner: str) -> None:
        own = [job for job in self._jobs.values() if job.owner == owner and not job.over]
        if owner and len(own) >= OWN:
            wait = min(job.seconds_left for job in own)
            raise TooMany(f"{len(own)} jobs of yours are not done yet", "wait for one, or end it", retry_after=wait)

    def _make_room(self, owner: str) -> None:
        """Of what is over the oldest goes, the caller's own first; what is not over stays."""
        if len(self._jobs) < self._most:
            return
        over = [job for job in self._jobs.values() if job.over]
        if not over:
            wait = min(job.seconds_left for job in self._jobs.values())
            raise TooMany(f"{len(self._jobs)} jobs wait or run already", "try again later", retry_after=wait)
        del self._jobs[next((job for job in over if job.owner == owner), over[0]).id]

    def _run(self, job: DeskJob, work: Work, loop: asyncio.AbstractEventLoop) -> None:
        """Run a job in the thread."""

        def report(done: int, total: int) -> None:
            if job.unwanted or self._stopping():
                raise Cancelled
            loop.call_soon_threadsafe(self._progress, job, done, total)

        state: JobState = "done"
        result, error = None, None
        try:
            report(0, 0)
            result = work(report)
        except Cancelled:
            state = "cancelled"
        except Exception as problem:
            state, error = "failed", _describe_error(problem)
        with suppress(RuntimeError):  # the loop is gone, and so is everybody who waits
            loop.call_soon_threadsafe(self._finish, job, state, result, error)

    def _progress(self, job: DeskJob, done: int, total: int) -> None:
        if not job.over:
            job.began = job.began or time.monotonic()
            job.state, job.done, job.total = "running", done, total
            _notify_watchers(job)

    def _finish(self, job: DeskJob, state: JobState, result: Any, error: dict[str, Any] | None) -> None:
        self._busy = False
        self._end(job, state, result, error)
        self._begin_next()

    def _end(self, job: DeskJob, state: JobState, result: Any = None, error: dict[str, Any] | None = None) -> None:
        job.unwanted = True
        if job.over:
            return
        job.state, job.result, job.error, job.work = state, result, error, None
        if state == "done":
            self._known[job.key] = result
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        _notify_watchers(job)


def _notify_watchers(job: DeskJob) -> None:
    """Everybody who waits for the old event wakes; who comes now waits for the next."""
    before, job.changed = job.changed, asyncio.Event()
    before.set()


def _describe_error(problem: Exception) -> dict[str, Any]:
    """A job fails outside of a request, so nobody else writes it down: its kind and place, without its message, which may quote a text."""
    if isinstance(problem, Refusal):
        return words("native", problem)
    if isinstance(problem, ConfigError | DataError):
        return words("native", BadRequest(str(problem)))
    logger.error("a job failed", exc_info=problem)
    return words("native", Failed("the server made a mistake", "look into its log"))
