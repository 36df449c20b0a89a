"""`tokens` cuts a page into tags, texts and what is neither, each with its place. Every character belongs to exactly one token.

The rules are those of the HTML standard's tokenizer (13.2.5) as far as places go: quotes count only after `=`, `<` without a letter is
text, a comment ends at `-->`, a script ends at `</script`. Broken pages are never an error: what does not end lasts to the end of the
page and is left alone. One pass, and no place is looked at more than a few times, whatever the page.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

FOREIGN = frozenset(("svg", "math"))
# Their content is no markup, and ends only at their own closing tag.
RAW = frozenset(("iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"))

_NAME = re.compile(r"[A-Za-z][^ \t\r\n\f/>]*")
_ATTRIBUTE = re.compile(r"[ \t\r\n\f/]*(?:(=?[^ \t\r\n\f/>=]*)[ \t\r\n\f]*)")
_SPACES = re.compile(r"[ \t\r\n\f]*")
_COMMENT_END = re.compile("--!?>")
_UNQUOTED = re.compile(r"[^ \t\r\n\f>]*")


class Attribute(NamedTuple):
    """An attribute `name="value"` has its name in small letters, and where its value stands, with its quotes if there are any."""

    name: str
    start: int
    end: int
    quote: str  # ", ' or nothing


class Token(NamedTuple):
    # "other" is a doctype, a processing instruction, CDATA, or what does not end
    kind: Literal["text", "start", "end", "comment", "other"]
    start: int
    end: int
    name: str = ""  # of a tag, in small letters
    attributes: tuple[Attribute, ...] = ()
    closed: bool = False  # <br/>


def tokens(page: str, xhtml: bool = False) -> Iterator[Token]:
    """Front to back: the end of each token is the start of the next. The content of a RAW element is one text."""
    xhtml = xhtml or page[:100].lstrip().startswith("<?xml")  # only there does <script/> have no content
    at = text = foreign = 0  # how deep in drawings and formulas, where the slash counts as well
    while (at := page.find("<", at)) >= 0:
        token = _markup(page, at)
        if token is None:
            at += 1
            continue
        if text < at:
            yield Token("text", text, at)
        yield token
        at = text = token.end
        if token.name in FOREIGN and not token.closed:
            foreign = max(0, foreign + (1 if token.kind == "start" else -1))
        if token.kind == "start" and token.name in RAW and not ((xhtml or foreign) and token.closed):
            end = _raw_end(page, token.name, at)
            if at < end:
                yield Token("text", at, end)
            at = text = end
    if text < len(page):
        yield Token("text", text, len(page))


def value_of(page: str, attribute: Attribute) -> str:
    inset = len(attribute.quote)
    return page[attribute.start + inset : attribute.end - inset]


def _markup(page: str, at: int) -> Token | None:
    """What begins at this `<`; None when it is text."""
    follows = page[at + 1 : at + 2]
    if follows == "!":
        return _declaration(page, at)
    if follows == "?":
        return Token("other", at, _after(page, ">", at))
    if follows == "/":
        beyond = page[at + 2 : at + 3]
        if not (beyond.isascii() and beyond.isalpha()):
            return Token("other", at, _after(page, ">", at)) if beyond else None
        return _tag(page, at, at + 2, "end")
    return _tag(page, at, at + 1, "start") if follows.isascii() and follows.isalpha() else None


def _declaration(page: str, at: int) -> Token:
    if page.startswith("<!--", at):
        if page.startswith((">", "->"), at + 4):
            return Token("comment", at, page.index(">", at) + 1)
        end = _COMMENT_END.search(page, at + 4)
        return Token("comment", at, end.end() if end else len(page))
    if page.startswith("<![CDATA[", at):
        return Token("other", at, _after(page, "]]>", at))
    return Token("other", at, _after(page, ">", at))


def _tag(page: str, at: int, name_at: int, kind: Literal["start", "end"]) -> Token:
    named = _NAME.match(page, name_at)
    assert named is not None
    name, cursor, valued = named[0].lower(), named.end(), named.end()
    found: dict[str, Attribute] = {}
    while True:
        attribute = _ATTRIBUTE.match(page, cursor)
        assert attribute is not None
        cursor = attribute.end()
        if page.startswith(">", cursor):
            closed = page[cursor - 1] == "/" and cursor > valued  # <a href=x/> has the slash in its value
            return Token(kind, at, cursor + 1, name, tuple(found.values()), closed)
        if cursor >= len(page):
            return Token("other", at, len(page))
        if page[cursor] != "=":
            continue  # the next name, or a slash
        cursor = _find_end(_SPACES, page, cursor + 1)
        quote = page[cursor : cursor + 1]
        if quote in ('"', "'") and quote:
            end = page.find(quote, cursor + 1) + 1
            if not end:
                return Token("other", at, len(page))
        else:
            quote, end = "", _find_end(_UNQUOTED, page, cursor)
        found.setdefault(attribute[1].lower(), Attribute(attribute[1].lower(), cursor, end, quote))
        cursor = valued = end


def _find_end(pattern: re.Pattern[str], page: str, at: int) -> int:
    found = pattern.match(page, at)
    return found.end() if found else at


def _raw_end(page: str, name: str, at: int) -> int:
    if name == "plaintext":
        return len(page)
    ends = re.compile(rf"</{name}(?=[ \t\r\n\f/>])", re.IGNORECASE).search(page, at)
    return ends.start() if ends else len(page)


def _after(page: str, sign: str, at: int) -> int:
    found = page.find(sign, at)
    return found + len(sign) if found >= 0 else len(page)
