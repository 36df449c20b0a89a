"""Diverse beam search (Vijayakumar et al. 2016): groups that avoid each other, and scores that remain the model's."""

import numpy as np
import pytest
from slow_search import check_sound, differences, reference_beam
from table_models import TableModel, find, random_rows, sentence

from limelight.decoding.config import SearchSettings

NUMBERS = range(100, 120)


def found(model: TableModel, settings: SearchSettings):
    return find(model, [sentence(number) for number in NUMBERS], settings)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "ties", "holes", "eos_first", "shy"])
@pytest.mark.parametrize(("beam", "groups"), [(4, 2), (6, 3), (4, 4), (6, 2)])
@pytest.mark.parametrize("diversity", [0.0, 0.5, 100.0])
def test_groups_give_distinct_translations_with_the_models_scores(kind, beam, groups, diversity):
    model = TableModel(random_rows(8, 1, kind), 8)
    settings = SearchSettings(beam=beam, nbest=beam, groups=groups, diversity=diversity, max_length=7)
    for number, outcome in zip(NUMBERS, found(model, settings), strict=True):
        check_sound(model, number, outcome, settings, 7)
        assert outcome.hypotheses or kind == "holes"


@pytest.mark.parametrize("diversity", [0.0, 0.5, 100.0])
def test_the_first_group_searches_as_if_it_were_alone(diversity):
    """So what a beam of W/G finds is among the translations, whatever the other groups do."""
    model = TableModel(random_rows(8, 2, "plain"), 8)
    settings = SearchSettings(beam=6, nbest=6, groups=3, diversity=diversity, max_length=7)
    narrow = settings.changed(beam=2, nbest=2, groups=1, patience=None)
    for number, outcome in zip(NUMBERS, found(model, settings), strict=True):
        by_ids = {tuple(h.ids): h for h in outcome.hypotheses}
        for wanted in reference_beam(model, number, narrow):
            assert not differences([by_ids[tuple(wanted.ids)]], [wanted])


def test_without_diversity_all_groups_find_the_same():
    model = TableModel(random_rows(8, 2, "plain"), 8)
    settings = SearchSettings(beam=6, nbest=6, groups=3, diversity=0.0, max_length=7)
    narrow = settings.changed(beam=2, nbest=2, groups=1, patience=None)
    assert found(model, settings) == found(model, narrow)


def test_groups_of_one_that_hate_each_other_begin_with_different_pieces():
    model = TableModel(random_rows(8, 3, "plain"), 8)
    settings = SearchSettings(beam=4, nbest=4, groups=4, diversity=100.0, max_length=7)
    for outcome in found(model, settings):
        assert len(outcome.hypotheses) == 4
        assert len({tuple(h.ids[:1]) for h in outcome.hypotheses}) == 4


def test_each_group_chooses_by_probability_minus_the_cost_of_what_earlier_groups_took():
    """First pieces: .5, .3, .2. The second group takes piece 2 again only if that costs less than log .5 - log .3."""
    table = {2: 0.5, 3: 0.3, 4: 0.2}

    def rows(_, prefix):
        row = np.full(5, -np.inf)
        if not prefix:
            row[list(table)] = np.log(list(table.values()))
        else:
            row[1] = 0.0
        return row.astype(np.float32)

    firsts = {}
    for diversity in (0.4, 0.6):
        settings = SearchSettings(beam=2, nbest=2, groups=2, diversity=diversity, max_length=4)
        firsts[diversity] = [h.ids for h in find(TableModel(rows, 5), [sentence(100)], settings)[0].hypotheses]
    assert firsts == {0.4: [[2]], 0.6: [[2], [3]]}
    settings = SearchSettings(beam=3, nbest=3, groups=3, diversity=0.4, max_length=4)
    of_three = [h.ids for h in find(TableModel(rows, 5), [sentence(100)], settings)[0].hypotheses]
    assert of_three == [[2], [3]]  # for the third group piece 2 costs twice 0.4, since two groups have it


def test_more_diversity_gives_translations_that_share_less():
    model = TableModel(random_rows(8, 4, "shy"), 8)

    def shared(diversity: float) -> float:
        settings = SearchSettings(beam=4, nbest=4, groups=4, diversity=diversity, max_length=8)
        same = places = 0
        for outcome in found(model, settings):
            for a in outcome.hypotheses:
                for b in outcome.hypotheses:
                    pairs = list(zip(a.ids, b.ids, strict=False)) if a is not b else []
                    places += len(pairs)
                    same += sum(x == y for x, y in pairs)
        return same / max(places, 1)

    assert shared(2.0) < 0.5 * shared(0.1)


def test_groups_in_a_batch_equal_groups_alone():
    model = TableModel(random_rows(8, 5, "plain"), 8)
    settings = SearchSettings(beam=6, nbest=6, groups=3, max_ratio=1.0, max_extra=2)
    requests = [sentence(100 + i, pieces) for i, pieces in enumerate([3, 1, 8, 2, 5])]
    assert find(model, requests, settings) == [find(model, [request], settings)[0] for request in requests]
