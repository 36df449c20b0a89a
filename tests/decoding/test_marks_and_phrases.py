"""Marks and phrases together: both need room, and a phrase may hold marks."""

import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from slow_marks import adverse_rows, blind_rows, check_marked
from slow_search import differences
from table_models import TableModel, find, random_rows, sentence

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Specials

SPECIALS = Specials(pad=0, unknown=1, start=2, end=3)
V = 13
RESERVED = tuple(range(8, V))
KINDS = ["plain", "ties", "eos_first", "shy"]
ADVERSE = ["shuns its marks", "one piece for ever", "ends at once", "only marks, the last first"]

some = example_settings(derandomize=True, deadline=None)


def table(kind: str = "plain", seed: int = 0) -> TableModel:
    rows = adverse_rows(kind, RESERVED, V, 3) if kind in ADVERSE else random_rows(V, seed, kind, SPECIALS)
    return TableModel(rows, V, SPECIALS)


@pytest.mark.slow
@some
@given(
    kind=st.sampled_from(KINDS + ADVERSE),
    seed=st.integers(0, 1000),
    width=st.sampled_from([1, 2, 4]),
    wanted=st.lists(
        st.tuples(
            st.lists(st.lists(st.integers(4, 6), min_size=1, max_size=3), max_size=3),
            st.integers(0, 5),
            st.integers(0, 2),
            st.lists(st.sampled_from([4, 5, 8]), max_size=3, unique=True),
        ),
        min_size=1,
        max_size=4,
    ),
    max_length=st.sampled_from([3, 9, 18]),
    no_repeat_ngram=st.sampled_from([None, None, 1, 2]),
)
def test_every_phrase_and_every_mark_occur(kind, seed, width, wanted, max_length, no_repeat_ngram):
    """Phrases that overlap and repeat themselves, between tags that must be closed, with hardly any room."""
    model = table(kind, seed)
    settings = SearchSettings(beam=width, nbest=width, max_length=max_length, no_repeat_ngram=no_repeat_ngram, suppress=RESERVED)
    batch = []
    for i, (phrases, marks, pairs, prefix) in enumerate(wanted):
        once = RESERVED[:marks]
        begin = [piece for piece in prefix if piece != 8 or 8 in once]
        nested = list(zip(once[::2], once[1::2], strict=False))[:pairs]
        single = tuple(mark for mark in once if not any(mark in pair for pair in nested))
        batch.append(sentence(100 + i, phrases=phrases, once=once, nested=nested, ordered=[single], prefix=begin))
    for request, outcome in zip(batch, find(model, batch, settings), strict=True):
        if outcome.hypotheses or no_repeat_ngram is None:  # few pieces, none of them twice: all may be forbidden
            check_marked(model, request, outcome, settings)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("kind", KINDS + ADVERSE)
@pytest.mark.parametrize("max_length", [3, 14, 30])
def test_a_phrase_may_hold_marks(kind, width, max_length):
    """Once it has taken a mark, it has to go on to its end: broken off, it would have to take the mark again."""
    model, settings = table(kind, 2), SearchSettings(beam=width, nbest=width, max_length=max_length, suppress=RESERVED)
    batch = [
        sentence(100, once=(8, 9), phrases=[[4, 8, 5, 6]]),
        sentence(101, once=RESERVED, nested=[(8, 9), (10, 11)], phrases=[[8, 4, 9], [5, 12, 4, 4]]),
        sentence(102, once=(8, 9), nested=[(9, 8)], phrases=[[9, 8]]),
        sentence(103, once=(8,), phrases=[[4, 4, 8, 4, 4], [4, 4, 4]]),
        sentence(104, once=(8, 10), phrases=[[4, 8, 5], [4, 8, 5]]),
        sentence(105, once=RESERVED, ordered=[(12, 9, 8)], phrases=[[4, 5], [6]]),
    ]
    for request, outcome in zip(batch, find(model, batch, settings), strict=True):
        check_marked(model, request, outcome, settings)


def test_marks_with_phrases_in_a_batch_equal_those_alone():
    model, settings = table("plain", 5), SearchSettings(beam=4, nbest=4, max_ratio=1.0, max_extra=6, suppress=RESERVED)
    wanted = [
        ([], ()),
        ([[4, 5]], (8,)),
        ([[6], [7, 4]], ()),
        ([[5, 5, 5]], RESERVED),
        ([], (9, 8)),
        ([[8, 4]], (8, 9)),
    ]
    batch = [sentence(100 + i, 1 + i % 3, phrases=p, once=once) for i, (p, once) in enumerate(wanted)]
    for request, outcome in zip(batch, find(model, batch, settings), strict=True):
        alone = find(model, [request], settings)[0]
        assert outcome.hypotheses and not differences(outcome.hypotheses, alone.hypotheses)


def test_a_model_that_ignores_marks_and_phrases_does_not_ramble():
    """Texts that have their phrase and put off their marks would crowd out those that have both."""
    model = TableModel(blind_rows(RESERVED, V), V, SPECIALS)
    settings = SearchSettings(beam=4, max_length=40, max_extra=40, suppress=RESERVED)
    (outcome,) = find(model, [sentence(100, once=(9, 8), nested=[(8, 9)], phrases=[[4, 5]])], settings)
    assert [piece for piece in outcome.hypotheses[0].ids if piece not in RESERVED] == [4, 5, 6]
    assert outcome.hypotheses[0].finish == "eos"
