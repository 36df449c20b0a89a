"""`limelight plan` as a person and a script meet it: ten lines with reasons, JSON, a page, and nothing left behind."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from made_sentences import sentences
from prepare_command import Outcome, given_pieces, here, write_pairs

FAST = ("data.filters.wrong_language=off", "--workers", "0")


@pytest.fixture
def text(tmp_path: Path) -> tuple[Path, Path]:
    return write_pairs(sentences(300), tmp_path / "text")


def planned(*arguments: object) -> Outcome:
    found = here("plan", *arguments)
    assert found.code == 0, found.err
    return found


def test_a_text_and_a_time_are_answered_in_about_ten_lines_each_with_a_reason(
    text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = planned(*text, *FAST, f"data.{given_pieces()}", "--budget", "2h").out.strip().split("\n")
    assert [line.split()[0] for line in said[:-1]] == [
        "Model", "Text", "Batch", "Memory", "Speed", "Time", "Disk", "Cost", "Expect", "Instead",
    ]  # fmt: skip
    for line in said[:-1]:
        assert line.endswith(")"), line  # the reason
    assert said[-1].startswith("Nothing was written. Start with: limelight train ")
    assert "--budget 2h" in said[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


@pytest.mark.process
def test_devices_that_nobody_here_has_are_planned_without_torch(tmp_path: Path) -> None:
    """Their memory, sharing and price are told, and no second is spent on loading what only a run needs."""
    code = (
        "import sys; sys.argv = ['limelight', 'plan', '--preset', 'big', '--budget', '16xH100 24h']\n"
        "from limelight.cli.main import main\n"
        "try:\n    main()\nfinally:\n    assert 'torch' not in sys.modules, 'torch was loaded'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=tmp_path, env=os.environ, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    said = done.stdout.decode()
    assert "16 x H100 in 2 machines, ddp" in said
    assert "USD" in said
    assert "no text was given" in said


def test_json_is_one_object_with_the_lines_as_well(tmp_path: Path) -> None:
    found = planned("--preset", "base", "--pairs", 1_000_000, "--device", "4xL4", "--json")
    values = json.loads(found.out)
    assert values["device"]["name"] == "L4"
    assert values["device"]["count"] == 4
    assert values["text"]["pairs"] == 1_000_000
    assert [line["name"] for line in values["said"]][:2] == ["Model", "Text"]
    assert values["start"] is None  # there is no text to start with
    assert found.err == ""


@pytest.mark.slow
def test_servers_and_the_preparation_of_more_pairs_are_said_when_asked_for() -> None:
    said = planned("--preset", "small", "--device", "L4", "--requests", 20, "--latency", 900, "--corpus-pairs", 10**9).out
    assert re.search(r"^Serving  20 texts a second within 900 ms: \d+ servers", said, re.MULTILINE)
    assert re.search(r"^Corpus   1,000,000,000 pairs prepared in ", said, re.MULTILINE)


@pytest.mark.slow
def test_a_simulation_is_one_more_line() -> None:
    said = planned("--preset", "toy", "--device", "8xH100", "--simulate").out
    assert "Played   rank 0 of 8 holds" in said
    assert re.search(r"all \d+ counts equal their formulas", said)


@pytest.mark.slow
def test_a_page_stands_alone_and_says_the_same(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    said = planned("--preset", "base", "--budget", "8xH100 2h", "--html", page).out
    content = page.read_bytes().decode()
    assert said.endswith(f"wrote {page}.\n")
    for part in ("A plan: base", "What was weighed", "Assumptions", "DOES NOT" if "DOES NOT" in said else "Memory"):
        assert part in content
    assert "<script" not in content
    addresses = [address for address in re.findall(r"https?://[^\"' <]+", content) if "www.w3.org" not in address]
    assert addresses == []
    pytest.importorskip("matplotlib")
    assert content.count("<svg") == 3


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--preset", "base", "--device", "H1000"), ("H1000", "H100", "--devices FILE")),
        (("--preset", "base", "--device", "H100", "--calibrate"), ("this machine", "leave out")),
        (("--preset", "base", "--device", "H100", "--html", "nowhere/at/all.html"), ("there is no folder",)),
        (("nothing.en", "nothing.de"), ("nothing.en", "does not exist")),
        (("nothing.en", "nothing.de", "--both-directions"), ("one direction", "limelight train ... --dry-run")),
        (("nothing.en", "nothing.de", "--from", "old"), ("from nothing", "limelight train ... --dry-run")),
    ],
)
def test_an_error_says_what_to_do(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    found = here("plan", *arguments)
    assert found.code != 0
    for word in words:
        assert word in found.err, found.err


@pytest.mark.slow
def test_a_price_of_ones_own_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b"[H100]\nprice = 100.0\n")
    plain, mine = (
        json.loads(planned("--preset", "base", "--budget", "H100 2h", *more, "--json").out)["cost"] for more in ((), ("--devices", file))
    )
    assert mine > 10 * plain > 0
