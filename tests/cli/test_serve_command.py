"""`limelight serve` as a person starts and stops it: a process, a port, a page."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))
import tagged_bundle
import warm_process
from limelight.cli.main import app
from limelight.cli.serve import _warn_of
from limelight.errors import ConfigError, LimelightError
from limelight.serving.access.keys import Keys
from limelight.translator import Translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
CLI = [sys.executable, "-m", "limelight", "serve"]


@contextmanager
def served(*more: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    command = [*CLI, f"en-de={BUNDLE}", "--port", "0", "--threads", "1", "--json", *more]
    process = warm_process.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, process.communicate()[1].decode()
        yield process, json.loads(line)["address"]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.process
def test_a_server_answers_in_three_dialects_and_stops_when_told() -> None:
    with served("limits.texts=2") as (process, address):
        libre = {"q": "one two", "source": "en", "target": "de"}
        assert httpx.post(f"{address}/translate", json=libre).json() == {"translatedText": "eins zwei"}
        deepl = httpx.post(f"{address}/v2/translate", data={"text": "one two", "target_lang": "DE"})
        assert deepl.json()["translations"][0]["text"] == "eins zwei"
        own = httpx.post(f"{address}/api/v1/translate", json={"text": ["one", "two"]})
        assert [each["text"] for each in own.json()["results"]] == ["eins", "zwei"]
        assert httpx.post(f"{address}/api/v1/translate", json={"text": ["one"] * 3}).status_code in (400, 413)
        assert "text/html" in httpx.get(f"{address}/").headers["content-type"]
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=20)
        assert process.returncode == 0
    lines = [json.loads(line) for line in log.decode().split("\n") if line.startswith("{")]
    assert [line["route"] for line in lines if "route" in line][:3] == [
        "/translate",
        "/v2/translate",
        "/api/v1/translate",
    ]
    assert b"eins" not in log and b"one two" not in log


def test_a_translator_that_nobody_should_use_is_named_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    def known_as(id: str, verdict: str) -> SimpleNamespace:
        return SimpleNamespace(id=id, translator=SimpleNamespace(settings=SimpleNamespace(trained_on={"verdict": verdict})))

    models: Any = SimpleNamespace(all=[known_as("bad", "NOT USABLE: it says nothing"), known_as("good", "USABLE")])
    _warn_of(models)
    assert capsys.readouterr().err == "warning: bad was judged when it was trained: NOT USABLE: it says nothing\n"


@pytest.mark.process
def test_a_key_is_made_once_and_asked_for(tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    made = CliRunner().invoke(app, ["serve", "--make-key", "forum", "--api-key-file", str(keys)])
    assert made.exit_code == 0
    key = made.stdout.split("\n")[0]
    assert key not in keys.read_bytes().decode()
    assert Keys.load(keys).find(key) is not None
    with served("--api-key-file", str(keys), "--no-ui") as (_, address):
        ask = {"text": "one"}
        assert httpx.post(f"{address}/api/v1/translate", json=ask).status_code == 401
        headers = {"Authorization": f"Bearer {key}"}
        assert httpx.post(f"{address}/api/v1/translate", json=ask, headers=headers).status_code == 200
        assert httpx.get(f"{address}/", headers=headers).status_code == 404
        assert httpx.get(f"{address}/readyz").status_code == 200


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to serve"),
        (["nowhere"], "nowhere does not exist"),
        (["nowhere"], "limelight train or limelight import"),
        (["nowhere", "--api-key-file", "no-keys.toml"], "no-keys.toml does not exist"),
        (["nowhere", "--host", "192.0.2.1", "--public"], "cannot listen on 192.0.2.1"),
        (["x", "--host", "0.0.0.0"], "--api-key-file, or --public"),
        (["x", "queue.wait=3"], "queue.wait"),
        (["x", "queu.wait_seconds=1"], "queu: there is no such key; did you mean `queue`?"),
        (["v1.2=runs/nowhere"], "runs/nowhere does not exist"),
        (["x", "port=99999", "limits.texts=0"], "limits.texts"),
        (["--make-key", "a"], "--api-key-file keys.toml"),
        (["x", "--config", "no.toml"], "no.toml does not exist"),
    ],
)
def test_a_mistake_is_said_with_what_to_do(arguments: list[str], words: str) -> None:
    with pytest.raises(LimelightError) as error:
        CliRunner().invoke(app, ["serve", *arguments], catch_exceptions=False, env={"LIMELIGHT_PORT": "0"})
    assert words in str(error.value)


def test_settings_come_from_a_file_and_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    from limelight.cli.serve import _settings

    file = tmp_path / "serve.toml"
    file.write_bytes(b"port = 7000\nmetrics = true\n\n[queue]\nwait_seconds = 9.0\n")
    settings = _settings(file, {"port": 7001}, ["queue.window_ms=2", "files=false"])
    assert (settings.port, settings.metrics, settings.files) == (7001, True, False)
    assert (settings.queue.wait_seconds, settings.queue.window_ms) == (9.0, 2.0)


def test_a_file_is_checked_together_with_the_command_line(tmp_path: Path) -> None:
    from limelight.cli.serve import _settings

    file, keys = tmp_path / "serve.toml", tmp_path / "keys.toml"
    file.write_bytes(b'host = "0.0.0.0"\n')
    assert _settings(file, {"keys": keys}, []).keys == keys
    with pytest.raises(ConfigError, match=r"serve\.toml and the command line: .*\n.*--api-key-file, or --public"):
        _settings(file, {}, [])


@pytest.mark.parametrize(("content", "words"), [(b"port = ", "is not valid TOML"), (b'host = "\xff"', "UTF-8 at byte 8")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    from limelight.cli.serve import _settings

    file = tmp_path / "serve.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"serve\\.toml is not .*{words.removeprefix('is not ')}"):
        _settings(file, {}, [])


@pytest.mark.parametrize(
    ("written", "hosts"),
    [
        ("hosts=example.org", ("example.org",)),
        ("hosts=a.example, b.example", ("a.example", "b.example")),
        ('hosts=["a.example"]', ("a.example",)),
    ],
)
def test_names_of_the_server_are_written_with_commas_or_as_a_list(written: str, hosts: tuple[str, ...]) -> None:
    from limelight.cli.serve import _settings

    assert _settings(None, {}, [written]).hosts == hosts


def test_a_name_with_a_dot_before_a_folder_that_is_there_is_a_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    from limelight.cli.serve import is_setting

    monkeypatch.chdir(BUNDLE.parent)
    assert not is_setting(f"v1.2={BUNDLE.name}") and not is_setting("news=runs/en-de")
    assert is_setting("memori=use") and not is_setting("captions=nowhere")
    assert is_setting("queu.wait_seconds=1") and is_setting("queue.wait_seconds=1") and is_setting("files=false")


def test_corrections_that_learn_cannot_use_are_told_at_the_start() -> None:
    from limelight.cli.serve import _hello
    from limelight.serving.settings import ServeSettings

    def greet(translator: Any, **more: Any) -> str:
        served = SimpleNamespace(id="multi", translator=translator, speed=1.0, targets={"en": ["de"]}, tags=())
        settings = ServeSettings(store="sqlite:///a.db", **more)
        return "\n".join(_hello(SimpleNamespace(all=[served]), settings, "http://127.0.0.1:5000"))  # type: ignore[arg-type]

    assert "`limelight learn` cannot use corrections of several directions (multi)" in greet(tagged_bundle.translator())
    assert "limelight learn" not in greet(Translator.load(BUNDLE)) and "similar" not in greet(Translator.load(BUNDLE), memory="use")
    assert "keeps corrections for 365 days" in greet(Translator.load(BUNDLE))
    assert "answers whoever asks (memory=use)" in greet(Translator.load(BUNDLE), memory="use")
    assert "multi cannot be told similar texts" in greet(Translator.load(BUNDLE), memory="tell")
