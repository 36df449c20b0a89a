"""A bundle whose pieces have ids of their own, or whose texts begin with a language; and that others are as they always were."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from limelight.bundle import BundleSettings, read, relist, write
from limelight.errors import ConfigError, ModelFileError
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.text.pieces.vocabulary import Vocabulary

STORED = Path(__file__).parent / "bundles" / "format-1"


def turned(tokenizer: Tokenizer) -> Vocabulary:
    """The pieces of text in another order, the rest where the model has it."""
    pieces = [*tokenizer.learnt[:6], *reversed(tokenizer.learnt[6:])]
    return Vocabulary(pieces=tuple(pieces), pad=0, unknown=1, start=2, end=3, control=(4, 5))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored = read(STORED)
    settings = stored.settings.changed(source_begin=(4,), target_begin=(5,))
    write(
        tmp_path / "b",
        settings,
        stored.weights(),
        stored.target_tokenizer.model,
        vocabulary=turned(stored.target_tokenizer),
    )
    return tmp_path / "b"


def test_ids_of_its_own_come_back(folder: Path) -> None:
    bundle = read(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*(p.name for p in STORED.iterdir()), "vocabulary.json"])
    assert bundle.source_tokenizer is bundle.target_tokenizer
    assert bundle.target_tokenizer.numbers == turned(read(STORED).target_tokenizer)
    assert bundle.target_tokenizer.decode(bundle.source_tokenizer.encode(["three seven"]).to_pylist()) == ["three seven"]
    assert (bundle.settings.source_begin, bundle.settings.target_begin) == ((4,), (5,))


def test_each_side_can_have_its_own(tmp_path: Path) -> None:
    stored = read(STORED)
    settings = stored.settings.changed(model=stored.settings.model.changed(tie="decoder"))
    weights = stored.weights()
    weights["source_embedding.weight"] = weights["target_embedding.weight"]
    plain = turned(stored.target_tokenizer)
    other = plain.changed(pieces=(*plain.pieces[:6], *reversed(plain.pieces[6:])))
    write(tmp_path / "b", settings, weights, stored.target_tokenizer.model, vocabulary=(plain, other))
    bundle = read(tmp_path / "b")
    assert (bundle.source_tokenizer.numbers, bundle.target_tokenizer.numbers) == (plain, other)
    assert not (tmp_path / "b" / "vocabulary.json").exists()
    with pytest.raises(ModelFileError, match="tie=all"):
        write(tmp_path / "c", stored.settings, stored.weights(), stored.target_tokenizer.model, vocabulary=(plain, other))


def test_a_bundle_without_them_says_nothing_of_them(tmp_path: Path) -> None:
    stored = read(STORED)
    write(tmp_path / "b", stored.settings, stored.weights(), stored.target_tokenizer.model)
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == sorted(path.name for path in STORED.iterdir())
    config = json.loads((tmp_path / "b" / "config.json").read_bytes())
    assert not {"source_begin", "target_begin"} & config.keys()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pieces": ["a", "b", "c", "d", "e"]}, "has 5 pieces, but the model"),
        ({"pad": 2}, "pads with id 2"),
        ({"end": 7}, "ends with id 7"),
        ({"control": [9999]}, "control has id 9999"),
        ({"surplus": 1}, "there is no such key"),
    ],
)
def test_a_vocabulary_that_does_not_fit_the_model_is_refused(changes: dict[str, Any], said: str, folder: Path) -> None:
    file = folder / "vocabulary.json"
    value = {**json.loads(file.read_bytes()), **changes}
    if "pieces" in changes:
        value["control"] = []
    file.write_bytes(json.dumps(value).encode())
    with pytest.raises(ModelFileError, match=r"vocabulary\.json"):
        read(folder)
    relist(folder)
    with pytest.raises(ModelFileError, match=said):
        read(folder)


def test_a_vocabulary_that_is_not_listed_or_missing_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(STORED, tmp_path / "plain")
    shutil.copy(folder / "vocabulary.json", tmp_path / "plain")
    with pytest.raises(ModelFileError, match=r"vocabulary\.json: is not listed"):
        read(tmp_path / "plain")
    (folder / "vocabulary.json").rename(folder / "source.vocabulary.json")
    relist(folder)
    with pytest.raises(ModelFileError, match=r"must list either vocabulary\.json, or"):
        read(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source_begin": (9999,)}, "source_begin has id 9999"),
        ({"target_begin": (345,)}, "target_begin has id 345"),
        ({"target_begin": (3,)}, "no translation can begin with"),
        ({"source_begin": (7,) * 101}, "source_begin"),
    ],
)
def test_a_beginning_that_cannot_be_is_refused(changes: dict[str, Any], said: str) -> None:
    settings = read(STORED).settings.model_dump()
    with pytest.raises(ConfigError, match=said):
        BundleSettings(**{**settings, **changes})
