"""Every command of the tutorials runs, as written, and prints what the page says (`long`: some ten minutes).

In CI a short form of each, with fewer pairs and a handful of steps, in which nothing is learnt and so no translation is compared.
"""

import re
import shutil
import socket
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from published_models import marian
from tutorial_session import ROOT, Command, File, Session, fits, things_to_do

TUTORIALS = ROOT / "docs" / "tutorials"
PAGES = ["first-translator", "translation-memory", "opus-mt", "look-inside"]  # each may need what those before it left
NUMBERS = ROOT / "tests" / "bundles" / "format-1"
SHORTER = [
    ("corpus 20000 1", "corpus 600 1"),
    ("--check-only", "--check-only --workers 0"),
    ("test 300 2", "test 20 2"),
    ("--budget 3m", "--preset toy --steps 4 --workers 0 validation.sentences=8 probes.sentences=0"),
    (" --budget 1m", " --steps 2 --workers 0 validation.sentences=8 probes.sentences=0"),
    (" --budget 2m", " --steps 2 --workers 0 validation.sentences=8 probes.sentences=0"),
    ('"twenty-one"', '"three seven one"'),
]
LEARNT = re.compile(
    r"limelight (translate|inspect|evaluate)|python (use|look)\.py"
)  # what these print depends on what was learnt
DEMO = "limelight demo --no-open"  # too long for CI; tests/cli runs it


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


@pytest.fixture
def session_in() -> Iterator[Callable[[Path, bool], Session]]:
    opened: list[Session] = []

    def open_in(folder: Path, here: bool) -> Session:
        opened.append(Session(folder, here))
        return opened[-1]

    yield open_in
    for session in opened:
        session.close()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def follow(page: str, session: Session, change: Callable[[str], str], compared: Callable[[str], bool]) -> None:
    """Do what the page says. All that goes otherwise is told at once; after a command that failed nothing more is tried."""
    port, wrong = str(free_port()), []
    for todo in things_to_do((TUTORIALS / f"{page}.md").read_text("utf-8")):
        if isinstance(todo, File):
            (session.folder / todo.name).write_text(change(todo.text), "utf-8")
            continue
        if todo.line.startswith("pip install"):
            check_extras(todo.line)
            continue
        line = change(todo.line).replace("5000", port)
        if line == "":
            continue
        code, printed = session.run(line)
        if code:
            wrong.append(f"$ {line}\nended with {code}:\n{printed}")
            break
        if compared(todo.line) and not fits(todo.prints, printed):
            wrong.append(f"$ {line}\nshould print:\n{todo.prints}\nbut prints:\n{printed}")
    assert not wrong, "\n\n".join(wrong)


def check_extras(line: str) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = re.search(r"\[([^]]+)\]", line)
    assert not named or set(named[1].split(",")) <= set(known), line


def shorter(line: str) -> str:
    if line == DEMO:
        return ""
    for old, new in SHORTER:
        line = line.replace(old, new)
    return line


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_tutorial_run(
    page: str, short_folder: Path, session_in: Callable[[Path, bool], Session]
) -> None:
    follow(page, session_in(short_folder, True), shorter, lambda line: not LEARNT.search(line))


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
        for todo in things_to_do((TUTORIALS / f"{page}.md").read_text("utf-8")):
            if isinstance(todo, File):
                (tmp_path / todo.name).write_text(todo.text, "utf-8")
            elif (
                re.match(r"python make|limelight train \S+ \S+ -o en-de|limelight train memory", todo.line)
                or todo.line in asked
            ):
                code, printed = session.run(todo.line)
                assert code == 0, printed
                asked[todo.line] = printed
    assert all(fits(right, asked[line]) for line, right in RIGHT.items()), asked


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_prints_what_it_says(
    page: str, long_folder: Path, session_in: Callable[[Path, bool], Session]
) -> None:
    follow(page, session_in(long_folder, False), lambda line: line, lambda line: True)


def test_all_tutorials_are_followed() -> None:
    assert {path.stem for path in TUTORIALS.glob("*.md")} == set(PAGES)
    for page in PAGES:
        todo = things_to_do((TUTORIALS / f"{page}.md").read_text("utf-8"))
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
