"""Glossaries are kept for their owner, within bounds, for as long as they are used, and across restarts where there is a folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from labelled import labelled, loaded, serving

from limelight.errors import ConfigError
from limelight.serving.access.keys import Keys
from limelight.serving.compat.deepl import glossary_store
from limelight.serving.compat.deepl.glossary_store import SECONDS, GlossaryStore, StoredGlossary, pairs_of, terms_of
from limelight.serving.refusals import Busy, NotFound

PAIR = ("en", "de")


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def added(store: GlossaryStore, owner: str = "anna", terms: int = 1) -> StoredGlossary:
    clock: Any = store._now
    if isinstance(clock, Clock):
        clock.now += 1
    return store.add("g", PAIR, terms_of([(f"t{at:03}", "x") for at in range(terms)]), owner)


def test_a_glossary_is_found_by_its_owner_and_nobody_else() -> None:
    store = GlossaryStore()
    one = added(store)
    assert store.find(one.file.id, "anna") is one and store.of("anna") == [one] and store.of("berta") == []
    for id, owner in ((one.file.id, "berta"), (one.file.id, ""), ("x", "anna")):
        with pytest.raises(NotFound):
            store.use(id, owner)
    store.remove(one)
    assert store.of("anna") == []


def test_room_is_made_of_what_its_owner_used_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_store, "MOST", 3)
    store = GlossaryStore(now=Clock())
    theirs = added(store, "berta")
    first, second, third = (added(store) for _ in range(3))
    store.use(first.file.id, "anna")
    fourth = added(store)
    assert store.of("anna") == [first, third, fourth] and store.of("berta") == [theirs]
    assert second not in store.of("anna")


@pytest.mark.slow
def test_bytes_of_one_owner_and_of_all_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_store, "LARGEST_OWNED", 700)  # a term has seven bytes
    monkeypatch.setattr(glossary_store, "LARGEST", 1_000)
    store = GlossaryStore(now=Clock())
    first = added(store, terms=60)
    second = added(store, terms=60)
    assert store.of("anna") == [second] and first not in store.of("anna")
    with pytest.raises(Busy):
        added(store, terms=200)
    assert store.of("anna") == [second], "what cannot be kept drives nothing out"
    with pytest.raises(Busy):
        added(store, "berta", terms=90)
    added(store, "berta", terms=50)


def test_what_nobody_uses_for_a_month_is_gone_and_what_is_used_stays(tmp_path: Path) -> None:
    clock = Clock()
    store = GlossaryStore(tmp_path, now=clock)
    used, unused = added(store), added(store)
    for stored in (used, unused):
        store.write(stored)
    for _ in range(3):
        clock.now += SECONDS / 2
        store.use(used.file.id, "anna")
    assert store.of("anna") == [used]
    assert [path.stem for path in (tmp_path / "glossaries").iterdir()] == [used.file.id]


def test_a_restart_finds_what_was_written_and_leaves_out_what_is_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = GlossaryStore(tmp_path)
    one, other = added(store, terms=3), added(store, "berta")
    for stored in (one, other):
        store.write(stored)
        path = tmp_path / "glossaries" / f"{stored.file.id}.json"
        assert path.stat().st_mode & 0o077 == 0, "others on this machine do not read it"
    damaged = json.loads(path.read_bytes())
    for at, content in enumerate((b"{", b"[]", b"{}", json.dumps({**damaged, "entries": "no tab\n"}).encode())):
        (tmp_path / "glossaries" / f"{at}.json").write_bytes(content)
    again = GlossaryStore(tmp_path)
    assert again.find(one.file.id, "anna").file == one.file and again.find(other.file.id, "berta").terms == other.terms
    assert len(again.of("anna")) == len(again.of("berta")) == 1
    assert caplog.text.count("left out") == 4 and "no tab" not in caplog.text


def test_entries_are_terms_and_a_source_that_comes_twice_has_both_targets() -> None:
    terms = terms_of(pairs_of("one\teins|ein\none\tein\n\ntwo\tzwei\n"))
    assert [(term.source, term.targets) for term in terms.terms] == [("one", ("eins|ein", "ein")), ("two", ("zwei",))]
    with pytest.raises(ConfigError, match="term 1: the target is empty"):
        terms_of(pairs_of("one\n"))


@pytest.mark.process
def test_what_cannot_be_kept_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    anna, berta = Keys.add_key(path, "anna"), Keys.add_key(path, "berta")
    good = {"name": "g", "source_lang": "EN", "target_lang": "DE", "entries": "one\tEinsding", "entries_format": "tsv"}
    wrong: list[tuple[dict[str, str], str]] = [
        ({"name": ""}, "'name' not specified"),
        ({"entries": ""}, "'entries' not specified"),
        ({"name": "n" * 1_025}, "1,024 characters"),
        ({"target_lang": "FR"}, "not supported"),
        ({"source_lang": "DE", "target_lang": "DE"}, "not supported"),
        ({"entries_format": "xml"}, "'entries_format' not supported"),
        ({"entries": "one"}, "the target is empty"),
        ({"entries": "one\t" + "x" * 300}, "200 characters"),
        ({"entries": "".join(f"t{at}\tx\n" for at in range(6))}, "6 entries, and 5 are allowed"),
        ({"entries": '"one', "entries_format": "csv"}, "CSV"),
        ({"entries": "one", "entries_format": "csv"}, "no target"),
    ]
    with loaded() as translator, serving(labelled(translator, PAIR), keys=path, limits={"terms": 5}) as server:

        def ask(method: str, place: str, body: Any = None, key: str = anna) -> Any:
            return server.client.request(method, f"/v2/{place}", json=body, headers={"X-API-Key": key})

        for change, why in wrong:
            refused = ask("POST", "glossaries", {**good, **change})
            assert refused.status_code == 400 and why in refused.text, (change, refused.text)
        id = ask("POST", "glossaries", good).json()["glossary_id"]
        for method, place in (
            ("GET", f"glossaries/{id}"),
            ("GET", f"glossaries/{id}/entries"),
            ("DELETE", f"glossaries/{id}"),
        ):
            assert ask(method, place, key=berta).status_code == 404
        asked = {"text": ["one"], "source_lang": "EN", "target_lang": "DE", "glossary_id": id}
        assert "Einsding" in ask("POST", "translate", asked).json()["translations"][0]["text"]
        assert ask("POST", "translate", asked, berta).status_code == 404
        assert ask("POST", "translate", {**asked, "source_lang": None}).status_code == 400
        assert ask("GET", "glossaries", key=berta).json() == {"glossaries": []}


@pytest.mark.process
def test_a_server_for_everybody_keeps_no_glossaries(tmp_path: Path) -> None:
    """Without keys all have one name, and would read and delete each other's."""
    good = {"name": "g", "source_lang": "EN", "target_lang": "DE", "entries": "one\tEinsding"}
    with loaded() as translator:
        models = labelled(translator, PAIR)
        with serving(models) as server:
            assert server.client.post("/v2/glossaries", json=good).status_code == 201
        with serving(models, host="0.0.0.0", public=True) as server:
            refused = server.client.post("/v2/glossaries", json=good)
            assert refused.status_code == 403 and "asks for none" in refused.text
