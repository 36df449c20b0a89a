"""Narrow beams against a slow search written from the definition; stopping early, batches, coverage."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from slow_search import all_paths, check_sound, differences, gnmt, length_penalty, reference_beam
from table_models import SMALL, LookingTableModel, TableModel, find, listed_rows, look, random_rows, sentence

from limelight.decoding.beam import Best, beam
from limelight.decoding.config import SearchSettings
from limelight.decoding.greedy import greedy
from limelight.decoding.search import search
from limelight.decoding.steps import Hypothesis, Request
from limelight.decoding.task import make_task

some = example_settings(derandomize=True, deadline=None)
WITHOUT_TIES = ["plain", "holes", "eos_first", "shy"]


def mixed_model(vocab_size: int, seed: int) -> TableModel:
    """Sentences of every kind in one batch: sentence n is of kind n % 4."""
    rows = [random_rows(vocab_size, seed, kind) for kind in WITHOUT_TIES]
    return TableModel(lambda number, prefix: rows[number % 4](number, prefix), vocab_size)


@pytest.mark.slow
def test_a_beam_of_one_takes_the_most_probable_piece_at_every_step_whatever_the_length_penalty():
    """1,000 of 1,000: greedy, which has no choice between lengths."""
    compared = 0
    for seed, alpha, vocab_size in itertools.product(range(16), [0.0, 0.6, 1.0], [4, 5, 6]):
        model, settings = mixed_model(vocab_size, seed), SearchSettings(beam=1, length_penalty=alpha, max_length=6)
        numbers = range(100, 108)
        for number, outcome in zip(numbers, find(model, [sentence(n) for n in numbers], settings), strict=True):
            assert not differences(outcome.hypotheses, reference_beam(model, number, settings))
            compared += 1
    assert compared >= 1000


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_the_beam_with_one_row_equals_the_greedy_search(alpha):
    """1,000 of 1,000, also with ties. `search` takes the second for a beam of one, since it is faster."""
    compared = 0
    for seed, kind in itertools.product(range(5), [*WITHOUT_TIES, "ties"]):
        model = TableModel(random_rows(5, seed, kind), 5)
        settings = SearchSettings(beam=1, length_penalty=alpha, max_length=6)
        requests = [sentence(number) for number in range(100, 114)]
        task = make_task(requests, settings, SMALL)
        wide, narrow = beam(model, task, settings, SMALL, Best()), greedy(model, task, settings, SMALL)
        for a, b in zip(wide, narrow, strict=True):
            assert not differences(a.hypotheses, b.hypotheses)
            compared += 1
    assert compared == 350  # for each of three penalties


def test_a_beam_of_one_breaks_ties_by_a_most_probable_piece():
    model, numbers = TableModel(random_rows(6, 5, "ties"), 6), range(100, 200)
    settings = SearchSettings(beam=1, max_length=6)
    for number, outcome in zip(numbers, find(model, [sentence(n) for n in numbers], settings), strict=True):
        pieces = outcome.hypotheses[0].ids
        for i, log_prob in enumerate(outcome.hypotheses[0].log_probs):
            assert log_prob == pytest.approx(model.rows(number, tuple(pieces[:i]))[1:].max(), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["gnmt", "power"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("patience", [None, 1.0, 1.5, 2.0])
def test_a_narrow_beam_equals_the_slow_search_that_never_stops_early(patience, width, alpha, norm):
    for seed, nbest in itertools.product(range(6), {1, width}):
        model = mixed_model(6, seed)
        settings = SearchSettings(beam=width, nbest=nbest, length_penalty=alpha, length_norm=norm, max_length=9, patience=patience)
        numbers = range(100, 108)
        for number, outcome in zip(numbers, find(model, [sentence(n) for n in numbers], settings), strict=True):
            check_sound(model, number, outcome, settings, 9)
            assert not differences(outcome.hypotheses, reference_beam(model, number, settings))


def test_a_slow_search_with_a_length_penalty_off_by_one_differs():
    """The control of the test above: it would notice."""
    model, settings = mixed_model(6, 0), SearchSettings(beam=4, nbest=4, length_penalty=0.6, max_length=9)
    outcomes = find(model, [sentence(n) for n in range(100, 108)], settings)
    wrong = [reference_beam(model, n, settings, lambda length: gnmt(0.6)(length + 1)) for n in range(100, 108)]
    assert all(differences(o.hypotheses, w) for o, w in zip(outcomes, wrong, strict=True) if w)


@pytest.mark.slow
@some
@given(
    seed=st.integers(0, 10_000),
    width=st.integers(1, 7),
    alpha=st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.0, 5.0]),
    norm=st.sampled_from(["gnmt", "power"]),
    pieces=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    data=st.data(),
)
def test_any_beam_penalty_and_batch_of_mixed_limits_equal_the_slow_search(seed, width, alpha, norm, pieces, data):
    model = mixed_model(data.draw(st.integers(4, 9)), seed)
    settings = SearchSettings(
        beam=width,
        nbest=data.draw(st.integers(1, width)),
        length_penalty=alpha,
        length_norm=norm,
        max_ratio=1.5,
        max_extra=2,
        max_length=12,
        min_length=data.draw(st.integers(0, 4)),
    )
    requests = [sentence(100 + number, count) for number, count in enumerate(pieces)]
    for request, outcome in zip(requests, find(model, requests, settings), strict=True):
        number, count = request.source[0], len(request.source)
        check_sound(model, number, outcome, settings, settings.limit(count))
        wanted = reference_beam(model, number, settings, source_pieces=count)
        assert not differences(outcome.hypotheses, wanted)


@pytest.mark.parametrize("kind", ["plain", "ties", "holes", "eos_first", "shy"])
@pytest.mark.parametrize("width", [1, 4])
def test_a_batch_of_eight_equals_eight_batches_of_one(kind, width):
    """Sources of different lengths, so that limits, padding and ends differ."""
    model = TableModel(random_rows(6, 3, kind), 6)
    settings = SearchSettings(beam=width, nbest=width, max_ratio=1.0, max_extra=1)
    requests = [sentence(100 + i, pieces) for i, pieces in enumerate([3, 1, 8, 2, 2, 5, 1, 4])]
    together = find(model, requests, settings)
    alone = [find(model, [request], settings)[0] for request in requests]
    assert together == alone
    assert find(model, requests[::-1], settings) == alone[::-1]


def test_no_requests_have_no_outcomes():
    assert find(mixed_model(5, 0), [], SearchSettings()) == []


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_the_search_stops_when_nothing_alive_can_win_any_more(alpha):
    """[] has .9. What goes on for ever has .1, which no length makes better: log .1 / lp(50) < log .9."""
    table = {(): {1: 0.9, 2: 0.1}} | {(2,) * n: {2: 1.0} for n in range(1, 50)}
    model = TableModel(listed_rows(table, 3), 3)
    settings = SearchSettings(beam=2, length_penalty=alpha, max_length=50, max_extra=50)
    assert [h.ids for h in find(model, [sentence(100)], settings)[0].hypotheses] == [[]]
    assert model.steps == 1
    assert len(find(model, [sentence(100)], settings.changed(nbest=2))[0].hypotheses) == 2
    assert model.steps == 1 + 50


def test_the_search_does_not_stop_while_a_longer_translation_can_still_win():
    """The end at once has .5; with penalty 1 and power norm the long one wins: log(.5 * .9^8) / 9 > log(.5) / 1."""
    table = {(): {1: 0.5, 2: 0.5}} | {(2,) * n: {2: 0.9, 1: 0.1} for n in range(1, 9)}
    model = TableModel(listed_rows(table, 3), 3)
    settings = SearchSettings(beam=2, length_penalty=1.0, length_norm="power", max_length=9, patience=None)
    best = find(model, [sentence(100)], settings)[0].hypotheses[0]
    assert (best.ids, best.finish) == ([2] * 9, "length")
    assert best.score == pytest.approx(math.log(0.5 * 0.9**8) / 9, abs=1e-6)


def test_a_hypothesis_that_ended_keeps_its_place_in_the_beam():
    """Beam 2: once [] has ended one row is left, which goes with 2 (.35) and leaves 3 (.25), though 3 would end better."""
    table = {(): {1: 0.4, 2: 0.35, 3: 0.25}, (2,): {1: 0.5, 2: 0.5}, (3,): {1: 1.0}}
    model = TableModel(listed_rows(table, 4), 4)
    settings = SearchSettings(beam=2, nbest=2, length_penalty=0.0, max_length=2, patience=None)
    assert [h.ids for h in find(model, [sentence(100)], settings)[0].hypotheses] == [[], [2]]


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize("vocab_size", [2047, 2561])
def test_a_large_vocabulary_is_searched_as_thoroughly_as_a_small_one(width, vocab_size):
    model, settings = mixed_model(vocab_size, 1), SearchSettings(beam=width, nbest=width, max_length=3)
    numbers = range(100, 104)
    for number, outcome in zip(numbers, find(model, [sentence(n) for n in numbers], settings), strict=True):
        assert not differences(outcome.hypotheses, reference_beam(model, number, settings))


@pytest.mark.parametrize("width", [1, 3])
def test_lengths_can_be_fixed(width):
    model, settings = mixed_model(6, 1), SearchSettings(beam=width, nbest=width)
    requests, lengths = [sentence(n) for n in (100, 103, 104)], [3, 30, 1]  # of kinds without dead ends
    for outcome, length in zip(search(model, requests, settings, SMALL, lengths=lengths), lengths, strict=True):
        assert outcome.hypotheses
        assert {(len(h.ids), h.finish) for h in outcome.hypotheses} == {(length, "length")}


def test_a_source_without_pieces_is_translated_too():
    model, settings = mixed_model(6, 1), SearchSettings(beam=2, nbest=2, max_extra=5)
    empty, other = find(model, [Request(source=[]), sentence(100, 2)], settings)
    assert not differences(empty.hypotheses, reference_beam(model, SMALL.end, settings, source_pieces=0))
    assert not differences(other.hypotheses, reference_beam(model, 100, settings, source_pieces=2))


def covered(model: LookingTableModel, number: int, settings: SearchSettings, pieces: int, limit: int) -> list[Hypothesis]:
    """Every translation with its coverage (Wu et al. 2016, eq. 14), best first.

    score + beta sum_i log(min(sum_j a_ij, 1)), over the source's pieces i, without its end, and the steps j of the translation.
    """
    found = []
    for path in all_paths(model, number, settings, limit):
        looks = sum(look(number, path.pieces[:j], pieces + 1) for j in range(len(path.pieces)))
        penalty = settings.coverage_penalty * sum(math.log(min(float(x), 1.0)) for x in looks[:pieces])
        plain = path.as_hypothesis(model.specials.end, length_penalty(settings))
        found.append(Hypothesis(plain.ids, plain.score + penalty, plain.log_probs, plain.finish))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.0, 0.2, 1.5])
@pytest.mark.parametrize("seed", range(4))
def test_the_coverage_penalty_counts_what_source_pieces_were_looked_at(beta, seed):
    """With room for every translation; three sentences of different lengths in one batch."""
    model = LookingTableModel(random_rows(4, seed, ["plain", "shy", "eos_first", "holes"][seed]), 4)
    settings = SearchSettings(beam=81, nbest=20, coverage_penalty=beta, max_length=4)
    requests = [sentence(100 + i, pieces) for i, pieces in enumerate([3, 1, 5])]
    for request, outcome in zip(requests, find(model, requests, settings), strict=True):
        wanted = covered(model, request.source[0], settings, len(request.source), 4)[:20]
        assert not differences(outcome.hypotheses, wanted)


@pytest.mark.parametrize("width", [1, 4])
def test_coverage_in_a_batch_equals_coverage_alone(width):
    """Sentences leave the batch at different steps and take their coverage along."""
    model = LookingTableModel(random_rows(6, 3, "plain"), 6)
    settings = SearchSettings(beam=width, nbest=width, max_ratio=1.0, max_extra=1, coverage_penalty=0.7)
    requests = [sentence(100 + i, pieces) for i, pieces in enumerate([3, 1, 8, 2, 2, 5, 1, 4])]
    for outcome, request in zip(find(model, requests, settings), requests, strict=True):
        assert not differences(outcome.hypotheses, find(model, [request], settings)[0].hypotheses)


def test_the_coverage_penalty_changes_what_is_chosen():
    model = LookingTableModel(random_rows(5, 9), 5)
    requests = [sentence(100 + i, 4) for i in range(30)]
    settings = SearchSettings(beam=4, max_length=6)
    without, with_it = (
        [o.hypotheses[0].ids for o in find(model, requests, settings.changed(coverage_penalty=beta))] for beta in (0.0, 2.0)
    )
    assert sum(a != b for a, b in zip(without, with_it, strict=True)) > 3


def test_a_source_piece_that_nothing_looked_at_costs_much_but_is_no_error():
    class Blind(LookingTableModel):
        def attention(self, state):
            looks = np.zeros((len(state.prefixes), state.source.shape[1]), np.float32)
            looks[:, 0] = 1
            return looks

    model = Blind(random_rows(5, 2), 5, SMALL)
    found = find(model, [sentence(100, 3)], SearchSettings(coverage_penalty=0.5, max_length=5))[0].hypotheses
    assert len(found) == 1
    assert -1000 < found[0].score < -5
