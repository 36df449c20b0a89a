# ruff: noqa: E501
"""Files of programs, tables, subtitles and office documents: what is translated, what stays, and what other people's readers see in it."""

import csv
import io
import json
import re
import struct
import time
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

import lxml.etree
import pytest
import yaml
from sample_documents import MEMBERS, NCX, SAMPLES, TEXTS, archive, mutant
from stand_ins import HARMS, each, reversed_words, unchanged, upper

from limelight.documents.document import translate_document
from limelight.documents.kinds import Kind
from limelight.documents.tables import yaml_texts
from limelight.documents.translating import TranslatedDocument
from limelight.errors import ConfigError, DataError, LimelightError

LANGUAGES = ("en", "de")
FILLED = ("xcstrings", "csv", "tsv")  # a text that is the same in both languages is written too
HOSTILE = "a <b> & \"q\" 's' \\ %% {x} ]]> --> * _y_ `c` [l](u) | # z\nnext: - 1. z"


def translated(kind: str, data: bytes | str, change: Callable[[str], str] = upper, **options: Any) -> TranslatedDocument:
    data = data.encode() if isinstance(data, str) else data
    done = translate_document(data, kind, LANGUAGES, each(change), **options)  # type: ignore[arg-type]
    assert done.counts.texts == done.counts.translated + done.counts.unchanged + done.counts.failed
    return done


def text_of(kind: str, data: bytes | str, change: Callable[[str], str] = upper, **options: Any) -> str:
    return translated(kind, data, change, **options).data.decode()


def member(data: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        assert opened.testzip() is None
        return opened.read(name).decode()


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if kind not in FILLED])
def test_what_comes_back_unchanged_stays_to_the_byte(kind: str) -> None:
    done = translated(kind, SAMPLES[kind], unchanged)
    assert done.data == SAMPLES[kind] and done.counts.texts == done.counts.unchanged > 0


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("change", [upper, reversed_words, *HARMS, lambda text: HOSTILE], ids=lambda change: change.__name__)
def test_no_text_is_lost_and_none_is_new_whatever_the_translator_says(kind: str, change: Callable[[str], str]) -> None:
    done = translated(kind, SAMPLES[kind], change)
    again = translated(kind, done.data, unchanged)
    assert again.counts.texts + again.counts.left >= done.counts.texts > 0 and done.counts.failed == 0
    if kind not in FILLED:
        assert "left" not in done.data.decode("utf-8", "ignore") or "LEFT" not in done.data.decode("utf-8", "ignore")


def test_markdown_keeps_its_blocks_links_and_code() -> None:
    expected = (
        TEXTS["md"].replace("A *title*", "A *TITLE*").replace("Open [the settings]", "OPEN [THE SETTINGS]").replace(" of **bold _it_**", " OF **BOLD _IT_**")
        .replace(",\nthen snake_case", ", THEN SNAKE_CASE").replace("[ref].", "[REF][ref].").replace("quoted *words\n> go* on", "QUOTED *WORDS GO* ON")
        .replace("after a break", "AFTER A BREAK").replace("one **item**", "ONE **ITEM**").replace("nested", "NESTED").replace("| a b | c \\| d |", "| A B | C \\| D |")
        .replace("| one *x* | two |", "| ONE *X* | TWO |").replace("Some <b>html", "SOME <b>HTML")
    )  # fmt: skip
    assert text_of("md", TEXTS["md"]) == expected


@pytest.mark.parametrize(
    "answer", ["# a", "- a", "1. a", "> a", "a](b", "*a*", "`a", "<b>a", "a_ _b", "&amp;", "a | b", "~~a~~", "a\n\nb", "![a](b)"]
)
def test_a_translation_is_text_and_no_markdown(answer: str) -> None:
    from markdown_it import MarkdownIt

    done = text_of(
        "md",
        "one **two** three\n\n- four\n\n| a |\n| - |\n| five |\n",
        lambda text: text.replace("three", answer) if "<" in text else answer,
    )
    tokens = MarkdownIt("commonmark").enable("table").parse(done)
    before = MarkdownIt("commonmark").enable("table").parse("one **two** three\n\n- four\n\n| a |\n| - |\n| five |\n")
    assert [token.type for token in tokens] == [token.type for token in before]
    shown = " ".join(answer.split())
    cells = [token for token in tokens if token.type == "inline"]
    assert [child.type for child in cells[0].children or [] if child.type not in ("text", "text_special")] == [
        "strong_open",
        "strong_close",
    ]
    assert ["".join(child.content for child in cell.children or []) for cell in cells[1:]] == [shown] * 3


def test_half_a_character_in_one_text_leaves_the_others() -> None:
    done = translated("json", b'{"a": "Open \\ud800 it", "b": "open"}')
    assert done.data == b'{"a": "Open \\ud800 it", "b": "OPEN"}' and [each.code for each in done.warnings] == ["malformed"]


@pytest.mark.parametrize(("stated", "then"), [("en", "de"), ("en_GB", "de"), ("fr", "fr"), ("de", "de")])
def test_a_file_of_flutter_states_the_language_that_it_is_in_then(stated: str, then: str) -> None:
    made = json.loads(text_of("json", json.dumps({"@@locale": stated, "hi": "Hello", "@hi": {"description": "to all"}})))
    assert made == {"@@locale": then, "hi": "HELLO", "@hi": {"description": "to all"}}
    kept = json.dumps({"@@locale": "en", "hi": "Hello", "menu": {"@@locale": "en"}})
    assert text_of("json", kept, unchanged) == kept


def test_json_keeps_keys_numbers_and_what_is_said_about_a_text() -> None:
    expected = {
        "menu": {"open": "OPEN {{NAME}}", "n": 3, "list": ["ONE TWO", 'Ä "Q"']}, "@open": {"description": "about it"},
        "m": {"message": "HI THERE", "description": "about it"},
    }  # fmt: skip
    done = translated("json", TEXTS["json"])
    assert json.loads(done.data) == expected and done.data.isascii() and done.counts.left == 2
    assert json.loads(text_of("json", '{"a": "b", "ä": ["c"]}', lambda text: HOSTILE + "ü")) == {"a": HOSTILE + "ü", "ä": [HOSTILE + "ü"]}


def test_yaml_keeps_styles_and_says_the_same_to_its_readers() -> None:
    done = text_of("yaml", TEXTS["yaml"])
    assert yaml.safe_load(done) == {
        "en": {"a": "PLAIN TEXT", "b": "SINGLE 'Q' TEXT", "c": "DOUBLE\n TEXT", "d": "LINE ONE\nLINE TWO\n", "e": "FOLDED ONE FOLDED TWO",
               "f": 3, "g": ["ONE TWO", {"k": "V W"}]}
    }  # fmt: skip
    for kept in (
        "PLAIN TEXT # comment",
        "&x 'SINGLE ''Q'' TEXT'",
        '"DOUBLE\\n TEXT"',
        "|\n    LINE ONE\n    LINE TWO\n\n",
        ">-\n    FOLDED",
    ):
        assert kept in done
    for answer in (HOSTILE, "yes", "a: b", "# c", "- d", "\u2028e\x85", "'", "a\n  b", "null"):
        read = yaml.safe_load(text_of("yaml", TEXTS["yaml"], lambda text, answer=answer: f"{answer}z" if answer == "'" else answer))["en"]
        wanted = {"'": "'z"}.get(answer, answer).strip()
        assert [read[key].strip() for key in "abcde"] == [wanted] * 5 and read["g"] == [wanted, {"k": wanted}]


def test_yaml_without_its_parser_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_texts, "yaml", None)
    with pytest.raises(ConfigError, match=r"limelight\[documents\]"):
        translated("yaml", TEXTS["yaml"])


def test_android_keeps_escapes_quotes_and_what_must_not_be_translated() -> None:
    done = text_of("xml", TEXTS["xml"])
    for kept in (
        "DON\\'T OPEN\\n <b>IT</b> &amp; <xliff:g id=\"x\">Bob Smith</xliff:g> NOW", '"IT\\\'S   QUOTED"', ">left<", ">@string/a<", ">ONE FILE<",
        "<![CDATA[<B>BOLD</B> WORDS]]>", "FIRST <em>X Y</em>",
    ):  # fmt: skip
        assert kept in done
    strings = lxml.etree.fromstring(text_of("xml", TEXTS["xml"], lambda text: '@it\'s "q" <b> ]]>\n\\').encode())
    assert strings[2].text == '\\@it\\\'s \\"q\\" <b> ]]>\\n\\\\' and strings[5][1].text == strings[2].text


@pytest.mark.parametrize(
    ("inside", "wanted"),
    [
        (r"Total:\u0020", r"TOTAL:\u0020"),
        (r"\u0020and\u0020", r"\u0020AND\u0020"),
        (r"a\u0020\u0020b", r"A\u0020\u0020B"),
        (r"a\u0020b", "A B"),  # between words one blank is as good as another
        (r"\\u0020x", r"\\U0020X"),  # a backslash, and no blank
        (r'"a\u0020"', '"A "'),
    ],
)
def test_android_keeps_blanks_that_are_written_as_escapes(inside: str, wanted: str) -> None:
    document = '<resources><string name="t">{}</string></resources>'
    assert text_of("xml", document.format(inside)) == document.format(wanted)


def test_a_catalogue_of_xcode_with_half_a_character_keeps_it_and_says_so() -> None:
    done = translated("xcstrings", b'{"sourceLanguage": "en", "strings": {"Open \\ud800 it": {}, "fine": {}}}')
    assert b'"Open \\ud800 it": {}' in done.data and b'"FINE"' in done.data
    assert [each.code for each in done.warnings] == ["malformed"]


def test_resx_properties_and_strings_are_written_as_they_were() -> None:
    assert text_of("resx", TEXTS["resx"]) == TEXTS["resx"].replace("Hello {0} &lt;b&gt;", "HELLO {0} &lt;B&gt;")
    done = text_of("properties", TEXTS["properties"], lambda text: text.upper() + "ü\U0001f600")
    assert "open.file = OPEN \\u201c{0}\\u201d IT''S NOW\\u00fc\\ud83d\\ude00\n" in done
    assert "key\\ b\\:c : VALUE ONE\\u00fc" in done and "# no text\n" in done
    latin = translated("properties", "a = größer".encode("latin-1"), lambda text: "Größe €").data
    assert latin == "a = Größe \\u20ac".encode("latin-1")
    assert text_of("properties", "a=größer", lambda text: "Größe €") == "a=Größe €"
    for encoding in ("utf-8", "utf-16", "utf-8-sig"):
        made = translated("strings", TEXTS["strings"].encode(encoding)).data
        assert made.decode(encoding) == TEXTS["strings"].replace("Open", "OPEN").replace(" now", " NOW").replace("two words", "TWO WORDS")


def test_a_string_catalogue_gets_what_it_lacks_and_says_what_to_look_at() -> None:
    made = json.loads(text_of("xcstrings", TEXTS["xcstrings"]))["strings"]
    assert made["Open it"]["localizations"]["de"]["stringUnit"] == {"state": "translated", "value": "OPEN IT"}
    forms = made["k"]["localizations"]["de"]["variations"]["plural"]
    assert [forms[form]["stringUnit"]["value"] for form in ("one", "other")] == ["%D FILE", "%D FILES"] and len(made["left"]) == 1
    doubtful = json.loads(text_of("xcstrings", TEXTS["xcstrings"], unsure_below=1))["strings"]
    assert doubtful["Open it"]["localizations"]["de"]["stringUnit"]["state"] == "needs_review"
    half = translated("xcstrings", TEXTS["xcstrings"], lambda text: "" if text == "%d file" else text.upper())
    assert "de" not in json.loads(half.data)["strings"]["k"]["localizations"] and half.counts.failed == 2
    with pytest.raises(DataError, match="is in fr"):
        translated("xcstrings", '{"sourceLanguage": "fr", "strings": {}}')


def test_web_subtitles_keep_voices_times_and_blocks() -> None:
    done = text_of("vtt", TEXTS["vtt"])
    expected = TEXTS["vtt"].replace("Hello &amp; welcome <i>to</i> it", "HELLO &amp; WELCOME <i>TO</i> IT").replace("- One", "- ONE")
    assert done == expected.replace(">two", ">TWO").replace("Three", "THREE")


def test_tables_are_filled_by_column_and_keep_their_quotes() -> None:
    done = text_of("csv", TEXTS["csv"])
    assert done == TEXTS["csv"].replace('now",\r\n', 'now","OPEN, ""PLEASE""\nNOW"\r\n').replace("Short row\r\n", "Short row,SHORT ROW\r\n")
    assert [row[2] for row in csv.reader(io.StringIO(text_of("csv", TEXTS["csv"], lambda text: HOSTILE.replace("\n", " ")), newline=""))][
        1
    ] == HOSTILE.replace("\n", " ")
    assert text_of("csv", "a;b\none two;\n", column="1=2") == "a;B\none two;ONE TWO\n".replace("a;B", "a;b")
    assert text_of("tsv", "x y\tz\n", column="1") == "X Y\tz\n" and text_of("csv", "n,t\n1,one two\n", column="t") == "n,t\n1,ONE TWO\n"
    assert text_of("csv", "pt,eng,de-AT,de\n,one two,,\n") == "pt,eng,de-AT,de\n,one two,,ONE TWO\n", "the nearest, not the first"
    with pytest.raises(ConfigError, match="no columns are called en and nb"):  # "No" is a number
        translate_document(b"No,en,text\n1,one,x\n", "csv", ("en", "nb"), each(upper))
    for wrong, said in (("x=de", "no column x"), (None, "--column SOURCE=TARGET")):
        with pytest.raises(ConfigError, match=said):
            translated("csv", "a,b\nc,d\n", column=wrong)
    with pytest.raises(ConfigError, match="leave it out"):
        translated("txt", "one", column="1")


def test_scripture_keeps_its_markers() -> None:
    expected = (
        TEXTS["usfm"]
        .replace("Genesis", "GENESIS")
        .replace("In the beginning", "IN THE BEGINNING")
        .replace("God \\add made", "GOD \\add MADE")
    )
    expected = expected.replace("the \\w gnat", "THE \\w GNAT").replace("fly.", "FLY.").replace("The earth\nwas void", "THE EARTH WAS VOID")
    assert text_of("usfm", TEXTS["usfm"]) == expected
    assert "\\evil" not in text_of("usfm", TEXTS["usfm"], lambda text: "\\evil |")


def test_words_of_several_runs_are_one_sentence() -> None:
    done = translated("docx", SAMPLES["docx"], reversed_words)
    assert [unit.unit.text for unit in done.units] == [
        "A heading", 'Open the <g id="1">bold</g><x id="2"/><x id="3"/><g id="4"> linked </g>words<x id="5"/>.', "one", "two words", "three", "a cell", "in a box",
    ]  # fmt: skip
    assert [unit.unit.line for unit in done.units] == list(range(1, 8))
    xml = member(done.data, "word/document.xml")
    assert (
        '<w:hyperlink r:id="rId1"><w:r><w:rPr><w:rStyle w:val="Link"/></w:rPr><w:t xml:space="preserve">linked</w:t></w:r></w:hyperlink>'
        in xml
    )
    assert "<w:footnoteReference" in xml and "".join(lxml.etree.fromstring(xml.encode()).itertext()).startswith("heading A.  words")
    assert translated("docx", SAMPLES["docx"], upper).counts.apart == 0


def test_slides_and_open_documents_and_books() -> None:
    slide = member(translated("pptx", SAMPLES["pptx"]).data, "ppt/slides/slide1.xml")
    assert "<a:t>SOME </a:t>" in slide and '<a:rPr b="1"/><a:t>BOLD</a:t>' in slide and "7 pages" in slide
    text = member(translated("odt", SAMPLES["odt"], reversed_words).data, "content.xml")
    assert (
        "<text:p>note The</text:p></text:note-body></text:note>" in text and '<text:span text:style-name="B">world bold</text:span>' in text
    )
    book = translated("epub", SAMPLES["epub"]).data
    assert "SOME <b>BOLD</b> TEXT\xa0HERE." in member(book, "EPUB/c1.xhtml").replace("&#160;", "\xa0")
    assert "<text>CHAPTER ONE</text>" in member(book, "EPUB/toc.ncx")


def test_a_comment_in_a_box_in_a_paragraph_is_text_of_its_own() -> None:
    note = "<office:annotation><dc:creator>Ann</dc:creator><text:p>a comment</text:p></office:annotation>"
    names = " ".join(f'xmlns:{name}="{name}"' for name in ("text", "draw", "office", "dc"))
    box = f"<draw:frame><draw:text-box><text:p>boxed {note}text</text:p></draw:text-box></draw:frame>"
    data = archive({**MEMBERS["odt"], "content.xml": f"<d {names}><text:p>outer {box}words</text:p></d>"})
    done = translated("odt", data)
    assert member(done.data, "content.xml") == member(data, "content.xml").replace("outer", "OUTER").replace("words", "WORDS").replace(
        "boxed", "BOXED"
    ).replace("text</text:p>", "TEXT</text:p>").replace("a comment", "A COMMENT")
    assert done.counts.texts == 3
    turned = lxml.etree.fromstring(re.sub(r"(?<=[</])\w+:", "", member(translated("odt", data, reversed_words).data, "content.xml")))
    assert ["".join(p.itertext()).split() for p in turned.iter("p")][1:] == [["text", "Anncomment", "a", "boxed"], ["comment", "a"]]
    assert translate_document(data, "odt", LANGUAGES, each(unchanged)).data == data


def test_the_author_of_a_book_keeps_the_name() -> None:
    toc = NCX.replace("<ncx>", "<ncx><docTitle><text>My book</text></docTitle><docAuthor>\n <text>Jane Smith</text></docAuthor>")
    made = member(translated("epub", archive({**MEMBERS["epub"], "EPUB/toc.ncx": toc})).data, "EPUB/toc.ncx")
    assert made == toc.replace("My book", "MY BOOK").replace("Chapter one", "CHAPTER ONE")


@pytest.mark.parametrize("kind", MEMBERS)
def test_other_members_of_an_archive_stay_as_they_are_packed(kind: str) -> None:
    new = translated(kind, SAMPLES[kind]).data
    before, after = (zipfile.ZipFile(io.BytesIO(data)) for data in (SAMPLES[kind], new))
    assert before.namelist() == after.namelist() and after.testzip() is None
    same = [name for name in before.namelist() if before.read(name) == after.read(name)]
    assert 0 < len(same) < len(before.namelist())
    for name in same:
        old, now = before.getinfo(name), after.getinfo(name)
        assert (
            SAMPLES[kind][old.header_offset :][: 30 + len(name) + old.compress_size]
            == new[now.header_offset :][: 30 + len(name) + now.compress_size]
        )
        assert (old.date_time, old.external_attr, old.compress_type) == (now.date_time, now.external_attr, now.compress_type)


def with_flag(data: bytes) -> bytes:
    """The first member says that it is encrypted."""
    at = data.rindex(b"PK\1\2") if data.count(b"PK\1\2") == 1 else data.index(b"PK\1\2")
    return data[: at + 8] + struct.pack("<H", 1) + data[at + 10 :]


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("docx", b"no archive", "no ZIP archive"),
        ("docx", SAMPLES["odt"], "none of the members"),
        ("docx", archive({"word/document.xml": " " * (33 << 20)}), "unpacks to more"),
        ("docx", with_flag(SAMPLES["docx"]), "encrypted"),
        ("docx", b"junk" + SAMPLES["docx"], "odd places"),
        ("odt", archive({"content.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}), "DTD"),
        ("odt", archive({"content.xml": "<a>" * 300}), "deep"),
        ("docx", SAMPLES["docx"].replace(b"PK\3\4", b"PK\3\5", 1)[:-60], "ZIP"),
        ("json", b"[" * 100_000, "levels"),
        ("json", b'{"a": "b"', "no JSON"),
        ("yaml", b"[" * 3_000, "levels"),
        ("yaml", b"a: b: c", "no YAML"),
        ("yaml", b"a: \x07", "no YAML"),
        ("xml", b"<a/>", "begins with <a>"),
        ("xcstrings", b"{}", "no string catalogue"),
        ("usfm", b"plain", "USFM"),
        ("csv", b"en,de" + b"," * 20_000, "columns"),
        ("strings", "a".encode("utf-16-le"), "zero bytes"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(kind: str, data: bytes, said: str) -> None:
    with pytest.raises(DataError, match=said):
        translated(kind, data)


def test_a_signed_document_is_translated_with_a_warning() -> None:
    done = translated("docx", archive({**MEMBERS["docx"], "_xmlsignatures/sig1.xml": "<s/>"}))
    assert [warning.code for warning in done.warnings] == ["signature"] and done.counts.translated


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAMPLES)
def test_two_hundred_damaged_documents_are_refused_or_translated(kind: Kind) -> None:
    read = 0
    for number in range(200):
        random = Random(f"{kind} {number}")
        data = mutant(kind, random)
        for change in (unchanged, upper, lambda text: HOSTILE):
            try:
                done = translated(kind, data, change)
                again = translated(kind, done.data, unchanged)
            except LimelightError:
                continue
            read += 1
            assert kind in FILLED or change is not unchanged or done.data == data
            assert kind in FILLED or again.counts.texts + again.counts.left >= done.counts.texts, number
    assert read > 20


def test_html_inside_markdown_stays_one_piece() -> None:
    assert text_of("md", "<p>Some <b>html</b></p>\n\nend\n", lambda text: f"{text}\n\nx") == "<p>Some <b>html</b>  x</p>\n\nend x\n"


def test_milestones_of_usfm_and_their_attributes_stay() -> None:
    line = '\\zaln-s |x-strong="H430"\\*\\w God|x-occurrence="1"\\w*\\zaln-e\\* made it'
    done = text_of("usfm", f"\\id GEN\n\\c 1\n\\p\n\\v 1 {line}\n")
    assert '\\zaln-s |x-strong="H430"\\*\\w GOD|x-occurrence="1"\\w*\\zaln-e\\* MADE IT' in done


def test_two_halves_of_a_character_are_one() -> None:
    done = text_of("xml", '<resources><string name="a">Hi \\ud83d\\ude00 you</string></resources>')
    assert "HI \U0001f600 YOU" in done


def test_thousands_of_columns_are_not_all_asked_for_their_language() -> None:
    """A table of 100 KB took half a minute: each name was looked up in the registry, twice."""
    head = ",".join(f"{chr(97 + at // 676 % 26)}{chr(97 + at // 26 % 26)}{chr(97 + at % 26)}-defgh" for at in range(9_000))
    began = time.process_time()
    with pytest.raises(ConfigError, match="no columns are called en and de"):
        translated("csv", f"{head}\nx\n")
    assert time.process_time() - began < 1.5


def test_a_row_that_lacks_thousands_of_columns_is_refused() -> None:
    with pytest.raises(DataError, match="columns"):
        translated("csv", "source" + "," * 9998 + "target\n" + "ab\n" * 3, column=None)


@pytest.mark.parametrize("strings", ['["a b"]', '{"a b": [1]}', '{"a b": {"localizations": ["x"]}}'])
def test_a_string_catalogue_of_another_shape_is_refused_or_left(strings: str) -> None:
    text = f'{{"sourceLanguage": "en", "strings": {strings}}}'
    try:
        json.loads(text_of("xcstrings", text))
    except DataError:
        assert strings.startswith("[")


def test_what_stands_with_text_in_a_link_is_not_lost() -> None:
    run = "<w:r><w:drawing/></w:r>"
    link = f'<w:hyperlink r:id="1">{run}<w:r><w:t>Home</w:t></w:r></w:hyperlink><w:r><w:t> page</w:t></w:r>'
    formula = '<m:oMath xmlns:m="urn:m"><m:r><m:t>sin x</m:t></m:r></m:oMath>'
    document = MEMBERS["docx"]["word/document.xml"]
    body = re.sub(r"<w:body>.*</w:body>", f"<w:body><w:p>{link}</w:p><w:p>{formula}</w:p></w:body>", document, flags=re.S)
    done = member(translated("docx", archive({**MEMBERS["docx"], "word/document.xml": body})).data, "word/document.xml")
    assert "<w:drawing/>" in done and "HOME" in done and "PAGE" in done and "sin x" in done


def test_a_question_mark_in_a_flow_of_yaml_is_quoted() -> None:
    done = text_of("yaml", "{ask: Delete it}\n", lambda text: "Really?")
    assert yaml.safe_load(done) == {"ask": "Really?"}


def test_an_empty_anchor_in_a_book_keeps_its_sentence_whole() -> None:
    page = next(name for name in MEMBERS["epub"] if name.endswith("html"))
    text = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><script src="a.js"/><p>one <i>two<a id="p12"/> three</i> four</p></body></html>'
    )
    done = member(translated("epub", archive({**MEMBERS["epub"], page: text})).data, page)
    assert done == text.replace("one", "ONE").replace("two", "TWO").replace("three", "THREE").replace("four", "FOUR")
