"""Bundles and prepared corpora at an address are fetched whole and verified, or not at all."""

import json
import logging
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from obstore.store import MemoryStore

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from prepared_corpora import make
from stores import Faulty, in_memory, read_files, write_files

from limelight.addresses.folders import publish
from limelight.addresses.object_store import ObjectStore
from limelight.addresses.snapshots import Snapshots
from limelight.bundle.manifest import seal, verify
from limelight.bundle.remote import MOST_KEPT, fetch_bundle
from limelight.cli.remote_folders import local_folders
from limelight.corpus.remote import fetch_prepared, list_prepared
from limelight.errors import ConfigError, ModelFileError, StorageError
from limelight.translator.translate import Translator

STORED = Path(__file__).parents[1] / "bundles" / "format-1"
ADDRESS = "s3://bucket/place"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """A bundle in memory, which is what any address leads to."""
    bucket = MemoryStore()
    monkeypatch.setattr("limelight.addresses.object_store.open_bucket", lambda address, patience: bucket)
    made = ObjectStore(ADDRESS)
    publish(made, STORED, list(verify(STORED)))
    yield made


def test_a_bundle_is_fetched_once_and_is_the_same(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetch_bundle(ADDRESS)
    assert read_files_of(folder) == read_files_of(STORED) and folder.name == "place"
    monkeypatch.setattr(ObjectStore, "fetch", None)
    assert fetch_bundle(ADDRESS) == folder


@pytest.mark.slow  # it loads an engine
def test_a_program_loads_a_translator_from_its_address(store: ObjectStore) -> None:
    with Translator.load(ADDRESS) as translator:
        assert translator.translate(["three seven one"])[0].text == "drei sieben eins"


def read_files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_manifest_is_written_last_and_without_it_there_is_nothing(store: ObjectStore, tmp_path: Path) -> None:
    other, names = in_memory(), []
    other.put = lambda name, content: names.append(name)  # type: ignore[method-assign]
    publish(other, STORED, list(verify(STORED)))
    assert sorted(names) == sorted(verify(STORED)) and list(other.names()) == ["manifest.json"]
    store.delete(["manifest.json"])
    with pytest.raises(ModelFileError, match=r"s3://bucket/place is no bundle: neither it nor bundle/ in it has a manifest.json"):
        fetch_bundle(ADDRESS)


def test_what_is_there_is_replaced_only_when_asked_for(store: ObjectStore, tmp_path: Path) -> None:
    shutil.copytree(STORED, tmp_path / "other")
    (tmp_path / "other" / "manifest.json").write_bytes(b"{}")
    with pytest.raises(ConfigError, match="holds something else; name another address, or --force"):
        publish(store, tmp_path / "other", [])
    publish(store, tmp_path / "other", [], force=True)
    assert store.get("manifest.json") == b"{}"


@pytest.mark.parametrize("name", sorted(verify(STORED)))
def test_a_damaged_object_is_refused_and_nothing_is_kept(name: str, store: ObjectStore, cache: Path) -> None:
    content = bytearray((STORED / name).read_bytes())
    content[len(content) // 2] ^= 1
    store.put(name, bytes(content))
    with pytest.raises(ModelFileError, match=rf"s3://bucket/place/{name} is not what its manifest says"):
        fetch_bundle(ADDRESS)
    assert not list(cache.rglob(name))


@pytest.mark.parametrize("paths", [["manifest.json"], ["a", "a/b"], ["a/b", "a"]])
def test_a_manifest_that_no_folder_can_be_is_refused(paths: list[str], store: ObjectStore) -> None:
    files = []
    for path in paths:
        store.put(path, b"1")
        files.append({"path": path, "bytes": 1, "sha256": "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"})
    store.put("manifest.json", seal({"format": 1, "files": files}))
    with pytest.raises(ModelFileError):
        fetch_bundle(ADDRESS)


def test_a_manifest_of_a_stranger_writes_nowhere_else(store: ObjectStore, cache: Path) -> None:
    store.put("evil", b"1")
    entry = {"path": "../../../../evil", "bytes": 1, "sha256": "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"}
    store.put("manifest.json", seal({"format": 1, "files": [entry]}))
    with pytest.raises(ModelFileError, match="which is no name of a file in it"):
        fetch_bundle(ADDRESS)
    assert not list(cache.parent.rglob("evil"))


def test_a_copy_that_was_damaged_on_this_machine_is_fetched_again(store: ObjectStore) -> None:
    folder = fetch_bundle(ADDRESS)
    (folder / "model.safetensors").write_bytes(b"")
    assert read_files_of(fetch_bundle(ADDRESS)) == read_files_of(STORED)


def test_while_another_version_is_written_the_last_one_serves(store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    folder = fetch_bundle(ADDRESS)
    store.delete(["manifest.json"])
    with caplog.at_level(logging.WARNING):
        assert fetch_bundle(ADDRESS) == folder
    assert "the last version that was fetched is used" in caplog.text
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelFileError, match="is no bundle"):
        fetch_bundle(ADDRESS)


def test_a_damaged_copy_stays_until_another_is_there_and_keeps_a_persons_glossary(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fetch_bundle(ADDRESS)
    (folder / "glossary.tsv").write_bytes(b"one\teins\n")
    (folder / "model.safetensors").write_bytes(b"")
    with monkeypatch.context() as cut:
        cut.setattr(ObjectStore, "fetch", mock.Mock(side_effect=StorageError("connection cut")))
        with pytest.raises(StorageError, match="connection cut"):
            fetch_bundle(ADDRESS)
    assert (folder / "glossary.tsv").is_file()
    assert (fetch_bundle(ADDRESS) / "glossary.tsv").read_bytes() == b"one\teins\n"


def test_a_storage_that_is_away_leaves_the_last_copy_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    bucket = Faulty(MemoryStore(), arrives=False)
    store = in_memory(bucket)
    bucket.lost = 99
    with pytest.raises(StorageError, match="cannot be reached"):
        fetch_bundle(ADDRESS, store)
    bucket.lost = 0
    publish(store, STORED, list(verify(STORED)))
    folder = fetch_bundle(ADDRESS, store)
    bucket.lost = 99
    with caplog.at_level(logging.WARNING):
        assert fetch_bundle(ADDRESS, store) == folder
    assert "the last version that was fetched is used" in caplog.text


def test_a_few_versions_are_kept(store: ObjectStore, cache: Path, tmp_path: Path) -> None:
    for number in range(MOST_KEPT + 2):
        value = json.loads((STORED / "manifest.json").read_bytes())
        files = value["files"][number % 2 :] + value["files"][: number % 2] if number < 2 else value["files"][::-1][number - 2 :]
        store.put("manifest.json", seal({"format": 1, "files": files + [each for each in value["files"] if each not in files]}))
        folder = fetch_bundle(ADDRESS)
    kept = [path for path in folder.parents[1].iterdir() if path.is_dir()]
    assert len(kept) == MOST_KEPT and folder.parent in kept


def test_the_bundle_of_a_run_is_that_of_its_newest_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = in_memory()
    writer = Snapshots(store, "me")
    writer.begin(tmp_path / "run")
    with pytest.raises(ModelFileError, match="is no bundle"):
        fetch_bundle(ADDRESS, store)
    shutil.copytree(STORED, tmp_path / "run" / "bundle")
    writer.commit(write_files(tmp_path / "run", status="1"))
    assert read_files_of(fetch_bundle(ADDRESS, store)) == read_files_of(STORED)


def test_verbs_get_a_folder_where_an_address_was_given(store: ObjectStore) -> None:
    given = {"bundles": ["s3://bucket/place", "mine=s3://bucket/place/", "queue.wait_seconds=1", "en-de"]}
    with local_folders("serve", given):
        pass
    folder = str(fetch_bundle(ADDRESS))
    assert given["bundles"] == [folder, f"mine={fetch_bundle(ADDRESS)}", "queue.wait_seconds=1", "en-de"]
    one = {"bundle": Path("s3://bucket/place"), "output": None}
    with local_folders("translate", one):
        assert one["bundle"] == Path(folder)
    texts = {"targets": ["s3://bucket/place", "s3://bucket/a.en"]}
    with local_folders("evaluate", texts):
        assert texts["targets"] == [folder, "s3://bucket/a.en"]


def test_a_prepared_corpus_comes_back_and_what_is_unfinished_stays(tmp_path: Path, store: ObjectStore) -> None:
    made, other = make(tmp_path / "made"), in_memory()
    write_files(tmp_path / "copy", work="goes on")
    fetch_prepared(other, tmp_path / "copy")
    assert read_files(tmp_path / "copy") == {"work": "goes on"}
    publish(other, made, list_prepared(made))
    fetch_prepared(other, tmp_path / "copy")
    assert {path: (tmp_path / "copy" / path).read_bytes() for path in list_prepared(made)} == {
        path: (made / path).read_bytes() for path in list_prepared(made)
    }
    before = (tmp_path / "copy" / "manifest.json").stat().st_ino
    fetch_prepared(other, tmp_path / "copy")
    assert (tmp_path / "copy" / "manifest.json").stat().st_ino == before


def test_what_was_prepared_by_force_and_not_published_stays(tmp_path: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"output": Path(ADDRESS), "force": True}
    with pytest.raises(KeyError), local_folders("prepare", given):
        make(folder := given["output"])
        made = (folder / "manifest.json").read_bytes()
        raise KeyError  # as if the network went
    with local_folders("prepare", given := {"output": Path(ADDRESS), "force": True}):
        assert (given["output"] / "manifest.json").read_bytes() == made
    assert store.get("manifest.json") == made


def test_nothing_is_written_over_what_came_meanwhile_or_over_a_run(tmp_path: Path, store: ObjectStore) -> None:
    before = store.get("manifest.json") or b""
    store.delete(["manifest.json"])
    with (
        pytest.raises(ConfigError, match="holds something else"),
        local_folders("import", given := {"output": Path(ADDRESS), "force": False}),
    ):
        shutil.copytree(STORED, given["output"])
        store.put("manifest.json", before + b" ")
    store.put("snapshots/00000001.json", b"")
    for verb in ("import", "prepare"):
        with pytest.raises(ConfigError, match="holds a run"), local_folders(verb, {"output": Path(ADDRESS), "force": True}):
            pass
