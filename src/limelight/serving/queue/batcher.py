"""A batcher sends sentences of many requests through one engine, and refuses what would wait too long.

As many batches run at a time as the engines have workers. A batch goes when it is full; a busy server waits a few milliseconds for company
before it sends one that is not, an idle one does not. Nothing is queued inside the engine, where it could not be taken back.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from limelight.errors import DeadlineError
from limelight.serving.queue.fair_queue import FairQueue, QueuedSentence, RequestSentences
from limelight.serving.queue.observer import BatchReport, ServiceObserver
from limelight.serving.queue.work import BatchKind, QueuedRequest, Unfinished
from limelight.serving.refusals import Busy, Failed, TooLarge, refusal_of
from limelight.serving.settings import QueueSettings
from limelight.translator.searching import LEAST_PIECES

ROWS = 256  # of a batch
BATCH_SECONDS = 1.5  # that a batch may take
MEMORY = 0.8  # of the speed so far, for each second that an engine has worked since
PRIOR = 0.05  # seconds
STRANGE = 5.0  # times as long as expected
FULL = 0.5  # of the room of a batch: below it a batch says little about how fast full ones are


class RequestBatcher:
    """Everything but `BatchKind.run` happens in the event loop; no locks are needed. `speed`: pieces a second of a worker, to begin with.

    `slower` does what is unfinished, in its own time: the batches here do not wait for it.
    """

    def __init__(
        self,
        workers: int,
        speed: float,
        settings: QueueSettings,
        watching: ServiceObserver,
        slower: "RequestBatcher | None" = None,
        stage: str = "wait",
    ) -> None:
        self.workers, self.settings, self.watching = workers, settings, watching
        self.slower, self.stage = slower, stage
        self.queue = FairQueue()
        self.jobs: dict[RequestSentences, QueuedRequest] = {}
        self._pool = ThreadPoolExecutor(workers, "engine")
        # Of batches that failed: each by itself tells which of them it was.
        self._alone: deque[QueuedSentence] = deque()
        self._running = 0
        self._under_way = 0  # pieces that engines work on
        self._last_end = float("-inf")
        self._lag = 0.0  # seconds that the event loop is behind: what is done waits so long to be told, and what comes to be read
        self._timer: asyncio.TimerHandle | None = None
        # Decaying sums of what engines did in full batches. What was measured while loading counts little.
        self._pieces, self._seconds = speed * PRIOR, PRIOR

    @property
    def speed(self) -> float:
        """Source pieces a second, of all workers together."""
        return self.workers * self._pieces / self._seconds

    @property
    def backlog(self) -> float:
        """Seconds of work that wait, whoever's they are."""
        here = (self.queue.pieces + self._under_way / 2) / self.speed
        return here if self.slower is None else here + self.slower.backlog

    @property
    def crowded(self) -> bool:
        """Does anything wait?"""
        return len(self.queue) > 0 or (self.slower is not None and self.slower.crowded)

    def wait_for(self, pieces: int, flow: Hashable, further: bool = False) -> float:
        """Seconds until a flow's next sentence begins at the latest, with `pieces` new ones of its own before it, as far as one can tell.
        One that does not go with its like waits for a batch more. `further`: it may not be finished here, so the slower queue counts."""
        before = self.queue.ahead(pieces, flow) + self._under_way / 2
        unlike = min(before, self._batch_pieces()) if len(self.queue) else 0
        here = (before + unlike) / self.speed + 2 * self._faded_lag()
        return here + self.slower.wait_for(0, flow) if further and self.slower is not None else here

    def _faded_lag(self) -> float:
        return float(self._lag * MEMORY ** (time.monotonic() - self._last_end))  # an idle server does not lag for long

    def submit(
        self,
        kind: BatchKind,
        payloads: Sequence[Any],
        pieces: Sequence[int],
        flow: Hashable | None,
        told: Callable[[int, Any], None] | None = None,
        admitted: bool = False,
        further: bool = False,
    ) -> QueuedRequest:
        """Put it into the queue, or refuse it. `admitted`: part of something that was let in before. `further`: as for `wait_for`."""
        request = RequestSentences(kind, flow)
        request.flow = request if flow is None else flow
        job = QueuedRequest(request, asyncio.get_running_loop().create_future(), [None] * len(payloads), told=told)
        job.left = len(payloads)
        if not payloads:
            job.done.set_result([])
            return job
        if not admitted:
            self._refuse_or_let_in(pieces, request.flow, further)
        self.jobs[request] = job
        self.queue.put(request, payloads, pieces, job.arrived)
        self._pump()
        return job

    def leave(self, job: QueuedRequest) -> None:
        """Nobody waits any more: what has not begun never will."""
        self.queue.leave(job.request)
        self.jobs.pop(job.request, None)
        if self.slower is not None:
            for further in job.further:
                self.slower.leave(further)
        if not job.done.done():
            job.done.cancel()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.slower is not None:
            self.slower.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def refuse_when_full(self, flow: Hashable, further: bool = False) -> None:
        """What nobody has time for is not even cut into sentences."""
        begins = self.wait_for(0, flow, further)
        if len(self.jobs) >= self.settings.requests:
            raise Busy("too many requests wait already", "try again a little later", retry_after=begins)
        if self.crowded and begins > self.settings.wait_seconds:
            late = begins - self.settings.wait_seconds
            raise Busy(f"the queue is {begins:.1f} s long", "try again a little later", retry_after=late)

    def _refuse_or_let_in(self, pieces: Sequence[int], flow: Hashable, further: bool) -> None:
        """Decide by the server's own bounds: a request that was given less time is told when that is over."""
        timeout, total = self.settings.timeout_seconds, sum(pieces)
        alone = total / self.speed
        # The estimate may be wrong, and only work puts it right: an idle server tries what it could do if it were.
        if alone > (timeout if self.jobs else STRANGE * timeout):
            raise TooLarge(
                f"this would take about {alone:.0f} s, and a request may take {timeout:g} s",
                "send fewer or shorter texts at a time, or translate files with limelight translate",
            )
        self.refuse_when_full(flow, further)
        ends = self.wait_for(total - pieces[-1], flow, further) + pieces[-1] / self.speed
        if ends > timeout:
            raise Busy(f"with what waits already this would take {ends:.0f} s", "try again later", retry_after=ends - timeout)

    def _pump(self) -> None:
        """Send what can go now; else look again when the wait for company is over."""
        while self._running < self.workers and self._alone:
            item = self._alone.popleft()
            if item.request in self.jobs:
                self._send([item], LEAST_PIECES)
        while self._running < self.workers and len(self.queue):
            wait = self._patience()
            if wait > 0:
                if self._timer is None:
                    self._timer = asyncio.get_running_loop().call_later(wait, self._timer_over)
                return
            free = self.workers - self._running
            biggest = self._batch_pieces()
            room = min(biggest, max(LEAST_PIECES, -(-self.queue.pieces // free)))
            items = self.queue.take(room, ROWS)
            if not items:
                return
            self._send(items, biggest)

    def _timer_over(self) -> None:
        self._timer = None
        self._pump()

    def _patience(self) -> float:
        """Seconds to wait for company. None for a full batch, nor when nobody else has been here lately."""
        now, window = time.monotonic(), self.settings.window_ms / 1000
        oldest = self.queue.oldest
        if oldest is None or self.queue.pieces >= self._batch_pieces():
            return 0.0
        if not self._running and now - self._last_end > window:
            return 0.0
        return oldest + window - now

    def _batch_pieces(self) -> int:
        """What the engine is fastest with, but no more than it does in `BATCH_SECONDS`: whoever was let in waits for a whole batch."""
        if self.settings.batch_pieces is not None:
            return self.settings.batch_pieces
        fastest = max((job.request.kind.batch_pieces for job in self.jobs.values()), default=512)  # type: ignore[attr-defined]
        return min(fastest, max(LEAST_PIECES, int(BATCH_SECONDS * self.speed / self.workers)))

    def _send(self, items: list[QueuedSentence], room: int) -> None:
        now = time.monotonic()
        for item in items:
            job = self.jobs[item.request]
            if job.begun is None:
                job.begun = now
                self.watching.stage(self.stage, now - job.arrived)
        self._running += 1
        self._under_way += sum(item.pieces for item in items)
        kind: Any = items[0].request.kind
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._pool, _run_timed, kind, [item.payload for item in items])
        work.add_done_callback(lambda done: self._finish_batch(kind, items, room, done))

    def _finish_batch(
        self,
        kind: BatchKind,
        items: list[QueuedSentence],
        room: int,
        work: "asyncio.Future[tuple[float, float, list[Any]]]",
    ) -> None:
        pieces = sum(item.pieces for item in items)
        self._running -= 1
        self._under_way -= pieces
        self._lag, self._last_end = self._faded_lag(), time.monotonic()
        if work.cancelled():
            return
        error = work.exception()
        if error is None:
            seconds, ended, results = work.result()
            late = self._last_end - ended
            self._lag = max(late, MEMORY * self._lag)
            fill = min(1.0, len(items) * max(item.pieces for item in items) / room)
            ended = any(item.request.gone for item in items) or any(isinstance(r, DeadlineError) for r in results)
            self._update_speed(pieces, fill, seconds + late, ended)  # the worker stood still until it was noticed
            self.watching.batch(BatchReport(kind.model, len(items), pieces, fill, seconds))
            for item, result in zip(items, results, strict=True):
                self._give(item, result)
        elif len(items) > 1:
            self._alone.extend(items)
        else:
            self._fail(items[0].request, error)
        self._pump()

    def _update_speed(self, pieces: int, fill: float, seconds: float, ended: bool = False) -> None:
        """`ended`: some of it was not done, since nobody waited any more. Then it would have taken longer, and tells only of slowness."""
        if ended and pieces * self._seconds > self._pieces * seconds:
            return
        # A batch that is not full says little, unless more waited meanwhile, or it was faster all the same.
        if fill < FULL and not self.queue.pieces and pieces * self._seconds < self._pieces * seconds:
            return
        # A machine that stood still for a minute is not a slow machine: no batch counts for more than five of its kind.
        seconds = min(seconds, STRANGE * pieces * self._seconds / self._pieces)
        fades = MEMORY**seconds
        self._pieces, self._seconds = self._pieces * fades + pieces, self._seconds * fades + seconds

    def _give(self, item: QueuedSentence, result: Any) -> None:
        job = self.jobs.get(item.request)
        if job is None:
            return
        if isinstance(result, Unfinished):
            self._go_on(job, item, result)
            return
        if isinstance(result, DeadlineError):
            self._fail(item.request, result)
            return
        job.results[item.place] = result
        job.left -= 1
        if job.told is not None:
            job.told(item.place, result)
        if not job.left:
            del self.jobs[item.request]
            if not job.done.done():
                job.done.set_result(job.results)

    def _go_on(self, job: QueuedRequest, item: QueuedSentence, rest: Unfinished) -> None:
        assert self.slower is not None
        further = self.slower.submit(rest.kind, [rest.payload], [item.pieces], item.request.flow, admitted=True)
        job.further.append(further)

        def completed(done: "asyncio.Future[list[Any]]") -> None:
            if done.cancelled():
                return
            if (error := done.exception()) is not None:
                self._fail(item.request, error)
            else:
                self._give(item, done.result()[0])

        further.done.add_done_callback(completed)

    def _fail(self, request: RequestSentences, error: BaseException) -> None:
        job = self.jobs.pop(request, None)
        if job is None:
            return
        if not job.done.done():
            # That time is over is told by whoever gave it.
            known = isinstance(error, DeadlineError)
            failed = Failed("the engine failed", "look into the server's log")
            job.done.set_exception(error if known else refusal_of(error, failed))
        self.leave(job)


def _run_timed(kind: BatchKind, payloads: Sequence[Any]) -> tuple[float, float, list[Any]]:
    begin = time.monotonic()
    results = kind.run(payloads)
    end = time.monotonic()
    return end - begin, end, results
