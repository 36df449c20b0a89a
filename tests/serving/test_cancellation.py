"""What nobody waits for any more is not translated (AT-23): clients that leave, and deadlines that are over. With the real server and an
engine that was slowed down, since how long it takes is what is tested."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from serve_cancel import DEADLINE, STAY, Cancelled, measure
from serve_load import Load

SLOW = 0.8  # seconds for a batch
SLACK = 2000  # milliseconds: for a machine on which others work too; `make claim-serve` has the bar of 50


@pytest.fixture(scope="module")
def found(starts_process: None) -> Cancelled:
    with Load() as load:
        return measure(load, clients=12, slow=SLOW)


def test_sentences_of_clients_that_left_do_not_reach_the_engine(found: Cancelled) -> None:
    assert found.reached == 0
    assert found.stayed == STAY, "the control: those of clients that stay do"


def test_the_rest_of_a_long_request_is_dropped_when_its_client_leaves(found: Cancelled) -> None:
    assert found.long_rest == 0


def test_who_comes_after_them_waits_for_one_batch_at_most(found: Cancelled) -> None:
    assert found.freed <= 1000 * 2 * SLOW + SLACK
    assert found.freed >= 1000 * SLOW, "an answer before its batch was over?"


def test_a_deadline_that_is_over_is_told_and_never_followed_by_an_answer(found: Cancelled) -> None:
    assert (found.late_good, found.not_504) == (0, 0)
    assert found.expired_p99 <= 1000 * DEADLINE + SLACK


def test_sentences_whose_deadline_is_over_do_not_reach_the_engine(found: Cancelled) -> None:
    assert found.expired_reached == 0
    assert found.wasted <= 0.1
