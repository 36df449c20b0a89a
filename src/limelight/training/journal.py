"""Watchers that write: `metrics.jsonl`, `samples.jsonl`, `status.json`, and TensorBoard where it is installed."""

import json
import time
from contextlib import ExitStack
from importlib import import_module, util
from pathlib import Path
from typing import Any, BinaryIO

from limelight.files import write_whole
from limelight.training.layout import METRICS, write_status
from limelight.training.watch import Event, StepReport, ValidReport, Watcher, line_of

SAMPLES, TENSORBOARD = "samples.jsonl", "tensorboard"
STATUS_EVERY = 2.0  # seconds


def forget_after(run: Path, step: int, validated: int) -> None:
    """A run that goes on from a checkpoint takes the steps, and makes the validations, after it again; what was written of them goes.

    So do lines that cannot be read: a full disk leaves halves of lines, with whole ones after them.
    """
    for name in (METRICS, SAMPLES):
        path = run / name
        if path.exists():
            lines = path.read_bytes().split(b"\n")[:-1]
            kept = [line for line in lines if _is_before(line, step, validated)]
            write_whole(path, b"".join(line + b"\n" for line in kept))


def _is_before(line: bytes, step: int, validated: int) -> bool:
    """Samples are of validations, too, and name no event."""
    try:
        value = json.loads(line)
        return int(value["step"]) <= (validated if value.get("event", "valid") == "valid" else step)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def written(run: Path, watch: Watcher, stack: ExitStack, step: int = 0) -> Watcher:
    """A watcher that writes all of this, and then tells `watch`. The stack closes the files. `step` is the one that a run goes on from."""
    lines = Lines(run)
    stack.callback(lines.close)
    watchers: list[Watcher] = [lines, Status(run), watch]
    if TensorBoard.installed():
        board = TensorBoard(run, step)
        stack.callback(board.close)
        watchers.append(board)

    def told(event: Event) -> None:
        for watcher in watchers:
            watcher(event)

    return told


class Lines:
    """Every event a line of `metrics.jsonl`, at once on disk as far as the system goes; samples also in a file of their own."""

    def __init__(self, run: Path) -> None:
        self._metrics: BinaryIO = (run / METRICS).open("ab")
        self._samples: BinaryIO = (run / SAMPLES).open("ab")

    def __call__(self, event: Event) -> None:
        self._metrics.write(line_of(event).encode())
        self._metrics.flush()
        if isinstance(event, ValidReport):
            for sample in event.samples:
                line = json.dumps({"step": event.step, **vars(sample)}, ensure_ascii=False)
                self._samples.write(line.encode() + b"\n")
            self._samples.flush()

    def close(self) -> None:
        self._metrics.close()
        self._samples.close()


class Status:
    """`status.json` while it trains."""

    def __init__(self, run: Path) -> None:
        self.run, self._said = run, 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepReport) and time.monotonic() - self._said > STATUS_EVERY:
            self._said = time.monotonic()
            write_status(
                self.run, "training", event.step, event.steps, loss=_finite(event.loss), left_seconds=round(event.left)
            )


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


class TensorBoard:
    """The same figures for those who look at several runs side by side."""

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
                "speed/source_and_target_pieces_per_second": (event.source_pieces + event.target_pieces)
                / max(event.seconds, 1e-9),
            }
        elif isinstance(event, ValidReport):
            figures = {"valid/nll": event.nll, "valid/bleu": event.bleu, "valid/chrf": event.chrf}
            for number, sample in enumerate(event.samples):
                self._writer.add_text(f"sample/{number}", f"{sample.source}\n\n{sample.translation}", event.step)
        else:
            return
        for name, value in figures.items():
            self._writer.add_scalar(name, value, event.step)

    def close(self) -> None:
        self._writer.close()
