"""Subtitles: a sentence over several cues is translated as one, and numbers, times and tags stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_structure import difference, read_srt
from stand_ins import Answer, each, reversed_words, unchanged, upper, without_tags

from limelight.documents.document import translate_document
from limelight.documents.formats.srt import in_lines, split_by_length


def subtitles(*cues: str, gap: int = 100) -> str:
    clock, blocks = 0, []
    for number, cue in enumerate(cues, start=1):
        blocks.append(f"{number}\n00:00:{clock // 1000:02},{clock % 1000:03} --> 00:00:{clock // 1000 + 1:02},{clock % 1000:03}\n{cue}\n")
        clock += 1000 + gap
    return "\n".join(blocks)


def asked(text: str) -> list[str]:
    given: list[str] = []

    def translate(texts: list[str]) -> list[Answer]:
        given.extend(texts)
        return [Answer(text) for text in texts]

    translate_document(text.encode(), "srt", ("en", "de"), translate)
    return given


def translated(text: str, change: object = upper) -> str:
    done = translate_document(text.encode(), "srt", ("en", "de"), each(change)).data  # type: ignore[arg-type]
    assert difference("srt", text.encode(), done) is None
    return done.decode()


def test_a_sentence_over_two_cues_is_one_text_and_is_parted_by_length() -> None:
    text = subtitles("The arctic ice cap is,\nin a sense,", "the beating heart\nof the global climate.", "It expands.")
    assert asked(text) == ["The arctic ice cap is, in a sense, the beating heart of the global climate.", "It expands."]
    german = "Die arktische Eiskappe hat gewissermaßen das schlagende Herz des globalen Klimas."
    done = translated(text, lambda text: german if "arctic" in text else text)
    assert done == subtitles("Die arktische Eiskappe\nhat gewissermaßen", "das schlagende Herz\ndes globalen Klimas.", "It expands.")


@pytest.mark.parametrize(
    "cues",
    [
        ("One.", "Two"),
        ('One?"', "two"),
        ("one", "- two"),
        ("one", "(two)"),
        ("<i>one</i> and", "two"),
        ("one…", "two"),
        ("♪ one ♪", "two"),
    ],
)
def test_cues_that_do_not_go_on_are_texts_of_their_own(cues: tuple[str, str]) -> None:
    assert len(asked(subtitles(*cues))) == 2


def test_cues_are_not_joined_over_a_silence_or_without_end() -> None:
    assert asked(subtitles("one", "two", gap=3000)) == ["one", "two"]
    assert asked(subtitles(*["word"] * 8)) == ["word word word word word word", "word word"]


@pytest.mark.parametrize("between", ["42", "...", "♪", "<i>…</i>"])
def test_no_word_moves_over_a_cue_without_words(between: str) -> None:
    text = subtitles("one two", between, "three four")
    assert asked(text) == ["one two", "three four"]
    assert translated(text) == subtitles("ONE TWO", between, "THREE FOUR")


def test_narrow_and_unbreakable_blanks_of_a_translation_stay() -> None:
    document = "1\n00:00:01,000 --> 00:00:02,000\nwhat,\nten thousand?\n"
    said = "Quoi\u202f?  Dix\u00a0000\u202f!"
    made = translate_document(document.encode(), "srt", ("en", "fr"), each(lambda _: said)).data.decode()
    assert made == document.replace("what,\nten thousand?", "Quoi\u202f?\nDix\u00a0000\u202f!")


def test_lines_of_a_dialogue_stay_apart() -> None:
    text = subtitles("- Where is he?\n- Over there.")
    assert asked(text) == ["Where is he?", "Over there."]
    assert translated(text) == subtitles("- WHERE IS HE?\n- OVER THERE.")


def test_tags_and_positions_stay() -> None:
    text = subtitles("{\\an8}<i>Hello there.</i>", 'I <b>said</b> <font color="#fff">no</font>.', "<i>open here.", "closed here.</i>")
    assert asked(text)[:2] == ["Hello there.", 'I <g id="1">said</g> <g id="2">no</g>.']
    assert translated(text) == subtitles(
        "{\\an8}<i>HELLO THERE.</i>", 'I <b>SAID</b> <font color="#fff">NO</font>.', "<i>OPEN HERE.", "CLOSED HERE.</i>"
    )
    assert translated(text, reversed_words).count("<i>") == translated(text, without_tags).count("</i>") == 2


def test_a_translation_with_fewer_words_than_cues_is_made_cue_by_cue() -> None:
    text = subtitles("one two", "three four.")
    done = translate_document(text.encode(), "srt", ("en", "de"), each(lambda text: "ja" if "two three" in text else text.upper()))
    assert done.data.decode() == subtitles("ONE TWO", "THREE FOUR.") and done.counts.apart == 1


def test_languages_without_spaces_are_parted_between_characters() -> None:
    text = subtitles("one two", "three four.")
    assert translated(text, lambda _: "一二三四五六七八") == subtitles("一二三", "四五六七八")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_marks_stay(newline: str, mark: str) -> None:
    text = mark + subtitles("one two\nthree four.", "five six.").replace("\n", newline)
    assert translated(text) == text.upper()
    assert translated(text, unchanged) == text


@pytest.mark.parametrize(
    "text",
    ["", "no cues at all\n", "1\n00:00:01,000 --> 00:00:02,000\n", "1\n00:00:01.000 --> 00:00:02.000 X1:0\nhello",
     "1\n00:00:01,000 --> 00:00:02,000\nhello\n2\n00:00:03,000 --> 00:00:04,000\nyou\n\n\n\nstray words\n"],
)  # fmt: skip
def test_odd_files_keep_what_is_no_cue(text: str) -> None:
    done = translate_document(text.encode(), "srt", ("en", "de"), each(upper)).data.decode()
    assert done == text.replace("hello", "HELLO").replace("you", "YOU")


def test_files_in_the_encoding_of_windows_stay_in_it() -> None:
    data = subtitles("Ça va.").encode("windows-1252")
    assert translate_document(data, "srt", ("fr", "en"), each(upper)).data == subtitles("ÇA VA.").encode("windows-1252")


@pytest.mark.slow
@given(st.lists(st.sampled_from(["one", "two,", "three.", "<i>four</i>", "-", "♪", "5"]), min_size=1, max_size=5).map(" ".join).flatmap(
    lambda text: st.lists(st.just(text) | st.just("x\ny"), min_size=1, max_size=6)))  # fmt: skip
def test_any_cues_keep_their_numbers_and_times(cues: list[str]) -> None:
    text = subtitles(*cues)
    assert translated(text, unchanged) == text
    for change in (upper, reversed_words, without_tags, lambda text: text.split()[0]):
        translated(text, change)


@given(
    st.text("ab ,.", max_size=60).map(lambda text: " ".join(text.split())),
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
)
def test_parts_are_never_empty_and_lose_nothing(text: str, lengths: list[int]) -> None:
    parts = split_by_length(text, lengths)
    if parts is None:
        assert text.count(" ") < len(lengths) - 1
    else:
        assert len(parts) == len(lengths) and " ".join(parts) == text and (all(parts) or not text)
        assert " ".join(in_lines(text, len(lengths), "\n").split("\n")) == text


def test_parts_end_at_a_comma_that_is_near() -> None:
    assert split_by_length("Ein Satz, der lange dauert", [10, 16]) == ["Ein Satz,", "der lange dauert"]
    assert split_by_length("a b c", [100, 1, 1]) == ["a", "b", "c"] == split_by_length("a b c", [1, 1, 100])
    assert split_by_length("aaaa bbbb cccc dddd", [1, 3]) == ["aaaa", "bbbb cccc dddd"]


def test_the_parser_of_these_tests_reads_cues() -> None:
    assert list(read_srt(b"1\r\nt\r\na\r\nb\r\n\r\n\r\n2\nu\n")) == [("1", "t", ["a", "b"]), ("2", "u", [])]


def test_no_cue_becomes_empty_by_controls_in_the_translation() -> None:
    text = subtitles("the arctic ice", "of the world")
    assert asked(text) == ["the arctic ice of the world"]
    translated(text, lambda text: "\x00 Eis." if "of" in text else "\x00")  # which compares the cues
