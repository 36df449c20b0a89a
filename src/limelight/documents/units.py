"""A `DocumentUnit` is one text of a document, which knows how its translation is put in its place. Every format finds them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from limelight.bundle.confidence import multiply_known
from limelight.decoding.guards import Notice
from limelight.documents.splices import Splice

# What no document may hold and no reader shows. Line breaks and tabs are for each format to decide on.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


class Remark(NamedTuple):
    """A remark is to be known about one text: the line it begins in, a code for programs, a sentence for people. Never the text itself."""

    line: int
    code: str
    message: str


class UnitTranslation(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def confidence(self) -> float: ...

    @property
    def protected(self) -> bool: ...

    @property
    def warnings(self) -> Sequence[Notice]: ...


@dataclass(frozen=True, eq=False)
class DocumentUnit:
    """A unit is one text. It has no `text` where only its runs can be translated, and no runs where there is no markup in it.

    whole   the translation of the whole text -> splices, or None where it would harm the structure
    apart   the same text cut where its markup is, each run translated by itself -> splices that cannot harm it
    """

    line: int
    text: str  # for the translator, with its inline markup as tags
    whole: Callable[[str], list[Splice] | None]
    runs: tuple[str, ...] = ()
    apart: Callable[[Sequence[str]], list[Splice]] = lambda runs: []
    group: int | None = None  # of texts that are put in their places together or not at all: plural forms of an entry
    origin: Any = None  # what its format must know of it to finish the document

    def change_splices(self, change: Callable[[list[Splice] | None], list[Splice] | None]) -> "DocumentUnit":
        return replace(self, whole=lambda new: change(self.whole(new)), apart=lambda runs: change(self.apart(runs)) or [])


@dataclass(frozen=True)
class TranslatedUnit:
    unit: DocumentUnit
    text: str  # as the translator wrote it, runs with a blank between them; empty where the document keeps its own
    confidence: float | None  # the lowest of its runs; None where nothing was written
    notices: tuple[Notice, ...]
    reasons: tuple[Notice, ...]
    splices: tuple[Splice, ...] = ()
    results: tuple[UnitTranslation, ...] = ()
    reviewed: bool = False  # somebody has looked at it

    @property
    def source(self) -> str:
        return self.unit.text or " ".join(self.unit.runs)

    @property
    def unedited(self) -> float | None:
        """How probably it needs no edit, where its translator tells that."""
        return multiply_known([getattr(result, "unedited", None) for result in self.results])

    @property
    def from_memory(self) -> bool:
        return are_recalled(self.results)


def are_recalled(results: Sequence[UnitTranslation]) -> bool:
    """Did a memory have all of them, so that no machine made one?"""
    return bool(results) and all(getattr(result, "from_memory", False) for result in results)


def collect_splices(units: Sequence[TranslatedUnit]) -> list[Splice]:
    return [splice for unit in units for splice in unit.splices]


class ExtractionResult(NamedTuple):
    units: list[DocumentUnit]
    left: int = 0  # texts that have a translation, or must not get one
    remarks: tuple[Remark, ...] = ()
    # All that is to be written, when something is: also what is said about the translations (#, fuzzy), and their language.
    finish: Callable[[Sequence[TranslatedUnit]], list[Splice]] = collect_splices


def plain_unit(line: int, text: str, place: tuple[int, int], write: Callable[[str], str], small: bool = False) -> DocumentUnit:
    """A text without markup. What comes back unchanged is not written at all, so that it stays as it was to the byte."""

    def whole(translation: str) -> list[Splice]:
        return [] if translation == text else [Splice(*place, (write(translation),), small)]

    return DocumentUnit(line, text, whole)


def edges(text: str) -> tuple[str, str, str]:
    """edges(" a b\\n") -> (" ", "a b", "\\n"): the blanks around a text go back where they were."""
    core = text.strip()
    lead = text[: len(text) - len(text.lstrip())]
    return lead, core, text[len(lead) + len(core) :]


def has_words(text: str) -> bool:
    """Numbers and signs alone are the same in every language."""
    return any(char.isalpha() for char in text)


def escape(text: str) -> str:
    """As HTML and subtitles write it."""
    return replace_controls(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def replace_controls(text: str) -> str:
    """A translation without characters that XML forbids and that no text needs."""
    return _CONTROLS.sub(" ", text)
