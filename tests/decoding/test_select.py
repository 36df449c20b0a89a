"""The best pieces of a row by blocks are those that torch finds, and NaN is seen."""

import pytest
import torch

from limelight.decoding.select import BLOCK, WIDE, best, staying


@pytest.mark.parametrize("size", [5, WIDE - 1, WIDE, WIDE + 1, 40 * BLOCK + 63, 8000])
@pytest.mark.parametrize("k", [1, 2, 4, 16])
def test_the_best_are_those_of_topk(size: int, k: int):
    rows = torch.rand(7, 3, size, generator=torch.Generator().manual_seed(size))
    values, ids = best(rows, k)
    expected = rows.topk(min(k, size), dim=-1)
    assert torch.equal(values, expected.values)
    assert torch.equal(ids, expected.indices)


@pytest.mark.parametrize("k", [1, 4])
def test_ties_are_counted_and_each_piece_comes_once(k: int):
    rows = torch.zeros(3, WIDE + 7).index_fill(1, torch.tensor([5, 6, WIDE + 3]), 1.0)
    values, ids = best(rows, k)
    assert torch.equal(values, rows.topk(k, dim=-1).values)
    assert torch.equal(rows.gather(1, ids), values)
    assert all(len(set(row)) == k for row in ids.tolist())


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("at", [0, WIDE - 1, WIDE + 3])
@pytest.mark.parametrize("k", [1, 4])
def test_what_is_not_a_number_comes_first(value: float, at: int, k: int):
    rows = torch.zeros(2, WIDE + 7)
    rows[1, at] = value
    values, ids = best(rows, k)
    assert torch.equal(values[1, :1], rows[1, at : at + 1]) or values[1, 0].isnan()
    assert int(ids[1, 0]) == at


def test_sentences_leave_when_a_quarter_is_done_and_the_others_keep_their_order():
    done = torch.tensor([False, False, True, False, False, False, False, False])
    assert staying(done) == (7, None)
    done[[0, 5]] = True
    waiting, stay = staying(done)
    assert waiting == 5
    assert stay is not None
    assert stay.tolist() == [1, 3, 4, 6, 7]
    assert staying(torch.ones(3, dtype=torch.bool)) == (0, None)
