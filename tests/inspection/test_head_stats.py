"""Numbers about heads, on attention whose numbers are known; and the head that aligns where words change places."""

import math

import numpy as np
import pytest

from limelight.inspection.analysis.alignment import align, best_head
from limelight.inspection.analysis.head_stats import coverage, diagonality, entropy, head_stats
from limelight.inspection.head_names import Head


def eye(rows: int, columns: int) -> np.ndarray:
    return np.eye(rows, columns, dtype=np.float32)


def test_entropy_is_nothing_for_one_piece_and_all_bits_for_all_alike() -> None:
    even = np.full((3, 8), 1 / 8, np.float32)
    assert entropy(even) == pytest.approx([3, 3, 3])
    assert entropy(eye(4, 4)).tolist() == [0, 0, 0, 0]
    assert entropy(np.array([0.5, 0.25, 0.25, 0])) == pytest.approx(1.5)


def test_the_diagonal_counts_relative_places() -> None:
    assert diagonality(eye(5, 5)) == pytest.approx(1)
    assert diagonality(eye(5, 5)[::-1]) == pytest.approx(1 - (1 + 0.5 + 0 + 0.5 + 1) / 5)
    twice = np.repeat(eye(4, 4), 2, axis=1) / 2
    assert diagonality(twice) > 0.9
    assert diagonality(np.full((400, 300), 1 / 300)) == pytest.approx(2 / 3, abs=1e-2)
    assert diagonality(np.ones((1, 1))) == 1


def test_a_resting_head_looks_at_the_end_of_the_source_or_the_start_of_the_target() -> None:
    cross, own = np.zeros((1, 2, 3, 4), np.float32), np.zeros((1, 2, 3, 3), np.float32)
    cross[0, 0, :, 3], cross[0, 1, :, 0] = 1, 1
    own[0, 0, :, 0], own[0, 1] = 1, np.eye(3)
    attention = {"enc": np.ones((1, 2, 4, 4), np.float32) / 4, "dec": own, "cross": cross}
    gates = {kind: np.array([[0.5, 1]], np.float32) for kind in attention}
    found = {each.id: each for each in head_stats(attention, gates, source_ends=True)}  # type: ignore[arg-type]
    assert list(found) == ["enc.0.0", "enc.0.1", "dec.0.0", "dec.0.1", "cross.0.0", "cross.0.1"]
    assert [each.end_mass for each in found.values()] == pytest.approx([0.25, 0.25, 1, 1 / 3, 1, 0])
    assert [each.gate for each in found.values()] == [0.5, 1] * 3
    assert found["enc.0.0"].entropy == pytest.approx(2)
    without = head_stats(attention, gates, source_ends=False)  # type: ignore[arg-type]
    assert [each.end_mass for each in without] == pytest.approx([0, 0, 1, 1 / 3, 0, 0])


def test_coverage_is_one_for_what_was_translated_once() -> None:
    exact = coverage(np.vstack([eye(3, 4), [[0, 0, 0, 1]]]).astype(np.float32), rows=[0, 1, 2], columns=[0, 1, 2])
    assert exact == {"coverage": [1, 1, 1, 1], "coverage_deviation": 0, "absent_in": 0, "absent_out": 0}
    twice = np.zeros((3, 4), np.float32)
    twice[:, 0] = 1  # the first piece three times, the others never
    assert coverage(twice, [0, 1, 2], [0, 1, 2])["coverage_deviation"] == pytest.approx((math.log(5) + 2 * math.log(2)) / 3)
    even = coverage(np.full((4, 4), 0.25, np.float32), [0, 1, 2, 3], [0, 1, 2, 3])
    assert even["absent_in"] == pytest.approx(2) and even["absent_out"] == pytest.approx(2)
    assert even["coverage_deviation"] == 0
    assert coverage(np.ones((1, 1), np.float32), [], [])["coverage_deviation"] == 0


def crossing() -> np.ndarray:
    """(1, 4, 4, 4): even, diagonal but soft, crossing and sharp, resting on one piece. Rows and columns 3 are the ends."""
    cross = np.full((1, 4, 4, 4), 0.25, np.float32)
    cross[0, 1] = 0.7 * np.eye(4) + 0.075
    cross[0, 2] = np.eye(4)[[2, 0, 1, 3]] * 0.96 + 0.01
    cross[0, 3] = np.array([1, 0, 0, 0])
    return cross


def test_the_head_that_aligns_is_sharp_and_sees_everything_once_however_the_words_cross() -> None:
    text = [0, 1, 2]
    assert best_head(crossing(), text, text, ()) == Head("cross", 0, 2)
    assert best_head(crossing(), text, text, ((0, 0), (0, 1))) == Head("cross", 0, 1)  # measured ones come first
    assert best_head(crossing(), [], [], ()) == Head("cross", 0, 0)


def test_links_are_between_pieces_and_between_words() -> None:
    head, words = Head("cross", 0, 2), [0, 0, 1, None]
    found = align(crossing()[0, 2], head, words, [0, 1, 1, None], ends=True)
    assert [(s, t) for s, t, _ in found.links] == [(2, 0), (0, 1), (1, 2)]
    assert [weight for _, _, weight in found.links] == pytest.approx([0.97] * 3)
    assert [(s, t) for s, t, _ in found.words] == [(1, 0), (0, 1)]
    assert [weight for _, _, weight in found.words] == pytest.approx([0.97, 0.98])
    assert found.method == "head:cross.0.2" and found.head == "cross.0.2"


def test_a_piece_that_looks_at_the_end_comes_from_nowhere() -> None:
    weights = np.array([[0.9, 0.05, 0.05], [0.04, 0.01, 0.95]], np.float32)
    assert [link[:2] for link in align(weights, Head("cross", 0, 0), [0, 1, None], [0, 1], ends=True).links] == [(0, 0)]
    assert len(align(weights, Head("cross", 0, 0), [0, 1, 2], [0, 1], ends=False).links) == 2
