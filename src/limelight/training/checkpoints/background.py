"""A background thread writes a checkpoint while training goes on:

    background = BackgroundSaver(run / "checkpoints", keep=2, world=world)
    background.begin(step, tensors, state)      all processes: who writes what, a copy in host memory; then each writes in a thread
    background.ready                            this process has written and read back its part, or failed to
    background.finish()                         all processes: the checkpoint gets its manifest and its name, or all raise the OSError
    background.close()                          this process alone: waits for its thread; an unfinished checkpoint is dropped

Training stands still for the copy and for the end, not for the disk and the hashes. Until `finish` there is no checkpoint: one that is
killed before goes on from the one before. `save` and `begin` sweep up what is unfinished in the folder: finish first.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from limelight.training.checkpoints.checkpoint import check_numbers
from limelight.training.checkpoints.folder import FileDigest
from limelight.training.checkpoints.shards import RankShard, share_of
from limelight.training.checkpoints.transaction import Attempt
from limelight.training.processes.collective_errors import run_on_all
from limelight.training.processes.world import World


class BackgroundSaver:
    def __init__(self, root: Path, keep: int, world: World | None = None) -> None:
        check_numbers(0, keep)
        self.root, self.keep, self.world = root, keep, world or World()
        self._writing: WriterThread | None = None
        self._known: dict[Path, dict[str, FileDigest]] = {}  # hashed by us, and since then only looked at

    @property
    def step(self) -> int | None:
        """Return the step of the checkpoint that is under way."""
        return None if self._writing is None else self._writing.attempt.step

    @property
    def ready(self) -> bool:
        return self._writing is not None and not self._writing.is_alive()

    def begin(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        check_numbers(step, self.keep)
        if self._writing is not None:
            raise RuntimeError(
                f"the checkpoint of step {self.step} is still under way; finish it before another begins"
            )
        attempt = Attempt.begin(self.root, step, state, self.world)
        try:
            share = share_of(tensors, self.world)
            copied = run_on_all(self.world, share.copy_to_host)
        except BaseException:
            attempt.abandon()
            raise
        self._writing = WriterThread(attempt, copied)
        self._writing.start()

    def finish(self) -> Path | None:
        """Waits for the threads of all processes. None if nothing is under way."""
        if self._writing is None:
            return None
        writing, self._writing = self._writing, None
        try:
            return writing.attempt.commit(run_on_all(self.world, writing.wait), self.keep, self._known)
        finally:
            writing.attempt.abandon()

    def close(self) -> None:
        if self._writing is not None:
            self._writing.join()
            self._writing.attempt.abandon()
            self._writing = None


class WriterThread(threading.Thread):
    """A writer thread writes one shard. It says nothing to other processes: exchange with them belongs to the thread that trains."""

    def __init__(self, attempt: Attempt, share: RankShard) -> None:
        # A daemon: a process that ends for another reason does not wait for a slow disk.
        super().__init__(name=f"checkpoint of step {attempt.step}", daemon=True)
        self.attempt, self._share = attempt, share
        self._files: dict[str, FileDigest] = {}
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            self._files = self.attempt.write(self._share)
        except Exception as error:
            self._error = error
        finally:
            self._share = RankShard(None, {})  # gives the copy back

    def wait(self) -> dict[str, FileDigest]:
        self.join()
        if self._error is not None:
            raise self._error
        return self._files
