"""The gate refuses what would teach nonsense, and lets good corrections through."""

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from limelight.learning.gate import FILTERS, LEAST_CONTRAST, find_contrasts, sift
from limelight.translator import Translator

sys.path.insert(0, str(Path(__file__).parents[1] / "bundles"))
from make_numbers import draw_pairs

pytestmark = pytest.mark.slow  # languages are told by a model that takes a second to load
GOOD = [pair for pair in draw_pairs(80, Random(3), held_out=True) if len(pair[0].split()) > 1 and "\u27e6" not in pair[0]][:40]


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator.load(Path(__file__).parents[1] / "bundles" / "format-1", threads=1) as loaded:
        yield loaded


def test_good_ones_are_taken_and_each_kind_of_rubbish_is_refused(translator: Translator) -> None:
    rubbish = {
        "copy": [(source, source) for source, _ in GOOD],
        "swapped": [(target, source) for source, target in GOOD],
        "keys": [(source, "asdf jklö qwer uiop") for source, _ in GOOD],
        "empty": [(source, "") for source, _ in GOOD],
        "long": [(source, target * 40) for source, target in GOOD],
    }
    assert len(sift(GOOD, translator).taken) >= 0.9 * len(GOOD)
    for kind, pairs in rubbish.items():
        assert len(sift(pairs, translator).taken) <= 0.05 * len(pairs), kind


def test_rubbish_alone_is_refused_too(translator: Translator) -> None:
    """The bound is no share of what came in: where all is rubbish, all is refused."""
    assert sift([(source, "asdf jklö qwer uiop") for source, _ in GOOD], translator).taken == []


def test_equal_ones_are_taken_once_and_reasons_are_counted(translator: Translator) -> None:
    found = sift([*GOOD[:3], *GOOD[:3], ("one two", "one two"), ("three four", "three four")], translator)
    assert len(found.taken) + len(found.refused) == 5
    assert found.reasons["copied"] == 2


def test_what_the_model_cannot_look_at_is_refused_and_not_scored(translator: Translator) -> None:
    long = " ".join(["one"] * 300), " ".join(["eins"] * 300)
    assert sift([long], translator).reasons in ({"too_long": 1}, {"repetition": 1})
    assert sift([], translator).taken == []


def test_the_contrast_tells_a_pair_from_its_reverse(translator: Translator) -> None:
    there, back = (find_contrasts(pairs, translator) for pairs in (GOOD, [pair[::-1] for pair in GOOD]))
    assert there == pytest.approx([-each for each in back])
    assert sum(each > LEAST_CONTRAST for each in there) >= 0.95 * len(there)
    assert FILTERS.copied_words == 1
