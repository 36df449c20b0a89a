"""Shards that are read in groups: every pair as often as without groups, no window beyond its group, and the same for ever."""

import itertools
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_corpora import fingerprint, global_batches, make, stops_that_differ

from limelight.corpus.feeding.augment import AugmentSettings
from limelight.corpus.feeding.batches import Batcher, BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.order import EpochOrder
from limelight.corpus.feeding.shards import Pairs, PreparedCorpus

ROWS = [[30, 5], [28, 0], [0, 0], [35, 7], [31, 6], [12, 40], [30, 5]]
WEIGHTS = (1.0, 2.5)
GROUPED = BatchSettings(budget=400, window=40, shards_at_once=2)
CHANGING = AugmentSettings(protect=0, copied=0, terms=0, merged=0.5)  # the pieces have no marks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("groups") / "prepared", rows=ROWS, weights=WEIGHTS, names=("law", "news"))


@pytest.fixture(scope="module")
def prepared(folder: Path) -> PreparedCorpus:
    return PreparedCorpus.open(folder)


def epoch(rows: list[list[int]], weights: tuple[float, ...], number: int, at_once: int, seed: int = 1) -> tuple[EpochOrder, list]:
    shards = np.array(rows, np.int64)
    order = EpochOrder(shards.sum(axis=0).tolist(), weights, seed, number, shards, at_once)
    return order, list(zip(*(side.tolist() for side in order.at(np.arange(order.rows))), strict=True))


shapes = st.integers(1, 3).flatmap(
    lambda corpora: st.lists(st.lists(st.integers(0, 12), min_size=corpora, max_size=corpora), min_size=1, max_size=9)
)


@settings(max_examples=10)
@given(shapes, st.integers(1, 10), st.integers(0, 2**32))
def test_with_weight_one_each_epoch_has_every_pair_once(rows: list[list[int]], at_once: int, seed: int) -> None:
    corpora = len(rows[0])
    for number in range(2):
        _, found = epoch(rows, (1.0,) * corpora, number, at_once, seed)
        totals = np.array(rows).sum(axis=0)
        assert sorted(found) == [(corpus, index) for corpus in range(corpora) for index in range(totals[corpus])]


@pytest.mark.slow
@given(shapes, st.sampled_from([0.1, 0.5, 1 / 3, 1.7, 2.5]), st.integers(1, 10))
def test_with_other_weights_no_pair_gets_ahead_of_another_by_more_than_one(rows: list[list[int]], weight: float, at_once: int) -> None:
    corpora, seen = len(rows[0]), Counter()
    for number in range(6):
        seen.update(epoch(rows, (weight,) * corpora, number, at_once)[1])
        for corpus, total in enumerate(np.array(rows).sum(axis=0).tolist()):
            counts = [seen[corpus, index] for index in range(total)]
            assert not counts or max(counts) - min(counts) <= 1


@pytest.mark.parametrize("weight", [0.1, 0.37, 2.5])
def test_equal_shards_give_in_each_epoch_what_the_corpus_gives_as_a_whole(weight: float) -> None:
    """Without it, shards with five pairs at a tenth would all give none in one epoch and one in the next."""
    for number in range(12):
        grouped, _ = epoch([[5]] * 40, (weight,), number, 4)
        assert grouped.rows == EpochOrder((200,), (weight,), 1, number).rows


@pytest.mark.parametrize("at_once", [1, 2, 3, 7, 50])
def test_positions_of_a_group_are_rows_of_its_shards(at_once: int) -> None:
    order, found = epoch(ROWS, WEIGHTS, 3, at_once)
    ends = np.cumsum(ROWS, axis=0)
    shard_of = [int(np.searchsorted(ends[:, corpus], index, side="right")) for corpus, index in found]
    assert sorted(np.concatenate(order.groups).tolist()) == list(range(len(ROWS)))
    assert all(len(group) == at_once for group in order.groups[:-1])
    for group, (begin, end) in zip(order.groups, itertools.pairwise(order.bounds), strict=True):
        assert set(shard_of[begin:end]) <= set(group.tolist())
    asked = np.array(random.Random(1).sample(range(order.rows), 20))
    assert list(zip(*(side.tolist() for side in order.at(asked)), strict=True)) == [found[position] for position in asked]


def test_groups_and_rows_are_mixed_anew_in_each_epoch() -> None:
    (first, a), (second, b) = (epoch([[50]] * 20, (1.0,), number, 4) for number in (0, 1))
    assert np.concatenate(first.groups).tolist() != np.concatenate(second.groups).tolist()
    neighbours = [sum(y == (0, x[1] + 1) for x, y in itertools.pairwise(found)) for found in (a, b)]
    assert max(neighbours) < 30  # of 999; about 5 by chance
    assert a[:200] != b[:200]


def test_the_order_of_groups_is_the_same_for_ever() -> None:
    """If this fails, saved runs no longer resume: restore the arithmetic, do not change the numbers."""
    order, found = epoch([[2, 1], [1, 1], [2, 0]], (1.0, 1.5), 1, 2)
    assert [group.tolist() for group in order.groups] == [[0, 2], [1]]
    assert found == [(1, 0), (0, 4), (0, 3), (0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (1, 1)]


def test_without_the_setting_settings_are_written_as_before() -> None:
    assert "shards_at_once" not in BatchSettings().model_dump() and BatchSettings(shards_at_once=3).model_dump()["shards_at_once"] == 3


@pytest.mark.parametrize("augment", [None, CHANGING])
def test_no_window_reads_beyond_its_group(folder: Path, monkeypatch: pytest.MonkeyPatch, augment: AugmentSettings | None) -> None:
    batches = Batcher(PreparedCorpus.open(folder, verify=False).split("train"), GROUPED.changed(augment=augment))
    read: set[int] = set()
    by_shard = Pairs._by_shard

    def notice(pairs: Pairs, samples: np.ndarray) -> list:
        found = by_shard(pairs, samples)
        read.update(shard for shard, _, _ in found)
        return found

    monkeypatch.setattr(Pairs, "_by_shard", notice)
    merged = 0
    for number in range(batches.windows(0)):
        read.clear()
        window = batches.window(0, number)
        list(batches.shares(window, 0, 1))
        merged += sum("merged" in kinds for kinds in window.changed.kinds) if window.changed else 0
        assert any(read <= set(group.tolist()) for group in batches.order(0).groups)
    assert (merged > 20) == (augment is not None)


def test_ranks_share_batches_of_groups_as_of_all(folder: Path) -> None:
    alone = global_batches(folder, GROUPED, world=1, workers=0, batches=60)
    assert global_batches(folder, GROUPED, world=3, workers=0, batches=60) == alone


@pytest.mark.parametrize("turned", [False, True])
def test_a_loader_goes_on_at_the_very_sample(prepared: PreparedCorpus, turned: bool) -> None:
    straight = list(itertools.islice(Loader(prepared, GROUPED, turned=turned), 70))
    assert turned or straight[-1].epoch == 1
    for stop in range(1, 69, 7):
        after = itertools.islice(Loader(prepared, GROUPED, turned=turned, state=straight[stop - 1].state), 3)
        assert [fingerprint(batch) for batch in after] == [fingerprint(batch) for batch in straight[stop : stop + 3]]


@pytest.mark.process
def test_another_process_and_workers_go_on_alike(folder: Path, prepared: PreparedCorpus) -> None:
    assert stops_that_differ(folder, GROUPED, [3, 17, 40], last=50, per_process=3) == []
    alone = [fingerprint(batch) for batch in itertools.islice(Loader(prepared, GROUPED), 50)]
    with Loader(prepared, GROUPED, workers=2) as loader:
        assert [fingerprint(batch) for batch in itertools.islice(loader, 50)] == alone
