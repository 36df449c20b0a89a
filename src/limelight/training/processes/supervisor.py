"""A supervisor starts the ranks of a run on one machine, passes signals on, and restarts them when one dies.

| a rank                          | then                                                                                  |
| ------------------------------- | ------------------------------------------------------------------------------------- |
| the main one ends with 0        | the run is done; the others have a minute to end                                       |
| ends with one of FINAL          | so does the run: the same would happen again                                           |
| ends with 75 or 130             | it was told to stop, and so does the run                                               |
| ends with 70 and has diverged   | so does the run: the same steps would diverge again, bit for bit                       |
| ends in any other way           | the others are ended, and all go on from the last checkpoint, as often as `restarts`;  |
|                                 | this is counted anew whenever there is a new checkpoint since                          |

A signal to the supervisor is passed on to every rank; they save and end with 75 or 130, and so does it. The second ends them at once.
However it comes, no process of the run is left when `supervise` returns, and if the supervisor is killed its ranks end with it.
"""

import json
import re
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from limelight.training.processes.rank_process import LOOPBACK, EventWaiter, Rank, environment
from limelight.training.processes.stop_signals import REASONS
from limelight.training.run_folder import CHECKPOINTS, DAMAGED, FACTS, METRICS, State, read_status, write_status

STOPPED: Final[dict[int, State]] = {75: "preempted", 130: "interrupted"}
FINAL: Final = (2, 65, 66, 69, 74)  # usage, data, model file, device, disk
FAILED: Final = 70
LAST_OF_METRICS: Final = 1 << 16  # bytes in which its last step is looked for

Meet = Callable[[socket.socket, int], object]


@dataclass(frozen=True)
class Patience:
    """Patience is given in seconds."""

    shutdown: float = 10.0  # between SIGTERM and SIGKILL, and for the others once one has ended
    settle: float = 5.0  # for ranks that lose another one to say so and end by themselves
    linger: float = 60.0  # for the other ranks, when the main one is done
    saving: float = 600.0  # for all ranks to save and end after a signal; a scheduler waits much shorter


PATIENCE = Patience()


def supervise(
    command: Sequence[str],
    nproc: int,
    run: Path,
    meet: Meet,
    tell: Callable[[str], None],
    restarts: int = 3,
    patience: Patience = PATIENCE,
) -> int:
    """Return the exit code of the run. `meet` opens the store for `nproc` ranks on a socket that listens; `tell` is given whole lines."""
    reached, left = find_saved_step(run), restarts
    with EventWaiter() as waiting:
        for attempt in count():
            trial = Trial(command, nproc, attempt, meet, waiting, patience)
            trial.go()
            code = trial.code(run)
            if code is not None or waiting.heard:
                for line in trial.words_of_the_failed(code):
                    tell(line)
                return _record_end(run, code if code is not None else trial.stop_code)
            saved = find_saved_step(run)
            reached, left = max(reached, saved), restarts if saved > reached else left
            for line in (*trial.words_of_the_failed(None), trial.why(run) + _what_now(saved, left, restarts)):
                tell(line)
            if left == 0:
                return _record_end(run, FAILED)
            left -= 1
    raise AssertionError("attempts have no end")


def _what_now(saved: int, left: int, restarts: int) -> str:
    there = f"go on from step {saved:,}" if saved else "begin again, nothing was saved yet"
    if left:
        return f"; all ranks are started again and {there} (restart {restarts - left + 1} of {restarts})"
    again = f"; it was started again {restarts} times since then" if restarts else ""
    return f"{again}; with the same command they {there}"


class Trial:
    def __init__(self, command: Sequence[str], nproc: int, attempt: int, meet: Meet, waiting: EventWaiter, patience: Patience) -> None:
        self.command, self.nproc, self.attempt, self.meet = command, nproc, attempt, meet
        self.waiting, self.patience = waiting, patience
        self.passed = 0  # signals that the ranks were told
        self.ranks: list[Rank] = []
        self.ended: list[Rank] = []  # by themselves, in this order
        self.stuck: list[Rank] = []  # those that were stopped when the others were given up
        self._since: dict[str, float] = {}  # when a reason to wait no longer came up

    def go(self) -> None:
        with socket.create_server((LOOPBACK, 0), backlog=self.nproc * 4) as listening:
            port = listening.getsockname()[1]
            store = self.meet(listening, self.nproc)
            try:
                for number in range(self.nproc):
                    variables = environment(number, self.nproc, port, self.attempt)
                    self.ranks.append(Rank(number, self.command, variables))
                self.waiting.listen_to(self.ranks)
                self._watch()
            finally:
                self._end_all()
                del store  # it listens no more

    def _watch(self) -> None:
        while len(self.ended) < self.nproc:
            self._pass_on()
            self.ended += [rank for rank in self.ranks if rank not in self.ended and rank.look() is not None]
            limit = self._limit()
            if limit is not None and time.monotonic() >= limit:
                return
            if len(self.ended) < self.nproc:
                self.waiting.until(None if limit is None else max(0.0, limit - time.monotonic()))

    def _pass_on(self) -> None:
        for number in self.waiting.heard[self.passed :]:
            self.passed += 1
            for rank in self.ranks:
                rank.send(number)

    def _limit(self) -> float | None:
        codes = [rank.code for rank in self.ended]
        failed = any(code not in (0, *STOPPED) for code in codes)
        heard = len(self.waiting.heard)
        frozen = failed and all(rank.stopped for rank in self.ranks if rank.running)  # nobody is left to say anything
        main = self.ranks[0].code
        patience, now = self.patience, time.monotonic()
        reasons = [
            ("frozen", frozen, 0.0),
            ("failed", failed, patience.shutdown if heard else patience.settle),
            ("done", main == 0, patience.linger),
            ("stopped", main in STOPPED, patience.shutdown),
            ("told", heard > 0, patience.saving),
            ("told twice", heard > 1, patience.shutdown),
            ("told three times", heard > 2, 0.0),
        ]
        for name, holds, _ in reasons:
            if holds:
                self._since.setdefault(name, now)
        return min((self._since[name] + seconds for name, holds, seconds in reasons if holds), default=None)

    def _end_all(self) -> None:
        """SIGTERM, and SIGKILL to those that are stopped or need too long. Those that were told to stop have had their time."""
        self.stuck = [rank for rank in self.ranks if rank.stopped]
        until = time.monotonic() + (0.0 if self.waiting.heard else self.patience.shutdown)
        for rank in self.ranks:
            rank.kill() if rank.stopped else rank.send(signal.SIGTERM)
        while self._some_run() and time.monotonic() < until and not self.waiting.heard:
            self.waiting.until(until - time.monotonic())
        while self._some_run():
            for rank in self.ranks:
                rank.kill()
            self.waiting.until(0.1)
        self.waiting.forget(self.ranks)
        for rank in self.ranks:
            rank.close()

    def _some_run(self) -> bool:
        return None in [rank.look() for rank in self.ranks]

    @property
    def stop_code(self) -> int:
        """The exit code after a signal. The first one says why."""
        return next(code for code, state in STOPPED.items() if state == REASONS[self.waiting.heard[0]])

    def code(self, run: Path) -> int | None:
        """What the run returns; None: it may be tried again."""
        codes = [rank.code for rank in self.ended]
        main = self.ranks[0].code if self.ranks[0] in self.ended else None
        final = [code for code in codes if code in FINAL]
        if final:
            return final[0]
        if main == 0:
            return 0
        if FAILED in codes and read_status(run).get("state") == "diverged":
            return FAILED
        if self.waiting.heard:
            return self.stop_code
        return next((code for code in codes if code in STOPPED), None)

    def why(self, run: Path) -> str:
        """Which rank is to blame: one that was stopped, else one that a signal ended, else the first that ended."""
        by_signal = [rank for rank in self.ended if rank.code is not None and rank.code < 0]
        blamed = by_signal[:1] or self.ended[:1]
        stuck = [f"rank {rank.number} was stopped and did not answer" for rank in self.stuck]
        step = find_last_step(run)
        when = f"after step {step:,}" if step else "before the first step"
        return f"{', '.join([*stuck, *(rank.how for rank in blamed)])} {when}"

    def words_of_the_failed(self, code: int | None) -> list[str]:
        """The end of what the first rank said that failed, unless the main one failed in the same way: it has said so itself."""
        failed = [rank for rank in self.ended if rank.code not in (0, *STOPPED) and code not in (0, *STOPPED)]
        if not failed or failed[0].number == 0 or failed[0].code == self.ranks[0].code:
            return []
        return [f"rank {failed[0].number}: {line}" for line in failed[0].last_lines]


def find_saved_step(run: Path) -> int:
    try:
        names = [path.name for path in (run / CHECKPOINTS).iterdir()]
    except OSError:
        return 0
    return max((int(match[1]) for name in names if (match := re.fullmatch(r"step-(\d+)", name))), default=0)


def find_last_step(run: Path) -> int:
    """The last that was taken, as far as it was written down."""
    try:
        with (run / METRICS).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - LAST_OF_METRICS))
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return 0
    for line in reversed(lines):
        with suppress(*DAMAGED):
            return int(json.loads(line)["step"])
    return 0


def _record_end(run: Path, code: int) -> int:
    """A rank that was killed could not say how the run ended. Where there is no run yet, nothing is left behind that looks like one."""
    state: State | None = STOPPED.get(code, "failed" if code == FAILED else None)
    status = read_status(run)
    said = ("diverged",) if code == FAILED else ()
    if state is not None and (run / FACTS).exists() and status.get("state") not in (state, *said):
        with suppress(OSError):
            write_status(run, state, find_saved_step(run), int(status.get("steps", 0)))
    return code
