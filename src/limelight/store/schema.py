"""The tables of a store are the same in SQLite and in PostgreSQL."""

from typing import Any

import sqlalchemy as sql

from limelight.errors import DataError

tables = sql.MetaData()
Number = sql.BigInteger().with_variant(sql.Integer, "sqlite")  # SQLite counts up only what is called an integer


class StorableText(sql.TypeDecorator[str]):
    """Text is refused by us where PostgreSQL would refuse it, so that both databases hold the same."""

    impl, cache_ok = sql.Text, True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        if value is not None and "\0" in value:
            raise DataError("a text holds the character U+0000, which no database keeps; take it out")
        if value is not None and any("\ud800" <= sign <= "\udfff" for sign in value):
            raise DataError("a text holds half a surrogate pair, which is no character; take it out")
        return value


def _text(name: str) -> sql.Column[Any]:
    return sql.Column(name, StorableText, nullable=False)


def _id() -> sql.Column[Any]:
    return sql.Column("id", Number, primary_key=True, autoincrement=True)


migrations = sql.Table(
    "migrations", tables, sql.Column("number", sql.Integer, primary_key=True, autoincrement=False), sql.Column("at", sql.Double)
)
corrections = sql.Table(
    "corrections",
    tables,
    _id(),
    *map(_text, ("source_language", "target_language", "source", "translation", "correction", "key", "model")),
    sql.Column("created", sql.Double, nullable=False),  # seconds since 1970
    sql.Index("corrections_of_pair", "source_language", "target_language", "id"),
    sql.Index("corrections_of_key", "key"),
    sqlite_autoincrement=True,  # the number of a deleted row is not given again: who has read up to it would miss the new one
)
glossaries = sql.Table(
    "glossaries",
    tables,
    sql.Column("id", StorableText, primary_key=True),
    *map(_text, ("name", "source", "target", "entries", "owner", "created")),
    sql.Column("used", sql.Double, nullable=False),
    sql.Index("glossaries_of_owner", "owner"),
)
usage = sql.Table(
    "usage",
    tables,
    sql.Column("month", StorableText, primary_key=True),  # 2026-11
    sql.Column("name", StorableText, primary_key=True),
    sql.Column("characters", sql.BigInteger, nullable=False),
)
