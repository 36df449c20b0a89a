"""Normalization: each step does its one thing, the steps run in their own order, and twice is the same as once."""

# ruff: noqa: RUF001 (letters that look like others are what is tested)

import time
import unicodedata
from itertools import permutations
from random import Random

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from limelight.text.normalize import DEFAULT_STEPS, MAY_COMPOSE, STEPS, Step, normalize, normalize_text, recompose

# Every character that a step cares about, the neighbours it must not touch, and some letters.
SPECIAL = (
    "aé e\u0301\u0308\u00a0\u2003\u2028\t\n\r\x85\u3000"
    "\u00ad\u200b\u200c\u200d\u2060\ufeff\u202a\u202e\u2066\u2069\u200e«»“”„‟‘’‚‛‹›\"'ſ𝄞\u2126"
)
texts = st.text(st.one_of(st.sampled_from(SPECIAL), st.characters(codec="utf-8")), max_size=12)


def apply(text: str, *steps: Step) -> str:
    """Between two tidy neighbours, which must stay as they are."""
    before, result, after = normalize(pl.Series(["tidy", text, "also tidy"]), steps).to_list()
    assert (before, after) == ("tidy", "also tidy")
    if all(unicodedata.category(letter) != "Cn" for letter in text):  # Polars may know a later Unicode
        assert normalize_text(text, steps) == result
    return result


@given(texts)
def test_nfc_is_that_of_the_standard(text: str) -> None:
    assert apply(text, "nfc") == unicodedata.normalize("NFC", text)


def test_nfc_composes_letter_and_accent_and_keeps_compatibility_forms() -> None:
    assert apply("cafe\u0301", "nfc") == "café"
    assert apply("\u2126 ﬁ ² Ａ", "nfc") == "\u03a9 ﬁ ² Ａ"


@pytest.mark.parametrize("sign", "\u00ad\u200b\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
def test_invisible_signs_go(sign: str) -> None:
    assert apply(f"{sign}Wach{sign}stube{sign}", "invisible") == "Wachstube"


@pytest.mark.parametrize("text", ["می\u200cخواهم", "क्\u200dष", "👩\u200d🚀", "a\u200eb", "a\u00a0b", "a - b", "\u2010"])
def test_joiners_marks_and_spaces_are_not_invisible(text: str) -> None:
    assert apply(text, "invisible") == text


@given(texts)
def test_spaces_leave_single_blanks_between_words_and_none_at_the_ends(text: str) -> None:
    white = set(
        "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
    )
    words = "".join(" " if letter in white else letter for letter in text).split(" ")
    assert apply(text, "spaces") == " ".join(word for word in words if word)


@pytest.mark.parametrize("text", [" a", "a ", "\u00a0", "a\u00a0b", "a  b", "a\n", "\ta\r\n\u2028b\u3000"])
def test_every_kind_of_untidy_space_is_noticed(text: str) -> None:
    assert apply(text, "spaces") == " ".join(text.split())


def test_quotes_become_the_typewriter_ones() -> None:
    assert apply("„So“, «so», “so” ‟so”, ‚so‘, ‹so›, it’s ‛n’ 5′ 6″", "quotes") == (
        '"So", "so", "so" "so", \'so\', \'so\', it\'s \'n\' 5′ 6″'
    )


def test_quotes_are_kept_unless_asked_for() -> None:
    assert "quotes" not in DEFAULT_STEPS
    assert apply("„So“ it’s", *DEFAULT_STEPS) == "„So“ it’s"


def test_no_steps_change_nothing() -> None:
    assert apply(" e\u0301\u00ad «") == " e\u0301\u00ad «"


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@given(text=texts)
def test_each_step_twice_is_the_step_once(step: Step, text: str) -> None:
    once = apply(text, step)
    assert apply(once, step) == once


@given(texts)
def test_all_steps_twice_are_all_steps_once_in_tidy_unicode(text: str) -> None:
    composed = "".join(letter for letter in text if not unicodedata.combining(letter))
    once = apply(composed, *STEPS)
    assert apply(once, *STEPS) == once


@given(texts)
@example("e\u00ad\u0301")
def test_all_steps_twice_are_all_steps_once(text: str) -> None:
    once = apply(text, *DEFAULT_STEPS)
    assert apply(once, *DEFAULT_STEPS) == once


@pytest.mark.slow
@given(texts)
@settings(max_examples=30)
def test_the_order_asked_for_does_not_matter(text: str) -> None:
    assert len({apply(text, *steps) for steps in permutations(STEPS)}) == 1


def test_what_an_invisible_sign_leaves_is_tidied_afterwards() -> None:
    assert apply("a \u200b b \ufeff", *DEFAULT_STEPS) == "a b"
    assert apply("\ufeff", *DEFAULT_STEPS) == ""


@pytest.mark.slow
@given(st.lists(texts, max_size=6), st.sampled_from(STEPS))
def test_a_column_is_normalized_text_by_text(column: list[str], step: Step) -> None:
    together = normalize(pl.Series(column, dtype=pl.String), [step]).to_list()
    assert together == [normalize(pl.Series([text]), [step])[0] for text in column]


def test_nothing_is_normalized_to_nothing() -> None:
    assert normalize(pl.Series([], dtype=pl.String), STEPS).to_list() == []


@pytest.mark.parametrize("step", ["nfc", "invisible", "spaces"])
def test_the_column_that_is_normalized_stays_as_it_was(step: Step) -> None:
    column = pl.Series(["e\u0301\u00ad  ", "tidy"])
    normalize(column, [step])
    assert column.to_list() == ["e\u0301\u00ad  ", "tidy"]


@pytest.mark.slow
def test_text_that_is_not_looked_at_twice_is_composed_already() -> None:
    """Over all of Unicode: what NFC changes, and what it joins to the character before."""
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    changed = [char for char in every if unicodedata.normalize("NFC", char) != char]
    parts = [unicodedata.normalize("NFD", char) for char in every if unicodedata.normalize("NFC", char) == char]
    joined = {part for text in parts for part in text[1:]}
    assert pl.Series([*changed, *joined]).str.contains(MAY_COMPOSE).all()
    assert not pl.Series(["Straße Öl naïve русский 漢字 한국어"]).str.contains(MAY_COMPOSE).any()


@pytest.mark.slow
def test_a_single_text_is_normalized_like_a_column_whatever_character_it_has() -> None:
    known = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    column = pl.Series([f"a{letter}b {letter}" for letter in known])
    assert normalize(column, STEPS).to_list() == [normalize_text(text, STEPS) for text in column]


def test_marks_come_into_their_order_as_unicode_has_it() -> None:
    """Also those that are starters by themselves and none when they are parted, letters that are several, and what is no mark at all."""
    chance = Random(5)
    marks = [chr(code) for code in range(0x300, 0x20D0) if unicodedata.combining(chr(code))]
    letters = [*chance.sample(marks, 40), *"aé😀≠ạ가각\u1100\u1161\u11a8\u0344\u0f73\u0f75"]
    for _ in range(400):
        text = "".join(chance.choices([*letters, *marks], k=chance.randint(60, 200)))
        for form in ("NFC", "NFD"):
            assert recompose(text, form) == unicodedata.normalize(form, text)  # type: ignore[arg-type]


def test_a_letter_with_a_hundred_thousand_marks_does_not_hold_all_threads() -> None:
    """It took a minute, and a server answered nobody meanwhile."""
    began = time.process_time()
    assert len(recompose("a" + "\u0301\u0316" * 50_000)) == 100_000
    assert time.process_time() - began < 2
