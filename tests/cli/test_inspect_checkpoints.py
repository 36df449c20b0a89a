"""`limelight inspect RUN --checkpoints`: what a run can go on from."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from limelight.cli.main import app
from limelight.errors import DataError, ModelFileError
from limelight.training.checkpoints.checkpoint import name_of, save
from limelight.training.run_folder import CHECKPOINTS


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for step in (100, 200, 300):
        save(tmp_path / CHECKPOINTS, step, {"w": torch.full((500_000,), step)}, {"step": step}, keep=3)
    state = tmp_path / CHECKPOINTS / name_of(300) / "state.json"
    state.write_bytes(state.read_bytes().replace(b"300", b"301"))
    return tmp_path


def asked(run: Path, *more: str) -> str:
    done = CliRunner().invoke(app, ["inspect", str(run), "--checkpoints", *more], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_table_says_which_is_damaged_and_where_the_run_goes_on(run: Path) -> None:
    head, *rows = asked(run).strip().split("\n")
    assert head.split() == ["step", "size", "written", "as", "state"]
    assert [row.split()[0] for row in rows] == ["300", "200", "100"]
    assert rows[0].endswith("whole  state.json: is damaged, its content is not what was written")
    assert rows[1].endswith("whole  sound; the run goes on from here") and rows[2].endswith("whole  sound")
    assert all("4.0 MB" in row for row in rows)


def test_json_has_the_same_for_programs(run: Path) -> None:
    found = json.loads(asked(run, "--json"))
    assert [(each["step"], each["sound"], each["shards"]) for each in found] == [
        (300, False, 0),
        (200, True, 0),
        (100, True, 0),
    ]
    assert found[0]["problems"] == ["state.json: is damaged, its content is not what was written"]


def test_nothing_to_go_on_from_is_an_error(run: Path, tmp_path: Path) -> None:
    for step in (100, 200):
        (run / CHECKPOINTS / name_of(step) / "state.json").unlink()
    with pytest.raises(ModelFileError, match="every checkpoint of it is damaged"):
        asked(run)
    with pytest.raises(DataError, match="has no checkpoints"):
        asked(tmp_path / "nothing")
