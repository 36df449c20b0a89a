"""Pages: what is read is translated, and tags, scripts and code stay where they are."""

import time

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_structure import difference
from stand_ins import Answer, doubled_tags, each, reversed_words, tags_first, unchanged, upper, without_tags

from limelight.documents.document import translate_document
from limelight.documents.formats.html_tokens import tokens


def translated(page: str, change: object = upper) -> str:
    return translate_document(page.encode(), "html", ("en", "de"), each(change)).data.decode()  # type: ignore[arg-type]


def asked(page: str) -> list[str]:
    """What the translator was given."""
    given: list[str] = []

    def translate(texts: list[str]) -> list[Answer]:
        given.extend(texts)
        return [Answer(text) for text in texts]

    translate_document(page.encode(), "html", ("en", "de"), translate)
    return given


def test_a_block_is_one_text_with_its_inline_tags() -> None:
    page = '<p>Open <a href="/s?a=1&amp;b=2">the settings</a> of <img src="x.png"> now.</p>'
    assert asked(page) == ['Open <g id="1">the settings</g> of <x id="2"/> now.']
    assert translated(page) == '<p>OPEN <a href="/s?a=1&amp;b=2">THE SETTINGS</a> OF <img src="x.png"> NOW.</p>'


def test_tags_move_with_their_words_and_stay_inside_their_parents() -> None:
    page = '<p>one <b class="x">two <i>three</i> four</b> five</p>'
    assert translated(page, reversed_words) == '<p>five <b class="x">four <i>three</i> two</b> one</p>'


def test_tags_around_the_whole_are_not_shown_to_the_translator() -> None:
    assert asked("<div> <!-- c --><b><i>Hello there.</i></b> <br> More.</div>") == ["Hello there.", "More."]
    assert translated("<td>\n  <b>Hello</b>\n</td>") == "<td>\n  <b>HELLO</b>\n</td>"


@pytest.mark.parametrize(
    "kept",
    [
        "<script>if (a < b) { alert('</p>hello'); }</script>",
        "<style>p > a { content: 'hello' }</style>",
        "<pre>hello <b>you</b></pre>",
        "<textarea>hello <b></textarea>",
        '<div translate="no">hello <p>you</p></div>',
        '<p class="a notranslate b">hello</p>',
        "<svg><title>hello</title><path d='M0'/><text>hello</text></svg>",
        "<!-- hello --><?php hello ?><![CDATA[ hello ]]>",
        "<p>12 &amp; 13</p>",
        "<style title='hello'></style><link title='hello'>",
        "<a href='hello' id=hello data-title='hello'></a>",
    ],
)
def test_what_is_no_text_is_left_alone(kept: str) -> None:
    page = f"<body><p>before</p>{kept}<p>after</p></body>"
    assert translated(page) == f"<body><p>BEFORE</p>{kept}<p>AFTER</p></body>"


def test_what_ends_itself_in_a_drawing_does_not_swallow_the_page() -> None:
    page = (
        '<svg viewBox="0 0 1 1"><style/><script/><g><svg><title/></svg></g><style/></svg><math><style/></math>{}<script/>var a</script>{}'
    )
    made = translate_document(page.format("<h1>one</h1>", "<p>two</p>").encode(), "html", ("en", "de"), each(upper))
    assert made.data.decode() == page.format("<h1>ONE</h1>", "<p>TWO</p>")


def test_code_inside_a_sentence_stands_for_itself() -> None:
    page = '<p>Run <code>make <b>all</b></code> or <span translate="no">Foo</span> now, H<sub>2</sub>O</p>'
    assert asked(page) == ['Run <x id="1"/> or <x id="2"/> now, H<x id="3"/>O']
    assert translated(page) == '<p>RUN <code>make <b>all</b></code> OR <span translate="no">Foo</span> NOW, H<sub>2</sub>O</p>'


def test_translate_yes_ends_translate_no() -> None:
    page = '<div translate="no"><p>kept</p><p translate="yes">read</p></div><p>read</p>'
    assert translated(page) == '<div translate="no"><p>kept</p><p translate="yes">READ</p></div><p>READ</p>'


def test_an_element_whose_closing_tag_is_left_out_ends_where_the_next_begins() -> None:
    assert translated("<ul><li translate=no>kept<li>read</ul><p translate=no>kept<p>read") == (
        "<ul><li translate=no>kept<li>READ</ul><p translate=no>kept<p>READ"
    )


def test_attributes_that_people_read_are_translated() -> None:
    page = """<img alt="a &quot;cat&quot; &lt; &amp;amp;" src="cat"><input placeholder='your name' value="name">"""
    assert translated(page) == ("""<img alt="A &quot;CAT&quot; &lt; &amp;AMP;" src="cat"><input placeholder='YOUR NAME' value="name">""")
    assert translated("<a title=hello href=hello>go</a>") == '<a title="HELLO" href=hello>GO</a>'
    assert translated('<meta name="description" content="all about"><meta name="author" content="me">') == (
        '<meta name="description" content="ALL ABOUT"><meta name="author" content="me">'
    )
    assert translated('<p translate="no" title="kept">kept</p>') == '<p translate="no" title="kept">kept</p>'


def test_a_tag_that_moves_takes_its_translated_attributes_along() -> None:
    page = '<p>see <img alt="a cat" src="c"> here <a title="click me">now</a></p>'
    assert translated(page, reversed_words) == '<p><a title="me click">now</a> here <img alt="cat a" src="c"> see</p>'


def test_a_script_inside_a_text_is_not_moved() -> None:
    page = "{% title %} <script>hello</script> <b>more</b> text"
    assert translated(page, reversed_words) == "%} title {% <script>hello</script> text <b>more</b>"


def test_entities_are_read_as_characters_and_signs_are_written_as_entities() -> None:
    page = "<meta charset=utf-8><p>don&rsquo;t &lt;b&gt; AT&T &amp; f&uuml;r</p>"
    assert asked(page) == ["don\u2019t <b> AT&T & für"]
    assert translated(page) == "<meta charset=utf-8><p>DON\u2019T &lt;B&gt; AT&amp;T &amp; FÜR</p>"


def test_line_breaks_in_the_source_of_a_page_are_blanks() -> None:
    page = "<meta charset=utf-8><p>\r\n  one\r\n  two &nbsp; three\r\n</p>"
    assert asked(page) == ["one two \xa0 three"]
    assert translated(page) == "<meta charset=utf-8><p>\r\n  ONE TWO \xa0 THREE\r\n</p>"
    assert translated(page, unchanged) == page


@pytest.mark.parametrize("harm", [without_tags, tags_first, doubled_tags, lambda text: text.upper(), lambda text: text + "</g>"])
def test_a_translation_with_broken_tags_is_replaced_by_its_parts(harm: object) -> None:
    page = "<p>one <b>two <i>three</i></b> four</p>"
    done = translate_document(page.encode(), "html", ("en", "de"), each(harm))  # type: ignore[arg-type]
    assert done.data.decode().upper().replace("&LT;/G&GT;", "") == page.upper()
    assert difference("html", page.encode(), done.data) is None
    assert done.counts.apart == done.counts.translated == 1
    assert [(remark.line, remark.code) for remark in done.warnings] == [(1, "apart")]


def test_a_picture_never_comes_back_twice() -> None:
    assert translated("<p>one <img> two</p>", doubled_tags) == "<p>ONE <img> TWO</p>"


def test_a_run_that_is_known_already_is_not_translated_again() -> None:
    given: list[str] = []

    def translate(texts: list[str]) -> list[Answer]:
        given.extend(texts)
        return [Answer(without_tags(text)) for text in texts]

    translate_document(b"<p>one <b>two</b></p><p>two</p>", "html", ("en", "de"), translate)
    assert given == ['one <g id="1">two</g>', "two", "one"]


def test_a_part_of_a_sentence_gets_no_full_stop_of_its_own() -> None:
    page = "<p>one <b>two</b> three.</p>"
    assert translated(page, lambda text: without_tags(text).rstrip(".") + ".") == "<p>ONE <b>TWO</b> THREE.</p>"


def test_swapped_parents_are_no_kept_structure() -> None:
    def swapped(text: str) -> str:
        return 'uno <g id="2"><g id="1">due</g></g>' if "<g" in text else text.upper()

    assert translated("<p>one <b>x<i>two</i></b></p>", swapped) == "<p>ONE <b>X<i>TWO</i></b></p>"


def test_text_that_looks_like_our_tags_is_not_mixed_up_with_them() -> None:
    page = '<p>write &lt;g id="1"&gt; or &lt;/g&gt; in <b>bold</b></p>'
    assert asked(page) == ['write <g id="1"> or </g> in', "bold"]
    assert translated(page) == '<p>WRITE &lt;g id="1"&gt; OR &lt;/g&gt; IN <b>BOLD</b></p>'


@pytest.mark.parametrize(
    "page",
    [
        "<p>one <b>two <i>three</b> four</i> five",
        "<b><div>one</div>two</b></i></p> three",
        "one <a href='never closed>two three",
        "one <!-- two",
        "one < two <3 </ three <",
        "<p data-x='x\"y' class=it's>one</p><p a/b=c / d>two</p>",
        "<title>one <b> two</title><p>three",
        "<p>one</P ><P>two",
        "<table><tr><td>one<td>two<tr><td>three</table>",
        "<script>one</script x><p>two<script/>three",
        "",
        "no markup at all",
        "<p>one<p>two<br>three<br/><hr>four",
        '<p =a ==b "c>one</p>',
    ],
)
def test_broken_pages_keep_their_markup(page: str) -> None:
    for change in (unchanged, upper, reversed_words, without_tags):
        done = translated(page, change)
        marks = [[page[t.start : t.end] for t in tokens(page) if t.kind != "text"] for page in (page, done)]
        assert sorted(marks[0]) == sorted(marks[1])
        if change is not reversed_words:
            assert done.upper().replace("&LT;", "<").replace("&GT;", ">") == page.upper()


_TAGS = "<b> </b> <i> </i> <p> </p> <br> <code> </code> <li> <!--c--> <"
PIECES = st.sampled_from([*_TAGS.split(), "one ", "two", " &amp; ", "<img alt='x y'>", "\n"])


@given(st.lists(PIECES, max_size=25).map("".join))
def test_any_tags_in_any_order_stay_in_their_places(page: str) -> None:
    assert translated(page, unchanged) == page
    for change in (upper, without_tags, tags_first):
        done = translated(page, change)
        marks = [[page[t.start : t.end].upper() for t in tokens(page) if t.kind != "text"] for page in (page, done)]
        assert marks[0] == marks[1] if change is not tags_first else sorted(marks[0]) == sorted(marks[1])


def test_tokens_cover_every_character_once() -> None:
    page = "<p a='>'>x</p><!-- > --><script><p></script>< y</ z>"
    found = list(tokens(page))
    cut = ["<p a='>'>", "x", "</p>", "<!-- > -->", "<script>", "<p>", "</script>", "< y", "</ z>"]
    assert [page[t.start : t.end] for t in found] == cut


def test_encodings_and_byte_order_marks_stay() -> None:
    page = '<meta charset="iso-8859-1"><p>café</p>'
    done = translate_document(page.encode("latin-1"), "html", ("en", "de"), each(lambda text: "„" + text.upper() + "\u4e2d“"))
    assert done.data == '<meta charset="iso-8859-1"><p>„CAFÉ&#20013;“</p>'.encode("windows-1252")
    plain = translate_document(b"<p>F&uuml;r</p>", "html", ("en", "de"), each(upper))
    assert plain.data == b"<p>F&#220;R</p>"
    for encoding in ("utf-8-sig", "utf-16", "utf-32", "utf-8"):
        done = translate_document("<p>café</p>".encode(encoding), "html", ("en", "de"), each(upper))
        assert done.data == "<p>CAFÉ</p>".encode(encoding)


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile",
    ["<" * 100_000, "<a " * 50_000, "<a b=" * 40_000, "<b>x" * 10_000, "<i><div>" + "<b>" * 15_000 + "</i>" * 15_000,
     "<!--" * 50_000, "<!-->" * 40_000, "</" * 60_000, "<b>x</i>" * 5_000, "&" * 100_000, "<p title='" * 20_000, "<title>" * 20_000,
     "x<script>" * 20_000, "<b>" * 20_000 + "x" + "</b>" * 20_000, "<p> " + "x <img> " * 10_000],
)  # fmt: skip
def test_hostile_pages_cost_no_more_than_their_length(hostile: str) -> None:
    began = time.process_time()
    translated(hostile, without_tags)
    assert time.process_time() - began < 5


def test_the_tree_is_the_same_for_another_parser() -> None:
    page = '<html><head><title>A & B</title></head><body><p>x <b>y</b><p>z<ul><li>u <i>v</i><li>w</ul><img alt="q r"></body></html>'
    done = translated(page, reversed_words)
    assert difference("html", page.encode(), done.encode()) is None
    assert lxml.html.document_fromstring(done).find(".//title").text == "B & A"
