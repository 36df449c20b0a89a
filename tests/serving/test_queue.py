"""The queue by itself: no engine, no clock."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.serving.queue.fair_queue import FREE, FairQueue, RequestSentences


def put(queue: FairQueue, name: str, pieces: list[int], kind: str = "a", flow: str | None = None) -> RequestSentences:
    request = RequestSentences(kind, flow or name)
    queue.put(request, [f"{name}{at}" for at in range(len(pieces))], pieces, arrived=0.0)
    return request


def drained(queue: FairQueue, room: int = 100, rows: int = 100) -> list[list[str]]:
    batches = []
    while taken := queue.take(room, rows):
        batches.append([item.payload for item in taken])
    return batches


def test_a_batch_holds_what_fits_with_its_padding() -> None:
    queue = FairQueue()
    put(queue, "a", [30, 30, 30, 30])
    assert [len(batch) for batch in drained(queue, room=100)] == [3, 1]


def test_a_sentence_longer_than_the_room_goes_alone() -> None:
    queue = FairQueue()
    put(queue, "a", [500, 10])
    assert drained(queue, room=100) == [["a0"], ["a1"]]


def test_the_like_go_together_and_the_oldest_goes_first() -> None:
    queue = FairQueue()
    for name, length in (("a", 10), ("b", 80), ("c", 11), ("d", 79)):
        put(queue, name, [length])
    assert drained(queue, room=160, rows=2) == [["a0", "c0"], ["b0", "d0"]]


def test_who_is_unlike_the_others_waits_no_longer_than_a_round() -> None:
    """Of what is done between the arrival of a sentence and its turn, what came after it is at most two batches and a sentence."""
    draw, queue, room, done, put_in = random.Random(2), FairQueue(), 256, 0, 0
    known: dict[str, tuple[int, int]] = {}  # pieces done when it came, and pieces before it
    overtaken = 0
    for _ in range(2_000):
        while queue.pieces < 3 * room:
            length = min(120, int(draw.lognormvariate(3, 0.7)) + 1)
            known[f"{put_in}.0"] = (done, queue.pieces)
            put(queue, f"{put_in}.", [length])
            put_in += 1
        for item in (taken := queue.take(room, 256)):
            came, before = known.pop(item.payload)
            overtaken = max(overtaken, done - came - before)
        done += sum(item.pieces for item in taken)
    assert overtaken <= 2 * room + 120


def test_kinds_do_not_mix() -> None:
    queue = FairQueue()
    put(queue, "a", [10], kind="greedy")
    put(queue, "b", [10], kind="beam")
    put(queue, "c", [10], kind="greedy")
    assert drained(queue) == [["a0", "c0"], ["b0"]]


def test_a_document_delays_a_single_sentence_by_a_batch_not_by_itself() -> None:
    queue = FairQueue()
    put(queue, "document", [20] * 1000)
    for _ in range(5):
        queue.take(100, 100)
    put(queue, "single", [20])
    following = [item.payload for _ in range(2 + FREE // 100) for item in queue.take(100, 100)]
    assert "single0" in following


def test_two_documents_of_different_callers_share_equally() -> None:
    queue = FairQueue()
    put(queue, "a", [10] * 100)
    put(queue, "b", [10] * 100)
    first = [item.payload[0] for _ in range(10) for item in queue.take(100, 100)]
    assert 40 <= first.count("a") <= 60


def test_many_requests_of_one_caller_count_as_one_flow() -> None:
    queue = FairQueue()
    for number in range(50):
        put(queue, f"greedy{number}-", [10], flow="greedy")
    put(queue, "modest", [10], flow="modest")
    assert "modest0" in [item.payload for item in queue.take(100, 100)]


def test_what_left_is_never_taken_and_counts_no_more() -> None:
    queue = FairQueue()
    request = put(queue, "a", [10] * 10)
    put(queue, "b", [10] * 2)
    queue.take(10, 1)
    queue.leave(request)
    assert (len(queue), queue.pieces) == (2, 20)
    assert drained(queue) == [["b0", "b1"]]
    assert (len(queue), queue.pieces) == (0, 0)


def test_ahead_of_a_new_sentence_are_those_that_came_before_it() -> None:
    queue = FairQueue()
    assert queue.ahead(0, "new") == 0
    for number in range(10):
        put(queue, f"{number}-", [30])
    assert queue.ahead(0, "new") == 300


def test_ahead_of_a_new_sentence_stands_only_the_turn_of_a_document() -> None:
    queue = FairQueue()
    put(queue, "document", [20] * 1000)
    assert queue.ahead(0, "new") < FREE + 100
    assert queue.ahead(20_000, "new") == 20_000


def test_the_sentences_of_a_paragraph_go_together_in_their_turn() -> None:
    queue = FairQueue()
    put(queue, "paragraph", [30] * 5)
    for number in range(40):
        put(queue, f"{number}-", [30])
    assert [item.payload for item in queue.take(150, 100)] == [f"paragraph{at}" for at in range(5)]


@pytest.mark.slow
@given(st.data())
def test_every_sentence_goes_exactly_once_unless_it_left(data: st.DataObject) -> None:
    chance = random.Random(data.draw(st.integers(0, 10**9)))
    queue, requests, taken = FairQueue(), {}, []
    for number in range(chance.randint(1, 12)):
        name = f"{number}-"
        lengths = [chance.choice((0, 1, 5, 30, 200)) for _ in range(chance.randint(1, 8))]
        requests[name] = (put(queue, name, lengths, kind=chance.choice("ab"), flow=chance.choice("xyz")), len(lengths))
        if chance.random() < 0.4:
            taken += [item.payload for item in queue.take(chance.randint(1, 300), chance.randint(1, 9))]
    left = {name for name in requests if chance.random() < 0.3}
    before = set(taken)
    for name in left:
        queue.leave(requests[name][0])
    after = [payload for batch in drained(queue, room=chance.randint(1, 300)) for payload in batch]
    wanted = {f"{name}{at}" for name, (_, count) in requests.items() if name not in left for at in range(count)}
    assert len(set(taken + after)) == len(taken + after)
    assert set(after) == wanted - before
    assert (len(queue), queue.pieces, queue.oldest) == (0, 0, None)


def test_newcomers_without_end_do_not_starve_the_second_sentence_of_a_text() -> None:
    queue = FairQueue()
    put(queue, "old", [40, 40])
    for number in range(64):
        put(queue, f"{number}-", [40])
    for number in range(64, 400):
        if any(item.payload == "old1" for item in queue.take(400, 100)):
            break
        for more in range(10):
            put(queue, f"{number}.{more}-", [40])
    assert number < 64 + 20


def test_tags_do_not_let_a_newcomer_starve_the_old() -> None:
    queue = FairQueue()
    put(queue, "old", [100], kind="rare")
    for number in range(20):
        put(queue, f"new{number}-", [1])
        if any(item.payload == "old0" for item in queue.take(1, 1)):
            break
    else:
        pytest.fail("the old sentence never had its turn")
