"""Every mark occurs exactly once, well nested and in order, in every translation of every search, whatever the model thinks of it."""

import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from slow_marks import adverse_rows, blind_rows, check_marked, marked_beam
from slow_search import differences
from table_models import LookingTableModel, TableModel, find, random_rows, sentence

import limelight.decoding.search
from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.steps import Request, Specials
from limelight.errors import DataError

SPECIALS = Specials(pad=0, unknown=1, start=2, end=3)
V = 14
RESERVED = tuple(range(8, V))  # 4 to 7 are pieces
ADVERSE = ["shuns its marks", "one piece for ever", "ends at once", "only marks, the last first"]
KINDS = ["plain", "ties", "eos_first", "shy"]
SEARCHES: dict[str, dict[str, object]] = {
    "greedy": {"beam": 1},
    "refilled": {"beam": 4},
    "refilled, of two": {"beam": 2},
    "patient": {"beam": 3, "patience": 2.0},
    "classical": {"beam": 4, "patience": None},
    "groups": {"beam": 6, "groups": 3},
    "covering": {"beam": 3, "coverage_penalty": 0.3},
    "one, covering": {"beam": 1, "coverage_penalty": 0.3},
    "drawn": {"nbest": 3, "sampling": Sampling(seed=4)},
    "drawn from few": {"nbest": 2, "sampling": Sampling(top_k=2, temperature=2.0)},
    "drawn from the top": {"nbest": 2, "sampling": Sampling(top_p=0.7)},
}

some = example_settings(derandomize=True, deadline=None)


def table(kind: str = "plain", seed: int = 0) -> TableModel:
    rows = adverse_rows(kind, RESERVED, V, 3) if kind in ADVERSE else random_rows(V, seed, kind, SPECIALS)
    return LookingTableModel(rows, V, SPECIALS)


def asked(search: str, **more: object) -> SearchSettings:
    options = {"suppress": RESERVED, "max_length": 9, **SEARCHES[search], **more}
    return SearchSettings(**{"nbest": options.get("beam", 1), **options})  # type: ignore[arg-type]


def nested_text(draw: st.DrawFn, once: list[int], nested: list[tuple[int, int]], ordered: list[list[int]], most: int) -> list[int]:
    """The beginning of a text in which marks stand as they may."""
    found: list[int] = []
    closing, still_open = dict(nested), list[int]()
    for _ in range(draw(st.integers(0, most))):
        free = [m for m in once if m not in found and m not in closing.values()]
        waiting = {m for group in ordered for m in [m for m in group if m not in found][1:]}
        free = [m for m in free if m not in waiting]
        piece = draw(st.sampled_from([4, 5, *free, *(closing[m] for m in still_open[-1:])]))
        still_open = [*still_open, piece] if piece in closing else [m for m in still_open if closing[m] != piece]
        found.append(piece)
    return found


@st.composite
def requests(draw: st.DrawFn, number: int) -> Request:
    once = draw(st.permutations(RESERVED))[: draw(st.integers(0, len(RESERVED)))]
    pairs = list(zip(once[::2], once[1::2], strict=False))[: draw(st.integers(0, 3))]
    single = [mark for mark in once if not any(mark in pair for pair in pairs)]
    cut = draw(st.integers(0, len(single)))
    ordered = [single[:cut], single[cut:]][: draw(st.integers(0, 2))]
    return sentence(
        number,
        draw(st.integers(1, 3)),
        once=draw(st.permutations(once)),
        nested=pairs,
        ordered=ordered,
        prefix=nested_text(draw, once, pairs, ordered, most=5),
        allowed=draw(st.lists(st.sampled_from([m for m in (*RESERVED, 1) if m not in once]), max_size=2)),
    )


batches = st.integers(1, 4).flatmap(lambda count: st.tuples(*(requests(100 + i) for i in range(count))))


@pytest.mark.slow
@some
@given(
    kind=st.sampled_from(KINDS + ADVERSE),
    seed=st.integers(0, 1000),
    search=st.sampled_from(sorted(SEARCHES)),
    batch=batches,
    max_length=st.sampled_from([2, 6, 15]),
    no_repeat_ngram=st.sampled_from([None, None, 2, 3]),
    data=st.data(),
)
def test_every_mark_occurs_once_and_well_nested(kind, seed, search, batch, max_length, no_repeat_ngram, data):
    model = table(kind, seed)
    settings = asked(
        search,
        max_length=max_length,
        max_extra=data.draw(st.sampled_from([1, 20])),
        min_length=data.draw(st.integers(0, max_length - 1)),
        length_penalty=data.draw(st.sampled_from([0.0, 0.6, 1.0])),
        no_repeat_ngram=no_repeat_ngram,
    )
    for request, outcome in zip(batch, find(model, batch, settings), strict=True):
        if outcome.hypotheses or no_repeat_ngram is None:  # few pieces, none of them twice: all may be forbidden
            check_marked(model, request, outcome, settings)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", KINDS + ADVERSE)
def test_models_that_want_anything_else_give_every_mark_once(kind, search):
    """Six marks, of which four are tags; a limit that they fill; and neighbours with fewer and none."""
    model, settings = table(kind, 3), asked(search, max_length=7)
    tags = [(13, 8), (9, 10)]
    batch = [
        sentence(100, once=RESERVED, nested=tags),
        sentence(101, once=(9, 10), nested=[(10, 9)], prefix=[5]),
        sentence(102),
        sentence(103, once=RESERVED, nested=[(8, 9), (10, 11), (12, 13)]),
        sentence(104, once=(11,), allowed=(12,)),
        sentence(105, once=RESERVED, nested=tags, prefix=[13, 4, 9, 12]),
        sentence(106, once=RESERVED, nested=tags, ordered=[(12, 11)]),
        sentence(107, once=RESERVED, ordered=[(9, 13, 8), (12, 10)], prefix=[9, 12]),
    ]
    for request, outcome in zip(batch, find(model, batch, settings), strict=True):
        check_marked(model, request, outcome, settings)


@pytest.mark.slow
@some
@given(
    kind=st.sampled_from(["plain", "eos_first", "shy", "holes"]),
    seed=st.integers(0, 1000),
    search=st.sampled_from(["greedy", "refilled", "refilled, of two", "patient", "classical"]),
    batch=batches,
    max_length=st.sampled_from([3, 7, 12]),
    no_repeat_ngram=st.sampled_from([None, 1, 2]),
    data=st.data(),
)
def test_marks_equal_the_slow_search(kind, seed, search, batch, max_length, no_repeat_ngram, data):
    """Sentences with other marks, and without, in one batch."""
    model = table(kind, seed)
    settings = asked(
        search,
        max_length=max_length,
        min_length=data.draw(st.integers(0, max_length - 1)),
        no_repeat_ngram=no_repeat_ngram,
    )
    for request, outcome in zip(batch, find(model, batch, settings), strict=True):
        wanted = marked_beam(model, request, settings)
        if all(x > -1e30 for h in wanted for x in h.log_probs):  # a beginning may be impossible
            assert not differences(outcome.hypotheses, wanted)


@pytest.mark.parametrize("search", ["greedy", "refilled", "refilled, of two", "patient", "classical"])
def test_a_model_that_ignores_its_marks_says_what_it_has_to_say_and_does_not_ramble(search):
    """The loop is far more probable than a mark. Without a place for texts with marks, a beam would hold nothing else up to the limit."""
    model, settings = (
        TableModel(blind_rows(RESERVED, V), V, SPECIALS),
        asked(search, max_length=40, max_extra=40, nbest=1),
    )
    (plain, marked) = find(model, [sentence(100), sentence(101, once=(9, 8, 12), nested=[(8, 12)])], settings)
    found = marked.hypotheses[0]
    assert plain.hypotheses[0].ids == [4, 5, 6]
    assert [piece for piece in found.ids if piece not in RESERVED] == [4, 5, 6]
    assert found.finish == "eos"


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("order", [(8, 9, 10), (10, 9, 8), (9, 8, 10)])
def test_marks_of_an_ordered_group_come_in_that_order_whatever_the_model_would_have_first(order, search):
    """The model wants the last first; without an order, a search that takes what is best next gets them so."""
    settings = asked(search, max_length=7)
    wanted = [sentence(100, once=(8, 9, 10, 13), ordered=[order]), sentence(101, once=(8, 9, 10))]
    bound, free = find(table("only marks, the last first"), wanted, settings)
    assert {tuple(m for m in h.ids if m in order) for h in bound.hypotheses} == {order}
    if search == "greedy":
        assert [m for m in free.hypotheses[0].ids if m in order] == [10, 9, 8]


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
def test_marks_in_a_batch_equal_marks_alone(search):
    model, settings = table("plain", 5), asked(search, max_ratio=1.0, max_extra=6, max_length=20)
    marks = [((), ()), ((8,), ()), ((9, 8), ((8, 9),)), (RESERVED, ((8, 13), (9, 12))), ((), ()), ((11, 13), ())]
    batch = [sentence(100 + i, 1 + i % 3, once=once, nested=nested) for i, (once, nested) in enumerate(marks)]
    for request, outcome in zip(batch, find(model, batch, settings), strict=True):
        alone = find(model, [request], settings)[0]
        assert outcome.hypotheses and not differences(outcome.hypotheses, alone.hypotheses)


@pytest.mark.parametrize("kind", ["plain", "ties"])
@pytest.mark.parametrize("search", SEARCHES)
def test_a_neighbour_without_marks_is_found_bit_by_bit_as_without_them(search, kind, monkeypatch):
    """Also where many are equally good and another of them could be taken."""
    model, settings = table(kind, 6), asked(search)
    free = [sentence(100 + i, 1 + i % 3, prefix=[4] * (i % 2)) for i in range(5)]
    mixed = find(model, [*free, sentence(110, once=(8, 9))], settings)[:-1]
    monkeypatch.setattr(limelight.decoding.search, "Placeholders", None)  # nothing of them is made for a batch without
    assert find(model, free, settings) == mixed


@pytest.mark.parametrize("search", SEARCHES)
def test_only_those_who_are_allowed_a_suppressed_piece_may_take_it(search):
    """The model wants nothing else."""
    model, settings = table("only marks, the last first"), asked(search, min_length=3)
    batch = [sentence(100, allowed=(13,)), sentence(101), sentence(102, allowed=(9, 12)), sentence(103, allowed=(1,))]
    seen = [{piece for h in o.hypotheses for piece in h.ids} & {1, *RESERVED} for o in find(model, batch, settings)]
    assert seen[0] == {13}
    assert seen[1] == set()
    assert 12 in seen[2] and seen[2] <= {9, 12}
    assert seen[3] <= {1}
    assert any(h.ids.count(13) > 1 for h in find(model, batch[:1], settings)[0].hypotheses)  # allowed is not once


def test_a_mark_that_is_not_suppressed_is_still_taken_once():
    model, settings = table("only marks, the last first"), asked("refilled", suppress=())
    (outcome,) = find(model, [sentence(100, once=(13, 8))], settings)
    assert all(h.ids.count(13) == h.ids.count(8) == 1 for h in outcome.hypotheses)


@pytest.mark.parametrize("search", SEARCHES)
def test_an_impossible_mark_gives_no_translation_and_disturbs_no_other(search):
    """The model says -inf of piece 9. As with phrases, a score that is no number is not told."""
    rows = random_rows(V, 0, "plain", SPECIALS)

    def without_nine(number, prefix):
        row = rows(number, prefix).copy()
        row[9] = float("-inf")
        return row

    model, settings = LookingTableModel(without_nine, V, SPECIALS), asked(search)
    batch = [sentence(100, once=(8,)), sentence(101, once=(8, 9)), sentence(102)]
    first, second, third = find(model, batch, settings)
    assert second.invalid_scores
    check_marked(model, batch[0], first, settings)
    check_marked(model, batch[2], third, settings)


@pytest.mark.parametrize("search", SEARCHES)
def test_scores_that_are_no_numbers_are_noticed_where_there_are_marks(search):
    rows = random_rows(V, 0, "plain", SPECIALS)

    def broken(number, prefix):
        return rows(number, prefix) * (float("nan") if number == 101 and len(prefix) == 2 else 1)

    model = LookingTableModel(broken, V, SPECIALS)
    outcomes = find(model, [sentence(100 + i, once=(8, 9, 10)) for i in range(3)], asked(search))
    assert [outcome.invalid_scores for outcome in outcomes] == [False, True, False]


def test_a_beginning_that_breaks_the_rules_is_kept_and_the_rest_comes_as_it_can():
    """A prefix wins over every rule: 8 is there twice, 10 is closed before it is opened. What is missing still comes once."""
    for search in SEARCHES:
        settings = asked(search)
        request = sentence(100, once=(8, 9, 10, 11), nested=[(11, 10)], prefix=[8, 10, 8])
        for h in find(table(), [request], settings)[0].hypotheses:
            assert h.ids[:3] == [8, 10, 8]
            assert [h.ids[3:].count(mark) for mark in (8, 9, 10, 11)] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"once": (8, 9, 8)}, "piece 8 is twice among those that occur once"),
        ({"once": (8,), "nested": [(8, 9)]}, "piece 9 is in a pair of tags but not among those that occur once"),
        ({"once": (8, 9, 10), "nested": [(8, 9), (9, 10)]}, "piece 9 is in two pairs of tags"),
        ({"once": (8,), "nested": [(8, 8)]}, "piece 8 is in two pairs of tags"),
        ({"once": (8,), "ordered": [(8, 9)]}, "piece 9 is ordered but not among those that occur once"),
        ({"once": (8, 9), "ordered": [(8, 9), (9,)]}, "piece 9 is twice in what is ordered"),
        ({"once": (8, 9), "nested": [(8, 9)], "ordered": [(9, 8)]}, "piece 8 is in a pair of tags and ordered"),
        ({"once": (3,)}, "holds the end piece, which no text has"),
        ({"allowed": (0,)}, "the list of allowed pieces of sentence 1 holds the padding piece"),
        ({"allowed": (-4,)}, "the list of allowed pieces of sentence 1 holds"),
        ({"once": (8,), "phrases": [[8, 4], [5, 8]]}, "piece 8 occurs once and is in two places of the phrases"),
        ({"once": (8, 9), "nested": [(8, 9)], "phrases": [[8, 4]]}, "one of the tags 8 and 9 without the other"),
        ({"once": (V,)}, f"piece {V} is asked for or suppressed"),
        ({"allowed": (V,)}, f"piece {V} is asked for or suppressed"),
    ],
)
def test_what_no_text_can_be_is_refused(wrong, said):
    with pytest.raises(DataError, match=said):
        find(table(), [sentence(100), sentence(101, **wrong)], SearchSettings())


def test_every_problem_is_said_at_once():
    wrong = [sentence(100, once=(8, 8)), sentence(101, once=(9,), nested=[(9, 10)])]
    with pytest.raises(DataError, match=r"(?s)sentence 0: piece 8 is twice.*sentence 1: piece 10 is in a pair"):
        find(table(), wrong, SearchSettings())
