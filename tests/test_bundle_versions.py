"""What a translator has learnt is read in the place of what it was, and one small file decides."""

import sys
from pathlib import Path

import pytest

from limelight.bundle import read
from limelight.bundle.layout import GLOSSARY
from limelight.bundle.versions import HISTORY, LEARNT, find_version, read_history
from limelight.errors import ModelFileError
from limelight.translator import Translator

sys.path.insert(0, str(Path(__file__).parent))
from learning_versions import copy_bundle, learn_by_hand, put_in_use


def translate(folder: Path) -> str:
    with Translator.load(folder, threads=1, engine="torch") as translator:
        return translator.translate(["three four"])[0].text


def test_the_version_in_use_is_read_and_the_first_is_untouched(tmp_path: Path) -> None:
    folder = copy_bundle(tmp_path / "num")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert find_version(folder) == folder
    assert translate(folder) == "drei vier"
    learn_by_hand(folder)
    assert read(folder).folder == folder / LEARNT / "1" / "run" / "bundle"
    assert translate(folder) == "vier drei"
    put_in_use(folder, 0)
    assert translate(folder) == "drei vier"
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_a_version_that_was_learnt_has_the_glossary_of_its_translator_or_its_own(tmp_path: Path) -> None:
    folder = copy_bundle(tmp_path / "num")
    (folder / GLOSSARY).write_bytes(b"three\tdrei\n")
    learn_by_hand(folder)
    with Translator.load(folder, threads=1, engine="torch") as translator:
        assert translator.glossary is not None and [term.source for term in translator.glossary.terms] == ["three"]
    (folder / LEARNT / "1" / "run" / "bundle" / GLOSSARY).write_bytes(b"four\tvier\n")
    with Translator.load(folder, threads=1, engine="torch") as translator:
        assert translator.glossary is not None and [term.source for term in translator.glossary.terms] == ["four"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"current": -1}', b'{"current": "../../etc"}', b'{"current": 1, "more": 2}', b'{"current": 1e999}', b"[" * 100_000],
)
def test_a_damaged_history_is_refused_and_named(tmp_path: Path, content: bytes) -> None:
    folder = copy_bundle(tmp_path / "num")
    (folder / LEARNT).mkdir()
    (folder / LEARNT / HISTORY).write_bytes(content)
    with pytest.raises(ModelFileError, match=HISTORY):
        read(folder)


def test_a_version_that_is_gone_is_an_error_and_not_the_first_one(tmp_path: Path) -> None:
    folder = copy_bundle(tmp_path / "num")
    (folder / LEARNT).mkdir()
    put_in_use(folder, 1)
    with pytest.raises(ModelFileError, match="learnt/1/run"):
        read(folder)


def test_nothing_learnt_is_an_empty_history(tmp_path: Path) -> None:
    assert read_history(tmp_path).current == 0
    assert read_history(tmp_path).versions == ()
