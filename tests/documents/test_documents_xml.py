"""XLIFF and TMX: empty targets are filled with the inline elements of their sources, and the rest stays to the byte."""

import time

import lxml.etree
import pytest
from kept_structure import without_states
from stand_ins import Answer, each, reversed_words, unchanged, upper, without_tags

from limelight.decoding.guards import Notice
from limelight.documents.document import translate_document
from limelight.documents.translating import TranslatedDocument
from limelight.errors import DataError
from limelight.translator.translation import Translation, recall

FILE = '<file source-language="en" target-language="de"><body>{}</body></file>'
ONE = f'<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">{FILE}</xliff>'
TWO = '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file id="f">{}</file></xliff>'
TMX = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>\n'


def done(document: str, change: object = upper, kind: str = "xliff", again: bool = False) -> TranslatedDocument:
    return translate_document(document.encode(), kind, ("en", "de"), each(change), again=again)  # type: ignore[arg-type]


def filled(inner: str, change: object = upper, frame: str = ONE, again: bool = False) -> str:
    head, tail = frame.split("{}")
    text = done(frame.replace("{}", inner), change, "tmx" if frame == TMX else "xliff", again).data.decode()
    lxml.etree.fromstring(text.encode())
    text = without_states(text)
    assert text.startswith(head) and text.endswith(tail)
    return text[len(head) : len(text) - len(tail)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\n  <source>hi</source>\n", "\n  <source>hi</source>\n  <target>HI</target>\n"),
        ("<source>hi</source><target/>", "<source>hi</source><target>HI</target>"),
        ("<source>hi</source><target state='new' />", "<source>hi</source><target>HI</target>"),
        ("<source>hi</source><target> </target>", "<source>hi</source><target>HI</target>"),
        ("<source>hi</source><target state='new'>hi</target>", "<source>hi</source><target>HI</target>"),
        ("<source> a &lt;b&gt;\n</source>", "<source> a &lt;b&gt;\n</source><target> A &lt;B&gt;\n</target>"),
        ("<source><![CDATA[a & b]]></source>", "<source><![CDATA[a & b]]></source><target>A &amp; B</target>"),
        ("<source>a&#10;b</source>", "<source>a&#10;b</source><target>A\nB</target>"),
    ],
)
def test_empty_targets_are_filled(before: str, after: str) -> None:
    assert filled(f'<trans-unit id="1">{before}<note>n</note></trans-unit>') == (f'<trans-unit id="1">{after}<note>n</note></trans-unit>')


@pytest.mark.parametrize(
    "kept",
    [
        '<trans-unit id="1"><source>hi</source><target>da</target></trans-unit>',
        '<trans-unit id="1"><source>hi</source><target>hi</target></trans-unit>',
        '<trans-unit id="1" translate="no"><source>hi</source></trans-unit>',
        '<group translate="no"><trans-unit id="1"><source>hi</source></trans-unit></group>',
        '<trans-unit id="1"><source>12 %</source></trans-unit>',
        '<trans-unit id="1" restype="x-gettext-domain-header"><source>Name: x</source><target/></trans-unit>',
        '<trans-unit id="1"><source>hi</source><target><x id="1"/></target></trans-unit>',
        '<o:unit xmlns:o="urn:other"><o:source>hi</o:source></o:unit>',
    ],
)
def test_what_is_finished_or_protected_is_left_alone(kept: str) -> None:
    assert filled(kept) == kept


def test_matches_of_other_sentences_are_no_sources() -> None:
    unit = '<trans-unit id="1"><source>hi</source>{}<alt-trans><source>ho</source><target></target></alt-trans></trans-unit>'
    assert filled(unit.format("")) == unit.format("<target>HI</target>")


def test_doubtful_targets_are_translated_again_when_asked() -> None:
    unit = '<trans-unit id="1"><source>hi</source><target state="needs-adaptation">{}</target></trans-unit>'
    assert filled(unit.format("da")) == unit.format("da")
    assert filled(unit.format("da"), again=True) == unit.format("HI").replace(' state="needs-adaptation"', "")


INLINE = [
    ('one <g id="1">two <x id="2"/></g> three', 'three <g id="1"><x id="2"/> two</g> one'),
    ('one <ph id="1">&lt;br/&gt;</ph> two', 'two <ph id="1">&lt;br/&gt;</ph> one'),
    ('a <bpt id="1">[b]</bpt>b c<ept id="1">[/b]</ept> d', 'd <bpt id="1">[b]</bpt>c b<ept id="1">[/b]</ept> a'),
    ('a <bx id="1"/>b c<ex id="1"/> d', 'd <bx id="1"/>c b<ex id="1"/> a'),
    ('a <mrk mtype="protected">b c</mrk> d', 'd <mrk mtype="protected">b c</mrk> a'),
    ('<x id="1"/>one two<x id="2"/>', '<x id="1"/>two one<x id="2"/>'),
]


@pytest.mark.parametrize(("source", "target"), INLINE)
def test_inline_elements_of_version_1_move_with_their_words(source: str, target: str) -> None:
    unit = f'<trans-unit id="1"><source>{source}</source>'
    assert filled(f"{unit}</trans-unit>", reversed_words) == f"{unit}<target>{target}</target></trans-unit>"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ('one <pc id="1">two <ph id="2"/></pc> three', 'three <pc id="1"><ph id="2"/> two</pc> one'),
        ('a <sc id="1"/>b c<ec startRef="1"/> d', 'd <sc id="1"/>c b<ec startRef="1"/> a'),
        ('a <mrk id="m" translate="no">b c</mrk> d', 'd <mrk id="m" translate="no">b c</mrk> a'),
        ('a b <ec id="9" isolated="yes"/> d', 'd <ec id="9" isolated="yes"/> b a'),
    ],
)
def test_inline_elements_of_version_2_move_with_their_words(source: str, target: str) -> None:
    unit = f'<unit id="1"><segment><source>{source}</source>'
    assert filled(f"{unit}</segment></unit>", reversed_words, TWO) == f"{unit}<target>{target}</target></segment></unit>"


@pytest.mark.parametrize("source", ['a <sc id="1"/>b <sc id="2"/>c<ec startRef="1"/> d <ec startRef="2"/> e', "a <ex id='1'/> b"])
def test_codes_that_do_not_nest_stay_in_their_order(source: str) -> None:
    unit = f'<unit id="1"><segment><source>{source}</source>'
    result = done(TWO.replace("{}", f"{unit}</segment></unit>"), reversed_words)
    target = result.data.decode().split("<target>")[1].split("</target>")[0]
    assert target == source and result.counts.apart == 1


def test_a_translation_without_its_tags_keeps_them_all_the_same() -> None:
    unit = '<trans-unit id="1"><source>one <g id="1">two</g> three</source>'
    expected = f'{unit}<target>ONE <g id="1">TWO</g> THREE</target></trans-unit>'
    assert filled(f"{unit}</trans-unit>", without_tags) == expected


def test_sentences_that_were_cut_before_stay_cut() -> None:
    unit = (
        '<trans-unit id="1"><source>One. Two.</source>'
        '<seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></seg-source>'
    )
    assert filled(f'{unit}<target><mrk mtype="seg" mid="1"/></target></trans-unit>') == (
        f'{unit}<target><mrk mtype="seg" mid="1">ONE.</mrk> <mrk mtype="seg" mid="2">TWO.</mrk></target></trans-unit>'
    )


@pytest.mark.parametrize(
    ("kind", "text", "stated"),
    [
        (
            "xliff",
            ONE.replace(' target-language="de"', "").format('<trans-unit id="1"><source>hi</source></trans-unit>'),
            'target-language="de"',
        ),
        ("tmx", TMX.format('<tu><tuv xml:lang="en"><seg>hi</seg></tuv></tu>'), '<tuv xml:lang="de">'),
        ("arb", '{"@@locale": "en", "a": "hi"}', '"@@locale": "de"'),
        ("xcstrings", '{"sourceLanguage": "en", "strings": {"hi": {}}}', '"de"'),
    ],
)
def test_a_document_states_the_usual_tag_of_a_language(kind: str, text: str, stated: str) -> None:
    """An imported model calls German deu_Latn, which no program for documents knows, and an underscore is none of a tag."""
    made = translate_document(text.encode(), "json" if kind == "arb" else kind, ("eng_Latn", "deu_Latn"), each(upper)).data.decode()  # type: ignore[arg-type]
    assert stated in made and "HI" in made and "deu_Latn" not in made


def test_the_target_language_is_stated_where_it_was_not() -> None:
    one = done(ONE.replace(' target-language="de"', "").format('<trans-unit id="1"><source>hi</source></trans-unit>'))
    assert b'<file source-language="en" target-language="de">' in one.data
    two = done(TWO.replace(' trgLang="de"', "").format('<unit id="1"><segment><source>hi</source></segment></unit>'))
    assert b'srcLang="en" trgLang="de">' in two.data
    nothing = ONE.replace(' target-language="de"', "").format("")
    assert done(nothing).data == nothing.encode()


def test_names_with_a_prefix_keep_it() -> None:
    document = (
        '<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><x:file source-language="en" target-language="de">'
        '<x:trans-unit id="1"><x:source>hi</x:source>{}</x:trans-unit></x:file></x:xliff>'
    )
    assert without_states(done(document.format("")).data.decode()) == document.format("<x:target>HI</x:target>")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_places_are_right_in_every_encoding(encoding: str) -> None:
    said = "" if "sig" in encoding else f'<?xml version="1.0" encoding="{encoding}"?>\r\n'
    document = said + ONE.format('<!-- é --><trans-unit id="é"><source>café</source>\r\n{}</trans-unit>')
    result = translate_document(document.format("").encode(encoding), "xliff", ("en", "de"), each(lambda _: "é中"))
    target = "é&#20013;" if encoding[0] in "iw" else "é中"
    expected = document.format("").replace("</source>", f"</source><target>{target}</target>")
    assert without_states(result.data.decode(encoding)).encode(encoding) == expected.encode(encoding)


@pytest.mark.parametrize(
    ("hostile", "said"),
    [
        ('<!DOCTYPE x [<!ENTITY a "b">]>' + ONE.format(""), "is refused"),
        (
            '<!DOCTYPE x SYSTEM "x.dtd">' + ONE.format("<trans-unit><source>&a;</source></trans-unit>"),
            "only a DTD could explain",
        ),
        (ONE.format("<g>" * 300 + "</g>" * 300), "more than 256 deep"),
        (ONE.format("<trans-unit><source>" + "<x/>" * 20_001 + "</source></trans-unit>"), "more than 20,000 elements"),
        (ONE.format("<a></b>"), "not well-formed"),
        ("<html/>", "begins with <html>"),
        (
            ONE.replace('"en"', '"fr"').format('<trans-unit id="1"><source>hi</source></trans-unit>'),
            "goes from fr to de",
        ),
        ("", "not well-formed"),
    ],
)
def test_hostile_and_wrong_documents_are_refused(hostile: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        done(hostile)


def test_characters_that_xml_forbids_do_not_get_in() -> None:
    unit = '<trans-unit id="1"><source>hi</source>{}</trans-unit>'
    assert filled(unit.format(""), lambda _: "a\x00\x0b\ufffeb\r]]>") == unit.format("<target>a   b ]]&gt;</target>").replace(
        "b ]", "b&#13;]"
    )


def test_a_unit_gets_a_variant_in_the_target_language() -> None:
    tuv = '\n <tuv xml:lang="{}">\n  <seg>{}</seg>\n </tuv>'
    source = tuv.format("en-US", 'a <bpt i="1">x</bpt>b c<ept i="1">y</ept> <hi>d e</hi>')
    target = tuv.format("de", '<hi>e d</hi> <bpt i="1">x</bpt>c b<ept i="1">y</ept> a')
    assert filled(f"<tu>{source}\n</tu>", reversed_words, TMX) == f"<tu>{source}{target}\n</tu>"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<tuv xml:lang="de-DE"><seg>da</seg></tuv>', '<tuv xml:lang="de-DE"><seg>da</seg></tuv>'),
        ('<tuv xml:lang="DE"><seg></seg></tuv>', '<tuv xml:lang="DE"><seg>HI</seg></tuv>'),
        ('<tuv xml:lang="de"><seg/></tuv>', '<tuv xml:lang="de"><seg>HI</seg></tuv>'),
    ],
)
def test_a_variant_that_is_there_is_filled_only_when_empty(before: str, after: str) -> None:
    unit = '<tu><tuv xml:lang="en"><seg>hi</seg></tuv>{}</tu>'
    assert filled(unit.format(before), upper, TMX) == unit.format(after)


def test_units_in_other_languages_are_left_alone() -> None:
    other, one = '<tu><tuv xml:lang="fr"><seg>oui</seg></tuv></tu>', '<tu><tuv lang="en"><seg>yes</seg></tuv>{}</tu>'
    assert filled(other + one.format(""), upper, TMX) == other + one.format('<tuv lang="de"><seg>YES</seg></tuv>')
    with pytest.raises(DataError, match="its languages are: fr"):
        done(TMX.format(other), upper, "tmx")


def test_what_is_the_same_in_both_languages_is_written_too() -> None:
    unit = '<trans-unit id="1"><source>OK</source>{}</trans-unit>'
    assert filled(unit.format(""), unchanged) == unit.format("<target>OK</target>")


def judged(document: str, confidence: float = 0.9, again: bool = False, notices: tuple[Notice, ...] = ()) -> str:
    """XLIFF through a translator that is so sure of everything."""

    def translate(texts: list[str]) -> list[Answer]:
        return [Answer(text.upper(), notices, confidence) for text in texts]

    data = translate_document(document.encode(), "xliff", ("en", "de"), translate, again=again, unsure_below=0.5).data
    lxml.etree.fromstring(data)
    return data.decode()


def test_a_target_of_version_1_says_how_sure_the_machine_was() -> None:
    units = '<trans-unit id="1"><source>hi</source>{}</trans-unit>'
    its = ' xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0" its:annotatorsRef="mt-confidence|Limelight"'
    stated = '<target{} state="{}" state-qualifier="mt-suggestion" its:mtConfidence="{}">HI</target>'
    sure, unsure = stated.format("", "translated", "0.900"), stated.format("", "needs-review-translation", "0.412")
    head = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"'
    for before in ("", "<target/>", "<target></target>"):
        document = ONE.format(units.format(before))
        expected = ONE.format(units.format(sure)).replace(head, head + its)
        assert judged(document) == expected
        assert judged(document, 0.4118) == expected.replace(sure, unsure)
    document = ONE.format(units.format("<target xml:lang='de' state = 'new'> </target>"))
    after = '<target xml:lang=\'de\' state = "translated" state-qualifier="mt-suggestion" its:mtConfidence="0.900">HI</target>'
    assert judged(document) == ONE.format(units.format(after)).replace(head, head + its)


@pytest.mark.parametrize("unsure_below", [0.5, 1])
def test_what_the_memory_had_is_no_suggestion_of_a_machine(unsure_below: float) -> None:
    one = ONE.format('<trans-unit id="1"><source>1, 2</source></trans-unit><trans-unit id="2"><source>a <x id="1"/></source></trans-unit>')

    def remember(texts: list[str]) -> list[Translation]:
        return [recall(text, text.upper()) for text in texts]

    def filled(document: str) -> str:
        return translate_document(document.encode(), "xliff", ("en", "de"), remember, unsure_below=unsure_below).data.decode()

    assert '<target state="translated" state-qualifier="exact-match">1, 2</target>' in filled(one) and "mtConfidence=" not in filled(one)
    assert '<segment state="translated" subState="limelight:exact-match">' in filled(
        TWO.format('<unit id="1"><segment><source>hi</source></segment></unit>')
    )


def test_a_segment_of_version_2_says_it_where_its_schema_allows() -> None:
    unit = '<unit id="1"><segment{}><source>hi</source>{}</segment></unit>'
    sure, unsure = ' state="translated" subState="limelight:mt-0.900"', ' state="initial" subState="limelight:mt-0.200"'
    for before in ("", "<target/>", "<target></target>"):
        document = TWO.format(unit.format("", before))
        assert judged(document) == TWO.format(unit.format(sure, "<target>HI</target>"))
        assert judged(document, 0.2) == TWO.format(unit.format(unsure, "<target>HI</target>"))
    stated = unit.format(' id="s" state="initial" subState="x:y"', "<target/>")
    assert '<segment id="s" state="translated" subState="limelight:mt-0.900">' in judged(TWO.format(stated))


def test_what_lost_something_is_to_be_looked_at_however_sure_the_machine_is() -> None:
    document = ONE.format('<trans-unit id="1"><source>hi</source></trans-unit>')
    assert 'state="needs-review-translation"' in judged(document, 1.0, notices=(Notice("numbers", "they differ"),))
    assert 'state="translated"' in judged(document, 1.0, notices=(Notice("redecoded", "searched again"),))


def test_a_guess_that_is_translated_again_is_still_a_guess() -> None:
    unit = '<trans-unit id="1"><source>hi</source><target state="needs-adaptation">da</target></trans-unit>'
    assert 'state="needs-review-translation"' in judged(ONE.format(unit), 1.0, again=True)


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (' xmlns:i="http://www.w3.org/2005/11/its"', 'i:mtConfidence="0.900"'),
        (' xmlns:its="urn:other"', 'state="translated"'),
        (
            ' xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0" its:annotatorsRef="terminology|T"',
            'its:mtConfidence="0.900" its:annotatorsRef="mt-confidence|Limelight"',
        ),
    ],
)
def test_namespaces_that_a_file_uses_already_are_respected(root: str, expected: str) -> None:
    document = ONE.replace(' xmlns="urn', f'{root} xmlns="urn').format('<trans-unit id="1"><source>hi</source></trans-unit>')
    made = lxml.etree.fromstring(judged(document).encode())
    assert expected in judged(document)
    confidence = made.find(".//{*}target").get("{http://www.w3.org/2005/11/its}mtConfidence")
    assert confidence == (None if "urn:other" in root else "0.900")


def test_a_blank_translation_of_many_marks_is_known_for_blank_in_a_moment() -> None:
    depth, leaves = 150, 3_000
    blank = "<mrk>" * depth + "<mrk/>" * leaves + "</mrk>" * depth
    document = (
        '<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1"><source>one</source>'
        f"<target>{blank}</target></trans-unit></body></file></xliff>"
    )
    began = time.process_time()
    assert b"ONE" in translate_document(document.encode(), "xliff", ("en", "de"), each(upper)).data
    assert time.process_time() - began < 3, "every level looks at all that is in it"
