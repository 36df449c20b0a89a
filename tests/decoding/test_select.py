"""The best pieces of a row by blocks are those that sorting finds, and NaN is seen."""

import numpy as np
import pytest

from limelight.decoding.select import BLOCK, WIDE, best, gather, staying, take_rows


@pytest.mark.parametrize("size", [5, WIDE - 1, WIDE, WIDE + 1, 40 * BLOCK + 63, 8000])
@pytest.mark.parametrize("k", [1, 2, 4, 16])
def test_the_best_are_the_first_of_all_in_their_order(size: int, k: int):
    rows = np.random.default_rng(size).random((7, 3, size), np.float32)
    values, ids = best(rows, k)
    order = (-rows).argsort(axis=-1)[..., :k]
    assert np.array_equal(ids, order)
    assert np.array_equal(values, np.take_along_axis(rows, order, axis=-1))


@pytest.mark.parametrize("k", [1, 4])
def test_of_equals_the_first_come_first_and_each_piece_comes_once(k: int):
    rows = np.zeros((3, WIDE + 7), np.float32)
    rows[:, [5, 6, WIDE + 3]] = 1.0
    values, ids = best(rows, k)
    assert ids[:, :3].tolist() == 3 * [[5, 6, WIDE + 3][:k]]
    assert np.array_equal(np.take_along_axis(rows, ids, axis=1), values)
    assert all(len(set(row)) == k for row in ids.tolist())


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("at", [0, WIDE - 1, WIDE + 3])
@pytest.mark.parametrize("k", [1, 4])
def test_what_is_not_a_number_comes_first(value: float, at: int, k: int):
    rows = np.zeros((2, WIDE + 7), np.float32)
    rows[1, at] = value
    values, ids = best(rows, k)
    assert values[1, 0] == value or np.isnan(values[1, 0])
    assert int(ids[1, 0]) == at


def test_looking_up_by_row_is_that_of_numpy():
    draw = np.random.default_rng(1)
    x, places, rows = draw.random((3, 4, 6)), draw.integers(0, 6, (3, 4, 9)), draw.integers(0, 4, (3, 5))
    assert np.array_equal(gather(x, places), np.take_along_axis(x, places, axis=-1))
    assert np.array_equal(take_rows(x, rows), np.take_along_axis(x, rows[..., None], axis=1))


def test_sentences_leave_when_a_quarter_is_done_and_the_others_keep_their_order():
    done = np.array([False, False, True, False, False, False, False, False])
    assert staying(done) == (7, None)
    done[[0, 5]] = True
    waiting, stay = staying(done)
    assert waiting == 5
    assert stay is not None
    assert stay.tolist() == [1, 3, 4, 6, 7]
    assert staying(np.ones(3, bool)) == (0, None)
