"""`limelight export` as a person meets it: what it says, what it leaves behind, and what it refuses."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from limelight.cli.main import app
from limelight.errors import LimelightError

STORED = Path(__file__).parents[1] / "bundles" / "format-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORED, tmp_path / "numbers"))


def said(*words: str) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_it_says_what_was_written_and_how_close_it_is(folder: Path):
    probe = folder.parent / "probe.en"
    probe.write_bytes(b"three seven one\n\nfour two\n")
    printed = said("export", str(folder), "--probe", str(probe))
    assert "compared with our own on 2 sentences (given): 100.0% the same" in printed
    assert f"limelight translate {folder} uses it from now on" in printed
    assert (folder / "ctranslate2" / "model.bin").is_file()
    assert said("translate", str(folder), "three seven one") == "drei sieben eins\n"
    line = json.loads(said("translate", str(folder), "three seven one", "--jsonl"))
    assert all(0 < piece["probability"] <= 1 for piece in line["pieces"])


@pytest.mark.slow
def test_json_has_all_figures(folder: Path, tmp_path: Path):
    (tmp_path / "probe.en").write_bytes(b"three seven one\nfour two\n")
    words = ("--quantize", "int8", "--probe", str(tmp_path / "probe.en"), "-o", str(tmp_path / "engine"), "--json")
    facts = json.loads(said("export", str(folder), *words))
    assert (facts["quantize"], facts["engine"], facts["probe"]) == ("int8", "ctranslate2", "given")
    assert Path(facts["folder"], "shared_vocabulary.json").is_file()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--to", "gguf"], "there is no export to 'gguf'"),
        (["--to", "onnx"], "say which with -o FOLDER"),
        (["--to", "huggingface", "--quantize", "int8", "-o", "x"], "--quantize: only for --to ctranslate2"),
        (["--quantize", "int4"], "no weights in 'int4'"),
        (["--probe", "nowhere.en"], "nowhere.en"),
    ],
)
def test_what_cannot_be_is_refused_in_words(folder: Path, words: list[str], expected: str):
    with pytest.raises(LimelightError, match=expected):
        said("export", str(folder), *words)
    assert not (folder / "ctranslate2").exists()
