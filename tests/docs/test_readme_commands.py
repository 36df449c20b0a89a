"""The commands of the README run to a server that answers: with fewer pairs and a handful of steps, and without those that install, import,
tune or make the demo. What these would make is put there where others need it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from tutorial_session import ROOT, Command, File, Session, follow, free_port, shorter, things_to_do

sys.path.insert(0, str(ROOT / "benchmarks"))

import first_hour

README = (ROOT / "README.md").read_text("utf-8")
SERVE = "limelight serve de-en"
BUNDLE = ROOT / "tests" / "bundles" / "format-1"
MENU = (
    '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>Could not open file %s</seg></tuv>'
    '<tuv xml:lang="de"><seg>Datei %s konnte nicht geöffnet werden</seg></tuv></tu></body></tmx>'
)
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n{}'
NEW = PO.format("".join(f'msgid "{text}"\nmsgstr ""\n\n' for text in ("Could not open file %s", "three seven one")))


def commands(door: str) -> list[str]:
    [section] = [part for part in README.split("\n### ") if part.startswith(door)]
    return [each.line for each in things_to_do(section) if isinstance(each, Command)]


def change(line: str) -> str:
    """A server does not end by itself: it has a test of its own, below. Importing and tuning are run by the tutorials' tests."""
    return "" if line == SERVE or line.startswith(("make setup", "limelight import hf:", "limelight train menu.tmx")) else shorter(line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With what the README takes for granted in it: two text files, a memory, a catalogue, and what `import` and `demo` would make."""
    made = tmp_path_factory.mktemp("readme")
    (made / "menu.tmx").write_text(MENU, "utf-8")
    (made / "new.po").write_text(NEW, "utf-8")
    for name in ("en-de", "demo/en-de"):
        shutil.copytree(BUNDLE, made / name)
    first = (ROOT / "docs" / "tutorials" / "first-translator.md").read_text("utf-8")
    [script] = [todo.text for todo in things_to_do(first) if isinstance(todo, File) and todo.name == "make_pairs.py"]
    (made / "make_pairs.py").write_text(script, "utf-8")
    subprocess.run([sys.executable, "make_pairs.py", "tatoeba", "600", "1"], cwd=made, check=True)
    return made


def test_at_most_four_commands_lead_to_a_server() -> None:
    """With the one that installs."""
    assert commands("Train from your text").index(SERVE) < 3


def test_the_first_hour_measures_these() -> None:
    """`python benchmarks/headline.py first-hour`."""
    door = commands("Train from your text")
    assert first_hour.commands() == ["pip install 'limelight[serve,train]'", *door[: door.index(SERVE) + 1]]


def test_each_door_has_commands() -> None:
    assert all(len(commands(door)) >= 2 for door in ("Use a published model", "Train from your text", "Understand the Transformer"))


@pytest.mark.process
@pytest.mark.timeout(600)
def test_they_run(folder: Path, session_in: Callable[[Path, bool], Session]) -> None:
    follow(README, session_in(folder, True), change, lambda line: "memory find" in line)  # the rest depends on what was learnt
    assert (folder / "de-en" / "report.html").is_file()
    assert "Datei %s konnte nicht geöffnet werden" in (folder / "new.de.po").read_text("utf-8")


@pytest.mark.process
@pytest.mark.timeout(300)
def test_the_server_answers(folder: Path, session_in: Callable[[Path, bool], Session]) -> None:
    if not (folder / "de-en").exists():
        test_they_run(folder, session_in)
    port = free_port()
    words = [sys.executable, "-m", *SERVE.split(), "--port", str(port)]
    server = subprocess.Popen(words, cwd=folder, env={**os.environ, "NO_COLOR": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert wait_for(f"http://127.0.0.1:{port}/readyz", server)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as page:
            assert b"<html" in page.read()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/v1/translate",
            json.dumps({"text": "Die Katze mag das Haus."}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert json.loads(answer.read())["source"] == "de"
    finally:
        server.send_signal(signal.SIGTERM)
        printed, _ = server.communicate(timeout=60)
    assert server.returncode == 0, printed.decode()


def wait_for(address: str, server: subprocess.Popen[bytes]) -> bool:
    late = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < late:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    return False
