"""Migrations bring a store to the tables of this version, one after the other, each whole or not at all.

Each runs in one transaction with the row that says so, and one process at a time: whoever is killed in the middle leaves the store as it
was before, and the next who opens it goes on. A migration that was released is never changed: a table that changes gets another one,
and its older form is then written out here.
"""

import time
from collections.abc import Callable

import sqlalchemy as sql

from limelight.errors import ConfigError
from limelight.store import schema
from limelight.store.database import Database

Migration = Callable[[sql.Connection], None]


def _create_tables(connection: sql.Connection) -> None:
    schema.tables.create_all(connection, [schema.corrections, schema.glossaries, schema.usage])


def _create_memory(connection: sql.Connection) -> None:
    schema.tables.create_all(connection, [schema.segments, schema.trigrams, schema.rarities])


MIGRATIONS: tuple[Migration, ...] = (_create_tables, _create_memory)  # number 1 first


def migrate(database: Database, create: bool = True) -> int:
    """How many there were to do. `create`: also where nothing is yet, which else is no store."""
    done = 0
    while _take_one(database, create):
        done += 1
    return done


def _take_one(database: Database, create: bool) -> bool:
    with database.read() as connection:
        number = _number(connection, database)
    if number == 0 and not create:
        raise ConfigError(f"{database.name} holds no store; `limelight serve --store` and `limelight memory add` make one")
    if number == len(MIGRATIONS):
        return False
    with database.write() as connection:  # another may have been here in between
        schema.migrations.create(connection, checkfirst=True)
        number = _number(connection, database)
        if number == len(MIGRATIONS):
            return False
        MIGRATIONS[number](connection)
        connection.execute(schema.migrations.insert().values(number=number + 1, at=time.time()))
    return True


def _number(connection: sql.Connection, database: Database) -> int:
    if not sql.inspect(connection).has_table("migrations"):
        return 0
    number = connection.execute(sql.select(sql.func.max(schema.migrations.c.number))).scalar() or 0
    if number > len(MIGRATIONS):
        raise ConfigError(f"the store {database.name} was written by a newer version; install that, or name another store")
    return int(number)
