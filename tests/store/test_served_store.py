"""A server with a store: the memory answers, and two servers of one store agree on quotas and glossaries. Without one nothing is kept."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import deepl
import pytest
import sqlalchemy as sql

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))
sys.path.insert(0, str(Path(__file__).parents[1] / "translator"))
from labelled import Serving, labelled, loaded, serving
from table_engine import TableEngine, tokenizer

from limelight.bundle import BundleSettings, Learnt
from limelight.model.config import ModelConfig
from limelight.serving.access.keys import Keys
from limelight.serving.native.responses import TranslateAnswer
from limelight.serving.queue.models import Models
from limelight.serving.queue.served_model import ServedModel
from limelight.store.store import open_store
from limelight.translator import Translator

pytestmark = pytest.mark.process
PAIR = ("en", "de")


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with loaded() as translator:
        yield translator


@pytest.fixture(scope="module")
def server(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/a.db"
    store = open_store(url)
    list(store.memory.add(PAIR, [("twenty seven", "SIEBENUNDZWANZIG"), ("twenty seventh", "ACHTUNDZWANZIG")], "numbers.tmx"))
    list(store.memory.add(PAIR, [("%s seven", "%d SIEBEN"), ("%s one", "%s EINS")], "marks.tmx"))
    store.close()
    with serving(labelled(translator, PAIR), store=url) as server:
        yield server


def asked(server: Serving, status: int = 200, **fields: object) -> dict:  # type: ignore[type-arg]
    response = server.client.post("/api/v1/translate", json=fields)
    assert response.status_code == status, response.text
    return response.json()  # type: ignore[no-any-return]


def test_matches_stand_beside_the_translation(server: Serving) -> None:
    found = asked(server, text=["twenty seven", "one"], matches=True)
    TranslateAnswer.model_validate(found)
    same, other = found["results"][0]["matches"]
    assert (same["score"], same["target"], same["difference"]) == (1.0, "SIEBENUNDZWANZIG", [])
    assert other["source"] == "twenty seventh" and 0.7 <= other["score"] < 1
    assert other["difference"] == [["seventh", "seven"]]
    assert found["results"][0]["text"] != "SIEBENUNDZWANZIG" and found["results"][1]["matches"] == []
    assert "matches" not in asked(server, text="twenty seven")["results"][0]


def test_the_same_text_is_used_if_that_is_asked_for(server: Serving) -> None:
    found = asked(server, text=["seven", " twenty seven\n", "twenty seventh"], memory="use")
    TranslateAnswer.model_validate(found)
    assert [each["text"] for each in found["results"]] == ["sieben", " SIEBENUNDZWANZIG\n", "ACHTUNDZWANZIG"]
    assert [each.get("from_memory") for each in found["results"]] == [None, True, True]
    assert asked(server, text="twenty seventh", memory="use")["results"][0]["text"] == "ACHTUNDZWANZIG"  # none left for the model


def test_a_memory_that_loses_a_placeholder_is_told(server: Serving) -> None:
    found = asked(server, text=["%s seven", "%s one"], memory="use")["results"]
    assert [each["text"] for each in found] == ["%d SIEBEN", "%s EINS"]
    assert [each["protected"] for each in found] == [False, True]
    assert [[warning["code"] for warning in each["warnings"]] for each in found] == [["unprotected"], []]


def test_the_words_of_the_memory_stand_whatever_else_is_asked_for(server: Serving) -> None:
    wishes = {"glossary": {"seven": "Siebending"}, "nbest": 3, "align": True, "pieces": True}
    (found,) = asked(server, text="twenty seven", memory="use", **wishes)["results"]
    assert found["text"] == "SIEBENUNDZWANZIG" and found["words"] == found["alternatives"] == found["warnings"] == []
    assert "pieces" not in found and "alignment" not in found


def test_the_operator_lets_the_memory_answer_clients_that_cannot_ask_for_it(translator: Translator, tmp_path: Path) -> None:
    url, pair = f"sqlite:///{tmp_path}/a.db", {"source": "en", "target": "de"}
    with closing(open_store(url)) as store:
        list(store.memory.add(PAIR, [("twenty seven", "SIEBENUNDZWANZIG")], "numbers.tmx"))
    with serving(labelled(translator, PAIR), store=url, memory="use") as server:
        post = server.client.post
        assert post("/translate", data={"q": " twenty seven\n", **pair}).json() == {"translatedText": " SIEBENUNDZWANZIG\n"}
        both = post("/translate", json={"q": ["seven", "twenty seven"], **pair, "alternatives": 1}).json()
        assert both["translatedText"] == ["sieben", "SIEBENUNDZWANZIG"] and both["alternatives"][1] == []
        asked_html = {"q": "<p>twenty seven</p>", "format": "html", **pair}
        assert post("/translate", json=asked_html).json() == {"translatedText": "<p>SIEBENUNDZWANZIG</p>"}
        client = deepl.Translator("key", server_url=str(server.client.base_url))
        assert str(client.translate_text("twenty seven", source_lang="EN", target_lang="DE")) == "SIEBENUNDZWANZIG"
        place = post("/translate_file", data=pair, files={"file": ("a.txt", b"twenty seven")}).json()["translatedFileUrl"]
        assert server.client.get(place).text == "SIEBENUNDZWANZIG"


def test_a_text_of_that_dialect_may_ask_for_the_memory(server: Serving) -> None:
    form = {"q": "twenty seven", "source": "en", "target": "de"}
    assert server.client.post("/translate", data=form).json() != {"translatedText": "SIEBENUNDZWANZIG"}
    assert server.client.post("/translate", data={**form, "memory": "use"}).json() == {"translatedText": "SIEBENUNDZWANZIG"}
    assert server.client.post("/translate", data={**form, "memory": "yes"}).status_code == 400


@pytest.mark.parametrize("more", [{"format": "html"}, {"stream": True}, {"prefix": "a"}])
def test_what_the_memory_cannot_do_is_refused(server: Serving, more: dict[str, object]) -> None:
    assert "memory: not with" in asked(server, 400, text="seven", memory="use", **more)["error"]["message"]


def test_while_the_database_is_away_translations_go_on(translator: Translator, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with serving(labelled(translator, PAIR), store=url) as server:
        store = open_store(url)
        with store.database.write() as connection:
            connection.execute(sql.text("DROP TABLE segments"))
        store.close()
        assert "store does not answer" in asked(server, 503, text="seven", matches=True)["error"]["message"]
        assert asked(server, text="seven")["results"][0]["text"] == "sieben"


def test_what_is_too_old_is_deleted_while_the_server_lives(translator: Translator, tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    old, new = (store.corrections.add("en", "de", "a", "b", "c") for _ in range(2))
    with store.database.write() as connection:
        connection.execute(sql.text("UPDATE corrections SET created = created - 3 * 86400 WHERE id = :id"), {"id": old})
    with serving(labelled(translator, PAIR), store=f"sqlite:///{tmp_path}/a.db", keep_days=2) as server:
        asked(server, text="seven")
        until = time.monotonic() + 20
        while len(store.corrections.list(PAIR)) == 2 and time.monotonic() < until:
            time.sleep(0.05)
    assert [each.id for each in store.corrections.list(PAIR)] == [new]
    store.close()


def test_without_a_store_there_is_no_memory(translator: Translator) -> None:
    with serving(labelled(translator, PAIR)) as server:
        assert "no memory" in asked(server, 403, text="seven", matches=True)["error"]["message"]


def test_no_text_of_the_memory_is_in_the_log(server: Serving) -> None:
    asked(server, text="twenty seven", matches=True, memory="use")
    assert "twenty" not in json.dumps(server.lines) and "ZWANZIG" not in json.dumps(server.lines)


def test_two_servers_of_one_store_agree(translator: Translator, url: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    key = Keys.add_key(keys, "weblate")
    models = labelled(translator, PAIR)
    with (
        serving(models, keys=keys, store=url) as one,
        serving(models, keys=keys, store=url) as two,
        closing(deepl.DeepLClient(key, server_url=one.url)) as first,
        closing(deepl.DeepLClient(key, server_url=two.url)) as second,
    ):
        made = first.create_glossary("terms", "EN", "DE", {"seven": "Siebending"})
        assert [each.glossary_id for each in second.list_glossaries()] == [made.glossary_id]
        assert second.get_glossary_entries(made.glossary_id) == {"seven": "Siebending"}
        found = second.translate_text("seven", source_lang="EN", target_lang="DE", glossary=made.glossary_id)
        assert isinstance(found, deepl.TextResult) and "Siebending" in found.text
        second.delete_glossary(made.glossary_id)
        assert first.list_glossaries() == []
        with pytest.raises(deepl.GlossaryNotFoundException):
            first.get_glossary(made.glossary_id)
        first.translate_text("seven " * 10, target_lang="DE")
        until = time.monotonic() + 20
        while first.get_usage().character.count != second.get_usage().character.count and time.monotonic() < until:
            time.sleep(0.2)
        assert first.get_usage().character.count == second.get_usage().character.count >= 60
    with serving(models, keys=keys, store=url) as again, closing(deepl.DeepLClient(key, server_url=again.url)) as third:
        assert third.get_usage().character.count >= 60


# --- similar texts, told to the model


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Its model says what it is asked, and what it is told, from the last word to the first; an untaught one is beside it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('taught')}/a.db"
    with closing(open_store(url)) as store:
        list(store.memory.add(PAIR, [("the old cat sat on the mat", "it is red"), ("we see", "they go")], "cats.tmx"))
    learnt = {("en", "de"): Learnt(matches=True), ("de", "en"): None}
    models = [
        ServedModel("-".join(pair), Translator(TableEngine(), table_settings(pair, told), tokenizer(), tokenizer()), speed=1_000.0)
        for pair, told in learnt.items()
    ]
    with serving(Models(models), store=url, memory="tell") as server:
        yield server


def table_settings(pair: tuple[str, str], learnt: Learnt | None) -> BundleSettings:
    return BundleSettings(languages=pair, model=ModelConfig.preset("toy", tokenizer().size), learnt=learnt)


CAT = "the old cat ran on the mat"
ALONE, TOLD = "mat the on ran cat old the", "red is it mat the on ran cat old the"


def test_a_similar_text_is_told_to_the_model_and_the_same_is_used(taught: Serving) -> None:
    found = asked(taught, text=[CAT, "we see", "he was in it"], memory="tell", model="en-de")
    TranslateAnswer.model_validate(found)
    assert [each["text"] for each in found["results"]] == [TOLD, "they go", "it in was he"]
    assert [each.get("from_memory") for each in found["results"]] == [None, True, None]
    assert [each.get("told", {}).get("target") for each in found["results"]] == ["it is red", None, None]
    assert asked(taught, text=CAT, memory="use", model="en-de")["results"][0]["text"] == ALONE
    both = asked(taught, text=CAT, memory="tell", matches=True, model="en-de")["results"][0]
    assert both["text"] == TOLD and both["matches"][0]["target"] == "it is red"


def test_a_model_that_was_not_taught_it_is_told_nothing_and_who_asks_for_it_hears_why(taught: Serving) -> None:
    for route, body in (("/api/v1/translate", {"text": "we see"}), ("/translate", {"q": "we see"})):
        answer = taught.client.post(route, json={**body, "source": "de", "target": "en", "memory": "tell"})
        assert answer.status_code == 400 and "memory=tell: this translator was not taught" in answer.text


def test_the_operator_has_all_that_comes_told_as_far_as_models_were_taught(taught: Serving) -> None:
    post, pair = taught.client.post, {"source": "en", "target": "de"}
    assert post("/translate", json={"q": [CAT, "we see"], **pair}).json() == {"translatedText": [TOLD, "they go"]}
    place = post("/translate_file", data=pair, files={"file": ("a.txt", CAT.encode())}).json()["translatedFileUrl"]
    assert taught.client.get(place).text == TOLD
    assert post("/translate", json={"q": CAT, "source": "de", "target": "en"}).json() == {"translatedText": ALONE}
    assert asked(taught, text=CAT, model="en-de")["results"][0]["text"] == ALONE, "the native dialect says what it wants"
