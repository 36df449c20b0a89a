"""Event writers keep `metrics.jsonl`, `samples.jsonl`, `status.json`, and TensorBoard where it is installed."""

import json
import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module, util
from pathlib import Path
from typing import Any

from limelight.files import write_whole
from limelight.training.events import Event, RunNotice, StepReport, ValidReport, Watcher, line_of
from limelight.training.run_folder import METRICS, STATUS, put_status

SAMPLES, TENSORBOARD = "samples.jsonl", "tensorboard"
STATUS_EVERY = 2.0  # seconds
MOST_WAITING = 20_000_000  # bytes in memory, while a disk is full: some tens of thousands of steps

logger = logging.getLogger(__name__)


class OptionalFiles:
    """Optional files may fail on a full disk; a run says so once, goes on, and says when they are written again."""

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self._say = say or logger.warning
        self._missing: set[str] = set()

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if what not in self._missing:
                self._missing.add(what)
                self._say(f"{what} cannot be written: {error.strerror or error}; training goes on without it")
        else:
            if what in self._missing:
                self._missing.remove(what)
                self._say(f"{what} is written again")


def forget_after(run: Path, step: int, validated: int) -> None:
    """A run that goes on from a checkpoint takes the steps, and makes the validations, after it again; what was written of them goes.

    So do lines that cannot be read: a full disk leaves halves of lines, with whole ones after them.
    """
    for name in (METRICS, SAMPLES):
        path = run / name
        if path.exists():
            lines = path.read_bytes().split(b"\n")[:-1]
            kept = [line for line in lines if _is_before(line, step, validated)]
            if kept == lines[: len(kept)]:  # needs no room: a disk that is full does not keep a run from going on
                os.truncate(path, sum(len(line) + 1 for line in kept))
            else:
                write_whole(path, b"".join(line + b"\n" for line in kept))


def _is_before(line: bytes, step: int, validated: int) -> bool:
    """Samples are of validations, too, and name no event."""
    try:
        value = json.loads(line)
        return int(value["step"]) <= (validated if value.get("event", "valid") == "valid" else step)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def add_writers(run: Path, watch: Watcher, stack: ExitStack, step: int = 0) -> Watcher:
    """A watcher that writes all of this, and then tells `watch`. The stack closes the files. `step` is the one that a run goes on from."""
    at = RunNotice(step, 0.0, "note", "")

    def say(text: str) -> None:
        watch(replace(at, text=text))

    spared = OptionalFiles(say)
    lines = MetricsWriter(run)
    stack.callback(lines.close)
    watchers: list[tuple[str, Watcher]] = [(METRICS, lines), (STATUS, StatusWriter(run))]
    if TensorBoard.installed():
        board = TensorBoard(run, step)
        stack.callback(board.close)
        watchers.append((TENSORBOARD, board))

    def told(event: Event) -> None:
        nonlocal at
        at = RunNotice(event.step, event.elapsed, "note", "")
        for name, watcher in watchers:
            with spared(name):
                watcher(event)
        watch(event)

    return told


class MetricsWriter:
    """Every event becomes a line of `metrics.jsonl`, at once on disk as far as the system goes; samples also in a file of their own."""

    def __init__(self, run: Path) -> None:
        self._metrics, self._samples = AppendOnlyFile(run / METRICS), AppendOnlyFile(run / SAMPLES)

    def __call__(self, event: Event) -> None:
        samples = event.samples if isinstance(event, ValidReport) else ()
        for sample in samples:
            self._samples.add(json.dumps({"step": event.step, **vars(sample)}, ensure_ascii=False).encode() + b"\n")
        self._metrics.add(line_of(event).encode())
        try:
            self._metrics.write()
        finally:
            self._samples.write()

    def close(self) -> None:
        self._metrics.close()
        self._samples.close()


class AppendOnlyFile:
    """The file grows by whole lines. What a full disk does not take is taken back, kept in memory, and written when there is room."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)
        self._length = self._file.seek(0, os.SEEK_END)
        self._waiting: deque[bytes] = deque()
        self._bytes = 0

    def add(self, line: bytes) -> None:
        self._waiting.append(line)
        self._bytes += len(line)
        while self._bytes > MOST_WAITING:  # a disk that is full for days: the oldest are lost
            self._bytes -= len(self._waiting.popleft())

    def write(self) -> None:
        content = b"".join(self._waiting)
        try:
            while content:
                content = content[self._file.write(content) :]
        except OSError:
            self._file.truncate(self._length)
            raise
        self._length += self._bytes
        self._waiting.clear()
        self._bytes = 0

    def close(self) -> None:
        """What waits may find room at last."""
        try:
            self.write()
        except OSError as error:
            logger.warning("%s: the last %s lines are missing: %s", self.path, len(self._waiting), error.strerror)
        self._file.close()


class StatusWriter:
    def __init__(self, run: Path) -> None:
        self.run, self._said = run, 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepReport) and time.monotonic() - self._said > STATUS_EVERY:
            self._said = time.monotonic()
            loss = event.loss if math.isfinite(event.loss) else None
            put_status(self.run, "training", event.step, event.steps, loss=loss, left_seconds=round(event.left))


class TensorBoard:
    def __init__(self, run: Path, step: int = 0) -> None:
        """What an earlier start wrote of the steps after `step` is no longer shown."""
        writer: Any = import_module("torch.utils.tensorboard")
        self._writer = writer.SummaryWriter(str(run / TENSORBOARD), purge_step=step + 1 if step else None)

    @staticmethod
    def installed() -> bool:
        return util.find_spec("tensorboard") is not None

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepReport):
            figures = {
                "train/loss": event.loss,
                "train/nll": event.nll,
                "train/learning_rate": event.learning_rate,
                "train/gradient_norm": event.gradient_norm,
                "speed/source_and_target_pieces_per_second": (event.source_pieces + event.target_pieces) / max(event.seconds, 1e-9),
            }
        elif isinstance(event, ValidReport):
            figures = {"valid/nll": event.nll, "valid/bleu": event.bleu, "valid/chrf": event.chrf}
            for each in event.directions:
                figures |= {f"valid/bleu/{each.direction}": each.bleu, f"valid/chrf/{each.direction}": each.chrf}
            for number, sample in enumerate(event.samples):
                self._writer.add_text(f"sample/{number}", f"{sample.source}\n\n{sample.translation}", event.step)
        else:
            return
        for name, value in figures.items():
            self._writer.add_scalar(name, value, event.step)

    def close(self) -> None:
        self._writer.close()
