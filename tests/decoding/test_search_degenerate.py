"""Models that give no numbers, never end, or end at once: every answer is true, and there is none when there is none."""

import math
import time

import numpy as np
import pytest
from slow_search import check_sound, differences, reference_beam
from table_models import SMALL, TableModel, find, listed_rows, random_rows, sentence

from limelight.decoding.config import Sampling, SearchSettings

NUMBERS = range(100, 107)
WAYS = {
    "greedy": SearchSettings(beam=1, max_length=12),
    "beam": SearchSettings(beam=4, nbest=4, max_length=12),
    "groups": SearchSettings(beam=4, nbest=4, groups=2, max_length=12),
    "samples": SearchSettings(nbest=3, sampling=Sampling(), max_length=12),
    "top samples": SearchSettings(nbest=3, sampling=Sampling(top_k=4, top_p=0.9), max_length=12),
}
BAD_ROWS = {
    "nan": np.full(6, np.nan, np.float32),
    "one nan": np.array([-2, -2, np.nan, -2, -2, -2], np.float32),
    "inf": np.array([-2, -2, -2, np.inf, -2, -2], np.float32),
    "all inf": np.full(6, np.inf, np.float32),
    "all -inf": np.full(6, -np.inf, np.float32),
    "only pad": np.array([0, *[-np.inf] * 5], np.float32),
}

every_way = pytest.mark.parametrize("way", WAYS)


def spoiled(bad: np.ndarray, when) -> TableModel:
    """A good model, but for the rows where when(sentence, prefix)."""
    good = random_rows(6, 8, "shy")
    return TableModel(lambda number, prefix: bad if when(number, prefix) else good(number, prefix), 6)


@every_way
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_scores_that_are_no_numbers_give_no_translation(way, bad):
    model = spoiled(BAD_ROWS[bad], lambda number, prefix: True)
    outcomes = find(model, [sentence(n) for n in NUMBERS], WAYS[way])
    assert all(outcome.invalid_scores and outcome.hypotheses == [] for outcome in outcomes)


@pytest.mark.slow
@every_way
@pytest.mark.parametrize("bad", BAD_ROWS)
@pytest.mark.parametrize("step", [0, 1, 5])
def test_one_broken_sentence_does_not_disturb_its_neighbours(way, bad, step):
    """Broken at the first step, the second, or a late one."""
    model = spoiled(BAD_ROWS[bad], lambda number, prefix: number == 103 and len(prefix) >= step)
    requests = [sentence(n) for n in NUMBERS]
    outcomes = find(model, requests, WAYS[way])
    assert [outcome.invalid_scores for outcome in outcomes] == [number == 103 for number in NUMBERS]
    whole = find(spoiled(BAD_ROWS[bad], lambda number, prefix: False), requests, WAYS[way])
    assert [o for n, o in zip(NUMBERS, outcomes, strict=True) if n != 103] == [o for n, o in zip(NUMBERS, whole, strict=True) if n != 103]


@every_way
@pytest.mark.parametrize("bad", ["nan", "one nan", "inf"])
def test_every_sentence_may_break_at_its_own_step(way, bad):
    model = spoiled(BAD_ROWS[bad], lambda number, prefix: len(prefix) >= number - 100)
    assert all(o.invalid_scores for o in find(model, [sentence(n) for n in NUMBERS], WAYS[way]))


@pytest.mark.parametrize("way", ["beam", "groups"])
@pytest.mark.parametrize("bad", ["nan", "one nan", "inf", "all inf"])
def test_one_hypothesis_without_numbers_spoils_its_sentence_if_it_is_reached(way, bad):
    """The beam holds 2 and 3 after one step; what the model would say after 4 is never asked."""
    table = {(): {2: 0.5, 3: 0.49, 4: 0.01}} | {(2,) * n: {2: 0.6, 1: 0.4} for n in range(1, 12)}
    table |= {(3, *(2,) * n): {2: 0.6, 1: 0.4} for n in range(12)}
    good = listed_rows(table, 6)
    settings = WAYS[way].changed(beam=2, nbest=2, diversity=0.1)
    for broken, invalid in (((3,), True), ((4,), False)):
        model = TableModel(lambda number, prefix, broken=broken: BAD_ROWS[bad] if prefix == broken else good(number, prefix), 6)
        assert find(model, [sentence(100)], settings)[0].invalid_scores == invalid


@every_way
def test_a_translation_found_has_only_finite_scores(way):
    """Most pieces are impossible after most prefixes."""
    generator = np.random.default_rng(1)
    table = np.where(generator.random((997, 6)) < 0.7, -np.inf, -1.5).astype(np.float32)
    model = TableModel(lambda number, prefix: table[hash((number, *prefix)) % 997], 6)
    outcomes = find(model, [sentence(n) for n in range(100, 160)], WAYS[way])
    assert {outcome.invalid_scores for outcome in outcomes} == {True, False}
    for number, outcome in zip(range(100, 160), outcomes, strict=True):
        for hypothesis in outcome.hypotheses:
            assert all(map(math.isfinite, [hypothesis.score, *hypothesis.log_probs]))
        check_sound(model, number, outcome, WAYS[way], 12)


def test_a_beam_leaves_dead_ends_and_finds_the_only_way_out():
    """After 2 nothing is possible, though 2 looks best; only 3, 3 ends."""
    table = {(): {2: 0.9, 3: 0.1}, (3,): {3: 0.5, 2: 0.5}, (3, 3): {1: 1.0}}
    model = TableModel(listed_rows(table, 4), 4)
    found = find(model, [sentence(100)], SearchSettings(beam=2, nbest=2, max_length=6))[0].hypotheses
    assert [h.ids for h in found] == [[3, 3]]
    assert not differences(found, reference_beam(model, 100, SearchSettings(beam=2, nbest=2, max_length=6)))
    assert find(model, [sentence(100)], SearchSettings(beam=1, max_length=6))[0].invalid_scores


@pytest.mark.slow
@every_way
def test_a_model_that_never_ends_is_cut_at_the_limit(way):
    rows = random_rows(6, 2)

    def endless(number, prefix):
        row = rows(number, prefix).copy()
        row[1] = -np.inf
        return row

    began = time.perf_counter()
    outcomes = find(TableModel(endless, 6), [sentence(n, 80) for n in NUMBERS], WAYS[way].changed(max_length=256))
    assert time.perf_counter() - began < 2
    assert all(h.finish == "length" and len(h.ids) == 256 for o in outcomes for h in o.hypotheses)
    assert all(o.hypotheses for o in outcomes)


@every_way
def test_a_model_that_ends_at_once_gives_the_empty_translation(way):
    row = np.array([-np.inf, 0.0, *[-np.inf] * 4], np.float32)
    for outcome in find(TableModel(lambda number, prefix: row, 6), [sentence(n) for n in NUMBERS], WAYS[way]):
        assert outcome.hypotheses[0].ids == []
        assert outcome.hypotheses[0].finish == "eos"
        assert outcome.hypotheses[0].score == 0.0
        assert len(outcome.hypotheses) == (3 if "samples" in way else 1)


@every_way
def test_a_model_that_says_one_piece_only_repeats_it_to_the_limit(way):
    row = np.array([*[-np.inf] * 4, 0.0, -np.inf], np.float32)
    for outcome in find(TableModel(lambda number, prefix: row, 6), [sentence(n) for n in NUMBERS], WAYS[way]):
        assert {tuple(h.ids) for h in outcome.hypotheses} == {(4,) * 12}
        assert {h.finish for h in outcome.hypotheses} == {"length"}


@every_way
def test_a_constant_model_that_may_not_repeat_itself_has_no_translation(way):
    row = np.array([*[-np.inf] * 4, 0.0, -np.inf], np.float32)
    settings = WAYS[way].changed(no_repeat_ngram=2)
    assert all(o.invalid_scores for o in find(TableModel(lambda number, prefix: row, 6), [sentence(100)], settings))


@every_way
def test_scores_far_from_zero_stay_exact(way):
    row = np.array([-np.inf, -1e4, -1e4, -2e4, -3e4, -np.inf], np.float32)
    outcome = find(TableModel(lambda number, prefix: row, 6), [sentence(100)], WAYS[way])[0]
    assert outcome.hypotheses
    for hypothesis in outcome.hypotheses:
        assert all(log_prob in (-1e4, -2e4, -3e4) for log_prob in hypothesis.log_probs)


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_what_a_model_says_of_a_sentence_that_is_over_does_not_matter(bad):
    """It waits in the batch until more are done, and what is computed for it meanwhile is nobody's."""
    end = SMALL.end
    sure = np.where(np.arange(6) == end, math.log(0.9), math.log(0.02)).astype(np.float32)
    good = random_rows(6, 8, "shy")

    def rows(number: int, prefix: tuple[int, ...]) -> np.ndarray:
        if number != 100:
            return good(number, prefix)
        return BAD_ROWS[bad] if len(prefix) >= 2 else sure

    settings = SearchSettings(beam=3, max_extra=10)
    (alone,) = find(TableModel(rows, 6), [sentence(100)], settings)
    among = find(TableModel(rows, 6), [sentence(100 + i) for i in range(6)], settings)
    assert not alone.invalid_scores
    assert among[0] == alone
