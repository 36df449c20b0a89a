"""A screen shows the progress of a verb: bars on a terminal, plain lines in a pipe, nothing beside JSON."""

import math
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import TaskID

    from limelight.corpus.exchange.engine import Progress as CorpusProgress

PLAIN_EVERY = 5.0  # seconds between lines of progress in a pipe or a log file


class Screen:
    """A screen is used as a context; `step` moves the bar of a named step."""

    def __init__(self, plain: bool = False, quiet: bool = False) -> None:
        # Rich is loaded where something is shown.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.console = Console(stderr=True, highlight=False)
        self.fancy = self.console.is_terminal and not plain and not quiet
        self.quiet = quiet
        self._bars = Progress(
            TextColumn("[bold]{task.description:<10}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[note]}"),
            console=self.console,
            disable=not self.fancy,
        )
        self._tasks: dict[str, TaskID] = {}
        self._began: dict[str, float] = {}
        self._said: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bars.stop()

    def step(self, name: str, done: float, total: float, note: str = "") -> None:
        if self.fancy:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=total, note=note)
            self._bars.update(self._tasks[name], completed=done, total=total, note=note)
        elif not self.quiet:
            self._plain_step(name, done, total, note)

    def show(self, progress: "CorpusProgress") -> None:
        note = f"{group_digits(progress.pairs)} pairs" if progress.pairs else ""
        self.step(progress.step, progress.done, progress.total, note)

    def _plain_step(self, name: str, done: float, total: float, note: str) -> None:
        """A line when a step ends, and every few seconds while it lasts."""
        now = time.monotonic()
        began = self._began.setdefault(name, now)
        ended, said = done >= total, self._said.get(name, began)  # infinity once its end was said
        if said == math.inf or (not ended and now - said < PLAIN_EVERY):
            return
        self._said[name] = math.inf if ended else now
        passed = now - began
        left = "" if ended or not done else f", about {clock(passed * (total - done) / done)} left"
        sys.stderr.write(f"{name}: {100 * done / max(total, 1e-9):.0f} % after {clock(passed)}{left}{', ' + note if note else ''}\n")
        sys.stderr.flush()


def open_closed_streams() -> None:
    """Whoever closes a stream, as with `>&-`, wants nothing of it. Python has None there, and the next file opened would be the stream;
    `translate` alone refuses, since it would lose what it is asked for."""
    if sys.stdout is None and sys.argv[1:2] != ["translate"]:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8", newline="\n")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8", newline="\n")  # noqa: SIM115


def drop_output() -> None:
    """What is left in the buffer of standard output must not be tried again, with an error of its own, when the interpreter ends."""
    if sys.stdout is not None:
        with suppress(OSError):  # a stream in memory has no descriptor
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def clock(seconds: float) -> str:
    """clock(75) -> "1:15"; clock(3675) -> "1:01:15"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def group_digits(number: int) -> str:
    """group_digits(166241) -> "166 241", which no language reads as a decimal."""
    return f"{number:,}".replace(",", " ")
