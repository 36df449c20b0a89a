"""A file of keys names the callers, with the SHA-256 of each key and what it is granted:

    [[keys]]
    name = "forum"
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    characters_per_month = 500000

A key is 43 random characters made by us (256 bits), so its plain SHA-256 can be stored: nobody can guess their way to it, and
a slow hash would only make every request slow.
"""

import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Self

import tomlkit
from pydantic import Field, field_validator, model_validator
from tomlkit.exceptions import ParseError

from limelight.config import Settings
from limelight.errors import ConfigError
from limelight.files import whole_file

KEY_BYTES = 32
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Key(Settings):
    """A key belongs to one caller. The name goes to logs and metrics; the key itself is nowhere."""

    name: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of the key, in hexadecimal.")
    requests_per_minute: int | None = Field(default=None, ge=1, le=1_000_000, description="A request with many texts counts as many.")
    characters_per_minute: int | None = Field(default=None, ge=1, le=1_000_000_000)
    characters_per_month: int | None = Field(default=None, ge=1, le=1_000_000_000_000)
    expires: date | None = Field(default=None, description="The last day on which it is good, UTC.")

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError("a name is made of letters, digits, . _ and -, at most 64, and begins with a letter or digit")
        return name


class KeyFile(Settings):
    keys: tuple[Key, ...] = Field(default=(), max_length=10_000)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = Counter(key.name for key in self.keys)
        problems = [f"two keys are called {name!r}" for name, times in sorted(names.items()) if times > 1]
        if len({key.sha256 for key in self.keys}) < len(self.keys):
            problems.append("two names have the same key; make another with --make-key")
        if problems:
            raise ValueError("\n".join(problems))
        return self


def today() -> date:
    """Quotas and keys end by UTC, wherever the server stands."""
    return datetime.now(UTC).date()


class Keys:
    """`Keys` holds the keys of a file, read again when asked. Files are changed by hand or by `add_key`."""

    def __init__(self, keys: tuple[Key, ...], path: Path | None = None, day: Callable[[], date] = today) -> None:
        self.path, self._day = path, day
        self._take(keys)

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls(_read(path).keys, path)

    def reload(self) -> None:
        """Read the same file again. If it cannot be used, the error says why and the keys of before stay good."""
        if self.path is not None:
            self._take(_read(self.path).keys)

    def find(self, key: str) -> Key | None:
        """Whose key it is, if it is good today.

        How long this takes does not depend on how much of a key is right: digests are compared, not keys, all of them, each to its end.
        """
        digest = digest_of(key).encode("ascii")
        found: Key | None = None
        for known, entry in self._known:
            if hmac.compare_digest(known, digest):
                found = entry
        return None if found is None or (found.expires is not None and self._day() > found.expires) else found

    @staticmethod
    def add_key(path: Path, name: str, **granted: Any) -> str:
        """A new key for `name`, stored in the file as a hash and returned this once. What else is in the file stays as it is."""
        key = secrets.token_urlsafe(KEY_BYTES)
        entry = Key(name=name, sha256=digest_of(key), **granted)
        document, known = _load_editable(path)
        if name in (other.name for other in known.keys):
            raise ConfigError(f"{path} has a key called {name!r}; take another name, or remove that entry first")
        KeyFile(keys=(*known.keys, entry))
        document.setdefault("keys", tomlkit.aot()).append(tomlkit.item(entry.model_dump(exclude_none=True)))
        _write(path, tomlkit.dumps(document).encode("utf-8"))
        return key

    def _take(self, keys: tuple[Key, ...]) -> None:
        self._known = tuple((key.sha256.encode("ascii"), key) for key in keys)


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _read(path: Path) -> KeyFile:
    if not path.exists():  # whoever left it out would let everybody in
        raise ConfigError(f"{path} does not exist, so nobody could call; make a key: limelight serve --make-key NAME --api-key-file {path}")
    try:
        return KeyFile.load(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; the user that runs the server must be able to") from None


def _load_editable(path: Path) -> tuple[Any, KeyFile]:
    """The file with its comments, and checked; both empty if there is none yet."""
    if not path.exists():
        return tomlkit.document(), KeyFile()
    known = _read(path)
    try:
        return tomlkit.parse(path.read_bytes()), known
    except ParseError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _write(path: Path, content: bytes) -> None:
    """Only for the owner's eyes, unless the file was made readable for others on purpose."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    with whole_file(path) as beside:
        beside.touch(mode=0o600)
        beside.write_bytes(content)
        beside.chmod(mode)
