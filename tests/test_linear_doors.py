"""Whatever reads the text of a stranger takes time in proportion to its length: each door, with texts that are made to be slow."""

import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent / "documents"))
from sample_documents import PARAGRAPHS, PUMPED, archive

from growth import grows_too_fast
from hostile_text import PUMPS, Text, repeated
from limelight.bundle.strict_json import parse
from limelight.corpus.readers import READERS
from limelight.corpus.reading import po
from limelight.corpus.reading.formats import read_tsv
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.records import read_jsonl
from limelight.decoding import guards
from limelight.decoding.steps import never
from limelight.documents.document import translate_document
from limelight.documents.kinds import KINDS, Kind
from limelight.documents.splices import LineCounter
from limelight.errors import LimelightError
from limelight.serving.compat.detect import Detector
from limelight.serving.compat.uploads import safe_name, sample_of
from limelight.serving.http.body import json_of
from limelight.serving.queue.markup import HtmlMarkup, XmlMarkup
from limelight.serving.refusals import Refusal
from limelight.text.careful import accelerators, capitals, noise, numbers
from limelight.text.careful.glossary import Glossary, Term, read_tbx, unmet
from limelight.text.careful.protect import find, protect, text_faults
from limelight.text.careful.restore import restore
from limelight.text.normalize import STEPS, normalize, normalize_text
from limelight.text.pieces.piece_words import words_of
from limelight.text.pieces.sampling import Sampler
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.text.segment import segments, split_long
from limelight.translator.confidence import split_words
from limelight.translator.parts import join_parts
from limelight.translator.protected import ProtectedSentence
from limelight.translator.sentences import SourceSentence
from limelight.translator.translation import Alignment, Translation

PIECES = Path(__file__).parent / "bundles" / "format-1" / "pieces.model"
Door = Callable[[str], object]


class Answer(NamedTuple):
    text: str
    warnings: tuple[guards.Notice, ...] = ()
    protected: bool = True
    confidence: float = 0.9


def answers(texts: list[str]) -> list[Answer]:
    return [Answer(f"{text} x") for text in texts]


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.load(PIECES)


def sampled(text: str) -> object:
    return Sampler(tokenizer(), dropout=0.1).segmentations(text)


def document(kind: Kind) -> Door:
    def data(text: str) -> bytes:
        return archive({PARAGRAPHS[kind][0]: text}) if kind in PARAGRAPHS else text.encode()

    return lambda text: refused_or(lambda: translate_document(data(text), kind, ("en", "de"), answers))


def refused_or(call: Callable[[], object]) -> object:
    """A refusal is an answer, too."""
    try:
        return call()
    except (LimelightError, Refusal, ValueError) as refusal:
        return refusal


TEXT_DOORS: dict[str, Door] = {
    "find": find,
    "find all numbers": lambda text: find(text, "all"),
    "protect and restore": lambda text: restore((made := protect(text, 16)).text, made),
    "text_faults": lambda text: text_faults(text, f"{text} 1"),
    "segments": lambda text: segments(text, "en"),
    "split_long": lambda text: split_long(text, len, 100),
    "differ": lambda text: numbers.differ(text, f"{text} 1", ("en", "de")),
    "lifted": accelerators.lift_accelerator,
    "placed": lambda text: accelerators.place_accelerator(text, accelerators.Accelerator("&", "x")),
    "calmed": lambda text: capitals.lower_capitals(f"HELLO WORLD {text.upper()}", "en"),
    "shouted": lambda text: capitals.uppercase(text, "tr"),
    "typos": lambda text: noise.typos(text, 12345),
    "judge": lambda text: guards.judge(text, f"{text} x"),
    "normalize": lambda text: normalize(pl.Series([text]), STEPS),
    "normalize_text": lambda text: normalize_text(text, STEPS),
    "encode": lambda text: tokenizer().encode([text]),
    "sample": sampled,
    "split_words": split_words,
    "words_of": lambda text: words_of(list(text)),
    "source_words": lambda text: ProtectedSentence(text, text, text, protected=protect(text)).source_words(),
    "sample_of": lambda text: sample_of(text.encode()),
    "safe_name": safe_name,
    "terms of a text": lambda text: GLOSSARY.find(text),
    "terms met": lambda text: unmet(GLOSSARY.terms[:20], text),
    "a glossary of the text": lambda text: refused_or(
        lambda: Glossary.of({text[at : at + 9]: text[-200:] for at in range(0, len(text), 9)})
    ),
    "html": document("html"),
    "txt": document("txt"),
    "srt": document("srt"),
    "po": document("po"),
    "a piece of a page": lambda text: HtmlMarkup(("en", "de")).find(text, never).units.translate(answers),
    "a piece of XML": lambda text: refused_or(lambda: XmlMarkup().find(text, never).units.translate(answers)),
    "JSON": lambda text: refused_or(lambda: json_of(text.encode())),
    "a JSON string": lambda text: refused_or(lambda: json_of(json.dumps({"text": text}).encode())),
}
GLOSSARY = Glossary.of(
    {"字" * n: "x" for n in range(1, 201)}
    | {" ".join(["a"] * n): " ".join(["a"] * n + ["b"]) for n in range(1, 99)}
    | {" ".join(["-"] * n): " ".join(["-"] * n + ["x"]) for n in range(1, 99)}
    | {" ".join(["A"] * n): "A" for n in range(1, 99)}
)


@pytest.mark.slow
@pytest.mark.parametrize("door", TEXT_DOORS)
def test_a_text_takes_time_in_proportion_to_its_length(door: str) -> None:
    for pump in PUMPS:
        for head, tail in (("", ""), ("a", "\0x1")):
            seen = grows_too_fast(TEXT_DOORS[door], repeated(pump, head, tail))
            assert seen is None, f"{head!r} + {pump!r} * n + {tail!r}: {seen}"


def numbered(one: str, head: str = "", tail: str = "") -> Text:
    """The same with another number each time, such as "a%d " -> "a0 a1 a2 "."""
    return lambda n: head + "".join(one.replace("%d", str(at)) for at in range(n // (len(one) + 2))) + tail


XLIFF = '<xliff version="1.2"><file><body>', "</body></file></xliff>"
TMX = '<tmx version="1.4"><header/><body>', "</body></tmx>"
SEGMENT = '<tu><tuv xml:lang="en"><seg>', "</seg></tuv></tu>"
SOURCE = '<trans-unit id="1"><source>', "</source></trans-unit>"
TBX = "<martif><text><body>", "</body></text></martif>"
HEADER = 'msgid ""\nmsgstr ""\n'
CUE = "1\n00:00:01,000 --> 00:00:02,000\n"
PLAIN = '<tuv xml:lang="en"><seg>a b</seg></tuv>'

# What is hostile to one kind of document only: (head, what is repeated, tail); %d is a number that goes up.
DOCUMENTS: dict[Kind, list[tuple[str, str, str]]] = {
    "txt": [("", "a%d\n", ""), ("", "a\t", "")],
    "html": [
        ("", each, "")
        for each in (
            "<b>",
            "a<b>",
            "<b>a</b>",
            "<b><i></b></i>",
            "<p>a",
            "<p title=a>",
            'a <img alt="aa">\nb<p>',
            "<li>a",
            "<table><tr><td>a",
            "</b>",
            "</p>",
            "<a%d>",
            "<a%d>x</a%d>",
            "<script>",
            "<script></script>",
            "<title>",
            "<textarea>a",
            "<!-->",
            "<!--a-->",
            "<![CDATA[",
            "<?",
            "</ ",
            "&amp;",
            "&#1",
            "<svg><g/>",
            "<div><b>a</div>",
            "<x/>",
            "a<br>",
            "\n<i>a",
        )
    ]
    + [
        ("<p ", "a%d=b ", ">x"),
        ("<p ", "a ", ""),
        ("<p ", "a='", ""),
        ("<p ", "/", ">x"),
        ("<p ", "=", ">"),
        ("<meta ", "charset ", ""),
        ("<meta charset=", " ", ""),
    ],
    "srt": [("", f"%d\n00:00:01,000 --> 00:00:02,000\n{text}\n\n", "") for text in ("a", "a.", "- a\n- b", "<i>a</i>", "<i>a", "{\\an8}a")]
    + [
        (CUE, "a\n", ""),
        (CUE, "a a a\n", ""),
        (CUE, "字\n", ""),
        (CUE, "- a\n", ""),
        (CUE, "<i>a", ""),
        (CUE, "{\\a", ""),
        (CUE, "1\n", ""),
        (CUE, '."', " a"),
    ],
    "po": [
        (HEADER, 'msgid "a%d"\nmsgstr ""\n\n', ""),
        (f'{HEADER}msgid ""\n', '"a "\n', 'msgstr ""\n'),
        (f'{HEADER}msgid "a"\nmsgid_plural "b"\n', 'msgstr[%d] ""\n', ""),
        (f"{HEADER}#, fuzzy", ", a", '\nmsgid "a"\nmsgstr ""\n'),
        (f'{HEADER}msgid "', "\\\\303\\\\251", '"\nmsgstr ""\n'),
        (f'{HEADER}msgid "', "\\\\", 'a"\nmsgstr ""\n'),
        ("", "content-type:", ""),
        ("", "msgid ", ""),
        ("", '"', ""),
        ("", "#~ a\n", ""),
        (HEADER, "a ", ""),
    ],
    "xliff": [
        (XLIFF[0] + SOURCE[0], each, SOURCE[1] + XLIFF[1])
        for each in (
            "a ",
            "<x id='%d'/>",
            "<g>a</g>",
            "<bx id='%d'/>",
            "&amp;",
            "<!--a-->",
            "<![CDATA[a]]>",
            "<?a?>",
            "<mrk/>",
        )
    ]
    + [
        (XLIFF[0], "".join((SOURCE[0], "a%d", SOURCE[1])), XLIFF[1]),
        (f"{XLIFF[0]}<trans-unit ", "a%d='b' ", f">{XLIFF[1]}"),
        (XLIFF[0], "<a%d:b/>", XLIFF[1]),
        (XLIFF[0], "<group>", ""),
    ],
    "tmx": [
        (TMX[0] + SEGMENT[0], each, SEGMENT[1] + TMX[1])
        for each in ("a ", "<ph/>", "<bpt i='%d'/>a<ept i='%d'/>", "<hi>a</hi>", "&#65;", "<!--a-->")
    ]
    + [
        (TMX[0], SEGMENT[0] + "a%d" + SEGMENT[1], TMX[1]),
        (f"{TMX[0]}<tu>", PLAIN, f"</tu>{TMX[1]}"),
        (f"{TMX[0]}<tu>", '<tuv xml:lang="a%d"><seg>a</seg></tuv>', f"</tu>{TMX[1]}"),
    ],
}
DOCUMENTS |= PUMPED  # type: ignore[arg-type]
HOSTILE = [(kind, *text) for kind in KINDS for text in DOCUMENTS[kind]]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "head", "one", "tail"), HOSTILE, ids=[f"{kind} {one[:30]!r}" for kind, _, one, _ in HOSTILE])
def test_a_document_takes_time_in_proportion_to_its_length(kind: Kind, head: str, one: str, tail: str) -> None:
    assert grows_too_fast(document(kind), numbered(one, head, tail)) is None


def nest_paragraphs(length: int) -> str:
    depth = min(200, length // 40)
    return "<d>" + "<p>a" * depth + "<s/>b" * (length // 12) + "</p>" * depth + "</d>"


TWO_PARTS: list[tuple[Kind, Callable[[int], str]]] = [
    ("odt", nest_paragraphs),
    ("po", lambda n: f'msgid "a"\nmsgid_plural "{"b " * (n // 4)}"\n' + "".join(f'msgstr[{at}] ""\n' for at in range(n // 32))),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "text"), TWO_PARTS, ids=["paragraphs inside each other", "plural forms"])
def test_two_parts_that_grow_together_take_time_in_proportion_to_both(kind: Kind, text: Callable[[int], str]) -> None:
    assert grows_too_fast(document(kind), text) is None


def rows_of(reader: Callable[[CorpusPart, int], Iterator[object]], path: Path) -> Door:
    def read(text: str) -> object:
        path.write_text(text)
        return refused_or(lambda: sum(1 for _ in reader(CorpusPart(0, 0, "", (str(path),), ("en", "de")), 1_000)))

    return read


@pytest.mark.parametrize("kind", ["po", "xliff", "tmx"])
def test_a_corpus_takes_time_in_proportion_to_its_length(kind: Kind, tmp_path: Path) -> None:
    door = rows_of(READERS[kind], tmp_path / "corpus")
    for head, one, tail in DOCUMENTS[kind]:
        assert (seen := grows_too_fast(door, numbered(one, head, tail))) is None, f"{one}: {seen}"


@pytest.mark.parametrize(
    ("reader", "one"),
    [
        (read_tsv, "a\t"),
        (read_tsv, "a\tb\n"),
        (read_jsonl, '{"source": "a", "target": "b"}\n'),
        (read_jsonl, "["),
        (read_jsonl, '"'),
        (read_jsonl, " "),
    ],
)
def test_a_corpus_of_lines_takes_time_in_proportion_to_its_length(
    reader: Callable[[CorpusPart, int], Iterator[object]], one: str, tmp_path: Path
) -> None:
    assert grows_too_fast(rows_of(reader, tmp_path / "corpus"), repeated(one)) is None


@pytest.mark.parametrize(
    "one",
    [
        "<termEntry/>",
        "<termEntry><langSet xml:lang='en'><tig><term>a%d</term></tig></langSet></termEntry>",
        "<a>",
        "<a%d:b/>",
        "<!--a-->",
        "a",
    ],
)
def test_a_glossary_file_takes_time_in_proportion_to_its_length(one: str, tmp_path: Path) -> None:
    assert grows_too_fast(lambda text: refused_or(lambda: read_tbx("a", text.encode())), numbered(one, *TBX)) is None
    path = tmp_path / "glossary.tsv"

    def load(text: str) -> object:
        path.write_text(text)
        return refused_or(lambda: Glossary.load(path))

    assert grows_too_fast(load, numbered("a%d\tb|c|d\n")) is None
    assert grows_too_fast(load, numbered("a\tb%d\n")) is None


def test_as_many_terms_as_words_take_time_in_proportion_to_both() -> None:
    def found(text: str) -> object:
        words = text.split(" ")
        return Glossary.of({" ".join(words[at : at + 5]) or "a": words[at] or "a" for at in range(len(words))}).find(text)

    assert grows_too_fast(found, numbered("w%d ")) is None
    assert grows_too_fast(found, repeated("a ")) is None
    assert grows_too_fast(found, repeated("a ", tail="b")) is None


def test_as_many_targets_as_words_take_time_in_proportion_to_both() -> None:
    def missing(text: str) -> object:
        words = text.split(" ")
        return unmet([Term("a", (" ".join([*words[at : at + 20], "no"]),)) for at in range(len(words))], text)

    assert grows_too_fast(missing, numbered("w%d ")) is None
    assert grows_too_fast(missing, numbered("aaaa%d ")) is None
    assert grows_too_fast(missing, repeated("aaaaaa ")) is None


def test_as_many_numbers_as_words_take_time_in_proportion_to_both() -> None:
    def differ(text: str) -> object:
        source = "".join(f"{number}.5 thousand " for number in range(len(text) // 2))
        return numbers.differ(source, source.replace(".5 thousand", "500"), ("en", "de"))

    assert grows_too_fast(differ, repeated("a")) is None


@pytest.mark.slow
def test_as_many_sentences_as_words_are_joined_in_time_in_proportion() -> None:
    def join(text: str) -> object:
        parts = [SourceSentence(word, after=" ") for word in 8 * text.split()]
        made = Translation("a", 0.0, 1.0, [], "eos", Alignment([(0, 0)], [], []), source="a")
        return join_parts(text, parts, [made] * len(parts))

    assert grows_too_fast(join, repeated("a ")) is None


def test_lines_of_places_that_go_to_and_fro_are_counted_in_time_in_proportion() -> None:
    """A page asks for an attribute first, and then for the beginning of the sentence that holds it."""

    def count(text: str) -> object:
        lines, page = LineCounter("a\n" * (100 * len(text))), range(100, 100 * len(text), 100)
        return [(lines.of(place), lines.of(place - 50)) for place in page]

    assert grows_too_fast(count, repeated("a")) is None


def test_a_string_of_many_lines_is_put_together_in_time_in_proportion() -> None:
    def read(text: str) -> object:
        lines = [po.PoLine(number, '"a text of some length"', "utf-8") for number in range(2, 2 * len(text))]
        return [entry.value("msgid") for entry in po.scan_po([po.PoLine(1, 'msgid ""', "utf-8"), *lines])]

    assert grows_too_fast(read, repeated("a")) is None


def test_a_long_blank_in_a_sentence_that_is_too_long_takes_time_in_proportion() -> None:
    call = TEXT_DOORS["split_long"]
    assert grows_too_fast(call, repeated(" \u200b", "a" * 300, "a" * 300)) is None


@pytest.mark.slow
@pytest.mark.parametrize("pump", ["a", "A ", "字", "\u0301", "<a "])
def test_a_language_is_detected_in_time_in_proportion(pump: str) -> None:
    detector = Detector(["en", "de"])
    assert grows_too_fast(lambda text: detector.look([text]), repeated(pump)) is None


@pytest.mark.slow
def test_a_loop_that_is_slow_is_caught() -> None:
    def concatenated(text: str) -> int:
        return sum(text[:at].count(" ") for at in range(len(text)))

    assert grows_too_fast(concatenated, repeated("a ")) is not None


@pytest.mark.parametrize("value", ['{"a%d": 1,', "[", '{"a":', '"\\\\', "1,", "\\u0000"])
def test_json_takes_time_in_proportion_to_its_length(value: str) -> None:
    for head, tail in (("", ""), ('{"a": [', '"x"]}'), ('{"a": "', '"}')):
        for door in (json_of, parse):
            assert grows_too_fast(lambda text, door=door: refused_or(lambda: door(text.encode())), numbered(value, head, tail)) is None  # type: ignore[misc]
