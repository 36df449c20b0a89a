"""Text as people write it when nobody checks."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.text.careful import noise
from limelight.text.pieces.tokenizer import placeholder

DRAWS = st.integers(0, 2**64 - 1)
MARKED = st.lists(st.one_of(st.text("abcdeXYZäß .,'-", max_size=9), st.integers(0, 15).map(placeholder)), max_size=9).map("".join)


@pytest.mark.parametrize(
    ("text", "language", "capitals"),
    [
        ("Die Straße über Köln.", "de", "DIE STRASSE ÜBER KÖLN."),
        ("diyarbak\u0131r iyi", "tr-TR", "DİYARBAKIR İYİ"),
        ("diyarbakir", "en", "DIYARBAKIR"),
        ("漢字 and ⟦3⟧", "zh", "漢字 AND ⟦3⟧"),
    ],
)
def test_capitals_are_those_of_the_language(text: str, language: str, capitals: str) -> None:
    assert noise.upper(text, language) == capitals


def test_capitals_are_composed_as_the_text_was() -> None:
    """ΐ has no capital of its own: Python writes it as three signs, two of which can be composed."""
    assert unicodedata.is_normalized("NFC", noise.upper("ΐ ŉ ǰ", "el"))


def test_small_letters_are_those_of_the_language() -> None:
    assert noise.lower("DİYARBAKIR", "tr") == "diyarbak\u0131r"
    assert noise.lower("The BBC", "en") == "the bbc"
    assert noise.lower_first("The BBC", "en") == "the BBC"
    assert noise.lower_first("", "en") == ""


def test_a_title_has_a_capital_where_a_word_begins_and_nowhere_else() -> None:
    assert noise.title('i don\'t (really) like "old" e-mail ⟦3⟧now⟦4⟧ 3d', "en") == ('I Don\'t (Really) Like "Old" E-mail ⟦3⟧Now⟦4⟧ 3d')
    assert noise.title("iki \u0131ş\u0131k", "tr") == "İki Iş\u0131k"


@pytest.mark.parametrize(
    ("text", "bare"),
    [("A mat.", "A mat"), ("Bonjour !", "Bonjour"), ("Wait...", "Wait"), ("犬。", "犬"), ("A mat", "A mat"), ("", "")],
)
def test_what_ends_a_sentence_is_taken_off(text: str, bare: str) -> None:
    assert noise.without_final(text) == bare
    assert noise.without_final(text) + noise.final(text) == text


@pytest.mark.slow
@given(MARKED, DRAWS)
def test_marks_stay_whatever_is_done(text: str, draw: int) -> None:
    marks = re.findall("⟦[0-9]+⟧", text)
    for changed in (
        noise.upper(text, "de"),
        noise.lower(text, "de"),
        noise.lower_first(text, "de"),
        noise.title(text, "de"),
        noise.typos(text, draw),
        noise.without_final(text),
    ):
        assert re.findall("⟦[0-9]+⟧", changed) == marks


def kind_of(word: str, wrong: str) -> str:
    if len(wrong) < len(word):
        return "lost"
    if len(wrong) > len(word):
        return "doubled"
    return "swapped" if sorted(wrong) == sorted(word) else "mistyped"


def test_all_four_mistakes_are_made_everywhere_but_at_the_first_letter() -> None:
    made = {wrong: kind_of("yellow", wrong) for draw in range(3_000) for wrong in (noise.typos("yellow", draw),) if wrong != "yellow"}
    assert set(made.values()) == {"swapped", "lost", "doubled", "mistyped"}
    assert {"eyllow", "yello", "yyellow", "yellpw", "yellwo"} <= made.keys()
    assert all(wrong[0] == "y" or wrong == "eyllow" for wrong in made)
    assert all(sum(a != b for a, b in zip("yellow", wrong, strict=True)) == 1 for wrong, kind in made.items() if kind == "mistyped")


@given(DRAWS)
def test_mistakes_are_few_and_in_words_that_one_can_still_read(draw: int) -> None:
    text = "the old man 12345 sees a yellow tent " * 4
    words = zip(text.split(), noise.typos(text, draw).split(), strict=True)
    wrong = [(word, found) for word, found in words if word != found]
    assert len(wrong) <= noise.MOST_MISTAKES
    assert {word for word, _ in wrong} <= {"sees", "yellow", "tent"}


def test_more_words_have_more_mistakes() -> None:
    def most(words: int) -> int:
        text = " ".join(["yellow"] * words)
        return max(sum(w != "yellow" for w in noise.typos(text, 2**61 - 7 * draw).split()) for draw in range(200))

    assert [most(1), most(9), most(40)] == [1, 2, 3]


def test_a_text_of_short_words_and_numbers_has_nothing_to_mistype() -> None:
    assert noise.typos("a b 123456 ⟦12⟧ the", 12345) == "a b 123456 ⟦12⟧ the"


def test_a_capital_stays_one_when_its_neighbour_is_hit() -> None:
    hit = {noise.typos("YELLOW", draw) for draw in range(2_000)}
    assert "YELLPW" in hit and all(word.isupper() for word in hit)
