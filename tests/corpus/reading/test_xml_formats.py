"""TMX and XLIFF: every unit is a row, only its own texts are read, and no file can make us fetch or swell."""

import os
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from peak_memory import rows_and_peak

from limelight.corpus.readers import read
from limelight.corpus.reading.language_tags import closeness
from limelight.corpus.reading.raw import LONGEST_LINE, PREFIX, CorpusPart, RowFault
from limelight.errors import DataError

XML = "{http://www.w3.org/XML/1998/namespace}"


def rows_of(path: Path, kind: str, content: str | bytes | None = None, languages: tuple[str, str] = ("en", "de")) -> list[dict[str, Any]]:
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    batches = list(read(CorpusPart(0, 0, kind, (str(path),), languages), 100))
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


def tmx(body: str, before: str = "") -> str:
    return f'<?xml version="1.0"?>\n{before}<tmx version="1.4"><header srclang="en"/><body>{body}</body></tmx>'


def unit(attributes: str = "", **texts: str) -> str:
    variants = "".join(f'<tuv xml:lang="{tag}"><seg>{text}</seg></tuv>' for tag, text in texts.items())
    return f"<tu {attributes}>{variants}</tu>\n"


def test_a_unit_of_tmx_is_a_pair_with_its_line_and_its_id(tmp_path: Path) -> None:
    units = unit('tuid="u1"', en="one &amp; <![CDATA[<b>]]>", de="eins") + unit(de="zwei", fr="deux", EN="two")
    rows = rows_of(tmp_path / "a.tmx", "tmx", tmx(units))
    assert [(r["source"], r["target"], r["line"], r["segment"], r["fault"]) for r in rows] == [
        ("one & <b>", "eins", 2, "u1", 0),
        ("two", "zwei", 3, None, 0),
    ]


def test_every_unit_counts_also_one_without_the_languages(tmp_path: Path) -> None:
    units = unit(en="a", fr="b") + unit(en="a", de="b") + unit(fr="b") + unit() + unit(de="only") + "<tu><tuv/></tu>"
    rows = rows_of(tmp_path / "a.tmx", "tmx", tmx(units))
    bad = int(RowFault.MALFORMED)
    assert [row["fault"] for row in rows] == [bad, 0, bad, bad, bad, bad]
    assert [(row["source"], row["target"]) for row in rows][:5] == [
        ("a", ""),
        ("a", "b"),
        ("", ""),
        ("", ""),
        ("", "only"),
    ]


def test_a_tmx_in_other_languages_says_which_it_has(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="its languages are: fr, it; name two"):
        rows_of(tmp_path / "a.tmx", "tmx", tmx(unit(fr="a", it="b")))


@pytest.mark.parametrize(
    ("wanted", "tags", "chosen"),
    [
        (("en", "de"), ["de_DE", "en-US"], ("en-US", "de_DE")),
        (("en", "de"), ["en-US", "de-AT", "de", "en"], ("en", "de")),
        (("en-GB", "de"), ["en-US", "en-GB", "DE"], ("en-GB", "DE")),
        (("en-GB", "de-AT"), ["en", "de"], ("en", "de")),
        (("pt", "pt-BR"), ["pt-BR", "pt-PT"], ("pt-PT", "pt-BR")),
        (("en", "de"), ["eng", "de", "en"], ("en", "de")),
    ],
)
def test_the_closest_languages_are_chosen(tmp_path: Path, wanted: tuple[str, str], tags: list[str], chosen: tuple[str, str]) -> None:
    (row,) = rows_of(tmp_path / "a.tmx", "tmx", tmx(unit(**{tag: tag for tag in tags})), wanted)
    assert (row["source"], row["target"]) == chosen


def test_another_language_is_never_close() -> None:
    assert [closeness("en", tag) for tag in ("en", "EN", "en_GB", "eng", "de", "")] == [0, 0, 1, 1, None, None]
    assert closeness("en-GB", "en") == 2
    assert closeness("en-GB", "en-US") is None


@pytest.mark.parametrize("pair", [("no", "nb"), ("ar", "arb_Arab"), ("zh-CN", "zh-Hans"), ("zho_Hant", "zh-TW"), ("lv", "lvs_Latn")])
def test_two_codes_of_one_written_language_are_close(pair: tuple[str, str]) -> None:
    """What a server takes for the same, a document and an evaluation take for the same."""
    assert closeness(*pair) == closeness(*reversed(pair)) == 3


@pytest.mark.parametrize("pair", [("zh-TW", "zh-Hans"), ("sr-Cyrl", "sr-Latn"), ("pt-BR", "pt-PT"), ("nn", "nb"), ("x-a", "x-b")])
def test_two_scripts_or_two_regions_are_not(pair: tuple[str, str]) -> None:
    assert closeness(*pair) is None


def test_inline_markup_of_tmx_is_kept_entered_or_left_out(tmp_path: Path) -> None:
    text = (
        'See <bpt i="1">&lt;b></bpt>the <hi>red</hi> line<ept i="1">&lt;/b></ept><ph x="2">{0}</ph>'
        '<it pos="begin">&lt;i></it>!<ph>&lt;img alt="<sub>a <ph>deep</ph> title</sub>"/></ph><ph/>'
    )
    (row,) = rows_of(tmp_path / "a.tmx", "tmx", tmx(unit(en=text, de="x")))
    assert row["source"] == 'See <b>the red line</b>{0}<i>!<img alt=""/>'


def test_old_attributes_namespaces_and_other_encodings_are_read(tmp_path: Path) -> None:
    old = '<tmx><body><tu><tuv lang="EN"><seg>a</seg></tuv><tuv lang="DE"><seg>ü</seg></tuv></tu></body></tmx>'
    spaced = tmx(unit(en="a", de="ü")).replace("<tmx ", '<tmx xmlns="http://www.lisa.org/tmx14" ')
    for content in (
        old.encode(),
        spaced.encode(),
        b"\xef\xbb\xbf" + old.encode(),
        old.encode("utf-16"),
        b'<?xml version="1.0" encoding="iso-8859-15"?>' + old.encode("iso-8859-15"),
    ):
        (row,) = rows_of(tmp_path / "a.tmx", "tmx", content)
        assert (row["source"], row["target"]) == ("a", "ü")


XLIFF_12 = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:sdl="urn:sdl">
<file source-language="en-US" target-language="de_DE"><body><group>
<trans-unit id="1" approved="no"><source>Hello</source><seg-source>Hello</seg-source>
  <target state="new">Hallo <mrk mtype="seg"><g id="1">Welt</g></mrk><x id="2"/></target>
  <sdl:target>no</sdl:target><alt-trans><source>Bye</source><target>Tschüss</target></alt-trans><note>n</note></trans-unit>
<trans-unit id="2"><source>No target</source></trans-unit><trans-unit id="h" restype="x-gettext-domain-header">
<source>A: 1</source></trans-unit>
<trans-unit id="3"><source>Empty<bx id="4"/></source><target/></trans-unit></group>
<trans-unit id="4"><source>a<ph id="1">&lt;br/></ph>b<bpt id="2"/></source><target>c</target></trans-unit>
</body></file></xliff>"""

XLIFF_20 = """<xliff version="2.0" srcLang="en" trgLang="de" xmlns="urn:oasis:names:tc:xliff:document:2.0"
 xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0"><file id="f"><unit id="u">
<mtc:matches><mtc:match ref="#1"><source>Other</source><target>Anderer</target></mtc:match></mtc:matches>
<segment id="s1"><source>One <pc id="1">big</pc></source><target>Ein<ph id="2"/><cp hex="001A"/></target></segment>
<ignorable><source> </source></ignorable>
<segment><source>Two<sc id="3"/></source></segment>
</unit></file></xliff>"""


def test_xliff_1_reads_the_target_and_not_the_alternatives(tmp_path: Path) -> None:
    """Nor the header that gettext writes as an entry."""
    rows = rows_of(tmp_path / "a.xlf", "xliff", XLIFF_12)
    assert [(r["segment"], r["line"], r["source"], r["target"], r["fault"]) for r in rows] == [
        ("1", 3, "Hello", 'Hallo Welt<x id="2"/>', RowFault.FUZZY),
        ("2", 6, "No target", "", 0),
        ("3", 8, 'Empty<bx id="4"/>', "", 0),
        ("4", 9, 'a<br/>b<bpt id="2"/>', "c", 0),
    ]


def test_what_xliff_marks_as_a_guess_is_fuzzy(tmp_path: Path) -> None:
    """As a catalogue's fuzzy entries. What has no target is empty, whatever its state; another sentence's guess is of no matter."""
    unit = '<trans-unit id="1"><source>one</source><target{}>{}</target>{}</trans-unit>'
    guess = '<alt-trans><source>x</source><target state="new">y</target></alt-trans>'
    cases = [(' state="needs-translation"', "eins", ""), (' state="new"', "", ""), (' state="translated"', "eins", guess), ("", "eins", "")]
    content = '<xliff version="1.2"><file source-language="en" target-language="de"><body>{}</body></file></xliff>'
    rows = rows_of(tmp_path / "a.xlf", "xliff", content.format("".join(unit.format(*case) for case in cases)))
    assert [row["fault"] for row in rows] == [RowFault.FUZZY, RowFault.NONE, RowFault.NONE, RowFault.NONE]
    segments = "".join(f'<segment state="{state}"><source>a</source><target>b</target></segment>' for state in ("initial", "final"))
    content = f'<xliff version="2.0" srcLang="en" trgLang="de"><file id="f"><unit id="u">{segments}</unit></file></xliff>'
    assert [row["fault"] for row in rows_of(tmp_path / "b.xlf", "xliff", content)] == [RowFault.FUZZY, RowFault.NONE]


def test_xliff_2_reads_a_pair_per_segment(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "a.xlf", "xliff", XLIFF_20)
    assert [(r["segment"], r["line"], r["source"], r["target"]) for r in rows] == [
        ("u/s1", 4, "One big", 'Ein<ph id="2"/><cp hex="001A"/>'),
        ("u", 6, 'Two<sc id="3"/>', ""),
    ]


@pytest.mark.parametrize("content", [XLIFF_12, XLIFF_20])
def test_xliff_in_the_other_direction_is_turned_and_in_others_refused(tmp_path: Path, content: str) -> None:
    straight = rows_of(tmp_path / "a.xlf", "xliff", content)
    turned = rows_of(tmp_path / "a.xlf", "xliff", content, ("de", "en"))
    assert [(r["target"], r["source"]) for r in turned] == [(r["source"], r["target"]) for r in straight]
    with pytest.raises(DataError, match="this file goes from en"):
        rows_of(tmp_path / "a.xlf", "xliff", content, ("en", "fr"))


LAUGHS = '<!DOCTYPE tmx [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>\n'
ATTACKS = {
    "billion laughs": tmx(unit(en="&c;", de="x"), LAUGHS),
    "quadratic": tmx(unit(en="&a;" * 1000, de="x"), f'<!DOCTYPE tmx [<!ENTITY a "{"a" * 50_000}">]>\n'),
    "external": tmx(unit(en="&e;", de="x"), '<!DOCTYPE tmx [<!ENTITY e SYSTEM "file:///etc/passwd">]>\n'),
    "parameter": tmx(unit(en="x", de="x"), '<!DOCTYPE tmx [<!ENTITY % p SYSTEM "http://localhost:9/x"> %p;]>\n'),
    "subset": tmx(unit(en="x", de="x"), "<!DOCTYPE tmx [<!ELEMENT tmx ANY>]>\n"),
    "empty subset": tmx(unit(en="x", de="x"), "<!DOCTYPE tmx []>\n"),
    "entity of the DTD": tmx(unit(en="a &nbsp; b", de="x"), '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'),
    "depth": tmx(unit(en="<hi>" * 300 + "</hi>" * 300, de="x")),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_entities_and_dtds_are_refused_with_file_and_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.tmx"
    with pytest.raises(DataError, match=r"a\.tmx, line \d+: .* (?:is|are) refused") as caught:
        rows_of(path, "tmx", ATTACKS[name])
    assert caught.value.exit_code == 65


def test_a_plain_doctype_is_accepted_and_never_looked_for(tmp_path: Path) -> None:
    """The DTD beside the file would break it, were it read."""
    (tmp_path / "tmx14.dtd").write_bytes(b"<!ENTITY nbsp 'read'> <!broken")
    rows = rows_of(tmp_path / "a.tmx", "tmx", tmx(unit(en="a", de="b"), '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'))
    assert len(rows) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (tmx(unit(en="a", de="b"))[:-9], "not well-formed"),
        ("<html/>", "begins with <html>"),
        ("no xml", "not well-formed"),
        ('<?xml version="1.0" encoding="nonsense"?><tmx/>', "not well-formed"),
        (tmx(f"<!--{'x' * 3_000_000}-->"), "comment of more than"),
    ],
)
def test_what_is_no_tmx_is_refused(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        rows_of(tmp_path / "a.tmx", "tmx", content)


def test_a_text_too_long_is_cut_and_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "a.tmx", "tmx", tmx(unit(en="x" * (LONGEST_LINE + 1), de="b") + unit(en="a", de="b")))
    assert [(len(row["source"]), row["fault"]) for row in rows] == [(PREFIX, RowFault.TOO_LONG), (1, 0)]
    assert rows_of(tmp_path / "b.tmx", "tmx", b"") == []


@pytest.mark.process
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for count in (4_000, 32_000):
        path = tmp_path / f"{count}.tmx"
        path.write_bytes(tmx(unit(en="a sentence of some length " * 4, de="ein Satz von einiger Länge " * 4) * count).encode())
        rows, megabytes = rows_and_peak("tmx", path)
        assert rows == count
        peaks.append(megabytes)
    assert peaks[1] - peaks[0] <= 4


def samples(pattern: str) -> list[Path]:
    folder = os.environ.get("LIMELIGHT_DATA")
    if not folder:
        pytest.skip("LIMELIGHT_DATA names no folder with samples")
    found = sorted((Path(folder) / "l10n" / "samples").glob(pattern))
    assert found
    return found


def text_of(element: Any) -> str:
    return "" if element is None else "".join(element.itertext())


def test_samples_of_tmx_equal_what_lxml_finds() -> None:
    for path in samples("*.tmx"):
        units = etree.parse(path, etree.XMLParser(load_dtd=False, no_network=True)).iter("tu")
        found = [{v.get(XML + "lang"): text_of(v.find("seg")) for v in unit.iter("tuv")} for unit in units]
        rows = rows_of(path, "tmx")
        assert [(row["source"], row["target"]) for row in rows] == [(unit["en"], unit["de"]) for unit in found]
        assert not any(row["fault"] for row in rows)


def test_samples_of_xliff_equal_what_lxml_finds() -> None:
    for path in samples("*.xlf"):
        units = [unit for unit in etree.parse(path).iter("{*}trans-unit") if unit.get("restype") != "x-gettext-domain-header"]
        found = [(text_of(u.find("{*}source")), text_of(u.find("{*}target")), u.get("id"), u.sourceline) for u in units]
        rows = rows_of(path, "xliff")
        assert [(row["source"], row["target"], row["segment"], row["line"]) for row in rows] == found
