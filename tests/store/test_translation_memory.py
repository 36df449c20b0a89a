"""A memory finds the same text and similar ones, in both databases alike, and takes the same pair once."""

import pytest
import sqlalchemy as sql
from rapidfuzz.distance import Indel

from limelight.store.memory import COMPARED, LOOKED_AT, PAUSE, AddedSegments, MemoryMatch
from limelight.store.schema import trigrams
from limelight.store.store import Store, open_store
from limelight.store.trigrams import INDEXED, Rarity

PAIR = ("en", "de")
VERBS, THINGS = ("open", "close", "rename", "delete", "copy"), ("file", "folder", "window", "account", "connection")
PAIRS = [(f"Could not {verb} the {thing} %s", f"{thing} {verb}") for verb in VERBS for thing in THINGS]


def add(store: Store, pairs: list[tuple[str, str]], origin: str = "a.tmx", languages: tuple[str, str] = PAIR) -> AddedSegments:
    return AddedSegments(*map(sum, zip(*store.memory.add(languages, pairs, origin), strict=True)))


def check_memory(store: Store) -> None:
    assert add(store, [*PAIRS, (" Cancel\n", "Abbrechen"), ("", "nichts"), ("nul \0", "x"), ("half \ud800", "x")]) == AddedSegments(
        26, 0, 3
    )
    assert add(store, PAIRS, "b.tmx") == AddedSegments(0, 25, 0)
    assert store.memory.list_origins() == [("en>de", "a.tmx", 26)]
    assert store.memory.find(PAIR, "Cancel ") == [MemoryMatch(1.0, "Cancel", "Abbrechen", "a.tmx")]
    best = store.memory.find(PAIR, "Could not open the files %s", most=3)
    assert best[0].source == "Could not open the file %s" and [each.score for each in best] == sorted(
        (each.score for each in best), reverse=True
    )
    assert best[0].describe_difference("Could not open the files %s") == [("file", "files")]
    assert store.memory.find(PAIR, "Tomorrow it rains.") == store.memory.find(("en", "fr"), "Cancel") == []
    exact = store.memory.find_exact(PAIR, ["Cancel", " Cancel", "cancel", PAIRS[3][0]])
    assert {text: match.target for text, match in exact.items()} == {
        "Cancel": "Abbrechen",
        " Cancel": "Abbrechen",
        PAIRS[3][0]: PAIRS[3][1],
    }
    add(store, [("Cancel", "Stornieren")], "b.tmx")
    assert store.memory.find_exact(PAIR, ["Cancel"])["Cancel"].target == "Stornieren"  # the newest
    assert store.memory.delete(["a.tmx"]) == [26] and store.memory.find(PAIR, PAIRS[0][0]) == []
    assert [each.target for each in store.memory.find(PAIR, "Cancel")] == ["Stornieren"]
    add(store, [("Cancel", "Annuler")], "b.tmx", ("en", "fr"))
    assert store.memory.delete(["b.tmx", "c.tmx"], ("en", "fr")) == [1, 0] and store.memory.delete(["b.tmx"], ("en", "fr")) == [0]
    assert store.memory.list_origins() == [("en>de", "b.tmx", 1)]
    assert store.memory.delete(["b.tmx"]) == [1] and count_trigrams(store) == 0


def count_trigrams(store: Store) -> int:
    with store.database.read() as connection:
        return connection.execute(sql.select(sql.func.count()).select_from(trigrams)).scalar_one()


def test_a_memory_finds_the_same_and_similar_texts(store: Store) -> None:
    check_memory(store)


def test_a_difference_of_case_alone_comes_first(store: Store) -> None:
    add(store, [("Open failed", "a"), ("Open File", "b"), ("Open file", "c"), ("Open files", "d")], "a.tmx")
    assert [each.target for each in store.memory.find(PAIR, "Open file")] == ["c", "b", "d", "a"]
    assert [each.target for each in store.memory.find(PAIR, "Open file", most=2)] == ["c", "b"]


def test_a_memory_in_both_databases(url: str) -> None:
    store = open_store(url)
    check_memory(store)
    store.close()


def test_what_is_rare_is_learnt_anew_and_heard_of_by_others(store: Store) -> None:
    """A second process that has the old order in mind would look for other trigrams than are indexed."""
    add(store, PAIRS[:3])
    other = open_store(str(store.database._engine.url))
    assert other.memory.find(PAIR, PAIRS[0][0])
    words = [(f"{'the quick brown fox ' * 2}number {number} of them", "x") for number in range(200)]
    add(store, words)
    assert [each.source for each in other.memory.find(PAIR, words[150][0], most=1)] == [words[150][0]]
    other.close()
    assert store.memory.delete(["a.tmx"]) == [203] and count_trigrams(store) == 0  # none of the old order is left


def test_others_write_between_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("limelight.store.memory.BATCH", 10)
    monkeypatch.setattr("limelight.store.memory.time.sleep", pauses.append)
    assert add(store, PAIRS).added == 25 and pauses == [PAUSE] * 2
    assert store.memory.delete(["a.tmx"]) == [25] and pauses == [PAUSE] * 4
    assert count_trigrams(store) == 0


def test_a_search_looks_at_so_many_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """All share their trigrams: the work of a search does not grow with them."""
    add(store, [("aaaa " * 3 + "b" * number, "x") for number in range(1, LOOKED_AT + 300)])
    compared: list[int] = []
    monkeypatch.setattr("limelight.store.memory.process.extract", lambda text, sources, **_: compared.append(len(sources)) or [])
    assert store.memory.find(PAIR, "aaaa aaaa aaaa b") == [] and 0 < compared[0] <= COMPARED


def test_the_same_text_is_found_among_many_of_its_kind(store: Store) -> None:
    add(store, [("aaaa " * 3 + "b" * number, str(number)) for number in range(1, LOOKED_AT + 300)])
    assert all(store.memory.find(PAIR, "aaaa " * 3 + "b" * number)[0].target == str(number) for number in range(1, LOOKED_AT + 300, 97))


@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800", "a" * 100_000, "\U0010ffff"])
def test_strange_texts_are_only_not_found(store: Store, text: str) -> None:
    add(store, PAIRS)
    assert store.memory.find(PAIR, text) == []
    assert store.memory.find_exact(PAIR, [text]) == {}


def test_the_rarest_trigrams_are_chosen() -> None:
    rarity = Rarity("en>de")
    rarity.learn(["the file of the folder", "the window of the folder", "the account"] * 10)
    chosen = set(rarity.choose("the zebra of the folder", 5).tolist())
    assert chosen <= set(rarity.choose("zebra", INDEXED).tolist()) | set(rarity.choose("the zebra of", INDEXED * 2).tolist())
    assert not chosen & set(rarity.choose("the folder", INDEXED * 2).tolist())
    assert not chosen & set(Rarity("de>en").choose("the zebra of the folder", 99).tolist())  # each pair has its own


def test_the_score_is_the_share_of_what_stays(store: Store) -> None:
    add(store, PAIRS)
    found = store.memory.find(PAIR, "Could not copy my folder %s")
    assert found[0].score == Indel.normalized_similarity("Could not copy my folder %s", found[0].source)
