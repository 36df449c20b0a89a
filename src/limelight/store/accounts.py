"""`KeptUsage` and `KeptGlossaries` are what several servers know of their callers together: what they used up, and their glossaries."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sql

from limelight.store.database import Database
from limelight.store.schema import glossaries, usage


class KeptUsage:
    def __init__(self, database: Database) -> None:
        self._database = database

    def settle(self, month: str, more: Mapping[str, int]) -> dict[str, int]:
        """Add what each name has used since the last time, and tell the characters of all names in this month."""
        insert = self._database.insert(usage)
        total = usage.c.characters + insert.excluded.characters
        with self._database.write() if more else self._database.read() as connection:  # one transaction: told twice, it would count twice
            for name in sorted(more):
                added = insert.values(month=month, name=name, characters=more[name])
                connection.execute(added.on_conflict_do_update(index_elements=["month", "name"], set_={"characters": total}))
            rows = connection.execute(sql.select(usage.c.name, usage.c.characters).where(usage.c.month == month))
            return {row.name: row.characters for row in rows}

    def take(self, month: str, name: str, characters: int, most: int) -> int | None:
        """Add so many, and tell the new total, if that is no more than `most`; else None, and nothing has changed."""
        insert = self._database.insert(usage).values(month=month, name=name, characters=characters)
        total = usage.c.characters + insert.excluded.characters
        taken = insert.on_conflict_do_update(index_elements=["month", "name"], set_={"characters": total}, where=total <= most)
        if characters > most:
            return None
        # In PostgreSQL the lock of the row is enough: who answers does not wait for who fills the memory.
        with self._database.write() if self._database.sqlite else self._database.read() as connection:
            found: int | None = connection.execute(taken.returning(usage.c.characters)).scalar()
            return found


class KeptGlossaries:
    def __init__(self, database: Database) -> None:
        self._database = database

    def settle(
        self,
        owner: str,
        known: Collection[str],
        new: Sequence[dict[str, Any]] = (),
        gone: Collection[str] = (),
        used: Mapping[str, float] = {},
    ) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Write what changed; then tell when each glossary of the owner was last used, and the rows of those that are not known."""
        with self._database.write() if new or gone or used else self._database.read() as connection:
            if gone:
                connection.execute(sql.delete(glossaries).where(glossaries.c.id.in_(gone)))
            for id, at in used.items():
                connection.execute(sql.update(glossaries).where(glossaries.c.id == id, glossaries.c.used < at).values(used=at))
            if new:
                connection.execute(glossaries.insert(), list(new))
            there = connection.execute(sql.select(glossaries.c.id, glossaries.c.used).where(glossaries.c.owner == owner))
            times = {row.id: row.used for row in there}
            rows = connection.execute(sql.select(glossaries).where(glossaries.c.id.in_(times.keys() - set(known)))) if times else None
            return times, [] if rows is None else [dict(row) for row in rows.mappings()]
