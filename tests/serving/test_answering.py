"""What both public dialects share: how many translations are searched for, and which texts need none."""

from dataclasses import replace

import pytest

from limelight.decoding.config import Sampling, SearchSettings
from limelight.serving.compat.translate import answer_of, is_spoken, with_alternatives
from limelight.translator.translation import Alternative, Translation, nothing


def test_the_own_search_of_a_bundle_serves_those_who_want_no_alternatives() -> None:
    assert with_alternatives(SearchSettings(), 0) is None
    plain = with_alternatives(SearchSettings(nbest=3), 0)
    assert plain is not None and plain.nbest == 1


@pytest.mark.parametrize(
    ("own", "alternatives", "beam"),
    [
        (SearchSettings(beam=4), 3, 4),
        (SearchSettings(beam=4), 4, 5),
        (SearchSettings(beam=1), 2, 3),
        (SearchSettings(beam=4, groups=2), 4, 6),
    ],
)
def test_alternatives_widen_the_beam_only_where_it_is_too_narrow(own: SearchSettings, alternatives: int, beam: int) -> None:
    found = with_alternatives(own, alternatives)
    assert found is not None and (found.nbest, found.beam) == (alternatives + 1, beam)


def test_a_search_that_draws_draws_more() -> None:
    found = with_alternatives(SearchSettings(beam=1, sampling=Sampling()), 2)
    assert found is not None and (found.nbest, found.beam) == (3, 1)


def test_alternatives_are_different_from_the_best_and_from_each_other_and_no_more_than_wanted() -> None:
    best: Translation = replace(nothing(""), text="a")
    others = [Alternative(text, 0.0, 0.0, [], "eos") for text in ("b", "a", "b", "c", "d")]
    assert answer_of(replace(best, alternatives=others), 2).alternatives == ["b", "c"]


@pytest.mark.parametrize(("text", "spoken"), [("a", True), ("7", True), ("漢", True), ("😀 …", False), ("", False)])
def test_only_letters_and_digits_need_a_translation(text: str, spoken: bool) -> None:
    assert is_spoken(text) is spoken
