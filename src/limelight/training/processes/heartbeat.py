"""A heartbeat tells about once a second what each process does, so that a lost process is found and named.

gloo and NCCL would wait for half an hour and then name nobody. Here two threads watch beside the work. One speaks and listens through a
store client of its own (the store that torchrun, a launcher or rank 0 keeps); a store that is frozen or cut off never answers, and no
timeout of its client is kept then. So the other thread only looks at the clock, and ends the process when `patience` is over.

So that the store can serve a thousand processes, only the main one reads what all say (one request), decides who is lost
(`processes.lost_ranks`) and leaves its verdict in the store. The others read its word and the verdict. So they find the main process
lost themselves, and each finds the store lost. A process that was stopped and goes on, as when a whole job is suspended, does not count
the time in between.
"""

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Any, Final, Self

import torch
import torch.distributed as dist

from limelight.training.processes.lost_ranks import ENDED, LEFT_ALONE, NOT_HEARD, LostRankDetector, RankStatus

logger = logging.getLogger(__name__)

PATIENCE: Final = "LIMELIGHT_PATIENCE"  # seconds; stands above what the recipe says
LOST: Final = 70
VERDICT: Final = "verdict"
FEW: Final = 64  # processes that may all read what all say, once, when a collective broke


class Heartbeat:
    def __init__(
        self,
        rank: int,
        size: int,
        patience: float,
        address: tuple[str, int],
        start: str = "",
        leave: Callable[[int], None] = os._exit,
    ) -> None:
        """`start` tells this start of the processes from others that used the same store."""
        self.rank, self.size = rank, size
        self._patience, self._address, self._start, self._leave = patience, address, start, leave
        self._host = socket.gethostname()
        self._count, self._place = 0, (0, 0)
        self._over: str | None = None
        self._frozen, self._ran = 0.0, time.monotonic()  # seconds that this process did not run; when it surely did
        self._waking = threading.Lock()
        self._doing = ("start", 0, False, self._place, self._now())
        self._heard, self._answered = LostRankDetector(), self._now()
        self._verdict: list[str] = []
        self._told = threading.Event()  # the verdict is in the store
        self._ends = threading.Event()
        self._curious = rank == 0  # reads what all say
        self._worker, self._begun = 0, False
        self._broke_at = ""  # where the collective failed, once one has
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._converse, self._watch)]

    @classmethod
    def of_environment(cls, rank: int, size: int, patience: float) -> "Heartbeat":
        """After the processes have met: they agree here on a number for this start."""
        number = torch.tensor([time.time_ns()])
        dist.broadcast(number, 0)
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        return cls(rank, size, patience, address, str(int(number)))

    @property
    def patience(self) -> float:
        """Seconds that a process may be silent, or in a phase that is not a long one. May be changed at any time."""
        fixed = os.environ.get(PATIENCE)
        return float(fixed) if fixed else self._patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self._patience = seconds

    @property
    def beat(self) -> float:
        """Seconds between two words: a tenth of the patience, at most one; more where there are thousands of processes."""
        return min(1.0, max(0.1, self.patience / 10)) * max(1.0, self.size / 1024)

    def phase(self, name: str, step: int, long: bool) -> None:
        """What the process begins to do. All processes say the same phases in the same order. `long`: it may take any time."""
        at, turn = self._place
        self._place = (step, 0) if step > at else (at, turn + 1)
        self._doing = (name, step, long, self._place, self._now())

    def __enter__(self) -> Self:
        self._worker = threading.get_ident()
        self._ran = time.monotonic()
        self._answered = self._now()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """A process that fails tells the others why; one in which a collective broke tells who is not there any more."""
        if error is None:
            self._over = ENDED
        elif not is_collective_error(error):
            self._over = f"{type(error).__name__}: {str(error)[:300]}"
        else:
            self._over, self._broke_at = LEFT_ALONE, _innermost(trace)
            self._curious = self.rank == 0 or self.size <= FEW
            time.sleep(3.5 * self.beat)
            for sentence in (*self._heard.find_failed(), *self._heard.find_silent(self._now(), 2.5 * self.beat)):
                logger.error("%s", sentence)
        self._ends.set()
        self._threads[0].join(2 * self.beat)  # its last word; if the store is gone, there is nobody to hear it
        if error is not None and self.rank == 0 and not _agent_keeps_store():
            time.sleep(1.5 * self.beat)  # the word would be gone with this process, before the others have read it

    def _now(self) -> float:
        return time.monotonic() - self._frozen

    def _was_suspended(self) -> bool:
        """Did this process not run for a while, as when all are suspended? Both threads ask, whichever wakes first."""
        with self._waking:
            passed, self._ran = time.monotonic() - self._ran, time.monotonic()
            froze = passed > 3 * self.beat + 1
            self._frozen += passed if froze else 0.0
        return froze

    def _word(self) -> RankStatus:
        self._was_suspended()
        name, step, long, place, since = self._doing
        age = self._now() - since
        where, waits = _locate(self._worker) if age > 2 * self.beat and self._worker else ("", False)
        where = self._broke_at or where
        self._count += 1
        return RankStatus(self._host, self._count, name, step, place, long, round(age, 1), where, waits, self._over)

    def _converse(self) -> None:
        """The thread that speaks to the store. It may block for ever in there; `_watch` does not."""
        try:
            store = self._connect()
            ends = False
            while not ends:
                self._exchange(store)
                ends = self._ends.wait(self.beat)
            self._exchange(store)
        except RuntimeError as error:  # the store is gone; `_watch` gives it as long as anybody else
            logger.debug("the store does not answer: %s", error)

    def _connect(self) -> Any:
        host, port = self._address
        limit = timedelta(seconds=max(self.patience, 30.0))  # as long as the store may be slow to begin with
        client = dist.TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=limit)  # type: ignore[attr-defined]
        store: Any = dist.PrefixStore(f"limelight/vigil/{self._start}", client)  # type: ignore[attr-defined]
        if self.rank == 0:  # a key that is absent would be waited for
            for rank in range(self.size):
                store.compare_set(str(rank), "", NOT_HEARD.decode())
            store.set(VERDICT, "[]")
        return store

    def _exchange(self, store: Any) -> None:
        own = self._word()
        store.set(str(self.rank), own.pack().decode())
        if self.rank == 0 and self._verdict:
            store.set(VERDICT, json.dumps(self._verdict))
            self._told.set()
        ranks = list(range(self.size)) if self._curious else [0]
        keys = [VERDICT, *map(str, ranks)]
        self._begun = self._begun or store.check(keys)
        if not self._begun:  # the main process has not
            self._answered = self._now()
            return
        verdict, *words = store.multi_get(keys)
        now = self._answered = self._now()
        for rank, word in zip(ranks, words, strict=True):
            self._heard.record(rank, own if rank == self.rank else RankStatus.of(word), now)
        if self.rank != 0:
            self._verdict = json.loads(verdict)

    def _watch(self) -> None:
        """The thread that looks at the clock, and depends on nobody."""
        while not self._ends.wait(self.beat / 2):
            if self._was_suspended():
                continue
            now = self._now()
            find_others = self._heard.find_lost if self.rank == 0 else self._heard.find_silent
            lost = self._verdict or self._store_lost(now) or find_others(now, self.patience)
            if lost and not self._ends.is_set():
                self._end(lost)

    def _store_lost(self, now: float) -> list[str]:
        silence = now - self._answered
        if silence <= self.patience:
            return []
        host, port = self._address
        who = "the launcher on the host of rank 0" if _agent_keeps_store() else "rank 0"
        last = self._heard.words.get(0)
        said = f"; the last word of rank 0: {last.doing}" if last else ""
        return [f"{who}, which keeps the store at {host}:{port}, has not answered for {silence:.0f} s{said}"]

    def _end(self, lost: list[str]) -> None:
        """Says who is lost, and ends this process: the call that waits for the lost one cannot be interrupted otherwise."""
        beat = self.beat
        guard = threading.Timer(5 + 3 * beat, self._leave, [LOST])  # also if whoever reads the log is stuck
        guard.daemon = True
        guard.start()
        own = self._word()
        logger.critical("%s. Rank %d (host %s) was in %s", "; ".join(lost), self.rank, self._host, own.doing)
        if self.rank == 0 and not self._verdict:
            self._verdict = lost
            if self._told.wait(2 * beat):
                time.sleep(1.5 * beat)  # until the others have read it: the store may end with this process
        for handler in (*logger.handlers, *logging.getLogger().handlers):
            handler.flush()
        sys.stdout.flush()
        sys.stderr.flush()
        guard.cancel()
        self._leave(LOST)


def _agent_keeps_store() -> bool:
    """torchrun and our own launcher keep the store beside rank 0; otherwise rank 0 does."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def is_collective_error(error: BaseException) -> bool:
    """Did a collective fail, and so the reason lie elsewhere? gloo raises a plain RuntimeError."""
    return isinstance(error, RuntimeError) and any(name in str(error) for name in ("gloo", "NCCL", "ProcessGroup"))


def _locate(thread: int) -> tuple[str, bool]:
    """Where a thread is, and whether it is in a collective: ("all_reduce (distributed_c10d.py:3101)", True)."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return "", False
    path, name = frame.f_code.co_filename, frame.f_code.co_name
    waits = "/torch/distributed/" in path or name == "_engine_run_backward"
    return _format_frame(frame, frame.f_lineno), waits


def _innermost(trace: TracebackType | None) -> str:
    """Where an error was raised, in the same words."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return _format_frame(trace.tb_frame, trace.tb_lineno) if trace else ""


def _format_frame(frame: FrameType, line: int) -> str:
    return f"{frame.f_code.co_name} ({os.path.basename(frame.f_code.co_filename)}:{line})"  # noqa: PTH119
