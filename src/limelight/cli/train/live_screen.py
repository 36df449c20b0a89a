"""The screen of `limelight train` is live on a terminal, and a plain line now and then in a log:

    2026-11-14T21:17:04 step=3450/12000 pct=28.8 loss=3.412 lr=6.1e-04 grad=0.82 pieces_s=5870 pad=0.06 mem_gb=2.3 left=3:14:00

A screen that cannot be written to falls silent, and the run goes on. A terminal that is closed asks the run to save and stop.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from limelight.cli.screen import Screen, group_digits
from limelight.cli.train.live_state import FOREVER, LiveState, harmless, perplexity
from limelight.cli.train.live_view import picture, short
from limelight.planning.shortfall import NOT_ENOUGH
from limelight.training.events import Event, RunNotice, StepReport, ValidReport

if TYPE_CHECKING:
    from limelight.corpus.exchange.engine import Progress

DRAWN_EVERY = 0.25  # seconds
LARGEST_SHARE = 0.005  # of the time may go into drawing; a slow terminal is drawn to less often
LINE_AFTER, LINE_EVERY = 1.0, 30.0  # seconds between plain lines: soon at first, then as they are read
NAME_WIDTH = 12  # of what was chosen


class TrainScreen:
    """The screen is used as a context. `progress` is for what has a bar (preparing, scoring), `watch` for the events of the run."""

    def __init__(
        self,
        plain: bool = False,
        quiet: bool = False,
        name: str = "",
        console: Console | None = None,
        tick: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self.name = name
        self.quiet = quiet
        able = self.console.is_terminal and not self.console.is_dumb_terminal
        self.fancy = able and self.console.encoding.startswith("utf") and not plain and not quiet
        self.seen = LiveState()
        self._tick, self._now = tick, now
        self._bars: Screen | None = None
        self._live: Live | None = None
        self._busy = ""
        self._drawn, self._cost = -math.inf, 0.0
        self._began: float | None = None
        self._said = -math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end_bars()
        self._busy = ""
        self._end_live()  # draws once more: the last picture stays

    def progress(self, progress: "Progress") -> None:
        note = f"{group_digits(progress.pairs)} pairs" if progress.pairs else ""
        if self._live is not None:
            share = progress.done / progress.total if progress.total else 1.0
            self._busy = "" if share >= 1 else " ".join(filter(None, (progress.step, f"{100 * share:.0f} %", note)))
            self._draw()
            return
        if self._bars is None:
            self._bars = Screen(not self.fancy, self.quiet)
            self._bars.__enter__()
        with self._until_closed():
            self._bars.step(progress.step, progress.done, progress.total, note)

    def watch(self, event: Event) -> None:
        if isinstance(event, StepReport) and self.seen.step is not None and event.step < self.seen.step.step:
            self.seen = LiveState()  # the next model of several
        self.seen.add(event)
        if self.quiet:
            return
        self._end_bars()
        if not self.fancy:
            self._say(event)
        elif isinstance(event, RunNotice) and (event.kind == "chosen" or self._live is None):
            self._print(event)  # above the picture, where it stays
        else:
            self._draw(now=isinstance(event, ValidReport))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from picture(self.seen, self.name, self._busy, self._now(), options.max_width, max(1, console.size.height - 1))

    def _end_bars(self) -> None:
        bars, self._bars = self._bars, None
        if bars is not None:
            with self._until_closed():
                bars.__exit__(None, None, None)

    def _draw(self, now: bool = False) -> None:
        """Draw not more often than a person sees, nor so often that the run would notice."""
        began = self._tick()
        if self.quiet or (not now and began - self._drawn < max(DRAWN_EVERY, self._cost / LARGEST_SHARE)):
            return
        with self._until_closed():
            if self._live is None:
                self._live = Live(self, console=self.console, auto_refresh=False, redirect_stdout=False, vertical_overflow="crop")
                self._live.start()
            self._live.refresh()
        self._drawn = self._tick()
        self._cost = self._drawn - began

    def _print(self, notice: RunNotice) -> None:
        name, colon, rest = harmless(notice.text).partition(":")
        if notice.kind != "chosen" or not colon:
            name, rest = notice.kind, harmless(notice.text)
        row = Table.grid(padding=(0, 1))  # a long reason goes on under itself
        row.add_column(min_width=NAME_WIDTH, no_wrap=True)
        row.add_row(Text(f" {name}", "bold"), Text(rest.strip(), "bold yellow" if NOT_ENOUGH in rest else ""))
        with self._until_closed():
            self.console.print(row)

    def _say(self, event: Event) -> None:
        if isinstance(event, StepReport) and not self._is_time(event):
            return
        with self._until_closed():
            self.console.file.write(f"{self._now():%Y-%m-%dT%H:%M:%S} {plain_line(event, self.seen)}\n")
            self.console.file.flush()

    def _is_time(self, report: StepReport) -> bool:
        """True at first, after 1, 2, 4, 8 and 16 seconds, then every LINE_EVERY, and at the end."""
        now = self._tick()
        self._began = now if self._began is None else self._began
        pause = min(LINE_EVERY, max(LINE_AFTER, self._said - self._began))
        if now - self._said < pause and report.step < report.steps:
            return False
        self._said = now
        return True

    @contextmanager
    def _until_closed(self) -> Iterator[None]:
        """Nothing is shown any more when the terminal was closed, or the reader of the pipe has left."""
        try:
            yield
        except OSError:
            self.quiet, self.fancy = True, False
            self._end_live()

    def _end_live(self) -> None:
        live, self._live = self._live, None
        with suppress(OSError):
            if live is not None:
                live.stop()


def plain_line(event: Event, seen: LiveState) -> str:
    """What follows the time in a log: words and key=value, no text of users but in notices, and no control characters."""
    if isinstance(event, ValidReport):
        bleu = "-" if event.bleu == 0 and event.chrf > 50 else f"{event.bleu:.2f}"  # good, and too short: BLEU counts four words in a row
        ways = "".join(f" {each.direction}={each.bleu:.2f}/{each.chrf:.2f}" for each in event.directions)
        return (
            f"valid step={event.step} loss={event.nll:.3f} ppl={short(perplexity(event.nll))} bleu={bleu} "
            f"chrf={event.chrf:.2f} best={'yes' if event.best else 'no'} seconds={event.seconds:.1f}{ways}"
        )
    if isinstance(event, RunNotice):
        where = "" if event.kind == "chosen" else f" step={event.step}"
        return f"{event.kind}{where} {harmless(event.text)}"
    share = 100 * event.step / max(event.steps, 1)
    loss = event.loss if seen.loss.value is None else seen.loss.value
    gradient = event.gradient_norm if seen.gradient.value is None else seen.gradient.value
    fields = [f"step={event.step}/{event.steps} pct={share:.1f} loss={loss:.3f} lr={event.learning_rate:.1e} grad={gradient:.2f}"]
    if seen.speed.value is not None:  # the first steps say nothing about the speed
        fields.append(f"pieces_s={seen.speed.value:.0f}")
    fields.append(f"pad={seen.padding.value or 0.0:.2f} mem_gb={event.memory / 2**30:.1f}")
    if event.left < FOREVER:
        fields.append(f"left={hours(event.left)}")
    if seen.skipped:
        fields.append(f"skipped={seen.skipped}")
    return " ".join(fields)


def hours(seconds: float) -> str:
    """hours(75) -> "0:01:15": always with hours, so that a program can read it."""
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
