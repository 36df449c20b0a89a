"""The order of an epoch: every pair as often as its weight says, mixed well, and the same for ever."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.chance import draws, key_of
from limelight.corpus.feeding.order import EpochOrder, Purpose, shuffle


def epoch(counts: tuple[int, ...], weights: tuple[float, ...], seed: int, number: int) -> list[tuple[int, int]]:
    order = EpochOrder(counts, weights, seed, number)
    corpora, indexes = order.at(np.arange(order.rows))
    return list(zip(corpora.tolist(), indexes.tolist(), strict=True))


@pytest.mark.slow
@given(st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_a_shuffle_is_a_bijection(count: int, key: int) -> None:
    assert np.array_equal(np.sort(shuffle(np.arange(count), count, key)), np.arange(count))


@pytest.mark.slow
@pytest.mark.parametrize("count", [300_000, 2**18 - 1, 2**18, 2**18 + 1])
def test_a_large_shuffle_is_a_bijection(count: int) -> None:
    assert len(np.unique(shuffle(np.arange(count), count, 7))) == count


@given(st.integers(1, 10**12), st.integers(0, 2**64 - 1), st.lists(st.integers(0, 10**12 - 1), max_size=9))
def test_any_position_is_found_without_its_neighbours(count: int, key: int, positions: list[int]) -> None:
    asked = np.array([position % count for position in positions], np.int64)
    together = shuffle(asked, count, key)
    assert all(0 <= place < count for place in together)
    assert together.tolist() == [int(shuffle(asked[i : i + 1], count, key)[0]) for i in range(len(asked))]


def test_the_order_is_the_same_for_ever() -> None:
    """If this fails, saved runs no longer resume: restore the arithmetic, do not change the numbers."""
    assert key_of(1, Purpose.EPOCH, 0) == 15354349423939954581
    assert shuffle(np.arange(10), 10, key_of(1, 1, 0)).tolist() == [9, 6, 4, 0, 5, 8, 3, 1, 2, 7]
    assert shuffle(np.arange(3), 10**9, 5).tolist() == [944367082, 489259891, 287055478]
    assert draws(5, np.arange(2)).tolist() == [13168350753275463132, 7134611160154358618]
    assert epoch((5, 3), (1.0, 1.0), 1, 0) == [(0, 3), (1, 0), (0, 2), (0, 1), (1, 2), (0, 0), (0, 4), (1, 1)]


def chi_square_excess(outcomes: np.ndarray, kinds: int) -> float:
    """How many standard deviations the counts of equally likely outcomes are further from equal than chance makes them."""
    expected = len(outcomes) / kinds
    chi_square = (((np.bincount(outcomes, minlength=kinds) - expected) ** 2) / expected).sum()
    return float((chi_square - (kinds - 1)) / np.sqrt(2 * (kinds - 1)))


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, 30, 200, 1500])
def test_every_place_is_equally_likely_also_for_two_positions_together(count: int) -> None:
    """Eight rounds are too few for 5 and 30: neighbours then stay neighbours too often."""
    keys = draws(1, np.arange(200_000))
    places = [shuffle(np.full(len(keys), position), count, keys) for position in (0, 1, count - 1)]
    for place in places:
        assert chi_square_excess(place, count) < 6
    for place in places[1:]:
        assert chi_square_excess((place - places[0]) % count - 1, count - 1) < 6


def test_neighbours_are_torn_apart() -> None:
    """The differences of neighbours in a good shuffle of n have the mean n / 3; in an order kept, 1."""
    places = shuffle(np.arange(100_000), 100_000, 3)
    assert abs(np.abs(np.diff(places)).mean() / 100_000 - 1 / 3) < 0.01


def test_seeds_and_epochs_differ() -> None:
    orders = [tuple(epoch((300,), (1.0,), seed, number)) for seed in range(3) for number in range(3)]
    assert len(set(orders)) == 9
    assert all(sum(a == b for a, b in zip(x, y, strict=True)) < 20 for i, x in enumerate(orders) for y in orders[:i])


def test_weight_one_shows_each_pair_once() -> None:
    every = [(0, i) for i in range(50)] + [(2, i) for i in range(7)]
    for number in range(3):
        assert sorted(epoch((50, 0, 7), (1.0, 1.0, 1.0), 1, number)) == every


def test_weight_two_shows_each_pair_twice() -> None:
    assert Counter(epoch((50, 9), (1.0, 2.0), 1, 4)) == {(0, i): 1 for i in range(50)} | {(1, i): 2 for i in range(9)}


def test_weight_a_half_shows_one_half_and_then_the_other() -> None:
    first, second, third = (set(epoch((40,), (0.5,), 1, number)) for number in range(3))
    assert len(first) == len(second) == 20
    assert not first & second
    assert third not in (first, second)


@pytest.mark.slow
@given(st.integers(0, 200), st.sampled_from([0.0, 0.1, 0.3, 1 / 3, 0.7, 1.0, 1.5, 2.25, 17.3]), st.integers(1, 12))
def test_counts_are_exact_and_no_pair_gets_ahead_by_more_than_one(count: int, weight: float, epochs: int) -> None:
    seen = Counter(pair for number in range(epochs) for pair in epoch((count,), (weight,), 3, number))
    assert seen.total() == int(epochs * Fraction(str(weight)) * count)
    often = [seen[0, index] for index in range(count)]
    assert max(often, default=0) - min(often, default=0) <= 1


def test_weights_do_not_drift() -> None:
    """In floating point, epochs of 10 pairs with weight 0.7 have 6, 7 or 8 rows."""
    rows = [EpochOrder((10,), (0.7,), 1, number).rows for number in range(2_000)]
    assert set(rows) == {7}


def test_corpora_are_mixed() -> None:
    corpora = [corpus for corpus, _ in epoch((1000, 1000), (1.0, 1.0), 1, 0)]
    assert abs(sum(corpora[:1000]) - 500) < 100
