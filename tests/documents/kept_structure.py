"""Whether a translated document has the structure of the old one, seen by other people's parsers: polib, lxml, and line by line.

`difference(kind, before, after)` says what differs beyond the text, or None. `texts(kind, data)` are the texts that a reader sees.
"""

import re
from collections.abc import Iterator
from typing import Any

import lxml.etree
import lxml.html
import polib

READ = ("alt", "title", "placeholder", "aria-label")
UNKNOWN_VOID = ("wbr", "source", "track")  # libxml2 is older than these, and puts what follows inside
UNTOUCHED = ("script", "style", "pre", "code", "svg", "textarea")
ITS = "http://www.w3.org/2005/11/its"
STATED = re.compile(
    r' (state="(translated|initial|needs-review-translation)"|state-qualifier="mt-suggestion"|subState="limelight:mt-[01]\.\d{3}"'
    r'|its:mtConfidence="[01]\.\d{3}"|xmlns:its="[^"]*" its:version="2\.0" its:annotatorsRef="mt-confidence\|Limelight")'
)


def difference(kind: str, before: bytes, after: bytes) -> str | None:
    """A sentence about the first difference."""
    return _CHECKS[kind](before, after)


def _po(before: bytes, after: bytes) -> str | None:
    old, new = (polib.pofile(data.decode("utf-8-sig")) for data in (before, after))
    if (old.metadata, old.header, len(old)) != (new.metadata, new.header, len(new)):
        return "header or number of entries"
    for one, other in zip(old, new, strict=True):
        for part in (
            "msgid",
            "msgid_plural",
            "msgctxt",
            "comment",
            "tcomment",
            "occurrences",
            "obsolete",
            "previous_msgid",
        ):
            if getattr(one, part) != getattr(other, part):
                return f"{part} of {one.msgid!r}"
        # A new translation that should be looked at is marked; no mark is taken away.
        if {*other.flags} - {*one.flags} - {"fuzzy"} or {*one.flags} - {*other.flags}:
            return f"flags of {one.msgid!r}"
        for form, text in _forms(one).items():
            if text and _forms(other)[form] != text:
                return f"the translation of {one.msgid!r}"
        if _blanks(one.msgid) != _blanks(other.msgstr or one.msgid) and not one.msgstr:
            return f"the blanks around the translation of {one.msgid!r}"
    return None


def _forms(entry: polib.POEntry) -> dict[int, str]:
    return dict(entry.msgstr_plural) or {0: entry.msgstr}


def _blanks(text: str) -> tuple[str, str]:
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]


def without_states(xliff: str) -> str:
    """XLIFF without what is said about new targets."""
    return STATED.sub("", xliff)


def _xliff(before: bytes, after: bytes) -> str | None:
    old, new = (lxml.etree.fromstring(data) for data in (before, after))
    units = [list(tree.iter("{*}trans-unit", "{*}segment")) for tree in (old, new)]
    for one, other in zip(*units, strict=True):
        source, target = other.find("{*}source"), other.find("{*}target")
        was = one.find("{*}target")
        if was is not None and "".join(was.itertext()).strip():
            if _alone(was) != _alone(target):
                return f"a finished target, line {was.sourceline}"
        elif target is not None and len(target) + len((target.text or "").strip()):
            if _bag(source) != _bag(target):
                return f"the inline elements of a new target, line {other.sourceline}"
            if [child.tag for child in other if child.tag is not lxml.etree.Comment].index(target.tag) != 1:
                return "the place of a target"
        for name in ("state", "subState"):
            other.attrib.pop(name, None)
            one.attrib.pop(name, None)
        for unit in (one, other):
            if (found := unit.find("{*}target")) is not None:
                unit.remove(found)
    for name in [name for name in new.attrib if name.startswith(f"{{{ITS}}}")]:
        del new.attrib[name]
    return None if _exact(old) == _exact(new) else "the tree around the targets"


def _alone(element: Any) -> bytes:
    """An element to the byte, without the namespaces that it only inherits."""
    return bytes(lxml.etree.tostring(element, method="c14n", exclusive=True, with_tail=False))


def _tmx(before: bytes, after: bytes) -> str | None:
    old, new = (lxml.etree.fromstring(data) for data in (before, after))
    for one, other in zip(old.iter("tu"), new.iter("tu"), strict=True):
        variants = other.findall("tuv")
        added = variants[len(one.findall("tuv")) :]
        if [_exact(child) for child in one] != [_exact(child) for child in other if child not in added]:
            return f"a unit, line {one.sourceline}"
        if any(_bag(variants[0].find("seg")) != _bag(variant.find("seg")) for variant in added):
            return f"the inline elements of a new variant, line {other.sourceline}"
        for variant in added:
            other.remove(variant)
    return None if _exact(old) == _exact(new) else "the tree around the units"


def _html(before: bytes, after: bytes) -> str | None:
    parser = lxml.html.HTMLParser(encoding=None)
    old, new = (lxml.html.document_fromstring(data, parser=parser) for data in (before, after))
    for name in UNTOUCHED:
        contents = [sorted("".join(e.itertext()) for e in tree.iter(name)) for tree in (old, new)]
        if contents[0] != contents[1]:
            return f"what stands in <{name}>"
    for name in UNKNOWN_VOID:
        if len(list(old.iter(name))) != len(list(new.iter(name))):
            return f"the number of <{name}>"
    for tree in (old, new):
        lxml.etree.strip_tags(tree, *UNKNOWN_VOID)
    return None if _page_bag(old) == _page_bag(new) else "the tree"


def _page_bag(element: Any) -> Any:
    """The tree without its text; inside one parent, the order is left open."""
    name = element.tag if isinstance(element.tag, str) else lxml.etree.tostring(element, with_tail=False)
    kept = sorted((key, value) for key, value in element.attrib.items() if key not in (*READ, "content"))
    return name, kept, sorted((_page_bag(child) for child in element), key=repr)


def _bag(element: Any) -> Any:
    """The inline elements with their attributes; inside one parent, the order is left open. The element's own do not count."""
    children = ((child.tag, sorted(child.attrib.items()), _bag(child)) for child in element if isinstance(child.tag, str))
    return sorted(children, key=repr)


def _exact(element: Any) -> Any:
    """Names, attributes and texts, except blanks around elements."""
    text, tail = ((part or "").strip() for part in (element.text, element.tail))
    return element.tag, sorted(element.attrib.items()), text, tail, [_exact(child) for child in element]


def _srt(before: bytes, after: bytes) -> str | None:
    old, new = list(read_srt(before)), list(read_srt(after))
    if [cue[:2] for cue in old] != [cue[:2] for cue in new]:
        return "numbers and times"
    for (number, _, was), (_, _, now) in zip(old, new, strict=True):
        if len(now) > len(was) or bool("".join(was).strip()) != bool("".join(now).strip()):
            return f"the lines of cue {number}"
    return None if before[:3] == after[:3] or before[:3] != b"\xef\xbb\xbf" else "the byte order mark"


def read_srt(data: bytes) -> Iterator[tuple[str, str, list[str]]]:
    """Number, times and lines of each cue: blocks between empty lines, as a player reads them."""
    block: list[str] = []
    for line in [*data.decode("utf-8-sig").replace("\r\n", "\n").split("\n"), ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block[0], block[1], block[2:]
            block = []


def _txt(before: bytes, after: bytes) -> str | None:
    old, new = (data.decode().split("\n") for data in (before, after))
    if len(old) != len(new):
        return "the number of lines"
    for number, (was, now) in enumerate(zip(old, new, strict=True), start=1):
        if _blanks(was) != _blanks(now) or was.count("\t") != now.count("\t"):
            return f"the blanks of line {number}"
    return None


def words(kind: str, data: bytes) -> list[str]:
    """All words of a page, in capital letters and in any order: nothing may get lost."""
    assert kind == "html"
    tree = lxml.html.document_fromstring(data)
    return sorted(" ".join(text.upper() for text in tree.itertext()).split())


_CHECKS = {"po": _po, "xliff": _xliff, "tmx": _tmx, "html": _html, "srt": _srt, "txt": _txt}
