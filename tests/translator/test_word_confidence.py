"""From the probabilities of pieces to the confidence of words and sentences."""

import pytest

from limelight.bundle.confidence import Calibration, Curve
from limelight.translator.confidence import (
    CONTEXT,
    Word,
    sentence_confidence,
    split_words,
    transfer_confidence,
    words_of,
)

HALVED = Calibration(words=Curve(knots=((0, 0), (1, 0.5))), sentences=Curve(knots=((0, 0.1), (1, 0.9))), lines=9)


def claimed(product: float, whole: float) -> float:
    return product ** (1 - CONTEXT) * whole**CONTEXT


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([("▁Kat", 0.5), ("ze", 0.8), ("▁da", 0.9)], [("Katze", 0.4), ("da", 0.9)]),
        ([("▁Matte", 0.5), (".", 0.1)], [("Matte.", 0.5)]),  # punctuation at a word does not count
        ([("▁a", 0.5), ("▁...", 0.3)], [("a", 0.5), ("...", 0.3)]),  # unless there is nothing else
        ([("▁of▁the", 0.6), ("m", 0.5)], [("of", 0.6), ("them", 0.3)]),
        ([("▁", 0.9), ("▁x", 0.7)], [("x", 0.7)]),
        ([("▁Gr", 0.5), ("<0xC3>", 0.8), ("<0xB6>", 0.5), ("▁x", 0.7)], [("Grö", 0.2), ("x", 0.7)]),
        ([("▁a", 0.5), ("<0x20>", 0.8), ("b", 0.5)], [("a", 0.5), ("b", 0.5)]),
        ([("▁a", 0.5), ("<0xFF>", 0.5)], [("a\ufffd", 0.25)]),
        ([("⟦3⟧", 0.5), ("▁x", 0.7)], [("⟦3⟧", 0.5), ("x", 0.7)]),
        ([("▁猫", 0.5), ("だった。", 0.4)], [("猫", 0.5), ("だ", 0.4), ("っ", 0.4), ("た。", 0.4)]),
        ([], []),
    ],
)  # fmt: skip
def test_a_word_is_as_sure_as_all_its_pieces_together(pieces: list[tuple[str, float]], words: list[tuple[str, float]]) -> None:
    found = words_of(pieces, 1.0)
    assert [word.text for word in found] == [text for text, _ in words]
    assert [word.confidence for word in found] == pytest.approx([claimed(product, 1.0) for _, product in words])


def test_a_word_in_an_improbable_sentence_is_less_sure() -> None:
    likely, unlikely = (words_of([("▁Hund", 0.8)], whole)[0].confidence for whole in (0.9, 0.2))
    assert (likely, unlikely) == pytest.approx((claimed(0.8, 0.9), claimed(0.8, 0.2)))


def test_a_calibration_says_what_is_true_of_what_is_claimed() -> None:
    [word] = words_of([("▁Hund", 0.8)], 0.8, HALVED)
    assert word == Word("Hund", pytest.approx(0.4))


def test_without_probabilities_of_its_pieces_a_word_has_none() -> None:
    assert words_of([("▁Hund", None), ("▁da", 0.9)], 0.8, HALVED)[0] == Word("Hund", None)
    assert words_of([("▁Hund", 0.9), ("e", None)], 0.8) == [Word("Hunde", None)]
    assert words_of([("▁Hund", None)], 0.8) == [Word("Hund", None)]


def test_a_sentence_is_as_sure_as_its_words_on_average() -> None:
    words = [Word("a", 0.9), Word("b", None), Word("c", 0.4)]
    assert sentence_confidence(words, 0.2, HALVED) == pytest.approx(0.65)


def test_a_sentence_whose_words_are_not_known_is_judged_as_a_whole() -> None:
    assert sentence_confidence([Word("a", None)], 0.5, HALVED) == pytest.approx(0.5)
    assert sentence_confidence([], 0.25, HALVED) == pytest.approx(0.3)
    assert sentence_confidence([Word("a", 0.9)], 0.2, None) == 0.2


def test_what_stands_for_a_mark_is_as_sure_as_the_mark() -> None:
    words = [Word("Zu", 0.9), Word("⟦0⟧", 0.7), Word("⟦1⟧Los⟦2⟧", 0.6), Word("und", 0.5)]
    assert transfer_confidence(words, "Zu New York <b>Los</b> und") == [
        Word("Zu", 0.9),
        Word("New", 0.6),
        Word("York", 0.6),
        Word("<b>Los</b>", 0.6),
        Word("und", 0.5),
    ]
    assert transfer_confidence(words, "Zu %s <b>Los</b> und") == [
        Word("Zu", 0.9),
        Word("%s", 0.7),
        Word("<b>Los</b>", 0.6),
        Word("und", 0.5),
    ]


def test_what_a_rule_added_has_no_confidence() -> None:
    assert transfer_confidence([Word("Datei", 0.9)], "Datei (_F)") == [Word("Datei", 0.9), Word("(_F)", None)]
    assert transfer_confidence([Word("Datei", 0.9), Word("da", 0.4)], "Datei") == [Word("Datei", 0.9)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" two  words ", ["two", "words"]),
        ("Das ist 猫だ。", ["Das", "ist", "猫", "だ。"]),
        ("น้ำ x", ["น้", "ำ", "x"]),  # a tone sign goes with its letter
        ("Windowsの⟦0⟧で", ["Windows", "の", "⟦0⟧", "で"]),
        ("no\u00a0break\nline", ["no\u00a0break\nline"]),
        ("", []),
    ],
)
def test_words_stand_between_spaces_or_are_letters_of_scripts_without(text: str, words: list[str]) -> None:
    assert split_words(text) == words
