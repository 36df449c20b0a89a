"""Tags stay, words are translated, and what DeepL's rules call one sentence is one."""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from limelight.serving.queue.markup import HtmlMarkup, Markup, XmlMarkup, translate_markup
from limelight.serving.queue.text_thread import TextThread
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import BadRequest, Late

_WORD = re.compile(r"<[^>]*>|[^\W\d_]+")


@dataclass(frozen=True)
class Louder:
    """Words in capitals, tags as they were. `broken`: it forgets tags."""

    text: str
    warnings: Sequence[object] = ()
    confidence: float = 1.0
    protected: bool = True


def louder(asked: list[list[str]], broken: bool = False):  # type: ignore[no-untyped-def]
    async def translate(texts: list[str]) -> list[Louder]:
        asked.append(texts)
        change = (lambda m: "" if m[0][0] == "<" else m[0].upper()) if broken else _loud
        return [Louder(_WORD.sub(change, text)) for text in texts]

    return translate


def _loud(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("<") else match[0].upper()


def translated(markup: Markup, *texts: str, broken: bool = False) -> tuple[list[str], list[list[str]]]:
    asked: list[list[str]] = []
    made = asyncio.run(translate_markup(texts, markup, louder(asked, broken), READING, Deadline(60)))
    return [each.text for each in made], asked


HTML = HtmlMarkup(("en", "de"))
READING = TextThread()


def test_the_words_of_all_texts_are_asked_for_together_and_each_once() -> None:
    done, asked = translated(HTML, "<p>one</p><p>two</p>", "<i>two</i>", "three")
    assert done == ["<p>ONE</p><p>TWO</p>", "<i>TWO</i>", "THREE"]
    assert asked == [["one", "two", "three"]]


def test_a_text_whose_tags_get_lost_is_translated_between_them() -> None:
    done, asked = translated(HTML, "one <b>two</b> three", broken=True)
    assert done == ["ONE <b>TWO</b> THREE"]
    assert len(asked) == 2 and asked[1] == ["one", "two", "three"]


def test_long_texts_give_the_same_as_short_ones() -> None:
    piece = "<p>one <b>two</b></p>"
    assert translated(HTML, piece * 500)[0] == [translated(HTML, piece)[0][0] * 500]


@pytest.mark.parametrize("markup", [HTML, XmlMarkup()])
def test_when_time_is_over_no_further_tag_is_read(markup: Markup) -> None:
    texts, deadline = ["<p>one</p>" * 500] * 100, Deadline(0.05)
    began = time.process_time()

    async def ask() -> None:
        with pytest.raises(Late):
            await translate_markup(texts, markup, louder([]), READING, deadline)
        await READING.run(10_000_000, lambda: None, 60)  # the thread is free again

    asyncio.run(ask())
    assert time.process_time() - began < 0.5  # all of them take several seconds


@pytest.mark.parametrize("page", ["<p>one <b>two", "</p>", "<!-- one", "<p", "&", "", "<meta charset=utf-16>one ü"])
def test_broken_html_is_no_error(page: str) -> None:
    assert len(translated(HTML, page)[0]) == 1


def test_letters_beyond_ascii_are_written_as_they_are() -> None:
    async def german(texts: list[str]) -> list[Louder]:
        return [Louder("grün") for _ in texts]

    for markup in (HTML, XmlMarkup()):
        made = asyncio.run(translate_markup(["<p>green</p>"], markup, german, READING, Deadline(60)))
        assert [each.text for each in made] == ["<p>grün</p>"]


def tags(*names: str) -> frozenset[str]:
    return frozenset(names)


@pytest.mark.parametrize(
    ("markup", "text", "sentences"),
    [
        (XmlMarkup(), "one <b>two</b> three", ['one <g id="1">two</g> three']),
        (XmlMarkup(), "<p>one</p><p>two</p>", ["one", "two"]),
        (XmlMarkup(), "<doc><p>one <b>two</b> x</p></doc>", ['one <g id="1">two</g> x']),
        (XmlMarkup(outline=False), "<p>one</p> <p>two</p>", ['<g id="1">one</g> <g id="2">two</g>']),
        (XmlMarkup(outline=False, splitting=tags("p")), "<p>one</p> <p>two</p>", ["one", "two"]),
        (XmlMarkup(splitting=tags("br")), "one<br/>two", ["one", "two"]),
        (XmlMarkup(splitting=tags("s")), "one <s>two</s> three", ["one", "two", "three"]),
        (XmlMarkup(unsplitting=tags("a", "b")), "<a>one</a> <b>two</b>", ['<g id="1">one</g> <g id="2">two</g>']),
        (XmlMarkup(ignored=tags("x")), 'one <x>two</x> three <x id="1"/>', ['one <x id="1"/> three']),
        (XmlMarkup(ignored=tags("n:x")), "one <n:x>two</n:x> three", ['one <x id="1"/> three']),
        (XmlMarkup(), "one <!-- two --> three", ['one <x id="1"/> three']),
        (XmlMarkup(), "one &amp; <![CDATA[two]]>", ["one & two"]),
    ],
)
def test_tags_of_xml_split_sentences_or_not_as_the_rules_say(markup: XmlMarkup, text: str, sentences: list[str]) -> None:
    assert translated(markup, text)[1] == [sentences]


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ('one <a href="x>y">two</a> <i/>', 'ONE <a href="x>y">TWO</a> <i/>'),
        (
            '<?xml version="1.0"?>\n<d n:a="b"><n:t>one</n:t></d>',
            '<?xml version="1.0"?>\n<d n:a="b"><n:t>ONE</n:t></d>',
        ),
        ("one &lt; two &#x41;", "ONE &lt; TWO A"),
        (" <b> one </b> ", " <b> ONE </b> "),
        ("<b/>", "<b/>"),
        ("", ""),
    ],
)
def test_xml_comes_back_with_its_tags_to_the_byte(text: str, done: str) -> None:
    assert translated(XmlMarkup(), text)[0] == [done]


def test_what_is_ignored_stays_as_it_is() -> None:
    assert translated(XmlMarkup(ignored=tags("x")), "one <x>two <b>three</b></x>")[0] == ["ONE <x>two <b>three</b></x>"]


@pytest.mark.parametrize(
    "text",
    ["<b>one", "one & two", "&nbsp;", "</limelight-text>a<limelight-text>", "<!DOCTYPE d>one", "<a>" * 300 + "</a>" * 300],
)  # fmt: skip
def test_what_is_no_xml_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(BadRequest) as caught:
        translated(XmlMarkup(), text)
    assert text not in f"{caught.value.message} {caught.value.hint}"
