"""Stop signals, which are Ctrl-C, SIGTERM and SIGHUP, make a run save and stop at the next step.

A second one stops it at once; the checkpoint before stays valid.
"""

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from types import FrameType
from typing import Final, Literal

Reason = Literal["interrupted", "preempted"]
REASONS: dict[int, Reason] = {signal.SIGINT: "interrupted", signal.SIGTERM: "preempted"}
# SIGHUP comes when the terminal is closed, on Windows SIGBREAK; with nohup neither does.
REASONS |= {getattr(signal, name): "preempted" for name in ("SIGHUP", "SIGBREAK") if hasattr(signal, name)}
ECHO: Final = 0.5


class Stopped(KeyboardInterrupt):
    """`Stopped` is raised where waiting for the next step would take too long, and by the second signal."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Stop:
    """`asked` says why the run should stop. While `at_once`, a signal raises `Stopped` in the place where it comes."""

    asked: Reason | None = None
    at_once: bool = True
    echo: float = 0.0  # seconds after the first in which another one is the same
    first: float = -math.inf
    again: bool = False  # a second one came: nothing is waited for any more

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() - self.first < self.echo:
            return
        self.again, self.asked = self.asked is not None, REASONS[number]
        self.first = self.first if self.again else time.monotonic()
        if self.at_once or self.again:
            raise Stopped(self.asked)

    def raise_if_asked(self) -> None:
        """Where no other process has to agree any more."""
        if self.asked is not None:
            raise Stopped(self.asked)

    @contextmanager
    def listening(self) -> Iterator["Stop"]:
        """Only in the main thread: Python hears signals nowhere else."""
        # Schedulers may signal each process, and launchers pass on what they hear: one of several hears of the same order twice.
        self.echo = ECHO if int(os.environ.get("WORLD_SIZE", "1")) > 1 else 0.0
        heard = [number for number in REASONS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._handle_signal) for number in heard}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @staticmethod
    @contextmanager
    def shield_children() -> Iterator[None]:
        """Processes that begin inside hear none of them, not even while they load what they need to say so themselves."""
        if not hasattr(signal, "pthread_sigmask"):  # on Windows nothing holds a signal back: they hear it until they say otherwise
            yield
            return
        resource_tracker.ensure_running()  # beginning later, with the first child, it would unblock them
        before = signal.pthread_sigmask(signal.SIG_BLOCK, REASONS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def waiting_for_step(self) -> AbstractContextManager[None]:
        """Inside, the first signal is only noted."""
        return self._raising(False)

    def not_waiting(self) -> AbstractContextManager[None]:
        """Within `waiting_for_step`: here a signal raises all the same. Who catches it does so outside of this, and misses none."""
        return self._raising(True)

    @contextmanager
    def _raising(self, at_once: bool) -> Iterator[None]:
        self.at_once = at_once
        try:
            yield
        finally:
            self.at_once = not at_once
