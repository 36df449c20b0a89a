"""Translated files are kept in memory until they are fetched. They stay for a short time, for their owner, and no more than fit.

name = uploads.keep(b"...", "menu.po", owner="anna")       ->  "Zr3...Q.menu.po", which nobody can guess
uploads.take(name, owner="anna")                           ->  the file, and it is gone
"""

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from limelight.documents.archives.archive import sample_archive
from limelight.documents.encodings import find_mark
from limelight.serving.refusals import Busy

LARGEST = 64 << 20  # bytes of all files together
MOST = 100  # files
SECONDS = 900.0  # a file is kept for
LONGEST_NAME = 80  # characters
BYTES = "application/octet-stream"  # a browser shall save it and not show it: it holds what a stranger wrote
SAMPLE = 4_000  # bytes that are looked at for the language
# A word is tried once, from its beginning: else a-a-a-... would be searched for its end from each of its letters.
_NO_WORDS = re.compile(r"<[^<>]*>|(?<![\w-])[\w-]++: |\bmsg\w+|[\d:,>-]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class StoredFile:
    data: bytes
    name: str  # as its owner calls it
    owner: str
    until: float
    secret: str  # a second one, for the dialect that has two
    characters: int  # that it cost

    @property
    def disposition(self) -> str:
        """The header that makes a browser save it, whatever it is, under a name that is no path."""
        given = quote(plain_name(self.name), safe="")
        return f"attachment; filename=\"{safe_name(self.name)}\"; filename*=UTF-8''{given}"


class Uploads:
    def __init__(self, now: Callable[[], float] = time.monotonic, largest: int = LARGEST, most: int = MOST) -> None:
        self._now, self._largest, self._most = now, largest, most
        self._files: dict[str, StoredFile] = {}

    def keep(self, data: bytes, name: str, owner: str, characters: int = 0) -> str:
        """The name by which it can be fetched."""
        for dropped in self._to_drop(len(data), owner):
            del self._files[dropped]
        key = f"{secrets.token_urlsafe(24)}.{safe_name(name)}"
        until, secret = self._now() + SECONDS, secrets.token_hex(32)
        self._files[key] = StoredFile(data, name, owner, until, secret, characters)
        return key

    def check_room(self, size: int, owner: str) -> None:
        """`Busy` if a file of this size cannot be kept. Asked before the work, so that nothing is translated in vain."""
        self._to_drop(size, owner)

    def _to_drop(self, size: int, owner: str) -> list[str]:
        """The oldest files of the same owner, as many as make room. What others wait for stays; and without keys, when all have the same
        name, every file may be another's."""
        self.forget_old()
        own = (key for key, kept in self._files.items() if owner and kept.owner == owner)
        dropped: list[str] = []
        held = self.size + size
        while len(self._files) - len(dropped) >= self._most or held > self._largest:
            oldest = next(own, None)
            if oldest is None:
                wait = min((kept.until for kept in self._files.values()), default=self._now() + 1) - self._now()
                raise Busy("too many translated files wait to be fetched", "try again later", retry_after=wait)
            dropped.append(oldest)
            held -= len(self._files[oldest].data)
        return dropped

    def find(self, key: str, owner: str) -> StoredFile | None:
        """None too if it is somebody else's: that it exists is not told."""
        self.forget_old()
        kept = self._files.get(key)
        return kept if kept is not None and kept.owner == owner else None

    def take(self, key: str, owner: str) -> StoredFile | None:
        """The file, once."""
        kept = self.find(key, owner)
        if kept is not None:
            del self._files[key]
        return kept

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(len(kept.data) for kept in self._files.values())

    def forget_old(self) -> None:
        """Drop what was not fetched in time. Called by a timer too, so that nothing outstays it in an idle server."""
        now = self._now()
        self._files = {key: kept for key, kept in self._files.items() if kept.until > now}


def sample_of(data: bytes) -> str:
    """The beginning of a file, for its language to be detected: without what is English in every catalogue, and times of subtitles."""
    if data.startswith(b"PK\3\4"):  # most of its beginning is tags
        return _NO_WORDS.sub(" ", sample_archive(data, 10 * SAMPLE).decode("utf-8", "ignore"))[:SAMPLE]
    mark, encoding = find_mark(data)
    return _NO_WORDS.sub(" ", data[len(mark) : SAMPLE].decode(encoding or "utf-8", "ignore"))


def plain_name(name: str) -> str:
    """plain_name("..\\\\Menü 1.po") -> "Menü 1.po": what people read, without a path, hidden files, or signs that deceive the eye."""
    last = _CONTROLS.sub("", name).replace("\\", "/").rsplit("/", 1)[-1]
    return last.rstrip(". ")[-LONGEST_NAME:].lstrip(". ") or "file"


def safe_name(name: str) -> str:
    """safe_name("../Menü 1.po") -> "Men_1.po": for URLs and headers. Always with a letter or digit, never a path."""
    plain = _UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip("._-")
    return plain[-LONGEST_NAME:].lstrip("._-") or "file"
