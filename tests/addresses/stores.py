"""Object stores for tests: in memory, with faults of the network, and one that ignores conditions."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore")
from obstore.exceptions import GenericError, PreconditionError
from obstore.store import MemoryStore

from limelight.addresses.object_store import ObjectStore


def in_memory(bucket: Any = None) -> ObjectStore:
    return ObjectStore("s3://bucket/place", bucket or MemoryStore())


class Faulty:
    """A bucket whose next answers are lost. `arrives`: after the server did what was asked for."""

    def __init__(self, bucket: Any, arrives: bool = True) -> None:
        self.bucket, self.arrives, self.lost = bucket, arrives, 0

    def __getattr__(self, name: str) -> Any:
        if name == "put" or not self.arrives:
            return lambda *given, **named: self._lose(name, *given, **named)
        return getattr(self.bucket, name)

    def _lose(self, name: str, *given: Any, **named: Any) -> Any:
        if self.lost <= 0:
            return getattr(self.bucket, name)(*given, **named)
        self.lost -= 1
        if self.arrives:
            getattr(self.bucket, name)(*given, **named)
        raise GenericError("connection closed before message completed")


class Quoting:
    """A bucket as Ceph serves it: ETags are told in quotes, and compared without. `deaf`: no ETag that is sent ever fits."""

    def __init__(self, bucket: Any, deaf: bool = False) -> None:
        self.bucket, self.deaf = bucket, deaf

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bucket, name)

    def put(self, name: str, content: bytes, mode: Any = "overwrite", **named: Any) -> Any:
        if isinstance(mode, dict):
            if mode["e_tag"].startswith('"') or self.deaf:
                raise PreconditionError("412 Precondition Failed")
            mode = {"e_tag": '"' + mode["e_tag"] + '"'}  # as the store in memory knows it
        return self.bucket.put(name, content, mode=mode, **named)


class Careless(ObjectStore):
    """A store as rclone and s3rver serve it: a condition is ignored."""

    def _put_if(self, name: str, content: bytes, mode: Any) -> str | None:
        self.put(name, content)
        return self.get_versioned(name)[1]  # type: ignore[index]


def write_files(folder: Path, **contents: str) -> Path:
    """write_files(folder, a="1") makes a file `a`; `in__a` lies in a folder."""
    for name, content in contents.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return folder


def read_files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in folder.rglob("*") if path.is_file()}
