"""A checkpoint holds the tensors and the state that a run goes on from, verified when written and before use:

RUN/checkpoints/step-0012000/
    tensors.safetensors     weights, masters, moments, averages: any tensors by name
    shard-0000N-...         instead of it, where tensors are spread over processes: a file for each (`shards`)
    state.json              where the data, the schedule and the random numbers stand
    manifest.json           format, step, size and sha256 of the others, checksum of its own
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from limelight.bundle.layout import refusal
from limelight.files import Stamp, stamp_of
from limelight.training.checkpoints.folder import MANIFEST, STATE, TENSORS, broadcast_candidates, candidates, problems
from limelight.training.checkpoints.folder import name_of as name_of
from limelight.training.checkpoints.shards import misfits, read_into, shapes_in
from limelight.training.checkpoints.tensors import names_in, read_tensors
from limelight.training.checkpoints.tensors import write_tensors as write_tensors
from limelight.training.checkpoints.writer import CheckpointWriter
from limelight.training.processes.world import World

GO_ON = "resume once more: the newest checkpoint that is whole will be taken"
OTHER_MODEL = "go on with the recipe that the checkpoint was made with, or start anew in another folder"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint was verified when it was found; its tensors are loaded when asked for."""

    folder: Path
    step: int
    state: dict[str, Any]
    world: World = field(default_factory=World, compare=False, repr=False)
    stamps: Mapping[str, Stamp] = field(default_factory=dict, compare=False, repr=False)  # of the files that were verified

    @property
    def sharded(self) -> bool:
        return not (self.folder / TENSORS).exists()

    def names(self) -> set[str]:
        return set().union(*(names_in(path) for path in self.folder.glob("*.safetensors")))

    def tensors(self) -> dict[str, Tensor]:
        """Whole, on the CPU, each in memory of its own. Verified once more if a file was replaced since it was found."""
        self._verify()
        if not self.sharded:
            return read_tensors(self.folder / TENSORS)
        whole = {name: torch.empty(shape, dtype=dtype) for name, (shape, dtype) in shapes_in(self.folder).items()}
        read_into(self.folder, whole)
        return whole

    def load_into(self, tensors: Mapping[str, Tensor]) -> None:
        """In place and by name, verified as in `tensors`. What is stored and not asked for is left.

        A name that is not stored, or another shape or number format, is a refusal that lists all of them, and nothing was changed.
        """
        self._verify()
        mine = self.world.run_on_all(lambda: misfits(self.folder, tensors))
        found = sorted({problem for each in self.world.gather(mine) for problem in each})
        if found:
            raise refusal(self.folder, found, verdict="does not fit this run", advice=OTHER_MODEL)
        self.world.run_on_all(lambda: read_into(self.folder, tensors))

    def _verify(self) -> None:
        changed = any(self.world.gather(_stamps(self.folder) != self.stamps))
        if changed and (found := problems(self.folder, self.step, self.world)):
            raise refusal(self.folder, found, advice=GO_ON)


@dataclass(frozen=True)
class LatestCheckpoint:
    checkpoint: Checkpoint | None
    refused: list[str]  # what is wrong with newer ones, a sentence each


@dataclass(frozen=True)
class CheckpointSummary:
    step: int
    folder: Path
    bytes: int
    when: float  # seconds since 1970
    shards: int  # 0: whole
    problems: list[str]


def save(
    root: Path,
    step: int,
    tensors: Mapping[str, Tensor],
    state: Mapping[str, Any],
    keep: int,
    world: World | None = None,
) -> Path:
    """Write, force to disk, read back, rename; then remove all but the `keep` newest that are whole.

    A step that is there already stays if its content is the same, as after a resume, and is replaced if it is another or damaged.
    """
    return CheckpointWriter(root, keep, world).save(step, tensors, state)


def latest(root: Path, world: World | None = None) -> LatestCheckpoint:
    """The newest that is whole. Damaged newer ones are named and left where they are. The same answer in all processes."""
    world = world or World()
    refused: list[str] = []
    for step, folder in broadcast_candidates(root, world):
        stamps = _stamps(folder)  # first: what changes meanwhile is verified again
        found = problems(folder, step, world)
        if not found:
            state, wrong = world.run_on_main(lambda folder=folder: _state_of(folder))  # type: ignore[misc]
            if wrong is None:
                return LatestCheckpoint(Checkpoint(folder, step, state, world, stamps), refused)
            found = [wrong]
        refused.append(f"{folder} cannot be used: {'; '.join(found)}")
    return LatestCheckpoint(None, refused)


def list_checkpoints(root: Path) -> list[CheckpointSummary]:
    """All that stand there, the newest first, each read to its last byte."""
    return [_summarize(step, folder) for step, folder in candidates(root)]


def _summarize(step: int, folder: Path) -> CheckpointSummary:
    found = problems(folder, step)
    try:
        paths = list(folder.iterdir())
        size, when = sum(path.stat().st_size for path in paths), (folder / MANIFEST).stat().st_mtime
    except OSError:
        return CheckpointSummary(step, folder, 0, 0.0, 0, found)
    shards = sum(path.name.startswith("shard-") for path in paths)
    return CheckpointSummary(step, folder, size, when, shards, found)


def _stamps(folder: Path) -> dict[str, Stamp]:
    return {path.name: stamp_of(path) for path in folder.iterdir()} if folder.is_dir() else {}


def _state_of(folder: Path) -> tuple[dict[str, Any], str | None]:
    try:
        return json.loads((folder / STATE).read_bytes()), None
    except (OSError, ValueError) as error:  # taken away, or replaced, between the check and now
        return {}, f"{STATE}: cannot be read ({error})"
