"""`limelight translate --document` from the command line: what is marked, listed and told, and where nothing may get lost."""

import json
import math
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lxml.html
import pytest
from test_translate_command import command, environment, run

from limelight.cli.translate.output import write_all
from limelight.inspection.analysis import attribution

CATALOGUE = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"

msgid "three seven"
msgstr ""

#, no-wrap
msgid "zq xj <script>alert(1)</script> vvv"
msgstr ""

msgid "two"
msgstr "zwei"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "menu.po").write_text(CATALOGUE, "utf-8")
    (tmp_path / "page.html").write_text("<p>one</p>\n<p>two</p>", "utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_list_of_what_to_look_at_is_a_page_or_a_table(folder: Path) -> None:
    files = [folder / "menu.po", folder / "menu.de.po", folder / "page.html", folder / "page.de.html"]
    for ending in ("html", "tsv"):
        done = run(b"", "--document", *files, "--fuzzy-below", 0.2, "--review", folder / f"review.{ending}")
        assert done.code == 0 and done.stdout == b"" and b"1 to look at" in done.stderr
    head, *rows = (folder / "review.tsv").read_text("utf-8").strip("\n").split("\n")
    assert head.split("\t") == ["file", "line", "confidence", "why", "source", "translation", "unedited"]
    cells = [row.split("\t") for row in rows]
    assert [(Path(row[0]).name, row[1], row[4]) for row in cells] == [("menu.po", "10", "zq xj <script>alert(1)</script> vvv")]
    page = (folder / "review.html").read_text("utf-8")
    tree = lxml.html.document_fromstring(page)
    assert tree.find(".//title").text and 'name="viewport"' in page and "@media (max-width" in page
    assert not tree.findall(".//script") and "alert(1)" in tree.text_content() and not tree.xpath("//@src | //@href")
    assert "#, fuzzy, no-wrap" in (folder / "menu.de.po").read_text("utf-8")


@pytest.mark.slow
def test_a_file_that_cannot_be_read_does_not_keep_the_others(folder: Path) -> None:
    (folder / "broken.docx").write_bytes(b"PK no archive")
    names = ("menu.po", "broken.docx", "page.html")
    files = [path for name in names for path in (folder / name, folder / f"de.{name}")]
    done = run(b"", "--document", *files)
    assert done.code == 65 and b"1 of 3 documents could not be translated, the others are written:\n  - " in done.stderr
    assert b"broken.docx" in done.stderr.split(b"others are written")[1]
    assert (folder / "de.menu.po").is_file() and (folder / "de.page.html").is_file() and not (folder / "de.broken.docx").exists()


@pytest.mark.slow
def test_the_worst_is_first_and_everything_can_be_asked_for(folder: Path) -> None:
    files = [folder / "menu.po", folder / "menu.de.po", folder / "page.html", folder / "page.de.html"]
    done = run(b"", "--document", *files, "--fuzzy-below", 1, "--review", folder / "review.tsv", "-q")
    assert done.code == 0 and b"to look at" not in done.stderr
    rows = [row.split("\t") for row in (folder / "review.tsv").read_text("utf-8").strip("\n").split("\n")[1:]]
    assert len(rows) == 4 and "zq" in rows[0][4]
    unsure = [float(row[2]) for row in rows if row[3].startswith("unsure")]
    assert unsure == sorted(unsure)


def test_each_text_of_a_document_is_a_line_of_json(folder: Path) -> None:
    done = run(b"", "--document", folder / "page.html", folder / "page.de.html", "--jsonl", "-q")
    lines = [json.loads(line) for line in done.stdout.decode().strip("\n").split("\n")]
    assert [(line["line"], line["source"], line["text"]) for line in lines][:1] == [(1, "one", "eins")]
    assert all(line["file"] == str(folder / "page.html") and line["words"] for line in lines)
    assert {"confidence", "pieces", "protected", "warnings", "review"} <= lines[0].keys()


def test_a_column_of_a_table_is_filled_and_a_column_of_a_page_is_refused(folder: Path) -> None:
    (folder / "table.csv").write_bytes(b"word,german\none,\ntwo,zwei\n")
    done = run(b"", "--document", folder / "table.csv", folder / "table.de.csv", "--column", "word=german", "-q")
    assert done.code == 0 and (folder / "table.de.csv").read_bytes() == b"word,german\none,eins\ntwo,zwei\n"
    done = run(b"", "--document", folder / "page.html", folder / "page.de.html", "--column", "1", "-q")
    assert done.code and b"leave it out" in done.stderr and not (folder / "page.de.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--document", "a.txt"], "wants two files"),
        (["--document", "a.txt", "b.txt", "c.txt"], "wants two files"),
        (["--document", "a.txt", "b.txt", "a.txt", "b.txt"], "written once"),
        (["--document", "a.txt", "b.txt", "b.txt", "c.txt"], "not there"),
        (["--document", "a.txt", "b.txt", "--review", "list.csv"], ".html or .tsv"),
        (["--document", "a.txt", "b.txt", "--review", "no/list.tsv"], "folder that exists"),
        (["--document", "a.html", "b.html", "--review", "b.html"], "written once"),
        (["--review", "list.tsv", "one"], "are for documents"),
        (["--fuzzy-below", "0.5", "one"], "are for documents"),
    ],
)
def test_what_cannot_be_is_refused_before_a_model_is_loaded(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "a.html"):
        Path(name).write_text("one")
    done = run(b"", *arguments, bundle=tmp_path / "none")
    assert done.code in (2, 65) and said in " ".join(done.stderr.decode().split())


@pytest.mark.slow
def test_the_name_of_a_file_is_translated_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two").write_text("seven\n")
    done = run(b"", "two", "three", "x" * 5000)
    assert done.code == 0 and done.stdout.decode().startswith("zwei\ndrei\n")
    assert b"hint: two is a file" in done.stderr and b"< two" in done.stderr and b"--document two" in done.stderr
    assert done.stderr.count(b"hint") == 1
    Path("two.po").write_text('msgid "one"\nmsgstr ""\n')
    assert b"hint: two.po is translated line by line" in run(b"", "--input", "two.po").stderr


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_another_encoding_is_named_with_the_command_that_converts_it(encoding: str) -> None:
    given = ("\ufeff" if encoding == "utf-16-be" else "") + "one\ntwo\n"
    done = run(given.encode(encoding))
    assert done.code == 65 and done.stdout == b""
    assert f"iconv -f {encoding.upper()[:6]} -t UTF-8".encode() in done.stderr and b"1252" not in done.stderr


@pytest.mark.process
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_told(unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command("one"), stdout=full, stderr=subprocess.PIPE, env=environment() | {"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 74 and b"No space left" in done.stderr and b"Traceback" not in done.stderr


def test_a_write_that_takes_only_a_part_is_gone_on_with() -> None:
    """As standard output without a buffer does, on a disk that is nearly full or in a pipe that does not wait."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    sent = bytes(range(256)) * 4_000
    with ThreadPoolExecutor(1) as reader, os.fdopen(reading, "rb") as source:
        with os.fdopen(writing, "wb", buffering=0) as raw:
            head = raw.write(sent)
            assert head < len(sent), "a pipe takes some of it at once"
            received = reader.submit(source.read)
            write_all(raw, sent)
        assert received.result() == sent[:head] + sent


@pytest.mark.slow
def test_words_left_out_are_told_of_lines_and_listed_of_documents(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = run(b"four nine six\n", "--max-length", 2, "--check")
    assert short.stdout == b"vier neun\n" and b"line 1: omission: nothing in the translation came from word 3 of the source" in short.stderr
    monkeypatch.setattr(attribution, "OMITTED", math.inf)  # so that every word counts as left out
    done = run(b"", "--document", folder / "menu.po", folder / "menu.de.po", "--check", "--review", folder / "review.tsv")
    assert done.code == 0
    rows = [row.split("\t") for row in (folder / "review.tsv").read_text("utf-8").strip("\n").split("\n")[1:]]
    [why] = [row[3] for row in rows if row[4] == "three seven"]
    assert "omission: nothing in the translation came from words 1, 2 of the source" in why
    assert '#, fuzzy\nmsgid "three seven"' in (folder / "menu.de.po").read_text("utf-8")
