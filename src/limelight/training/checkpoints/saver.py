"""A saver decides when a run saves, and tries again when a save failed, as on a disk that is full for a while.

In the background, a copy of the tensors is written while the next steps are taken. `written` says that this process is done with its part;
when all are, all of them call `finish`.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from limelight.errors import StorageError
from limelight.training.checkpoints.writer import CheckpointWriter
from limelight.training.config import CheckpointSettings
from limelight.training.processes.world import World

FAILURES: Final = 3  # in a row, after which the run ends: what it learns from then on could be lost


class CheckpointSaver:
    def __init__(self, root: Path, settings: CheckpointSettings, world: World) -> None:
        self._settings, self._writer = settings, CheckpointWriter(root, settings.keep, world)
        self._saved: int | None = None  # since `finish` was asked last
        self._error: OSError | None = None
        self._failed = 0
        self._when = time.monotonic()

    def is_due(self) -> bool:
        return not self.waits and time.monotonic() - self._when >= self._settings.every_seconds

    @property
    def written(self) -> bool:
        return self._writer.ready

    @property
    def waits(self) -> bool:
        """Is something being written in the background?"""
        return self._writer.step is not None

    def begin(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any], wait: bool) -> None:
        self._when = time.monotonic()
        try:
            if self._settings.background and not wait:
                self._writer.begin(step, tensors, state)
            else:
                self._writer.save(step, tensors, state)
                self._saved = step
        except OSError as error:
            self._error = error

    def finish(self) -> tuple[int | None, str | None]:
        """Waits for what is being written."""
        step = self._writer.step if self.waits else self._saved
        error = self._error
        self._saved = self._error = None
        try:
            self._writer.finish()
        except OSError as raised:
            error = raised
        if error is None:
            self._failed = self._failed if step is None else 0
            return step, None
        self._failed += 1
        what = f"the checkpoint could not be written: {error}"
        if self._failed >= FAILURES:
            raise StorageError(
                f"{what}, {FAILURES} times in a row; make room in {self._writer.root}, and the same command goes on from the last "
                "checkpoint"
            ) from error
        return None, f"{what}; it is tried again in {self._settings.every_seconds:.0f} s"
