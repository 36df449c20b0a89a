"""A `PublishedOffer` says what would be fetched: from where, how large, under which licence. Nothing of it is here until it is taken."""

import json
import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from limelight.errors import StorageError
from limelight.files import await_lock, force_to_disk, put_folder, write_whole

FACTS = ".fetched.json"  # where it came from; hidden, since a folder of a corpus is read
Tell = Callable[[float, float], None]  # bytes that are here, and of how many


@dataclass(frozen=True)
class PublishedOffer:
    name: str  # as it was asked for: opus:Tatoeba/de-en
    address: str
    size: int  # bytes to be sent
    room: int  # bytes on disk, at most
    license: str
    folder: Path  # where it will lie
    get: Callable[[Path, Tell], None]  # into a folder that may hold what an earlier attempt left
    files: Collection[str] = ()  # their names in the folder, where they are known

    def describe(self) -> str:
        """On one line, without what a terminal would obey: a server wrote some of it."""
        told = f"{self.name}: {self.address}, {self.size / 1e6:,.1f} MB, licence: {self.license}; it will lie in {self.folder}"
        return re.sub(r"[^ -~\u00a0-\U0010ffff]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", "\ufffd", told)

    def take(self, tell: Tell = lambda done, total: None) -> Path:
        """Fetch it. The folder is whole or absent; of several processes one fetches, and the others wait."""
        parent = self.folder.parent
        try:
            parent.mkdir(parents=True, exist_ok=True)
            with (parent / f".{self.folder.name}.lock").open("ab") as file:
                await_lock(file)
                if not self.folder.is_dir():
                    self._fill(self.folder.with_name(f".{self.folder.name}.part"), tell)
        except OSError as error:  # of the disk; those of a network were explained
            raise StorageError(f"{self.name} cannot be kept in {parent} ({error}); name another place by LIMELIGHT_CACHE") from None
        return self.folder

    def _fill(self, part: Path, tell: Tell) -> None:
        part.mkdir(exist_ok=True)
        needed = self.room - sum(path.stat().st_size for path in part.rglob("*") if path.is_file())
        if (free := shutil.disk_usage(part).free) < needed:
            raise StorageError(
                f"{self.name} needs {needed / 1e6:,.1f} MB, and {part.parent} has {free / 1e6:,.1f} MB left; make room, or name another "
                "place by LIMELIGHT_CACHE"
            )
        self.get(part, tell)
        facts = {"name": self.name, "address": self.address, "bytes": self.size, "license": self.license}
        write_whole(part / FACTS, json.dumps(facts, ensure_ascii=False).encode() + b"\n")
        for path in part.rglob("*"):
            force_to_disk(path)
        put_folder(part, self.folder)
