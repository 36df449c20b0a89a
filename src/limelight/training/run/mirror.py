"""A `RunMirror` keeps a run at an address: it works in a folder of this machine, and each saved checkpoint is committed as a snapshot.

    cache/runs/KEY/en-de/        the run folder, as any other; beside it `address` and `holder`: who this folder is, of all that ever wrote

Another machine goes on from the newest snapshot, this one from its folder if nobody wrote since. What becomes visible at the address is a
run folder as it stood at one moment, with all that belongs together.
"""

import logging
import secrets
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from limelight.addresses.folders import MANIFEST, find_cache, lock, name_copy
from limelight.addresses.lease import Lease
from limelight.addresses.object_store import RUN_SECONDS, ObjectStore, is_address
from limelight.addresses.snapshots import OvertakenError, Snapshots
from limelight.errors import ConfigError, LimelightError
from limelight.files import link_file, write_whole
from limelight.training.events import Event, RunNotice, Watcher

ADDRESS, HOLDER, STAGED = "address", "holder", "staged"
FAILURES: Final = 3  # commits in a row, after which the run ends: what it learns from then on could be lost

logger = logging.getLogger(__name__)


def place_run(address: str) -> Path:
    """The folder of this machine in which a run at this address works. Every process of the run finds the same."""
    ObjectStore(address)  # refused now, if it is none
    place = find_cache("runs", address.rstrip("/"))
    write_whole(place / ADDRESS, address.rstrip("/").encode())
    return place / name_copy(address)


@contextmanager
def mirror_run(folder: Path, watch: Watcher, patience: float, hosts: int) -> Iterator[Watcher]:
    """A watcher that commits what is saved, around the whole of a run; the one given, where the folder is a folder and no more."""
    place = folder.parent
    address = (place / ADDRESS).read_bytes().decode() if (place / ADDRESS).is_file() else ""
    if not is_address(address) or folder.resolve() != find_cache("runs", address) / name_copy(address):
        yield watch
        return
    if hosts > 1:
        raise ConfigError(f"{address}: a run on {hosts} machines needs a folder that all of them see; give one with -o")
    with lock(place, wait=False):
        if not (place / HOLDER).exists():
            write_whole(place / HOLDER, secrets.token_hex(16).encode())
        store, holder = ObjectStore(address, patience=RUN_SECONDS), (place / HOLDER).read_bytes().decode()
        if store.get(MANIFEST) is not None:
            raise ConfigError(f"{address} holds a bundle or prepared text, where a run is to be; give another address with -o")
        lease = Lease(store, holder)
        lease.acquire(patience)
        with ExitStack() as stack:
            stack.callback(lease.release)
            snapshots = Snapshots(store, holder)
            snapshots.begin(folder)
            mirror = RunMirror(folder, snapshots, lease, watch)
            stack.callback(mirror.finish)
            yield mirror.see


class RunMirror:
    def __init__(self, folder: Path, snapshots: Snapshots, lease: Lease, watch: Watcher) -> None:
        self.folder, self._snapshots, self._lease, self._watch = folder, snapshots, lease, watch
        self._staged = folder.parent / STAGED
        self._thread = ThreadPoolExecutor(1, "mirror")
        self._coming: Future[bool] | None = None
        self._failed = 0

    def see(self, event: Event) -> None:
        """Commit in the background what was saved, unless the last commit is still on its way: then the next one has it."""
        self._watch(event)
        self._settle(wait=False)
        if self._lease.lost:
            raise OvertakenError(f"the lease of {self._snapshots.store.address} was taken by another process, which goes on; this one ends")
        if isinstance(event, RunNotice) and event.kind == "saved" and self._coming is None:
            self._stage()
            self._coming = self._thread.submit(self._snapshots.commit, self._staged)

    def finish(self) -> None:
        """However the run ended, the address has what the folder has. This time a failure is an error: nobody tries again."""
        try:
            self._settle(wait=True)
            self._stage()
            self._snapshots.commit(self._staged)
        finally:
            self._thread.shutdown()
            shutil.rmtree(self._staged, ignore_errors=True)

    def _settle(self, wait: bool) -> None:
        if self._coming is None or not (wait or self._coming.done()):
            return
        coming, self._coming = self._coming, None
        try:
            coming.result()
            self._failed = 0
        except OvertakenError:
            raise
        except LimelightError as error:
            self._failed += 1
            if self._failed >= FAILURES:
                raise
            logger.warning("the checkpoint is on this machine only, and is committed with the next one: %s", error)

    def _stage(self) -> None:
        """The folder as it stands now, by second names of its files: those are replaced and never changed, but for logs, which grow."""
        shutil.rmtree(self._staged, ignore_errors=True)
        self._staged.mkdir()
        for path in self.folder.rglob("*"):
            inner = path.relative_to(self.folder)
            if not path.is_file() or path.is_symlink() or any(part.startswith(".") for part in inner.parts):
                continue
            (self._staged / inner).parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".jsonl" or "tensorboard" in inner.parts:
                shutil.copyfile(path, self._staged / inner)
            else:
                link_file(path, self._staged / inner)
