"""Who is lost follows from what each said last: the silent, and who does not get on while the others wait."""

from typing import Any

from limelight.training.processes.lost_ranks import ENDED, NOT_HEARD, LostRankDetector, RankStatus

PATIENCE = 10.0


def word(place: tuple[int, int] = (5, 1), age: float = 0.0, **more: Any) -> RankStatus:
    return RankStatus(**{"host": "a", "count": 1, "name": "forward", "step": 5, "place": place, "long": False, "age": age} | more)


def lost(*words: RankStatus | None, now: float = 0.0) -> list[int]:
    """Ranks that are named when each has just said this."""
    heard = LostRankDetector()
    for rank, each in enumerate(words):
        heard.record(rank, each, now)
    return [int(sentence.split()[1]) for sentence in heard.find_lost(now, PATIENCE)]


def waiting(place: tuple[int, int], age: float = 11.0) -> RankStatus:
    return word(place, age, name="gradients", waits=True)


def test_a_word_survives_the_store() -> None:
    said = word((3, 2), 1.5, where="all_reduce (c10d.py:3)", waits=True, over="ValueError: é")
    assert RankStatus.of(said.pack()) == said
    assert RankStatus.of(NOT_HEARD) is None


def test_who_says_nothing_new_is_lost_after_the_patience() -> None:
    heard = LostRankDetector()
    heard.record(0, word(count=1), 0.0)
    heard.record(1, word(count=1, host="b"), 0.0)
    heard.record(0, word(count=2), 10.5)
    heard.record(1, word(count=1, host="b"), 10.5)
    assert heard.find_lost(9.9, PATIENCE) == []
    assert heard.find_lost(10.6, PATIENCE) == ["rank 1 (host b) has not been heard of for 11 s; its last word: forward of step 5"]
    heard.record(1, word(count=2, host="b"), 10.7)
    assert heard.find_lost(10.8, PATIENCE) == []


def test_a_long_phase_is_no_excuse_for_silence() -> None:
    heard = LostRankDetector()
    heard.record(1, word(long=True), 0.0)
    assert heard.find_lost(11.0, PATIENCE) != []


def test_who_has_ended_may_be_silent() -> None:
    heard = LostRankDetector()
    heard.record(1, word(over=ENDED), 0.0)
    assert heard.find_lost(1000.0, PATIENCE) == []


def test_who_was_never_heard_is_lost_too() -> None:
    heard = LostRankDetector()
    heard.record(1, None, 0.0)
    assert heard.find_lost(11.0, PATIENCE) == ["rank 1 has not been heard of for 11 s; its last word: none since the run began"]


def test_who_is_stuck_is_lost_and_not_those_who_wait_for_it() -> None:
    assert lost(waiting((5, 2)), word((5, 1), 12.0), waiting((5, 2))) == [1]
    assert lost(waiting((5, 1)), word((5, 1), 12.0)) == [1]  # in a phase that both computes and waits
    assert lost(waiting((5, 2), 9.0), word((5, 1), 9.0)) == []


def test_nobody_is_lost_while_one_that_may_hold_them_up_moves() -> None:
    assert lost(waiting((5, 2)), word((5, 1), 3.0)) == []
    assert lost(waiting((5, 2)), word((5, 2), 500.0, long=True)) == []
    assert lost(waiting((5, 2)), word((5, 4), 500.0, long=True)) == []  # the main process has phases of its own
    assert lost(word((5, 2), 12.0), word((5, 1), 500.0, long=True)) == []  # the wait of a device looks like work


def test_when_all_wait_the_one_that_left_or_the_hindmost_is_named() -> None:
    assert lost(waiting((5, 2)), word(over="ValueError: no")) == [1]
    assert lost(waiting((5, 2)), word(over=ENDED)) == [1]
    assert lost(waiting((5, 2)), waiting((5, 1)), waiting((5, 2))) == [1]
    assert lost(waiting((5, 2)), waiting((5, 2))) == [0, 1]


def test_one_that_failed_is_named_and_not_those_whose_wait_looks_like_work() -> None:
    """As on GPUs, where a process stands in the step and not in the exchange."""
    stuck = word((5, 2), 500.0)
    assert lost(stuck, stuck, word(over="OutOfMemoryError: no")) == [2]
    assert lost(stuck, stuck) == [0, 1]
