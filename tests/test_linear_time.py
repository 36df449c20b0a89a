"""Text of strangers takes time in proportion to its length: every pattern of the package, found by looking, against texts made for it.

The same of whatever else reads their text, by the doors that they come in by: `test_linear_doors.py`.
"""

import re
from collections.abc import Callable

import pytest

from found_patterns import Used, patterns
from growth import grows_too_fast
from hostile_text import PUMPS, TAILS, may_be_slow, pairs_of_pumps, repeated, texts_against

FOUND = patterns()
SUSPECTS = [used for used in FOUND if may_be_slow(used.pattern)]


def asked_by(used: Used, method: str) -> Callable[[str], object]:
    """The pattern as it is used: to find all is to go through all."""
    is_bytes = isinstance(used.pattern.pattern, bytes)
    ask = getattr(used.pattern, method)

    def call(text: str) -> object:
        asked = text.encode() if is_bytes else text
        return sum(1 for _ in ask(asked)) if method == "finditer" else ask(asked)

    return call


def first_that_is_slow(used: Used, texts: list[tuple[str, str, str]]) -> str | None:
    for method in used.methods:
        for head, pump, tail in texts:
            seen = grows_too_fast(asked_by(used, method), repeated(pump, head, tail))
            if seen is not None:
                return f"{used.place}: {method} of {head!r} + {pump!r} * n + {tail!r}; {seen}; {used.pattern.pattern!r}"
    return None


@pytest.mark.slow
def test_patterns_are_found_wherever_they_stand() -> None:
    """Held by a module, in a tuple, in a table, by a class; written in a function, and with what only the function knows."""
    places = [used.place.removeprefix("limelight.") for used in FOUND]
    for name in (
        "text.pair_checks._NUMBER",
        "text.segment._CUTS",
        "text.sentence_ends._TITLE",
        "serving.http.body.FILENAME",
    ):
        assert name in places
    for module in ("text.careful.term_tree", "text.careful.number_words", "documents.formats.html_tokens", "text.careful.accelerators"):
        assert any(place.startswith(f"{module}, line") for place in places)
    assert next(used for used in FOUND if used.place.endswith("xml_elements._TAG")).methods == ("match",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(a+)+$", "search"),  # exponential
        (r"(?:-[\s-]+)+x", "match"),
        (r"(?:^|[.!?]\s+)\W*[^\W\d_]", "finditer"),  # quadratic
        (r"[\W_]+$", "finditer"),
        (r"<!--.*?-->", "finditer"),
        (r"%[-#0 +]*[\d.]*[a-z]", "search"),
        (rb"charset\s*=\s*[\"']?\s*\w", "search"),
    ],
)
def test_a_slow_pattern_is_caught(pattern: str | bytes, method: str) -> None:
    used = Used("here", re.compile(pattern), (method,))
    assert first_that_is_slow(used, texts_against(used.pattern)) is not None


@pytest.mark.parametrize("pattern", [r"(?<!a)a++$", r"(?<!\s)\s++x", r"[^\W\d_]{2,}", r"<[^<>]*>", r"(?<!\s)\s+(?=and\s)"])
def test_a_quick_pattern_is_not(pattern: str) -> None:
    used = Used("here", re.compile(pattern), ("finditer",))
    assert first_that_is_slow(used, texts_against(used.pattern)) is None


@pytest.mark.slow
@pytest.mark.parametrize("used", SUSPECTS, ids=[used.place for used in SUSPECTS])
def test_a_pattern_takes_time_in_proportion_to_its_text(used: Used) -> None:
    texts = [("", pump, tail) for pump in PUMPS for tail in TAILS[:2]] + texts_against(used.pattern)
    assert (seen := first_that_is_slow(used, texts)) is None, seen


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("used", SUSPECTS, ids=[used.place for used in SUSPECTS])
def test_a_pattern_takes_time_in_proportion_to_texts_of_two_things_in_turn(used: Used) -> None:
    texts = [("", first + second, "") for first, second in pairs_of_pumps()]
    assert (seen := first_that_is_slow(used, texts)) is None, seen
