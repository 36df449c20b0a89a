"""What a killed process left in a run's folder, and whose folder it is."""

from pathlib import Path

import pytest

from limelight.errors import ConfigError
from limelight.training.recipe.request import TrainRequest
from limelight.training.run.folder_lock import own_folder
from limelight.training.run.rounds import refuse_forgotten


def make(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != ".lock"}


def test_what_was_not_whole_is_gone_and_what_was_replaced_is_back(tmp_path: Path) -> None:
    run = make(tmp_path, "run.json", ".bundle.0123abcd.part/model", ".bundle.89abcdef.old/model", ".run.json.01234567.part", ".mine.part")
    with own_folder(run):
        assert names_in(run) == {"run.json", "bundle", ".mine.part"}
    assert (run / "bundle" / "model").read_text() == ".bundle.89abcdef.old/model"


def test_a_translator_that_took_its_place_stays(tmp_path: Path) -> None:
    run = make(tmp_path, "run.json", "bundle/model", ".bundle.89abcdef.old/model")
    with own_folder(run):
        assert names_in(run) == {"run.json", "bundle"}
    assert (run / "bundle" / "model").read_text() == "bundle/model"


@pytest.mark.parametrize("name", ["status.json", ".run.json.12ab34cd.part"])
def test_a_run_that_ended_in_its_first_moment_begins_again(tmp_path: Path, name: str) -> None:
    with own_folder(make(tmp_path, name)):
        pass


@pytest.mark.parametrize("name", ["thesis.txt", ".git/config", ".secret.part"])
def test_a_folder_of_someone_else_is_refused_and_stays_as_it_is(tmp_path: Path, name: str) -> None:
    make(tmp_path, name, ".thesis.txt.12ab34cd.part")
    before = names_in(tmp_path)
    with pytest.raises(ConfigError, match="is no run"), own_folder(tmp_path):
        pass
    assert names_in(tmp_path) == before


def test_a_run_with_monolingual_text_is_not_gone_on_with_without_it(tmp_path: Path) -> None:
    asked = TrainRequest(data=None)
    refuse_forgotten(asked, tmp_path)
    make(tmp_path, "synthetic/asked.json")
    with pytest.raises(ConfigError, match="run with --mono that is not done"):
        refuse_forgotten(asked, tmp_path)
