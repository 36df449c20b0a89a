"""One pair of texts, changed as users will write it."""

import gzip
import itertools
import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from limelight.corpus.feeding.alter import DRAWN, AlteredPair, Change, Drawn, Speech, alter_pair, phrases
from limelight.corpus.feeding.augment import AugmentSettings, draw_alterations, may_hold
from limelight.corpus.feeding.names import NameLexicon
from limelight.text.careful.accelerators import lift_accelerator
from limelight.text.careful.protect import find

SPEECH = Speech(("en", "de"), 16)
PAIR = ("A red mat lies on the street.", "Eine rote Matte liegt auf der Straße.")
HELD = ("Open %s now.", "Jetzt %s öffnen.")
MARK = re.compile("⟦([0-9]+)⟧")
DETAILS = [draw * 0x9E3779B97F4A7C15 % 2**64 for draw in range(1, 400)]


def change(
    pair: tuple[str, str],
    kind: Drawn | None,
    *,
    protect: bool = True,
    draw: int = DETAILS[5],
    following: tuple[str, str] | None = None,
    speech: Speech = SPEECH,
) -> AlteredPair | None:
    plain = not may_hold(pa.array(pair)).any()
    return alter_pair(pair, Change(kind, protect, plain, draw, draw ^ DETAILS[0]), following, speech)


def texts(pair: tuple[str, str], kind: Drawn | None, **more: object) -> tuple[str, str]:
    found = change(pair, kind, **more)  # type: ignore[arg-type]
    assert found is not None
    return found.source, found.target


# --- marks


def test_what_must_survive_is_masked_alike_on_both_sides_by_any_of_the_marks() -> None:
    seen = set()
    for draw in DETAILS:
        source, target = texts(HELD, None, draw=draw)
        number = int(MARK.findall(source)[0])
        assert (source, target) == (f"Open ⟦{number}⟧ now.", f"Jetzt ⟦{number}⟧ öffnen.")
        seen.add(number)
    assert seen == set(range(16))


def test_several_marks_of_a_text_are_all_different() -> None:
    for draw in DETAILS:
        source, target = texts(("<b>%s</b> {0} of {1}", "<b>%s</b> {0} von {1}"), None, draw=draw)
        assert len(set(MARK.findall(source))) == 5 and MARK.findall(source) == MARK.findall(target)


def test_fewer_pieces_are_fewer_marks() -> None:
    seen = {int(n) for draw in DETAILS for n in MARK.findall(texts(HELD, None, draw=draw, speech=Speech(("en", "de"), 3))[0])}
    assert seen == {0, 1, 2}
    five = ("%s %s %s %s %s", "%s %s %s %s %s")
    assert change(five, None, speech=Speech(("en", "de"), 3)) is None


def test_a_pair_whose_sides_hold_other_things_stays_as_it_is() -> None:
    assert change(("Open %s now.", "Jetzt %d öffnen."), None) is None
    assert change(PAIR, None) is None


def test_accelerators_are_lifted_off_both_sides() -> None:
    assert texts(("_Open File", "Datei ö_ffnen"), None) == ("Open File", "Datei öffnen")


@pytest.mark.parametrize("kind", ["upper", "title", "lower", "typos", "punctuation", "copied"])
def test_what_may_be_a_placeholder_and_is_not_masked_keeps_its_letters(kind: Drawn) -> None:
    assert change(HELD, kind, protect=False) is None
    assert change(("Open now.", "Jetzt &file; öffnen."), kind, protect=False) is None  # also of the target alone
    assert change(PAIR, kind, protect=False) is not None


def test_a_masked_pair_may_be_changed_in_another_way_too() -> None:
    found = change(HELD, "upper")
    assert found is not None and found.kinds == ("protect", "upper")
    assert MARK.sub("*", found.source) == "OPEN * NOW." and MARK.sub("*", found.target) == "JETZT * ÖFFNEN."


# --- marks to copy


def test_a_word_that_both_sides_have_becomes_a_mark() -> None:
    pair = ("Start Firefox, then Thunderbird.", "Starten Sie Firefox, dann Thunderbird.")
    made = {tuple(MARK.sub("*", text) for text in texts(pair, "copied", draw=draw)) for draw in DETAILS}
    assert made == {
        ("Start *, then Thunderbird.", "Starten Sie *, dann Thunderbird."),
        ("Start Firefox, then *.", "Starten Sie Firefox, dann *."),
    }


def test_a_word_that_one_side_has_twice_or_that_is_short_is_not_meant() -> None:
    pair = ("He was in Rom and Rom.", "Er war in Rom.")
    assert all("Rom" in texts(pair, "copied", draw=draw)[0] for draw in DETAILS)


def test_without_such_a_word_marks_stand_where_they_mean_the_same() -> None:
    made = {tuple(MARK.sub("*", text) for text in texts(PAIR, "copied", draw=draw)) for draw in DETAILS}
    source, target = PAIR
    assert made == {
        (f"* {source}", f"* {target}"),
        (f"*: {source}", f"*: {target}"),
        (f"{source[:-1]} *.", f"{target[:-1]} *."),
        (f"{source} (*)", f"{target} (*)"),
        (f"*{source}*", f"*{target}*"),
    }
    comma = ("Well, it rains.", "Nun, es regnet.")
    assert ("Well, * it rains.", "Nun, * es regnet.") in {
        tuple(MARK.sub("*", text) for text in texts(comma, "copied", draw=draw)) for draw in DETAILS
    }


def test_every_mark_is_seen_in_every_place() -> None:
    """Which marks, and where, are drawn apart: else those with odd numbers would never stand at the end."""
    chances = draw_alterations(AugmentSettings(), 1, 0, np.arange(2_000))
    seen = set()
    for change_ in zip(chances.numbers.tolist(), chances.details.tolist(), strict=True):
        found = alter_pair(PAIR, Change("copied", False, True, *change_), None, SPEECH)
        assert found is not None
        seen.add((int(MARK.findall(found.source)[0]), MARK.sub("*", found.source)))
    assert len(seen) == 16 * 5


# --- case, typos, punctuation


def test_capitals_are_for_both_sides() -> None:
    assert texts(PAIR, "upper") == ("A RED MAT LIES ON THE STREET.", "EINE ROTE MATTE LIEGT AUF DER STRASSE.")


@pytest.mark.parametrize("source", ["OK", "一只 iPhone 在红色的垫子上", "42"])
def test_a_source_that_cannot_show_capitals_asks_for_none(source: str) -> None:
    assert change((source, "In Ordnung"), "upper") is None


@pytest.mark.parametrize("kind", ["title", "lower", "typos"])
def test_how_a_source_is_written_does_not_change_the_target(kind: Drawn) -> None:
    source, target = texts(PAIR, kind)
    assert source != PAIR[0] and target == PAIR[1]


def test_small_letters_are_for_the_whole_source_or_its_beginning() -> None:
    pair = ("The BBC", "Die BBC")
    assert {texts(pair, "lower", draw=draw)[0] for draw in DETAILS} == {"the bbc", "the BBC"}


def test_a_full_stop_goes_from_both_sides_or_from_neither() -> None:
    assert texts(PAIR, "punctuation") == (PAIR[0][:-1], PAIR[1][:-1])
    assert change(("A mat.", "Eine Matte"), "punctuation") is None
    assert change(("A mat", "Eine Matte."), "punctuation") is None
    assert change(("...", "..."), "punctuation") is None


# --- merged


def test_merged_pairs_are_masked_as_one() -> None:
    found = change(HELD, "merged", following=("Save %d!", "%d sichern!"))
    assert found is not None and found.kinds == ("merged", "protect")
    assert MARK.sub("*", found.source) == "Open * now. Save *!" and MARK.sub("*", found.target) == "Jetzt * öffnen. * sichern!"
    assert len(set(MARK.findall(found.source))) == 2


def test_the_last_pair_has_none_to_be_merged_with() -> None:
    assert change(PAIR, "merged", following=None) is None


def test_where_no_spaces_are_written_none_stands_between_sentences() -> None:
    speech = Speech(("en", "ja"), 16)
    assert texts(("A dog.", "犬。"), "merged", following=("A cat.", "猫。"), speech=speech) == (
        "A dog. A cat.",
        "犬。猫。",
    )
    assert Speech(("ko", "xx"), 16).spaces == (" ", " ")


# --- terms


def test_terms_are_words_of_the_target_that_begin_and_end_with_a_long_one() -> None:
    text = "Eine rote Matte, die auf der Straße liegt."
    made = [phrases(text, draw, spaced=True) for draw in DETAILS]
    assert {len(terms) for terms in made} == {1, 2}
    terms = {term for some in made for term in some}
    assert {"Eine", "rote Matte", "Eine rote Matte", "Straße liegt"} <= terms
    assert not terms & {"die", "auf", "Matte, die", "die auf", "auf der Straße"}
    for some in made:
        places = [(text.index(term), text.index(term) + len(term)) for term in some]
        assert all(a[1] <= b[0] or b[1] <= a[0] for a, b in itertools.combinations(places, 2))


def test_terms_do_not_change_the_pair_and_hold_no_mark() -> None:
    found = change(("See %s here", "Sieh %s hier oben"), "terms")
    assert found is not None and found.kinds == ("protect", "terms")
    assert found.terms and all(not MARK.search(term) and term in found.target for term in found.terms)
    assert change(("a b", "a b"), "terms") is None


def test_where_no_spaces_are_written_a_term_is_some_letters() -> None:
    text = "敏捷的棕色狐狸跳过懒狗"
    terms = {term for draw in DETAILS for term in phrases(text, draw, spaced=False)}
    assert {len(term) for term in terms} == {2, 3, 4, 5} and all(term in text for term in terms)
    assert {text.index(term) for term in terms} >= set(range(len(text) - 1))


# --- signs

HOLDING = [
    "%s", "{0}", "${x}", "<b>", "&amp;", "see http://a.b", "www.a.de", "mailto:x", "a@b.de", "/usr/bin", "C:\\Users", "~/x.txt", "12345",
    "DE89 3704 0044 0532 0130 00", "GB29 NWBK 6016 1331 9268 19", "AB-12345", "2024-05-03", "192.168.0.1", "deadbeef12345", "ab12345",
    "a \u2764\ufe0f b", "\U0001f600", "1\ufe0f\u20e3", "⟦3⟧", "__name__", "_File", "E&xit", "Save ~As", "src/main.py",
    "\\\\server\\a", "%%",
]  # fmt: skip


@pytest.mark.parametrize("text", HOLDING)
def test_what_is_protected_has_a_sign(text: str) -> None:
    assert find(text) or lift_accelerator(text)[1] is not None
    assert may_hold(pa.array([text]))[0]


@pytest.mark.parametrize(
    "text", ["A red mat.", "In 1999 and in 2005, twice", "Don't! (well...)", "3.5 of 10", "“Ja”, sagte er \u2013 nein…"]
)
def test_ordinary_text_has_none(text: str) -> None:
    assert not may_hold(pa.array([text]))[0]


def test_no_text_of_a_catalogue_holds_something_without_a_sign() -> None:
    if "LIMELIGHT_DATA" not in os.environ:
        pytest.skip("needs the folder of LIMELIGHT_DATA")
    with gzip.open(Path(os.environ["LIMELIGHT_DATA"]) / "l10n" / "tm.en-de.jsonl.gz") as lines:
        texts = [json.loads(line)["src"] for line in itertools.islice(lines, 0, 30_000, 3)]
    signs = may_hold(pa.array(texts))
    without = [text for text, sign in zip(texts, signs, strict=True) if not sign]
    assert 0.3 < len(without) / len(texts) < 0.9
    assert [text for text in without if find(text) or lift_accelerator(text)[1] is not None] == []


def test_every_kind_that_can_be_drawn_does_something() -> None:
    named = Speech(("en", "de"), 16, NameLexicon({"A": "Eine"}, {("", ""): [("A", "Eine"), ("Some", "Die")]}))
    done = {kind for draw in DETAILS[:40] for kind in DRAWN if change(PAIR, kind, draw=draw, following=HELD, speech=named)}
    assert done == set(DRAWN)
