"""What may come next: lengths, suppressed pieces, n-grams that may not come again, and given beginnings."""

import math

import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from slow_search import check_sound, differences, forced_log_probs, length_penalty, reference_beam, repeats
from table_models import SMALL, TableModel, find, listed_rows, random_rows, sentence

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Specials
from limelight.errors import ConfigError, DataError

some = example_settings(derandomize=True, deadline=None)
ALL_DIFFERENT = Specials(pad=0, unknown=1, start=2, end=3)
NUMBERS = range(100, 108)


def best(model: TableModel, settings: SearchSettings, numbers: range = NUMBERS):
    return [outcome.hypotheses[0] for outcome in find(model, [sentence(n) for n in numbers], settings)]


@pytest.mark.slow
@some
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["plain", "holes", "eos_first", "shy"]),
    width=st.integers(1, 5),
    min_length=st.integers(0, 6),
    suppress=st.sets(st.integers(4, 7), max_size=3),
    allow_unknown=st.booleans(),
    no_repeat_ngram=st.sampled_from([None, 1, 2, 3]),
    prefixes=st.lists(st.lists(st.integers(4, 8), max_size=4), min_size=1, max_size=5),
)
def test_all_rules_together_equal_the_slow_search(seed, kind, width, min_length, suppress, allow_unknown, no_repeat_ngram, prefixes):
    """Sentences with different beginnings in one batch."""
    model = TableModel(random_rows(9, seed, kind, ALL_DIFFERENT), 9, ALL_DIFFERENT)
    settings = SearchSettings(
        beam=width,
        nbest=width,
        min_length=min_length,
        max_length=8,
        suppress=tuple(suppress),
        allow_unknown=allow_unknown,
        no_repeat_ngram=no_repeat_ngram,
    )
    requests = [sentence(100 + i, prefix=prefix) for i, prefix in enumerate(prefixes)]
    for request, outcome in zip(requests, find(model, requests, settings), strict=True):
        number = request.source[0]
        wanted = reference_beam(model, number, settings, prefix=request.prefix)
        if all(math.isfinite(x) for h in wanted for x in h.log_probs):  # a beginning may be impossible
            assert not differences(outcome.hypotheses, wanted)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("kind", ["plain", "eos_first", "holes"])
def test_no_translation_ends_before_its_shortest_length(width, kind):
    model = TableModel(random_rows(6, 0, kind), 6)
    settings = SearchSettings(beam=width, nbest=width, min_length=5, max_length=9)
    for outcome in find(model, [sentence(n) for n in NUMBERS], settings):
        assert all(len(h.ids) >= 5 for h in outcome.hypotheses)
    assert any(len(h.ids) == 5 for h in best(TableModel(random_rows(6, 0, "eos_first"), 6), settings))


@pytest.mark.parametrize("width", [1, 4])
def test_the_limit_follows_the_source_and_counts_the_end(width):
    model = TableModel(random_rows(5, 0, "shy"), 5)
    settings = SearchSettings(beam=width, max_ratio=2.0, max_extra=1, max_length=10)
    pieces = [1, 2, 3, 4, 9]
    outcomes = find(model, [sentence(100 + i, count) for i, count in enumerate(pieces)], settings)
    assert [len(outcome.hypotheses[0].log_probs) for outcome in outcomes] == [3, 5, 7, 9, 10]


@pytest.mark.parametrize("width", [1, 3])
def test_an_end_in_the_last_place_is_an_end(width):
    table = {(): {2: 1.0}, (2,): {2: 1.0}, (2, 2): {1: 0.7, 2: 0.3}}
    found = find(TableModel(listed_rows(table, 3), 3), [sentence(100)], SearchSettings(beam=width, nbest=width, max_length=3))
    assert [(h.ids, h.finish) for h in found[0].hypotheses] == [([2, 2], "eos"), ([2, 2, 2], "length")][:width]


@pytest.mark.parametrize("width", [1, 4])
def test_special_and_suppressed_pieces_never_come_out(width):
    """The model loves them: they take nearly all probability."""
    plain = random_rows(9, 1, "plain", ALL_DIFFERENT)

    def rows(number, prefix):
        row = plain(number, prefix).copy()
        row[[0, 1, 2, 4]] += 20
        return row

    model = TableModel(rows, 9, ALL_DIFFERENT)
    settings = SearchSettings(beam=width, nbest=width, suppress=(4, 7), max_length=12)
    seen = {piece for o in find(model, [sentence(n) for n in NUMBERS], settings) for h in o.hypotheses for piece in h.ids}
    assert seen == {5, 6, 8}
    open_to_all = settings.changed(allow_unknown=True, suppress=())
    seen = {piece for o in find(model, [sentence(n) for n in NUMBERS], open_to_all) for h in o.hypotheses for piece in h.ids}
    assert {1, 4} <= seen and not seen & {0, 2, 3}


def test_a_model_without_an_unknown_piece_may_use_every_id():
    model = TableModel(random_rows(3, 1, "shy"), 3, SMALL)
    assert {piece for h in best(model, SearchSettings(max_length=4)) for piece in h.ids} == {2}


def test_the_start_piece_may_be_the_end_piece():
    """As in M2M100, whose decoder begins with the end."""
    specials = Specials(pad=0, unknown=None, start=1, end=1)
    model = TableModel(random_rows(5, 3, "plain", specials), 5, specials)
    settings = SearchSettings(beam=3, nbest=3, max_length=7)
    outcomes = find(model, [sentence(n) for n in NUMBERS], settings)
    finishes = set()
    for number, outcome in zip(NUMBERS, outcomes, strict=True):
        check_sound(model, number, outcome, settings, 7)
        finishes |= {h.finish for h in outcome.hypotheses}
        assert len(outcome.hypotheses) == 3
    assert "eos" in finishes


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_sequence_of_pieces_comes_twice(width, n):
    model = TableModel(random_rows(12, 2, "shy"), 12)
    settings = SearchSettings(beam=width, nbest=width, no_repeat_ngram=n, max_length=11 if n == 1 else 30, max_extra=30)
    free = settings.changed(no_repeat_ngram=None, max_length=30)
    for outcome in find(model, [sentence(n) for n in NUMBERS], settings):
        assert len(outcome.hypotheses) == width
        assert not any(repeats(h.ids, n) for h in outcome.hypotheses)
    assert all(repeats(h.ids, n) for h in best(model, free) if n < 3)


def test_when_no_piece_is_left_that_did_not_come_before_the_end_comes():
    """Three pieces, none twice: after them only the end is possible, however improbable."""
    model = TableModel(random_rows(5, 2, "shy"), 5)
    for hypothesis in best(model, SearchSettings(beam=1, no_repeat_ngram=1, max_length=20)):
        assert sorted(hypothesis.ids) == [2, 3, 4]
        assert hypothesis.finish == "eos"


@pytest.mark.parametrize("width", [1, 4])
def test_a_given_beginning_is_kept_and_counted(width):
    model = TableModel(random_rows(8, 4), 8)
    settings = SearchSettings(beam=width, nbest=width, max_length=12)
    prefixes = [[], [2], [3, 3, 3], [7, 2, 4, 5], [6] * 11, [2, 3]]
    requests = [sentence(100 + i, prefix=prefix) for i, prefix in enumerate(prefixes)]
    for request, outcome in zip(requests, find(model, requests, settings), strict=True):
        assert outcome.hypotheses
        for h in outcome.hypotheses:
            assert h.ids[: len(request.prefix)] == list(request.prefix)
            assert h.log_probs == pytest.approx(forced_log_probs(model, request.source[0], h), abs=1e-5)
            assert h.score == pytest.approx(math.fsum(h.log_probs) / length_penalty(settings)(len(h.log_probs)), abs=1e-5)


@pytest.mark.parametrize("width", [1, 4])
def test_a_beginning_longer_than_the_limit_is_kept_whole(width):
    model = TableModel(random_rows(8, 4), 8)
    settings = SearchSettings(beam=width, max_length=3)
    long, short = find(model, [sentence(100, prefix=[2, 3, 4, 5, 6, 7]), sentence(101)], settings)
    assert long.hypotheses[0].ids[:6] == [2, 3, 4, 5, 6, 7]
    assert len(short.hypotheses[0].log_probs) <= 3


@pytest.mark.parametrize("width", [1, 4])
def test_a_beginning_wins_over_the_other_rules(width):
    """Suppressed, unknown and repeated pieces are taken if they are asked for."""
    model = TableModel(random_rows(8, 4, "plain", ALL_DIFFERENT), 8, ALL_DIFFERENT)
    settings = SearchSettings(beam=width, suppress=(5,), no_repeat_ngram=2, max_length=12)
    found = find(model, [sentence(100, prefix=[5, 1, 6, 6, 6])], settings)[0].hypotheses[0]
    assert found.ids[:5] == [5, 1, 6, 6, 6]
    assert not {5, 1} & set(found.ids[5:])


def test_ids_that_the_model_does_not_have_cannot_be_suppressed():
    model = TableModel(random_rows(6, 1), 6)
    assert best(model, SearchSettings(max_length=6, suppress=(5,)))
    with pytest.raises(DataError, match="piece 6 is asked for or suppressed, but the model has pieces 0 to 5"):
        best(model, SearchSettings(max_length=6, suppress=(6,)))
    with pytest.raises(ConfigError, match="suppress"):
        SearchSettings(suppress=(-1,))


@pytest.mark.parametrize("width", [1, 4])
def test_the_fewest_pieces_are_kept_also_beyond_what_the_source_would_allow(width):
    """One source piece allows three and two more; ten are asked for."""
    model = TableModel(random_rows(6, 2, "shy"), 6)
    settings = SearchSettings(beam=width, min_length=10, max_ratio=3.0, max_extra=2)
    (outcome,) = find(model, [sentence(100)], settings)
    assert len(outcome.hypotheses[0].ids) >= 10
