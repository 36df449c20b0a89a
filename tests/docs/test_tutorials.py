"""Every command of the tutorials runs, as written, and prints what the page says (`long`: some ten minutes).

In CI a short form of each, with fewer pairs and a handful of steps, in which nothing is learnt and so no translation is compared.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from published_models import marian
from tutorial_session import ROOT, Command, File, Session, fits, follow, shorter, things_to_do

TUTORIALS = ROOT / "docs" / "tutorials"
PAGES = ["first-translator", "translation-memory", "opus-mt", "look-inside"]  # each may need what those before it left
NUMBERS = ROOT / "tests" / "bundles" / "format-1"
LEARNT = re.compile(r"limelight (translate|inspect|evaluate)|python (use|look)\.py")  # what these print depends on what was learnt


def read(page: str) -> str:
    return (TUTORIALS / f"{page}.md").read_text("utf-8")


@pytest.fixture(scope="module")
def short_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("short")
    shutil.copytree(NUMBERS, folder / "demo" / "en-de")
    marian(folder / "opus-mt-en-de")
    return folder


@pytest.fixture(scope="module")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    marian(folder / "opus-mt-en-de")
    return folder


@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_tutorial_run(page: str, short_folder: Path, session_in: Callable[[Path, bool], Session]) -> None:
    follow(read(page), session_in(short_folder, True), shorter, lambda line: not LEARNT.search(line))


RIGHT = {
    'limelight translate en-de "Today an old teacher sees the white dog."': "Heute sieht ein alter Lehrer den weißen Hund.\n...",
    'limelight translate ours "The old woman seeks the new house."': "Die alte Frau sucht das neue Bauwerk.\n...",
}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_the_tutorials_train_translates_right(tmp_path: Path, session_in: Callable[[Path, bool], Session]) -> None:
    """Needs two free cores: what is learnt in the minutes of a budget depends on the steps that fit into them."""
    session, asked = session_in(tmp_path, False), dict.fromkeys(RIGHT, "")
    for page in PAGES[:2]:
        for todo in things_to_do(read(page)):
            if isinstance(todo, File):
                (tmp_path / todo.name).write_text(todo.text, "utf-8")
            elif re.match(r"python make|limelight train \S+ \S+ -o en-de|limelight train memory", todo.line) or todo.line in asked:
                code, printed = session.run(todo.line)
                assert code == 0, printed
                asked[todo.line] = printed
    assert all(fits(right, asked[line]) for line, right in RIGHT.items()), asked


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_prints_what_it_says(page: str, long_folder: Path, session_in: Callable[[Path, bool], Session]) -> None:
    follow(read(page), session_in(long_folder, False), lambda line: line, lambda line: True)


def test_all_tutorials_are_followed() -> None:
    assert {path.stem for path in TUTORIALS.glob("*.md")} == set(PAGES)
    for page in PAGES:
        todo = things_to_do(read(page))
        assert sum(isinstance(each, Command) for each in todo) > 5, page


@pytest.mark.parametrize(
    ("wanted", "printed", "does"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\nc\n", False),
        ("...\nz\n", "x\ny\nz\n", True),
        ("...\nz\n", "x\ny\n", False),
        ("", "", True),
        ("", "error\n", False),
    ],
)
def test_what_is_printed_is_compared(wanted: str, printed: str, does: bool) -> None:
    assert fits(wanted, printed) is does
