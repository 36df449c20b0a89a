"""A writer makes checkpoints, each a folder that gets its name only when all processes wrote and all was verified:

    writer = CheckpointWriter(run / "checkpoints", keep=2, world=world)
    writer.begin(step, tensors, state)      all processes: who writes what, a copy in host memory; then each writes in a thread
    writer.ready                            this process has written and read back its part, or failed to
    writer.finish()                         all processes: manifest, verified, renamed, older ones pruned
    writer.save(step, tensors, state)       both, without a copy and without a thread

Whatever fails in one process is an OSError in all. In the background, training stands still for the copy and for the end, not for the
disk and the hashes. Until `finish` there is no checkpoint: one that is killed before goes on from the one before. `begin` sweeps up
what is unfinished in the folder: finish first. Each file is hashed once, as it is read back.
"""

import errno
import json
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from limelight.errors import StorageError
from limelight.files import force_to_disk, put_folder, write_whole
from limelight.training.checkpoints.folder import (
    MANIFEST,
    STATE,
    FileDigest,
    digest_file,
    manifest_of,
    name_of,
    problems,
    prune,
    tidy,
)
from limelight.training.checkpoints.shards import RankShard, share_of
from limelight.training.checkpoints.tensors import write_tensors
from limelight.training.config import CheckpointSettings
from limelight.training.processes.world import World

FAILURES: Final = 3  # in a row, after which the run ends: what it learns from then on could be lost
Files = dict[str, FileDigest]


class CheckpointWriter:
    def __init__(self, root: Path, keep: int, world: World | None = None) -> None:
        self.root, self.keep, self.world = root, keep, world or World()
        self._attempt: Attempt | None = None
        self._written: Future[Files] | None = None  # by the thread of this process
        self._known: dict[Path, Files] = {}  # hashed by us, and since then only looked at

    @property
    def step(self) -> int | None:
        return None if self._attempt is None else self._attempt.step

    @property
    def ready(self) -> bool:
        return self._written is not None and self._written.done()

    def begin(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        self._written = _run_in_thread(self._begin(step, tensors, state, copy=True))

    def finish(self) -> Path | None:
        written, self._written = self._written, None
        return None if written is None else self._finish(written.result)

    def save(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> Path:
        return self._finish(self._begin(step, tensors, state, copy=False))

    def _begin(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any], copy: bool) -> Callable[[], Files]:
        if step < 0 or self.keep < 1:
            raise ValueError(f"step={step} and keep={self.keep}: steps count from 0, and at least the newest is kept")
        if self._attempt is not None:
            raise RuntimeError(f"the checkpoint of step {self.step} is still under way; finish it before another begins")
        attempt = Attempt.begin(self.root, step, state, self.world)
        try:
            share = share_of(tensors, self.world)
            if copy:
                share = self.world.run_on_all(share.copy_to_host)
        except BaseException:
            attempt.abandon()
            raise
        self._attempt = attempt
        return partial(attempt.write, share)

    def _finish(self, write: Callable[[], Files]) -> Path:
        attempt, self._attempt = self._attempt, None
        assert attempt is not None
        try:
            self._known[attempt.folder] = attempt.commit(self.world.run_on_all(write))
        finally:
            attempt.abandon()
        prune(self.root, attempt.step, self.keep, self.world, self._known)
        return attempt.folder


def _run_in_thread(write: Callable[[], Files]) -> Future[Files]:
    """The thread says nothing to other processes: exchange with them belongs to the thread that trains."""
    written: Future[Files] = Future()

    def run() -> None:
        try:
            written.set_result(write())
        except Exception as error:
            written.set_exception(error)

    # A daemon: a process that ends for another reason does not wait for a slow disk.
    threading.Thread(target=run, name="checkpoint", daemon=True).start()
    return written


@dataclass(frozen=True)
class Attempt:
    """An attempt is a checkpoint that is being written, in a folder that has no name of a checkpoint yet."""

    root: Path
    step: int
    beside: Path
    content: bytes  # of state.json, in the main process
    world: World

    @classmethod
    def begin(cls, root: Path, step: int, state: Mapping[str, Any], world: World) -> "Attempt":
        content = b""

        def make() -> str:
            nonlocal content
            content = _json_of(state)
            root.mkdir(parents=True, exist_ok=True)
            tidy(root)
            beside = root / f".{name_of(step)}.{secrets.token_hex(4)}.part"
            beside.mkdir()
            return beside.name

        return cls(root, step, root / world.run_on_main(make), content, world)

    @property
    def folder(self) -> Path:
        return self.root / name_of(self.step)

    def write(self, share: RankShard) -> Files:
        """Writes the file of this process only, and exchanges nothing with the others."""
        if share.file is None:
            return {}
        write_tensors(self.beside / share.file, share.tensors, share.header)
        return {share.file: digest_file(self.beside / share.file)}

    def commit(self, mine: Files) -> Files:
        gathered = {name: each for every in self.world.gather(mine) for name, each in every.items()}
        files = self.world.run_on_main(lambda: self._seal(gathered))
        if found := problems(self.beside, self.step, self.world, files):
            raise OSError(errno.EIO, f"cannot be read back as it was written: {'; '.join(found)}", str(self.folder))
        # The manifest has the hashes of all, so that equal manifests mean equal checkpoints.
        equal = self.world.run_on_main(lambda: _bytes_or_none(self.folder) == _bytes_or_none(self.beside))
        if not equal or problems(self.folder, self.step, self.world):
            self.world.run_on_main(self._rename)
        return files

    def abandon(self) -> None:
        if self.world.main:
            shutil.rmtree(self.beside, ignore_errors=True)

    def _seal(self, files: Files) -> Files:
        write_whole(self.beside / STATE, self.content)
        files = dict(sorted(files.items())) | {STATE: digest_file(self.beside / STATE)}
        write_whole(self.beside / MANIFEST, manifest_of(self.step, files))
        force_to_disk(self.beside)
        return files

    def _rename(self) -> None:
        put_folder(self.beside, self.folder)


def _bytes_or_none(folder: Path) -> bytes | None:
    try:
        return (folder / MANIFEST).read_bytes()
    except OSError:
        return None


def _json_of(state: Mapping[str, Any]) -> bytes:
    _check_keys(state, "state")
    try:
        return json.dumps(dict(state), indent=1, allow_nan=False).encode() + b"\n"
    except ValueError as error:
        raise ValueError(f"the state of a run must be plain JSON, without NaN and infinity: {error}") from None


def _check_keys(value: Any, where: str) -> None:
    """Keys that are no strings would come back as strings."""
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"{where} has the key {wrong[0]!r}, which JSON would turn into a string; use strings")
        for key, part in value.items():
            _check_keys(part, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            _check_keys(part, f"{where}[{index}]")


class CheckpointSaver:
    """A saver decides when a run saves, and tries again when a save failed, as on a disk that is full for a while."""

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
