"""What is known of languages: the scripts are ones that regular expressions know, and regions do not matter."""

import re

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from limelight.text.languages import _WRITTEN_IN, SCRIPTS, UNSPACED, UNSPACED_LETTER, base, count_words, density, scripts_of

# A few words in each script, to see that its name means what we think.
WRITTEN = {
    "Latin": "Straße", "Cyrillic": "улица", "Arabic": "شارع", "Devanagari": "सड़क", "Hebrew": "רחוב", "Greek": "οδός", "Han": "街道",
    "Hiragana": "みち", "Katakana": "ミチ", "Hangul": "거리", "Thai": "ถนน", "Lao": "ຖະໜົນ", "Khmer": "ផ្លូវ", "Myanmar": "လမ်း",
    "Tibetan": "ལམ", "Georgian": "ქუჩა", "Armenian": "փողոց", "Ethiopic": "መንገድ", "Bengali": "রাস্তা", "Gujarati": "શેરી",
    "Gurmukhi": "ਗਲੀ", "Kannada": "ಬೀದಿ", "Malayalam": "തെരുവ്", "Oriya": "ରାସ୍ତା", "Sinhala": "වීදිය", "Tamil": "தெரு", "Telugu": "వీధి",
}  # fmt: skip


@pytest.mark.parametrize("script", sorted({script for scripts in SCRIPTS.values() for script in scripts}))
def test_every_script_is_known_to_the_regular_expressions_by_its_letters(script: str) -> None:
    column = pl.Series(list(WRITTEN.values()))
    found = column.str.contains(rf"\p{{{script}}}").to_list()
    assert [name for name, there in zip(WRITTEN, found, strict=True) if there] == [script]


def test_no_language_is_in_the_table_twice() -> None:
    codes = [code for codes in _WRITTEN_IN.values() for code in codes.split()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pt-BR", "pt"),
        ("pt_BR", "pt"),
        ("zh-Hant-TW", "zh"),
        ("DE", "de"),
        ("de", "de"),
        ("zho_Hans", "zho"),
        ("x-Klingon", "x-klingon"),
    ],
)
def test_the_base_of_a_code_is_without_region_and_script(code: str, expected: str) -> None:
    assert base(code) == expected


@pytest.mark.parametrize(
    ("code", "scripts"),
    [
        ("en", {"Latin"}),
        ("de-AT", {"Latin"}),
        ("RU", {"Cyrillic"}),
        ("sr", {"Latin", "Cyrillic"}),
        ("zh_TW", {"Han"}),
        ("ja", {"Han", "Hiragana", "Katakana"}),
        ("ko", {"Hangul", "Han"}),
        ("el", {"Greek"}),
        ("fa", {"Arabic"}),
        ("uz", {"Latin"}),
        ("uz-Cyrl", {"Cyrillic"}),
        ("pan_Arab", {"Arabic"}),
        ("de-Latn-AT", {"Latin"}),
        ("yue-Hant-HK", {"Han"}),
        ("de-Zyyy", set()),
    ],
)
def test_languages_are_written_in_their_scripts(code: str, scripts: set[str]) -> None:
    assert set(scripts_of(code)) == scripts


def test_of_an_unknown_language_nothing_is_said() -> None:
    assert scripts_of("tlh") == ()
    assert density("tlh") == 1


def test_dense_scripts_need_fewer_characters() -> None:
    assert density("en") == density("de") == density("ru") == 1
    assert density("zh") == density("zh-Hans") < density("ja") < density("ko") < density("he") < density("ar") < 1


@pytest.mark.parametrize(("text", "words"), [("a big cat", 3), ("eine große Katze", 3), ("一只大猫", 3), ("ฉันเห็นบ้าน", 6), ("큰 고양이", 2)])
def test_words_are_counted_where_no_blanks_part_them_too(text: str, words: int) -> None:
    assert count_words(text) == words


@pytest.mark.parametrize("script", sorted(WRITTEN))
def test_letters_of_scripts_without_blanks_are_told_by_their_number(script: str) -> None:
    text = WRITTEN[script]
    found = len(re.findall(UNSPACED_LETTER, text))
    assert found == (len(text) if script in {*UNSPACED, "Hiragana", "Katakana"} else 0)
    assert (
        pl.Series([text]).str.count_matches(UNSPACED_LETTER)[0]
        == found
        == pc.count_substring_regex(pa.array([text]), UNSPACED_LETTER)[0].as_py()
    )
