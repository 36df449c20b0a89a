"""`limelight import` as a person types it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from limelight.bundle import read
from limelight.cli.main import app
from limelight.errors import ConfigError, LimelightError, ModelFileError
from limelight.interop.huggingface.export import export_folder
from limelight.interop.offers import FACTS
from tagged_bundle import write_tagged

pytestmark = pytest.mark.process

STORED = Path(__file__).parents[1] / "bundles" / "format-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    export_folder(read(STORED), tmp_path / "hf")
    return tmp_path / "hf"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["import", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_says_what_it_found_and_what_to_do_next(folder: Path, tmp_path: Path) -> None:
    said = run(str(folder), "-o", str(tmp_path / "b"))
    assert "found PegasusForConditionalGeneration: 2+2 layers, d_model 32" in said
    assert "pieces of MarianTokenizer: 345" in said
    assert f"wrote {tmp_path / 'b'}: en to de" in said
    assert f"limelight translate {tmp_path / 'b'}" in said
    assert read(tmp_path / "b").settings.model == read(STORED).settings.model


def test_it_says_that_there_are_more_directions(tmp_path: Path) -> None:
    export_folder(read(write_tagged(tmp_path / "multi")), tmp_path / "hf")
    said = run(str(tmp_path / "hf"), "-o", str(tmp_path / "b"), "--no-export")
    assert "and 3 more directions: limelight translate" in said
    assert json.loads(run(str(tmp_path / "hf"), "-o", str(tmp_path / "c"), "--no-export", "--json"))["directions"] == 4


def test_json_is_one_object_and_quiet_is_nothing(folder: Path, tmp_path: Path) -> None:
    facts = json.loads(run(str(folder), "-o", str(tmp_path / "b"), "--json"))
    assert facts["architecture"] == "PegasusForConditionalGeneration" and facts["languages"] == ["en", "de"]
    assert facts["model"]["d_model"] == 32 and facts["parameters"] > 10_000
    assert run(str(folder), "-o", str(tmp_path / "c"), "--quiet") == ""


def test_a_bundle_is_replaced_only_with_force(folder: Path, tmp_path: Path) -> None:
    run(str(folder), "-o", str(tmp_path / "b"), "-q")
    with pytest.raises(ModelFileError, match="exists already"):
        run(str(folder), "-o", str(tmp_path / "b"))
    run(str(folder), "-o", str(tmp_path / "b"), "--force", "--target", "de-AT")
    assert read(tmp_path / "b").settings.languages == ("en", "de-AT")


@pytest.mark.parametrize(
    ("model", "more", "said"),
    [
        ("no-such-folder", (), "does not exist"),
        (str(STORED), (), "model_type"),
        (str(STORED), ("--revision", "v1"), "for names on the hub"),
    ],
)
def test_what_is_no_model_is_refused(model: str, more: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(LimelightError, match=said) as caught:
        run(model, "-o", str(tmp_path / "b"), *more)
    assert isinstance(caught.value, ModelFileError | ConfigError)


def test_a_fetched_model_is_called_as_on_the_hub(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "config.json").read_bytes())
    del config["limelight"]
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    (folder / FACTS).write_text('{"name": "hf:people/opus-mt-en-de@v1"}', "utf-8")
    run(str(folder), "-o", str(tmp_path / "b"), "-q", "--no-export")
    assert read(tmp_path / "b").settings.made_by.startswith("people/opus-mt-en-de@v1 (")
