"""A `Store` is opened by its URL, brought to the newest schema, and deletes what its time is over for or its owner wants gone."""

import time
from datetime import UTC, datetime

import sqlalchemy as sql

from limelight.store import schema
from limelight.store.accounts import KeptGlossaries, KeptUsage
from limelight.store.corrections import Corrections
from limelight.store.database import Database
from limelight.store.memory import TranslationMemory
from limelight.store.migrations import migrate


class Store:
    def __init__(self, database: Database) -> None:
        self.database, self.corrections, self.memory = database, Corrections(database), TranslationMemory(database)
        self.glossaries, self.usage = KeptGlossaries(database), KeptUsage(database)

    def delete_by_key(self, key: str) -> int:
        """Delete what a key sent: corrections and glossaries. What it used up this month stays, or its quota would begin anew."""
        with self.database.write() as connection:
            corrections = connection.execute(sql.delete(schema.corrections).where(schema.corrections.c.key == key))
            glossaries = connection.execute(sql.delete(schema.glossaries).where(schema.glossaries.c.owner == key))
        deleted = corrections.rowcount + glossaries.rowcount
        self.database.overwrite_deleted(deleted)
        return deleted

    def list_keys(self) -> list[str]:
        """Names of the keys that sent something."""
        sent = sql.union(sql.select(schema.corrections.c.key), sql.select(schema.glossaries.c.owner))
        with self.database.read() as connection:
            return sorted(filter(None, connection.execute(sent).scalars()))

    def expire(self, days: float, unused_days: float = 30) -> int:
        """Delete corrections older than that, the accounts of months that ended before, and glossaries that nobody used."""
        since = time.time() - days * 86_400
        with self.database.write() as connection:
            gone = [
                sql.delete(schema.glossaries).where(schema.glossaries.c.used < time.time() - unused_days * 86_400),
                sql.delete(schema.corrections).where(schema.corrections.c.created < since),
                sql.delete(schema.usage).where(schema.usage.c.month < f"{datetime.fromtimestamp(since, UTC):%Y-%m}"),
            ]
            deleted = sum(connection.execute(each).rowcount for each in gone)
        if deleted:
            self.database.move_log()  # a server goes on meanwhile: its file is not written anew
        return deleted

    def close(self) -> None:
        self.database.close()


def open_store(url: str, create: bool = True) -> Store:
    """sqlite:///limelight.db makes the file if there is none and `create` is said; a PostgreSQL has to have its database."""
    database = Database(url, create)
    migrate(database, create)
    return Store(database)
