"""Files are whole or absent: written beside the target, forced to disk, then renamed."""

import hashlib
import math
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ModuleNotFoundError:  # on Windows
    import msvcrt

Stamp = tuple[int, int, int, int] | None


@contextmanager
def whole_file(path: Path, durable: bool = True) -> Iterator[Path]:
    """A path to write to; the target appears only if the block ends well.

    `durable=False` for intermediate files, which may be lost with the power: forcing them to disk costs more than making them again.

    with whole_file(Path("a.json")) as beside:
        beside.write_bytes(b"{}")
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # not mkstemp: others may read what we write
    try:
        yield beside
        if durable:
            force_to_disk(beside)
        beside.replace(path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:  # a write does not know its file
            error.filename = str(path)
        raise


def write_whole(path: Path, content: bytes, durable: bool = True) -> None:
    with whole_file(path, durable) as beside:
        beside.write_bytes(content)


def link_file(there: str | Path, here: str | Path) -> None:
    """A second name of a file; a copy, on a disk without second names."""
    try:
        os.link(there, here)
    except OSError:
        shutil.copy2(there, here)


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def put_folder(beside: Path, folder: Path) -> None:
    """A whole folder in place of another. It cannot be renamed over it: for a moment there is none."""
    old = beside.with_suffix(".old")
    if folder.exists():
        folder.rename(old)
    try:
        beside.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        raise
    force_to_disk(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder to write to, beside the target, whose place it takes only if the block ends well."""
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    beside.mkdir(parents=True)
    try:
        yield beside
        for path in (*beside.rglob("*"), beside):
            force_to_disk(path)
        put_folder(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def force_to_disk(path: Path) -> None:
    """Force a file, or the names in a folder, to disk."""
    if os.name == "nt" and path.is_dir():  # there names are kept without being asked
        return
    number = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # Windows forces only what may be written
    try:
        os.fsync(number)
    finally:
        os.close(number)


def try_lock(file: BinaryIO) -> bool:
    """Lock an open file for this process, until it is closed or the process ends. False: another one has it."""
    with suppress(BlockingIOError, PermissionError):
        if os.name == "nt":
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def await_lock(file: BinaryIO, patience: float = math.inf) -> bool:
    """Try until it is ours. False: another process had it for longer than `patience` seconds."""
    latest = time.monotonic() + patience
    while not try_lock(file):
        if time.monotonic() > latest:
            return False
        time.sleep(0.5)
    return True


def cache_folder() -> Path:
    """LIMELIGHT_CACHE, or the system's place for what can be fetched again."""
    if ours := os.environ.get("LIMELIGHT_CACHE"):
        return Path(ours)
    return Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME") or Path.home() / ".cache") / "limelight"


def stamp_of(path: Path) -> Stamp:
    """Tell which file stands there, without reading it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
