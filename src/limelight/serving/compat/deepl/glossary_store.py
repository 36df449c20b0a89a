"""A store keeps the glossaries of callers, each for its owner alone, until it was not used for a month. It holds no more than fit.

    STATE/glossaries/ID.json      one for each, where there is a folder for what outlives a restart
    a table of the store          where there is one: all servers of that store have the same, and `settle` makes it so

Clients remember ids: Weblate for a day. So what a client uses stays, and room is made of what its owner has not used longest.
"""

import asyncio
import contextlib
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from limelight.bundle.strict_json import parse
from limelight.config import Settings
from limelight.errors import ConfigError
from limelight.files import whole_file
from limelight.serving.queue.served_store import ServedStore
from limelight.serving.refusals import Busy, NotFound
from limelight.text.careful.glossary import Glossary

if TYPE_CHECKING:
    from limelight.store.store import Store

logger = logging.getLogger(__name__)

SECONDS = 30 * 86_400.0  # since the last use
TOUCHED_EVERY = 3_600.0  # seconds; a use is written down no more often
MOST = 1_000  # glossaries of one owner, as many as Weblate makes before it deletes some
LARGEST_OWNED = 16 << 20  # bytes of one owner
LARGEST = 128 << 20  # bytes of all


class GlossaryFile(Settings):
    """The file has a glossary as it was sent, and its owner. `entries` has a line for each term: source, tab, target."""

    id: str = Field(pattern=r"^[0-9a-f-]{36}$")
    name: str = Field(max_length=1_024)
    source: str = Field(max_length=100)
    target: str = Field(max_length=100)
    entries: str = Field(max_length=LARGEST_OWNED)
    owner: str = Field(max_length=100)
    created: str = Field(max_length=40)


@dataclass
class StoredGlossary:
    file: GlossaryFile
    used: float
    terms: Glossary
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.file.entries.encode())

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> "StoredGlossary":
        used = row.pop("used")
        file = GlossaryFile(**row)
        return cls(file, used, terms_of(pairs_of(file.entries)))


class GlossaryStore:
    """The store lives in the event loop; `write` is for a thread."""

    def __init__(self, state: Path | None = None, store: ServedStore | None = None, now: Callable[[], float] = time.time) -> None:
        self._folder = None if state is None or store is not None else state / "glossaries"
        self._kept, self._now = store, now
        self._gone: set[str] = set()  # since the store was told
        self._touched: dict[str, float] = {}
        self._stored: dict[str, StoredGlossary] = {}  # longest unused first
        for stored in sorted(self._read(), key=lambda stored: stored.used):
            self._stored[stored.file.id] = stored

    def add(self, name: str, pair: tuple[str, str], terms: Glossary, owner: str) -> StoredGlossary:
        """Raises `Busy` where others have left no room."""
        file = GlossaryFile(
            id=str(uuid.uuid4()),
            name=name,
            source=pair[0],
            target=pair[1],
            entries=entries_of(terms),
            owner=owner,
            created=datetime.fromtimestamp(self._now(), UTC).isoformat(),
        )
        stored = StoredGlossary(file, self._now(), terms)
        if self._kept is None:  # else it is there when the store has it: `settle`
            for dropped in self._to_drop(stored):
                self.remove(dropped)
            self._stored[file.id] = stored
        return stored

    def of(self, owner: str) -> list[StoredGlossary]:
        """List the glossaries of an owner, in the order in which they were made."""
        self._forget_old()
        own = [stored for stored in self._stored.values() if stored.file.owner == owner]
        return sorted(own, key=lambda stored: stored.file.created)

    def find(self, id: str, owner: str) -> StoredGlossary:
        """Also somebody else's is not found: that it exists is not told."""
        self._forget_old()
        stored = self._stored.get(id)
        if stored is None or stored.file.owner != owner:
            raise NotFound("Glossary not found", "It was deleted, or nobody has used it for a month: create it again.")
        return stored

    def use(self, id: str, owner: str) -> StoredGlossary:
        """Find a glossary that is needed: it is then the last to go."""
        stored = self.find(id, owner)
        self._stored[id] = self._stored.pop(id)
        if self._now() - stored.used > TOUCHED_EVERY:
            stored.used = self._now()
            if self._kept is not None:
                self._touched[id] = stored.used
            self._with_file(id, lambda path: os.utime(path))
        return stored

    async def settle_use(self, owner: str) -> None:
        """Tell the store of a use, or other servers would forget what is used here alone. If it is away, it hears of it the next time."""
        if self._touched:
            with contextlib.suppress(Busy):
                await self.settle(owner)

    def remove(self, stored: StoredGlossary) -> None:
        self._stored.pop(stored.file.id, None)
        if self._kept is not None:
            self._gone.add(stored.file.id)
        self._with_file(stored.file.id, lambda path: path.unlink(missing_ok=True))

    async def settle(self, owner: str, new: StoredGlossary | None = None) -> None:
        """Tell the store what is new and gone, and take over what other servers did for this owner. Without a store there is a file."""
        if self._kept is None:
            if new is not None:
                await asyncio.to_thread(self.write, new)
            return
        known = {stored.file.id for stored in self._stored.values() if stored.file.owner == owner}
        gone, used, rows = set(self._gone), dict(self._touched), list[dict[str, Any]]()
        if new is not None:
            gone |= {dropped.file.id for dropped in self._to_drop(new)}
            rows, known = [{**new.file.model_dump(), "used": new.used}], known | {new.file.id}

        def ask(opened: "Store") -> tuple[dict[str, float], list[StoredGlossary]]:
            times, others = opened.glossaries.settle(owner, known, rows, gone, used)
            return times, [StoredGlossary.from_row(row) for row in others]

        times, others = await self._kept.ask(ask)  # who is refused here has changed nothing; what is gone and used is told the next time
        self._gone -= gone
        self._touched = {id: at for id, at in self._touched.items() if used.get(id) != at}
        self._stored |= {} if new is None else {new.file.id: new}
        for stored in [self._stored[id] for id in known & self._stored.keys()]:
            if stored.file.id not in times:
                del self._stored[stored.file.id]
            else:
                stored.used = max(stored.used, times[stored.file.id])
        self._stored |= {stored.file.id: stored for stored in others if stored.file.id not in self._gone}
        self._stored = dict(sorted(self._stored.items(), key=lambda each: each[1].used))
        self._forget_others(owner)

    def write(self, stored: StoredGlossary) -> None:
        """Write it for the owner's eyes only. A disk that is full loses it at the next restart, and no sooner."""
        self._with_file(stored.file.id, lambda path: _write(path, stored.file.model_dump_json().encode()))

    def _to_drop(self, new: StoredGlossary) -> list[StoredGlossary]:
        """Choose of the same owner those that were not used longest, as many as make room."""
        self._forget_old()
        own = [stored for stored in self._stored.values() if stored.file.owner == new.file.owner]
        all_bytes = 0 if self._kept is not None else sum(stored.size for stored in self._stored.values()) + new.size
        own_bytes = sum(stored.size for stored in own) + new.size
        dropped: list[StoredGlossary] = []
        while len(own) - len(dropped) >= MOST or own_bytes > LARGEST_OWNED or all_bytes > LARGEST:
            if len(dropped) == len(own):
                raise Busy("too many glossaries are kept here", "send a smaller one, or try again later", retry_after=60.0)
            dropped.append(own[len(dropped)])
            own_bytes, all_bytes = own_bytes - dropped[-1].size, all_bytes - dropped[-1].size
        return dropped

    def _forget_old(self) -> None:
        for stored in [each for each in self._stored.values() if each.used < self._now() - SECONDS]:
            if self._kept is None:
                self.remove(stored)
            else:  # another server may have used it: the store deletes by what all have told it
                del self._stored[stored.file.id]

    def _forget_others(self, owner: str) -> None:
        """What a store has is read again when its owner asks: in memory is what fits, the last used."""
        size = sum(stored.size for stored in self._stored.values())
        for stored in [each for each in self._stored.values() if each.file.owner != owner]:
            if size <= LARGEST:
                break
            size -= self._stored.pop(stored.file.id).size

    def _with_file(self, id: str, do: Callable[[Path], None]) -> None:
        if self._folder is not None:
            try:
                do(self._folder / f"{id}.json")
            except OSError:  # its place is told, and nothing of what stands in it
                logger.exception("a glossary could not be written or removed")

    def _read(self) -> Iterator[StoredGlossary]:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in sorted(self._folder.glob("*.json")):
            try:
                file = GlossaryFile(**parse(path.read_bytes(), largest=2 * LARGEST_OWNED))
                yield StoredGlossary(file, path.stat().st_mtime, terms_of(pairs_of(file.entries)))
            except (OSError, ValueError, TypeError, ConfigError):
                logger.warning("a file in the folder of glossaries cannot be read, and is left out")


def terms_of(pairs: Iterable[tuple[str, str]]) -> Glossary:
    """A source that comes twice has both targets. Raises `ConfigError` for terms that cannot be used."""
    terms: dict[str, dict[str, None]] = {}
    for source, target in pairs:
        terms.setdefault(source, {})[target] = None
    return Glossary.of({source: list(targets) for source, targets in terms.items()})


def pairs_of(entries: str) -> Iterator[tuple[str, str]]:
    """pairs_of("one\\teins\\n") -> ("one", "eins"); a line without a tab has an empty target."""
    for line in entries.split("\n"):
        if line.strip():
            source, _, target = line.partition("\t")
            yield source, target


def entries_of(terms: Glossary) -> str:
    return "".join(f"{term.source}\t{target}\n" for term in terms.terms for target in term.targets)


def _write(path: Path, content: bytes) -> None:
    with whole_file(path) as beside:
        beside.touch(mode=0o600)
        beside.write_bytes(content)
