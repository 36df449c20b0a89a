"""Numbers of a translation are compared as people write them, and a wrong digit is seen."""

# ruff: noqa: RUF001 (letters that look like others are what is tested)

import gzip
import os
import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.text.careful.number_words import count_numbers, months
from limelight.text.careful.numbers import differ, localize
from limelight.text.careful.spans import find

SIGNS = st.text(st.sampled_from("0123456789.,:'’ %-/amphUr°kg\u00a0\u202f٤٢１一万XIVé<b>{}$"), max_size=40)


@pytest.mark.parametrize(
    ("source", "translation", "languages"),
    [
        ("It costs 1,234.5 km", "Es kostet 1.234,5 km", ("en", "de")),
        ("1,234,567 and 12", "1 234 567 et 12", ("en", "fr")),
        ("1,234,567", "1\u202f234\u202f567", ("en", "fr")),
        ("1,234", "1'234", ("en", "de-CH")),
        ("12,34,567 people", "1.234.567 Leute", ("en", "de")),
        ("42 men", "٤٢ رجل", ("en", "ar")),
        ("42 men", "４２人", ("en", "ja")),
        ("At 3 pm", "Um 15 Uhr", ("en", "de")),
        ("At 3:30 p.m.", "Um 15.30 Uhr", ("en", "de")),
        ("Um 15.30 Uhr", "At 3:30 PM", ("de", "en")),
        ("At 12 am", "Um 0 Uhr", ("en", "de")),
        ("From 9:00 a.m. to 5:30 p.m.", "Von 9 Uhr bis 17.30 Uhr", ("en", "de")),
        ("At 15:05", "Um 15.05 Uhr", ("en", "de")),
        ("May 3, 2024", "3. Mai 2024", ("en", "de")),
        ("May 3, 2024", "3.5.2024", ("en", "de")),
        ("03/05/2024", "3. Mai 2024", ("en", "de")),
        ("1.5 billion", "1,5 Mrd.", ("en", "de")),
        ("$1,500m", "1,5 Milliarden Dollar", ("en", "de")),
        ("250 thousand", "250.000", ("en", "de")),
        ("120,000 people", "12万人", ("en", "zh")),
        ("2,2 Billionen", "2.2 trillion", ("de", "en")),
        ("16th century", "XVIe siècle", ("en", "fr")),
        ("the 1980s", "die 80er", ("en", "de")),
        ("the 1970s", "die siebziger Jahre", ("en", "de")),
        ("2008/09", "2008/2009", ("en", "de")),
        ("3 men", "drei Männer", ("en", "de")),
        ("three men", "3 Männer", ("en", "de")),
        ("twenty-one men", "21 Männer", ("en", "de")),
        ("21 men", "einundzwanzig Männer", ("en", "de")),
        ("fifty-eight percent", "58 Prozent", ("en", "de")),
        ("two hundred men", "200 Männer", ("en", "de")),
        ("a dozen men", "12 Männer", ("en", "de")),
        ("1 man", "ein Mann", ("en", "de")),
        ("3 men", "mies kolme", ("en", "fi")),
        ("10 men", "kymmenen miestä", ("en", "fi")),
        ("%1$s of <h2>5</h2> &#39;", "5 von %1$s", ("en", "de")),
        ("2.13.0 at 192.168.0.1", "2.13.0 an 192.168.0.1", ("en", "de")),
        ("5 %", "5 Prozent", ("en", "de")),
        ("5 km and 5 kg", "5 kg und 5 km", ("en", "de")),
        ("no number", "keine Zahl", ("en", "de")),
        ("7 of 9", "9 dari 7", ("", "")),
    ],
)  # fmt: skip
def test_the_same_number_may_be_written_in_many_ways(source: str, translation: str, languages: tuple[str, str]) -> None:
    assert differ(source, translation, languages) is None
    assert differ(translation, source, (languages[1], languages[0])) is None


@pytest.mark.parametrize(
    ("source", "translation", "fault"),
    [
        ("12 men", "13 Männer", "1 number of the source missing and 1 number not from the source"),
        ("12 men", "Männer", "1 number of the source missing"),
        ("men", "12 Männer", "1 number not from the source"),
        ("3 men", "4 Männer", "1 number of the source missing and 1 number not from the source"),
        ("3 men", "Männer", "1 number of the source missing"),
        ("12 of 34", "56 von 78", "2 numbers of the source missing and 2 numbers not from the source"),
        ("12 and 12", "12", "1 number of the source missing"),
        ("12", "12 und 12", "1 number not from the source"),
        ("0.5 mg", "5 mg", "1 number of the source missing"),
        ("1.5 litres", "5 Liter", "1 number of the source missing"),
        ("5 mg", "0.5 mg", "1 number not from the source"),
        ("10.1 is out", "10 ist da", "1 number of the source missing"),
        ("1.5 m", "15 m", "2 numbers of the source missing and 1 number not from the source"),
        ("1.05 m", "1,5 m", "1 number of the source missing and 1 number not from the source"),
        ("1,000", "100", "1 number of the source missing and 1 number not from the source"),
        ("May 3", "3. August 8", "1 number not from the source"),
        ("At 3 pm", "Um 16 Uhr", "1 number of the source missing and 1 number not from the source"),
        ("1.5 billion", "1,5 Billionen", None),
        ("15 billion", "1,5 Milliarden", "1 number of the source missing and 2 numbers not from the source"),
        ("2.13.0", "2.31.0", "1 number of the source missing and 1 number not from the source"),
        ("5 km", "5 kg", "1 of the units differ"),
        ("5 °C", "5 °F", "1 of the units differ"),
        ("50%", "50 km", "1 of the units differ"),
    ],
)
def test_another_number_is_a_fault_that_is_counted_and_not_quoted(source: str, translation: str, fault: str | None) -> None:
    assert differ(source, translation, ("en", "de")) == fault


@pytest.mark.slow
@given(SIGNS, st.sampled_from(["", "en", "de", "fr", "zh"]))
def test_a_text_has_the_numbers_of_itself(text: str, language: str) -> None:
    assert differ(text, text, (language, language)) is None


@pytest.mark.slow
@given(SIGNS, SIGNS)
def test_no_two_texts_are_too_much(a: str, b: str) -> None:
    forth, back = differ(a, b, ("en", "de")), differ(b, a, ("de", "en"))
    assert (forth is None) == (back is None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["1", "1,", "1.234", "1 234 ", "1:00 pm ", "5 km ", "million 1 ", "XIV", "May 3 ", "twenty one ", "’1", " "]
)
def test_hostile_text_is_read_in_a_moment(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    began = time.process_time()
    differ(text, text[:-1], ("en", "de"))
    assert time.process_time() - began < 5


def test_number_words_and_numerals_are_understood() -> None:
    assert count_numbers("einundzwanzig Männer im XIX. Jahrhundert", "de")[21]
    assert count_numbers("Ludwig XIV", "")[14]
    assert count_numbers("三人", "zh")[3]
    assert not count_numbers("drei", "xx")
    assert count_numbers("two hundred and five", "en")[200]


def test_months_are_told_from_other_words() -> None:
    assert months("May 3 and 4. März") == {5: 1, 3: 1}
    assert months("we may march") == {3: 1}  # a word of five letters may be a month in small letters, as in French


PAIRS = [
    ("multi30k/test_2016_flickr", "en", "de"),
    ("l10n/test.en-de", "en", "de"),
    ("wmt-news/generaltest2022.en-de", "en", "de"),
    ("wmt-news/newstest2019.de-en", "de", "en"),
]


@pytest.mark.parametrize(("name", "source", "target"), PAIRS)
def test_what_people_wrote_passes_and_a_changed_digit_does_not(name: str, source: str, target: str) -> None:
    data = os.environ.get("LIMELIGHT_DATA")
    if not data:
        pytest.skip("LIMELIGHT_DATA is not set")
    sides = [gzip.decompress((Path(data) / f"{name}.{code}.gz").read_bytes()).decode().split("\n") for code in (source, target)]
    pairs = [(a, b) for a, b in zip(*sides, strict=True) if re.search(r"\d", a + b)][:300]
    fine = [(a, b) for a, b in pairs if differ(a, b, (source, target)) is None]
    assert len(fine) >= 0.96 * len(pairs)
    chance = random.Random(7)
    tried = seen = 0
    for a, b in fine:
        spans = [(start, end) for start, end, kind in find(b) if kind != "number"]
        digits = [m.start() for m in re.finditer(r"\d", b) if not any(s <= m.start() < e for s, e in spans)]
        if digits and re.search(r"\d", a):
            at = chance.choice(digits)
            other = chance.choice([digit for digit in "0123456789" if digit != b[at]])
            tried += 1
            seen += differ(a, b[:at] + other + b[at + 1 :], (source, target)) is not None
    assert seen > 0.95 * tried


@pytest.mark.parametrize(
    ("number", "source", "target", "expected"),
    [
        ("1,234.5", "en", "de", "1.234,5"),
        ("1.234,5", "de", "en", "1,234.5"),
        ("1,234,567", "en", "de", "1.234.567"),
        ("1,234", "en", "fr", "1\u202f234"),
        ("1 234,5", "fr", "en", "1,234.5"),
        ("1\u00a0234,5", "fr", "de", "1.234,5"),
        ("1,234.5", "en", "de-CH", "1’234.5"),
        ("1,234", "en", "es", "1234"),
        ("12,345", "en", "es", "12.345"),
        ("3.5", "en-US", "de", "3,5"),
        ("-1,000", "en", "de", "-1.000"),
        ("1234", "en", "de", "1234"),
        ("3.5", "de", "en", "3.5"),
        ("2.13.0", "en", "de", "2.13.0"),
        ("192.168.0.1", "en", "de", "192.168.0.1"),
        ("03.05.2024", "de", "en", "03.05.2024"),
        ("1,23", "en", "de", "1,23"),
        ("12,34,567", "en", "de", "12,34,567"),
        ("1,234.5", "en", "ja", "1,234.5"),
        ("1,234.5", "xx", "de", "1,234.5"),
        ("1,234.5", "en", "xx", "1,234.5"),
        ("about 5", "en", "de", "about 5"),
        ("", "en", "de", ""),
    ],
)
def test_a_number_takes_the_style_of_the_language_if_it_can_be_understood(number: str, source: str, target: str, expected: str) -> None:
    assert localize(number, source, target) == expected
    assert differ(number, expected, (source, target)) is None
