"""Old text beside new: how much, which of it, and what is never trained on."""

import sys
from pathlib import Path
from shutil import copytree

import numpy as np
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
import tagged_corpora
from made_sentences import apart, sentences
from prepare_command import FAST, here, write_pairs
from tagged_corpora import in_language

from limelight.corpus import prepare as prepare_file
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.prepare import prepare
from limelight.errors import ConfigError, DataError
from limelight.training.recipe import replay
from limelight.training.recipe.replay import REPLAY, OldText, mix_old_text, sample_replay, weight_for
from limelight.training.run_folder import BUNDLE, PREPARED

STORED = Path(__file__).parents[1] / "bundles" / "format-1"  # translates en to de
PAIRS = sentences(400)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run: a bundle, and the text it was trained on."""
    folder = tmp_path_factory.mktemp("old")
    copytree(STORED, folder / "bundle")
    paths = write_pairs(PAIRS, folder, "old")
    given = f'given_pieces=["{STORED / "pieces.model"}"]'
    assert here("prepare", *paths, *FAST, given, "-o", folder / PREPARED).code == 0
    return folder


class Preparing:
    """`prepare` into the run, and how often it was asked."""

    def __init__(self, run: Path) -> None:
        self.run, self.asked = run, 0

    def __call__(self, settings: PrepareSettings) -> CorpusManifest:
        self.asked += 1
        return prepare(settings, self.run / PREPARED, LocalEngine(0), lambda progress: None, force=True)[0]


@pytest.fixture
def preparing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Preparing:
    monkeypatch.setattr(prepare_file, "page", lambda manifest: "")  # its pictures take longer than the rest
    return Preparing(tmp_path)


@pytest.fixture
def new(tmp_path: Path) -> PrepareSettings:
    paths = write_pairs(apart(100, PAIRS, seed=9), tmp_path / "new", "new")
    return PrepareSettings(
        languages=("en", "de"),
        corpora=[CorpusSettings(name="new", paths=[str(path) for path in paths])],
        filters={"wrong_language": "off"},
    )


def texts(prepared: Path, split: str) -> set[str]:
    pairs = PreparedCorpus.open(prepared).split(split)  # type: ignore[arg-type]
    return set(pairs.texts(np.arange(pairs.rows, dtype=np.int64))[0].to_pylist())


@pytest.mark.slow
def test_as_much_old_text_is_seen_as_was_asked_for(old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    for share in (0.5, 0.2):
        manifest = preparing(mix_old_text(new, OldText(old, share), tmp_path, 1, preparing))
        seen = [corpus.kept.get("train", 0) * corpus.weight for corpus in manifest.corpora[:2]]
        assert seen[1] / sum(seen) == pytest.approx(share, abs=0.005)


@pytest.mark.slow
def test_new_text_counts_as_often_as_it_is_seen(old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    thrice = new.changed(corpora=[new.corpora[0].changed(weight=3.0)])
    manifest = preparing(mix_old_text(thrice, OldText(old, 0.5), tmp_path, 1, preparing))
    seen = [corpus.kept.get("train", 0) * corpus.weight for corpus in manifest.corpora[:2]]
    assert seen[0] > 250 and seen[1] == pytest.approx(seen[0])


def test_a_folder_around_a_bundle_is_its_run_only_where_runs_lay_it(old: Path, tmp_path: Path) -> None:
    assert OldText(old, None).prepared == OldText(old / BUNDLE, None).prepared == old / PREPARED
    copytree(STORED, tmp_path / "other")
    (tmp_path / PREPARED).symlink_to(old / PREPARED)
    beside = OldText(tmp_path / "other", None)
    assert beside.prepared is None and beside.share == 0
    assert "no run with its text beside it" in beside.described[1]


def test_text_beside_a_bundle_in_other_languages_is_not_its_old_text(old: Path, tmp_path: Path) -> None:
    copytree(STORED, tmp_path / BUNDLE)
    CorpusManifest.load(old / PREPARED).changed(languages=("en", "fr")).save(_made(tmp_path / PREPARED))
    for place in (tmp_path, tmp_path / BUNDLE):
        found = OldText(place, None)
        assert found.prepared is None and found.share == 0
        assert "is en to fr, but it translates en to de" in found.described[1]
        with pytest.raises(DataError, match=r"nothing to replay: .* is en to fr.*--replay-data"):
            _ = OldText(place, 0.3).share


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_old_text_that_is_named_and_not_wanted_is_refused() -> None:
    named = CorpusSettings(name="replay-old", paths=["old.en", "old.de"])
    with pytest.raises(ConfigError, match=r"--replay 0 .*--replay-data names some; leave out one"):
        OldText(STORED, 0.0, (named,))
    assert OldText(STORED, 0.0).described == ("none", "not wanted; what is not in the new text may be forgotten")


@pytest.mark.slow
def test_old_held_out_sentences_are_not_trained_on(old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    preparing(mix_old_text(new, OldText(old, 0.5), tmp_path, 1, preparing))
    train = texts(tmp_path / PREPARED, "train")
    assert len(train & texts(old / PREPARED, "train")) > 300
    for split in ("valid", "test"):
        assert len(texts(old / PREPARED, split)) == 20
        assert not train & texts(old / PREPARED, split)


def test_new_held_out_sentences_are_of_the_new_text_alone(old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    """The old translator has learnt the old ones by heart: a score on them would say nothing."""
    preparing(mix_old_text(new, OldText(old, 0.5), tmp_path, 1, preparing))
    for split in ("valid", "test"):
        held_out = texts(tmp_path / PREPARED, split)
        assert len(held_out) == 5
        assert not held_out & {source for source, _ in PAIRS}
        assert not held_out & texts(tmp_path / PREPARED, "train")


@pytest.mark.slow
def test_given_sets_stay_as_they_are(old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    paths = write_pairs(apart(7, PAIRS, seed=11), tmp_path / "given", "dev")
    given = new.changed(held_out=new.held_out.changed(valid=tuple(map(str, paths))))
    settings = mix_old_text(given, OldText(old, 0.5), tmp_path, 1, preparing)
    assert settings.held_out.valid == given.held_out.valid
    assert preparing(settings).corpora[-2].kept == {"valid": 7}
    assert len(texts(tmp_path / PREPARED, "test")) == 5


@pytest.mark.slow
def test_pieces_and_normalization_are_those_of_the_translator(
    old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path
) -> None:
    settings = mix_old_text(new, OldText(old, 0.5), tmp_path, 1, preparing)
    preparing(settings)
    assert (tmp_path / PREPARED / "pieces.model").read_bytes() == (STORED / "pieces.model").read_bytes()


@pytest.mark.slow
def test_a_run_that_goes_on_finds_the_same_without_preparing_again(
    old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path
) -> None:
    first = mix_old_text(new, OldText(old, 0.5), tmp_path, 1, preparing)
    weighted = preparing.asked
    assert mix_old_text(new, OldText(old, 0.5), tmp_path, 1, preparing) == first  # stopped before the weight was there
    preparing(first)
    assert mix_old_text(new, OldText(old, 0.5), tmp_path, 1, preparing) == first
    assert preparing.asked == weighted + 1
    other = mix_old_text(new, OldText(old, 0.1), tmp_path, 1, preparing)
    assert other.corpora[1].weight == pytest.approx(first.corpora[1].weight / 9, rel=1e-6)


@pytest.mark.slow
def test_files_that_have_changed_are_held_out_from_anew(old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    """Who is told to give more text, and adds it to the same files, must not be told so again."""
    preparing(mix_old_text(new, OldText(old, 0.5), tmp_path, 1, preparing))
    others = apart(100, PAIRS, seed=10)
    assert [str(path) for path in write_pairs(others, tmp_path / "new", "new")] == list(new.corpora[0].paths)
    preparing(mix_old_text(new, OldText(old, 0.5), tmp_path, 1, preparing))
    held_out = texts(tmp_path / PREPARED, "valid") | texts(tmp_path / PREPARED, "test")
    assert held_out and held_out <= {source for source, _ in others}


@pytest.mark.slow
def test_old_text_is_told_what_it_was_told_and_is_what_people_wrote(tmp_path: Path) -> None:
    corpora = [
        {
            "name": name,
            "paths": [tagged_corpora.write(tmp_path / "text", f"{name}.{code}", in_language(code, 60, seed)) for code in ("en", "de")],
            "tags": [name],
        }
        for seed, name in enumerate(("formal", "synthetic"))
    ]
    for some, name in ((corpora, "formal"), (corpora[1:], "synthetic")):
        prepared = tagged_corpora.prepare(tmp_path / name, some)
        sample_replay(prepared.folder, tmp_path, 1)
        told = pq.read_table(tmp_path / REPLAY)["tags"].to_pylist()
        assert told == [[name]] * prepared.manifest.corpora[0].kept["train"]


@pytest.mark.slow
def test_other_settings_are_not_taken_from_what_was_prepared_before(
    old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path
) -> None:
    preparing(mix_old_text(new, OldText(old, 0.5), tmp_path, 1, preparing))
    other = new.changed(filters=new.filters.changed(longest=140))
    assert mix_old_text(other, OldText(old, 0.5), tmp_path, 1, preparing).filters.longest == 140


def test_without_old_text_there_is_no_replay(new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    assert OldText(STORED, None).share == 0
    assert OldText(STORED, None).described[0] == "none"
    settings = mix_old_text(new, OldText(STORED, None), tmp_path, 1, preparing)
    assert [corpus.name for corpus in settings.corpora] == ["new"]
    assert preparing.asked == 0
    with pytest.raises(DataError, match=r"nothing to replay: it is no run.*; name the old text with --replay-data"):
        _ = OldText(STORED, 0.3).share


def test_old_text_may_be_named(new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    paths = write_pairs(PAIRS[:150], tmp_path / "named", "old")
    named = CorpusSettings(name="replay-old", paths=[str(path) for path in paths])
    settings = mix_old_text(new, OldText(STORED, None, (named,)), tmp_path, 1, preparing)
    assert [corpus.name for corpus in settings.corpora] == ["new", "replay-old"]
    assert settings.corpora[1].weight == pytest.approx(90 / 150, abs=0.01)
    assert not (tmp_path / REPLAY).exists()


@pytest.mark.slow
def test_new_text_may_be_called_as_the_old_one_is(old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    called = new.changed(corpora=[new.corpora[0].changed(name="replay")])
    for asked in (2, 2):  # again from what was prepared
        settings = mix_old_text(called, OldText(old, 0.5), tmp_path, 1, preparing)
        assert [corpus.name for corpus in settings.corpora] == ["replay", "old replay"]
        assert preparing.asked == asked


def test_old_text_of_other_languages_is_refused(old: Path, new: PrepareSettings, preparing: Preparing, tmp_path: Path) -> None:
    french = new.changed(languages=("en", "fr"))
    with pytest.raises(DataError, match=r"en to de, but the new text is en to fr.*--replay 0"):
        mix_old_text(french, OldText(old, None), tmp_path, 1, preparing)
    assert mix_old_text(french, OldText(old, 0.0), tmp_path, 1, preparing).languages == ("en", "fr")


def test_a_large_old_corpus_is_sampled_by_its_seed(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST", 50)
    drawn = []
    for seed in (1, 1, 2):
        sample_replay(old / PREPARED, tmp_path, seed)
        drawn.append(pq.read_table(tmp_path / REPLAY).column("source").to_pylist())
    assert len(set(drawn[0])) == 50 and set(drawn[0]) <= texts(old / PREPARED, "train")
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(("share", "new", "old"), [(0.5, 100, 400), (0.2, 1000, 10), (0.9, 10, 90)])
def test_the_weight_gives_the_share(share: float, new: int, old: int) -> None:
    seen = old * weight_for(share, new, old)
    assert seen / (seen + new) == pytest.approx(share)
