"""Corrections are kept where the operator turned a store on, refused with a reason where not, and never logged."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from limelight.serving.access.keys import Keys, today
from limelight.store.store import Store, open_store
from limelight.translator import Translator

sys.path.insert(0, str(Path(__file__).parent))
from labelled import labelled, loaded, serving

pytestmark = pytest.mark.process
BODY = {"text": "one two", "translation": "eins zwo", "correction": "eins zwei"}
SECRET = "seventeenzwölf"


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with loaded() as made:
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/a.db")
    yield opened
    opened.close()


def test_a_correction_is_kept_with_its_languages_and_its_model(translator: Translator, store: Store) -> None:
    with serving(labelled(translator, ("en", "de"), ("de", "en")), store=store.database.name) as server:
        first = server.client.post("/api/v1/corrections", json=BODY)
        second = server.client.post("/api/v1/corrections", json={"text": "a", "correction": "b", "source": "de", "target": "en"})
        assert (first.status_code, second.status_code) == (200, 200)
        assert server.client.get("/api/v1/models").json()["corrections"] is True
    (kept,) = store.corrections.list(("en", "de"))
    assert (kept.id, kept.source, kept.translation, kept.correction, kept.model) == (first.json()["id"], *BODY.values(), "en-de")
    assert [each.model for each in store.corrections.list(("de", "en"))] == ["de-en"]


def test_a_suggestion_is_a_correction(translator: Translator, store: Store) -> None:
    with serving(labelled(translator, ("en", "de")), store=store.database.name) as server:
        sent = server.client.post("/suggest", json={"q": "one", "s": "eins", "source": "en", "target": "de"})
        assert sent.json() == {"success": True}
        assert server.client.get("/frontend/settings").json()["suggestions"] is True
        back = server.client.post("/suggest", json={"q": "eins", "s": "one", "source": "de", "target": "en"})
        assert back.status_code == 400
    assert [(each.source, each.correction) for each in store.corrections.list(("en", "de"))] == [("one", "eins")]


def test_without_a_store_they_are_refused_with_the_reason(translator: Translator) -> None:
    with serving(labelled(translator, ("en", "de"))) as server:
        answer = server.client.post("/api/v1/corrections", json=BODY)
        assert answer.status_code == 403
        assert "--store" in answer.text
        assert server.client.get("/api/v1/models").json()["corrections"] is False
        assert server.client.post("/suggest", json={"q": "one", "s": "eins", "source": "en", "target": "de"}).status_code == 403


def test_what_the_quota_has_no_room_for_is_not_kept(translator: Translator, store: Store, tmp_path: Path) -> None:
    """Another server has taken all of it, and this one has not heard of that yet."""
    key = Keys.add_key(tmp_path / "keys.toml", "forum", characters_per_month=100)
    with serving(labelled(translator, ("en", "de")), keys=tmp_path / "keys.toml", store=store.database.name) as server:
        server.client.headers["Authorization"] = f"DeepL-Auth-Key {key}"
        store.usage.take(f"{today():%Y-%m}", "forum", 100, 100)
        assert server.client.post("/api/v1/corrections", json=BODY).status_code == 456
        assert server.client.post("/suggest", json={"q": "one", "s": "eins", "source": "en", "target": "de"}).status_code == 456
    assert store.corrections.list(("en", "de")) == []


def test_a_server_for_everybody_keeps_none_and_each_character_counts(translator: Translator, store: Store, tmp_path: Path) -> None:
    models, url = labelled(translator, ("en", "de")), store.database.name
    with serving(models, host="0.0.0.0", public=True, store=url) as server:
        answer = server.client.post("/api/v1/corrections", json=BODY)
        assert answer.status_code == 403 and "--api-key-file" in answer.text
        assert server.client.post("/suggest", json={"q": "one", "s": "eins", "source": "en", "target": "de"}).status_code == 403
        assert server.client.get("/api/v1/models").json()["corrections"] is False
    assert store.corrections.list(("en", "de")) == []
    key = Keys.add_key(tmp_path / "keys.toml", "forum")
    with serving(models, host="0.0.0.0", keys=tmp_path / "keys.toml", store=url) as server:
        server.client.headers["Authorization"] = f"DeepL-Auth-Key {key}"
        assert server.client.post("/api/v1/corrections", json=BODY).status_code == 200
        assert server.client.get("/v2/usage").json()["character_count"] == sum(map(len, BODY.values()))


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"correction": ""}, 400),
        ({"text": ""}, 400),
        ({"correction": "x" * 6_000}, 413),
        ({"correction": "a\0b"}, 400),
        ({"corrected": "x"}, 400),
        ({"source": "xx"}, 400),
        ({"model": "none"}, 404),
    ],
)
def test_what_is_no_correction_is_refused_and_not_kept(translator: Translator, store: Store, change: dict[str, str], status: int) -> None:
    with serving(labelled(translator, ("en", "de")), store=store.database.name) as server:
        assert server.client.post("/api/v1/corrections", json={**BODY, **change}).status_code == status
    assert store.corrections.list(("en", "de")) == []


def test_no_text_of_a_correction_is_logged(translator: Translator, store: Store) -> None:
    with serving(labelled(translator, ("en", "de")), store=store.database.name) as server:
        server.client.post("/api/v1/corrections", json={"text": SECRET, "correction": SECRET, "translation": SECRET})
    assert server.lines
    assert SECRET not in json.dumps(server.lines, ensure_ascii=False, default=str)
