"""A translation may contain anything: the document still parses, has as many texts as before, and each holds what the translator said.

The parsers are not ours, except that of subtitles (`kept_structure`), which reads them as a player does.
"""

import re
import tempfile
from pathlib import Path

import lxml.etree
import lxml.html
import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_structure import read_srt
from stand_ins import Answer, each

from limelight.documents.document import translate_document
from limelight.documents.translating import TranslatedDocument

HOSTILE = [
    "<x", "</g>", '<g id="1">', '<x id="1"/>', "<b>", "</source>", "<!--", "-->", "]]>", "<![CDATA[", "<?x", "&evil;", "&#0;",
    "00:00:09,000 --> 00:00:10,000", "\n\n2\n00:00:09,000 --> 00:00:10,000\n", "\n\n", "1", "{\\an8}", "- ", "\\", "\\n",
    '"', "'", '"\nmsgid "evil"\nmsgstr "', "#~ msgid", "#, fuzzy", "msgid", "\t", "\r", "\r\n", "\v", "\f", "\x00", "\x1b", "\x1c", "\x7f",
    "\x85", "\u2028", "\u2029", "\ufeff", "\ufffe", "\ud800", "\u202e", "=", "中文", "word", " ",
]  # fmt: skip
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
# Begins and ends with a letter, so that there is a text whatever stands between, and no edge that is stripped.
strings = st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=6).map(lambda parts: f"a{''.join(parts)}z")


def translated(kind: str, document: str, text: str) -> TranslatedDocument:
    done = translate_document(document.encode(), kind, ("en", "de"), each(lambda _: text))  # type: ignore[arg-type]
    assert done.counts.texts == done.counts.translated + done.counts.unchanged + done.counts.failed
    return done


def seen(text: str) -> str:
    """What stays of a text where controls are blanks and blanks are one."""
    return " ".join(FORBIDDEN.sub(" ", text).split())


@pytest.mark.slow
@given(strings)
def test_plain_text_keeps_its_lines(text: str) -> None:
    done = translated("txt", "one\n\n  two\tthree\r\n", text)
    line = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+").sub(" ", text)
    line = FORBIDDEN.sub(" ", line)
    assert done.data.decode() == f"{line}\n\n  {line}\t{line}\r\n"


@given(strings, st.sampled_from(["one two\nthree", "one,", "<i>One.</i>", "- one\n- two", "one <b>two</b>"]))
def test_subtitles_keep_their_cues_and_times(text: str, cue: str) -> None:
    document = "".join(f"{at}\n00:00:0{at},000 --> 00:00:0{at},900\n{cue}\n\n" for at in (1, 2, 3))
    done = translated("srt", document, text)
    before, after = (list(read_srt(data)) for data in (document.encode(), done.data))
    assert [each[:2] for each in before] == [each[:2] for each in after]
    assert not any(re.search(r"-->", line) for *_, lines in after for line in lines)
    if cue == "<i>One.</i>":
        assert [" ".join(lines) for *_, lines in after] == [f"<i>{seen(text).replace('-->', '→')}</i>"] * 3


@pytest.mark.slow
@given(strings)
def test_catalogues_hold_the_very_string(text: str) -> None:
    document = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "one"\nmsgstr ""\n\n'
        'msgid "two"\nmsgid_plural "three"\nmsgstr[0] ""\nmsgstr[1] ""\n\n#~ msgid "x"\n#~ msgstr "y"\n'
    )
    done = translated("po", document, text)
    catalogue = read_catalogue(done.data)
    assert [(entry.msgid, entry.obsolete) for entry in catalogue] == [("one", 0), ("two", 0), ("x", 1)]
    found = [catalogue[0].msgstr, *catalogue[1].msgstr_plural.values()]
    assert found == [FORBIDDEN.sub(" ", text)] * 3


def read_catalogue(data: bytes) -> polib.POFile:
    """From a file, since of a string polib makes lines at U+2028 too."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.po"
        path.write_bytes(data)
        return polib.pofile(str(path), encoding="utf-8")


@pytest.mark.slow
@given(strings)
def test_exchange_files_hold_the_very_string(text: str) -> None:
    expected = FORBIDDEN.sub(" ", text)
    one = (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en" target-language="de">'
        '<body><trans-unit id="1"><source>one</source></trans-unit><trans-unit id="2"><source>a</source><target/></trans-unit>'
        "</body></file></xliff>"
    )
    two = (
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file id="f">'
        '<unit id="1"><segment><source>one</source></segment></unit><unit id="2"><segment><source>a</source></segment></unit>'
        "</file></xliff>"
    )
    tmx = (
        '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>one</seg></tuv></tu>'
        '<tu><tuv xml:lang="en"><seg>a</seg></tuv></tu></body></tmx>'
    )
    for kind, document, path in (
        ("xliff", one, "//*[local-name()='target']"),
        ("xliff", two, "//*[local-name()='target']"),
        ("tmx", tmx, "//tuv[2]/seg"),
    ):
        found = lxml.etree.fromstring(translated(kind, document, text).data).xpath(path)
        assert [(element.text, len(element)) for element in found] == [(expected, 0)] * 2


@given(strings)
def test_pages_hold_the_very_string(text: str) -> None:
    document = '<!doctype html><meta charset="utf-8"><title>one</title><p>two</p><img alt="three" src=x><a title=four>five</a>'
    tree = lxml.html.document_fromstring(translated("html", document, text).data.decode())
    assert [element.tag for element in tree.iter()] == ["html", "head", "meta", "title", "body", "p", "img", "a"]
    found = [tree.findtext(".//title"), tree.findtext(".//p"), tree.findtext(".//a")]
    assert [seen(each or "") for each in found] == [seen(text)] * 3
    assert [seen(each) for each in (*tree.xpath("//@alt"), *tree.xpath("//a/@title"))] == [seen(text)] * 2


@pytest.mark.parametrize("answer", ["<x", "a <x b", '<g id="1">'])
def test_half_a_tag_in_joined_cues_is_text(answer: str) -> None:
    document = "1\n00:00:00,000 --> 00:00:00,900\nx<\n\n2\n00:00:01,000 --> 00:00:01,900\ne\n"
    done = translate_document(document.encode(), "srt", ("en", "de"), lambda texts: [Answer(answer) for _ in texts])
    assert [lines for *_, lines in read_srt(done.data)] != [["x<"], ["e"]] and done.counts.failed == 0
