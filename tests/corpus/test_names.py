"""Names of a text, found with their translations, and one of them in the place of another."""

import time
from pathlib import Path

import polars as pl
import pytest
from tagged_corpora import in_language, prepare, write

from limelight.corpus.feeding import names
from limelight.corpus.feeding.alter import DRAWN
from limelight.corpus.feeding.augment import AugmentSettings
from limelight.corpus.feeding.batches import Batcher, BatchSettings
from limelight.corpus.feeding.names import MOST_IN_A_TEXT, NameLexicon, find_names, swap_name

PAIRS = [
    ("Der Zug nach Rom ist voll.", "The train to Rome is full."),
    ("Wir fahren nach Rom.", "We go to Rome."),
    ("Ein Brief aus Rom kam an.", "A letter from Rome came."),
    ("Sie reisten nach Wien.", "They travelled to Vienna."),
    ("Wien ist weit.", "Vienna is far."),
    ("Er kommt aus Wien.", "He comes from Vienna."),
    ("Nachts schläft Neu York nicht.", "At night New York does not sleep."),
    ("Ich sah Neu York im Regen.", "I saw New York in the rain."),
    ("Am Tag ist der Hund wach.", "By Day the dog is awake."),
    ("Jeder Tag zählt.", "Every Day counts, every day."),
    ("Nur einmal war ich in Prag.", "Only once I was in Prague."),
]
DRAWS = [draw * 0x9E3779B97F4A7C15 % 2**64 for draw in range(200)]


def learn(pairs: list[tuple[str, str]]) -> NameLexicon:
    source, target = zip(*pairs, strict=True)
    return find_names(pl.Series(source), pl.Series(target))


def test_names_are_found_with_their_translations() -> None:
    # Neither parts of a longer name, nor words that are also small, nor what occurs once.
    assert learn(PAIRS).translations == {"Rom": "Rome", "Wien": "Vienna"}


def test_a_part_that_many_longer_names_share_is_no_name() -> None:
    saints = [(f"Wir waren in San {city}.", f"We were in San {city}.") for city in ("Diego", "Jose", "Antonio", "Marino", "Remo") * 2]
    assert learn([*PAIRS, *saints]).translations == {"Rom": "Rome", "Wien": "Vienna"}


@pytest.mark.parametrize(
    "pair",
    [
        ("Geh nach Rom.com jetzt.", "Go to Rome.com now."),
        ("Schreib nach Rom@post.de.", "Write to Rome@post.de."),
        ("Fahr nach Rom\u0301.", "Go to Rome\u0301."),  # with an accent it is another word
    ],
)
def test_an_address_and_half_a_word_are_no_names(pair: tuple[str, str]) -> None:
    assert swap_name(pair, 3, learn(PAIRS)) == pair


def test_a_name_with_an_accent_of_its_own_is_one_word() -> None:
    known = learn([(source.replace("Rom", "Ro\u0301m"), target) for source, target in PAIRS])
    assert known.translations["Ro\u0301m"] == "Rome"
    assert swap_name(("Wir fahren nach Ro\u0301m.", "We go to Rome."), 3, known) == ("Wir fahren nach Wien.", "We go to Vienna.")


def test_a_name_may_stand_where_both_sides_have_it_after_the_same_words() -> None:
    after = learn(PAIRS).after
    assert after == {("nach", "to"): [("Rom", "Rome"), ("Wien", "Vienna")], ("aus", "from"): [("Rom", "Rome"), ("Wien", "Vienna")]}


def test_a_name_takes_the_place_of_another_on_both_sides() -> None:
    known = learn(PAIRS)
    assert {swap_name(PAIRS[0], draw, known) for draw in DRAWS} == {("Der Zug nach Wien ist voll.", "The train to Vienna is full.")}
    assert swap_name(PAIRS[4], 7, known) == PAIRS[4]  # none other begins a sentence


@pytest.mark.parametrize(
    "pair",
    [
        ("Von Rom nach Rom.", "From Rome to Rome."),  # which is which?
        ("Nach Rom.", "To the city."),
        ("nach Romantik", "to Romance"),
        ("ROM nach ROM", "ROM to ROM"),
        ("", ""),
    ],
)
def test_a_pair_without_a_name_that_is_clear_stays_as_it_was(pair: tuple[str, str]) -> None:
    assert swap_name(pair, 5, learn(PAIRS)) == pair


def test_text_without_capitals_or_without_pairs_has_no_names() -> None:
    for pairs in ([("東京 に 行く", "go to tokyo")] * 3, [("", "")]):
        assert learn(pairs) == NameLexicon()


def test_names_do_not_depend_on_the_order_of_the_text() -> None:
    assert learn(PAIRS[::-1]) == learn(PAIRS)


def test_a_list_of_names_costs_no_square_of_its_length() -> None:
    words = [chr(ord("A") + n % 26) + chr(ord("a") + n // 26 % 26) * 3 for n in range(600)]
    line = "so " + ", ".join(words)
    assert len(words) > 10 * MOST_IN_A_TEXT
    began = time.perf_counter()
    assert learn([(line, line)] * 200 + PAIRS).translations == {"Rom": "Rome", "Wien": "Vienna"}
    assert time.perf_counter() - began < 10  # 72 million combinations take minutes


def test_text_full_of_names_is_not_held_against_itself_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [(f"Wir waren in {city}land.", f"We were in {city}land.") for city in ("Finn", "Lapp", "Est") for _ in range(100)]
    assert len(learn([*PAIRS, *others]).translations) == 5
    monkeypatch.setattr(names, "MOST_COMBINATIONS", 1)
    assert learn(PAIRS).translations == {}, "one sentence is too few"
    monkeypatch.setattr(names, "MOST_COMBINATIONS", 60)  # a fifth, of which none is the beginning
    assert learn([*PAIRS, *others]).translations.keys() >= {"Finnland", "Lappland", "Estland"}


def test_a_swap_looks_at_the_names_of_one_place() -> None:
    many = [(f"Stadt{n}x", f"Town{n}x") for n in range(30_000)]
    lexicon = NameLexicon(dict(many), {("nach", "to"): many})
    source = " ".join(f"nach {german}" for german, _ in many[:2000])
    target = " ".join(f"to {english}" for _, english in many[:2000])
    began = time.perf_counter()
    assert swap_name((source, target), 12345, lexicon) != (source, target)
    assert time.perf_counter() - began < 3  # a list of rivals for each place takes 20 s


@pytest.mark.slow
def test_each_direction_has_names_of_its_own(tmp_path: Path) -> None:
    cities = {"en": ("Rome", "Vienna"), "de": ("Rom", "Wien"), "fr": ("Romes", "Vienne")}

    def write_side(name: str, code: str) -> str:
        lines = [f"{line[:-1]} so to {cities[code][number % 2]}." for number, line in enumerate(in_language(code, 60))]
        return write(tmp_path / "text", name, lines)

    corpora = [
        {"name": f"en-{code}", "paths": [write_side(f"{code}.{side}", side) for side in ("en", code)], "languages": ("en", code)}
        for code in ("de", "fr")
    ]
    prepared = prepare(tmp_path / "prepared", corpora, both_directions=True)
    none = dict.fromkeys(DRAWN, 0.0)
    batcher = Batcher(prepared.split("train"), BatchSettings(budget=2000, augment=AugmentSettings(**{**none, "names": 1.0})))
    assert batcher.augmenter is not None
    for speech in batcher.augmenter.speeches:
        source, target = (cities[code] for code in speech.languages)
        assert speech.names.translations == dict(zip(source, target, strict=True))
    changed = batcher.window(0, 0).changed
    assert changed is not None and {kind for kinds in changed.kinds for kind in kinds} == {"names"}
