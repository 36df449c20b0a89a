"""Texts with tags are translated with their tags kept: pieces of HTML pages, and XML of any kind.

The documents room finds what is to be translated and puts the answers in their places; tags stay as they are to the byte. Its functions
call a translator and wait for it, which an event loop must not. So they are given one that knows a few answers already and stops them at
the first text that it does not know:

    run -> "these are unknown" -> translate them, of all texts together -> run again -> ... -> the finished texts
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from limelight.documents.document import translate_document
from limelight.documents.encodings import Document
from limelight.documents.formats.html import HtmlBlock
from limelight.documents.formats.xml_elements import Element, read, read_elements
from limelight.documents.formats.xml_sentences import texts_between, write
from limelight.documents.inline import InlineItem, cut
from limelight.documents.sentences import Sentence
from limelight.documents.splices import LineCounter, apply_splices
from limelight.documents.translating import Translate, UnitTranslator
from limelight.documents.units import DocumentUnit, Remark, UnitTranslation, collect_splices, has_words
from limelight.errors import LimelightError
from limelight.serving.queue.text_thread import aside, weight
from limelight.serving.refusals import BadRequest

_MARK = "\ufeff"  # says that a piece of a page is UTF-8, whatever a <meta> in it says; without it an answer in ASCII would get &#228; for ä
_ROOT = "limelight-text"
_DECLARATION = re.compile(r"\s*<\?xml\s[^>]*\?>")
_PREFIX = re.compile(r"<([A-Za-z_][\w.-]*):|\s([A-Za-z_][\w.-]*):[\w.-]+\s*=")
_NAME = re.compile(r"<([^\s/>]+)")


class Markup(Protocol):
    def translate_text(self, text: str, translate: Translate) -> str:
        """The text with its words translated, and its tags as they were."""


class _UnknownError(Exception):
    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self.texts = texts


async def translate_markup(
    texts: Sequence[str], markup: Markup, translate: Callable[[list[str]], Awaitable[Sequence[UnitTranslation]]]
) -> list[str]:
    """Each text translated; `translate` is asked two or three times, for the words of all of them."""
    known: dict[str, UnitTranslation] = {}
    done: list[str | None] = [None] * len(texts)
    while True:
        unknown = await aside(weight(texts), lambda: _run(texts, markup, known, done))
        if not unknown:
            return [text for text in done if text is not None]
        known.update(zip(unknown, await translate(unknown), strict=True))


def _run(texts: Sequence[str], markup: Markup, known: dict[str, UnitTranslation], done: list[str | None]) -> list[str]:
    """Run as far as it goes with what is known; returns what must be known to go on."""

    def look(wanted: list[str]) -> list[UnitTranslation]:
        if unknown := [text for text in wanted if text not in known]:
            raise _UnknownError(unknown)
        return [known[text] for text in wanted]

    unknown: dict[str, None] = {}
    for at, text in enumerate(texts):
        if done[at] is None:
            try:
                done[at] = markup.translate_text(text, look)
            except _UnknownError as stopped:
                unknown |= dict.fromkeys(stopped.texts)
            except LimelightError:  # its message may hold parts of the text
                raise BadRequest(
                    "a text cannot be parsed", "check its tags and entities, or send it as plain text"
                ) from None
    return list(unknown)


@dataclass(frozen=True)
class HtmlMarkup:
    """The text is a piece of a page. Broken HTML is no error: what does not end is left alone. `remarks` are about each text."""

    languages: tuple[str, str]
    remarks: dict[str, tuple[Remark, ...]] = field(default_factory=dict, compare=False)

    def translate_text(self, text: str, translate: Translate) -> str:
        made = translate_document((_MARK + text).encode(), "html", self.languages, translate, name="the text")
        self.remarks[text] = made.warnings
        return made.data.decode().removeprefix(_MARK)


@dataclass(frozen=True)
class XmlMarkup:
    """The text is XML, or a piece of it, with DeepL's rules for tags.

    ignored         what is inside stays as it is
    splitting       a sentence ends there
    unsplitting     part of a sentence, always
    outline         the others: inside an element that has words of its own, part of its sentence; else a sentence ends there.
                    Without it the others are part of a sentence.
    """

    ignored: frozenset[str] = frozenset()
    splitting: frozenset[str] = frozenset()
    unsplitting: frozenset[str] = frozenset()
    outline: bool = True

    def translate_text(self, text: str, translate: Translate) -> str:
        declared = _DECLARATION.match(text)
        before, inner = (declared[0], text[declared.end() :]) if declared else ("", text)
        # A piece of a document uses prefixes that are declared elsewhere.
        names = sorted({one or two for one, two in _PREFIX.findall(inner)} - {"xml", "xmlns"})
        opening = f"<{_ROOT}" + "".join(f' xmlns:{name}="urn:{name}"' for name in names) + ">"
        whole = f"{opening}{inner}</{_ROOT}>"
        document = Document("the text", whole.encode(), whole, "utf-8", b"", references=True)
        outcome = UnitTranslator(document, translate, None).run(list(self._units(document)))
        return before + apply_splices(whole, collect_splices(outcome.units)).removeprefix(opening).removesuffix(
            f"</{_ROOT}>"
        )

    def _units(self, document: Document) -> Iterator[DocumentUnit]:
        roots: list[Element] = []
        read_elements(document, _ROOT, (_ROOT,), lambda element, _: roots.append(element))
        lines = LineCounter(document.text)
        for ends, items in groupby(self._items(roots[0], document.text), key=lambda item: item is None):
            for part in [] if ends else cut([item for item in items if item is not None]):
                sentence = Sentence(part, document.text, read, write)
                if sentence.has_words:
                    yield HtmlBlock(lines.of(sentence.start), sentence)

    def _items(self, element: Element, document: str) -> Iterator[InlineItem | None]:
        """What stands inside an element; None where a sentence ends."""
        gaps = list(_gaps(element, document))
        worded = any(has_words(item.text) for gap in gaps for item in gap)
        for gap, child in zip(gaps, [*element.children, None], strict=True):
            yield from gap
            if child is not None:
                yield from self._child(child, worded, document)

    def _child(self, child: Element, in_sentence: bool, document: str) -> Iterator[InlineItem | None]:
        named = _NAME.match(document, child.start)
        name = named[1] if named else child.name
        if name in self.ignored:
            yield InlineItem("single", child.start, child.end)
        elif name in self.splitting or (self.outline and not in_sentence and name not in self.unsplitting):
            yield None
            yield from () if child.is_empty_tag else self._items(child, document)
            yield None
        elif child.is_empty_tag:
            yield InlineItem("single", child.start, child.end)
        else:
            yield InlineItem("open", child.start, child.inner, name=f"{child.start}")
            yield from self._items(child, document)
            yield InlineItem("close", child.close, child.end, name=f"{child.start}")


def _gaps(element: Element, document: str) -> Iterator[list[InlineItem]]:
    """The texts before each child, and after the last."""
    start = element.inner
    for child in element.children:
        yield list(texts_between(start, child.start, document))
        start = child.end
    yield list(texts_between(start, element.close, document))
