"""Batches: within the budget, hardly padded, nothing lost, nothing silent."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prepared_corpora import make, make_from_lengths

from limelight.corpus.feeding.batches import Batcher, BatchSettings, BatchShare, SamplingSettings, cut, pad_rows, snake
from limelight.corpus.feeding.shards import Pieces, PreparedCorpus
from limelight.text.pieces.tokenizer import END, PAD, START

SAMPLING = SamplingSettings(alpha=0.3)
MULTI30K = Path(__file__).parents[2] / "benchmarks" / "multi30k_lengths.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("batches") / "prepared")


def batcher(folder: Path, **settings: object) -> Batcher:
    return Batcher(PreparedCorpus.open(folder, verify=False).split("train"), BatchSettings(**settings))


def epoch(batches: Batcher, number: int, rank: int = 0, world: int = 1) -> list[BatchShare]:
    windows = (batches.window(number, window) for window in range(batches.windows(number)))
    return [share for window in windows for share in batches.shares(window, rank, world)]


def padding_of(shares: list[BatchShare]) -> float:
    return sum(share.padding() * share.cells for share in shares) / sum(share.cells for share in shares)


@pytest.mark.parametrize("sampling", [None, SAMPLING])
def test_an_epoch_holds_each_pair_as_often_as_its_weight_says(folder: Path, sampling: SamplingSettings | None) -> None:
    batches = batcher(folder, budget=300, window=160, sampling=sampling)
    assert batches.windows(0) == 4
    samples = np.concatenate([share.samples for share in epoch(batches, 0)])
    corpora = [batches.pairs.provenance(int(sample)).corpus for sample in samples]
    assert corpora.count("law") == 460
    assert corpora.count("news") == int(2.5 * 61)
    often = np.bincount(samples)
    assert set(often) <= {1, 2, 3}


@pytest.mark.parametrize("budget", [60, 300, 1200])
def test_batches_stay_within_the_budget_and_use_it(folder: Path, budget: int) -> None:
    shares = epoch(batcher(folder, budget=budget, window=160), 0)
    assert all(share.cells <= budget for share in shares)
    assert np.mean([share.cells for share in shares]) > 0.75 * budget


@pytest.mark.parametrize("sampling", [None, SAMPLING])
def test_rows_are_the_stored_or_sampled_ids_with_an_end(folder: Path, sampling: SamplingSettings | None) -> None:
    batches = batcher(folder, budget=300, sampling=sampling)
    different = 0
    for share in epoch(batches, 1):
        stored = batches.pairs.ids(share.samples)
        for side, grid in zip(stored, (share.source, share.target), strict=True):
            for row, (start, stop) in enumerate(zip(side.offsets[:-1], side.offsets[1:], strict=True)):
                ids = grid[row][: np.flatnonzero(grid[row] == END)[0]]
                assert not grid[row][len(ids) + 1 :].any()
                different += ids.tolist() != side.values[start:stop].tolist()
    assert (different > 0) == (sampling is not None)


def test_a_sampled_text_is_still_the_same_text(folder: Path) -> None:
    batches = batcher(folder, budget=300, sampling=SAMPLING)
    assert batches.samplers is not None
    tokenizer = batches.samplers[0].tokenizer
    for share in epoch(batches, 0)[:20]:
        sources, targets = batches.pairs.texts(share.samples)
        for texts, grid in ((sources, share.source), (targets, share.target)):
            assert tokenizer.decode([row[row > END].tolist() for row in grid]) == texts.to_pylist()


def test_epochs_draw_other_pieces_and_asking_again_the_same(folder: Path) -> None:
    batches = batcher(folder, budget=300, sampling=SAMPLING)

    def sources(number: int) -> dict[int, list[int]]:
        rows = ((s, row) for share in epoch(batches, number) for s, row in zip(share.samples, share.source, strict=True))
        return {int(sample): row[row != PAD].tolist() for sample, row in rows}

    first, second = sources(0), sources(1)
    assert first == sources(0)
    shared = first.keys() & second.keys()
    assert sum(first[s] != second[s] for s in shared) > len(shared) / 3


def test_the_decoder_reads_the_start_and_then_the_target() -> None:
    target = np.array([[7, 8, END], [9, END, PAD]])
    share = BatchShare(0, 0, 0, np.arange(2), target, target, rows=2, targets=5)
    assert share.target_in.tolist() == [[START, 7, 8], [START, 9, PAD]]
    assert share.target_out.tolist() == target.tolist()
    assert share.padding() == pytest.approx(2 / 12)


@pytest.mark.parametrize("world", [2, 3, 7])
def test_ranks_share_the_rows_of_each_global_batch(folder: Path, world: int) -> None:
    batches = batcher(folder, budget=240)
    whole = epoch(batches, 0)
    shares = [epoch(batches, 0, rank, world) for rank in range(world)]
    assert world != 7 or any(len(share.samples) == 0 for share in shares[-1])  # a batch of fewer rows than ranks
    for number, batch in enumerate(whole):
        for rank in range(world):
            share = shares[rank][number]
            for name in ("samples", "source", "target"):
                assert np.array_equal(getattr(share, name), getattr(batch, name)[rank::world])
            assert (share.rows, share.targets) == (len(batch.samples), np.count_nonzero(batch.target))


def test_pairs_too_long_are_skipped_and_counted(folder: Path) -> None:
    batches = batcher(folder, budget=60, longest=24, window=160)
    source, target = batches.pairs.lengths(np.arange(batches.pairs.rows))
    long = (source + target + 2 > 60) | (source > 24) | (target > 24)
    assert 0 < long.sum() < batches.pairs.rows
    samples = np.concatenate([share.samples for share in epoch(batches, 0)])
    assert not set(samples) & set(np.flatnonzero(long))
    skipped = sum(batches.window(0, window).skipped for window in range(batches.windows(0)))
    assert skipped + len(samples) == batches.order(0).rows


def test_batches_of_a_window_are_not_in_order_of_length(folder: Path) -> None:
    widths = np.array([share.target.shape[1] for share in epoch(batcher(folder, budget=200), 0)])
    assert abs(np.corrcoef(np.arange(len(widths)), widths)[0, 1]) < 0.3


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=60), st.integers(18, 80))
def test_cuts_are_those_of_the_plain_loop(lengths: list[tuple[int, int]], budget: int) -> None:
    source, target = np.array(lengths, np.int64).reshape(-1, 2).T
    cuts, begin = [0], 0
    for row in range(len(lengths)):
        if (row + 1 - begin) * (source[begin : row + 1].max() + target[begin : row + 1].max()) > budget:
            cuts.append(row)
            begin = row
    expected = [*cuts, len(lengths)] if lengths else [0]
    assert cut(source, target, budget).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60), st.integers(1, 4))
def test_the_snake_is_sorted_and_turns_at_each_step(lengths: list[tuple[int, int]], stride: int) -> None:
    source, target = np.array(lengths, np.int64).reshape(-1, 2).T
    order = snake(source, target, stride)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    for step, group in itertools.groupby(order, key=lambda row: target[row] // stride):
        sources = [int(source[row]) for row in group]
        assert sources == sorted(sources, reverse=bool(step % 2 == 0))
    assert (target[order] // stride).tolist() == sorted((target // stride).tolist())


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(4, 99), max_size=6), min_size=1, max_size=9), st.data())
def test_padded_is_what_a_loop_would_write(rows: list[list[int]], data: st.DataObject) -> None:
    offsets = np.cumsum([0, *map(len, rows)])
    pieces = Pieces(np.array([i for row in rows for i in row], np.uint16), offsets)
    start = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(start, len(rows)))
    grid = pad_rows(pieces, start, stop, 8)
    assert grid.tolist() == [[*row, END, *[PAD] * (7 - len(row))] for row in rows[start:stop]]


def test_multi30k_is_padded_by_less_than_five_percent(tmp_path: Path) -> None:
    counted = json.loads(MULTI30K.read_text("utf-8"))["pairs"]
    cells = [(int(s), int(t), n) for s, row in counted.items() for t, n in row.items()]
    lengths = np.repeat([cell[:2] for cell in cells], [cell[2] for cell in cells], axis=0)
    assert len(lengths) == 29_000
    shares = epoch(batcher(make_from_lengths(tmp_path / "p", *lengths.T)), 0)
    assert padding_of(shares) < 0.05


def europarl_like(pairs: int) -> np.ndarray:
    """Parliament speaks in long sentences: log-normal around 25 pieces, the other side within a fifth of it."""
    chance = np.random.default_rng(3)
    source = np.clip(np.exp(chance.normal(3.2, 0.75, pairs)), 1, 240)
    target = np.clip(source * np.exp(chance.normal(0.05, 0.2, pairs)), 1, 250)
    return np.rint([source, target]).astype(np.int64)


@pytest.mark.slow
def test_long_sentences_are_padded_by_less_than_five_percent(tmp_path: Path) -> None:
    folder = make_from_lengths(tmp_path / "p", *europarl_like(60_000))
    assert padding_of(epoch(batcher(folder), 0)) < 0.05
    unsorted = batcher(folder, window=64)  # the control: without neighbours to choose from, much is padding
    assert padding_of([share for w in range(100) for share in unsorted.shares(unsorted.window(0, w), 0, 1)]) > 0.05
