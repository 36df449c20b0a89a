"""manifest.json lists every file with its size and sha256, checked before any of them is parsed."""

import hashlib
import json
import logging
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import Field

from limelight.bundle.layout import AGAIN, EXPORT, FORMAT, MANIFEST, NAMES, NEEDED, PIECES, VOCABULARIES, refusal
from limelight.bundle.strict_json import read_json, settings_of
from limelight.config import Settings
from limelight.files import sha256_of, write_whole

INSIDE = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)  # a path that cannot leave the folder

logger = logging.getLogger(__name__)


class Entry(Settings):
    """An entry is a file as it must be found."""

    path: str
    bytes: int = Field(ge=0)
    sha256: str


class Manifest(Settings):
    format: int
    files: tuple[Entry, ...]
    checksum: str


def verify(folder: Path, later: str | None = None) -> dict[str, Entry]:
    """The files that the manifest lists, once each was found as it was written. Else one error with every problem.

    Of the file `later` only the size is looked at; whoever reads it verifies it then (`difference`).
    """
    entries = read_manifest(folder).files
    listed = Counter(entry.path for entry in entries)
    problems = [f"{MANIFEST}: lists {path[:99]!r} {times} times" for path, times in listed.items() if times > 1]
    problems += [f"{MANIFEST}: does not list {name}" for name in NEEDED if name not in listed]
    for both, source, target in (PIECES, VOCABULARIES):
        found = {both, source, target} & listed.keys()
        if found not in ({both}, {source, target}) and (found or both in PIECES):
            problems.append(f"{MANIFEST}: must list either {both}, or {source} and {target}")
    different = [problem for entry in entries if (problem := difference(folder, entry, entry.path != later))]
    if len(different) > len(entries) / 2:
        problems.append(f"{MANIFEST}: most files are not what it lists; it may belong to another bundle")
    problems += different
    strays = [path for path in _paths(folder) if path != MANIFEST and path not in listed]
    problems += [f"{path}: is not listed, so that it cannot be verified; delete it" for path in strays if is_ours(path)]
    if problems:
        raise refusal(folder, problems, advice=f"{AGAIN}; after a change that was meant, have it listed anew by `relist`")
    if strays:
        logger.info("%s: neither listed nor read: %s", folder, ", ".join(strays))
    return {entry.path: entry for entry in entries}


def relist(folder: Path) -> None:
    """Write the manifest of what stands in the folder, after a change that was meant. What is no part of a bundle is left out."""
    ours = [path for path in _paths(folder) if is_ours(path)]
    files = [{"path": p, "bytes": (folder / p).stat().st_size, "sha256": sha256_of(folder / p)} for p in ours]
    write_whole(folder / MANIFEST, seal({"format": FORMAT, "files": files}))


def is_ours(path: str) -> bool:
    """Is a path the name of a file that a bundle may have, beside its manifest?"""
    return path in NAMES or (path.startswith(EXPORT) and not path.rpartition("/")[2].startswith("."))  # as a file manager leaves


def _paths(folder: Path) -> list[str]:
    """What lies in the folder and in its export, relative and sorted: ["README.md", "config.json", ...]."""
    found = [*folder.iterdir(), *(folder / EXPORT).rglob("*")]
    return sorted(path.relative_to(folder).as_posix() for path in found if path.is_symlink() or not path.is_dir())


def seal(body: dict[str, Any]) -> bytes:
    """The manifest as it is written, with a checksum of its own content."""
    checksum = hashlib.sha256(json.dumps(body, ensure_ascii=False).encode()).hexdigest()
    return json.dumps({**body, "checksum": checksum}, indent=1, ensure_ascii=False).encode() + b"\n"


def read_manifest(folder: Path) -> Manifest:
    if problem := _absence(folder, MANIFEST):
        raise refusal(folder, [problem])
    content, value = read_json(folder, MANIFEST)
    # Byte for byte what we would write: a flipped bit anywhere, in a space or in the checksum too, is this file's own damage.
    if seal({key: part for key, part in value.items() if key != "checksum"}) != content:
        raise refusal(folder, [f"{MANIFEST}: is damaged, its checksum does not fit"])
    return settings_of(Manifest, folder, MANIFEST, value)


def difference(folder: Path, entry: Entry, content: bool = True) -> str | None:
    """How a file differs from what is listed, if it does; without `content` as far as that is seen from outside."""
    name = entry.path
    if not INSIDE.fullmatch(name):
        return f"{MANIFEST}: lists {name[:99]!r}, which is no name of a file in a bundle"
    try:
        if problem := _absence(folder, name):
            return problem
        size = (folder / name).stat().st_size
        if size != entry.bytes:
            return f"{name}: has {size:,} bytes, but was written with {entry.bytes:,}"
        if content and sha256_of(folder / name) != entry.sha256:
            return f"{name}: is damaged, its content is not what was written"
    except OSError as error:
        return f"{name}: cannot be read ({error.strerror})"
    return None


def _absence(folder: Path, name: str) -> str | None:
    """Why there is no regular file of this name in the folder, if there is none."""
    path = folder / name
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return f"{name}: is missing"
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        return f"{name}: is a link that leads out of the folder; put the file itself there, as cp -L does"
    return None if path.is_file() else f"{name}: is not a regular file"
