"""An attempt to save is a folder that gets its name only when all processes wrote and all was verified:

    attempt = Attempt.begin(root, step, state, world)      the folder, made by the main process
    files = attempt.write(share)                           this process's file; the only part that may run in a thread
    attempt.commit(files, keep)                            manifest, verified, renamed, older ones pruned
    attempt.abandon()                                      nothing is left of it

Whatever fails in one process is an OSError in all.
"""

import errno
import json
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from limelight.training.checkpoints.shards import RankShard
from limelight.training.checkpoints.tensors import write_tensors
from limelight.training.processes.collective_errors import run_on_all, run_on_main
from limelight.training.processes.world import World


@dataclass(frozen=True)
class Attempt:
    root: Path
    step: int
    beside: Path
    content: bytes  # of state.json, in the main process
    world: World

    @classmethod
    def begin(cls, root: Path, step: int, state: Mapping[str, Any], world: World) -> "Attempt":
        content = b""

        def made() -> str:
            nonlocal content
            content = _json_of(state)
            root.mkdir(parents=True, exist_ok=True)
            tidy(root)
            beside = root / f".{name_of(step)}.{secrets.token_hex(4)}.part"
            beside.mkdir()
            return beside.name

        return cls(root, step, root / run_on_main(world, made), content, world)

    @property
    def folder(self) -> Path:
        return self.root / name_of(self.step)

    def write(self, share: RankShard) -> dict[str, FileDigest]:
        """Writes the file of this process only, and exchanges nothing with the others."""
        if share.file is None:
            return {}
        write_tensors(self.beside / share.file, share.tensors, share.header)
        return {share.file: digest_file(self.beside / share.file)}

    def commit(
        self, mine: dict[str, FileDigest], keep: int, known: dict[Path, dict[str, FileDigest]] | None = None
    ) -> Path:
        """`known`, by folder: what was hashed when it was read back. It is not hashed once more; this checkpoint joins them."""
        files = {name: each for every in self.world.gather(mine) for name, each in every.items()}
        run_on_main(self.world, lambda: self._seal(files))
        if found := problems(self.beside, self.step, self.world, None if known is None else files):
            raise OSError(errno.EIO, f"cannot be read back as it was written: {'; '.join(found)}", str(self.folder))
        # The manifest has the hashes of all, so that equal manifests mean equal checkpoints.
        equal = run_on_main(self.world, lambda: _bytes_or_none(self.folder) == _bytes_or_none(self.beside))
        if not equal or problems(self.folder, self.step, self.world):
            run_on_main(self.world, self._rename)
        self.abandon()
        if known is not None:
            known[self.folder] = files
        prune(self.root, self.step, keep, self.world, known or {})
        return self.folder

    def abandon(self) -> None:
        if self.world.main:
            shutil.rmtree(self.beside, ignore_errors=True)

    def _seal(self, files: dict[str, FileDigest]) -> None:
        write_whole(self.beside / STATE, self.content)
        files = dict(sorted(files.items())) | {STATE: digest_file(self.beside / STATE)}
        write_whole(self.beside / MANIFEST, manifest_of(self.step, files))
        force_to_disk(self.beside)

    def _rename(self) -> None:
        put_folder(self.beside, self.folder)


def write_all(attempt: Attempt, share: RankShard) -> dict[str, FileDigest]:
    return run_on_all(attempt.world, lambda: attempt.write(share))


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
