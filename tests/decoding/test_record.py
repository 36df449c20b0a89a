"""What a search notes when it is asked to: the same outcomes, and the best continuations that it did not take."""

import itertools

import numpy as np
import pytest
from table_models import TableModel, find, random_rows, sentence

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.record import CUT, Record
from limelight.decoding.search import search

SEARCHES = {
    "greedy": SearchSettings(beam=1, max_length=7),
    "patience": SearchSettings(beam=3, nbest=3, max_length=7),
    "classical": SearchSettings(beam=3, nbest=2, patience=None, max_length=7),
    "groups": SearchSettings(beam=4, nbest=4, groups=2, max_length=7),
}
NUMBERS = range(100, 108)


def noted(settings: SearchSettings, seed: int = 0, kind: str = "plain", numbers=NUMBERS, cut: int = CUT, **more):
    record = Record(cut)
    model = TableModel(random_rows(6, seed, kind), 6)
    outcomes = search(model, [sentence(n, **more) for n in numbers], settings, model.specials, record=record)
    return model, outcomes, record


@pytest.mark.slow
@pytest.mark.parametrize("settings", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("kind", ["plain", "ties", "holes", "eos_first", "shy"])
def test_noting_leaves_every_outcome_as_it_is(settings, kind):
    for seed in range(4):
        model, outcomes, record = noted(settings, seed, kind)
        assert outcomes == find(model, [sentence(n) for n in NUMBERS], settings)
        assert record.steps and record.settings == settings and record.specials == model.specials


@pytest.mark.parametrize("name", ["greedy", "patience", "classical"])
def test_what_is_cut_are_the_best_continuations_that_were_not_taken(name):
    """Worked out again for every step from the table: pieces 0 and 1 are start and end of this model, 0 never comes."""
    settings, compared = SEARCHES[name], 0
    for seed, cut in itertools.product(range(6), [2, 5]):
        model, _, record = noted(settings, seed, "plain", [100], cut)
        rows = {0: ((), 0.0)}  # row of the beam: its pieces and their sum
        for step in record.steps:
            options = {}
            for row, (pieces, total) in rows.items():
                for piece, log_prob in enumerate(model.rows(100, pieces)):
                    if piece != model.specials.pad:
                        options[row, piece] = total + log_prob
            alive = np.flatnonzero(step.taken.sums[0] > -np.inf)
            taken = {(int(step.taken.parents[0, i]), int(step.taken.tokens[0, i])): i for i in alive}
            assert all(np.isclose(step.taken.sums[0, i], options[key]) for key, i in taken.items())
            left = sorted((total for key, total in options.items() if key not in taken), reverse=True)[:cut]
            got = [total for total in step.cut.sums[0] if total > -np.inf]
            assert np.allclose(got, left) and len(got) == len(left)
            for i, total in enumerate(got):
                key = int(step.cut.parents[0, i]), int(step.cut.tokens[0, i])
                assert key not in taken and np.isclose(options[key], total)
                assert np.isclose(step.cut.log_probs[0, i], model.rows(100, rows[key[0]][0])[key[1]])
                compared += 1
            rows = {
                i: ((*rows[row][0], piece), float(step.taken.sums[0, i]))
                for (row, piece), i in taken.items()
                if i < settings.beam and not step.done[0, i]
            }
    assert compared > 50


@pytest.mark.slow
def test_a_sentence_that_is_over_is_noted_no_more_whatever_its_neighbours_do():
    for settings in SEARCHES.values():
        _, _, together = noted(settings)
        for place, number in enumerate(NUMBERS):
            _, _, alone = noted(settings, numbers=[number])
            own = [step for step in together.steps if place in step.number]
            assert [step.step for step in own] == [step.step for step in alone.steps]
            for here, there in zip(own, alone.steps, strict=True):
                at = list(here.number).index(place)
                np.testing.assert_array_equal(here.taken.tokens[at], there.taken.tokens[0])
                np.testing.assert_array_equal(here.done[at], there.done[0])
                np.testing.assert_array_equal(here.cut.tokens[at], there.cut.tokens[0])


def test_inside_a_prefix_nothing_is_cut():
    for settings in SEARCHES.values():
        _, outcomes, record = noted(settings, numbers=[100], prefix=[3, 2])
        assert outcomes[0].hypotheses[0].ids[:2] == [3, 2]
        for step in record.steps[:2]:
            assert not (step.cut.sums > -np.inf).any()
        assert (record.steps[2].cut.sums > -np.inf).any()


def test_sentences_with_phrases_beside_those_without_keep_their_numbers():
    """They are searched apart, each counted from 0."""
    model, record = TableModel(random_rows(6, 1, "plain"), 6), Record()
    requests = [sentence(100, phrases=[[4, 3]]), sentence(101), sentence(102, phrases=[[5]]), sentence(103)]
    settings = SearchSettings(beam=3, max_length=7)
    outcomes = search(model, requests, settings, model.specials, record=record)
    assert outcomes == find(model, requests, settings)
    for place, outcome in enumerate(outcomes):
        first = next(step for step in record.steps if place in step.number)
        at = list(first.number).index(place)
        assert [*outcome.hypotheses[0].ids, model.specials.end][0] in first.taken.tokens[at]
        expected = model.rows(requests[place].source[0], ())
        assert np.isclose(first.taken.log_probs[at, 0], expected[first.taken.tokens[at, 0]])


def test_drawing_notes_nothing():
    _, outcomes, record = noted(SearchSettings(sampling=Sampling(), nbest=2, max_length=7))
    assert outcomes and not record.steps


def test_scores_that_are_no_numbers_are_not_noted_as_branches():
    model, record = TableModel(lambda _, prefix: np.full(6, np.nan, np.float32), 6), Record()
    for settings in (SEARCHES["greedy"], SEARCHES["patience"]):
        assert search(model, [sentence(100)], settings, model.specials, record=record)[0].invalid_scores
    assert not any((step.cut.sums > -np.inf).any() for step in record.steps)
