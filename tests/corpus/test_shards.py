"""Shards: what is read is what was written, addressed rightly, and one changed byte is refused."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from prepared_corpora import NAMES, ROWS, make, make_from_lengths

from limelight.corpus.feeding.shards import (
    FIRST_VOCABULARY_TOO_LARGE_FOR_16_BITS,
    Pairs,
    PreparedCorpus,
    ids_schema,
    write_table,
)
from limelight.corpus.manifest import CorpusManifest
from limelight.errors import DataError
from limelight.text.pieces.tokenizer import Tokenizer

COUNTS = np.sum(ROWS, axis=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("shards") / "prepared")


@pytest.fixture(scope="module")
def pairs(folder: Path) -> Pairs:
    return PreparedCorpus.open(folder).split("train")


def every_address() -> tuple[np.ndarray, np.ndarray]:
    corpora = np.repeat(np.arange(len(COUNTS)), COUNTS)
    return corpora, np.concatenate([np.arange(count) for count in COUNTS])


def test_an_address_leads_to_the_pair_that_was_written_there(pairs: Pairs) -> None:
    """The maker numbers the lines of each corpus, so line = index in corpus."""
    assert pairs.counts == tuple(COUNTS)
    corpora, indexes = every_address()
    for corpus, index, sample in zip(corpora, indexes, pairs.samples(corpora, indexes), strict=True):
        found = pairs.provenance(int(sample))
        assert (found.corpus, found.line) == (NAMES[corpus], index)
        assert found.paths == (f"{NAMES[corpus]}.en", f"{NAMES[corpus]}.de")
        assert found.segment == (f"s{index}" if index % 3 else None)


def test_every_sample_has_one_address(pairs: Pairs) -> None:
    assert sorted(pairs.samples(*every_address())) == list(range(sum(COUNTS)))


def test_ids_lengths_and_texts_agree_in_any_order(pairs: Pairs, folder: Path) -> None:
    samples = np.random.default_rng(2).integers(0, pairs.rows, 300)  # over all shards, some twice
    tokenizer = Tokenizer.load(folder / "pieces.model")
    for side in (0, 1):
        ids, texts = pairs.ids(samples)[side], pairs.texts(samples)[side]
        known = [pairs.provenance(int(sample)) for sample in samples]
        assert texts.to_pylist() == [(pair.source, pair.target)[side] for pair in known]
        rows = [ids.values[start:stop].tolist() for start, stop in zip(ids.offsets[:-1], ids.offsets[1:], strict=True)]
        assert rows == tokenizer.encode(texts).to_pylist()
        assert pairs.lengths(samples)[side].tolist() == [len(row) for row in rows]


def test_nothing_asked_nothing_given(pairs: Pairs) -> None:
    nothing = np.zeros(0, np.int64)
    assert pairs.samples(nothing, nothing).size == 0
    assert all(side.values.size == 0 and side.offsets.tolist() == [0] for side in pairs.ids(nothing))
    assert all(len(side) == 0 for side in pairs.texts(nothing))
    assert all(side.size == 0 for side in pairs.lengths(nothing))


def test_columns_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    """Opening a million ids allocates next to nothing."""
    prepared = PreparedCorpus.open(make_from_lengths(tmp_path / "p", [500] * 1000, [500] * 1000))
    before = pa.total_allocated_bytes()
    pairs = prepared.split("train")
    assert pa.total_allocated_bytes() - before < 10_000
    assert not pairs._ids_of(0)[0].values.flags.owndata
    assert not pairs._ids_of(0)[0].values.flags.writeable


def test_a_sample_that_is_not_there_is_refused(pairs: Pairs) -> None:
    with pytest.raises(DataError, match="no sample 521; the split has 521 pairs"):
        pairs.provenance(pairs.rows)


def test_a_split_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="no valid split; it has: train"):
        PreparedCorpus.open(folder).split("valid")


def test_ids_take_two_bytes_up_to_65536_pieces() -> None:
    small, large = ids_schema((FIRST_VOCABULARY_TOO_LARGE_FOR_16_BITS - 1, FIRST_VOCABULARY_TOO_LARGE_FOR_16_BITS))
    assert (small.type.value_type, large.type.value_type) == (pa.uint16(), pa.uint32())


def test_a_table_of_many_chunks_or_none_is_one_record_batch(tmp_path: Path) -> None:
    for number, chunks in enumerate([[[1, 2], [3]], [], [[]]]):
        path = tmp_path / f"{number}.arrow"
        write_table(path, pa.table({"x": pa.chunked_array(chunks, pa.int64())}))
        opened = pa.ipc.open_file(path)
        assert opened.num_record_batches == 1
        assert opened.read_all()["x"].to_pylist() == [x for chunk in chunks for x in chunk]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("limelight.corpus.feeding.shards.sha256_of", full)
    with pytest.raises(OSError, match="no space"):
        write_table(tmp_path / "a.arrow", pa.table({"x": [1]}))
    assert list(tmp_path.iterdir()) == []


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json")


@pytest.mark.parametrize("place", [0.0, 0.3, 0.5, 0.77, 1.0])
def test_one_changed_byte_in_any_file_is_refused_by_name(tmp_path: Path, place: float) -> None:
    folder = make(tmp_path / "p")
    for path in files_of(folder):
        good = path.read_bytes()
        at = int(place * (len(good) - 1))
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(DataError, match="prepare it again") as refused:
            PreparedCorpus.open(folder)
        assert f"{path.name} has other content" in str(refused.value)
        assert sum(other.name in str(refused.value) for other in files_of(folder)) == 1
        path.write_bytes(good)
    PreparedCorpus.open(folder)


def test_unverified_a_changed_byte_passes(tmp_path: Path) -> None:
    """The control: it is the verification that refuses, nothing else."""
    folder = make(tmp_path / "p")
    path = folder / "shards" / "train-00000.ids.arrow"
    good = PreparedCorpus.open(folder).split("train").ids(np.arange(260))[0].values.copy()
    content = bytearray(path.read_bytes())
    at = bytes(content).index(good.tobytes()[:40])
    content[at + 6] ^= 1
    path.write_bytes(content)
    changed = PreparedCorpus.open(folder, verify=False).split("train").ids(np.arange(260))[0].values
    assert np.count_nonzero(changed != good) == 1


def test_every_damaged_or_missing_file_is_named_at_once(tmp_path: Path) -> None:
    folder = make(tmp_path / "p")
    shards = folder / "shards"
    (shards / "train-00000.ids.arrow").unlink()
    with (shards / "train-00002.text.arrow").open("ab") as file:
        file.write(b"x")
    (folder / "pieces.model").write_bytes(b"")
    with pytest.raises(DataError) as refused:
        PreparedCorpus.open(folder)
    message = str(refused.value)
    assert "shards/train-00000.ids.arrow is missing" in message
    assert "shards/train-00002.text.arrow has" in message
    assert "pieces.model has 0 bytes instead of" in message
    assert message.count("\n") == 3


def test_a_manifest_that_contradicts_a_shard_is_refused(tmp_path: Path) -> None:
    folder = make(tmp_path / "p")
    text = (folder / "manifest.json").read_text("utf-8")
    (folder / "manifest.json").write_text(text.replace('"rows": 21', '"rows": 22'), "utf-8")
    with pytest.raises(DataError, match="contradicts itself about train-00003"):
        PreparedCorpus.open(folder).split("train")


def test_a_bundle_is_called_what_it_is() -> None:
    with pytest.raises(DataError, match=r"is that of a translator.*--from"):
        CorpusManifest.load(Path(__file__).parents[1] / "bundles" / "format-1")
