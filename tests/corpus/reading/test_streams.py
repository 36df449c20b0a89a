"""Packed or not, here or elsewhere: the same bytes, and damage is never taken for an end."""

import gzip
import hashlib
import os
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

from limelight.corpus.reading.streams import content_hash, open_bytes, size_of, without_packing
from limelight.errors import DataError


def zstd(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


PACK = {".gz": gzip.compress, ".zst": zstd}
CONTENT = b"".join(b"line %d %x\n" % (i, i * i * 7919) for i in range(4000))


def read_all(address: str, size: int = 1000) -> bytes:
    with open_bytes(address) as stream:
        return b"".join(iter(lambda: stream.read(size), b""))


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("named", [True, False])
def test_packing_is_known_by_its_bytes_and_not_by_its_name(tmp_path: Path, suffix: str, named: bool) -> None:
    path = tmp_path / ("a.txt" + suffix * named)
    path.write_bytes(PACK[suffix](CONTENT))
    assert read_all(str(path)) == CONTENT


@pytest.mark.parametrize("suffix", PACK)
def test_several_members_are_read_as_one(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(PACK[suffix](CONTENT[:777]) + PACK[suffix](b"") + PACK[suffix](CONTENT[777:]))
    assert read_all(str(path)) == CONTENT


def test_a_zstd_file_may_begin_with_a_skippable_frame(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    path.write_bytes(b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstd(CONTENT))
    assert read_all(str(path)) == CONTENT


@pytest.mark.parametrize("suffix", PACK)
def test_a_packed_file_cut_anywhere_is_refused(tmp_path: Path, suffix: str) -> None:
    """Also at 0 bytes: packing nothing gives some bytes, so an empty .gz is a download that failed."""
    whole = PACK[suffix](CONTENT)
    cuts = sorted({0, 1, 2, 3, len(whole) - 1, *(len(whole) * i // 50 for i in range(50))})
    assert len(cuts) >= 50
    path = tmp_path / f"a{suffix}"
    for cut in cuts:
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="cut short") as caught:
            read_all(str(path))
        assert str(path) in str(caught.value), cut
        assert caught.value.exit_code == 65


@pytest.mark.parametrize("suffix", PACK)
def test_damage_and_trailing_bytes_are_refused(tmp_path: Path, suffix: str) -> None:
    whole = PACK[suffix](CONTENT)
    path = tmp_path / f"a{suffix}"
    path.write_bytes(whole + b"garbage")
    with pytest.raises(DataError, match="damaged"):
        read_all(str(path))
    if suffix == ".gz":  # zstd carries a checksum only if the writer asked for one
        path.write_bytes(whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:])
        with pytest.raises(DataError, match="damaged"):
            read_all(str(path))


def test_what_is_not_read_says_how_to_unpack_it(tmp_path: Path) -> None:
    for magic, command in ((b"BZh91AY", "bunzip2"), (b"\xfd7zXZ\0\0", "xz -d"), (b"PK\x03\x04zip", "unzip")):
        path = tmp_path / "a"
        path.write_bytes(magic)
        with pytest.raises(DataError, match=command):
            read_all(str(path))


def test_an_empty_plain_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"")
    assert read_all(str(tmp_path / "a.txt")) == b""


def test_addresses_read_as_paths_do(tmp_path: Path) -> None:
    packed = gzip.compress(CONTENT)
    (tmp_path / "a.gz").write_bytes(packed)
    with fsspec.open("memory://streams/a.gz", "wb") as file:
        file.write(packed)
    local, remote, url = str(tmp_path / "a.gz"), "memory://streams/a.gz", f"file://{tmp_path}/a.gz"
    for address in (local, remote, url):
        assert read_all(address) == CONTENT
        assert content_hash(address) == hashlib.sha256(packed).hexdigest()
        assert size_of(address) == len(packed)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("nowhere/a.txt", "does not exist"),
        ("memory://streams/nowhere", "does not exist"),
        ("nosuchprotocol://a", "known protocol"),
        (os.curdir, "is a folder"),
    ],
)
def test_what_cannot_be_opened_is_an_error_about_data(address: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        open_bytes(address)


def test_a_failing_disk_is_not_taken_for_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(CONTENT))

    class Failing:
        def read(self, size: int) -> bytes:
            raise OSError(5, "Input/output error")

        def close(self) -> None: ...

    with open_bytes(str(tmp_path / "a.gz")) as stream:
        monkeypatch.setattr(stream, "_stream", Failing())
        with pytest.raises(OSError, match="Input/output"):
            stream.read(10)


def test_only_the_packing_is_taken_off() -> None:
    assert [without_packing(name) for name in ("a.en.gz", "a.ZST", "a.gz.en")] == ["a.en", "a", "a.gz.en"]
