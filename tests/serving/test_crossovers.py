"""Every answer belongs to its request, however many share a batch (AT-16 over HTTP). `make claim-serve FULL=1` sends 10,000."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import serve_numbers as numbers
from serve_crossovers import Crossed, judge, measure
from serve_load import Load
from serve_process import Server, limelight

TEXTS = ["one two", "three four", "five six"]
RIGHT = ["eins zwei", "drei vier", "fünf sechs"]


def alone(text: str) -> str:
    return numbers.in_german(text)


def test_right_answers_are_none_of_the_faults() -> None:
    assert judge(TEXTS, RIGHT, alone) == Crossed(3, crossed=0, wrong=0, lost=0, slips=0)


def test_two_answers_that_changed_places_are_found() -> None:
    assert judge(TEXTS, [RIGHT[1], RIGHT[0], RIGHT[2]], alone).crossed == 2


def test_an_answer_to_nobody_is_wrong_unless_the_text_alone_gives_it_too() -> None:
    assert judge(TEXTS, ["acht", *RIGHT[1:]], alone) == Crossed(3, crossed=0, wrong=1, lost=0, slips=0)
    assert judge(TEXTS, ["acht", *RIGHT[1:]], lambda _: "acht").slips == 1
    assert judge(TEXTS, [None, *RIGHT[1:]], alone).lost == 1


@pytest.mark.process
def test_no_answer_goes_to_somebody_else_in_three_dialects_at_once() -> None:
    with (
        Server(limelight(numbers.BUNDLE, "--threads", 2, "--no-ui", "queue.wait_seconds=60")) as server,
        Load() as load,
    ):
        found = measure(server, load, 300, 16)
    assert (found.crossed, found.wrong, found.lost) == (0, 0, 0)
    assert found.slips < 10, "a model that is wrong all the time would hide everything"
