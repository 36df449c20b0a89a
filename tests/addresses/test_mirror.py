"""A run at an address: what is saved is committed as it stood, one process writes, and another goes on from there."""

import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from obstore.store import MemoryStore
from stores import Faulty, read_files, write_files

from limelight.addresses.lease import NAME, Lease
from limelight.addresses.object_store import ObjectStore
from limelight.addresses.snapshots import OvertakenError
from limelight.errors import ConfigError, StorageError
from limelight.training.events import Event, RunNotice
from limelight.training.run.mirror import FAILURES, mirror_run, place_run

ADDRESS = "s3://bucket/en-de"
SAVED = RunNotice(1, 1.0, "saved", "checkpoint at step 1")
NOTE = RunNotice(1, 1.0, "note", "nothing")


def ignore(event: Event) -> None:
    pass


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Faulty:
    made = Faulty(MemoryStore(), arrives=False)
    monkeypatch.setattr("limelight.addresses.object_store.open_bucket", lambda address, patience: made)
    return made


def on_machine(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path / name))
    return place_run(ADDRESS)


def test_what_is_saved_is_found_on_another_machine(bucket: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = on_machine("one", tmp_path, monkeypatch)
    told: list[Event] = []
    with mirror_run(run, told.append, 0.0, 1) as watch:
        write_files(run, checkpoints__step__tensors="abc", status="training")
        (run / "metrics.jsonl").write_bytes(b"1\n")
        write_files(run, **{".lock": "", "prepared__.work__chunk": "unfinished"})
        watch(SAVED)
        with (run / "metrics.jsonl").open("ab") as log:
            log.write(b"2\n")
        watch(NOTE)
    assert told == [SAVED, NOTE]
    other = on_machine("two", tmp_path, monkeypatch)
    with mirror_run(other, ignore, 0.0, 1):
        assert read_files(other) == {"checkpoints/step/tensors": "abc", "status": "training", "metrics.jsonl": "1\n2\n"}
    assert not list((tmp_path / "one").rglob("staged"))


def test_a_snapshot_is_of_the_moment_at_which_it_was_saved(bucket: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is pruned, replaced or written on while it is on its way, as it would be after a kill -9 right then."""
    run, go_on = on_machine("one", tmp_path, monkeypatch), threading.Event()
    real = ObjectStore.put
    monkeypatch.setattr(ObjectStore, "put", lambda self, *given: (go_on.wait(10), real(self, *given))[1])
    monkeypatch.setattr("limelight.training.run.mirror.RunMirror.finish", lambda self: self._settle(wait=True))
    with pytest.raises(KeyboardInterrupt), mirror_run(run, ignore, 0.0, 1) as watch:
        write_files(run, checkpoints__one="1", status="1", **{"metrics.jsonl": "1"})
        watch(SAVED)
        (run / "checkpoints" / "one").unlink()
        (run / "status").unlink()
        write_files(run, checkpoints__two="2", status="2")
        (run / "metrics.jsonl").write_bytes(b"12")
        watch(SAVED)  # the first is still on its way
        go_on.set()
        raise KeyboardInterrupt
    other = on_machine("two", tmp_path, monkeypatch)
    with mirror_run(other, ignore, 0.0, 1):
        assert read_files(other) == {"checkpoints/one": "1", "status": "1", "metrics.jsonl": "1"}


def test_a_process_whose_lease_was_taken_ends(bucket: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = on_machine("one", tmp_path, monkeypatch)
    with pytest.raises(OvertakenError), mirror_run(run, ignore, 0.0, 1) as watch:
        write_files(run, a="1")
        store = ObjectStore(ADDRESS)
        store.put(NAME, Lease(store, "")._describe(released=True))  # as if it had gone stale
        other = on_machine("two", tmp_path, monkeypatch)
        with mirror_run(other, ignore, 0.0, 1):
            write_files(other, b="2")
        watch(SAVED)
    third = on_machine("three", tmp_path, monkeypatch)
    with mirror_run(third, ignore, 0.0, 1):
        assert read_files(third) == {"b": "2"}


def test_a_storage_that_is_away_ends_a_run_after_some_tries(bucket: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, seen = on_machine("one", tmp_path, monkeypatch), 0
    with pytest.raises(StorageError), mirror_run(run, ignore, 0.0, 1) as watch:
        bucket.lost = 1 << 20
        for number in range(FAILURES + 1):
            write_files(run, a=str(number))
            watch(SAVED)
            seen += 1
            while not watch.__self__._coming.done():  # type: ignore[attr-defined]
                pass
    assert seen == FAILURES and (run / "a").exists()
    bucket.lost = 0
    with mirror_run(run, ignore, 0.0, 1):
        assert read_files(run)["a"] == str(FAILURES)


def test_an_address_that_holds_something_else_is_no_run(bucket: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = on_machine("one", tmp_path, monkeypatch)
    ObjectStore(ADDRESS).put("manifest.json", b"{}")
    with pytest.raises(ConfigError, match="holds a bundle or prepared text"), mirror_run(run, ignore, 0.0, 1):
        pass
    assert list(ObjectStore(ADDRESS).names()) == ["manifest.json"]


def test_a_disk_without_second_names_and_a_refusal_in_passing(bucket: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise PermissionError("no links here")

    run, real = on_machine("one", tmp_path, monkeypatch), ObjectStore.put
    monkeypatch.setattr("os.link", refuse)
    with mirror_run(run, ignore, 0.0, 1) as watch:
        monkeypatch.setattr(ObjectStore, "put", lambda *given: (_ for _ in ()).throw(ConfigError("access is denied")))
        watch((write_files(run, a="1"), SAVED)[1])
        watch.__self__._coming.exception()  # type: ignore[attr-defined]
        watch(NOTE)  # goes on
        monkeypatch.setattr(ObjectStore, "put", real)
    with mirror_run(other := on_machine("two", tmp_path, monkeypatch), ignore, 0.0, 1):
        assert read_files(other) == {"a": "1"}


def test_a_folder_without_address_and_many_machines(bucket: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "address").write_bytes(b"s3://bucket/run")  # somebody's own file
    with mirror_run(tmp_path / "run", ignore, 0.0, 2) as watch:
        assert watch is ignore
    run = on_machine("one", tmp_path, monkeypatch)
    with pytest.raises(ConfigError, match="a run on 2 machines needs a folder that all of them see"), mirror_run(run, ignore, 0.0, 2):
        pass
