"""A text in sentences is the text again when it is put together, and no sentence is cut where it must not be."""

# ruff: noqa: RUF001 (letters that look like others are what is tested)

import gzip
import os
import re
import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from limelight.text.careful.spans import find
from limelight.text.normalize import DEFAULT_STEPS, normalize
from limelight.text.segment import BLANK, Segment, Segments, segments, split_long
from limelight.text.sentence_ends import WINDOW, sentence_starts, unquote

# What sentences, spans and line ends are made of, half characters included.
PIECES = st.sampled_from(
    [*"aZé .!?…。\"'“„«»()<>/&;:,-–0%{}\n\r\t\x00\x85\u00a0\u2028\u200b\u200d\ufeff\u0301\u00ad🙂🏻中あ\ud800⟦",
     "Dr. ",
     "z. B. ", "1. ", "19. ", "https://a.b/c?d=e. ", "<b>", "</b> ", "<a\nhref='x'>", "&nbsp;", "%s", "{0}", "I am. ", "Er geht. ", "\r\n"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=60).map("".join)
LANGUAGES = st.sampled_from(["", "en", "de", "fr", "zh", "xx", "deu_Latn", "pt-BR"])


def whole(found: Segments) -> str:
    return found.lead + "".join(part.text + part.after for part in found.parts)


def texts(text: str, language: str) -> list[str]:
    found = segments(text, language)
    assert whole(found) == text
    return [part.text for part in found.parts]


@pytest.mark.slow
@given(TEXTS, LANGUAGES)
@example("a" * 10, "")
@example("Hi\u2028there. \u200b\n", "en")
def test_any_text_comes_back_to_the_last_blank(text: str, language: str) -> None:
    found = segments(text, language)
    assert whole(found) == text
    for part in found.parts:
        assert part.text and part.text == part.text.strip(BLANK)
        assert not part.after.strip(BLANK)
    assert not found.lead.strip(BLANK)


@pytest.mark.slow
@given(TEXTS, LANGUAGES)
@example("One.\u2028» Two.", "")
def test_no_span_is_cut_and_no_other_line_break_is_inside_a_sentence(text: str, language: str) -> None:
    found = segments(text, language)
    cuts, at = set[int](), len(found.lead)
    for part in found.parts:
        inside = [(start - at, end - at) for start, end, _ in find(text) if start >= at]
        for i, sign in enumerate(part.text):
            assert sign not in "\n\r\x85\u2028" or any(start <= i < end for start, end in inside)
        at += len(part.text) + len(part.after)
        cuts.add(at - len(part.after))
    assert not [cut for cut in cuts for start, end, _ in find(text) if start < cut < end]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("de", ["Dr. Müller kam z. B. am 1. Mai.", "Er zahlte 3.5 Euro bzw. 3,50 €.", "„Wirklich?“, fragte er.", "Nr. 5 lebt."]),
        ("de", ["Im 19. Jahrhundert war das so.", "Der 120. Geburtstag kam."]),
        ("de-AT", ["Das war d. h. so.", "Am 3. August kam er."]),
        ("deu_Latn", ["Das war d. h. so.", "Am 3. August kam er."]),
        ("en", ["Mr. Smith paid $3.5, e.g. for tea.", "Ms. Maurice did not.", "Wait... what?", "The U.S. is big.", "It was v2.13.0 then."]),
        ("en", ['He said: "I go.', 'You stay."', "Then he left.", '"Really?" she asked.', '"No."', '"Yes."']),
        ("en", ["1. First item.", "2. Second item.", "Chapter No. 5 follows."]),
        ("en", ["Hi 👋.", "Ok 😀!", "🎉 Yes."]),
        ("en", ["Visit https://a.b/c?d=e.f.", "Mail me@x.org!", "It has %s.", "{0} is it."]),
        ("fr", ["M. Audet a déclaré.", "Mme. Dupont et Dr. Lee aussi.", "Le p.-d.g. de Cogeco vient.", "« Oui ? » dit-il.", "Il va."]),
        ("es", ["El Sr. García vino.", "¿Y la Dra. Paz?"]),
        ("ru", ["Он пришёл.", "Она ушла!"]),
        ("hi", ["मुझे बिल्ली पसंद है।", "और तुम?"]),
        ("tlh", ["One is it.", "Two is it."]),
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_would_end_them(language: str, sentences: list[str]) -> None:
    assert texts(" ".join(sentences), language) == sentences
    assert texts("\t".join(sentences), language) == sentences


@pytest.mark.parametrize("language", ["zh", "zh-Hans", "zho_Hans", "ja"])
def test_sentences_without_spaces_between_them_are_parted(language: str) -> None:
    sentences = ["我喜欢猫。", "你呢？", "他说：“走吧。”", "然后走了。", "“好！”"]
    assert texts("".join(sentences), language) == sentences


def test_between_sentences_everything_is_kept() -> None:
    found = segments("\ufeff  One is.\u00a0\u200b Two is.\r\n\r\n\tThree\u2028four\n", "en")
    assert found == Segments(
        "\ufeff  ",
        (Segment("One is.", "\u00a0\u200b "), Segment("Two is.", "\r\n\r\n\t"), Segment("Three", "\u2028"), Segment("four", "\n")),
    )  # fmt: skip
    assert segments(" \n ", "en") == Segments(" \n ", ())
    assert segments("", "en") == Segments("", ())


def test_what_is_kept_out_of_a_sentence_is_what_normalization_drops() -> None:
    signs = [sign for sign in BLANK if sign not in "\x1c\x1d\x1e\x1f"]  # controls that Python takes for white space
    assert normalize(pl.Series(signs), DEFAULT_STEPS).to_list() == [""] * len(signs)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One is.</b> <i>Two is.", ["One is.</b>", "<i>Two is."]),
        ("<p>One is.</p><p>Two is.</p>", ["<p>One is.</p>", "<p>Two is.</p>"]),
        ("It is <b>one. Two</b> are.", ["It is <b>one.", "Two</b> are."]),
        ("See <a\nhref='a. B'>it</a>. Go.", ["See <a\nhref='a. B'>it</a>.", "Go."]),
        ("It was. “So it was.” No.", ["It was.", "“So it was.”", "No."]),
        ('It was. "So it was." No.', ["It was.", '"So it was."', "No."]),
    ],
)
def test_tags_and_quotes_stay_with_the_sentence_they_belong_to(text: str, parts: list[str]) -> None:
    assert texts(text, "en") == parts


@given(TEXTS)
def test_a_line_without_quotation_marks_is_as_long_as_with_them(line: str) -> None:
    bare = unquote(line)
    assert len(bare) == len(line)
    assert not set(bare) & set('"“”„«»')


def test_a_line_longer_than_a_window_is_cut_as_a_short_one_is() -> None:
    sentence = "Dr. Smith has 3.5 kg of it, e.g. here."
    count = 3 * WINDOW // len(sentence)
    assert texts(" ".join([sentence] * count), "en") == [sentence] * count
    assert list(sentence_starts("a" * (3 * WINDOW), "en")) == [WINDOW, 2 * WINDOW]
    address = "https://example.org/page"
    assert any(address in part for part in texts("中" * (WINDOW - 9) + address, "zh"))
    words = texts("word " * WINDOW, "en")
    assert len(words) > 1
    assert set(" ".join(words).split(" ")) == {"word"}


def test_what_makes_sentencex_panic_does_not_end_the_program() -> None:
    """An initial, a space of several bytes and a full stop: sentencex 1.0.32 looks for a letter inside of that space."""
    text = "Plan B\u00a0. It is. Go on."
    assert texts(text, "en")[-1] == "Go on."
    assert all(0 < at < len(text) for at in sentence_starts(text, "en"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["„", "'", "«", "(", "<", "`", "1. ", "A. ", "! ", '"a. ', "a. „b (c. ", ". »", "…»", "</", "<b>", " ", "\n", "…"],
)
def test_hostile_text_takes_no_longer_than_other_text(unit: str) -> None:
    """60,000 opening quotes in one line would keep sentencex busy for half a minute."""
    text = unit * (60_000 // len(unit))
    began = time.process_time()
    assert whole(segments(text, "en")) == text
    assert time.process_time() - began < 5


@pytest.mark.slow
def test_a_megabyte_in_one_line_takes_seconds() -> None:
    text = "This is a sentence with Dr. Smith and 3.5 kg. Another one follows it! " * 14_000
    began = time.process_time()
    assert len(segments(text, "en").parts) == 28_000
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("name", "language"),
    [("newstest2019.en-de.en", "en"), ("newstest2019.de-en.de", "de"), ("newstest2014.fr-en.fr", "fr")],
)
def test_the_sentences_of_real_news_are_found(name: str, language: str) -> None:
    """Lines of a test set, five to a paragraph. Some lines are headlines without an end, some hold two sentences."""
    data = os.environ.get("LIMELIGHT_DATA")
    if not data:
        pytest.skip("LIMELIGHT_DATA is not set")
    lines = gzip.decompress((Path(data) / "wmt-news" / f"{name}.gz").read_bytes()).decode().split("\n")[:500]
    gold = found = right = 0
    for at in range(0, 500, 5):
        paragraph = [line.strip() for line in lines[at : at + 5]]
        cuts, reached = set[int](), 0
        for line in paragraph[:-1]:
            reached += len(line) + 1
            cuts.add(reached)
        got, reached = set[int](), 0
        for part in segments(" ".join(paragraph), language).parts[:-1]:
            reached += len(part.text) + len(part.after)
            got.add(reached)
        gold, found, right = gold + len(cuts), found + len(got), right + len(got & cuts)
    assert right > 0.97 * found
    assert right > 0.88 * gold


# A letter with what belongs to it; a joiner holds on to the next one.
ONE_SIGN = re.compile(r".[\u0301\u200d🏻]*(?:(?<=\u200d).[\u0301\u200d🏻]*)*", re.DOTALL)


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.slow
@given(TEXTS, st.integers(1, 30))
def test_parts_of_a_long_sentence_fit_and_are_the_sentence(text: str, longest: int) -> None:
    parts = split_long(text, len, longest)
    assert "".join(part.text + part.after for part in parts) == text
    spans = [text[start:end] for start, end, _ in find(text)]
    for body in (part.text.strip(BLANK) for part in parts):
        assert len(body) <= longest or ONE_SIGN.fullmatch(body) or any(span in body for span in spans)
    at = 0
    for part in parts:
        at += len(part.text) + len(part.after)
        assert not any(start < at < end for start, end, _ in find(text))


def test_a_long_sentence_is_cut_after_a_clause_then_a_comma_then_before_and_then_at_a_space() -> None:
    def cut(text: str) -> list[str]:
        return [part.text for part in split_long(text, words, 8)]

    assert cut("He came to us; it was late, and we were tired.") == [
        "He came to us;",
        "it was late, and we were tired.",
    ]
    assert cut("He came to us, it was late and we were tired") == ["He came to us,", "it was late and we were tired"]
    assert cut("He came to us late and we were tired then") == ["He came to us late", "and we were tired then"]
    assert cut("He came here to us late we were tired then") == ["He came here to us", "late we were tired then"]
    assert cut("He came to us late.") == ["He came to us late."]


def test_parts_are_about_equally_long() -> None:
    parts = split_long("word " * 100, words, 30)
    assert [words(part.text) for part in parts] == [25, 25, 25, 25]


def test_what_has_no_space_is_cut_anywhere_but_not_inside_a_sign() -> None:
    assert [part.text for part in split_long("中" * 10, len, 5)] == ["中" * 5] * 2
    assert [part.text for part in split_long("e\u0301" * 4, len, 4)] == ["e\u0301" * 2] * 2
    assert [part.text for part in split_long("e\u0301", len, 1)] == ["e\u0301"]


def test_spans_can_be_what_is_counted() -> None:
    def spans(text: str) -> int:
        return len(find(text))

    parts = split_long("{0}{1}{2}{3} and <b>{4}</b>", spans, 2)
    assert "".join(part.text + part.after for part in parts) == "{0}{1}{2}{3} and <b>{4}</b>"
    assert max(spans(part.text) for part in parts) <= 2
    assert [part.text for part in split_long("go to https://example.org/a,b;c.d now", len, 8)] == [
        "go to",
        "https://example.org/a,b;c.d",
        "now",
    ]


@pytest.mark.slow
def test_a_sentence_of_a_megabyte_is_parted_in_seconds() -> None:
    began = time.process_time()
    parts = split_long("word, and " * 100_000, len, 1_000)
    assert max(len(part.text) for part in parts) <= 1_000
    assert time.process_time() - began < 10
