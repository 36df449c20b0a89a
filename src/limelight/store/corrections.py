"""`Corrections` are the translations that people mended, in the order in which they came."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sql

from limelight.store.database import Database
from limelight.store.schema import corrections as table

MOST = 100_000  # read at once
MOST_KEPT = 1_000_000
COUNTED_EVERY = 1_000  # that are added


@dataclass(frozen=True)
class Correction:
    """`translation` is what the model had said, `key` the name of who mended it (empty: nobody was asked), `model` the id of the bundle."""

    id: int
    source_language: str
    target_language: str
    source: str
    translation: str
    correction: str
    key: str
    model: str
    created: float


class Corrections:
    def __init__(self, database: Database) -> None:
        self._database, self._room = database, 0

    def add(
        self, source_language: str, target_language: str, source: str, translation: str, correction: str, key: str = "", model: str = ""
    ) -> int:
        """Its id: larger than of all that were added before. 0: it is not kept, since as many are as may be."""
        values = dict(
            zip(table.c.keys()[1:-1], (source_language, target_language, source, translation, correction, key, model), strict=True)
        )
        if self._room <= 0:
            with self._database.read() as connection:
                kept = connection.execute(sql.select(sql.func.count()).select_from(table)).scalar_one()
            self._room = min(COUNTED_EVERY, MOST_KEPT - kept)
            if self._room <= 0:
                return 0
        self._room -= 1
        with self._database.write() as connection:
            added = connection.execute(table.insert().values(values | {"created": time.time()}).returning(table.c.id))
            return int(added.scalar_one())

    def delete(self, ids: Sequence[int]) -> int:
        """How many of these were there."""
        with self._database.write() as connection:
            deleted = connection.execute(sql.delete(table).where(table.c.id.in_(ids))).rowcount
        self._database.overwrite_deleted(deleted)
        return deleted

    def list(self, pair: tuple[str, str], after: int = 0, most: int = MOST) -> list[Correction]:
        """Those of a pair of languages with a larger id than `after`, oldest first; `most` at once."""
        of_pair = (table.c.source_language == pair[0]) & (table.c.target_language == pair[1]) & (table.c.id > after)
        with self._database.read() as connection:
            rows = connection.execute(sql.select(table).where(of_pair).order_by(table.c.id).limit(most))
            return [Correction(**row) for row in rows.mappings()]
