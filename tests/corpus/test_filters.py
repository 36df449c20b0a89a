"""The filters: each objects to what it is for, and leaves its near misses alone."""

# ruff: noqa: RUF001 (letters that look like others are what is tested)

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limelight.corpus.cleaning.filters import RATIO_FLOOR, filters, is_foreign, loose
from limelight.corpus.cleaning.reasons import EXPLAINED, Reason
from limelight.corpus.config import FilterSettings
from limelight.text.normalize import DEFAULT_STEPS, normalize

Pair = tuple[str, str]


def column(*texts: str) -> pl.Series:
    return pl.Series(texts, dtype=pl.String)


def objects(why: Reason, pair: Pair, languages: tuple[str, str] = ("en", "de"), **bounds: float) -> bool:
    """Asked with a harmless pair before and after, which must pass."""
    settings = FilterSettings(**bounds)
    source, target = pair
    answers = filters(settings, languages)[why](column("1 2", source, "1 2"), column("1 2", target, "1 2")).to_list()
    assert answers[0] is answers[2] is False
    return answers[1]


def test_the_filters_are_asked_in_the_order_of_their_reasons() -> None:
    asked = list(filters(FilterSettings(), ("en", "de")))
    assert asked == sorted(asked)
    assert Reason.WRONG_LANGUAGE not in asked


def test_every_reason_to_drop_is_explained() -> None:
    assert set(EXPLAINED) == set(Reason) - {Reason.KEPT}


@pytest.mark.parametrize("pair", [("", "x"), ("x", ""), ("", "")])
def test_a_missing_side_is_empty(pair: Pair) -> None:
    assert objects(Reason.EMPTY, pair)


@pytest.mark.parametrize("pair", [("x", "0"), (".", "-")])
def test_a_single_sign_is_not_empty(pair: Pair) -> None:
    assert not objects(Reason.EMPTY, pair)


def test_too_long_counts_characters_of_either_side() -> None:
    assert not objects(Reason.TOO_LONG, ("ü" * 7, "字" * 7), longest=7)
    assert objects(Reason.TOO_LONG, ("x" * 8, "x"), longest=7)
    assert objects(Reason.TOO_LONG, ("x", "x" * 8), longest=7)


@pytest.mark.parametrize("text", ["a\x07b", "m\ufffdssen", "Ã¼ber", "donâ€™t", "\ue001"])
def test_broken_text_is_found_on_either_side(text: str) -> None:
    assert objects(Reason.BROKEN_TEXT, (text, "fine"))
    assert objects(Reason.BROKEN_TEXT, ("fine", text))


@pytest.mark.parametrize("text", ["Größe", "NÃO", "“don’t” …", "中文", "👩‍🚀", "IRMÃ"])
def test_rare_but_right_characters_are_not_broken(text: str) -> None:
    assert not objects(Reason.BROKEN_TEXT, (text, text))


@pytest.mark.parametrize(("shorter", "longer"), [(5, 45), (25, 105)])
def test_the_ratio_of_lengths_has_its_bound_on_both_sides(shorter: int, longer: int) -> None:
    assert (longer + RATIO_FLOOR) / (shorter + RATIO_FLOOR) == 3
    assert not objects(Reason.LENGTH_RATIO, ("x" * shorter, "x" * longer))
    assert not objects(Reason.LENGTH_RATIO, ("x" * longer, "x" * shorter))
    assert objects(Reason.LENGTH_RATIO, ("x" * shorter, "x" * (longer + 1)))
    assert objects(Reason.LENGTH_RATIO, ("x" * (longer + 1), "x" * shorter))


@pytest.mark.parametrize("pair", [("OK", "In Ordnung"), ("OK", "In Ordnung, einverstanden"), ("Undo", "Rückgängig machen"), ("", "kurz")])
def test_short_text_may_differ_in_length(pair: Pair) -> None:
    assert not objects(Reason.LENGTH_RATIO, pair)


def test_dense_scripts_are_allowed_to_be_short() -> None:
    english = "The committee will meet again on Thursday afternoon to discuss the proposals that were made last week by members."
    chinese = "委员会将于星期四下午再次开会讨论上周提案。"
    assert not objects(Reason.LENGTH_RATIO, (english, chinese), ("en", "zh"))
    assert not objects(Reason.LENGTH_RATIO, (chinese, english), ("zh", "en"))
    assert objects(Reason.LENGTH_RATIO, (english, chinese), ("en", "de"))
    assert objects(Reason.LENGTH_RATIO, (english, chinese * 8), ("en", "zh"))
    assert not objects(Reason.LENGTH_RATIO, (chinese, chinese), ("zh", "zh"))


@pytest.mark.parametrize(
    "pair",
    [
        ("The dog runs fast", "The dog runs fast"),
        ("The dog runs fast", "the  Dog, runs - FAST!"),
        ("Über den Fluß gehen", "Uber den Fluß gehen"),
        ("Page 12 of the book", "Page 99 of the book"),
        ("Благодарим за тази солидарност", "Благодарим за тази солидарност"),
    ],
)
def test_a_copy_of_four_words_is_copied_whatever_its_case_accents_and_digits(pair: Pair) -> None:
    assert objects(Reason.COPIED, pair)
    assert objects(Reason.COPIED, pair[::-1])


@pytest.mark.parametrize(
    "pair",
    [
        ("Johann Sebastian Bach", "Johann Sebastian Bach"),
        ("ls -l /tmp", "ls -l /tmp"),
        ("10 20 30 40 50", "10 20 30 40 50"),
        ("5 km / 10 km", "5 km / 10 km"),
        ("The dog runs fast", "The dog runs faster"),
        ("The dog runs fast", "Der Hund rennt schnell"),
        ("one two three four", "one two four three"),
        ("The Tower of London", "The London of Tower"),
        ("", ""),
    ],
)
def test_names_numbers_and_translations_are_not_copied(pair: Pair) -> None:
    assert not objects(Reason.COPIED, pair)


@pytest.mark.slow
@given(st.text("aB cÖö, 1-e\u0301ßфИ", max_size=30), st.integers(1, 4))
def test_equal_text_is_copied_if_it_has_the_words(text: str, words: int) -> None:
    """The cheap looks before the comparison never spare what the comparison would find."""
    assert objects(Reason.COPIED, (text, text), copied_words=words) == (
        text.count(" ") >= words - 1 and len(column(text).str.extract_all(r"\p{L}+")[0]) >= words
    )
    assert objects(Reason.COPIED, (text, text.upper()), copied_words=words) == (
        objects(Reason.COPIED, (text, text), copied_words=words) and loose(column(text))[0] == loose(column(text.upper()))[0]
    )


def test_how_many_words_make_a_copy_is_a_setting() -> None:
    assert objects(Reason.COPIED, ("New York", "New York"), copied_words=2)
    assert not objects(Reason.COPIED, ("The dog runs fast", "The dog runs fast"), copied_words=5)


@pytest.mark.parametrize(
    "pair",
    [
        ("Open the file", "Открыть файл"),
        ("Открыть файл", "Datei öffnen"),
        ("Open the file", "打开文件"),
        ("Οδός", "Straße"),
        ("12 %", "twelve percent"),
        ("Yes", "👍"),
        ("abcdefg", "abcdδεζη"),
    ],
)
def test_letters_of_another_script_or_on_one_side_only_are_the_wrong_script(pair: Pair) -> None:
    assert objects(Reason.WRONG_SCRIPT, pair)


@pytest.mark.parametrize(
    "pair",
    [
        ("a width of 5 μm", "eine Breite von 5 μm"),
        ("The letter α is Greek", "Der griechische Buchstabe α"),
        ("5 µ", "5 µ"),
        ("1st ª º", "1. ª º"),
        ("12:30", "12.30"),
        ("👍", "👍"),
        ("Straße naïve œuvre ŵ ő", "ﬁ ſ ə"),
        ("abcdefg", "abcdeζη"),
        ("", ""),
    ],
)
def test_a_few_foreign_letters_and_signs_without_script_are_fine(pair: Pair) -> None:
    assert not objects(Reason.WRONG_SCRIPT, pair)


@pytest.mark.parametrize(
    ("languages", "pair"),
    [
        (("en", "ru"), ("Yes", "Да")),
        (("en", "sr"), ("Good day", "Dobar dan")),
        (("en", "sr"), ("Good day", "Добар дан")),
        (("en", "ja"), ("Opening the file", "ファイルを開く")),
        (("en", "ko"), ("Open", "열기 漢字")),
        (("en", "zh-TW"), ("Open the file", "打開檔案")),
        (("en", "tlh"), ("Success", "Qapla’ или 打开")),
        (("en", "fa"), ("I want", "می\u200cخواهم")),
        (("en", "hi"), ("road", "सड़क")),
    ],
)
def test_each_language_may_be_written_in_its_scripts(languages: tuple[str, str], pair: Pair) -> None:
    assert not objects(Reason.WRONG_SCRIPT, pair, languages)


def test_the_share_of_foreign_letters_is_a_setting_and_its_bound_is_allowed() -> None:
    assert is_foreign(column("abcж", "abж", "ж", "12"), column("", "", "", ""), ("Latin",), 0.25).to_list() == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("languages", "pair"),
    [
        (("en", "zh"), ("Install Microsoft Windows", "安装 Microsoft Windows")),
        (("en", "ru"), ("Open Firefox", "Открыть Firefox")),
    ],
)
def test_names_in_latin_letters_may_stay_in_other_scripts(languages: tuple[str, str], pair: Pair) -> None:
    assert not objects(Reason.WRONG_SCRIPT, pair, languages)


@pytest.mark.parametrize(
    "pair",
    [
        ("%s files", "Dateien"),
        ("files", "%s Dateien"),
        ("%s of %s", "%s"),
        ("%s", "%d"),
        ("%1 of %2", "%1 von %3"),
        ("%1$s", "%1$d"),
        ("%(name)s", "%(Name)s"),
        ("Hello {name}", "Hallo {Name}"),
        ("{0} {1}", "{0} {0}"),
        ("${a}", "{a}"),
        ("$HOME", "$HEIM"),
        ("%PATH%", "%PFAD%"),
        ("@VERSION@", "VERSION"),
        ("__name__", "__Name__"),
        ("%d", "% d"),
        ("20% of %s", "20 % von"),
    ],
)
def test_lost_added_or_translated_placeholders_differ(pair: Pair) -> None:
    assert objects(Reason.PLACEHOLDERS, pair)
    assert objects(Reason.PLACEHOLDERS, pair[::-1])


@pytest.mark.parametrize(
    "pair",
    [
        ("%1$s of %2$s", "%2$s von %1$s"),
        ("%s of %d", "%2$d von %1$s"),
        ("%1 in %2", "%2 in %1"),
        ("%s and %d", "%d und %s"),
        ("the %s", "des %sen"),
        ("%d times", "%dmal"),
        ("20 % of the people", "20 % der Leute"),
        ("20% solution", "20%ige Lösung"),
        ("100% sure", "100%sicher"),
        ("a 5% drop", "ein 5%der Fall"),
        ("a 20 percent", "20 % des"),
        ("%d%% done", "%d %% fertig"),
        ("%1% done", "%1 % fertig"),
        ("{a} {b}", "{b} {a}"),
        ("$5 or 5 %", "5 $ und 5%"),
        ("me@x.org you@x.org", "x"),
        ("snake_case", "Schlange"),
        ("3.5% of %s", "3,5 % von %s"),
    ],
)
def test_reordered_numbered_and_inflected_placeholders_and_percentages_are_fine(pair: Pair) -> None:
    assert not objects(Reason.PLACEHOLDERS, pair)
    assert not objects(Reason.PLACEHOLDERS, pair[::-1])


@pytest.mark.parametrize(
    "pair",
    [
        ("Windows 10 %s", "%s von Windows 10"),
        ("%L1 %2", "%2 %L1"),
        ("waited %.0fms", "%.0f ms gewartet"),
        ("%qs at %C", "%1$qs bei %2$C"),
        ("Name: ______", "Name: ________"),
        ("{n, plural, one {file} other {files}}", "{n, plural, one {Datei} other {Dateien}}"),
    ],
)
def test_more_placeholders_that_are_all_there_are_fine(pair: Pair) -> None:
    assert not objects(Reason.PLACEHOLDERS, pair)


@pytest.mark.parametrize(
    "pair",
    [
        ("<b>Open</b>", "Öffnen"),
        ("Open", "<b>Öffnen</b>"),
        ("<b>Open</b>", "<i>Öffnen</i>"),
        ("<b>Open</b>", "<b>Öffnen<b>"),
        ("one<br>two", "eins<br>zwei<br>"),
        ('<a href="x">y</a>', "<a>y"),
        ("<link id='1'>x</link>", "x</link>"),
        ("<file>x</file>", "<Datei>x</Datei>"),
    ],
)
def test_lost_added_or_unclosed_tags_differ(pair: Pair) -> None:
    assert objects(Reason.MARKUP, pair)
    assert objects(Reason.MARKUP, pair[::-1])


@pytest.mark.parametrize(
    "pair",
    [
        ("<b>Open</b> <i>it</i>", "<i>Es</i> <b>öffnen</b>"),
        ('<img alt="a dog">', '<img alt="ein Hund" title="Hund">'),
        ('<a href="/en/help">Help</a>', '<a href="/de/hilfe">Hilfe</a>'),
        ("one<br>two", "eins<br />zwei"),
        ("<B>Open</B>", "<b>Öffnen</b>"),
        ("copy <file>", "<Datei> kopieren"),
        ("press <Ctrl>", "<Strg> drücken"),
        ("a < b", "a kleiner b"),
        ("<me@example.org>", "E-Mail"),
    ],
)
def test_moved_tags_translated_attributes_and_variables_are_fine(pair: Pair) -> None:
    assert not objects(Reason.MARKUP, pair)
    assert not objects(Reason.MARKUP, pair[::-1])


@pytest.mark.parametrize(
    "pair",
    [
        ("in 1999", "in 1998"),
        ("12 men", "zwölf Männer"),
        ("men", "12 Männer"),
        ("10 and 10", "10"),
        ("100", "1000"),
        ("1,000.5", "1.000,6"),
        ("12 34", "1234"),
    ],
)
def test_numbers_of_two_digits_must_be_the_same(pair: Pair) -> None:
    assert objects(Reason.NUMBERS, pair)
    assert objects(Reason.NUMBERS, pair[::-1])


@pytest.mark.parametrize(
    "pair",
    [
        ("1,000.5", "1.000,5"),
        ("10,000", "10'000"),
        ("10,000", "10\u202f000"),
        ("5 men", "fünf Männer"),
        ("5 men in 1999", "fünf Männer im Jahr 1999"),
        ("In 1999, 20 men.", "20 Männer waren es 1999."),
        ("It was 1999.", "Das war 1999"),
        ("5 a 6 b", "6 a 5 b"),
        ("3,5", "3.5"),
        ("none", "keine"),
        ("in 1998", "در سال ۱۹۹۸"),
        ("on 2024-05-13, 250 people", "२०२४-०५-१३ को २५० लोग"),
        ("1250 of them", "١٢٥٠ منها"),
    ],
)
def test_other_separators_order_and_single_digits_are_fine(pair: Pair) -> None:
    assert not objects(Reason.NUMBERS, pair)
    assert not objects(Reason.NUMBERS, pair[::-1])


def test_thousands_after_a_no_break_space_are_one_number_after_normalization() -> None:
    source, target = normalize(column("10,000.5 €", "10\u00a0000,5 €"), DEFAULT_STEPS)
    assert not objects(Reason.NUMBERS, (source, target), ("en", "fr"))


@pytest.mark.parametrize(
    "text",
    [
        "very long subject " * 4 + "x",
        "I do not know " * 5 + "why",
        "Na na na NA na na na na na na na na hey",
        "ha " * 11 + "ha",
        "one two three four five six " + "so it is " * 4,
    ],
)
def test_one_phrase_again_and_again_is_repetition_on_either_side(text: str) -> None:
    assert objects(Reason.REPETITION, (text, "x"))
    assert objects(Reason.REPETITION, ("x", text))


@pytest.mark.parametrize(
    "text",
    [
        "ha " * 10 + "ha",
        "the big dog saw the big cat and the big cat saw the big bird",
        "so it is " * 3 + "one two three four five",
        "a b c d e f g h i j k l m n o p so it is so it is so it is so it is",
        "%s, %s, %s and %s have been moved to the folder that you have chosen",
        "Written by %s, %s, %s, %s, %s, %s, %s, %s, %s, and others.",
        "",
    ],
)
def test_short_text_and_natural_repeats_are_no_repetition(text: str) -> None:
    assert not objects(Reason.REPETITION, (text, text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("na na na na na na one two three four five six seven", False),  # 6 of 13 words
        ("so it is So It Is sO iT iS SO IT IS one two three four five", True),  # 12 of 17
        ("no, no, no, no, no, no, no, no, no, no, no, no, no!", True),
    ],
)
def test_the_share_of_repeated_words_is_counted_as_described(text: str, expected: bool) -> None:
    assert objects(Reason.REPETITION, (text, "x")) is expected


@pytest.mark.parametrize(
    ("one", "other"),
    [("Öffnen ...", "offnen"), ("É", "e\u0301"), ("a-b c", "ABC"), ("x1", "X 22"), ("Ελλάδα", "ελλαδα"), ("Ёж", "еж")],
)
def test_loose_text_is_without_case_accents_digits_and_signs(one: str, other: str) -> None:
    assert loose(column(one)).to_list() == loose(column(other)).to_list() != [""]


@pytest.mark.parametrize(("one", "other"), [("ab", "ba"), ("ß", "ss"), ("a", "б"), ("note", "notes")])
def test_loose_text_keeps_the_letters_apart(one: str, other: str) -> None:
    assert loose(column(one)).to_list() != loose(column(other)).to_list()


@pytest.mark.parametrize("text", ["", "12.5 %", "👍 ½", "\u0301"])
def test_without_letters_loose_text_is_empty(text: str) -> None:
    assert loose(column(text)).to_list() == [""]


@pytest.mark.parametrize(("one", "other"), [("दिन", "दान"), ("がき", "かき"), ("มี", "มิ"), ("দিন", "দান")])
def test_loose_text_keeps_vowel_signs(one: str, other: str) -> None:
    assert loose(column(one)).to_list() != loose(column(other)).to_list()


def test_looking_loosely_leaves_the_column_as_it_was() -> None:
    text = column("Öl", "oil")
    loose(text)
    assert text.to_list() == ["Öl", "oil"]


WORDS = st.sampled_from(
    ["a", "Öl", "the", "%s", "%1$s", "20", "1,000", "<b>", "</b>", "ж", "字", "", "na", "\x07", "{x}", "20 %", "x" * 60]
)


@pytest.mark.slow
@given(st.lists(st.tuples(*[st.lists(WORDS, max_size=14).map(" ".join)] * 2), max_size=7), st.data())
@settings(max_examples=30)
def test_every_pair_is_judged_by_itself(pairs: list[Pair], data: st.DataObject) -> None:
    """Wherever a column is cut, the answers are the same, one for each row and never missing."""
    cut = data.draw(st.integers(0, len(pairs)))
    source, target = column(*(s for s, _ in pairs)), column(*(t for _, t in pairs))
    for why, look in filters(FilterSettings(), ("en", "de")).items():
        whole = look(source, target).to_list()
        parts = look(source[:cut], target[:cut]).to_list() + look(source[cut:], target[cut:]).to_list()
        assert whole == parts, why
        assert set(whole) <= {True, False}
        assert len(whole) == len(pairs)
