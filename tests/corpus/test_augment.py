"""Text changed by chance while it is fed: by the position alone, the same after a stop, and only as the pieces allow."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_sentences import sentences
from prepare_command import FAST, given_pieces, here, pieces_model, write_pairs
from prepared_corpora import fingerprint, make, stops_that_differ

from limelight.corpus.config import SpecialIds
from limelight.corpus.feeding.alter import DRAWN, KINDS, AlteredPair
from limelight.corpus.feeding.augment import (
    TERM_TAG,
    AugmentSettings,
    alterations,
    count_placeholders,
    draw_alterations,
    join_rows,
    lacking,
    replace_rows,
)
from limelight.corpus.feeding.batches import Batcher, BatchSettings, SamplingSettings, Window
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import Pieces, PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.errors import ConfigError
from limelight.text.pieces.tokenizer import Tokenizer

# Each share a power of two, so that none is changed by being added up.
SHARES = {"copied": 1 / 8, "upper": 1 / 8, "title": 1 / 16, "lower": 1 / 16, "typos": 1 / 8, "punctuation": 1 / 16, "merged": 1 / 8}
MANY = AugmentSettings(**SHARES, terms=1 / 8, matches=1 / 8, names=1 / 16)
PLAIN = BatchSettings(budget=700, window=130, longest=200)
SETTINGS = PLAIN.changed(augment=MANY)
SAMPLING = SETTINGS.changed(sampling=SamplingSettings(dropout=0.3))
NONE = AugmentSettings(**dict.fromkeys(KINDS, 0.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences, of which every sixth has something to protect and every sixth a name."""
    place = tmp_path_factory.mktemp("augment")
    held = [(f"{source[:-1]} <b>%s</b>.", f"{target[:-1]} <b>%s</b>.") for source, target in sentences(60, seed=2)]
    cities = itertools.cycle((("Rome", "Rom"), ("Vienna", "Wien"), ("Venice", "Venedig")))
    named = [
        (f"{source[:-1]} to {city}.", f"{target[:-1]} nach {stadt}.")
        for (source, target), (city, stadt) in zip(sentences(60, 3), cities, strict=False)
    ]
    paths = write_pairs([*sentences(240), *held, *named], place)
    assert here("prepare", *paths, *FAST, given_pieces(), "-o", place / "prepared").code == 0
    return place / "prepared"


@pytest.fixture(scope="module")
def prepared(folder: Path) -> PreparedCorpus:
    return PreparedCorpus.open(folder)


def batcher(prepared: PreparedCorpus, settings: BatchSettings) -> Batcher:
    return Batcher(prepared.split("train"), settings)


def windows(batches: Batcher, epoch: int) -> list[Window]:
    return [batches.window(epoch, number) for number in range(batches.windows(epoch))]


def rows_of(batches: Batcher, window: Window) -> dict[int, tuple[list[int], list[int]]]:
    """The ids of each row of a window that is in a batch, without its end."""
    found = {}
    for number, share in enumerate(batches.shares(window, 0, 1)):
        rows = window.order[window.starts[number] : window.stops[number]]
        for row, source, target in zip(rows.tolist(), share.source, share.target, strict=True):
            found[row] = (source[source != 0].tolist()[:-1], target[target != 0].tolist()[:-1])
    return found


def texts_of(batches: Batcher, epoch: int) -> dict[int, tuple[str, str]]:
    """What each position of an epoch would be by itself, its place in the epoch as key."""
    order = batches.order(epoch)
    samples = batches.pairs.samples(*order.at(np.arange(order.rows)))
    sides = (side.to_pylist() for side in batches.pairs.texts(samples))
    return dict(enumerate(zip(*sides, strict=True)))


def altered_by_position(batches: Batcher, epoch: int) -> dict[int, AlteredPair]:
    """By one call for each position, alone."""
    texts, augmenter = texts_of(batches, epoch), batches.augmenter
    assert augmenter is not None
    found = {}
    for position, pair in texts.items():
        chances = draw_alterations(augmenter.settings, 1, epoch, np.array([position]))
        columns, after = (pa.array([pair[0]]), pa.array([pair[1]])), texts.get(position + 1)
        _, changed = alterations(
            chances, columns, lambda rows, after=after: [after for _ in rows], augmenter.speeches, np.zeros(1, np.int64)
        )
        found.update(zip([position], changed, strict=False))
    return found


# --- what is drawn


def test_each_kind_is_drawn_as_often_as_its_share_says() -> None:
    settings = AugmentSettings()
    chances = draw_alterations(settings, 1, 0, np.arange(200_000))
    kinds, protects = chances.kinds, chances.protects
    for number, kind in enumerate(DRAWN):
        assert np.mean(kinds == number) == pytest.approx(settings.share(kind), abs=0.002)
    assert np.mean(kinds == len(DRAWN)) == pytest.approx(0.79, abs=0.004)
    assert np.mean(protects) == pytest.approx(0.9, abs=0.003)
    assert np.mean(protects[kinds < len(DRAWN)]) == pytest.approx(0.9, abs=0.01)


def test_a_share_of_zero_is_never_drawn() -> None:
    chances = draw_alterations(AugmentSettings(protect=0, copied=0, terms=0, lower=0), 1, 0, np.arange(50_000))
    assert set(chances.kinds.tolist()) == {1, 2, 4, 5, 6, len(DRAWN)} and not chances.protects.any()


def test_what_is_drawn_depends_on_seed_epoch_and_position_alone() -> None:
    def arrays(seed: int, epoch: int, *places: int) -> list[Any]:
        return list(vars(draw_alterations(MANY, seed, epoch, np.arange(*places))).values())

    whole = arrays(3, 5, 1_000)
    assert all(np.array_equal(a[400:500], b) for a, b in zip(whole, arrays(3, 5, 400, 500), strict=True))
    for other in (arrays(4, 5, 1_000), arrays(3, 6, 1_000)):
        assert all(not np.array_equal(a, b) for a, b in zip(whole, other, strict=True))


def test_shares_of_which_one_is_drawn_are_at_most_one_together() -> None:
    with pytest.raises(ConfigError, match=r"upper=0\.6, .*typos=0\.5.* one is drawn"):
        AugmentSettings(upper=0.6, typos=0.5)


# --- batches


@pytest.mark.slow
@pytest.mark.parametrize("epoch", [0, 3])
def test_rows_are_what_their_position_says_or_as_they_were_prepared(prepared: PreparedCorpus, epoch: int) -> None:
    batches = batcher(prepared, PLAIN.changed(augment=MANY.changed(matches=0)))  # which look at the window
    altered, texts, tokenizer = altered_by_position(batches, epoch), texts_of(batches, epoch), prepared.tokenizers()[0]
    position, seen = 0, 0
    for window in windows(batches, epoch):
        stored = batches.pairs.ids(window.samples)
        for row, (source, target) in rows_of(batches, window).items():
            found = altered.get(position + row)
            if found is None or window.changed is None or row not in window.changed.rows:
                assert source == stored[0].values[stored[0].offsets[row] : stored[0].offsets[row + 1]].tolist()
                assert target == stored[1].values[stored[1].offsets[row] : stored[1].offsets[row + 1]].tolist()
                assert tokenizer.decode([source, target]) == list(texts[position + row])
                continue
            tail = [i for term in found.terms for i in (tokenizer.tag(TERM_TAG), *tokenizer.encode([term])[0].as_py())]
            assert source == tokenizer.encode([found.source])[0].as_py() + tail
            assert target == tokenizer.encode([found.target])[0].as_py()
            seen += 1
        position += len(window.samples)
    assert position == len(texts) and seen > 0.9 * len(altered) > 0.5 * len(texts)


def test_every_mark_and_every_kind_is_seen(prepared: PreparedCorpus) -> None:
    batches = batcher(prepared, SETTINGS)
    placeholders = set(prepared.tokenizers()[0].placeholders().values())
    seen, kinds = set[int](), set[str]()
    for window in (window for epoch in range(3) for window in windows(batches, epoch)):
        assert window.changed is not None
        kinds |= {kind for some in window.changed.kinds for kind in some}
        for source, target in rows_of(batches, window).values():
            assert sorted(placeholders.intersection(source)) == sorted(placeholders.intersection(target))
            seen |= placeholders.intersection(source)
    assert kinds == set(KINDS) and seen == placeholders


def test_epochs_change_other_pairs_in_other_ways(prepared: PreparedCorpus) -> None:
    batches = batcher(prepared, SETTINGS)
    first, second = ({s: w.changed for w in windows(batches, e) for s in w.samples} for e in (0, 1))
    changed = [
        {
            int(w.samples[row]): kinds
            for w in windows(batches, epoch)
            if w.changed
            for row, kinds in zip(w.changed.rows, w.changed.kinds, strict=True)
        }
        for epoch in (0, 1)
    ]
    assert first.keys() == second.keys() and changed[0].keys() != changed[1].keys()
    shared = changed[0].keys() & changed[1].keys()
    assert sum(changed[0][s] != changed[1][s] for s in shared) > len(shared) / 4


def test_pairs_that_would_no_longer_fit_stay_as_they_were(prepared: PreparedCorpus) -> None:
    most = max(int(side.max()) for side in prepared.split("train").lengths(np.arange(prepared.split("train").rows)))
    settings = PLAIN.changed(longest=most * 3 // 2, window=None, augment=NONE.changed(merged=1.0))
    batches = batcher(prepared, settings)
    window = batches.window(0, 0)
    assert window.changed is not None and window.skipped == 0
    assert 10 < len(window.changed.rows) < len(window.samples) - 10
    assert all(len(side) <= most * 3 // 2 for row in rows_of(batches, window).values() for side in row)


def test_all_but_the_last_pair_of_an_epoch_can_be_merged_with_the_next(prepared: PreparedCorpus) -> None:
    batches = batcher(prepared, BatchSettings(budget=4_000, window=130, augment=NONE.changed(merged=1.0)))
    first, second, last = windows(batches, 0)
    assert all(window.changed is not None for window in (first, second, last))
    assert [len(window.samples) - len(window.changed.rows) for window in (first, second, last)] == [0, 0, 1]
    assert len(last.samples) - 1 not in last.changed.rows


def test_nothing_drawn_is_nothing_changed(prepared: PreparedCorpus) -> None:
    unchanged = batcher(prepared, PLAIN.changed(augment=NONE)).window(0, 0)
    assert unchanged.changed is None
    assert np.array_equal(unchanged.order, batcher(prepared, PLAIN).window(0, 0).order)


def test_terms_stand_between_the_source_and_its_end_whatever_its_beginning(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "prepared"
    place.symlink_to(folder)
    manifest = CorpusManifest.load(folder)
    marks = SpecialIds(source_begin=(8, 9), target_begin=(10,))
    own = PreparedCorpus(place, manifest.changed(settings={**manifest.settings, "marks": marks.model_dump(mode="json")}))
    batches = Batcher(own.split("train"), PLAIN.changed(augment=NONE.changed(terms=1.0)))
    tokenizer, told = own.tokenizers()[0], 0
    for share in batches.shares(batches.window(0, 0), 0, 1):
        for source, target in zip(share.source, share.target, strict=True):
            ids = source[source != 0].tolist()
            assert ids[:2] == [8, 9] and ids[-1] == marks.end and target[0] == 10
            if tokenizer.tag(TERM_TAG) in ids:
                _, *terms = " ".join(map(str, ids[:-1])).split(f" {tokenizer.tag(TERM_TAG)} ")
                text = tokenizer.decode([target[target != 0].tolist()[1:-1]])[0]
                assert 1 <= len(terms) <= 2
                assert all(tokenizer.decode([[int(i) for i in term.split()]])[0] in text for term in terms)
                told += 1
    assert told > 50


# --- the same after a stop, for any ranks and workers


@pytest.mark.process
@pytest.mark.parametrize("settings", [SETTINGS, SAMPLING], ids=["stored", "sampled"])
def test_a_new_process_goes_on_with_the_same_changes(folder: Path, settings: BatchSettings) -> None:
    batches = list(itertools.islice(Loader(PreparedCorpus.open(folder), settings), 120))
    edges = [i for i in range(1, 119) if batches[i].batch == 0]
    assert batches[-1].epoch >= 1 and len(edges) >= 3
    stops = [*edges, *random.Random(4).sample(range(1, 119), 3)]
    assert stops_that_differ(folder, settings, stops, last=120, per_process=len(stops)) == []


@pytest.mark.process
def test_workers_change_the_same(prepared: PreparedCorpus) -> None:
    alone = [fingerprint(batch) for batch in itertools.islice(Loader(prepared, SETTINGS), 60)]
    with Loader(prepared, SETTINGS, workers=2) as loader:
        assert [fingerprint(batch) for batch in itertools.islice(loader, 60)] == alone


def test_ranks_share_the_changed_rows_of_each_batch(prepared: PreparedCorpus) -> None:
    batches = batcher(prepared, SETTINGS)
    window = batches.window(0, 1)
    ranks = [list(batches.shares(window, rank, 3)) for rank in range(3)]
    for number, whole in enumerate(batches.shares(window, 0, 1)):
        for rank in range(3):
            assert np.array_equal(ranks[rank][number].source, whole.source[rank::3])
            assert np.array_equal(ranks[rank][number].target, whole.target[rank::3])


def test_sampled_pieces_of_a_changed_text_are_still_that_text(prepared: PreparedCorpus) -> None:
    batches, best = batcher(prepared, SAMPLING), batcher(prepared, SETTINGS)
    tokenizer = prepared.tokenizers()[0]
    window, usual = batches.window(1, 0), best.window(1, 0)
    assert window.changed is not None and usual.changed is not None
    sampled, plain = rows_of(batches, window), rows_of(best, usual)
    rows = sampled.keys() & plain.keys() & set(window.changed.rows.tolist()) & set(usual.changed.rows.tolist())
    assert len(rows) > 40
    assert all(tokenizer.decode(list(sampled[row])) == tokenizer.decode(list(plain[row])) for row in rows)
    assert sum(sampled[row] != plain[row] for row in rows) > len(rows) / 2


# --- states and settings


def test_settings_come_back_as_they_were_written() -> None:
    assert BatchSettings(**json.loads(json.dumps(SETTINGS.model_dump(mode="json")))) == SETTINGS
    assert BatchSettings.from_toml(SETTINGS.to_toml()) == SETTINGS and BatchSettings.from_toml(PLAIN.to_toml()) == PLAIN


def test_a_state_goes_on_and_changes_cannot_be_taken_up_or_left_in_between(prepared: PreparedCorpus) -> None:
    old = next(Loader(prepared, PLAIN)).state
    assert Loader(prepared, PLAIN, state=old).state == old
    new = json.loads(json.dumps(next(Loader(prepared, SETTINGS)).state))
    assert Loader(prepared, SETTINGS, state=new).state == new
    for settings, state in ((SETTINGS, old), (PLAIN, new), (PLAIN.changed(augment=AugmentSettings()), new)):
        with pytest.raises(ConfigError, match="augment was"):
            Loader(prepared, settings, state=state)


def test_validation_and_test_sets_are_never_changed(prepared: PreparedCorpus) -> None:
    plain, augmented = ([*Loader(prepared, settings, split="valid").epoch(0)] for settings in (PLAIN, SETTINGS))
    assert [fingerprint(batch) for batch in plain] == [fingerprint(batch) for batch in augmented]
    train = [next(Loader(prepared, settings)) for settings in (PLAIN, SETTINGS)]
    assert fingerprint(train[0]) != fingerprint(train[1])


# --- pieces


def test_pieces_of_others_lack_marks_and_tags_and_refuse_what_needs_them(tmp_path: Path) -> None:
    prepared = PreparedCorpus.open(make(tmp_path / "prepared"))
    assert lacking(*prepared.tokenizers()).keys() == {"protect", "copied", "terms", "matches"}
    with pytest.raises(ConfigError) as caught:
        batcher(prepared, BatchSettings(augment=AugmentSettings()))
    assert [problem.partition(",")[0] for problem in caught.value.problems] == [
        "batch.augment.protect=0.9",
        "batch.augment.copied=0.03",
        "batch.augment.terms=0.05",
    ]


def test_letters_that_the_pieces_do_not_know_are_not_fed(tmp_path: Path) -> None:
    """These pieces have small letters only, and no bytes to spell others with."""
    prepared = PreparedCorpus.open(make(tmp_path / "prepared"))
    window = batcher(prepared, BatchSettings(augment=NONE.changed(upper=1.0))).window(0, 0)
    assert window.changed is None
    window = batcher(prepared, BatchSettings(augment=NONE.changed(upper=0.5, typos=0.5))).window(0, 0)
    assert window.changed is not None and {kind for some in window.changed.kinds for kind in some} == {"typos"}


def test_sides_with_pieces_of_their_own_can_be_masked_but_not_told_terms() -> None:
    source, target = Tokenizer.load(pieces_model()), Tokenizer.load(pieces_model())
    assert lacking(source, source) == {} and count_placeholders(source, source) == 16
    assert lacking(source, target).keys() == {"terms", "matches"} and count_placeholders(source, target) == 16


def test_german_capitals_have_pieces_or_bytes() -> None:
    tokenizer = Tokenizer.load(pieces_model())
    for _, target in sentences(300):
        ids = tokenizer.encode([target.upper()])[0].as_py()
        assert tokenizer.unknown not in ids and tokenizer.decode([ids]) == [target.upper()]


def pieces(*rows: list[int]) -> Pieces:
    return Pieces(np.array(list(itertools.chain(*rows)), np.int32), np.cumsum([0, *map(len, rows)]))


def listed(found: Pieces) -> list[Any]:
    return [found.values[a:b].tolist() for a, b in itertools.pairwise(found.offsets)]


def test_rows_are_joined_and_replaced() -> None:
    assert listed(join_rows(pieces([4, 9], [7], []), pieces([1], [], [2, 3]))) == [[4, 9, 1], [7], [2, 3]]
    assert listed(replace_rows(pieces([4, 9], [7], [8]), np.array([1]), pieces([1, 2]))) == [[4, 9], [1, 2], [8]]
    assert listed(replace_rows(pieces([4, 9], [7], [8]), np.array([0, 2]), pieces([], [5, 6]))) == [[], [7], [5, 6]]
