"""A `ShardCache` holds shards of a prepared corpus at an address on this machine, as many as LIMELIGHT_CACHE_GB allows.

All processes of a machine share its folder, of files by their hashes, and those that were used last stay. One that is gone is fetched
again, and one that is removed can be read to its end by who has mapped it: nobody's removing breaks anything of another.
"""

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate
from pathlib import Path
from threading import Thread, main_thread
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
        self._store = cache(lambda: ObjectStore(address, patience=RUN_SECONDS))  # when it is needed: not all that look at a run fetch

    def follow(self, now: Sequence[FileEntry], coming: Sequence[FileEntry]) -> None:
        """Files that are read now are there afterwards; those to come are fetched meanwhile. Why one cannot be is told when it is read."""
        if self._missing(now) and self._ahead.is_alive():
            self._ahead.join()
        self.bring(now)
        if self._missing(coming) and not self._ahead.is_alive():
            self._ahead = Thread(target=self._bring_ahead, args=(coming,))
            self._ahead.start()

    def _bring_ahead(self, files: Sequence[FileEntry]) -> None:
        with suppress(LimelightError, OSError):
            for file in files:
                if main_thread().is_alive():  # a process that ends waits for one file at most
                    self.bring([file])

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
                        self._store().fetch(file.path, beside, file.bytes, file.sha256)

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
        there = sorted((path.stat().st_mtime_ns, path.stat().st_size, path) for path in self._place.glob("[!.]*"))
        while there and sum(size for _, size, _ in there) + wanted > self.most:
            there.pop(0)[2].unlink()

    def remove_damaged(self) -> None:
        """What is not what its name says, as after a power failure, is fetched again."""
        with lock(self._place):
            for path in self._place.glob("[!.]*"):
                if sha256_of(path) != path.name:
                    path.unlink()

    def refuse_small(self, sizes: Sequence[int], at_once: int, groups: int) -> None:
        """`sizes` of all shards; `groups` of `at_once` must fit at a time, or all shards where they are not read in groups."""
        largest, most = sorted(sizes, reverse=True), self.most
        if (needed := sum(largest[: at_once * groups] if at_once else largest)) <= most:
            return
        fitting = sum(total <= most for total in accumulate(largest)) // groups
        why = f"{groups} groups of {at_once} shards" if at_once else "all shards: batch.shards_at_once is not set"
        fewer = f"batch.shards_at_once={fitting}" if fitting else "prepare it in smaller shards: limelight prepare ... shard_megabytes=1"
        raise ConfigError(
            f"{self.address}: training reads {needed:,} bytes of it at a time ({why}), but {BOUND} allows {int(most):,}; "
            f"set {BOUND}={math.ceil(needed / GIGABYTE * 1000) / 1000:g}, or {fewer}"
        )
