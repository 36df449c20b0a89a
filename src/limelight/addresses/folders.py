"""A folder at an address is a number of objects and a manifest that is written last: without it there is nothing to see.

What is fetched, or about to be published, lies in a cache on this machine: LIMELIGHT_CACHE, or else ~/.cache/limelight.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from limelight.addresses.object_store import ObjectStore, find_endpoint
from limelight.errors import ConfigError, ModelFileError, StorageError
from limelight.files import await_lock, cache_folder

MANIFEST: Final = "manifest.json"
INSIDE: Final = re.compile(r"(?!\.\.?(/|$))[^/\\:\0]+(/(?!\.\.?(/|$))[^/\\:\0]+)*")  # a path that cannot leave its folder


@dataclass(frozen=True)
class ObjectEntry:
    """An entry is an object as it must be found."""

    name: str
    bytes: int
    sha256: str


def find_cache(kind: str, address: str) -> Path:
    """A folder of the cache, which is there afterwards, and which others may not look into: find_cache("runs", "s3://runs/en-de").

    The same address at another endpoint is something else.
    """
    place = cache_folder() / kind / hashlib.sha256(f"{find_endpoint()} {address}".strip().encode()).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place.resolve()


def name_copy(address: str) -> str:
    """name_copy("s3://models/en-de/") -> "en-de": a copy is called as its original, since people read the name of a translator."""
    return address.rstrip("/").rpartition("/")[2]


@contextmanager
def lock(place: Path, wait: bool = True) -> Iterator[None]:
    """One process of this machine at a time; the lock goes with the process, however it ends."""
    with (place / ".lock").open("ab") as file:
        if not await_lock(file, math.inf if wait else 0.0):
            raise ConfigError(f"another process of this machine works in {place}; wait for it")
        yield


def fetch_files(store: ObjectStore, files: Mapping[str, ObjectEntry], folder: Path) -> None:
    """Into a new folder, each verified when it has arrived. What the names say is not believed: they are a stranger's."""
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    if strange := [name[:99] for name in files if not INSIDE.fullmatch(name) or name in folders or (folder / name).exists()]:
        raise ModelFileError(f"{store.address}: its manifest lists {strange[0]!r}, which is no name of a file in it")
    for name, file in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        store.fetch(file.name, folder / name, file.bytes, file.sha256)


def publish(store: ObjectStore, folder: Path, names: Iterable[str], force: bool = False) -> None:
    """The manifest goes first when another is replaced, and comes last: a reader finds all of it, or nothing."""
    manifest, there = (folder / MANIFEST).read_bytes(), store.get(MANIFEST)
    if there == manifest:
        return
    if there is not None and not force:
        raise ConfigError(f"{store.address} holds something else; name another address, or --force to replace it")
    store.delete([MANIFEST])
    for name in names:
        store.put(name, folder / name)
    if not store.put_new(MANIFEST, manifest):
        raise StorageError(f"{store.address}: another process publishes there too, and was faster; name another address")
