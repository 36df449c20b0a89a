"""Every verb explains itself with commands that could be typed, and asking for help costs a moment."""

import inspect
import re
import resource
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from limelight.cli.main import VERBS as PLACES
from limelight.cli.main import app

PROGRAM: typer.main.TyperGroup = typer.main.get_command(app)  # type: ignore[assignment]
VERBS = dict(PROGRAM.commands)
HEAVY = ("torch", "numpy", "polars", "pyarrow", "ctranslate2", "pydantic", "sentencepiece")
# Bounds of the project are 0.3 s for the import and 0.5 s for the help. Counted is what the processor does, for the clock also counts what
# it does for others; and a slow machine is given three times as much.
IMPORT, HELP, SLOW = 0.3, 0.5, 3


def examples(verb: str) -> list[str]:
    title, *lines = [line for line in (VERBS[verb].epilog or "").split("\n") if line]
    assert title == "Examples:"
    return lines


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_sentence_and_three_examples(verb: str) -> None:
    assert VERBS[verb].help
    assert len(examples(verb)) >= 3


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_tells_the_first_sentence_of_a_verb_that_it_does_not_load(verb: str) -> None:
    told = " ".join(inspect.getdoc(VERBS[verb].callback).partition("\n\n")[0].split())
    assert PLACES[verb][1] == told


@pytest.mark.parametrize("verb", VERBS)
def test_examples_parse(verb: str) -> None:
    """Every option that an example uses exists and is given what it takes."""
    for line in examples(verb):
        words = shlex.split(re.split(r" [|<>] | && ", line)[0])
        assert words[:2] == ["limelight", verb], line
        VERBS[verb].make_context(f"limelight {verb}", words[2:])


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_and_argument_is_explained(verb: str) -> None:
    unexplained = [each.name for each in VERBS[verb].params if each.name != "help" and not getattr(each, "help", None)]
    assert not unexplained


@pytest.mark.process
@pytest.mark.parametrize("code", ["import limelight", "import limelight.cli.main"])
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str) -> None:
    check = f"{code}; import sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True)
    assert done.stdout.split() == []


def seconds(words: list[str]) -> float:
    """Of the processor, for one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "bound"),
    [(["-c", "import limelight"], IMPORT), (["-m", "limelight", "--help"], HELP)],
    ids=["import", "help"],
)
def test_starting_costs_a_moment(words: list[str], bound: float) -> None:
    assert statistics.median(seconds([sys.executable, *words]) for _ in range(5)) < SLOW * bound


@pytest.mark.process
def test_help_shows_the_examples_one_to_a_line() -> None:
    done = subprocess.run([sys.executable, "-m", "limelight", "report", "--help"], capture_output=True, check=True)
    shown = [" ".join(line.split()) for line in done.stdout.decode().split("\n")]
    assert set(examples("report")) <= set(shown)


@pytest.mark.parametrize(
    "command",
    [
        "translate gs://models/en-de hello",
        "prepare a.en a.de -o gs://bucket/x",
        "train s3://bucket/a.en s3://bucket/a.de -o gs://bucket/run",
        "export en-de --to onnx -o file:///tmp/x",
        "export s3://models/en-de",
        "report s3://bucket/run",
        "train a.en a.de --from s3://models/en-de",
        "translate en-de hello -o s3://bucket/x",
        "import model -o az://bucket/x",
        "serve gs://models/en-de",
        "mcp abfs://models/en-de",
        "evaluate en-de s3://bucket/a.en a.de",
        "evaluate s3://models/en-de a.en a.de --calibrate",
        "evaluate s3://models/en-de a.en a.de --compare s3://models/other",
        "serve s3://models/en-de gs://models/de-en",
        "import s3://models/en-de -o en-de",
        "import hf:a/b -o S3://bucket/x --yes",
    ],
)
def test_an_address_where_a_folder_is_meant_is_refused_and_nothing_is_written(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code and "is meant; mount it, or copy it first" in str(result.exception)
    assert re.search(r"[a-z0-9]+://[^,]+", str(result.exception))
    assert not list(tmp_path.iterdir())
