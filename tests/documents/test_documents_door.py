"""The door: kinds, counts, warnings, bounds, and plain text."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import Answer, each, unchanged, upper

import limelight.documents.document as door
import limelight.documents.translating as translating
from limelight.decoding.guards import Notice
from limelight.documents.document import translate_document
from limelight.documents.kinds import Kind, kind_of
from limelight.documents.sentences import InlineItem, pair
from limelight.documents.splices import Range, Splice, apply_splices
from limelight.documents.translating import DocumentCounts
from limelight.errors import ConfigError, DataError

LANGUAGES = ("en", "de")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.po", "po"),
        ("a.POT", "po"),
        ("x/a.xlf", "xliff"),
        ("a.xliff", "xliff"),
        ("a.htm", "html"),
        ("a.b.txt", "txt"),
        ("a.tmx", "tmx"),
    ],
)
def test_the_name_says_the_kind(name: str, kind: str) -> None:
    assert kind_of(Path(name)) == kind


@pytest.mark.process
def test_to_know_a_kind_loads_nothing_that_reads_one() -> None:
    """`translate --input FILE` asks for it: what reads documents takes half a second to load."""
    code = "import sys, limelight.documents.kinds; print(sorted(name for name in sys.modules if name.startswith('limelight.documents.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "['limelight.documents.kinds']\n"


def test_other_names_and_kinds_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"one of \.txt, \.html"):
        kind_of("a.pdf")
    with pytest.raises(ConfigError, match="no documents of the kind 'pdf'"):
        translate_document(b"", "pdf", LANGUAGES, each(upper))  # type: ignore[arg-type]


def test_plain_text_keeps_its_lines_tabs_and_blanks() -> None:
    text = "\n  One line. Two.  \r\n\r\n\tcell\tother cell\n12\n\u2028three\x85end"
    done = translate_document(text.encode(), "txt", LANGUAGES, each(upper))
    assert done.data.decode() == "\n  ONE LINE. TWO.  \r\n\r\n\tCELL\tOTHER CELL\n12\n\u2028THREE\x85END"
    assert done.counts == DocumentCounts(texts=5, translated=5, unchanged=0, failed=0, apart=0, left=0)


@given(st.text(st.sampled_from("ab1 \t\r\n\u2028\ufeff.ß"), max_size=60))
def test_any_text_comes_back_and_only_letters_change(text: str) -> None:
    assert translate_document(text.encode(), "txt", LANGUAGES, each(unchanged)).data == text.encode()
    assert translate_document(text.encode(), "txt", LANGUAGES, each(upper)).data.decode() == text.upper()


def test_counts_account_for_every_text() -> None:
    def change(text: str) -> str:
        return {"one": "EINS", "two": "two", "three": " "}[text]

    done = translate_document(b"one\ntwo\nthree\n4\n", "txt", LANGUAGES, each(change))
    assert done.data == b"EINS\ntwo\nthree\n4\n"
    assert done.counts == DocumentCounts(texts=3, translated=1, unchanged=1, failed=1, apart=0, left=0)
    assert [(remark.line, remark.code) for remark in done.warnings] == [(3, "empty")]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("txt", b"one"),
        ("html", b"<p>one</p>"),
        ("srt", b"1\n00:00:00,000 --> 00:00:01,000\none\n"),
        ("po", b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "one"\nmsgstr ""\n'),
        ("xliff", b'<xliff version="1.2"><file target-language="de"><body><trans-unit id="1"><source>one</source></trans-unit></body>'
                  b"</file></xliff>"),
        ("tmx", b'<tmx version="1.4"><header/><body><tu><tuv xml:lang="en"><seg>one</seg></tuv></tu></body></tmx>'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("answer", ["", " ", "\n", "\x00", "\x01 \x7f", "\ufffe"])
def test_a_translation_of_which_nothing_can_be_written_is_empty(kind: Kind, data: bytes, answer: str) -> None:
    done = translate_document(data, kind, LANGUAGES, each(lambda text: answer))
    assert done.data == data
    assert (done.counts.texts, done.counts.failed) == (1, 1)
    assert [remark.code for remark in done.warnings] == ["empty"]


def test_warnings_of_the_translator_come_with_their_lines() -> None:
    def translate(texts: list[str]) -> list[Answer]:
        return [Answer(text, [Notice("loop", "it loops")] if "b" in text else []) for text in texts]

    done = translate_document(b"b\na\nb", "txt", LANGUAGES, translate)
    assert done.warnings == ((1, "loop", "it loops"), (3, "loop", "it loops"))


def test_what_is_too_large_is_refused_or_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "LARGEST", 10)
    with pytest.raises(DataError, match="has 11 bytes; at most 10"):
        translate_document(b"x" * 11, "txt", LANGUAGES, each(upper))
    monkeypatch.setattr(translating, "LONGEST", 5)
    done = translate_document(b"abcdef\nabc", "txt", LANGUAGES, each(upper))
    assert done.data == b"abcdef\nABC" and [remark.code for remark in done.warnings] == ["too_long"]


def test_progress_counts_texts_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translating, "CHUNK", 2)
    told: list[tuple[int, int]] = []
    translate_document(b"a\nb\nc\na\n", "txt", LANGUAGES, each(upper), told=lambda done, total: told.append((done, total)))
    assert told == [(2, 3), (3, 3)]


def test_a_translator_that_loses_count_is_an_error() -> None:
    with pytest.raises(DataError, match="gave 1 translations of 2 texts"):
        translate_document(b"a\nb", "txt", LANGUAGES, lambda texts: [Answer("x")])


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        (b"a\0b", "txt", "zero bytes"),
        (b'<?xml version="1.0" encoding="klingon"?><xliff/>', "xliff", "'klingon', which is not known"),
        (b'<?xml version="1.0" encoding="utf-7"?><xliff/>', "xliff", "utf-7"),
        (
            b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\nmsgid "\xff"\nmsgstr ""\n',
            "po",
            r"not utf-8 \(byte 67\)",
        ),
        (b"<xliff>\xff</xliff>", "xliff", "not utf-8"),
    ],
)
def test_encodings_that_cannot_be_kept_are_refused(data: bytes, kind: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        translate_document(data, kind, LANGUAGES, each(upper), name="a.x")  # type: ignore[arg-type]


def test_splices_copy_all_that_lies_between() -> None:
    text = "<a t='x'>b</a> c"
    small = Splice(6, 7, ("Y",), small=True)
    assert apply_splices(text, [small]) == "<a t='Y'>b</a> c"
    moved = Splice(0, 16, ("C ", Range(0, 9), "B", Range(10, 14)))
    assert apply_splices(text, [moved, small]) == "C <a t='Y'>B</a>"
    assert apply_splices(text, [Splice(16, 16, ("!",)), Splice(0, 0, ("?",))]) == "?<a t='x'>b</a> c!"
    with pytest.raises(AssertionError, match="overlap"):
        apply_splices(text, [Splice(0, 5, ()), Splice(4, 6, ())])


def test_tags_pair_only_when_they_are_nested() -> None:
    def items(tags: str) -> list[InlineItem]:
        return [InlineItem("close" if tag.isupper() else "open", 0, 0, name=tag.lower()) for tag in tags]

    assert pair(items("abBA")).partner == {0: 3, 3: 0, 1: 2, 2: 1}
    assert pair(items("abAB")).stray == {0, 1, 2, 3}
    assert pair(items("aAb")).stray == {2} and pair(items("aAb")).partner == {0: 1, 1: 0}
    assert pair(items("aBA")).stray == {0, 1, 2}
