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
        if value is not None and not is_storable(value):
            raise DataError("a text holds U+0000 or half a surrogate pair, which no database keeps; take it out")
        return value


def is_storable(text: str) -> bool:
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


def _text(name: str) -> sql.Column[Any]:
    return sql.Column(name, StorableText, nullable=False)


migrations = sql.Table(
    "migrations", tables, sql.Column("number", sql.Integer, primary_key=True, autoincrement=False), sql.Column("at", sql.Double)
)
corrections = sql.Table(
    "corrections",
    tables,
    sql.Column("id", Number, primary_key=True, autoincrement=True),
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
# The number of a segment is given under the lock of writers, and its keys are hashes: an index over texts would refuse the longest.
segments = sql.Table(
    "segments",
    tables,
    sql.Column("id", Number, primary_key=True, autoincrement=False),
    *map(_text, ("pair", "source", "target", "origin")),  # pair: en>de
    sql.Column("source_key", sql.BigInteger, nullable=False, index=True),
    sql.Column("pair_key", sql.BigInteger, nullable=False, unique=True),
    sql.Index("segments_of_origin", "pair", "origin"),
)
trigrams = sql.Table(
    "trigrams",
    tables,
    sql.Column("gram", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("segment", Number, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)
rarities = sql.Table(
    "rarities",
    tables,
    sql.Column("pair", StorableText, primary_key=True),
    sql.Column("segments", sql.BigInteger, nullable=False),  # of which was learnt what is rare
    sql.Column("counts", sql.LargeBinary, nullable=False),
)
