"""Weblate against a server with keys: its own classes, where an environment can be made for them, and every request they sent, always.

pytest -m long tests/serving/test_weblate.py                                     installs Weblate in a folder, some minutes
LIMELIGHT_WEBLATE_PYTHON=/there/bin/python pytest -m long tests/serving/...      takes an environment that is there
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labelled import Serving, labelled, loaded, serving

from limelight.serving.access.keys import Keys

HERE = Path(__file__).parent
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f-]{17}")
HEAVY = (
    "borgbackup",
    "pycairo",
    "PyGObject",
    "tesserocr",
)  # want libraries of the system, and have nothing to do with it
DEPENDENCIES = "import importlib.metadata as m; print('\\n'.join(r for r in m.requires('weblate') if 'extra ==' not in r))"


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[tuple[Serving, str]]:
    key = Keys.add_key(tmp_path / "keys.toml", "weblate")
    with (
        loaded() as translator,
        serving(labelled(translator, ("en", "de"), ("de", "en")), keys=tmp_path / "keys.toml") as server,
    ):
        yield server, key


def plain(recorded: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Requests without what is new each time."""
    text = json.dumps(recorded).replace(key, "KEY")
    found: list[dict[str, Any]] = json.loads(ID.sub("GLOSSARY", text))
    return found


@pytest.mark.process
def test_every_request_that_weblate_sent_is_answered_as_it_was(keyed: tuple[Serving, str]) -> None:
    """Recorded from Weblate 5.14.3; it asks for the languages of LibreTranslate without the key that it has."""
    server, key = keyed
    answers, glossary = [], ""
    for each in json.loads((HERE / "weblate_requests.json").read_text()):
        given = json.loads(json.dumps(each).replace("KEY", key).replace("GLOSSARY", glossary))
        answer = server.client.request(given["method"], given["path"], headers=given["headers"], content=given["body"] or b"")
        assert answer.status_code == given["status"], (each, answer.text)
        answers.append((each, answer))
        if answer.status_code == 201:
            glossary = answer.json()["glossary_id"]
    listed = [answer.json() for each, answer in answers if each["path"] == "/languages"]
    assert [each["code"] for each in listed[0]] == ["en", "de"]
    named = [answer.json() for each, answer in answers if "GLOSSARY" in (each["body"] or "")]
    assert len(named) == 3 and "SIEBENDING" in named[1]["translations"][0]["text"]
    assert named[2]["translations"][0]["text"].endswith('<x id="4"></x>')
    assert answers[-1][1].json() == {"glossaries": []}, "it deleted what it had made"


@pytest.mark.long
@pytest.mark.network
@pytest.mark.timeout(1800)
def test_weblate_itself_adds_the_server_translates_and_keeps_its_glossary(keyed: tuple[Serving, str], tmp_path: Path) -> None:
    python = os.environ.get("LIMELIGHT_WEBLATE_PYTHON") or str(installed(tmp_path / "weblate"))
    command = [python, str(HERE / "weblate_client.py"), keyed[0].url, keyed[1]]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, env={}).stdout)
    by_libretranslate, by_deepl = told["found"]["libretranslate"], told["found"]["deepl"]
    assert by_libretranslate["languages"] == ["de", "en"] and by_libretranslate["plain"] == "sieben"
    assert ["EN", "DE"] in by_deepl["languages"] and by_deepl["plain"] == "eins"
    assert "SIEBENDING" in by_deepl["glossary"] and by_deepl["placeholder"].endswith("%s")
    assert len(by_deepl["glossaries"]) == 1 and by_deepl["left"] == [] and by_deepl["unknown"] == "not there"
    stored = json.loads((HERE / "weblate_requests.json").read_text())
    kinds = ("method", "path", "body", "status")
    assert [[each[kind] for kind in kinds] for each in plain(told["requests"], keyed[1])] == [
        [each[kind] for kind in kinds] for each in stored
    ], "what is replayed above is what this Weblate sends"


def installed(folder: Path) -> Path:
    """An environment with Weblate, as far as its machine translation needs it."""
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--prefer-binary"]
    subprocess.run([*install, "--no-deps", "weblate"], check=True)
    wanted = subprocess.run([python, "-c", DEPENDENCIES], check=True, capture_output=True, text=True).stdout
    subprocess.run([*install, *(each for each in wanted.split("\n") if each and not each.startswith(HEAVY))], check=True)
    return python
