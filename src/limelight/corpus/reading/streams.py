"""`open_bytes` opens a file anywhere, packed or not, as a stream of plain bytes.

open_bytes("train.en.gz")  and  open_bytes("s3://bucket/train.en.zst")  read alike: what follows sees plain bytes.

gzip and zstd are known by their first bytes, not by their name. A name that promises gzip or zstd must hold it, so a
file of 0 bytes called .gz is a cut file and not an empty one: packing nothing gives at least 9 bytes. A gzip file of
several members that is cut exactly between two of them cannot be told from a whole one.
"""

import gzip
import hashlib
import io
import zlib
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import fsspec

from limelight.addresses.object_store import is_address, open_bucket, tell_errors
from limelight.errors import DataError, MissingExtraError

CODEC_OF_SUFFIX = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
BLOCK = 1 << 20

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# Skippable frames, as pzstd writes first.
_MAGIC |= {bytes([low]) + b"\x2a\x4d\x18": "zstd" for low in range(0x50, 0x60)}
_UNREADABLE = {b"\xfd7zXZ\0": ("xz", "xz -d"), b"BZh": ("bzip2", "bunzip2"), b"PK\x03\x04": ("zip", "unzip")}


_reading: dict[str, io.BufferedReader] = {}  # what is open now, so that progress can be told in bytes


class ByteStream:
    """The stream gives bytes from front to back. Damage to a packed file is a DataError at the read that meets it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._raw = _reading[address] = open_raw(address)
        try:
            self._codec = _codec_of(address, self._raw)
        except BaseException:
            self._raw.close()
            raise
        self._stream: Any = self._raw
        if self._codec:
            self._stream = _unpack(self._raw, self._codec)

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none only at the end."""
        try:
            return cast(bytes, self._stream.read(size))
        except (OSError, EOFError, zlib.error) as error:
            if getattr(error, "errno", None) is not None or not self._codec:  # the disk or the network failed; the file may be whole
                raise
            raise DataError(
                f"{self.address}: this {self._codec} file is cut short or damaged ({error}); fetch or pack it again, "
                f"and test it with `{self._codec} -t`"
            ) from None

    def close(self) -> None:
        self._stream.close()
        self._raw.close()
        _reading.pop(self.address, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _unpack(raw: io.BufferedReader, codec: str) -> Any:
    """Pyarrow's codecs are faster, and know zstd; where it is not installed, Python's own gzip does."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        if codec != "gzip":
            raise MissingExtraError("pyarrow", f"a file packed with {codec}", "train", f", or unpack it first: {codec} -d") from None
        return gzip.GzipFile(fileobj=raw)
    return pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec)


def open_bytes(address: str) -> ByteStream:
    """The unpacked bytes of a local path or an fsspec address."""
    return ByteStream(address)


def position(address: str) -> int:
    """How many stored bytes of a file that is being read now have been taken; 0 for any other."""
    raw = _reading.get(address)
    return 0 if raw is None or raw.closed else raw.tell()


def open_raw(address: str) -> io.BufferedReader:
    """The bytes as they are stored, seekable where the storage is."""
    try:
        if "://" not in address:
            return Path(address).open("rb")
        filesystem, path = filesystem_of(address)
        if not is_address(address):
            return io.BufferedReader(filesystem.open(path, "rb"), BLOCK)
        with tell_errors(address):
            file = filesystem.open(path, "rb")
        file.read = tell_errors(address)(file.read)
        return io.BufferedReader(file, BLOCK)
    except FileNotFoundError:
        raise DataError(f"{address} does not exist; check the name") from None
    except IsADirectoryError:
        raise DataError(f"{address} is a folder where a file is needed; name the files in it") from None
    except PermissionError:
        raise DataError(f"{address} may not be read by this user; change its permissions or copy it") from None


def filesystem_of(address: str) -> tuple[Any, str]:
    """memory://a/b -> (the filesystem, its own path for it)."""
    if is_address(address):
        return open_bucket(address, filesystem=True), address.removeprefix("s3://").rstrip("/")
    try:
        filesystem, path = fsspec.core.url_to_fs(address)
        return filesystem, str(path)
    except Exception as error:  # of dozens of packages of others, each with errors of its own
        raise unreachable(address, error) from None


def unreachable(address: str, error: Exception) -> DataError:
    """Return the error for whatever a package that reads from elsewhere objects to."""
    why = f"{type(error).__name__}: {error}" if not isinstance(error, (ImportError, ValueError)) else str(error)
    return DataError(f"{address} cannot be read ({why.partition(chr(10))[0][:300]}); use a path, or an address of a known protocol")


def content_hash(address: str) -> str:
    """SHA-256 of the bytes as they are stored, in hexadecimal."""
    digest = hashlib.sha256()
    with open_raw(address) as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def size_of(address: str) -> int:
    """Count the bytes as they are stored."""
    if "://" not in address:
        return Path(address).stat().st_size
    filesystem, path = filesystem_of(address)
    with tell_errors(address) if is_address(address) else nullcontext():
        return int(filesystem.size(path))


def without_packing(address: str) -> str:
    """train.en.gz -> train.en"""
    for suffix in CODEC_OF_SUFFIX:
        if address.lower().endswith(suffix):
            return address[: -len(suffix)]
    return address


def _codec_of(address: str, raw: io.BufferedReader) -> str | None:
    head = raw.peek(8)
    for magic, (name, command) in _UNREADABLE.items():
        if head.startswith(magic):
            raise DataError(f"{address} is packed with {name}, which is not read; unpack it first: {command} {address}")
    found = next((codec for magic, codec in _MAGIC.items() if head.startswith(magic)), None)
    promised = next((codec for suffix, codec in CODEC_OF_SUFFIX.items() if address.lower().endswith(suffix)), None)
    if promised and not found:
        raise DataError(
            f"{address}: the name says {promised}, but the file does not begin like one: it is cut short, damaged or "
            f"not packed; fetch it again, or if it is plain text, remove the ending from its name"
        )
    return found
