"""A store keeps what it was given, in both databases, and loses nothing to kill -9 or to a second writer."""

import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sql

from limelight.errors import ConfigError, DataError, StorageError
from limelight.store import database, schema
from limelight.store.migrations import MIGRATIONS
from limelight.store.store import Store, open_store

PAIR = ("en", "de")


def add(store: Store, correction: str = "Ahoi", key: str = "forum", target: str = "de") -> int:
    return store.corrections.add("en", target, "Hello", "Hallo", correction, key, "en-de")


def check_corrections(store: Store) -> None:
    first, other, second = add(store), add(store, target="fr"), add(store, "Moin", key="shop")
    assert first < other < second
    assert [each.correction for each in store.corrections.list(PAIR)] == ["Ahoi", "Moin"]
    assert [each.id for each in store.corrections.list(PAIR, after=first)] == [second]
    assert [each.id for each in store.corrections.list(PAIR, most=1)] == [first]
    assert store.delete_by_key("shop") == 1
    assert add(store) > second  # the number of the deleted one is not given again
    assert store.expire(days=1) == 0
    with store.database.write() as connection:
        connection.execute(sql.update(schema.corrections).where(schema.corrections.c.id == first).values(created=time.time() - 2 * 86_400))
    assert store.expire(days=1) == 1
    assert first not in [each.id for each in store.corrections.list(PAIR)]


def test_corrections_come_back_in_order(store: Store) -> None:
    check_corrections(store)


def test_corrections_in_both_databases(url: str) -> None:
    store = open_store(url)
    check_corrections(store)
    store.close()


def test_so_many_are_kept_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.store.corrections.MOST_KEPT", 3)
    monkeypatch.setattr("limelight.store.corrections.COUNTED_EVERY", 2)
    assert [bool(add(store)) for _ in range(5)] == [True] * 3 + [False] * 2
    store.delete_by_key("forum")
    assert add(store)


@pytest.mark.parametrize("text", ["nul \0", "half \ud800"])
def test_what_one_database_cannot_keep_neither_does(store: Store, text: str) -> None:
    with pytest.raises(DataError, match="take it out"):
        add(store, text)
    assert store.corrections.list(PAIR) == []


def test_an_error_tells_no_text(store: Store) -> None:
    with store.database.write() as connection:
        connection.execute(sql.text("DROP TABLE corrections"))
    with pytest.raises(StorageError) as caught:
        add(store, "a secret")
    assert "a secret" not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.parametrize("url", ["", "limelight.db", "sqlite://", "sqlite:///:memory:", "mysql://a:secret@b/c", "sqlite:////nowhere/a.db",
                                 "postgresql://a:secret@b:port/c", "mysql://a@b/c?password=secret",
    "sqlite:///a.db?mode=secret"])  # fmt: skip
def test_a_store_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"this is a letter" * 100)
    with pytest.raises(StorageError, match="damaged, or is none"):
        open_store(f"sqlite:///{tmp_path}/a.db")


def test_what_is_deleted_is_in_no_file_while_a_server_runs(tmp_path: Path) -> None:
    """Its connections are open, so that SQLite keeps its log."""
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    with store.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    for number in range(300):
        store.corrections.add("en", "de", f"secret {number}", "b", "c", "forum")
    found = lambda: b"".join(path.read_bytes() for path in tmp_path.glob("store.db*")).count(b"secret")  # noqa: E731
    assert found() >= 300
    assert store.delete_by_key("forum") == 300 and found() == 0
    store.close()


def test_only_its_owner_reads_it(store: Store, tmp_path: Path) -> None:
    add(store)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("store.db*")} == {0o600}


def test_who_only_reads_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no store"):
        open_store(f"sqlite:///{tmp_path}/a.db", create=False)
    (tmp_path / "b.db").touch()
    with pytest.raises(ConfigError, match="holds no store"):
        open_store(f"sqlite:///{tmp_path}/b.db", create=False)
    assert not (tmp_path / "a.db").exists()
    open_store(f"sqlite:///{tmp_path}/b.db").close()
    open_store(f"sqlite:///{tmp_path}/b.db", create=False).close()


def test_what_is_deleted_is_overwritten(store: Store, tmp_path: Path) -> None:
    add(store, "a secret that goes")
    store.delete_by_key("forum")
    store.close()
    assert b"a secret that goes" not in b"".join(path.read_bytes() for path in tmp_path.glob("store.db*"))


@pytest.mark.parametrize("whole", [True, False])
def test_rows_that_moved_leave_no_copies(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Without writing the file anew one of these ten stays: else this would show nothing."""
    rng = random.Random(16)
    for number in range(20):
        texts = f"SECRET{number:04}Z" + "x" * rng.randint(0, 900), "c" * rng.randint(0, 900)
        store.corrections.add("en", "de", texts[0], "t", texts[1], "k", "m")
    ids = list(range(1, 21))
    rng.shuffle(ids)
    if not whole:
        monkeypatch.setattr(store.database, "overwrite_deleted", lambda _: store.database.move_log())
    store.corrections.delete(ids[:10])
    store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("store.db*"))
    assert [b"SECRET%04dZ" % (id - 1) in kept for id in ids].count(True) == (10 if whole else 11)


def test_who_reads_keeps_what_is_deleted_and_the_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "WAIT_SECONDS", 1)
    path = tmp_path / "store.db"
    store = open_store(f"sqlite:///{path}")
    add(store, "a secret that goes")
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM corrections").fetchone()
        with pytest.raises(StorageError, match=r"what was asked for is deleted, but .* another program reads the store"):
            store.delete_by_key("forum")
        with pytest.raises(StorageError, match="nothing was deleted, and what was deleted before may still stand"):
            store.delete_by_key("form")
    assert store.delete_by_key("forum") == 0
    store.close()
    assert b"a secret that goes" not in b"".join(each.read_bytes() for each in tmp_path.glob("store.db*"))


def test_a_file_that_cannot_be_written_anew_is_told_with_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "WAIT_SECONDS", 0)
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    add(store, "a secret that goes")
    write = store.database.write
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:

        @contextmanager
        def write_and_let_another_begin() -> Iterator[sql.Connection]:
            with write() as connection:
                yield connection
            other.execute("BEGIN IMMEDIATE")

        monkeypatch.setattr(store.database, "write", write_and_let_another_begin)
        with pytest.raises(StorageError, match=r"is deleted, but it may still stand .*database is locked.*give the same"):
            store.delete_by_key("forum")
    store.close()


def test_a_newer_store_is_refused(store: Store, tmp_path: Path) -> None:
    with store.database.write() as connection:
        connection.execute(schema.migrations.insert().values(number=len(MIGRATIONS) + 1, at=0.0))
    with pytest.raises(ConfigError, match="newer"):
        open_store(f"sqlite:///{tmp_path}/store.db")


KILLED = """
import os, sys
import sqlalchemy as sql
from limelight.store import migrations
from limelight.store.store import open_store

def half(connection):
    connection.execute(sql.text("CREATE TABLE half (a INTEGER)"))
    connection.execute(sql.text("UPDATE corrections SET correction = 'lost'"))
    os.kill(os.getpid(), 9)

migrations.MIGRATIONS += (half,)
open_store(sys.argv[1])
"""


def test_a_kill_in_a_migration_loses_nothing(url: str) -> None:
    store = open_store(url)
    add(store)
    store.close()
    killed = subprocess.run([sys.executable, "-c", KILLED, url], check=False)
    assert killed.returncode == -signal.SIGKILL
    store = open_store(url)
    assert [each.correction for each in store.corrections.list(PAIR)] == ["Ahoi"]
    with store.database.read() as connection:
        assert not sql.inspect(connection).has_table("half")
        assert connection.execute(sql.select(sql.func.max(schema.migrations.c.number))).scalar() == len(MIGRATIONS)
    store.close()


WRITER = """
import sys
from limelight.store.store import open_store
store = open_store(sys.argv[1])
for number in range(50):
    store.corrections.add("en", "de", "Hello", "Hallo", str(number), sys.argv[2])
"""


def test_two_open_and_write_at_once(url: str) -> None:
    """Both bring the new store to its schema, and neither loses a row; who reads along sees the numbers in order, without a gap to fill."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, url, name]) for name in ("a", "b")]
    store, last, seen = open_store(url), 0, []
    while any(writer.poll() is None for writer in writers) or len(seen) < 100:
        new = store.corrections.list(PAIR, after=last)
        seen += new
        last = new[-1].id if new else last
        assert not any(writer.poll() for writer in writers)
    assert len(seen) == 100
    for name in ("a", "b"):
        assert [each.correction for each in seen if each.key == name] == [str(number) for number in range(50)]
    store.close()


def test_a_database_that_is_away_is_told(starts_process: None) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StorageError, match="is it there") as caught:
        open_store("postgresql://somebody:secret@127.0.0.1:1/nothing?sslpassword=secret")
    assert "secret" not in str(caught.value)
