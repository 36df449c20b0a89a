"""What is named as opus:... or hf:... is fetched after a question, and nothing else ever is: real commands, servers of this machine."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))
from small_hub import SmallHub
from small_opus import SmallOpus, pack

from limelight.cli.fetching import PLACES, fetch_named
from limelight.cli.main import app
from limelight.cli.memory import Action
from limelight.cli.plan.request import PlanOptions, parse_plan_request
from limelight.cli.settings_arguments import settings_from
from limelight.cli.train.request import parse_train_request
from limelight.errors import ConfigError
from limelight.files import cache_folder
from limelight.interop.huggingface.export import export_folder
from limelight.interop.offers import PublishedOffer

STORED = Path(__file__).parents[1] / "bundles" / "format-1"
ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
EINS = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")


def digits(words: tuple[str, ...], count: int = 900) -> bytes:
    return "".join(" ".join(words[int(digit)] for digit in str(100 + number)) + ".\n" for number in range(count)).encode()


@pytest.fixture
def servers(tmp_path: Path, starts_process: None) -> Iterator[tuple[SmallOpus, SmallHub, dict[str, str]]]:
    opus, hub = SmallOpus(), SmallHub()
    opus.archives = {
        ("Digits", "v1", "de-en"): pack({"Digits.de-en.de": digits(EINS), "Digits.de-en.en": digits(ONES), "LICENSE": b"CC0\n"})
    }
    files = {path.relative_to(STORED).as_posix(): path.read_bytes() for path in STORED.rglob("*") if path.is_file()}
    hub.repositories = {"people/en-de": files, "datasets/people/pairs": {"train.tsv": b"one\teins\ntwo\tzwei\n"}}
    hub.licenses = {"people/en-de": "apache-2.0"}
    environment = {"OPUS_API": f"{opus.address}/opusapi/", "HF_ENDPOINT": hub.address, "HF_HUB_DISABLE_XET": "1"}
    environment |= {"LIMELIGHT_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "home")}
    yield opus, hub, {**os.environ, **environment}
    opus.close()
    hub.close()


def run(environment: dict[str, str], *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "limelight", *words]
    return subprocess.run(command, env=environment, input=said, capture_output=True, text=True)


@pytest.mark.process
def test_without_a_terminal_and_without_yes_nothing_is_fetched_and_all_is_told(servers: Any, tmp_path: Path) -> None:
    opus, hub, environment = servers
    done = run(environment, "prepare", "opus:Digits/en-de", "hf:people/pairs", "-o", str(tmp_path / "p"))
    assert done.returncode == 2 and "to agree add --yes" in done.stderr and "Traceback" not in done.stderr
    assert f"opus:Digits/en-de: {opus.address}/Digits/v1/de-en.zip, 0.0 MB, licence: CC0" in done.stderr
    assert f"hf:people/pairs: {hub.address}/datasets/people/pairs, 0.0 MB, licence: none is told" in done.stderr
    assert not (tmp_path / "cache").exists() and not (tmp_path / "p").exists()
    assert not any("/resolve/" in asked for asked in hub.asked) and not any(asked.endswith(".zip") for asked in opus.asked[2:])


@pytest.mark.process
def test_names_in_a_file_of_settings_are_asked_for_like_others(servers: Any, tmp_path: Path) -> None:
    _, hub, environment = servers
    hub.repositories["datasets/people/pairs"]["dev/dev.tsv"] = b"three\tdrei\n"
    place = tmp_path / "settings.toml"
    place.write_text(NAMED.replace("[data]\n", "").replace("data.", "").replace("ours.tsv", "hf:people/pairs").partition("[model]")[0])
    command = ["prepare", "--config", str(place), "--check-only", "--anyway", "--workers", "0"]
    done = run(environment, *command)
    assert done.returncode == 2 and "to agree add --yes" in done.stderr and "Traceback" not in done.stderr
    assert all(f"  - {name}: " in done.stderr for name in ("opus:Digits/en-de", "hf:people/pairs", "hf:people/pairs/dev"))
    assert not (tmp_path / "cache").exists()
    done = run(environment, *command, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert {each["name"]: each["read"] for each in json.loads(done.stdout)["corpora"]} == {"digits": 900, "ours": 2, "valid": 1}


@pytest.mark.process
def test_a_corpus_by_name_is_trained_on_and_then_needs_no_network(servers: Any, tmp_path: Path) -> None:
    opus, _, environment = servers
    command = ["train", "opus:Digits/en-de", "-o", str(tmp_path / "run"), "--preset", "toy", "--steps", "3", "--no-export", "--plain"]
    done = run(environment, *command, "--anyway", "--workers", "0", "--threads", "1", "--yes")
    assert done.returncode == 0, done.stderr
    assert "licence: CC0" in done.stderr
    recipe = (tmp_path / "run" / "recipe.toml").read_text("utf-8")
    assert 'languages = ["en", "de"]' in recipe and 'name = "Digits"' in recipe
    opus.close()
    again = run(environment, "prepare", "opus:Digits/en-de", "--check-only", "--workers", "0")
    assert again.returncode == 0, again.stderr


@pytest.mark.process
def test_a_bundle_on_a_hub_translates_and_serves(servers: Any, tmp_path: Path) -> None:
    _, hub, environment = servers
    ours = run(environment, "translate", str(STORED), "a b")
    done = run(environment, "translate", "hf:people/en-de", "a b", "--yes")
    assert done.returncode == 0 and done.stdout == ours.stdout, done.stderr
    assert f"{hub.address}/people/en-de" in done.stderr and "licence: apache-2.0" in done.stderr
    command = [sys.executable, "-m", "limelight", "serve", "news=hf:people/en-de", "--port", "0", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["models"] == ["news"]  # it was fetched before: nobody is asked
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.process
def test_a_model_on_a_hub_is_imported_by_either_name(servers: Any, tmp_path: Path) -> None:
    from limelight.bundle import read

    _, hub, environment = servers
    export_folder(read(STORED), tmp_path / "hf")
    hub.repositories["people/opus-mt-en-de"] = {path.name: path.read_bytes() for path in (tmp_path / "hf").iterdir()}
    for number, words in enumerate((("people/opus-mt-en-de", "--revision", "main"), ("hf:people/opus-mt-en-de",))):
        done = run(environment, "import", *words, "-o", str(tmp_path / f"b{number}"), "--no-export", "--yes")
        assert done.returncode == 0, done.stderr
        assert read(tmp_path / f"b{number}").settings.languages == ("en", "de")


@pytest.mark.process
@pytest.mark.parametrize(("answer", "fetched"), [("n", False), ("y", True)])
def test_at_a_terminal_a_person_is_asked(answer: str, fetched: bool, servers: Any, tmp_path: Path) -> None:
    _, _, environment = servers
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "limelight",
        "prepare",
        "hf:people/pairs",
        "--source",
        "en",
        "--target",
        "de",
        "--check-only",
        "--anyway",
    ]
    with subprocess.Popen(command, env=environment, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(ours, 4_096)
        assert b"licence: none is told" in seen and not list((tmp_path / "cache").rglob("*.tsv"))
        os.write(ours, f"{answer}\n".encode())
        began = time.monotonic()
        while process.poll() is None and time.monotonic() - began < 120:
            try:
                seen += os.read(ours, 4_096)
            except OSError:  # it closed the terminal
                break
        assert (process.wait(60) == 2) is not fetched, seen
    os.close(ours)
    assert bool(list((tmp_path / "cache").rglob("train.tsv"))) is fetched


def test_only_what_may_be_named_is_looked_up() -> None:
    """Texts and outputs are never taken for names, so that nothing is asked of anybody (an unmarked test may open no connection)."""
    given = {"bundle": Path("en-de"), "texts": ["hf:people/en-de", "opus:Digits/de-en"], "output": Path("hf:people/out"), "yes": True}
    assert fetch_named("translate", given) == given
    assert fetch_named("report", {"run": Path("hf:people/en-de")}) == {"run": Path("hf:people/en-de")}


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], str]:
    """Two corpora that were agreed to before: nobody is asked, and no connection is opened."""
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path / "cache"))
    opus, hub = tmp_path / "cache/opus/latest/de-en/Digits", tmp_path / "cache/hf/corpus/people%2Fpairs%2Fdev/pairs"
    for folder, files in ((opus, {"Digits.de-en.de": EINS, "Digits.de-en.en": ONES}), (hub, {"dev/dev.en": ONES})):
        for name, words in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(digits(words, 9))
    return [str(opus / f"Digits.de-en.{code}") for code in ("en", "de")], str(hub)


NAMED = """[data]
languages = ["en", "de"]
[[data.corpora]]
name = "digits"
paths = ["opus:Digits/en-de"]
weight = 2.0
[[data.corpora]]
name = "ours"
paths = ["ours.tsv"]
[data.held_out]
valid = ["hf:people/pairs/dev"]
[model]
vocab_size = 8000
"""


def test_a_recipe_may_name_corpora(fetched: tuple[list[str], str], tmp_path: Path) -> None:
    place = tmp_path / "recipe.toml"
    place.write_text(NAMED)
    inputs = fetch_named("train", {"inputs": [str(place), "seed=7"]})["inputs"]
    asked, _ = parse_train_request(inputs, output=tmp_path / "run", text={})
    assert asked.recipe is not None and asked.recipe.seed == 7
    assert [corpus.paths for corpus in asked.recipe.data.corpora] == [fetched[0], ["ours.tsv"]]
    assert asked.recipe.data.corpora[0].weight == 2.0 and list(asked.recipe.data.held_out.valid) == [fetched[1]]
    planned = parse_plan_request(fetch_named("plan", {"inputs": [str(place)]})["inputs"], PlanOptions())
    assert planned.data is not None and planned.data == asked.recipe.data


def test_settings_of_prepare_may_name_corpora(fetched: tuple[list[str], str], tmp_path: Path) -> None:
    place = tmp_path / "settings.toml"
    place.write_text('[[corpora]]\nname = "digits"\npaths = ["opus:Digits/en-de"]\n')
    given = fetch_named("prepare", {"inputs": None, "config": place})
    options = dict.fromkeys(("source", "target", "valid", "test", "vocab_size", "keep_dropped"))
    settings = settings_from(given["inputs"], options, (), place)
    assert settings.corpora[0].paths == fetched[0] and settings.languages == ("en", "de")
    written = ['data.corpora=[{name="a", paths=["opus:Digits/de-en"]}]', 'data.held_out.test=["hf:people/pairs/dev"]']
    assert fetch_named("train", {"inputs": written})["inputs"][2:] == [
        f'data.corpora=[{{name = "a", paths = ["{fetched[0][1]}", "{fetched[0][0]}"]}}]',
        f'data.held_out.test=["{fetched[1]}"]',
    ]


def test_what_the_command_line_says_wins_over_names_in_settings(fetched: tuple[list[str], str], tmp_path: Path) -> None:
    place = tmp_path / "settings.conf"
    place.write_text('[[corpora]]\nname = "digits"\npaths = ["opus:Digits/en-de"]\n[held_out]\nvalid = ["hf:people/pairs/dev"]\n')
    options = dict.fromkeys(("source", "target", "valid", "test", "vocab_size", "keep_dropped"))
    ours = ["mine.en", "mine.de"]
    given = fetch_named("prepare", {"inputs": ours, "config": place, "valid": ["dev.tsv"]})["inputs"]
    assert given == ours
    assert settings_from(given, {**options, "valid": ["dev.tsv"]}, (), place).corpora[0].paths == ours
    assert fetch_named("prepare", {"inputs": None, "pair": ["en-de=a.en,a.de"], "config": place})["inputs"] == [
        f'held_out.valid=["{fetched[1]}"]'
    ]
    given = fetch_named("prepare", {"inputs": None, "config": place})["inputs"]
    (swapped,) = settings_from(given, {**options, "swap": True}, (), place).corpora
    assert swapped.paths == fetched[0] and swapped.swapped


def test_a_name_of_a_file_may_be_any_bytes() -> None:
    assert fetch_named("train", {"inputs": ["caf\udce9.en"]}) == {"inputs": ["caf\udce9.en"]}


def test_translations_are_compared_with_the_target_side(fetched: tuple[list[str], str]) -> None:
    ours = fetched[0][1]
    assert fetch_named("evaluate", {"targets": [ours, "opus:Digits/en-de"]})["targets"] == [ours, ours]
    assert fetch_named("evaluate", {"targets": []}) == {"targets": []}


def test_a_recipe_without_names_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "recipe.toml"
    for text in (NAMED.replace("opus:Digits/en-de", "digits.tsv").replace("hf:people/pairs/dev", "dev.tsv"), "corpora = opus"):
        place.write_text(text)
        assert fetch_named("train", {"inputs": [str(place)]}) == {"inputs": [str(place)]}
    place.write_text("[data]\ncorpora = opus:Digits/en-de\n")
    with pytest.raises(ConfigError, match=r"recipe\.toml is not valid TOML"):
        fetch_named("train", {"inputs": [str(place)]})


@pytest.mark.parametrize(
    ("verb", "param", "value", "sides"),
    [
        ("distill", "text", "opus:Digits/en-de", "en"),
        ("distill", "references", "opus:Digits/en-de", "de"),
        ("distill", "translations", "opus:Digits/en-de", "de"),
        ("distill", "valid", ["opus:Digits/en-de"], ["en", "de"]),
        ("train", "mono", ["opus:Digits/en-de"], ["de"]),
        ("learn", "test", ["opus:Digits/de-en"], ["de", "en"]),
        ("learn", "replay_data", ["opus:Digits/en-de"], ["en", "de"]),
        ("evaluate", "targets", ["en-de", "opus:Digits/en-de"], ["en-de", "en", "de"]),
        ("evaluate", "source", "opus:Digits/de-en", "de"),
        ("prepare", "pair", ["en-de=opus:Digits/en-de"], ["en-de=", "de"]),
    ],
)
def test_each_verb_takes_the_side_it_needs(
    verb: str, param: str, value: Any, sides: str | list[str], fetched: tuple[list[str], str]
) -> None:
    by_code = dict(zip(("en", "de"), fetched[0], strict=True)) | {"en-de": "en-de"}
    found = fetch_named(verb, {param: value})[param]
    if param == "pair":
        assert found == [f"en-de={','.join(fetched[0])}"]
    else:
        assert found == (by_code[sides] if isinstance(sides, str) else [by_code[side] for side in sides])


def test_a_memory_is_filled_by_name_and_searched_by_text(fetched: tuple[list[str], str]) -> None:
    assert fetch_named("memory", {"action": Action.add, "given": ["opus:Digits/en-de"]})["given"] == fetched[0]
    asked = {"action": Action.find, "given": ["opus:Digits/en-de"]}
    assert fetch_named("memory", asked) == asked


def test_lines_on_a_hub_are_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path))
    folder = tmp_path / "hf/corpus/people%2Fnews%2Fa%2Fnews.en%40v1/news"
    (folder / "a").mkdir(parents=True)
    with pytest.raises(ConfigError, match="a file of lines is needed here"):
        fetch_named("distill", {"text": "hf:people/news/a/news.en@v1"})
    (folder / "a/news.en").touch()
    assert fetch_named("distill", {"text": "hf:people/news/a/news.en@v1"})["text"] == str(folder / "a/news.en")
    offer = PublishedOffer("hf:people/news/a", "https://x", 1, 1, "CC0", tmp_path / "new", lambda part, tell: None, {"a/news.tsv"})
    monkeypatch.setattr("limelight.interop.huggingface.hub.find_on_hub", lambda name, kind: (tmp_path / "new", offer))
    with pytest.raises(ConfigError, match="a file of lines is needed here"):  # of a folder, before anybody is asked
        fetch_named("distill", {"text": "hf:people/news/a"})
    with pytest.raises(ConfigError, match="to agree add --yes"):
        fetch_named("distill", {"text": "hf:people/news/a/news.tsv/"})


def test_an_offer_shows_nothing_that_turns_the_line_around(tmp_path: Path) -> None:
    offer = PublishedOffer("hf:a/b", "https://x", 1, 1, "\u202eCC0\u2066\u200f\u2028\x1b", tmp_path, lambda part, tell: None)
    assert not set(offer.describe()) & set("\u202e\u2066\u200f\u2028\x1b")


def test_a_place_that_is_named_needs_no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: 1 / 0)
    assert cache_folder() == tmp_path


def test_a_file_of_that_name_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hf:people").mkdir()
    Path("hf:people/pairs").write_bytes(b"one\n")
    assert fetch_named("train", {"inputs": ["hf:people/pairs"]}) == {"inputs": ["hf:people/pairs"]}


@pytest.mark.parametrize(
    ("verb", "given", "said"),
    [
        ("translate", {"bundle": Path("opus:Digits/de-en")}, "is a corpus, and a translator is needed here"),
        ("serve", {"bundles": ["hf:people"]}, "is no name on a hub"),
        ("train", {"inputs": ["opus:Digits"]}, "is no name of a corpus"),
        ("distill", {"text": "hf:people/pairs"}, "a file of lines is needed here; name it as hf:OWNER/NAME/FILE, or give opus:"),
        ("distill", {"text": "hf:people/pairs/*.en"}, "a file of lines is needed here"),
        ("distill", {"teachers": ["opus:Digits/de-en"]}, "is a corpus, and a translator is needed here"),
        ("evaluate", {"targets": ["opus:Digits/de-en"]}, "is a corpus, and a translator is needed here"),
        ("train", {"inputs": ['data.corpora=[{name="a", paths=["opus:Digits"]}]']}, "is no name of a corpus"),
        ("train", {"inputs": ["fine_tuning.bundle=opus:Digits/de-en"]}, "is a corpus, and a translator is needed here"),
        ("import", {"model": "folder", "revision": "v1"}, "--revision is for names on the hub"),
    ],
)
def test_wrong_names_are_refused_before_anybody_is_asked(verb: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        fetch_named(verb, given)


def test_every_verb_that_takes_names_has_yes_and_the_parameters() -> None:
    commands = dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    for verb, kinds in PLACES.items():
        assert {*kinds, "yes"} - {"pair", "valid", "test"} <= {each.name for each in commands[verb].params}, verb
    assert {verb for verb, each in commands.items() if "yes" in {param.name for param in each.params}} == {*PLACES}
