"""What real files have shown: fields of Word, quotes in CDATA, folded lines, a lone CR, forms without words, words before a book."""

import io
import json
import re
import struct
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lxml.etree
import pytest
import yaml
from sample_documents import MEMBERS, SAMPLES, archive
from stand_ins import each, unchanged, upper

from limelight.documents.document import translate_document
from limelight.documents.kinds import Kind
from limelight.documents.translating import TranslatedDocument
from limelight.errors import DataError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from doors_mutants import find_faults, judge_cues, judge_texts, mutants_of

BEGIN, SEPARATE, END = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))


def translated(kind: Kind, data: bytes | str) -> TranslatedDocument:
    return translate_document(data.encode() if isinstance(data, str) else data, kind, ("en", "de"), each(upper))


def code(text: str) -> str:
    return f"<w:r><w:instrText>{text}</w:instrText></w:r>"


def word(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def texts_of_word(paragraphs: str) -> list[str]:
    """What is translated, of a document with these paragraphs; all else stays."""
    document = re.sub(r"<w:body>.*</w:body>", f"<w:body>{paragraphs}</w:body>", MEMBERS["docx"]["word/document.xml"], flags=re.DOTALL)
    done = translated("docx", archive({**MEMBERS["docx"], "word/document.xml": document}))
    found = [unit.unit.text for unit in done.units]
    with zipfile.ZipFile(io.BytesIO(done.data)) as opened:
        made = opened.read("word/document.xml").decode()
    assert made == re.sub(r"(?<=<w:t>)[^<]+", lambda text: text[0].upper() if text[0].strip() in found else text[0], document)
    return found


@pytest.mark.parametrize(
    ("paragraph", "shown"),
    [
        (BEGIN + code(" PAGEREF x ") + SEPARATE + word("Chapter two") + END + word("you see"), ["Chapter two", "you see"]),
        (
            BEGIN + code("IF ") + BEGIN + code("REF a") + SEPARATE + word("inner") + END + word("asked") + SEPARATE + word("said") + END,
            ["said"],
        ),
        (word("Dear") + BEGIN + code(" MERGEFIELD Name ") + SEPARATE + word("the name") + END + word("hello"), ["Dear", "hello"]),
        (word("Dear") + BEGIN + code(" MergeField Name ") + SEPARATE + word("the name") + END + word("hello"), ["Dear", "hello"]),
        (BEGIN + code("TOC") + word("never ends"), ["never ends"]),
        (END + SEPARATE + word("never began"), ["never began"]),
        ('<w:fldSimple w:instr=" AUTHOR ">' + word("Ann Bee") + "</w:fldSimple>" + word("wrote it"), ["wrote it"]),
        ('<w:fldSimple w:instr=" REF x ">' + word("Figure one") + "</w:fldSimple>", ["Figure one"]),
    ],
)
def test_what_a_field_shows_is_text_and_its_code_is_not(paragraph: str, shown: list[str]) -> None:
    assert texts_of_word(f"<w:p>{paragraph}</w:p>") == shown


def test_hyphens_of_word_end_no_sentence() -> None:
    run = "<w:r><w:rPr><w:b/></w:rPr><w:t>soft</w:t><w:softHyphen/><w:t>hyphen and e</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r>"
    document = re.sub(r"<w:body>.*</w:body>", f"<w:body><w:p>{run}</w:p></w:body>", MEMBERS["docx"]["word/document.xml"], flags=re.DOTALL)
    data = archive({**MEMBERS["docx"], "word/document.xml": document})
    done = translated("docx", data)
    assert [unit.source for unit in done.units][:1] == ['softhyphen and e<x id="1"/>mail']
    with zipfile.ZipFile(io.BytesIO(done.data)) as opened:
        made = opened.read("word/document.xml").decode()
    bold = "<w:r><w:rPr><w:b/></w:rPr>"
    said = [f'{bold}<w:t xml:space="preserve">{text}</w:t></w:r>' for text in ("SOFTHYPHEN AND E", "MAIL")]
    assert f"<w:p>{said[0]}{bold}<w:noBreakHyphen/></w:r>{said[1]}</w:p>" in made
    assert translate_document(data, "docx", ("en", "de"), each(unchanged)).data == data


def test_wrappers_inside_wrappers_take_time_in_proportion() -> None:
    depth = 200
    began = time.process_time()
    assert texts_of_word(f"<w:p>{'<w:smartTag>' * depth}{word('two words')}{'</w:smartTag>' * depth}</w:p>") == ["two words"]
    assert time.process_time() - began < 10, "it doubles with every second one"


def test_a_text_of_word_with_more_than_text_in_it_is_left_and_counted() -> None:
    odd = word("<![CDATA[Tom & <b> Jerry]]>") + word("a<!-- note --> b")
    document = re.sub(r"<w:body>.*</w:body>", f"<w:body><w:p>{odd}</w:p></w:body>", MEMBERS["docx"]["word/document.xml"], flags=re.DOTALL)
    data = archive({**MEMBERS["docx"], "word/document.xml": document})
    done = translated("docx", data)
    assert done.data == data and (done.counts.texts, done.counts.left) == (0, 2)


def test_what_a_field_hides_is_counted_as_left() -> None:
    paragraph = BEGIN + code("AUTHOR") + SEPARATE + word("Ann Bee") + END
    document = re.sub(
        r"<w:body>.*</w:body>", f"<w:body><w:p>{paragraph}</w:p></w:body>", MEMBERS["docx"]["word/document.xml"], flags=re.DOTALL
    )
    counts = translated("docx", archive({**MEMBERS["docx"], "word/document.xml": document})).counts
    assert (counts.texts, counts.left) == (0, 1)


@pytest.mark.parametrize(
    ("inside", "wanted"),
    [
        ('See <a href="x">it</a>', 'SEE <A HREF="X">IT</A>'),
        (r"See <a href=\"x\">it</a>", r"SEE <A HREF=\"X\">IT</A>"),
        ("two words", "TWO WORDS"),
    ],
)
def test_quotes_in_cdata_of_android_stay_as_they_are_written(inside: str, wanted: str) -> None:
    done = translated("xml", f'<resources><string name="a"><![CDATA[{inside}]]></string></resources>').data
    assert lxml.etree.fromstring(done)[0].text == wanted


def test_a_quote_without_its_other_one_is_escaped_in_cdata() -> None:
    data = b'<resources><string name="a"><![CDATA[<a href="x">it</a>]]></string></resources>'
    done = translate_document(data, "xml", ("en", "de"), each(lambda text: 'a " b')).data
    assert lxml.etree.fromstring(done)[0].text == r"a \" b"


@pytest.mark.parametrize("gap", range(1, 5))
@pytest.mark.parametrize("head", [">", ">-", "|"])
def test_blank_lines_of_a_block_stay_as_many(head: str, gap: int) -> None:
    text = f"a: {head}\n  one two\n  three" + "\n" * gap + "  four\nb: five six\n"
    assert yaml.safe_load(translated("yaml", text).data) == {key: value.upper() for key, value in yaml.safe_load(text).items()}


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_properties_end_their_lines_as_java_reads_them(end: str) -> None:
    lines = ("a = one two", "# no text", "b = three \\", "   four", "", "c=five")
    done = translated("properties", end.join(lines)).data.decode()
    assert done == end.join(("a = ONE TWO", "# no text", "b = THREE FOUR", "", "c=FIVE"))


def test_forms_without_words_are_copied_with_those_that_have_some() -> None:
    empty, full = (f'{{"stringUnit": {{"state": "new", "value": "{value}"}}}}' for value in ("", "%d files"))
    variations = f'{{"variations": {{"plural": {{"zero": {empty}, "other": {full}}}}}}}'
    done = translated("xcstrings", f'{{"sourceLanguage": "en", "strings": {{"k": {{"localizations": {{"en": {variations}}}}}}}}}')
    made = yaml.safe_load(done.data)["strings"]["k"]["localizations"]["de"]["variations"]["plural"]
    assert [made[form]["stringUnit"]["value"] for form in ("zero", "other")] == ["", "%D FILES"] and done.counts.failed == 0


def test_words_before_a_book_are_left() -> None:
    assert translated("usfm", "Public domain.\n\\id GEN\n\\h Genesis\n").data == b"Public domain.\n\\id GEN\n\\h GENESIS\n"
    with pytest.raises(DataError, match="no line does so"):
        translated("usfm", "Public \\idea domain.\n")


def test_a_template_without_slides_stays_as_it_is() -> None:
    data = archive({"ppt/presentation.xml": "<p>no text</p>"})
    done = translated("pptx", data)
    assert done.data == data and done.counts.texts == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "paragraph",
    [
        lambda n: f"<w:r><w:rPr b='{'a' * n}'/>{'<w:t>ab</w:t>' * (n // 13)}</w:r>",
        lambda n: f"<w:hyperlink b='{'a' * n}'>{'<w:r><w:t>ab</w:t></w:r>' * (n // 24)}</w:hyperlink>",
    ],
)
def test_a_long_form_is_not_held_once_for_each_of_its_texts(paragraph: Callable[[int], str]) -> None:
    def peak(length: int) -> int:
        document = MEMBERS["docx"]["word/document.xml"].replace("<w:body>", f"<w:body><w:p>{paragraph(length)}</w:p>")
        tracemalloc.start()
        assert translated("docx", archive({**MEMBERS["docx"], "word/document.xml": document})).units
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(40_000) < 3 * peak(20_000)


def test_members_that_lie_in_each_other_are_refused() -> None:
    """Each would be read to the end of the archive: bytes times members."""
    whole = bytearray(archive({"word/header1.xml": "<w/>", "word/header2.xml": "<w/>"}))
    at = whole.find(b"PK\1\2")
    struct.pack_into("<L", whole, at + 20, at - 40)
    with pytest.raises(DataError, match=r"word/header1\.xml is damaged"):
        translated("docx", bytes(whole))


def test_a_list_of_members_that_reaches_too_far_is_refused() -> None:
    at = SAMPLES["pptx"].rindex(b"PK\1\2") + 30  # the size of what is extra
    with pytest.raises(DataError, match="damaged list"):
        translated("pptx", SAMPLES["pptx"][:at] + b"\x16\x00" + SAMPLES["pptx"][at + 2 :])


@pytest.mark.parametrize("answer", ["\u200b", "\u00a0", "\x00", "\ufeff\n", "\u00ad"])
def test_a_translation_that_nobody_sees_leaves_the_text(answer: str) -> None:
    done = translate_document(b"a: one two\n", "yaml", ("en", "de"), each(lambda text: answer))
    assert done.data == b"a: one two\n" and [warning.code for warning in done.warnings] == ["empty"]


@pytest.mark.parametrize("label", ["utf8", "u8", "UTF-8", "iso-8859-1"])
def test_an_encoding_is_known_by_its_other_names(label: str) -> None:
    text = f'<?xml version="1.0" encoding="{label}"?><resources><string name="a">schöne Wörter</string></resources>'
    done = translated("xml", text.encode("latin-1" if label == "iso-8859-1" else "utf-8")).data
    assert translated("xml", done).units[0].unit.text == "SCHÖNE WÖRTER"


@pytest.mark.parametrize("answer", ["a\x80b", "a\x9f", "\x7fb", "a\x85b", "\x81"])
def test_yaml_can_be_read_whatever_controls_the_translator_says(answer: str) -> None:
    done = translate_document(SAMPLES["yaml"], "yaml", ("en", "de"), each(lambda text: f"one {answer} two"))
    assert done.counts.failed == 0
    read = yaml.safe_load(done.data)["en"]
    assert [read[key].strip() for key in "abcde"] == [f"one {answer.replace(chr(127), ' ')} two"] * 5


@pytest.mark.parametrize("kind", SAMPLES)
def test_damaged_documents_have_no_faults(kind: str) -> None:
    assert mutants_of(kind, 10, seed=7) == {}


def test_a_lost_text_is_a_fault() -> None:
    done = translated("md", SAMPLES["md"])
    assert judge_texts("md", {}, done) == set()
    assert judge_texts("md", {}, replace(done, data=done.data.replace(b"QUOTED", b"").replace(b"NESTED", b""))) == {"texts lost"}
    cues = b"WEBVTT\n\n00:01.000 --> 00:02.000\none two\n\n00:02.000 --> 00:03.000\nthree\n"
    done = translated("vtt", cues)  # one text over two cues
    assert judge_cues(cues, done) == set() and judge_cues(cues, replace(done, data=done.data.replace(b"THREE", b"3"))) == {"texts lost"}
    assert find_faults("md", SAMPLES["md"], "unchanged", upper) == {"other bytes although nothing changed"}
    assert find_faults("md", SAMPLES["md"], "unchanged", unchanged) == set()


@pytest.mark.parametrize(
    "line",
    [
        "> [!NOTE]\n> TEXT HERE",
        "> [!warning]- Title\n> TEXT HERE",
        ":::tip Title\nTEXT HERE\n:::",
        '!!! note "Title"\n    TEXT HERE',
        "TERM\n: ITS MEANING\n: ANOTHER",
        "[^1]: FIRST NOTE\n[^a]: SECOND NOTE",
        "$$\na_b = c * d * e\n$$",
        "BEFORE:\n$$x_1 + y$$\nAFTER",
        "WHERE $a_b$ AND $x$ ARE",
        "WITH $\\text{all of it } + 1$ IN IT",
        "::: details Click me to see\nTEXT HERE\n:::",
        "::: {.note #a}\nTEXT HERE\n:::",
        '??? "Title of it"\n    TEXT HERE',
        '!!! note inline end "A title"\nTEXT HERE',
        '=== "A tab"\nTEXT HERE',
    ],
)
def test_marks_of_other_dialects_of_markdown_stay_on_their_lines(line: str) -> None:
    lower = re.sub(r"(?<!!)\b[A-Z]{2,}", lambda word: word[0].lower(), line)
    done = translate_document(lower.encode(), "md", ("en", "de"), each(upper))
    assert done.data.decode() == line and done.counts.failed == 0
    assert translate_document(lower.encode(), "md", ("en", "de"), each(unchanged)).data.decode() == lower


@pytest.mark.parametrize(
    "text",
    [
        "from $5 to $10",
        "5$ or 6$ each",
        "see $HOME/bin:$PATH",
        "so: this",
        "It costs 5$/month for one person or 10$ a year.",
        "Pay $20/seat or 15$ per head.",
        "!!! Attention: never open the valve while hot.",
        "??? Who knows what this is",
        "=== Results of today",
        "::: The colon line is a sentence. :::",
    ],
)
def test_sums_and_names_and_sentences_after_signs_in_markdown_are_text(text: str) -> None:
    done = translate_document(text.encode(), "md", ("en", "de"), each(upper))
    assert done.data.decode().removeprefix("\\") == text.upper() and done.counts.translated == 1


def test_a_link_that_begins_with_a_sign_and_a_tag_of_any_name_are_markup() -> None:
    assert translated("md", "[!Tip](http://x.y) read this\n").data == b"[!TIP](http://x.y) READ THIS\n"
    done = translated("md", "<line>A red dog</line> runs.\n")
    assert done.data == b"<line>A RED DOG</line> RUNS.\n" and done.counts.texts == 1


@pytest.mark.parametrize("answer", ['<x id="2"/> <x id="1"/>', 'Wenn <x id="1"/>, dann <x id="2"/>'])
def test_code_does_not_run_into_the_code_beside_the_text(answer: str) -> None:
    made = translate_document(b"- `a`: if `b`, then `c`.\n", "md", ("en", "de"), each(lambda text: answer if "<x" in text else "so")).data
    assert sorted(re.findall(rb"(?<!`)`\w`(?!`)", made)) == [b"`a`", b"`b`", b"`c`"], made


@pytest.mark.parametrize("answer", ["::: x", "!!! note", "??? x", "a $x_1$ b", "$$a$$", ": x"])
def test_a_translation_makes_no_mark_of_another_dialect(answer: str) -> None:
    made = translate_document(b"Hello you\n", "md", ("en", "de"), each(lambda text: answer)).data
    again = translate_document(made, "md", ("de", "en"), each(unchanged))
    assert [unit.source for unit in again.units] == [answer]


def test_a_localization_that_nobody_wrote_is_no_translation() -> None:
    def entry(value: str, state: str = "new") -> dict[str, object]:
        return {"localizations": {"de": {"stringUnit": {"state": state, "value": value}}}}

    strings = {"Open it": entry(""), "Close it": entry("Close it"), "Stop it": entry("Halt"), "Done it": entry("Done it", "translated")}
    data = json.dumps({"sourceLanguage": "en", "strings": strings}).encode()

    def values(again: bool) -> list[str]:
        made = json.loads(translate_document(data, "xcstrings", ("en", "de"), each(upper), again=again).data)["strings"]
        return [each["localizations"]["de"]["stringUnit"]["value"] for each in made.values()]

    assert values(False) == ["OPEN IT", "CLOSE IT", "Halt", "Done it"]
    assert values(True) == ["OPEN IT", "CLOSE IT", "STOP IT", "Done it"]


PLURALS = {"variations": {"plural": {form: {"stringUnit": {"state": "new", "value": ""}} for form in ("one", "few", "other")}}}


@pytest.mark.parametrize(
    ("target", "there", "made"),
    [
        ("en-GB", {}, {"en-GB": "OPEN IT"}),  # and the source stays
        ("pt-BR", {"pt": "", "pt-BR": ""}, {"pt": "", "pt-BR": "OPEN IT"}),
        ("pt-BR", {"pt": "Abrir", "pt-BR": ""}, {"pt": "Abrir", "pt-BR": "OPEN IT"}),
        ("pt-BR", {"pt": ""}, {"pt": "", "pt-BR": "OPEN IT"}),
        ("pt", {"pt-BR": ""}, {"pt-BR": "OPEN IT"}),
        ("en", {}, {}),
    ],
)
def test_the_nearest_localization_is_filled_and_no_other_is_lost(target: str, there: dict[str, str], made: dict[str, str]) -> None:
    texts = {"en": "Open it", **there}
    known = {code: {"stringUnit": {"state": "translated" if text == "Abrir" else "new", "value": text}} for code, text in texts.items()}
    data = json.dumps({"sourceLanguage": "en", "strings": {"k": {"localizations": known}}}).encode()
    done = json.loads(translate_document(data, "xcstrings", ("en", target), each(upper)).data)["strings"]["k"]["localizations"]
    assert {code: each["stringUnit"]["value"] for code, each in done.items()} == {"en": "Open it", **made}


@pytest.mark.parametrize("again", [False, True])
def test_plural_forms_that_the_source_has_not_are_kept(again: bool) -> None:
    strings = {"Open it": {"localizations": {"pl": PLURALS}}}
    data = json.dumps({"sourceLanguage": "en", "strings": strings}).encode()
    done = translate_document(data, "xcstrings", ("en", "pl"), each(upper), again=again)
    assert done.data == data and done.counts.left == 1
