"""The ids around a text, and pieces that others numbered: counted where they cost, refused where they do not fit, absent where unused."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_sentences import sentences
from prepare_command import pieces_model, write_pairs
from prepared_corpora import make

from limelight.corpus import prepare as prepare_file
from limelight.corpus.config import PrepareSettings, SpecialIds
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.batches import Batcher, BatchSettings, BatchShare, pad_rows
from limelight.corpus.feeding.shards import Pieces, PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.prepare import prepare
from limelight.corpus.tokenizers import check_given
from limelight.errors import ConfigError, DataError
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.text.pieces.vocabulary import Vocabulary

FOREIGN = SpecialIds(pad=640, start=640, end=5, source_begin=(641, 642), target_begin=(643,))


@pytest.fixture
def numbered(tmp_path: Path) -> dict[str, Any]:
    """The pieces of the tests, numbered backwards as if by others: the settings that name them."""
    own = Tokenizer.load(pieces_model()).learnt
    last = len(own) - 1
    numbers = Vocabulary(pieces=tuple(reversed(own)), pad=last, unknown=last - 1, start=last - 2, end=last - 3)
    (tmp_path / "their.json").write_bytes(numbers.model_dump_json().encode())
    return {
        "given_pieces": [str(pieces_model())],
        "given_vocabulary": [str(tmp_path / "their.json")],
        "marks": SpecialIds(pad=last, start=last, end=last - 3),
    }


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PrepareSettings:
    monkeypatch.setattr(prepare_file, "page", lambda manifest: "")  # its pictures take longer than the rest
    paths = write_pairs(sentences(40), tmp_path / "text")
    return PrepareSettings(
        languages=("en", "de"),
        corpora=[{"name": "made", "paths": [str(path) for path in paths]}],
        filters={"wrong_language": "off"},
        given_pieces=[str(pieces_model())],
    )


def prepared(settings: PrepareSettings, folder: Path) -> CorpusManifest:
    return prepare(settings, folder, LocalEngine(0), lambda _: None, force=True)[0]


# --- batches


def test_a_row_has_its_beginning_its_pieces_its_end_and_padding() -> None:
    pieces = Pieces(np.array([7, 8, 9], np.uint16), np.array([0, 2, 2, 3]))
    assert pad_rows(pieces, 0, 3, 5, 40, (1, 2), 5).tolist() == [[1, 2, 7, 8, 5], [1, 2, 5, 40, 40], [1, 2, 9, 5, 40]]
    assert pad_rows(pieces, 0, 3, 2, 40, (), None).tolist() == [[7, 8], [40, 40], [9, 40]]


def test_a_decoder_that_starts_with_the_padding_reads_as_much_as_it_says() -> None:
    target = np.array([[7, 8, 5], [9, 5, 40]])
    share = BatchShare(0, 0, 0, np.arange(2), target, target, rows=2, targets=5, marks=SpecialIds(pad=40, start=40, end=5))
    assert share.target_in.tolist() == [[40, 7, 8], [40, 9, 40]]
    assert share.sources == 5 and share.padding() == pytest.approx(1 / 6)


@pytest.mark.slow
def test_what_stands_around_a_text_counts_for_budget_and_positions(tmp_path: Path) -> None:
    folder = make(tmp_path / "prepared")
    usual = Batcher(PreparedCorpus.open(folder).split("train"), BatchSettings(budget=200, longest=20))
    CorpusManifest.load(folder).changed(settings={"marks": FOREIGN.model_dump(mode="json")}).save(folder)
    batcher = Batcher(PreparedCorpus.open(folder).split("train"), BatchSettings(budget=200, longest=20))
    window = batcher.window(0, 0)
    shares = list(batcher.shares(window, 0, 1))
    assert window.skipped > usual.window(0, 0).skipped > 0
    lengths = batcher.pairs.lengths(window.samples)
    assert window.skipped == int(((lengths[0] + 3 > 21) | (lengths[1] + 2 > 21)).sum())
    for share in shares:
        source, target = batcher.pairs.ids(share.samples)
        for row in range(len(share.samples)):
            pieces = [side.values[side.offsets[row] : side.offsets[row + 1]].tolist() for side in (source, target)]
            wanted = [641, 642, *pieces[0], 5], [643, *pieces[1], 5]
            for grid, ids in zip((share.source, share.target), wanted, strict=True):
                assert grid[row].tolist() == [*ids, *[640] * (grid.shape[1] - len(ids))]
        assert share.cells <= 200 and share.targets == int((share.target != 640).sum())
        assert all((grid != 640).any(axis=0).all() for grid in (share.source, share.target))  # no wider than it must be
    assert np.mean([share.cells for share in shares]) > 0.7 * 200


# --- prepared folders


def test_pieces_that_others_numbered_are_prepared_in_their_ids(corpus: PrepareSettings, numbered: dict[str, Any], tmp_path: Path) -> None:
    usual = prepared(corpus, tmp_path / "usual")
    foreign = prepared(corpus.changed(**numbered), tmp_path / "foreign")
    assert foreign.marks == numbered["marks"] and foreign.text_address == usual.text_address
    sides = [PreparedCorpus.open(tmp_path / name).split("train").ids(np.arange(5)) for name in ("usual", "foreign")]
    size = usual.vocab_sizes[0]
    for own, theirs in zip(*sides, strict=True):
        assert (size - 1 - own.values.astype(int)).tolist() == theirs.values.astype(int).tolist()
    assert {path.name for path in (tmp_path / "foreign").iterdir()} - {path.name for path in (tmp_path / "usual").iterdir()} == {
        "vocabulary.json"
    }
    source, target = PreparedCorpus.open(tmp_path / "foreign").tokenizers()
    assert source is target and source.pad == size - 1


def test_the_address_covers_ids_and_marks(corpus: PrepareSettings, numbered: dict[str, Any], tmp_path: Path) -> None:
    before = prepared(corpus.changed(**numbered), tmp_path / "out").address
    other = corpus.changed(**{**numbered, "marks": numbered["marks"].changed(target_begin=(9,))})
    assert prepared(other, tmp_path / "out").address != before
    numbers = json.loads((tmp_path / "their.json").read_bytes())
    (tmp_path / "their.json").write_bytes(json.dumps({**numbers, "control": [9]}).encode())
    assert prepared(corpus.changed(**numbered), tmp_path / "out").address != before


def test_a_folder_prepared_anew_keeps_no_list_of_ids(corpus: PrepareSettings, numbered: dict[str, Any], tmp_path: Path) -> None:
    prepared(corpus.changed(**numbered), tmp_path / "out")
    prepared(corpus, tmp_path / "out")
    assert not (tmp_path / "out" / "vocabulary.json").exists()


def test_a_damaged_list_of_ids_is_noticed(corpus: PrepareSettings, numbered: dict[str, Any], tmp_path: Path) -> None:
    prepared(corpus.changed(**numbered), tmp_path / "out")
    path = tmp_path / "out" / "vocabulary.json"
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"pad"', b'"dap"', 1))
    with pytest.raises(DataError, match=r"vocabulary\.json has other content"):
        PreparedCorpus.open(tmp_path / "out")
    path.unlink()
    with pytest.raises(DataError, match=r"vocabulary\.json is missing"):
        prepared(corpus.changed(**numbered), tmp_path / "out")


def test_usual_settings_and_manifests_are_written_as_before(corpus: PrepareSettings, tmp_path: Path) -> None:
    """Runs and folders made before there were marks go on with the same addresses."""
    written = corpus.model_dump(mode="json")
    assert not {"marks", "given_vocabulary"} & written.keys()
    assert "marks" not in corpus.to_toml() and "given_vocabulary" not in corpus.to_toml()
    prepared(corpus, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert "vocabulary" not in manifest and "marks" not in manifest["settings"]
    assert CorpusManifest.load(tmp_path / "out").marks == SpecialIds()


def test_settings_with_marks_come_back_from_toml(corpus: PrepareSettings, numbered: dict[str, Any]) -> None:
    settings = corpus.changed(**numbered)
    assert PrepareSettings.from_toml(settings.to_toml()) == settings
    assert PrepareSettings(**settings.model_dump(mode="json")) == settings


# --- refusals


def test_marks_that_are_not_those_of_the_pieces_are_refused(corpus: PrepareSettings, numbered: dict[str, Any]) -> None:
    check_given(corpus.changed(**numbered))
    wrong = {"pad": 3, "end": 9}
    with pytest.raises(DataError, match=r"(?s)pad=3, but the source has .*end=9, but the target has"):
        check_given(corpus.changed(**{**numbered, "marks": numbered["marks"].changed(**wrong)}))
    with pytest.raises(DataError, match=r"marks has id 999999, but the target has ids 0 to"):
        check_given(corpus.changed(**{**numbered, "marks": numbered["marks"].changed(target_begin=(999_999,))}))
    with pytest.raises(DataError, match=r"numbers its special pieces .* or say in `marks`"):
        check_given(corpus.changed(**{**numbered, "marks": None}))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"pieces": ["a"]}', b'{"pieces": ["a"], "pad": 7, "unknown": 1, "end": 2}'])
def test_a_list_of_ids_that_is_none_is_refused(content: bytes, corpus: PrepareSettings, numbered: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "their.json").write_bytes(content)
    with pytest.raises(DataError, match=r"their\.json is no list of pieces with their ids"):
        check_given(corpus.changed(**numbered))
    (tmp_path / "their.json").unlink()
    with pytest.raises(DataError, match=r"their\.json does not exist"):
        check_given(corpus.changed(**numbered))


def test_marks_are_only_for_pieces_that_are_given(corpus: PrepareSettings, numbered: dict[str, Any]) -> None:
    for name in ("marks", "given_vocabulary"):
        with pytest.raises(ConfigError, match="only for given_pieces"):
            corpus.changed(given_pieces=[], **{name: numbered[name]})


@pytest.mark.parametrize("beginning", ["end", "source_begin", "target_begin"])
def test_padding_that_is_also_something_else_is_refused(beginning: str) -> None:
    with pytest.raises(ConfigError, match="padding has an id of its own"):
        SpecialIds(pad=9, **{beginning: 9 if beginning == "end" else (4, 9)})


def test_two_lists_serve_one_model(corpus: PrepareSettings, numbered: dict[str, Any], tmp_path: Path) -> None:
    shutil.copy(tmp_path / "their.json", tmp_path / "other.json")
    both = [*numbered["given_vocabulary"], str(tmp_path / "other.json")]
    manifest = prepared(corpus.changed(**{**numbered, "given_vocabulary": both}), tmp_path / "out")
    assert [entry.path for entry in manifest.vocabulary] == ["source.vocabulary.json", "target.vocabulary.json"]
    source, target = PreparedCorpus.open(tmp_path / "out").tokenizers()
    assert source.vocabulary == target.vocabulary
