"""A `Database` is read by many at once and written by one at a time, in SQLite and in PostgreSQL alike.

One writer at a time makes the numbers of rows come in the order in which others see them: who has read up to number 7 misses nothing.
"""

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

from limelight.errors import ConfigError, LimelightError, MissingExtraError, StorageError

WAIT_SECONDS = 15  # for another writer
LOCK = 0x6C696D65  # of all our writers, among the advisory locks of a PostgreSQL
# Of a PostgreSQL that is away or behind a broken line: a thread of a server waits no longer than that. The URL may say otherwise.
PATIENCE = {"connect_timeout": 5, "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000}
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


class Database:
    """`read` and `write` give a connection in a transaction. What goes wrong is told without texts: they stand in what is asked."""

    def __init__(self, url: str, create: bool = True) -> None:
        self._engine = _engine(url, create)
        self.name = _name(self._engine.url)
        self.sqlite = self._engine.dialect.name == "sqlite"
        # An insert that says what to do if the row is there: each dialect has its own class for it.
        self.insert: Any = sqlite.insert if self.sqlite else postgresql.insert

    @contextmanager
    def read(self) -> Iterator[sql.Connection]:
        with self._tell(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sql.Connection]:
        with self._tell(), self._engine.execution_options(writes=True).begin() as connection:
            if not self.sqlite:
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))
            yield connection

    def overwrite_deleted(self, count: int) -> None:
        """Write SQLite's file anew once `count` rows are deleted: rows that moved from page to page have left copies, which
        `secure_delete` does not see. PostgreSQL keeps house by itself."""
        if self.sqlite:
            try:
                with self._tell(), closing(self._engine.raw_connection()) as connection:
                    connection.cursor().execute("VACUUM")
                if self.move_log():
                    return
                why = f"another program reads the store {self.name}"
            except StorageError as error:
                why = str(error)
            done = "what was asked for is deleted, but it" if count else "nothing was deleted, and what was deleted before"
            raise StorageError(
                f"{done} may still stand in the files of the store: {why}; end what holds it, or make room, and give the same command again"
            )

    def move_log(self) -> bool:
        """Whether the log beside SQLite's file, in which deleted text stands, was moved into the file: not while somebody reads it."""
        if self.sqlite:
            with self._tell(), closing(self._engine.raw_connection()) as connection:
                busy: int = connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                return not busy
        return True

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _tell(self) -> Iterator[None]:
        try:
            yield
        except (sql.exc.SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            cause = getattr(error, "orig", None if isinstance(error, sql.exc.SQLAlchemyError) else error)
            if isinstance(cause, LimelightError):
                raise cause from None
            if self.sqlite and re.search("not a database|malformed", str(cause)):
                raise StorageError(f"the store {self.name} is damaged, or is none ({cause}); restore a copy of it") from None
            why = type(cause or error).__name__ + (f" ({cause})" if self.sqlite and cause else "")
            raise StorageError(f"the store {self.name} does not answer: {why}; is it there, writable, and not held by another?") from None


def _name(url: sql.URL) -> str:
    """Without what follows the question mark, where a password may stand, too."""
    return url.set(query={}).render_as_string(hide_password=True)


def _engine(given: str, create: bool) -> sql.Engine:
    try:
        url = sql.make_url(given)
    except (sql.exc.ArgumentError, ValueError):  # a port that is no number
        raise ConfigError("the store is no URL; write sqlite:///limelight.db or postgresql://user@host/name") from None
    driver = DRIVERS.get(url.drivername.partition("+")[0])
    if driver is None or not url.database or url.database == ":memory:" or (driver == "sqlite" and url.query):
        raise ConfigError(
            f"the store {_name(url)} is neither a file of SQLite nor a PostgreSQL; "
            "write sqlite:///limelight.db or postgresql://user@host/name"
        )
    patience = {} if driver == "sqlite" else {name: value for name, value in PATIENCE.items() if name not in url.query}
    try:
        engine = sql.create_engine(url.set(drivername=driver), hide_parameters=True, pool_pre_ping=True, connect_args=patience)
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name, "a store in PostgreSQL", "postgres") from None
    sql.event.listen(engine, "connect", _open_sqlite if driver == "sqlite" else _open_postgresql)
    if driver == "sqlite":
        _touch(Path(url.database), create)
        sql.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _touch(path: Path, create: bool) -> None:
    """For the eyes of its owner only, from the first moment."""
    try:
        os.close(os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
    except FileNotFoundError:
        fix = (
            "its folder does not exist"
            if create
            else "check the name; `limelight memory add` makes one, and so does `limelight serve --store`"
        )
        raise ConfigError(f"there is no store {path}: {fix}") from None
    except OSError as error:
        raise ConfigError(f"the store {path} cannot be opened: {error.strerror}; it must be a file that can be written") from None


def _open_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # sqlite3 would begin where it likes, and not before CREATE TABLE
    kept = "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"  # what is deleted is overwritten
    for pragma in (f"busy_timeout = {WAIT_SECONDS * 1000}", *kept, "cache_size = -65536"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sql.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")


def _open_postgresql(connection: Any, _: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{WAIT_SECONDS}s'")
        cursor.execute("SET idle_in_transaction_session_timeout = '120s'")  # who is gone does not hold the lock of writers
    connection.commit()
