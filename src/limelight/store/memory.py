"""A `TranslationMemory` finds what was translated before: the same text by its hash, and similar ones by the rare trigrams they share.

A search costs the same in a memory of any size: of each trigram so many segments are looked at, and the best of them are compared.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import sqlalchemy as sql
import xxhash
from rapidfuzz import process
from rapidfuzz.distance import Indel, Levenshtein

from limelight.store.database import Database
from limelight.store.schema import is_storable, rarities, segments
from limelight.store.trigrams import INDEXED, LONGEST, SEARCHED, Rarity

BATCH = 5_000  # segments of one transaction: others write in between
PAUSE = 0.15  # seconds between two in SQLite, where who waits for its turn looks every tenth of a second
LONGEST_SEGMENT = 10_000  # characters
LOOKED_AT = 500  # segments of one trigram
COMPARED = 200  # segments that share most
LEAST = 0.7  # similarity of a match
ENOUGH = 50_000  # segments, by which what is rare is known well
Pair = tuple[str, str]
_WORDS = re.compile(r"\w+|\W")
# The segments that share most of some trigrams: of a rare one all are looked at, of a common one those that come first. As text, since
# to build it of parts takes longer than the database takes to answer it.
_NAMES = [f"gram{at}" for at in range(SEARCHED)]
_ONE = "SELECT segment FROM (SELECT segment FROM trigrams WHERE gram = CAST(:{} AS INTEGER) LIMIT {}) AS {}_"
_SIMILAR = sql.text(
    "SELECT id, pair, source, target, origin FROM segments WHERE id IN (SELECT segment FROM "
    f"({' UNION ALL '.join(_ONE.format(name, LOOKED_AT, name) for name in _NAMES)}) AS every_ "
    f"GROUP BY segment ORDER BY count(*) DESC, segment DESC LIMIT {COMPARED}) ORDER BY id DESC"
)

_COLUMNS = sql.select(*(segments.c[name] for name in ("id", "pair", "source", "target", "origin")))


@dataclass(frozen=True)
class MemoryMatch:
    """`score` is 1 for the same text, else the share of characters that need not be inserted or deleted."""

    score: float
    source: str
    target: str
    origin: str

    def describe_difference(self, text: str) -> list[tuple[str, str]]:
        """[("the source of the match has", "the text has")] wherever their words differ."""
        theirs, ours = _WORDS.findall(self.source), _WORDS.findall(text.strip())
        steps = [step for step in Levenshtein.opcodes(theirs, ours) if step.tag != "equal"]
        return [("".join(theirs[step.src_start : step.src_end]), "".join(ours[step.dest_start : step.dest_end])) for step in steps]


class AddedSegments(NamedTuple):
    added: int
    known: int  # the same pair was there
    refused: int  # empty, or larger than a segment


class TranslationMemory:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._rarities: dict[str, tuple[int, Rarity]] = {}

    def add(self, pair: Pair, texts: Iterable[tuple[str, str]], origin: str = "") -> Iterator[AddedSegments]:
        """Take them in, a batch at a time: what was told is kept. `origin` is by what they can be deleted again, such as a file's name."""
        waiting = iter(texts)
        batch = list(islice(waiting, BATCH))
        while batch:
            with self._database.write() as connection:
                done = self._add(connection, ">".join(pair), batch, origin)
            yield done
            if batch := list(islice(waiting, BATCH)):
                self._let_others_write()

    def find_exact(self, pair: Pair, texts: Sequence[str]) -> dict[str, MemoryMatch]:
        """The newest match of each text that is there, but for blanks around it."""
        asked = {text: _key(">".join(pair), text.strip()) for text in texts}
        waiting, found = iter(asked.values()), dict[int, MemoryMatch]()
        with self._database.read() as connection:
            while some := list(islice(waiting, BATCH)):
                rows = connection.execute(sql.select(segments).where(segments.c.source_key.in_(some)).order_by(segments.c.id))
                found |= {row.source_key: MemoryMatch(1.0, row.source, row.target, row.origin) for row in rows}
        return {text: found[key] for text, key in asked.items() if key in found and found[key].source == text.strip()}

    def find(self, pair: Pair, text: str, most: int = 5, least: float = LEAST) -> list[MemoryMatch]:
        """The most similar, best first, before all others what differs in case alone; of a text that is too long only the same one."""
        text, name = text.strip(), ">".join(pair)
        if not text or len(text) > LONGEST:
            return list(self.find_exact(pair, [text]).values())
        with self._database.read() as connection:
            grams = self._rarity(connection, name).choose(text, SEARCHED)
            asked = dict.fromkeys(_NAMES) | {f"gram{at}": gram for at, gram in enumerate(grams.tolist())}
            same = connection.execute(
                _COLUMNS.where(segments.c.source_key == _key(name, text)).order_by(segments.c.id.desc()).limit(most)
            ).all()
            rows = [*same, *(row for row in connection.execute(_SIMILAR, asked) if row.pair == name and row.source != text)]
        scored = process.extract(text, [row.source for row in rows], scorer=Indel.normalized_similarity, limit=None, score_cutoff=least)
        best = sorted(scored, key=lambda found: (found[1] < 1, found[0].casefold() != text.casefold()))[:most]
        return [MemoryMatch(score, rows[at].source, rows[at].target, rows[at].origin) for _, score, at in best]

    def list_origins(self) -> list[tuple[str, str, int]]:
        """[("en>de", "menu.tmx", 1200)]"""
        of = segments.c.pair, segments.c.origin
        with self._database.read() as connection:
            found = connection.execute(sql.select(*of, sql.func.count()).group_by(*of).order_by(*of))
            return [(pair, origin, count) for pair, origin, count in found]

    def delete(self, origins: Sequence[str], pair: Pair | None = None) -> list[int]:
        """Delete what came from there, of one pair of languages or of all; how much of each it was."""
        deleted = [self._delete_origin(origin, pair) for origin in origins]
        self._database.overwrite_deleted(sum(deleted))
        return deleted

    def _delete_origin(self, origin: str, pair: Pair | None) -> int:
        """A batch at a time."""
        deleted, of_origin = 0, segments.c.origin == origin
        with self._database.read() as connection:
            found = connection.execute(sql.select(segments.c.pair).where(of_origin).distinct()).scalars()
            names = [name for name in found if pair is None or name == ">".join(pair)]
        for name in names:
            some = sql.select(segments.c.id, segments.c.source).where(of_origin, segments.c.pair == name).limit(BATCH)
            while True:
                with self._database.write() as connection:
                    texts = [(id, source) for id, source in connection.execute(some)]
                    if texts:
                        self._index(connection, name, texts, forget=True)
                        connection.execute(sql.delete(segments).where(segments.c.id.in_([id for id, _ in texts])))
                deleted += len(texts)
                if len(texts) < BATCH:
                    break
                self._let_others_write()
        return deleted

    def _let_others_write(self) -> None:
        if self._database.sqlite:
            time.sleep(PAUSE)

    def _add(self, connection: sql.Connection, pair: str, batch: list[tuple[str, str]], origin: str) -> AddedSegments:
        stripped = [(source.strip(), target.strip()) for source, target in batch]
        storable = [texts for texts in stripped if all(0 < len(text) <= LONGEST_SEGMENT and is_storable(text) for text in texts)]
        good = {_key(pair, *texts): texts for texts in storable}
        known = set(connection.execute(sql.select(segments.c.pair_key).where(segments.c.pair_key.in_(good))).scalars())
        last = connection.execute(sql.select(sql.func.max(segments.c.id))).scalar() or 0
        rows = [
            {"pair": pair, "source": source, "target": target, "origin": origin, "source_key": _key(pair, source), "pair_key": key}
            for key, (source, target) in good.items()
            if key not in known
        ]
        if rows:
            connection.execute(segments.insert(), [{"id": number, **row} for number, row in enumerate(rows, last + 1)])
            if not self._learn(connection, pair):
                self._index(connection, pair, [(number, str(row["source"])) for number, row in enumerate(rows, last + 1)])
        return AddedSegments(len(rows), len(storable) - len(rows), len(batch) - len(storable))

    def _learn(self, connection: sql.Connection, pair: str) -> bool:
        """Learn what is rare anew while a memory is small and has grown fourfold, and index all of it by that."""
        learnt = connection.execute(sql.select(rarities.c.segments).where(rarities.c.pair == pair)).scalar() or 0
        if learnt >= ENOUGH:
            return False
        of_pair = segments.c.pair == pair
        count = connection.execute(sql.select(sql.func.count()).select_from(segments).where(of_pair)).scalar_one()
        if count < 4 * learnt:
            return False
        texts = [(id, source) for id, source in connection.execute(sql.select(segments.c.id, segments.c.source).where(of_pair))]
        if learnt:
            self._index(connection, pair, texts, forget=True)
        rarity = Rarity(pair)
        rarity.learn(source for _, source in texts)
        connection.execute(sql.delete(rarities).where(rarities.c.pair == pair))
        connection.execute(rarities.insert().values(pair=pair, segments=count, counts=rarity.counts.tobytes()))
        self._index(connection, pair, texts)
        return True

    def _index(self, connection: sql.Connection, pair: str, texts: list[tuple[int, str]], forget: bool = False) -> None:
        """Put the rarest trigrams of these texts into the index, or take them out: by their key, since the index is not sorted by text."""
        rarity = self._rarity(connection, pair)
        rows = sorted((gram, id) for id, source in texts for gram in rarity.choose(source, INDEXED).tolist())
        if self._database.sqlite:
            insert, delete = "INSERT OR IGNORE INTO trigrams VALUES (?, ?)", "DELETE FROM trigrams WHERE gram = ? AND segment = ?"
            connection.exec_driver_sql(delete if forget else insert, rows)
        else:  # row by row it would take ten times as long
            grams, ids = zip(*rows, strict=True)
            given = "unnest(CAST(:grams AS int[]), CAST(:ids AS bigint[]))"
            insert = f"INSERT INTO trigrams SELECT * FROM {given} ON CONFLICT DO NOTHING"
            delete = f"DELETE FROM trigrams USING {given} AS gone(key, owner) WHERE gram = key AND segment = owner"
            connection.execute(sql.text(delete if forget else insert), {"grams": list(grams), "ids": list(ids)})

    def _rarity(self, connection: sql.Connection, pair: str) -> Rarity:
        """Read again what another process has learnt anew."""
        learnt = connection.execute(sql.select(rarities.c.segments).where(rarities.c.pair == pair)).scalar() or 0
        if pair not in self._rarities or self._rarities[pair][0] != learnt:
            counts = connection.execute(sql.select(rarities.c.counts).where(rarities.c.pair == pair)).scalar()
            self._rarities[pair] = learnt, Rarity(pair, counts)
        return self._rarities[pair][1]


def _key(*parts: str) -> int:
    """64 bits with a sign, as databases have them."""
    return xxhash.xxh3_64_intdigest("\0".join(parts).encode("utf-8", "surrogatepass")) - (1 << 63)
