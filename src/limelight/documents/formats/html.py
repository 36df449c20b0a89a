"""`find_html` takes each block of a page with its inline tags, and each attribute that people read, as a text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from html import unescape
from typing import NamedTuple

from limelight.documents.encodings import Document
from limelight.documents.formats.html_tokens import Attribute, Token, tokens, value_of
from limelight.documents.sentences import InlineItem, find_sentences
from limelight.documents.splices import LineCounter
from limelight.documents.units import DocumentUnit, ExtractionResult, edges, escape, has_words, plain_unit

_INLINE = (
    "a abbr acronym b basefont bdi bdo big cite code data del dfn em font i ins kbd mark math nobr q rb rp rt ruby s samp small "
    "span strike strong sub sup svg time tt u var"
)
_UNTRANSLATED = "code iframe listing math noembed noframes plaintext pre script style svg template textarea xmp"
_VOID = "area base br col embed frame hr link meta param source track"
INLINE = frozenset(_INLINE.split())
INLINE_VOID = frozenset(("img", "input", "wbr"))
VOID = INLINE_VOID | frozenset(_VOID.split())
UNTRANSLATED = frozenset(_UNTRANSLATED.split())
READ_ATTRIBUTES = frozenset(("alt", "aria-label", "placeholder", "title"))
READ_META = frozenset(("description", "og:description", "og:title", "twitter:description", "twitter:title"))
# Open elements that a closing tag is looked for in: a page of <b><b><b>... must not cost its square.
DEEPEST_SEARCH = 100

_BLANKS = re.compile("[ \t\r\n\f]+")
# What these open closes what is open there, as their closing tags may be left out.
_CLOSES = {"li": ("li",), "dt": ("dt", "dd"), "dd": ("dt", "dd"), "td": ("td", "th"), "th": ("td", "th")}
_CLOSES |= {"tr": ("td", "th", "tr"), "option": ("option",), "p": ("p",), "div": ("p",), "ul": ("p",), "table": ("p",)}


class _Open(NamedTuple):
    name: str
    translated: bool


def find_html(document: Document, languages: tuple[str, str], again: bool, xhtml: bool = False) -> ExtractionResult:
    """`xhtml`: the page is known to be XML, even if it does not say so."""
    page, lines = document.text, LineCounter(document.text)
    units: list[DocumentUnit] = []
    run: list[InlineItem] = []
    for token, translated in _with_state(page, xhtml):
        document.check_time()
        if token.kind == "start" and translated:
            units += _attributes(page, token, lines)
        item = _item(page, token, translated, xhtml)
        if item is not None:
            run.append(item)
        else:
            units += find_sentences(run, page, collapse, escape, lines)
            run = []
    units += find_sentences(run, page, collapse, escape, lines)
    return ExtractionResult(units)


def _with_state(page: str, xhtml: bool) -> Iterator[tuple[Token, bool]]:
    """Each token, and whether it stands where people want to read another language."""
    open_: list[_Open] = []
    names: Counter[str] = Counter()
    for token in tokens(page, xhtml):
        while token.kind == "start" and open_ and open_[-1].name in _CLOSES.get(token.name, ()):
            names[open_.pop().name] -= 1
        translated = open_[-1].translated if open_ else True
        if token.kind == "start":
            translated = _is_translated(page, token, translated)
        yield token, translated
        if token.kind == "start" and token.name not in VOID and not (token.closed and (xhtml or names["svg"] + names["math"])):
            open_.append(_Open(token.name, translated and token.name not in UNTRANSLATED))
            names[token.name] += 1
        elif token.kind == "end" and names[token.name]:
            for _ in range(_depth(open_, token.name)):
                names[open_.pop().name] -= 1


def _depth(open_: Sequence[_Open], name: str) -> int:
    """How many elements a closing tag closes: those inside go with it, but an inline tag closes no block."""
    for depth, element in enumerate(reversed(open_[-DEEPEST_SEARCH:]), start=1):
        if element.name == name:
            return depth
        if name in INLINE and element.name not in INLINE:
            return 0
    return 0


def _is_translated(page: str, token: Token, inherited: bool) -> bool:
    values = {one.name: value_of(page, one).lower() for one in token.attributes if one.name in ("translate", "class")}
    if values.get("translate") in ("no", "yes"):
        return values["translate"] == "yes"
    return inherited and "notranslate" not in values.get("class", "").split()


def _item(page: str, token: Token, translated: bool, xhtml: bool) -> InlineItem | None:
    """A token as part of a sentence, or None where the sentence ends."""
    if token.kind == "text":
        if translated:
            return InlineItem("text", token.start, token.end, collapse(page[token.start : token.end]))
        return InlineItem("single", token.start, token.end)
    empty = xhtml and token.kind == "start" and token.closed and token.name in INLINE  # an anchor, such as <a id="p12"/>
    if token.kind == "comment" or token.name in INLINE_VOID or empty:
        return InlineItem("single", token.start, token.end)
    if token.name in INLINE:
        return InlineItem("open" if token.kind == "start" else "close", token.start, token.end, name=token.name)
    return None


def _attributes(page: str, token: Token, lines: LineCounter) -> Iterator[DocumentUnit]:
    if token.name in ("link", "style"):
        return  # their titles are names that programs know
    named = next((value_of(page, one).lower() for one in token.attributes if one.name in ("name", "property")), "")
    for one in token.attributes:
        if one.name in READ_ATTRIBUTES or (token.name == "meta" and one.name == "content" and named in READ_META):
            lead, text, trail = edges(collapse(value_of(page, one)))
            if has_words(text):
                write = partial(_quote, one, lead, trail)
                yield plain_unit(lines.of(token.start), text, (one.start, one.end), write, small=True)


def _quote(attribute: Attribute, lead: str, trail: str, translation: str) -> str:
    quote = attribute.quote or '"'
    return quote + escape(lead + translation + trail).replace(quote, "&quot;" if quote == '"' else "&#39;") + quote


def collapse(raw: str) -> str:
    """As a browser shows it: runs of blanks are one, entities are characters."""
    return unescape(_BLANKS.sub(" ", raw))
