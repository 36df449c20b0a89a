"""Texts with tags are translated with their tags kept: pieces of HTML pages, and XML of any kind.

The documents room finds what is to be translated and puts the answers in their places; tags stay as they are to the byte.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, Protocol, TypeVar

from limelight.documents.document import find_units
from limelight.documents.encodings import Document
from limelight.documents.formats.xml_elements import Element, read, read_elements, write
from limelight.documents.sentences import InlineItem, find_sentences
from limelight.documents.splices import LineCounter
from limelight.documents.translating import FoundUnits, Known
from limelight.documents.units import DocumentUnit, ExtractionResult, Remark, UnitTranslation, has_words
from limelight.errors import DeadlineError, LimelightError
from limelight.serving.queue.text_thread import SMALL, TextThread, weight
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import BadRequest, Late

Result = TypeVar("Result")
_MARK = "\ufeff"  # says that a piece of a page is UTF-8, whatever a <meta> in it says; without it an answer in ASCII would get &#228; for ä
_ROOT = "limelight-text"
_DECLARATION = re.compile(r"\s*<\?xml\s[^>]*\?>")
_PREFIX = re.compile(r"<([A-Za-z_][\w.-]*):|\s([A-Za-z_][\w.-]*):[\w.-]+\s*=")


class TranslatedText(NamedTuple):
    text: str
    remarks: tuple[Remark, ...]


class MarkedText(NamedTuple):
    """A text has its units, and what stands around it only while it is parsed."""

    units: FoundUnits
    before: str  # that is not parsed
    opening: str
    closing: str = ""

    def splice(self, known: Known) -> TranslatedText:
        made = self.units.splice(known)
        text = made.data.decode().removeprefix(self.opening).removesuffix(self.closing)
        return TranslatedText(self.before + text, made.warnings)


class Markup(Protocol):
    def find(self, text: str, is_over: Callable[[], bool]) -> MarkedText:
        """Find what is to be translated in a text, unless time is over."""


async def translate_markup(
    texts: Sequence[str],
    markup: Markup,
    translate: Callable[[list[str]], Awaitable[Sequence[UnitTranslation]]],
    reading: TextThread,
    deadline: Deadline,
) -> list[TranslatedText]:
    """Each text translated; `translate` is asked at most twice, for the words of all of them. All of it ends with the deadline."""
    size = weight(texts)
    known: dict[str, UnitTranslation] = {}
    found: list[MarkedText] = []

    async def read(work: Callable[[], list[Result]]) -> list[Result]:
        try:
            return await reading.run(size, work, deadline.left)
        except Late:
            raise deadline.late() from None

    async def ask(wanted: Sequence[str]) -> None:
        if unknown := [text for text in dict.fromkeys(wanted) if text not in known]:
            known.update(zip(unknown, await translate(unknown), strict=True))

    try:
        with deadline:
            found += await read(lambda: [_find(markup, text, deadline.is_over) for text in texts])
            await ask([text for each in found for text in each.units.texts()])
            await ask(await read(lambda: [run for each in found for run in each.units.runs(known)]))
            return await read(lambda: [each.splice(known) for each in found])
    finally:  # an error holds this frame, and it all units: freed in a thread, not in the event loop (40 ms)
        if size > SMALL:
            asyncio.get_running_loop().run_in_executor(None, found.clear)


def _find(markup: Markup, text: str, is_over: Callable[[], bool]) -> MarkedText:
    try:
        return markup.find(text, is_over)
    except DeadlineError:
        raise
    except LimelightError:  # its message may hold parts of the text
        raise BadRequest("a text cannot be parsed", "check its tags and entities, or send it as plain text") from None


@dataclass(frozen=True)
class HtmlMarkup:
    """The text is a piece of a page. Broken HTML is no error: what does not end is left alone."""

    languages: tuple[str, str]

    def find(self, text: str, is_over: Callable[[], bool]) -> MarkedText:
        data = (_MARK + text).encode()
        return MarkedText(find_units(data, "html", self.languages, name="the text", is_over=is_over), "", _MARK)


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

    def find(self, text: str, is_over: Callable[[], bool]) -> MarkedText:
        declared = _DECLARATION.match(text)
        before = declared[0] if declared else ""
        inner = text[len(before) :]
        # A piece of a document uses prefixes that are declared elsewhere.
        names = sorted({one or two for one, two in _PREFIX.findall(inner)} - {"xml", "xmlns"})
        opening = f"<{_ROOT}" + "".join(f' xmlns:{name}="urn:{name}"' for name in names) + ">"
        whole = f"{opening}{inner}</{_ROOT}>"
        document = Document("the text", whole.encode(), whole, "utf-8", b"", references=True, is_over=is_over)
        found = FoundUnits(document, ExtractionResult(list(self._units(document))))
        return MarkedText(found, before, opening, f"</{_ROOT}>")

    def _units(self, document: Document) -> Iterator[DocumentUnit]:
        roots: list[Element] = []
        read_elements(document, _ROOT, (_ROOT,), lambda element, _: roots.append(element))
        lines = LineCounter(document.text)
        for _, items in groupby(self._items(roots[0]), key=lambda item: item is None):
            yield from find_sentences([item for item in items if item], document.text, read, write, lines)

    def _items(self, element: Element) -> Iterator[InlineItem | None]:
        """What stands inside an element; None where a sentence ends."""
        gaps = list(element.gaps())
        worded = any(has_words(item.text) for gap in gaps for item in gap)
        for gap, child in zip(gaps, [*element.children, None], strict=True):
            yield from gap
            if child is not None:
                yield from self._child(child, worded)

    def _child(self, child: Element, in_sentence: bool) -> Iterator[InlineItem | None]:
        name = child.written_name
        if name in self.ignored:
            yield InlineItem("single", child.start, child.end)
        elif name in self.splitting or (self.outline and not in_sentence and name not in self.unsplitting):
            yield None
            yield from self._items(child)
            yield None
        elif child.is_empty_tag:
            yield InlineItem("single", child.start, child.end)
        else:
            yield InlineItem("open", child.start, child.inner, name=f"{child.start}")
            yield from self._items(child)
            yield InlineItem("close", child.close, child.end, name=f"{child.start}")
