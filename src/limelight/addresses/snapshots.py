"""`Snapshots` of a folder at an address follow each other by number, each whole, and a number is given once:

    s3://runs/en-de/
      snapshots/00000007.json       the names of all files, their sizes and hashes, and which objects they are; written last
      objects/00000005/4f3a...      a file by its hash, under the number of the snapshot its writer began with

A writer begins with a snapshot of its own that changes nothing (`begin`), by a conditional put. From then on whoever wrote before finds the
next number taken, and can neither add a snapshot nor, since names of objects have the number of their writer, remove a file of this one.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from limelight.addresses.folders import ObjectEntry, fetch_files
from limelight.addresses.object_store import ObjectStore
from limelight.errors import ConfigError, ModelFileError, StorageError
from limelight.files import Stamp, sha256_of, stamp_of, whole_folder

FORMAT: Final = 1
KEPT: Final = 2  # snapshots: who reads one has until the next but one
TRIES: Final = 5
FOLDER: Final = "snapshots"


class OvertakenError(StorageError):
    """Another writer has taken over; this one must end."""


@dataclass(frozen=True)
class Snapshot:
    number: int = 0
    holder: str = ""
    files: dict[str, ObjectEntry] = field(default_factory=dict)

    def encode(self) -> bytes:
        body = json.dumps({"format": FORMAT, **asdict(self)}).encode()
        return body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n"

    @classmethod
    def decode(cls, content: bytes, where: str) -> "Snapshot":
        body, _, checksum = content.partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != checksum.strip():
            raise ModelFileError(f"{where} is damaged, its checksum does not fit; delete it, and the one before counts")
        if (value := json.loads(body)).get("format") != FORMAT:
            raise ModelFileError(f"{where} has format {value.get('format')!r}, and this limelight reads {FORMAT}")
        return cls(value["number"], value["holder"], {name: ObjectEntry(**file) for name, file in value["files"].items()})


class Snapshots:
    def __init__(self, store: ObjectStore, holder: str = "") -> None:
        self.store, self._holder = store, holder
        self._writer = 0  # the number that this one began with
        self._last: list[Snapshot] = []
        self._hashes: dict[Stamp, str] = {}  # a file that is still the same is not read again

    def newest(self) -> Snapshot:
        """That of the highest number; one without files where there is none."""
        numbers = self._numbers()
        if not numbers:
            return Snapshot()
        return self._read(numbers[-1]) or self.newest()  # between listing and reading others may have followed it

    def fetch(self, choose: Callable[[dict[str, ObjectEntry]], dict[str, ObjectEntry]], folder: Path) -> Snapshot:
        """Some files of the newest, into an empty folder. One that was pruned meanwhile is followed by a newer one."""
        for _ in range(TRIES):
            found = self.newest()
            try:
                fetch_files(self.store, choose(found.files), folder)
                return found
            except ModelFileError:
                if self.newest().number == found.number:
                    raise
                for path in folder.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        raise StorageError(f"{self.store.address}: snapshots come faster than they can be read; try again")

    def begin(self, folder: Path) -> None:
        """Bring the folder up to date, and make this the only writer. The folder is current if nobody else wrote since it did."""
        for _ in range(TRIES):
            newest = self.newest()
            if newest.number == 0 and any(path.is_file() for path in folder.rglob("*")):
                raise ConfigError(
                    f"{self.store.address} holds no run, and {folder} is what this machine has of one there; look at AWS_ENDPOINT_URL, "
                    "give another address with -o, or delete that folder to begin anew"
                )
            if newest.holder != self._holder or not folder.exists():
                with whole_folder(folder) as beside:
                    newest = self.fetch(dict, beside)
            fence = Snapshot(newest.number + 1, self._holder, newest.files)
            if self.store.put_new(_name(fence.number), fence.encode()):
                self._writer, self._last = fence.number, [newest, fence]
                self._prune()
                return
        raise OvertakenError(f"{self.store.address}: others write there all the time; end them first")

    def commit(self, staged: Path) -> bool:
        """What is in this folder becomes the next snapshot. False: it is what the last one has."""
        before = self._last[-1]
        have = {file.sha256: file for snapshot in self._last for file in snapshot.files.values()}
        files: dict[str, ObjectEntry] = {}
        for path in sorted(path for path in staged.rglob("*") if path.is_file()):
            stamp = stamp_of(path)
            sha256 = self._hashes[stamp] = self._hashes.get(stamp) or sha256_of(path)
            if sha256 not in have:
                have[sha256] = ObjectEntry(f"objects/{self._writer:08d}/{sha256}", path.stat().st_size, sha256)
                self.store.put(have[sha256].name, path)
            files[path.relative_to(staged).as_posix()] = have[sha256]
        if files == before.files:
            return False
        new = Snapshot(before.number + 1, self._holder, files)
        while not self.store.put_new(_name(new.number), new.encode()):
            there = self._read(new.number)
            if there is None or there.holder != self._holder:
                raise OvertakenError(
                    f"{self.store.address} was taken over by another process, which goes on from snapshot {before.number}; this one ends"
                )
            self._last.append(there)  # ours, and the answer was lost
            new = replace(new, number=new.number + 1)
        self._last.append(new)
        self._prune()
        return True

    def _prune(self) -> None:
        """What the kept ones do not need goes: snapshots first. Nothing of a later writer is touched."""
        self._last = self._last[-KEPT:]
        kept = {file.name for snapshot in self._last for file in snapshot.files.values()}
        first = self._last[0].number
        self.store.delete([_name(number) for number in self._numbers() if number < first])
        latest = f"objects/{self._writer:08d}/~"  # sorts after all of this writer
        self.store.delete([name for name in self.store.names("objects") if name not in kept and name < latest])

    def _read(self, number: int) -> Snapshot | None:
        content = self.store.get(_name(number))
        return None if content is None else Snapshot.decode(content, f"{self.store.address}/{_name(number)}")

    def _numbers(self) -> list[int]:
        names = (Path(name).name for name in self.store.names(FOLDER))
        return sorted(int(name[:8]) for name in names if name[8:] == ".json" and name[:8].isdecimal())


def _name(number: int) -> str:
    return f"{FOLDER}/{number:08d}.json"
