"""An event waiter lets a supervisor sleep until a signal comes, a rank ends, or a rank writes something."""

import os
import selectors
import signal
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Self

from limelight.training.processes.rank_process import Rank
from limelight.training.processes.stop_signals import REASONS


class EventWaiter:
    """A waiter is a context, in the main thread: Python hears signals nowhere else. `heard` grows by each signal that asks to stop."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        # What is ignored stays so: SIGHUP under nohup, SIGINT in the background of a script. The ranks inherit it.
        numbers = [number for number in REASONS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._hear) for number in numbers}
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, _wake)
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._fd_before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._selector.register(self._reading, selectors.EVENT_READ)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        signal.set_wakeup_fd(self._fd_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._selector.close()
        os.close(self._reading)
        os.close(self._writing)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.heard.append(number)

    def listen_to(self, ranks: Sequence[Rank]) -> None:
        for rank in ranks:
            if rank.said is not None:
                self._selector.register(rank.said, selectors.EVENT_READ, rank)

    def until(self, seconds: float | None) -> None:
        """Waits until something happens or the seconds have passed."""
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, Rank):
                if not key.data.listen():
                    self._selector.unregister(key.fileobj)
            else:
                self._drain()

    def forget(self, ranks: Sequence[Rank]) -> None:
        for rank in ranks:
            if rank.said is not None and rank.said in self._selector.get_map():
                self._selector.unregister(rank.said)

    def _drain(self) -> None:
        try:
            while os.read(self._reading, 512):
                pass
        except BlockingIOError:
            return


def _wake(number: int, frame: FrameType | None) -> None:
    """A child ended, which is looked at elsewhere; with the default handler it would wake nobody."""
