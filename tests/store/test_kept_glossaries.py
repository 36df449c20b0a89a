"""Glossaries in a store are of all its servers: each tells it what is used, and forgets of its own memory alone."""

import asyncio
import time

import pytest

from limelight.errors import StorageError
from limelight.serving.compat.deepl import glossary_store
from limelight.serving.compat.deepl.glossary_store import SECONDS, GlossaryStore, StoredGlossary, terms_of
from limelight.serving.queue.served_store import ServedStore
from limelight.serving.refusals import Busy
from limelight.store.store import Store


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def served(store: Store) -> ServedStore:
    return ServedStore(store)


def settle(store: GlossaryStore, owner: str = "anna", new: StoredGlossary | None = None) -> None:
    asyncio.run(store.settle(owner, new))


def added(store: GlossaryStore, owner: str = "anna", terms: int = 1) -> str:
    made = store.add("g", ("en", "de"), terms_of([(f"t{at:03}", "x") for at in range(terms)]), owner)
    settle(store, owner, made)
    return made.file.id


def ids(store: GlossaryStore, owner: str = "anna") -> list[str]:
    settle(store, owner)
    return [stored.file.id for stored in store.of(owner)]


def be_away(*_: object) -> None:
    raise StorageError("away")


def test_a_use_is_told_at_once_and_what_one_server_forgets_the_store_keeps(served: ServedStore) -> None:
    clock = Clock()
    here, there = GlossaryStore(store=served, now=clock), GlossaryStore(store=served, now=clock)
    id = added(here)
    clock.now += SECONDS / 2
    settle(there)
    there.use(id, "anna")
    asyncio.run(there.settle_use("anna"))
    assert served.store.glossaries.settle("anna", [])[0][id] == clock.now
    clock.now += SECONDS * 0.75  # here nobody has used it for longer than a month
    assert here.of("anna") == [] and ids(here) == ids(there) == [id]


def test_a_use_that_cannot_be_told_is_told_the_next_time(served: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    store = GlossaryStore(store=served, now=clock)
    id = added(store)
    clock.now += SECONDS / 2
    store.use(id, "anna")
    with monkeypatch.context() as patched:
        patched.setattr(served.store.glossaries, "settle", be_away)
        asyncio.run(store.settle_use("anna"))
    settle(store, "berta")
    assert served.store.glossaries.settle("anna", [])[0][id] == clock.now


def test_who_is_refused_has_driven_nothing_out(served: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_store, "MOST", 1)
    store = GlossaryStore(store=served)
    first = added(store)
    with monkeypatch.context() as patched:
        patched.setattr(served.store.glossaries, "settle", be_away)
        with pytest.raises(Busy):
            added(store)
    assert [stored.file.id for stored in store.of("anna")] == ids(store) == [first]
    second = added(store)
    assert ids(store) == ids(GlossaryStore(store=served)) == [second]


def test_memory_is_bounded_over_owners_and_nobody_is_refused_for_others(served: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_store, "LARGEST", 100)
    clock = Clock()
    store = GlossaryStore(store=served, now=clock)
    made = []
    for owner in ("anna", "berta", "clara"):
        clock.now += 1
        made.append(added(store, owner, terms=10))  # 70 bytes
    assert list(store._stored) == made[2:]
    assert ids(store) == made[:1] and list(store._stored) == made[:1]


def test_room_is_made_of_what_all_servers_used_longest_ago(served: ServedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_store, "MOST", 2)
    clock = Clock()
    here, there = GlossaryStore(store=served, now=clock), GlossaryStore(store=served, now=clock)
    first, second = added(here), added(here)
    clock.now += SECONDS / 2
    assert set(ids(there)) == {first, second}
    there.use(first, "anna")
    asyncio.run(there.settle_use("anna"))
    fresh = GlossaryStore(store=served, now=clock)
    settle(fresh)
    third = added(fresh)
    assert set(ids(here)) == {first, third}
