"""Draws follow the model's distribution as the settings cut it, and depend on seed, key and number of the draw alone."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from slow_search import check_sound, length_penalty, repeats
from table_models import SMALL, TableModel, find, random_rows, sentence

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.steps import Request

MANY = 2048
PROBABILITIES = np.array([0.02, 0.3, 0.25, 0.2, 0.13, 0.06, 0.04])  # of pad, the end and five pieces


def fixed(probabilities: np.ndarray = PROBABILITIES) -> TableModel:
    """Every piece is as probable after anything."""
    row = np.log(probabilities).astype(np.float32)
    return TableModel(lambda number, prefix: row, len(probabilities))


def draw(model: TableModel, count: int = MANY, length: int = 1, key: int = 100, **sampling: object) -> list[tuple[int, ...]]:
    """The pieces of so many draws, the end as piece 1."""
    settings = SearchSettings(nbest=count, max_length=length, sampling=Sampling(**sampling))
    outcome = find(model, [Request(source=[100], key=key)], settings)[0]
    assert len(outcome.hypotheses) == count
    return [(*h.ids, *[1] * (h.finish == "eos")) for h in outcome.hypotheses]


def surprise(seen: Counter, expected: dict) -> float:
    """How far counts are from probabilities: about a standard normal variable when they agree.

    The statistic is chi-square, brought to a normal one by the cube root (Wilson and Hilferty 1931).
    """
    possible = {outcome: p for outcome, p in expected.items() if p > 0}
    assert set(seen) <= set(possible)
    total, freedom = sum(seen.values()), len(possible) - 1
    statistic = sum((seen[o] - total * p) ** 2 / (total * p) for o, p in possible.items())
    spread = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


def shares(pieces: dict[int, float]) -> dict[tuple[int], float]:
    return {(piece,): p / sum(pieces.values()) for piece, p in pieces.items()}


REAL = dict(enumerate(PROBABILITIES.tolist()))
del REAL[SMALL.pad]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({}, shares(REAL)),
        ({"temperature": 0.5}, shares({piece: p**2 for piece, p in REAL.items()})),
        ({"temperature": 3.0}, shares({piece: p ** (1 / 3) for piece, p in REAL.items()})),
        ({"top_k": 3}, shares({1: 0.3, 2: 0.25, 3: 0.2})),
        ({"top_k": 100}, shares(REAL)),
        ({"top_p": 0.5}, shares({1: 0.3, 2: 0.25})),
        ({"top_p": 0.8}, shares({1: 0.3, 2: 0.25, 3: 0.2, 4: 0.13})),
        ({"top_p": 1.0}, shares(REAL)),
        ({"top_k": 4, "temperature": 2.0}, shares({piece: REAL[piece] ** 0.5 for piece in (1, 2, 3, 4)})),
    ],
)
@pytest.mark.parametrize("seed", [0, 2**62])
def test_draws_follow_the_distribution_that_the_settings_leave(sampling, expected, seed):
    seen = Counter(draw(fixed(), seed=seed, **sampling))
    assert abs(surprise(seen, expected)) < 4
    assert set(seen) == set(expected)


def test_a_wrong_distribution_is_noticed():
    """The control of the test above."""
    seen = Counter(draw(fixed()))
    assert surprise(seen, shares({**REAL, 2: 0.15})) > 8


def test_the_nucleus_never_leaves_out_the_most_probable_piece():
    assert set(draw(fixed(), count=64, top_p=1e-6)) == {(1,)}


def test_one_of_the_top_one_is_greedy():
    model, requests = TableModel(random_rows(8, 3), 8), [sentence(n) for n in range(100, 110)]
    drawn = find(model, requests, SearchSettings(nbest=2, max_length=8, sampling=Sampling(top_k=1)))
    greedy = find(model, requests, SearchSettings(beam=1, max_length=8))
    for outcome, wanted in zip(drawn, greedy, strict=True):
        assert outcome.hypotheses == wanted.hypotheses * 2


def test_steps_and_draws_are_independent():
    """Two pieces in a row, and two draws in a row, have the product of their distributions."""
    pieces = {2: 0.4, 3: 0.3, 4: 0.2, 5: 0.1}
    model = fixed(np.array([0, 0, 0.4, 0.3, 0.2, 0.1]) + 1e-30)
    products = {(a, b): pieces[a] * pieces[b] for a, b in itertools.product(pieces, pieces)}
    drawn = draw(model, length=2)
    assert abs(surprise(Counter(drawn), products)) < 4
    neighbours = Counter((a[0], b[0]) for a, b in zip(drawn[::2], drawn[1::2], strict=True))
    assert abs(surprise(neighbours, products)) < 4


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 2, 1000])
def test_neighbouring_keys_draw_independently(step):
    """Also where key + draw or key * draw are equal: nothing lines up."""
    pieces = {2: 0.25, 3: 0.25, 4: 0.25, 5: 0.25}
    model = fixed(np.array([0, 0, 0.25, 0.25, 0.25, 0.25]) + 1e-30)
    products = dict.fromkeys(itertools.product(pieces, pieces), 1 / 16)
    first, second = draw(model, key=7), draw(model, key=7 + step)
    for shift in (0, 1, step):
        pairs = Counter((a[0], b[0]) for a, b in zip(first[shift:], second, strict=False))
        assert abs(surprise(pairs, products)) < 4


@pytest.mark.slow
def test_the_first_pieces_over_many_keys_follow_the_distribution():
    """One draw each of many sentences, as a user has it."""
    settings = SearchSettings(nbest=1, max_length=1, sampling=Sampling())
    outcomes = find(fixed(), [Request(source=[100], key=key) for key in range(MANY)], settings)
    seen = Counter((*o.hypotheses[0].ids, *[1] * (o.hypotheses[0].finish == "eos")) for o in outcomes)
    assert abs(surprise(seen, shares(REAL))) < 4


SETTINGS = SearchSettings(nbest=5, max_ratio=1.0, max_extra=3, sampling=Sampling(temperature=1.3, top_p=0.95, seed=11))
REQUESTS = [sentence(100 + i, pieces) for i, pieces in enumerate([3, 1, 8, 2, 2, 5, 1, 4])]


@pytest.mark.parametrize("kind", ["plain", "eos_first", "shy"])
def test_draws_are_the_same_in_any_batch(kind):
    model = TableModel(random_rows(8, 6, kind), 8)
    together = find(model, REQUESTS, SETTINGS)
    assert together == [find(model, [request], SETTINGS)[0] for request in REQUESTS]
    assert together[::-1] == find(model, REQUESTS[::-1], SETTINGS)
    assert together == find(model, REQUESTS, SETTINGS)


def test_more_draws_begin_with_the_same_draws():
    model = TableModel(random_rows(8, 6), 8)
    few, many = (find(model, REQUESTS, SETTINGS.changed(nbest=count)) for count in (2, 9))
    assert [o.hypotheses for o in few] == [o.hypotheses[:2] for o in many]


def test_other_seeds_and_other_keys_draw_otherwise():
    model = TableModel(random_rows(8, 6, "shy"), 8)
    one, two = (find(model, REQUESTS, SETTINGS.changed(sampling=Sampling(seed=seed), max_extra=20)) for seed in (1, 2))
    assert all(a.hypotheses != b.hypotheses for a, b in zip(one, two, strict=True))
    keyed = find(model, [Request(source=[100] * 4, key=key) for key in (0, 1, 2**40, 2**63 - 1, 0)], SETTINGS)
    assert len({tuple(tuple(h.ids) for h in o.hypotheses) for o in keyed}) == 4
    assert keyed[0] == keyed[4]


def test_draws_keep_their_order_repeat_as_often_as_drawn_and_have_the_models_scores():
    model = TableModel(random_rows(6, 7, "eos_first"), 6)
    settings = SETTINGS.changed(nbest=60)
    in_order = []
    for request, outcome in zip(REQUESTS, find(model, REQUESTS, settings), strict=True):
        check_sound(model, request.source[0], outcome, settings, settings.limit(len(request.source)))
        assert len(outcome.hypotheses) == 60 > len({tuple(h.ids) for h in outcome.hypotheses})
        scores = [h.score for h in outcome.hypotheses]
        in_order.append(scores == sorted(scores, reverse=True))
        for h in outcome.hypotheses:
            penalty = length_penalty(settings)(len(h.log_probs))
            assert h.score == pytest.approx(math.fsum(h.log_probs) / penalty, abs=1e-5)
    assert not all(in_order)


def test_rules_hold_for_draws_too():
    model = TableModel(random_rows(9, 8, "plain"), 9)
    settings = SETTINGS.changed(nbest=30, min_length=3, suppress=(4, 5), no_repeat_ngram=2)
    requests = [sentence(100, 6), sentence(101, 6, prefix=[5, 7])]
    free, begun = find(model, requests, settings)
    assert all(h.ids[:2] == [5, 7] for h in begun.hypotheses)
    for h in free.hypotheses:
        assert len(h.ids) >= 3 and not {4, 5} & set(h.ids) and not repeats(h.ids, 2)


def test_impossible_pieces_are_never_drawn():
    model = TableModel(random_rows(9, 8, "holes"), 9)
    settings = SETTINGS.changed(nbest=40)
    for outcome in find(model, REQUESTS, settings):
        assert all(math.isfinite(x) for h in outcome.hypotheses for x in h.log_probs)
