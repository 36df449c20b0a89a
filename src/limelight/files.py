"""Files are whole or absent: written beside the target, forced to disk, then renamed."""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; the target appears only if the block ends well.

    with whole_file(Path("a.json")) as beside:
        beside.write_bytes(b"{}")
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # not mkstemp: others may read what we write
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    with whole_file(path) as beside:
        beside.write_bytes(content)


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
