"""Phrases that must occur do occur, in every translation, whatever the model thinks of them; and its scores are told as they are."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from slow_search import check_sound, differences, exhaustive, ngrams
from table_models import TableModel, find, random_rows, sentence

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.constraints import Phrases
from limelight.decoding.steps import Outcome, Request, Specials
from limelight.errors import ConfigError, DataError

KINDS = ["plain", "ties", "eos_first", "shy"]
WIDTHS = [1, 2, 4, 8]
SPECIALS = Specials(pad=0, unknown=1, start=2, end=3)
V = 9  # ids 4 to 8 are pieces

some = example_settings(derandomize=True, deadline=None)


def occurs(phrase, ids) -> bool:
    n = len(phrase)
    return any(list(ids[i : i + n]) == list(phrase) for i in range(len(ids) - n + 1))


def table(kind: str = "plain", seed: int = 0) -> TableModel:
    return TableModel(random_rows(V, seed, kind, SPECIALS), V, SPECIALS)


def room(request: Request, settings: SearchSettings) -> int:
    needed = len(request.prefix) + sum(map(len, request.phrases)) + 1
    return max(settings.limit(len(request.source)), needed)


def check_constrained(model: TableModel, request: Request, outcome: Outcome, settings: SearchSettings) -> None:
    number = request.source[0]
    assert outcome.hypotheses, f"no translation with {request.phrases}"
    for h in outcome.hypotheses:
        for phrase in request.phrases:
            assert occurs(phrase, h.ids), f"{phrase} does not occur in {h.ids} ({h.finish})"
        assert h.ids[: len(request.prefix)] == list(request.prefix)
    check_sound(model, number, outcome, settings, room(request, settings))


phrases_of = st.lists(st.lists(st.integers(4, 6), min_size=1, max_size=4), max_size=4)


@pytest.mark.slow
@some
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 1000),
    width=st.sampled_from(WIDTHS),
    phrases=st.lists(phrases_of, min_size=1, max_size=5),
    max_length=st.sampled_from([3, 8, 20]),
    data=st.data(),
)
def test_every_phrase_occurs_in_every_translation(kind, seed, width, phrases, max_length, data):
    """Phrases of three letters share beginnings, overlap, contain each other and repeat themselves all the time."""
    model = table(kind, seed)
    settings = SearchSettings(
        beam=width,
        nbest=data.draw(st.integers(1, width)),
        max_length=max_length,
        min_length=data.draw(st.integers(0, max_length - 1)),
        length_penalty=data.draw(st.sampled_from([0.0, 0.6, 1.0])),
    )
    prefixes = data.draw(st.lists(st.lists(st.integers(4, 6), max_size=3), min_size=len(phrases), max_size=len(phrases)))
    requests = [sentence(100 + i, phrases=wanted, prefix=prefix) for i, (wanted, prefix) in enumerate(zip(phrases, prefixes, strict=True))]
    for request, outcome in zip(requests, find(model, requests, settings), strict=True):
        check_constrained(model, request, outcome, settings)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "phrases",
    [
        pytest.param([[4, 4, 5], [4, 5]], id="one inside the other's end"),
        pytest.param([[4, 5, 6], [4, 5]], id="the same beginning"),
        pytest.param([[4, 5, 6], [4, 5, 7], [4, 8]], id="three with the same beginning"),
        pytest.param([[4, 5], [5, 4]], id="overlapping both ways"),
        pytest.param([[4, 5, 4], [4, 5, 4]], id="the same twice"),
        pytest.param([[4, 4, 4, 4], [4, 4], [4]], id="one piece again and again"),
        pytest.param([[4, 5, 4, 5, 6]], id="its own beginning inside it"),
        pytest.param([[4, 5, 4, 6], [5, 4, 5]], id="false starts"),
        pytest.param([[8], [7], [6], [5], [4]], id="every piece"),
        pytest.param([[4, 5, 6, 7, 8, 4, 6, 8, 5, 7, 4, 7, 5, 8, 6]], id="longer than the limit"),
        pytest.param([[4, 5, 6]] * 6 + [[6, 5, 4]] * 6, id="many"),
        pytest.param([[6, 6], [6, 6, 6, 5], [5, 6, 6]], id="repeated pieces"),
    ],
)
def test_phrases_that_get_into_each_others_way_all_occur(width, kind, phrases):
    model, settings = table(kind, 1), SearchSettings(beam=width, nbest=width, max_length=10)
    requests = [sentence(100 + i, phrases=phrases) for i in range(3)] + [sentence(110)]
    outcomes = find(model, requests, settings)
    for request, outcome in zip(requests, outcomes, strict=True):
        check_constrained(model, request, outcome, settings)
    if kind != "ties":  # a neighbour without phrases is found as if it were alone; of equals, it may be another
        assert not differences(outcomes[-1].hypotheses, find(model, requests[-1:], settings)[0].hypotheses)


@pytest.mark.parametrize("width", [1, 4])
def test_a_beginning_may_hold_a_phrase_or_part_of_it(width):
    model, settings = table(), SearchSettings(beam=width, nbest=width, max_length=9)
    beginnings = [[4, 5], [4, 5, 6], [5, 4], [7, 4, 5, 6, 7], [4, 4]]
    requests = [sentence(100 + i, prefix=p, phrases=[[4, 5, 6], [4, 8]]) for i, p in enumerate(beginnings)]
    for request, outcome in zip(requests, find(model, requests, settings), strict=True):
        check_constrained(model, request, outcome, settings)


def inside(phrases, ids) -> set[int]:
    """The places of a text that belong to an occurrence of a phrase."""
    return {
        i + k
        for phrase in phrases
        for i in range(len(ids) - len(phrase) + 1)
        if list(ids[i : i + len(phrase)]) == list(phrase)
        for k in range(len(phrase))
    }


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_must_occur_wins_over_what_must_not(width, kind):
    """A phrase may hold suppressed and unknown pieces; outside it they remain forbidden."""
    model = table(kind)
    settings = SearchSettings(beam=width, nbest=width, max_length=9, suppress=(7,))
    requests = [sentence(100 + i, phrases=phrases) for i, phrases in enumerate([[[7, 1, 5]], [[5, 7]], [[7, 7], [1]]])]
    for request, outcome in zip(requests, find(model, requests, settings), strict=True):
        check_constrained(model, request, outcome, settings)
        for h in outcome.hypotheses:
            forbidden = {place for place, piece in enumerate(h.ids) if piece in (1, 7)}
            assert forbidden <= inside(request.phrases, h.ids), h.ids


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_phrases_occur_although_no_sequence_may_come_twice(width, n):
    """Also if they themselves repeat one. What comes twice does so only because of a phrase."""
    model = table("shy")
    settings = SearchSettings(beam=width, nbest=width, max_length=16, no_repeat_ngram=n)
    wanted = [[[4, 5, 6], [7, 8]], [[4, 4, 4, 4], [5, 6]], [[4, 5, 6, 4, 5, 6]], [[4, 5], [8, 4, 5, 8]]]
    requests = [sentence(100 + i, phrases=phrases) for i, phrases in enumerate(wanted)]
    for request, outcome in zip(requests, find(model, requests, settings), strict=True):
        assert outcome.hypotheses
        for h in outcome.hypotheses:
            assert all(occurs(phrase, h.ids) for phrase in request.phrases)
            of_phrases, grams = inside(request.phrases, h.ids), ngrams(h.ids, n)
            again = [i for i, gram in enumerate(grams) if gram in grams[:i]]
            assert all(of_phrases.intersection(range(i, i + n)) for i in again), h.ids


@pytest.mark.parametrize("phrases", [[[4, 3]], [[0]], [[2, 5]], [[4], [5, 3, 5]]])
def test_phrases_with_pieces_that_no_text_has_are_refused(phrases):
    with pytest.raises(DataError, match="phrase of sentence 1 "):
        find(table(), [sentence(100), sentence(101, phrases=phrases)], SearchSettings())


def test_an_empty_phrase_is_refused():
    with pytest.raises(DataError, match="a phrase of sentence 0 is empty"):
        find(table(), [sentence(100, phrases=[[4], []])], SearchSettings())


@pytest.mark.parametrize("more", [{"groups": 2}, {"sampling": Sampling()}])
def test_phrases_need_a_plain_beam(more):
    with pytest.raises(ConfigError, match="leave out sampling and groups"):
        find(table(), [sentence(100), sentence(101, phrases=[[4]])], SearchSettings(**more))


@pytest.mark.parametrize("bad", [-1, -5, V, 10**6])
@pytest.mark.parametrize("where", ["prefix", "phrases"])
def test_ids_that_the_vocabulary_does_not_have_are_refused(bad, where):
    value = [[5, bad]] if where == "phrases" else [5, bad]
    with pytest.raises(DataError):
        find(table(), [sentence(100), sentence(101, **{where: value})], SearchSettings())


@pytest.mark.slow
@pytest.mark.parametrize("phrases", [[[4]], [[4, 5]], [[5], [4]], [[4, 4], [4]], [[4, 5], [5]]])
@pytest.mark.parametrize("kind", ["plain", "eos_first"])
def test_a_wide_beam_finds_the_best_of_all_translations_with_the_phrases(phrases, kind):
    """At least of those that leave room: near its limit a translation must hurry to its phrases."""
    specials = Specials(pad=0, unknown=None, start=0, end=1)
    settings = SearchSettings(beam=300, nbest=1, max_length=7, suppress=(2, 3))
    unhurried = 7 - sum(map(len, phrases)) - 1
    for seed in range(4):
        model = TableModel(random_rows(6, seed, kind, specials), 6, specials)
        every = [h for h in exhaustive(model, 100, settings) if all(occurs(p, h.ids) for p in phrases)]
        best = max(h.score for h in every if len(h.log_probs) <= unhurried)
        found = find(model, [sentence(100, phrases=phrases)], settings)[0].hypotheses[0]
        assert best - 1e-5 <= found.score <= every[0].score + 1e-5


@pytest.mark.parametrize("width", WIDTHS)
def test_phrases_are_not_put_off_to_the_limit(width):
    """The model would end at once, and may as soon as the phrases are there."""
    model, settings = table("eos_first", 2), SearchSettings(beam=width, max_length=60, max_extra=60)
    requests = [sentence(100 + i, phrases=[[4, 5, 6], [7, 8]]) for i in range(8)]
    for outcome in find(model, requests, settings):
        assert outcome.hypotheses[0].finish == "eos"
        assert len(outcome.hypotheses[0].ids) < 12


def test_constraints_in_a_batch_equal_constraints_alone():
    model, settings = table("plain", 5), SearchSettings(beam=4, nbest=4, max_ratio=1.0, max_extra=6)
    wanted = [[], [[4, 5]], [[6], [7, 8]], [[5, 5, 5]], [], [[8, 4], [4, 8]]]
    requests = [sentence(100 + i, 1 + i % 3, phrases=phrases) for i, phrases in enumerate(wanted)]
    together = find(model, requests, settings)
    for request, outcome in zip(requests, together, strict=True):
        alone = find(model, [request], settings)[0]
        assert not differences(outcome.hypotheses, alone.hypotheses)


def test_an_impossible_phrase_gives_no_translation_and_disturbs_no_other():
    """The model says -inf of piece 6. Its score would be no number, so nothing is told."""
    rows = random_rows(V, 0, "plain", SPECIALS)

    def without_six(number, prefix):
        row = rows(number, prefix).copy()
        row[6] = float("-inf")
        return row

    model, settings = TableModel(without_six, V, SPECIALS), SearchSettings(beam=4, nbest=2, max_length=8)
    requests = [sentence(100, phrases=[[4]]), sentence(101, phrases=[[5, 6]]), sentence(102)]
    first, second, third = find(model, requests, settings)
    assert second.invalid_scores
    check_constrained(model, requests[0], first, settings)
    check_constrained(model, requests[2], third, settings)


def longest_beginning(phrase, text) -> int:
    """The naive oracle: every beginning of the phrase is compared with the end of the text."""
    return max(k for k in range(len(phrase) + 1) if list(text[len(text) - k :]) == list(phrase[:k]) and k <= len(text))


@pytest.mark.slow
@some
@given(
    phrases=st.lists(st.lists(st.lists(st.integers(4, 6), min_size=1, max_size=9), max_size=4), min_size=1, max_size=3),
    texts=st.lists(st.lists(st.integers(4, 8), min_size=12, max_size=12), min_size=3, max_size=3),
)
def test_the_automaton_of_a_phrase_knows_what_comparing_every_beginning_finds(phrases, texts):
    requests = [Request([9], phrases=wanted) for wanted in phrases]
    automata, ids_BMT = Phrases(requests), np.array([texts] * len(phrases))
    progress_BMF = np.zeros((*ids_BMT.shape[:2], automata.ids_BFL.shape[1]), np.int64)
    for step in range(ids_BMT.shape[2]):
        progress_BMF = automata.advance(progress_BMF, ids_BMT[:, :, step])
        for b, wanted in enumerate(phrases):
            for m, text in enumerate(texts):
                expected = [longest_beginning(phrase, text[: step + 1]) for phrase in dict.fromkeys(map(tuple, wanted))]
                assert progress_BMF[b, m, : len(expected)].tolist() == expected


def seconds_of_a_step(pieces: int) -> float:
    """The best of several: whatever else the machine does only makes it slower."""
    phrase = [4 + (at * at) % 5 for at in range(pieces)]
    automata = Phrases([Request([9], phrases=[phrase, phrase[::-1]])])
    progress, ids = np.full((1, 512, 2), pieces // 2), np.arange(512).reshape(1, 512) % 9
    took = []
    for _ in range(20):
        begin = time.perf_counter()
        for _ in range(10):
            automata.advance(progress, ids)
        took.append(time.perf_counter() - begin)
    return min(took)


def test_a_step_costs_the_same_however_long_a_phrase_is():
    """Three doublings: work that grows with the phrase's length would be 8 times as much, with its square 64 times."""
    assert seconds_of_a_step(512) < 3 * seconds_of_a_step(64)
