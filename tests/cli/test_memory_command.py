"""`limelight memory`, and the two that use what it fills: `translate --memory` and `serve --forget-key`."""

import json
import sys
from pathlib import Path

import pytest
from test_translate_command import BUNDLE, run
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "translator"))
from random_weights import random_bundle

from limelight.cli.main import app
from limelight.cli.memory import _name_origins, open_named_store
from limelight.errors import ConfigError, LimelightError
from limelight.store.store import open_store
from limelight.translator import Translator

PO = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"

msgid "three seven"
msgstr "DREI SIEBEN"

#, fuzzy
msgid "four"
msgstr "FALSCH"

msgid "five"
msgstr ""
"""
TMX = """<?xml version="1.0"?><tmx version="1.4"><header/><body><tu><tuv xml:lang="en"><seg>six</seg></tuv>
<tuv xml:lang="de"><seg>SECHS</seg></tuv></tu></body></tmx>
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def told(*words: object) -> list[dict[str, object]]:
    done = CliRunner().invoke(app, ["memory", *map(str, words), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.split("\n") if line]


@pytest.mark.slow
def test_files_are_added_once_found_listed_and_deleted(tmp_path: Path, url: str) -> None:
    (tmp_path / "menu.po").write_text(PO, "utf-8")
    (tmp_path / "old.tmx").write_text(TMX, "utf-8")
    (tmp_path / "more.jsonl").write_text('{"en": "eight", "de": "ACHT"}\n', "utf-8")
    pair = ("--from", "en", "--to", "de")
    files = [tmp_path / name for name in ("menu.po", "old.tmx", "more.jsonl")]
    added = told("add", url, *files, *pair)
    assert {row["origin"]: row["added"] for row in added} == {"menu.po": 1, "old.tmx": 1, "more.jsonl": 1}
    assert added[0] == {"origin": "menu.po", "added": 1, "known": 0, "refused": 0, "fuzzy": 1, "untranslated": 1}
    assert all(row["added"] == 0 for row in told("add", url, *files, *pair))
    assert told("find", url, "three sevens", *pair)[0]["target"] == "DREI SIEBEN"
    assert told("find", url, "four", *pair) == []
    assert [(row["origin"], row["segments"]) for row in told("list", url)] == [("menu.po", 1), ("more.jsonl", 1), ("old.tmx", 1)]
    assert told("delete", url, "old.tmx") == [{"origin": "old.tmx", "deleted": 1}]


def test_a_file_is_deleted_by_its_name_and_of_one_pair_if_that_is_said(url: str) -> None:
    store = open_store(url)
    for target in ("de", "fr", "it"):
        list(store.memory.add(("en", target), [("one", target)], "menu.po"))
    store.close()
    assert told("delete", url, "some/dir/menu.po", "--from", "en", "--to", "fr") == [{"origin": "menu.po", "deleted": 1}]
    assert [row["pair"] for row in told("list", url)] == ["en>de", "en>it"]
    assert [row["pair"] for row in told("list", url, "--from", "en", "--to", "it")] == ["en>it"]
    assert told("delete", url, "menu.po") == [{"origin": "menu.po", "deleted": 2}]


@pytest.mark.slow
def test_the_header_of_a_table_is_no_segment(tmp_path: Path, url: str) -> None:
    pair = ("--from", "en", "--to", "de")
    for number, head in enumerate(("Source\tTarget", "en\tde")):
        (tmp_path / f"{number}.tsv").write_text(f"{head}\nSave{number}\tSichern\nsource\ttarget{number}\n", "utf-8")
        [told_of] = told("add", url, tmp_path / f"{number}.tsv", *pair)
        assert (told_of["added"], told_of["header"]) == (2, 1)


@pytest.mark.slow
def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path, url: str) -> None:
    for folder, word in (("app1", "one"), ("app2", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "django.po").write_text(PO.replace("three seven", word), "utf-8")
    files = [tmp_path / folder / "django.po" for folder in ("app1", "app2")]
    pair = ("--from", "en", "--to", "de")
    assert [row["origin"] for row in told("add", url, *files, *pair)] == ["app1/django.po", "app2/django.po"]
    assert _name_origins(["django.po", "app2/django.po", "a/b.tmx"]) == ["django.po", "app2/django.po", "b.tmx"]
    assert told("delete", url, files[0]) == [{"origin": "app1/django.po", "deleted": 1}]
    assert [row["origin"] for row in told("list", url)] == ["app2/django.po"]
    assert told("delete", url, "django.po")[0]["deleted"] == 0


@pytest.mark.slow
def test_a_document_takes_from_the_memory_what_is_there(tmp_path: Path, url: str) -> None:
    store = open_store(url)
    list(store.memory.add(("en", "de"), [("one", "EINS AUS DEM SPEICHER"), ("two <b>three</b>", "ohne Marken")]))
    store.close()
    (tmp_path / "page.html").write_text("<p>one</p>\n<p>seven</p><p>two <b>three</b></p>", "utf-8")
    done = run(b"", "--document", tmp_path / "page.html", tmp_path / "page.de.html", "--memory", url)
    page = (tmp_path / "page.de.html").read_text("utf-8")
    assert done.code == 0 and "texts taken from the memory: " in done.stderr.decode()
    assert "<p>EINS AUS DEM SPEICHER</p>" in page and "<p>sieben</p>" in page
    assert "<b>drei</b>" in page  # what would have lost a tag is not used


@pytest.mark.slow
def test_a_memory_of_another_spelling_of_the_languages_is_told(url: str) -> None:
    store = open_store(url)
    list(store.memory.add(("EN", "de_DE"), [("one", "EINS AUS DEM SPEICHER")]))
    store.close()
    done = run(b"one\n", "--memory", url)
    assert done.code == 0 and "memory: 0; it has nothing of en>de, and segments of EN>de_DE" in done.stderr.decode()


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator that was taught to be told matches, and nothing else."""
    return random_bundle(tmp_path_factory.mktemp("taught") / "bundle", matches=True)


@pytest.mark.slow
def test_lines_and_documents_are_told_similar_texts_and_take_the_same_from_the_memory(tmp_path: Path, url: str, taught: Path) -> None:
    text, similar, told_words = "Please send the report now", "Please send the report soon", "Der Bericht ist da"
    store = open_store(url)
    list(store.memory.add(("en", "de"), [("one", "EINS"), (similar, told_words)]))
    store.close()
    with Translator.load(taught, threads=1) as loaded:
        search = loaded.settings.search
        alone, expected = (loaded.translate([text], search, matches=[match])[0].text for match in (None, told_words))
    assert alone != expected
    words = ["translate", str(taught), "--threads", "1", "--memory", url]
    (tmp_path / "a.txt").write_text(f"one\n{text}\n", "utf-8")
    read = ["--input", str(tmp_path / "a.txt")]
    lines = CliRunner().invoke(app, [*words, *read, "--tell-above", "0.7"], catch_exceptions=False)
    assert lines.stdout == f"EINS\n{expected}\n"
    assert "texts taken from the memory: 1; made by the translator, which was told a similar one: 1" in lines.stderr
    for above in ([], ["--tell-above", "0.95"]):
        lines = CliRunner().invoke(app, [*words, *read, *above], catch_exceptions=False)
        assert lines.stdout == f"EINS\n{alone}\n"
    files = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    done = CliRunner().invoke(app, [*words, "--tell-above", "0.7", "--document", *files], catch_exceptions=False)
    assert done.exit_code == 0 and "a.txt: different texts taken from the memory: 1" in done.stderr
    assert (tmp_path / "b.txt").read_text("utf-8") == f"EINS\n{expected}\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--tell-above", "0.7"], "--tell-above: of which memory?"),
        (["--memory", "URL", "--prefix", "a"], "--memory does not go with"),
        (["--memory", "URL", "--phrase", "a", "--cluster", "ray", "--output", "b"], "--memory does not go with"),
        (["--memory", "URL", "--tell-above", "0.7"], "not taught to be told translations of similar texts"),
    ],
)
def test_what_cannot_be_told_is_refused(url: str, words: list[str], why: str) -> None:
    open_store(url).close()
    with pytest.raises(LimelightError, match=why):
        given = ["translate", str(BUNDLE), "one", "--threads", "1", *(url if word == "URL" else word for word in words)]
        CliRunner().invoke(app, given, catch_exceptions=False)


def test_counts_have_names_and_a_text_that_is_not_there_is_told(url: str) -> None:
    store = open_store(url)
    list(store.memory.add(("en", "de"), [("one", "eins")], "menu.po"))
    store.close()
    listed = CliRunner().invoke(app, ["memory", "list", url])
    assert listed.stdout == "en>de\tmenu.po\t1 segments\n"
    missed = CliRunner().invoke(app, ["memory", "find", url, "one", "--from", "en", "--to", "fr"])
    assert missed.stdout == "" and missed.stderr == "nothing from en to fr is at least 70% alike; the memory has 1 segments from en to de\n"


def test_a_store_that_is_not_there_is_called_that(tmp_path: Path) -> None:
    for words in (["find", f"sqlite:///{tmp_path}/typo.db", "one"], ["add", f"sqlite:///{tmp_path}/no/a.db", __file__]):
        with pytest.raises(ConfigError, match=r"there is no store .*(limelight memory add|folder does not exist)"):
            open_named_store(words[1], create=words[0] == "add")


def test_a_terminal_is_told_no_control_characters(url: str) -> None:
    store = open_store(url)
    list(store.memory.add(("en", "de"), [("one\x1b[31m\ttwo\nthree", "x\x1b]0;y\x07")]))
    store.close()
    done = CliRunner().invoke(app, ["memory", "find", url, "one\x1b[31m\ttwo\nthree", "--from", "en", "--to", "de"])
    assert done.exit_code == 0 and done.stdout.count("\n") == 1 and done.stdout.count("\t") == 3
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "sqlite:///a.db"], "needs to know what"),
        (["list", "sqlite:///a.db", "x"], "lists everything"),
        (["find", "sqlite:///a.db", "x"], "which languages"),
        (["delete", "sqlite:///a.db", "x", "--from", "en"], "which languages"),
        (["list", "sqlite:///a.db", "--to", "de"], "which languages"),
        (["find", "sqlite:////nowhere/a.db", "x", "--from", "en", "--to", "de"], "there is no store /nowhere"),
        (["delete", "nowhere", "x"], "no URL"),
    ],
)
def test_what_cannot_be_done_is_told(words: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        CliRunner().invoke(app, ["memory", *words], catch_exceptions=False)


def test_what_a_key_sent_is_deleted(url: str) -> None:
    store = open_store(url)
    for key in ("forum", "shop"):
        store.corrections.add("en", "de", "a", "b", "c", key)
    done = CliRunner().invoke(app, ["serve", "--forget-key", "forum", "--store", url], catch_exceptions=False)
    assert done.exit_code == 0 and "1 corrections" in done.output
    assert [each.key for each in store.corrections.list(("en", "de"))] == ["shop"]
    missed = CliRunner().invoke(app, ["serve", "--forget-key", "shpo", "--store", url], catch_exceptions=False)
    assert missed.output == "nothing was deleted: the store has nothing of shpo, but of shop\n"
    store.close()
    with pytest.raises(LimelightError, match="--store"):
        CliRunner().invoke(app, ["serve", "--forget-key", "forum"], catch_exceptions=False)
