"""Three times more than the server can do (AT-07, short): it goes on at full speed, and whoever is refused is told so at once and when to
come again. How fast exactly is for a quiet machine: `make claim-serve`.

The engine sleeps: so it, and not the machine that the tests run on, is what cannot do more."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import serve_numbers as numbers
from serve_client import Answer
from serve_load import Load, Loaded
from serve_overload import Overloaded, good_rate, overload
from serve_process import Server, beside

WAIT = 0.5  # seconds in the queue at most
SLOW, PIECES = 0.2, 32  # seconds for a batch of about five texts: 25 texts a second
SLACK = 1500  # milliseconds: for a machine on which others work too


def flooded(wait: float) -> Overloaded:
    asked = [numbers.native([text]) for text in numbers.drawn(500)]
    settings = (f"queue.wait_seconds={wait}", f"queue.batch_pieces={PIECES}")
    serve = beside("serve_strange.py", numbers.BUNDLE, *settings, "--slow", SLOW, "--speed", PIECES / SLOW)
    with Server(serve) as server, Load() as load:
        return overload(server, load, asked, clients=16, warm=1.0, seconds=3.0, relief=1.0)


@pytest.fixture(scope="module")
def found(starts_process: None) -> Overloaded:
    return flooded(WAIT)


def test_it_goes_on_at_full_speed(found: Overloaded) -> None:
    assert found.offered > 2
    assert found.goodput >= 0.5
    assert found.grown <= 64


def test_who_is_refused_hears_at_once_when_to_come_again(found: Overloaded) -> None:
    assert found.refused > 0
    assert found.other == 0, "answers that are neither good nor 429 or 503 with Retry-After"
    assert found.refusals_p99 <= SLACK


def test_nobody_is_cut_off(found: Overloaded) -> None:
    assert found.lost == 0


def test_who_is_let_in_waits_no_longer_than_stated(found: Overloaded) -> None:
    assert found.accepted_p99 <= 1000 * WAIT + SLACK
    assert found.healthz_p99 <= SLACK


def test_afterwards_it_is_as_fast_as_before(found: Overloaded) -> None:
    assert found.after_p95 <= 3 * found.before_p95 + 200


def test_goodput_counts_good_answers_while_requests_are_sent() -> None:
    """Of two good answers one came after the flood was over; a refusal is none."""
    answers = [Answer(0, 10.0, 0.5, 200), Answer(1, 11.0, 5.0, 200), Answer(2, 11.5, 0.1, 503)]
    assert good_rate(Loaded(answers, seconds=2.0)) == 0.5


@pytest.mark.long
def test_without_a_limit_for_waiting_everybody_waits_and_the_measurement_shows_it() -> None:
    found = flooded(600)
    assert found.refused == 0
    assert found.accepted_p99 > 1000 * WAIT + SLACK
