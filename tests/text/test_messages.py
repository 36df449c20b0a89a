"""Messages of ICU: the texts inside are found, the skeleton is not; what is no message is said to be none; in linear time."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.text.careful.messages import DEEPEST, escape, fits, is_message, texts_of, unescape

MESSAGES = (
    "You have {n, plural, one {# file} other {# files}} in {folder}.",
    "{g, select, male {He has {n, plural, one {a cat} other {# cats}} now} other {They''re here}}",
    "{n, plural, offset:1 =1 {{name}} one {{name} and # other} other {# more}}",
    "{n, plural, one {a '{' b} other {on {d, date, short}}}",
)


def texts(message: str) -> list[str] | None:
    places = texts_of(message)
    return None if places is None else [message[start:end] for start, end in places]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("{n, plural, one {# file} other {# files}}", ["# file", "# files"]),
        (
            "You have {n,plural,=0{no file}other{# files}} in {folder}.",
            ["You have", "no file", "# files", "in {folder}."],
        ),
        (
            "{g, select, male {He has {n, plural, one {a cat} other {# cats}} now} other {They''re here}}",
            ["He has", "a cat", "# cats", "now", "They''re here"],
        ),
        ("{n, plural, offset:1 =1 {{name}} one {{name} and # other} other {# more}}", ["{name} and # other", "# more"]),
        ("{n, selectordinal, one {#st} two {#nd} other {#th}} place", ["place"]),  # an ending of the source language
        (
            "{n, plural, one {a '{' b} other {on {d, date, ::yMd}}}",
            ["on {d, date, ::yMd}"],
        ),  # what quotes a brace stays
        ("{plural_form, select, other {a}}", ["a"]),
        ("{n, plural, other { a  b }}", ["a  b"]),
    ],
)
def test_the_texts_of_a_message_are_found(message: str, expected: list[str]) -> None:
    assert is_message(message) and texts(message) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural, one {a", "{n, plural, one {a} other {b}} }", "{n, plural, }", "{n, plural, one a}", "{n, plural, one {{a}",
        "{n, plural, one {a} other {b} '}", "{n, plural, other {'{ a}}",
        "{a, select, other {" * (DEEPEST + 1) + "x" + "}}" * (DEEPEST + 1),
    ],
)  # fmt: skip
def test_braces_that_do_not_fit_are_no_message(text: str) -> None:
    assert is_message(text) and texts_of(text) is None


@pytest.mark.parametrize("text", ["", "{n}", "{n, number}", "{0, plural}", "plural, one {a}", "{ plural, one {a} }"])
def test_a_text_without_plural_forms_is_no_message(text: str) -> None:
    assert not is_message(text)


def test_a_text_of_a_message_is_shown_without_its_escapes_and_written_with_them() -> None:
    assert unescape("# of it''s {a}") == "{#} of it's {a}"
    assert escape("l'{#} {a}", doubles=True) == "l''# {a}"
    assert escape("l'ami d'{a} '", doubles=False) == "l'ami d''{a} ''", "what would quote; at an end what follows may be a brace"
    assert fits("{#} a", "b {#}")
    assert not fits("{#} a", "{#} }") and not fits("{#} a", "b") and not fits("a", "# a")


PARTS = st.sampled_from(
    [
        "{",
        "}",
        "{n, plural, ",
        "other {",
        "one {",
        "=1 {",
        "a",
        " ",
        "#",
        "'",
        "''",
        "'{'",
        "{name}",
        "}}",
        "select",
        ",",
    ]
)


@pytest.mark.slow
@given(st.lists(PARTS, max_size=25).map("".join))
def test_texts_are_in_order_and_replacing_them_keeps_the_message_readable(message: str) -> None:
    places = texts_of(message)
    if places is None or not is_message(message):
        return
    assert all(a[1] <= b[0] for a, b in pairwise(places))
    for start, end in reversed(places):
        message = message[:start] + "x" + message[end:]
    again = texts_of(message)
    assert again is not None and [message[start:end] for start, end in again] == ["x"] * len(places)


@pytest.mark.parametrize("doubles", [True, False])
def test_a_parser_of_others_reads_the_same_skeleton(doubles: bool) -> None:
    parser = pytest.importorskip("pyicumessageformat", reason="pip install pyicumessageformat").Parser()

    def skeleton(parts: object) -> object:
        if isinstance(parts, list):
            return [skeleton(part) for part in parts if not isinstance(part, str)]
        return {k: skeleton(v) for k, v in parts.items()} if isinstance(parts, dict) else parts

    for message in MESSAGES:
        changed = message
        for start, end in reversed(texts_of(message) or []):
            text = unescape(message[start:end])
            changed = changed[:start] + escape("l'été " + text + " n'est '", doubles) + changed[end:]
        assert changed != message and skeleton(parser.parse(changed)) == skeleton(parser.parse(message))


@pytest.mark.parametrize(
    "part",
    [
        "{",
        "}",
        "'",
        "'{",
        "''{",
        "{n,plural,",
        "{n,plural,other{",
        "{n,plural,other{a}}",
        "a{b}",
        "{n, plural, offset:1 ",
        "# ",
        "=1{",
        " ",
    ],
)
def test_hostile_messages_take_linear_time(part: str) -> None:
    text = "{n, plural, other {" + part * (100_000 // len(part))
    began = time.process_time()
    is_message(text)
    texts_of(text)
    assert time.process_time() - began < 1  # quadratic time would be minutes
