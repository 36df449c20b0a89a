"""Tags stand before the sources while they are fed: always the language, mostly the names, and the same for any number of ranks."""

import hashlib
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from prepared_corpora import fingerprint, global_batches, make, make_from_lengths
from tagged_corpora import in_language, multi, prepare, write

from limelight.corpus.feeding.augment import AugmentSettings
from limelight.corpus.feeding.batches import Batcher, BatchSettings, BatchShare, SamplingSettings
from limelight.corpus.feeding.directions import suggest_temperature, temper
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import ConfigError
from limelight.text.pieces.tokenizer import END

PLAIN = BatchSettings(budget=300, window=160)
LETTERS = AugmentSettings(
    protect=0, copied=0, upper=1 / 8, title=1 / 16, lower=1 / 16, typos=1 / 8, punctuation=1 / 16, merged=1 / 8, terms=0
)
ALL = BatchSettings(budget=900, augment=AugmentSettings(protect=0.5, copied=0.1, merged=0.2, terms=0.2))


def pin(folder: Path, settings: BatchSettings) -> str:
    with Loader(PreparedCorpus.open(folder), settings) as loader:
        seen = "".join(fingerprint(batch) for batch in itertools.islice(loader, 60))
    return hashlib.sha256(seen.encode()).hexdigest()[:16]


def test_a_corpus_without_tags_is_fed_as_it_was_before_there_were_any(tmp_path: Path):
    """Hashes of the code before tags."""
    folder = make(tmp_path / "a")
    assert pin(folder, PLAIN) == "81e8416db0c3ab6e"
    assert pin(folder, PLAIN.changed(sampling=SamplingSettings(alpha=0.3))) == "fa557d9611f96330"
    assert pin(folder, PLAIN.changed(augment=LETTERS)) == "40a4b82d2ce057b2"
    lengths = make_from_lengths(tmp_path / "b", [3, 5, 7, 2, 9, 11, 4] * 40, [2, 6, 7, 3, 8, 12, 5] * 40)
    assert pin(lengths, PLAIN) == "6a3f767ce17e083c"
    assert not {"untagged", "temperature"} & PLAIN.model_dump().keys()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    """English, German and French in both directions, three times as much German."""
    return multi(tmp_path_factory.mktemp("both"), "de", "fr", counts={"de": 180, "fr": 60}, both_directions=True)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    """One direction; a corpus with a tag, and one whose rows have their own."""
    place = tmp_path_factory.mktemp("tagged")
    rows = zip(in_language("en", seed=2), in_language("de", seed=2), itertools.cycle([["formal"], ["formal", "ui"], []]), strict=False)
    path = write(place, "rows.jsonl", [json.dumps({"source": s, "target": t, "tags": told}) for s, t, told in rows])
    plain = [write(place, f"a.{code}", in_language(code)) for code in ("en", "de")]
    return prepare(place / "prepared", [{"name": "app", "paths": plain, "tags": ("ui",)}, {"name": "rows", "paths": [path]}])


def batcher(prepared: PreparedCorpus, settings: BatchSettings = PLAIN) -> Batcher:
    return Batcher(prepared.split("train"), settings)


def epoch(batches: Batcher, number: int = 0) -> list[BatchShare]:
    windows = (batches.window(number, window) for window in range(batches.windows(number)))
    return [share for window in windows for share in batches.shares(window, 0, 1)]


def rows_of(batches: Batcher, number: int = 0) -> list[tuple[int, list[str], list[int], list[int]]]:
    """Each fed row: its sample, its tags, and the ids of both sides without what stands around them."""
    tokenizer = batches.pairs.prepared.tokenizers()[0]
    tags = set(batches.pairs.prepared.manifest.tag_set.pieces)
    found = []
    for share in epoch(batches, number):
        for sample, source, target in zip(share.samples.tolist(), share.source, share.target, strict=True):
            pieces = tokenizer.pieces(source[source != 0].tolist()[:-1])
            told = list(itertools.takewhile(tags.__contains__, pieces))
            assert not tags & set(pieces[len(told) :])
            found.append((sample, told, source[len(told) :], target))
    return found


def until_end(ids: np.ndarray) -> list[int]:
    return ids[: np.flatnonzero(ids == END)[0]].tolist()


def test_each_pair_is_fed_once_in_each_direction_after_its_target_language(both: PreparedCorpus):
    batches = batcher(both)
    rows = rows_of(batches)
    assert sorted(sample for sample, *_ in rows) == list(range(batches.pairs.fed)) == list(range(2 * batches.pairs.rows))
    for sample, told, source, target in rows:
        stored = batches.pairs.provenance(sample % batches.pairs.rows)
        turned = sample >= batches.pairs.rows
        assert told == ["<2en>" if turned else f"<2{stored.corpus[-2:]}>"]
        texts = both.tokenizers()[0].decode([until_end(source), until_end(target)])
        assert texts == ([stored.target, stored.source] if turned else [stored.source, stored.target])
        again = batches.pairs.provenance(sample)
        assert [again.source, again.target] == texts


def test_turned_samples_have_texts_ids_and_lengths_exchanged(both: PreparedCorpus):
    pairs = both.split("train")
    straight = np.arange(pairs.rows)[::-1]
    for one, other in (
        (pairs.texts, lambda x: x.to_pylist()),
        (pairs.lengths, lambda x: x.tolist()),
        (pairs.ids, lambda x: x.values.tolist()),
    ):
        first, second = one(straight), one(straight + pairs.rows)
        assert [other(side) for side in first] == [other(side) for side in second[::-1]]
    mixed = np.array([0, pairs.rows, 1, pairs.rows + 1])
    sources = pairs.texts(mixed)[0].to_pylist()
    assert sources[1] == pairs.texts(mixed)[1].to_pylist()[0]


def test_batches_are_the_same_for_any_number_of_ranks_and_after_a_stop(both: PreparedCorpus):
    for settings in (ALL.changed(temperature=3.0), PLAIN):
        one = global_batches(both.folder, settings, 1, 0, 12)
        assert one == global_batches(both.folder, settings, 3, 0, 12)
        with Loader(both, settings) as loader:
            straight = list(itertools.islice(loader, 12))
        state = json.loads(json.dumps(straight[4].state))
        with Loader(both, settings, state=state) as loader:
            assert [fingerprint(b) for b in itertools.islice(loader, 7)] == [fingerprint(b) for b in straight[5:]]


def test_lengths_count_the_tags(both: PreparedCorpus, tagged: PreparedCorpus):
    for prepared in (both, tagged):
        for share in epoch(batcher(prepared, ALL)):
            assert share.cells <= ALL.budget
            assert (share.source == END).any(axis=1).all()


def test_names_are_told_mostly_and_rows_have_their_own(tagged: PreparedCorpus):
    batches = batcher(tagged, PLAIN.changed(untagged=0.25))
    assert tagged.manifest.tag_set.names == ("ui", "formal")
    seen: dict[str, list[bool]] = {}
    for number in range(4):
        for sample, told, *_ in rows_of(batches, number):
            stored = batches.pairs.provenance(sample)
            kind = stored.corpus if stored.corpus == "app" else f"rows{stored.line % 3}"
            full = {"app": ["<ui>"], "rows1": ["<formal>"], "rows2": ["<ui>", "<formal>"], "rows0": []}[kind]
            assert told in (full, [])
            seen.setdefault(kind, []).append(bool(told))
    shares = {kind: np.mean(told) for kind, told in seen.items()}
    assert shares.pop("rows0") == 0
    assert all(0.6 < share < 0.9 for share in shares.values())


def test_of_a_held_out_set_every_name_is_told(tagged: PreparedCorpus):
    with Loader(tagged, PLAIN.changed(untagged=1.0), split="valid") as loader:
        pieces = [number for share in loader.epoch(0) for number in share.source[:, 0]]
    tags = {tagged.tokenizers()[0].id_of_control(piece) for piece in ("<ui>", "<formal>")}
    assert tags & set(pieces)


def test_only_pairs_of_one_direction_and_one_set_of_tags_are_merged(both: PreparedCorpus, tagged: PreparedCorpus):
    merging = AugmentSettings(**{**dict.fromkeys(AugmentSettings.model_fields, 0.0), "merged": 1.0})
    for prepared in (both, tagged):
        batches = batcher(prepared, BatchSettings(budget=2000, window=600, augment=merging))
        window = batches.window(0, 0)
        assert window.changed is not None
        assert len(window.changed.rows) > 0.4 * len(window.samples)
        tokenizer, known = prepared.tokenizers()[0], {}
        every = np.arange(batches.pairs.fed)
        kinds = zip(batches.tagger.directions_of(every).tolist(), batches.tagger.names_of(every).tolist(), strict=True)
        for text, kind in zip(batches.pairs.texts(every)[0].to_pylist(), kinds, strict=True):
            known.setdefault(text, set()).add(kind)
        for at, row in enumerate(window.changed.rows):
            ids = window.changed.source.values[window.changed.source.offsets[at] : window.changed.source.offsets[at + 1]]
            first = batches.pairs.texts(window.samples[[row]])[0][0].as_py()
            (second,) = [tokenizer.decode([ids.tolist()])[0].removeprefix(first + " ")]
            assert known[first] & known[second]


def test_the_words_that_are_changed_are_those_of_the_direction(both: PreparedCorpus):
    assert [speech.languages for speech in batcher(both, ALL).augmenter.speeches] == list(both.manifest.directions)


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 1 / 4), (2.0, 3**-0.5 / (1 + 3**-0.5)), (100.0, 0.497)])
def test_a_temperature_gives_small_directions_more(temperature: float, share: float):
    ways = (("en", "de"), ("en", "de"), ("en", "fr"))
    weights = temper((100, 100, 50), (2.0, 1.0, 2.0), ways, temperature)
    seen = [count * weight for count, weight in zip((100, 100, 50), weights, strict=True)]
    assert sum(seen) == pytest.approx(400, rel=1e-4)
    assert seen[2] / sum(seen) == pytest.approx(share, rel=1e-3)
    assert weights[0] == pytest.approx(2 * weights[1], rel=1e-4)


def test_a_temperature_is_suggested_where_directions_are_far_apart():
    ways = (("en", "de"), ("en", "fr"), ("en", "is"))
    for sizes, temperature in (((100, 60, 0), 1.0), ((100, 20, 0), 3.0), ((100, 20, 1), 5.0), ((0, 0, 0), 1.0)):
        assert suggest_temperature(dict(zip(ways, map(float, sizes), strict=True))) == temperature


def test_a_state_does_not_go_on_at_another_temperature(both: PreparedCorpus):
    with Loader(both, PLAIN) as loader:
        state = next(loader).state
    with pytest.raises(ConfigError, match=r"temperature was None, now 3\.0"):
        Loader(both, PLAIN.changed(temperature=3.0), state=state)
