"""A folder of checkpoints has names and manifests, which tell which checkpoints are whole and which may go:

    step-0012000/                a checkpoint
    .step-0012000.0123abcd.part  one that is being written, or was when the power went
    .step-0012000.0123abcd.old   one that is being replaced

Nothing of a checkpoint is parsed before its manifest was found as it was sealed, and the files with the sizes and hashes it lists.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from limelight.bundle.manifest import seal
from limelight.bundle.strict_json import LARGEST, parse
from limelight.files import sha256_of
from limelight.training.processes.world import World

WHOLE, SHARDED = 1, 2  # formats: all tensors in one file, or a file for each process
TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"
SHARD = re.compile(r"shard-[0-9]{5}-model-00001-of-00001\.safetensors")  # as torch.distributed.checkpoint names them
NAME = re.compile(r"step-([0-9]{7}|[1-9][0-9]{7,})")  # one name for each step
OLD = re.compile(rf"\.{NAME.pattern}\.[0-9a-f]{{8}}\.old")

FileDigest = dict[str, Any]  # {"bytes": 12, "sha256": "..."}


def name_of(step: int) -> str:
    """name_of(12_000) -> "step-0012000"; names sort like steps up to ten million."""
    return f"step-{step:07d}"


def shard_name(rank: int) -> str:
    return f"shard-{rank + 1:05d}-model-00001-of-00001.safetensors"


def digest_file(path: Path) -> FileDigest:
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}


def manifest_of(step: int, files: Mapping[str, FileDigest]) -> bytes:
    return seal({"format": WHOLE if TENSORS in files else SHARDED, "step": step, "files": dict(files)})


def unseal(content: bytes) -> dict[str, Any]:
    """Return what was sealed, or raise a ValueError if it is not so, byte for byte."""
    value = parse(content)
    if seal({key: part for key, part in value.items() if key != "checksum"}) != content:
        raise ValueError("its checksum does not fit")
    return value


def problems(folder: Path, step: int, world: World | None = None, known: Mapping[str, FileDigest] | None = None) -> list[str]:
    """All that is not as it was written. Empty: every byte is. Called by all processes, each of which hashes a part of the files.

    `known`: what was read back and hashed a moment ago; of these only the size is looked at.
    """
    world = world or World()
    found, files = world.broadcast(_read_manifest(folder, step) if world.main else None)
    if found:
        return list(found)
    mine = sorted(files)[world.rank :: world.size]
    differing = [difference for name in mine if (difference := _difference(folder / name, files[name], known or {}))]
    return [difference for each in world.gather(differing) for difference in each]


def _read_manifest(folder: Path, step: int) -> tuple[list[str], dict[str, FileDigest]]:
    """What is wrong with the manifest and the names, or the files as the manifest has them."""
    try:
        names = {path.name for path in folder.iterdir()}
        if MANIFEST not in names:
            return [f"{MANIFEST}: is missing"], {}
        with (folder / MANIFEST).open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        return [f"{Path(error.filename or folder).name}: cannot be read ({error.strerror})"], {}
    try:
        value = unseal(content)
    except ValueError as error:
        return [f"{MANIFEST}: is damaged, {error}"], {}
    if wrong := _misfit(value, step):
        return [f"{MANIFEST}: {wrong}"], {}
    files = value["files"]
    found = [f"{name}: is missing" for name in sorted(files.keys() - names)]
    found += [f"{name}: does not belong there" for name in sorted(names - files.keys() - {MANIFEST})]
    return found, files


def _misfit(value: dict[str, Any], step: int) -> str | None:
    """What is wrong with a manifest that is as it was sealed."""
    if value.get("format") not in (WHOLE, SHARDED):
        return f"has format {str(value.get('format'))[:99]}, and this limelight reads formats {WHOLE} and {SHARDED}"
    if value.get("step") != step:
        return f"is of step {str(value.get('step'))[:99]}, but the folder of step {step}"
    files = value.get("files")
    names = set(files) if isinstance(files, dict) else set()
    if value["format"] == WHOLE and names != {TENSORS, STATE}:
        return f"must list {TENSORS} and {STATE}"
    shards = names - {STATE}
    if value["format"] == SHARDED and (STATE not in names or not shards or not all(map(SHARD.fullmatch, shards))):
        return f"must list {STATE} and shards, and nothing else"
    return None


def _difference(path: Path, written: FileDigest, known: Mapping[str, FileDigest]) -> str | None:
    name = path.name
    try:
        size = path.stat().st_size
        if size != written.get("bytes"):
            return f"{name}: is damaged, it has {size:,} bytes and was written with {written.get('bytes'):,}"
        found = known[name] if name in known else digest_file(path)
    except OSError as error:
        return f"{name}: cannot be read ({error.strerror})"
    return None if found == written else f"{name}: is damaged, its content is not what was written"


def candidates(root: Path) -> list[tuple[int, Path]]:
    """Newest first. A step that a crash left under its temporary old name only, in the midst of being replaced, is one too."""
    there = list(root.iterdir()) if root.is_dir() else []
    named = {int(match[1]): path for path in there if (match := OLD.fullmatch(path.name))}
    named |= {int(match[1]): path for path in there if (match := NAME.fullmatch(path.name))}
    return sorted(named.items(), reverse=True)


def broadcast_candidates(root: Path, world: World) -> list[tuple[int, Path]]:
    """As the main process sees them: another machine may see its folder a little later."""
    listed = world.run_on_main(lambda: [(step, folder.name) for step, folder in candidates(root)])
    return [(step, root / name) for step, name in listed]


def tidy(root: Path) -> None:
    """What crashed saves left: the unfinished goes, the old returns to its name unless the new one has it."""
    for step, folder in candidates(root):
        if folder.name != name_of(step):
            folder.rename(root / name_of(step))
    for leftover in (*root.glob(".step-*.part"), *root.glob(".step-*.old")):
        shutil.rmtree(leftover, ignore_errors=True)


def prune(root: Path, step: int, keep: int, world: World, known: Mapping[Path, Mapping[str, FileDigest]] | None = None) -> None:
    """Damaged ones do not count as kept. Later ones, of a run that went back, stay: they are refused, or replaced when it gets there."""
    kept = 1
    for other, folder in broadcast_candidates(root, world):
        if other >= step:
            continue
        if kept < keep and not problems(folder, other, world, (known or {}).get(folder)):
            kept += 1
        elif world.main:
            shutil.rmtree(folder, ignore_errors=True)
