"""A `ShardCache` holds shards of a prepared corpus at an address on this machine, as many as LIMELIGHT_CACHE_GB allows.

    cache/prepared/KEY/4f3a...        a file by its hash; those that were used last stay

All processes of a machine share the folder. A file that is gone is fetched again, and one that is removed can be read to its end by who has
mapped it, so that whatever one of them removes breaks nothing of another.
"""

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from threading import Thread
from typing import Final

from limelight.addresses.folders import find_cache, lock
from limelight.addresses.object_store import RUN_SECONDS, ObjectStore
from limelight.corpus.manifest import FileEntry
from limelight.errors import ConfigError, LimelightError
from limelight.files import sha256_of, whole_file

ADDRESS: Final = "address"  # in a prepared folder: where its shards of training are
BOUND: Final = "LIMELIGHT_CACHE_GB"
GIGABYTE: Final = 10**9


def read_bound() -> float:
    """Most bytes of prepared text that this machine keeps of an address."""
    given = os.environ.get(BOUND) or "inf"
    with suppress(ValueError):
        if (most := float(given) * GIGABYTE) > 0:
            return most
    raise ConfigError(f"{BOUND}={given[:40]} is no size; give a number of gigabytes, such as 10, or nothing for as much as there is")


class ShardCache:
    def __init__(self, address: str) -> None:
        self.address, self.most = address, read_bound()
        self._place, self._ahead = find_cache("prepared", address), Thread()

    @classmethod
    def of(cls, folder: Path) -> "ShardCache | None":
        """That of a prepared folder; None where it has its shards itself."""
        return cls((folder / ADDRESS).read_bytes().decode()) if (folder / ADDRESS).is_file() else None

    @cached_property
    def _store(self) -> ObjectStore:
        return ObjectStore(self.address, patience=RUN_SECONDS)

    def follow(self, now: Sequence[FileEntry], coming: Sequence[FileEntry]) -> None:
        """Files that are read now are there afterwards; those to come are fetched meanwhile. Why one cannot be is told when it is read."""
        if self._missing(now) and self._ahead.is_alive():
            self._ahead.join()
        self.bring(now)
        if self._missing(coming) and not self._ahead.is_alive():
            self._ahead = Thread(target=self._bring_ahead, args=(coming,), daemon=True)  # a process that ends does not wait for it
            self._ahead.start()

    def _bring_ahead(self, files: Sequence[FileEntry]) -> None:
        with suppress(LimelightError, OSError):
            self.bring(files)

    def find(self, file: FileEntry) -> Path:
        self.bring([file])
        return self._place / file.sha256

    def bring(self, files: Sequence[FileEntry]) -> None:
        """Each is there afterwards, verified, and is among the last to go."""
        for file in self._missing(files):
            with lock(self._place):
                if self._missing([file]):  # another process may have been faster
                    self._make_room(file.bytes)
                    with whole_file(self._place / file.sha256, durable=False) as beside:
                        self._store.fetch(file.path, beside, file.bytes, file.sha256)

    def _missing(self, files: Sequence[FileEntry]) -> list[FileEntry]:
        """Those that are there count as used now."""
        missing = []
        for file in files:
            try:
                os.utime(self._place / file.sha256)
            except FileNotFoundError:
                missing.append(file)
        return missing

    def _make_room(self, wanted: int) -> None:
        """Under the lock: nobody writes, so what is half written is of a process that was killed."""
        for part in self._place.glob(".*.part"):
            part.unlink()
        there = sorted((path.stat().st_mtime_ns, path.stat().st_size, path) for path in self._list_files())
        held = sum(size for _, size, _ in there)
        for _, size, path in there:
            if held + wanted <= self.most:
                break
            path.unlink()
            held -= size

    def remove_damaged(self) -> None:
        """What is not what its name says, as after a power failure, is fetched again."""
        with lock(self._place):
            for path in self._list_files():
                if sha256_of(path) != path.name:
                    path.unlink()

    def _list_files(self) -> list[Path]:
        return [path for path in self._place.iterdir() if not path.name.startswith(".")]

    def refuse_small(self, sizes: Sequence[int], at_once: int, groups: int) -> None:
        """`sizes` of all shards; `groups` of `at_once` must fit at a time, or all shards where they are not read in groups."""
        largest = sorted(sizes, reverse=True)
        needed, most = sum(largest[: at_once * groups] if at_once else largest), self.most
        if needed <= most:
            return
        fitting = sum(total <= most for total in accumulate(largest)) // groups
        why = f"{groups} groups of {at_once} shards" if at_once else "all shards: batch.shards_at_once is not set"
        fewer = f"batch.shards_at_once={fitting}" if fitting else "data.shard_megabytes, smaller, when it is prepared"
        raise ConfigError(
            f"{self.address}: training reads {needed:,} bytes of it at a time ({why}), but {BOUND} allows {int(most):,}; "
            f"set {BOUND}={math.ceil(needed / GIGABYTE * 1000) / 1000:g}, or {fewer}"
        )
