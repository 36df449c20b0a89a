"""Leaks: held-out sentences are found again when a word or a letter has changed, and other sentences are left alone."""

import difflib
import gzip
import os
import pickle
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from limelight.corpus.cleaning.leaks import COMMONEST, LEAST_WORDS, LeakIndex, SideIndex, similarity
from limelight.corpus.config import HeldOutSettings

Edit = Callable[[list[str], random.Random], list[str]]

HELD_OUT = [
    ("The committee will meet again on Thursday afternoon.", "Der Ausschuss tagt am Donnerstagnachmittag wieder."),
    ("A man in a black shirt sings into a microphone.", "Ein Mann in schwarzem Hemd singt in ein Mikrofon."),
    ("Yes, of course.", "Ja, natürlich."),
    ("12:30", "12.30"),
]
OTHER = "Dieser Satz hat mit keinem anderen etwas gemein."

NEAR = HeldOutSettings().near


def column(*texts: str) -> pl.Series:
    return pl.Series(texts, dtype=pl.String)


def leaks(source: str, target: str, near: float = NEAR) -> bool:
    """Asked with an unrelated pair before and after, which must pass."""
    index = LeakIndex(tuple([s for s, _ in HELD_OUT]), tuple([t for _, t in HELD_OUT]), near)
    plain = "An unrelated sentence about quite other matters."
    found = index.find(column(plain, source, plain), column(OTHER, target, OTHER)).to_list()
    assert found[0] is found[2] is False
    return found[1]


@pytest.mark.parametrize(
    "source",
    [
        "The committee will meet again on Thursday afternoon.",
        "THE COMMITTEE WILL MEET AGAIN ON THURSDAY AFTERNOON",
        "the committee will meet - again - on thursday, afternoon!",
        "1. The committee will meet again on Thursday afternoon (12)",
        "Thé cömmittee will meet again on Thursday afternoon.",
        "yes of course",
        "12:30",
    ],
)
def test_a_held_out_source_is_found_whatever_its_case_accents_digits_and_signs(source: str) -> None:
    assert leaks(source, OTHER)
    assert leaks(source, OTHER, near=1.0)


@pytest.mark.parametrize(
    ("held_out", "near"),
    [
        ("委员会将于星期四下午再次开会讨论新的桥梁。", "委员会将于星期三下午再次开会讨论新的桥梁。"),
        ("委員会は木曜日の午後に新しい橋について再び話し合う。", "委員会は水曜日の午後に新しい橋について再び話し合う。"),
        ("คณะกรรมการจะประชุมอีกครั้งในบ่ายวันพฤหัสบดี", "คณะกรรมการจะประชุมอีกครั้งในเช้าวันพฤหัสบดี"),
    ],
)
def test_nearly_the_same_is_found_where_words_stand_without_blanks(held_out: str, near: str) -> None:
    index = LeakIndex((held_out,), ("ཨ",), NEAR)
    found = index.find(column(near, "今日は天気がいいので散歩に行きましょう。"), column(OTHER, OTHER)).to_list()
    assert found == [True, False]


@pytest.mark.parametrize("source", ["Yes, of curse.", "Of course, yes.", "12:31", "Yes", "", "!?"])
def test_a_short_source_with_other_letters_is_another_sentence(source: str) -> None:
    assert not leaks(source, OTHER)


def test_a_held_out_target_is_found_if_it_is_long_enough_to_be_no_accident() -> None:
    other = "An unrelated sentence about quite other matters."
    assert leaks(other, "der Ausschuss tagt am Donnerstagnachmittag wieder")
    assert not leaks(other, "Ja, natürlich.")
    assert not leaks(other, "12.30")


def test_a_target_is_no_source() -> None:
    assert not leaks(HELD_OUT[0][1], HELD_OUT[0][0])


@pytest.mark.parametrize(
    "source",
    [
        "The committee will meet again on Friday afternoon.",
        "The committee will meet again on Thursday aftenroon.",
        "The committee will meet on Thursday afternoon.",
        "The whole committee will meet again on Thursday afternoon.",
        "A man in a white shirt sings into a microphone.",
    ],
)
def test_an_edited_sentence_is_near_but_not_the_same(source: str) -> None:
    assert leaks(source, OTHER, near=0.7)
    assert not leaks(source, OTHER, near=1.0)


def test_an_edited_sentence_is_near_whatever_its_case_accents_and_signs() -> None:
    assert leaks("THÉ CÖMMITTEE WÏLL - MÈET ÀGAIN - ÖN FRIDÄY ÄFTERNÖON", OTHER, near=0.7)


def test_an_edited_target_is_near() -> None:
    other = "An unrelated sentence about quite other matters."
    assert leaks(other, "Ein Mann in weißem Hemd singt in ein Mikrofon.", near=0.7)


def test_fewer_words_than_the_least_are_compared_exactly_only() -> None:
    words = ["international", "cooperation", "strengthens", "multilateral", "institutions", "worldwide"]
    for count in (LEAST_WORDS - 1, LEAST_WORDS):
        held_out, edited = " ".join(words[:count]), " ".join([*words[: count - 1], words[count - 1][:-1] + "x"])
        assert SideIndex([held_out], NEAR).alike(column(edited)).to_list() == [count >= LEAST_WORDS]


def test_a_phrase_in_very_many_sentences_points_to_none_but_equal_text_is_found() -> None:
    numbers = ["".join("abcdefghij"[int(digit)] for digit in str(number)) * 2 for number in range(COMMONEST + 1)]
    crowd = SideIndex([f"this is the number {number}" for number in numbers], 0.6)
    few = SideIndex([f"this is the number {number}" for number in numbers[:-1]], 0.6)
    text = column("this is the number zz")
    assert few.alike(text).to_list() == [True]
    assert crowd.alike(text).to_list() == [False]
    assert crowd.same(column(f"This is the number {numbers[0]}!")).to_list() == [True]


def test_an_empty_index_and_empty_columns_find_nothing() -> None:
    assert LeakIndex((), (), NEAR).find(column("", "a b c d e f"), column("x", "")).to_list() == [
        False,
        False,
    ]
    assert LeakIndex(("a b c d e f",), ("x",), NEAR).find(column(), column()).to_list() == []


def test_an_index_that_travelled_is_equal_and_finds_the_same() -> None:
    index = LeakIndex((HELD_OUT[0][0],), (HELD_OUT[0][1],), NEAR)
    index.find(column("x"), column("x"))
    copy = pickle.loads(pickle.dumps(index))
    assert copy == index
    assert copy.find(column(HELD_OUT[0][0].upper()), column("x")).to_list() == [True]


def test_similarity_is_one_for_equals_and_nothing_for_strangers_and_has_no_sides() -> None:
    assert similarity("abcdef", "abcdef") == 1
    assert similarity("abcdef", "uvwxyz") == similarity("ab", "ab") == similarity("", "") == 0
    assert similarity("abcdef", "abcdxf") == similarity("abcdxf", "abcdef") == 0.5
    sentence = "acommitteeofthewholehousesatlate"
    assert 0.85 < similarity(sentence, sentence.replace("m", "n", 1)) < 0.95


def test_pairs_are_judged_one_by_one() -> None:
    chance = random.Random(5)
    sentences = sentences_drawn(40, chance)
    held_out = SideIndex(sentences[:20], NEAR)
    texts = [" ".join(edit(text.split(), chance)) for text in sentences for edit in EDITS]
    together = held_out.alike(column(*texts)).to_list()
    assert together == [held_out.alike(column(text))[0] for text in texts]
    assert 0 < sum(together) < len(texts)


# Recall and false alarms.


def replaced(words: list[str], chance: random.Random) -> list[str]:
    place = chance.randrange(len(words))
    return [*words[:place], chance.choice(["dog", "under", "walking", "red", "because"]), *words[place + 1 :]]


def deleted(words: list[str], chance: random.Random) -> list[str]:
    place = chance.randrange(len(words))
    return words[:place] + words[place + 1 :]


def inserted(words: list[str], chance: random.Random) -> list[str]:
    place = chance.randrange(len(words) + 1)
    return [*words[:place], chance.choice(["dog", "under", "walking", "red", "because"]), *words[place:]]


def mistyped(words: list[str], chance: random.Random) -> list[str]:
    place = chance.choice([place for place, word in enumerate(words) if len(word) > 2])
    letter = chance.randrange(len(words[place]))
    return [*words[:place], words[place][:letter] + "q" + words[place][letter + 1 :], *words[place + 1 :]]


def swapped(words: list[str], chance: random.Random) -> list[str]:
    place = chance.randrange(len(words) - 1)
    return [*words[:place], words[place + 1], words[place], *words[place + 2 :]]


EDITS: tuple[Edit, ...] = (replaced, deleted, inserted, mistyped, swapped)
SYLLABLES = ["ka", "lo", "mi", "ren", "tas", "ul", "ver", "no", "pe", "shi", "dra", "gon", "bel", "fi"]


def sentences_drawn(count: int, chance: random.Random) -> list[str]:
    """As long as those of people, 6 to 20 words of one to four syllables."""
    vocabulary = ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(400)]
    return [" ".join(chance.choices(vocabulary, k=chance.randint(6, 20))) for _ in range(count)]


def recall(sentences: list[str], edit: Edit, near: float = NEAR) -> float:
    chance = random.Random(3)
    edited = column(*(" ".join(edit(sentence.split(), chance)) for sentence in sentences))
    index = LeakIndex(tuple(sentences), (), near)
    return float(index.find(edited, column(*[OTHER] * len(sentences))).mean())  # type: ignore[arg-type]


def test_edited_sentences_of_six_words_and_more_are_found_again() -> None:
    sentences = sentences_drawn(400, random.Random(1))
    assert sum(recall(sentences, edit) for edit in EDITS) / len(EDITS) >= 0.95


@pytest.mark.parametrize("edit", EDITS)
def test_every_kind_of_edit_is_found_in_sentences_of_twelve_words(edit: Edit) -> None:
    sentences = [sentence for sentence in sentences_drawn(400, random.Random(2)) if len(sentence.split()) >= 12]
    assert recall(sentences, edit) >= 0.95


@pytest.mark.parametrize("edit", EDITS)
def test_edited_sentences_are_not_found_by_exact_comparison(edit: Edit) -> None:
    """The control: what the tests above count is found by nearness alone."""
    assert recall(sentences_drawn(100, random.Random(1)), edit, near=1.0) <= 0.05


def test_unrelated_sentences_raise_no_alarm() -> None:
    sentences = sentences_drawn(3000, random.Random(4))
    found = SideIndex(sentences[:1000], NEAR).alike(column(*sentences[1000:]))
    assert found.sum() == 0


@cache
def real(name: str, language: str) -> list[str]:
    folder = os.environ.get("LIMELIGHT_DATA")
    if not folder:
        pytest.skip("LIMELIGHT_DATA names no folder with multi30k")
    with gzip.open(Path(folder) / "multi30k" / f"{name}.{language}.gz", "rt", encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n") for line in lines]


def test_edited_real_sentences_are_found_again() -> None:
    sentences = [text for text in real("test_2016_flickr", "en") if len(text.split()) >= 6]
    assert sum(recall(sentences, edit) for edit in EDITS) / len(EDITS) >= 0.95


@pytest.mark.parametrize("edit", [replaced, swapped])
def test_every_kind_of_edit_is_found_in_real_sentences_of_six_words(edit: Edit) -> None:
    sentences = [text for name in ("val", "test_2016_flickr") for text in real(name, "en") if len(text.split()) in range(6, 10)]
    assert recall(sentences, edit) >= 0.85  # one word of six is a sixth of the sentence


@pytest.mark.slow
def test_real_sentences_that_are_found_do_resemble_a_held_out_one() -> None:
    """Captions repeat themselves: 3 in 1000 of the training set are found. An alarm is false if most words differ."""
    held_out = real("val", "en") + real("test_2016_flickr", "en")
    train = real("train", "en")
    found = SideIndex(held_out, NEAR).alike(column(*train)).arg_true().to_list()
    assert 5 <= len(found) <= 0.005 * len(train)
    words = [text.lower().rstrip(".").split() for text in held_out]
    false = sum(
        max(difflib.SequenceMatcher(None, train[row].lower().rstrip(".").split(), other).ratio() for other in words) < 0.6 for row in found
    )
    assert false <= 0.001 * len(train)
    assert false <= 0.1 * len(found)
