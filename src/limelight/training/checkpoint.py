"""What a run needs to go on: tensors and a small state, verified when written and again before use.

    RUN/checkpoints/step-0012000/
        tensors.safetensors     weights, masters, moments, averages: any tensors by name
        state.json              where the data, the schedule and the random numbers stand
        manifest.json           format, step, size and sha256 of the other two, checksum of its own

    save(run / "checkpoints", 12_000, tensors, state, keep=2)
    found = latest(run / "checkpoints")      found.checkpoint.state == state, and found.checkpoint.tensors() bit for bit

Killed at any moment, `save` leaves the earlier checkpoints as they were.
"""

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from limelight.bundle.layout import refusal
from limelight.bundle.manifest import sealed
from limelight.bundle.strict_json import parse
from limelight.files import force_to_disk, put_folder, sha256_of, whole_file, write_whole

FORMAT = 1
TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"
NAME = re.compile(r"step-([0-9]{7}|[1-9][0-9]{7,})")  # one name for each step
OLD = re.compile(rf"\.{NAME.pattern}\.[0-9a-f]{{8}}\.old")
GO_ON = "resume once more: the newest checkpoint that is whole will be taken"


@dataclass(frozen=True)
class Checkpoint:
    """Verified when it was found. The tensors are loaded when asked for."""

    folder: Path
    step: int
    state: dict[str, Any]

    def tensors(self) -> dict[str, Tensor]:
        """On the CPU, each in memory of its own. Verified once more: the folder may have been replaced since it was found."""
        if problems := _problems(self.folder, self.step):
            raise refusal(self.folder, problems, advice=GO_ON)
        return read_tensors(self.folder / TENSORS)


@dataclass(frozen=True)
class Found:
    checkpoint: Checkpoint | None
    refused: list[str]  # what is wrong with newer ones, a sentence each


def save(root: Path, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any], keep: int) -> Path:
    """Write, force to disk, read back, rename; then remove all but the `keep` newest that are whole.

    A step that is there already stays if its content is the same, as after a resume, and is replaced if it is another or damaged.
    Tuples in the state come back as lists. A full disk is an OSError, and nothing is left of the attempt.
    """
    if step < 0 or keep < 1:
        raise ValueError(f"step={step} and keep={keep}: steps count from 0, and at least the newest is kept")
    content = _json_of(state)
    root.mkdir(parents=True, exist_ok=True)
    _tidy(root)
    folder = root / name_of(step)
    beside = root / f".{folder.name}.{secrets.token_hex(4)}.part"
    beside.mkdir()
    try:
        write_tensors(beside / TENSORS, tensors)
        write_whole(beside / STATE, content)
        write_whole(beside / MANIFEST, _manifest(step, _described(beside)))
        force_to_disk(beside)
        if problems := _problems(beside, step):
            raise OSError(errno.EIO, f"cannot be read back as it was written: {'; '.join(problems)}", str(folder))
        # The manifest has the hashes of all, so that equal manifests mean equal checkpoints.
        equal = not _problems(folder, step) and (folder / MANIFEST).read_bytes() == (beside / MANIFEST).read_bytes()
        if not equal:
            put_folder(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    _prune(root, step, keep)
    return folder


def latest(root: Path) -> Found:
    """The newest that is whole. Damaged newer ones are named and left where they are."""
    refused: list[str] = []
    for step, folder in _candidates(root):
        problems = _problems(folder, step)
        if not problems:
            try:
                return Found(Checkpoint(folder, step, json.loads((folder / STATE).read_bytes())), refused)
            except (OSError, ValueError) as error:  # taken away, or replaced, between the check and now
                problems = [f"{STATE}: cannot be read ({error})"]
        refused.append(f"{folder} cannot be used: {'; '.join(problems)}")
    return Found(None, refused)


def name_of(step: int) -> str:
    """name_of(12_000) -> "step-0012000"; names sort like steps up to ten million."""
    return f"step-{step:07d}"


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """A whole file, on disk, which was compared bit by bit with what it should hold."""
    plain = _separate(tensors)
    with whole_file(path) as beside:
        try:
            save_file(plain, beside)
        except SafetensorError as error:
            raise _as_os_error(error, path) from None
        beside.chmod(path.parent.stat().st_mode & 0o666)  # safetensors lets only the owner read
        # The manifest's hash is taken from the file; this is what ties the file to the tensors.
        same = {name for name, tensor in _stored(beside) if _same_bits(tensor, plain[name])}
        if different := sorted(plain.keys() - same):
            raise OSError(errno.EIO, f"was not written as it should be: {', '.join(different[:9])}", str(path))


def read_tensors(path: Path) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in _stored(path)}  # not mapped: a run changes them in place


def _stored(path: Path) -> Iterator[tuple[str, Tensor]]:
    try:
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no dict)
                yield name, file.get_tensor(name)
    except SafetensorError as error:
        raise _as_os_error(error, path) from None


def _same_bits(one: Tensor, other: Tensor) -> bool:
    """torch.equal says that NaN differs from itself and that -0 is 0."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """On the CPU and contiguous. Copied only if another name has the same memory, which safetensors refuses."""
    plain: dict[str, Tensor] = {}
    memories: set[int] = set()
    for name, tensor in tensors.items():
        here = tensor.detach().cpu().contiguous()
        memory = here.untyped_storage().data_ptr()
        plain[name] = here.clone() if memory in memories else here
        memories.add(memory)
    return plain


def _as_os_error(error: SafetensorError, path: Path) -> OSError:
    """safetensors writes the number of an input-output error into its text: "... No space left on device (os error 28)"."""
    found = re.search(r"\(os error ([0-9]+)\)", str(error))
    number = int(found[1]) if found else errno.EIO
    return OSError(number, os.strerror(number) if found else str(error), str(path))


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


def _described(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)} for name in (TENSORS, STATE)
    }


def _manifest(step: int, files: dict[str, dict[str, Any]]) -> bytes:
    return sealed({"format": FORMAT, "step": step, "files": files})


def _problems(folder: Path, step: int) -> list[str]:
    """All that is not as it was written. Empty: every byte is."""
    try:
        names = {path.name for path in folder.iterdir()}
        problems = [f"{name}: is missing" for name in (TENSORS, STATE, MANIFEST) if name not in names]
        problems += [f"{name}: does not belong there" for name in sorted(names - {TENSORS, STATE, MANIFEST})]
        return problems or _differences(folder, step)
    except OSError as error:
        return [f"{Path(error.filename or folder).name}: cannot be read ({error.strerror})"]


def _differences(folder: Path, step: int) -> list[str]:
    content = (folder / MANIFEST).read_bytes()
    try:
        value = parse(content)
    except ValueError as error:
        return [f"{MANIFEST}: is damaged, {error}"]
    if sealed({key: part for key, part in value.items() if key != "checksum"}) != content:
        return [f"{MANIFEST}: is damaged, its checksum does not fit"]
    if value.get("format") != FORMAT:
        return [f"{MANIFEST}: has format {str(value.get('format'))[:99]}, and this limelight reads format {FORMAT}"]
    if value.get("step") != step:
        return [f"{MANIFEST}: is of step {str(value.get('step'))[:99]}, but the folder of step {step}"]
    found, written = _described(folder), value.get("files")
    if not isinstance(written, dict) or written.keys() != found.keys():
        return [f"{MANIFEST}: must list {' and '.join(found)}"]
    return [
        f"{name}: is damaged, its content is not what was written" for name in found if found[name] != written[name]
    ]


def _candidates(root: Path) -> list[tuple[int, Path]]:
    """Newest first. A step that a crash left under its temporary old name only, in the midst of being replaced, is one too."""
    there = list(root.iterdir()) if root.is_dir() else []
    named = {int(match[1]): path for path in there if (match := OLD.fullmatch(path.name))}
    named |= {int(match[1]): path for path in there if (match := NAME.fullmatch(path.name))}
    return sorted(named.items(), reverse=True)


def _tidy(root: Path) -> None:
    """What crashed saves left: the unfinished goes, the old returns to its name unless the new one has it."""
    for step, folder in _candidates(root):
        if folder.name != name_of(step):
            folder.rename(root / name_of(step))
    for leftover in (*root.glob(".step-*.part"), *root.glob(".step-*.old")):
        shutil.rmtree(leftover, ignore_errors=True)


def _prune(root: Path, step: int, keep: int) -> None:
    """Damaged ones do not count as kept. Later ones, of a run that went back, stay: they are refused, or replaced when it gets there."""
    kept = 1
    for other, folder in _candidates(root):
        if other >= step:
            continue
        if kept < keep and not _problems(folder, other):
            kept += 1
        else:
            shutil.rmtree(folder, ignore_errors=True)
