"""A folder at an address is one snapshot or another, never something between, and has one writer."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from obstore.store import MemoryStore
from stores import Careless, Faulty, in_memory, read_files, write_files

from limelight.addresses.lease import NAME, Lease
from limelight.addresses.object_store import ObjectStore
from limelight.addresses.snapshots import KEPT, OvertakenError, Snapshots
from limelight.errors import ConfigError, ModelFileError, StorageError


def begin(store: ObjectStore, holder: str, folder: Path) -> Snapshots:
    made = Snapshots(store, holder)
    made.begin(folder)
    return made


def test_another_machine_finds_the_folder_as_it_was_committed(tmp_path: Path) -> None:
    store, run = in_memory(), tmp_path / "first"
    first = begin(store, "first", run)
    write_files(run, status="1", checkpoints__step__tensors="abc", same="abc")
    assert first.commit(run) and not first.commit(run)
    (run / "status").unlink()
    write_files(run, status="2", later="3")
    assert first.commit(run)
    assert len(list(store.names("objects"))) == 4  # the same content once; what the snapshot before has is kept too
    begin(store, "second", tmp_path / "second")
    assert read_files(tmp_path / "second") == read_files(run)
    assert read_files(run) == {"status": "2", "checkpoints/step/tensors": "abc", "same": "abc", "later": "3"}


def test_who_was_overtaken_writes_nothing_more(tmp_path: Path) -> None:
    store = in_memory()
    slow = begin(store, "slow", tmp_path / "slow")
    slow.commit(write_files(tmp_path / "slow", a="1"))
    quick = begin(store, "quick", tmp_path / "quick")
    with pytest.raises(OvertakenError, match="was taken over by another process"):
        slow.commit(write_files(tmp_path / "slow", a="wrong"))
    quick.commit(write_files(tmp_path / "quick", a="2"))
    with pytest.raises(OvertakenError):
        slow.commit(write_files(tmp_path / "slow", a="wrong again"))
    begin(store, "third", tmp_path / "third")
    assert read_files(tmp_path / "third") == {"a": "2"}


def test_without_the_condition_both_would_write(tmp_path: Path) -> None:
    """That the test above can fail."""
    store = Careless("s3://bucket/place", MemoryStore())
    slow = begin(store, "slow", tmp_path / "slow")
    begin(store, "quick", tmp_path / "quick")
    assert slow.commit(write_files(tmp_path / "slow", a="wrong"))
    begin(store, "third", tmp_path / "third")
    assert read_files(tmp_path / "third") == {"a": "wrong"}


def test_a_late_pruning_leaves_what_a_later_writer_has(tmp_path: Path) -> None:
    store = in_memory()
    slow = begin(store, "slow", tmp_path / "slow")
    slow.commit(write_files(tmp_path / "slow", a="1"))
    quick = begin(store, "quick", tmp_path / "quick")
    quick.commit(write_files(tmp_path / "quick", b="2"))
    slow._prune()
    begin(store, "third", tmp_path / "third")
    assert read_files(tmp_path / "third") == {"a": "1", "b": "2"}


def test_half_a_snapshot_is_not_seen_and_is_swept(tmp_path: Path) -> None:
    bucket = Faulty(MemoryStore(), arrives=False)
    store = in_memory(bucket)
    first = begin(store, "first", tmp_path / "first")
    first.commit(write_files(tmp_path / "first", a="1"))
    write_files(tmp_path / "first", b="2", c="3")
    real = store.put
    store.put = lambda name, content: (real(name, content), setattr(bucket, "lost", 99))[0]  # type: ignore[method-assign,func-returns-value]
    with pytest.raises(StorageError):
        first.commit(tmp_path / "first")  # the first object arrives, and then the network is gone
    bucket.lost, store.put = 0, real  # type: ignore[method-assign]
    assert len(list(store.names("objects"))) == 2
    second = begin(store, "second", tmp_path / "second")
    assert read_files(tmp_path / "second") == {"a": "1"}
    assert len(list(store.names("objects"))) == 1
    for number in range(5):
        second.commit(write_files(tmp_path / "second", a=str(number)))
    assert len(list(store.names("snapshots"))) == len(list(store.names("objects"))) == KEPT


def test_the_same_machine_keeps_what_it_has_if_nobody_wrote_since(tmp_path: Path) -> None:
    store, run = in_memory(), tmp_path / "run"
    begin(store, "me", run).commit(write_files(run, a="1"))
    write_files(run, a="newer, and not committed")
    begin(store, "me", run)
    assert read_files(run) == {"a": "newer, and not committed"}
    begin(store, "other", tmp_path / "other")
    begin(store, "me", run)
    assert read_files(run) == {"a": "1"}


def test_an_address_that_was_emptied_does_not_empty_the_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    begin(in_memory(), "me", run).commit(write_files(run, checkpoints__one="1"))
    with pytest.raises(ConfigError, match="s3://bucket/place holds no run"):
        begin(in_memory(), "me", run)
    assert read_files(run) == {"checkpoints/one": "1"}


def test_a_lost_answer_and_a_lost_question_after_it_do_not_overtake_their_writer(tmp_path: Path) -> None:
    store, run = in_memory(), tmp_path / "me"
    mine, lease = begin(store, "me", run), Lease(store, "me")
    version, real = store.put_new(NAME, lease._describe()) or "", store._put_if

    def lose(*given: Any) -> str | None:
        store._put_if = real  # type: ignore[method-assign]
        real(*given)
        raise StorageError("away")

    for write in (lambda: mine.commit(run), lambda: lease._replace(version)):
        write_files(run, a="1")
        store._put_if = lose  # type: ignore[method-assign]
        with pytest.raises(StorageError, match="away"):
            write()
        write_files(run, a="2")
        assert write()
    begin(store, "other", tmp_path / "other")
    assert read_files(tmp_path / "other") == {"a": "2"}


def test_damage_at_the_address_is_refused_and_the_folder_stays(tmp_path: Path) -> None:
    store = in_memory()
    begin(store, "me", tmp_path / "me").commit(write_files(tmp_path / "me", a="1"))
    write_files(tmp_path / "other", a="mine")
    store.put(next(iter(store.names("objects"))), b"2")
    with pytest.raises(ModelFileError, match="is not what its manifest says"):
        begin(store, "other", tmp_path / "other")
    newest = max(store.names("snapshots"))
    store.put(newest, (store.get(newest) or b"").replace(b'"a"', b'"b"'))
    with pytest.raises(ModelFileError, match="its checksum does not fit"):
        begin(store, "other", tmp_path / "other")
    assert read_files(tmp_path / "other") == {"a": "mine"}


@pytest.mark.process
def test_a_lease_is_refused_while_it_is_renewed_and_taken_when_it_is_not() -> None:
    store = in_memory()
    first, second, third = (Lease(store, name, renewed=0.1, stale=1.0) for name in ("first", "second", "third"))
    first.acquire()
    with pytest.raises(ConfigError, match="another process is training at s3://bucket/place"):
        second.acquire()
    first._ended.set()  # as one that was killed, or hangs
    began = time.monotonic()
    second.acquire()
    assert time.monotonic() - began >= 0.9
    first._ended.clear()
    threading.Thread(target=first._renew).start()  # it wakes up
    time.sleep(0.5)
    assert first.lost and not second.lost
    second.release()
    began = time.monotonic()
    third.acquire()
    assert time.monotonic() - began < 0.5
    third.release()


@pytest.mark.process
def test_the_lease_of_the_same_folder_is_taken_at_once() -> None:
    store = in_memory()
    store.put(NAME, Lease(store, "me")._describe())
    mine = Lease(store, "me", renewed=0.1, stale=0.3)
    mine.acquire()
    mine.release()
