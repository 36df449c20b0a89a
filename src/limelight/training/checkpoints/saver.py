"""A saver decides when a run saves, and tries again when a save failed, as on a disk that is full for a while:

    saver.save(step, tensors, state, wait=True)
    saver.finish() -> (step, problem)       what is safely on disk since it was asked last, and what went wrong: it is tried again

In the background, a copy of the tensors is written while the next steps are taken. `written` says that this process is done with its part;
when all are, all of them call `finish`.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from limelight.errors import StorageError
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints.background import BackgroundSaver
from limelight.training.config import CheckpointSettings
from limelight.training.processes.world import World

FAILURES: Final = 3  # in a row, after which the run ends: what it learns from then on could be lost


class CheckpointSaver:
    def __init__(self, root: Path, settings: CheckpointSettings, world: World) -> None:
        self._root, self._settings, self._world = root, settings, world
        self._background = BackgroundSaver(root, settings.keep, world)
        self._pending: int | None = None  # a step that is being written
        self._done: int | None = None  # a step that was written since `finish` was asked last
        self._problem: str | None = None
        self._failed = 0
        self._when = time.monotonic()

    def is_due(self) -> bool:
        return self._pending is None and time.monotonic() - self._when >= self._settings.every_seconds

    @property
    def written(self) -> bool:
        return self._pending is not None and self._background.ready

    @property
    def waits(self) -> bool:
        """Is something being written in the background?"""
        return self._pending is not None

    def save(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any], wait: bool) -> None:
        self._when = time.monotonic()
        try:
            if self._settings.background and not wait:
                self._background.begin(step, tensors, state)
                self._pending = step
            else:
                checkpoint.save(self._root, step, tensors, state, self._settings.keep, self._world)
                self._done, self._failed = step, 0
        except OSError as error:
            self._problem = self._trouble(error)

    def finish(self) -> tuple[int | None, str | None]:
        """Waits for what is being written."""
        if self._pending is not None:
            step, self._pending = self._pending, None
            try:
                self._background.finish()
                self._done, self._failed = step, 0
            except OSError as error:
                self._problem = self._trouble(error)
        done, self._done = self._done, None
        problem, self._problem = self._problem, None
        return done, problem

    def _trouble(self, error: OSError) -> str:
        self._failed += 1
        what = f"the checkpoint could not be written: {error}"
        if self._failed >= FAILURES:
            raise StorageError(
                f"{what}, {FAILURES} times in a row; make room in {self._root}, and the same command goes on from the last checkpoint"
            ) from error
        return f"{what}; it is tried again in {self._settings.every_seconds:.0f} s"
