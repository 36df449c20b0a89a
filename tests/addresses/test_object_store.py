"""Objects are whole or absent, and of all who create one at once a single one does."""

import hashlib
import io
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from obstore.exceptions import GenericError
from obstore.store import MemoryStore
from stores import Careless, Faulty, Quoting, in_memory

from limelight.addresses.folders import INSIDE, find_cache
from limelight.addresses.object_store import BLOCK, ObjectStore, open_bucket
from limelight.corpus.reading.streams import content_hash, size_of
from limelight.errors import ConfigError, MissingExtraError, ModelFileError, StorageError


def race(store: ObjectStore) -> int:
    with ThreadPoolExecutor(16) as threads:
        return sum(map(bool, threads.map(lambda number: store.put_new("manifest.json", str(number).encode()), range(16))))


def test_one_of_sixteen_creates_an_object() -> None:
    assert race(in_memory()) == 1


def test_a_store_that_ignores_conditions_would_be_noticed() -> None:
    assert race(Careless("s3://bucket/place", MemoryStore())) == 16


def test_an_answer_that_was_lost_is_no_other_writer() -> None:
    bucket = Faulty(MemoryStore())
    store = in_memory(bucket)
    bucket.lost = 1
    version = store.put_new("a", b"mine")
    assert version and store.put_new("a", b"another") is None
    bucket.lost = 1
    assert store.replace("a", b"mine again", version) and store.get("a") == b"mine again"
    assert store.replace("a", b"late", version) is None and store.get("a") == b"mine again"


def test_a_server_that_compares_without_quotes_replaces_what_still_stands() -> None:
    store = in_memory(Quoting(MemoryStore()))
    version = store.put_new("a", b"1")
    assert version == '"0"' and (second := store.replace("a", b"2", version))
    assert store.replace("a", b"late", version) is None and store.get("a") == b"2"
    assert store.replace("a", b"3", second) and store.get("a") == b"3"


def test_a_server_that_never_replaces_is_named() -> None:
    store = in_memory(Quoting(MemoryStore(), deaf=True))
    version = store.put_new("a", b"1")
    assert version is not None
    with pytest.raises(ConfigError, match=r"s3://bucket/place: this server cannot replace an object on a condition"):
        store.replace("a", b"2", version)


def test_what_never_arrived_is_an_error_with_the_address() -> None:
    bucket = Faulty(MemoryStore(), arrives=False)
    store = in_memory(bucket)
    for ask in (lambda: store.put("a", b"1"), lambda: store.get("a"), lambda: list(store.names()), lambda: store.delete(["a"])):
        bucket.lost = 1
        with pytest.raises(StorageError, match=r"s3://bucket/place.* cannot be reached \(connection closed"):
            ask()
    bucket.lost = 2  # the put, and the question what became of it
    with pytest.raises(StorageError):
        store.put_new("a", b"1")


@pytest.mark.parametrize("size", [0, 1, BLOCK, BLOCK + 1])
def test_a_file_is_fetched_in_blocks_and_verified(size: int, tmp_path: Path) -> None:
    store, content = in_memory(), b"x" * size
    store.put("a", content)
    digest = hashlib.sha256(content).hexdigest()
    store.fetch("a", tmp_path / "a", size, digest)
    assert (tmp_path / "a").read_bytes() == content
    with pytest.raises(ModelFileError, match="is not what its manifest says"):
        store.fetch("a", tmp_path / "b", size, "0" * 64)
    with pytest.raises(ModelFileError, match="is listed and not there") if size else pytest.raises(ModelFileError):
        store.fetch("missing", tmp_path / "b", size, "0" * 64)
    for more in (1, BLOCK, BLOCK + 1):
        with pytest.raises(ModelFileError, match="is not what its manifest says"):  # not a storage that is away
            store.fetch("a", tmp_path / "b", size + more, digest)
    assert not (tmp_path / "b").exists()


def test_an_object_that_is_too_large_is_not_read() -> None:
    store = in_memory()
    store.put("manifest.json", b"x" * 100)
    assert store.get("manifest.json", 100) == b"x" * 100
    with pytest.raises(ModelFileError, match="has 100 bytes, and none of its kind has more than 99"):
        store.get("manifest.json", 99)


@pytest.mark.parametrize(
    "address",
    [
        "s3://",
        "s3://bucket",
        "s3://bucket/",
        "s3://bucket/../x",
        "s3://bucket/a b",
        "s3://BUCKET/x",
        "s3://b/x?y",
        "s3://bucket//x",
        "s3://bucket/.",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="is no address; one is s3://BUCKET/NAME"):
        ObjectStore(address)


@pytest.mark.parametrize("name", ["..", "../a", "a/../b", "/a", "a//b", "a/", "", "a\\b", "./a", "a\0", "C:evil"])
def test_a_name_cannot_leave_its_folder(name: str) -> None:
    assert not INSIDE.fullmatch(name)
    assert INSIDE.fullmatch("checkpoints/step-0000001/..tensors.safetensors")


def test_without_the_extra_an_address_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'limelight\[s3\]'"):
        open_bucket("s3://models/en-de")


def test_an_address_at_another_endpoint_has_a_copy_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path))
    here = find_cache("runs", "s3://bucket/place")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert find_cache("runs", "s3://bucket/place") != here


def test_a_corpus_whose_storage_is_away_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise GenericError("connection closed")

        def readinto(self, buffer: Any) -> int:  # as a file of fsspec has it
            return len(self.read(len(buffer)))

        def size(self, path: str) -> int:
            raise GenericError("connection closed")

        def open(self, path: str, mode: str) -> "Away":
            return self

    monkeypatch.setattr("limelight.corpus.reading.streams.open_bucket", lambda address, filesystem: Away())
    for ask in (content_hash, size_of):
        with pytest.raises(StorageError, match=r"s3://text/a.en cannot be reached \(connection closed\)"):
            ask("s3://text/a.en")
