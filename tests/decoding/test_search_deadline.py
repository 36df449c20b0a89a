"""A search ends within a step of the moment at which nobody waits for it any more, and others in its batch do not notice."""

import pytest
from table_models import TableModel, find, random_rows, sentence

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.steps import Specials

SPECIALS = Specials(pad=0, unknown=1, start=2, end=3)
V = 9
PLAIN = SearchSettings(beam=4, nbest=2, max_length=30)
WAYS = {
    "greedy": (SearchSettings(beam=1, max_length=30), {}),
    "beam": (PLAIN, {}),
    "classical beam": (PLAIN.changed(patience=None), {}),
    "groups": (PLAIN.changed(groups=2), {}),
    "sampling": (PLAIN.changed(sampling=Sampling()), {}),
    "phrases": (PLAIN, {"phrases": [[4, 5, 6], [7, 8]]}),
    "marks": (PLAIN, {"once": [7, 8]}),
}


def table() -> TableModel:
    return TableModel(random_rows(V, 3, "shy", SPECIALS), V, SPECIALS)


@pytest.mark.parametrize("way", WAYS)
def test_a_search_that_nobody_waits_for_ends_with_the_step_it_is_at(way):
    model, (settings, more) = table(), WAYS[way]
    requests = [sentence(100 + i, is_over=lambda: model.steps >= 3, **more) for i in range(4)]
    outcomes = find(model, requests, settings)
    assert model.steps == 3
    assert all(each.is_late and not each.hypotheses and not each.invalid_scores for each in outcomes)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_over_leaves_the_batch_and_the_others_find_the_same_bits(way):
    model, (settings, more) = table(), WAYS[way]
    alone = find(model, [sentence(100 + i, **more) for i in range(6)], settings)
    model.steps = 0
    over = {i: (lambda: model.steps >= 3) if i % 2 else (lambda: False) for i in range(6)}
    together = find(model, [sentence(100 + i, is_over=over[i], **more) for i in range(6)], settings)
    assert [each.is_late for each in together] == [False, True] * 3
    assert together[::2] == alone[::2]


@pytest.mark.parametrize("way", WAYS)
def test_a_deadline_that_is_not_reached_changes_nothing(way):
    model, (settings, more) = table(), WAYS[way]
    looks = []
    watched = [sentence(100 + i, is_over=lambda: bool(looks.append(1)), **more) for i in range(4)]
    assert find(model, watched, settings) == find(model, [sentence(100 + i, **more) for i in range(4)], settings)
    assert len(looks) >= 8, "it was looked at, though"


def test_what_was_over_before_it_began_is_not_even_read():
    model = table()
    assert find(model, [sentence(100, is_over=lambda: True)], PLAIN)[0].is_late
    assert model.steps == 0
