"""Blocks make up a report before it is Markdown or HTML; their cells are text, figures, code or translations.

Both formats are written from the same blocks, so they cannot tell different stories.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from limelight.corpus.report.markup import THIN_SPACE, Figure
from limelight.evaluation.metrics.buckets import is_spaced


@dataclass(frozen=True)
class Code:
    """Code is a name, a setting or a path: something to be typed as it stands."""

    text: str


@dataclass(frozen=True)
class Strong:
    text: str


@dataclass(frozen=True)
class QuotedText:
    """Quoted text comes from a user or from the model. With a reference, the words that are not in it are marked."""

    text: str
    language: str | None = None
    reference: str | None = None


@dataclass(frozen=True)
class Bar:
    """A bar is a share, drawn and printed."""

    share: float


@dataclass(frozen=True)
class Confidence:
    """A confidence is between 0 and 1, with a shade behind it."""

    value: float


Cell: TypeAlias = (
    str | Code | Strong | QuotedText | Bar | Confidence
)  # a Figure of `markup` is a str that stands to the right


@dataclass(frozen=True)
class Paragraph:
    parts: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Listing:
    """A listing has lines to copy."""

    text: str


@dataclass(frozen=True)
class Points:
    """Points form a list; each point is a row of cells."""

    points: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Pictures:
    """Pictures have an SVG and a caption each. Markdown leaves them out: there the figures stand in tables."""

    pictures: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class RawHtml:
    """Raw HTML is inserted as it is, with headings of the third level at most. Not in Markdown."""

    html: str


@dataclass(frozen=True)
class Details:
    summary: str
    blocks: "Sequence[Block]"


Block: TypeAlias = Paragraph | Table | Listing | Points | Pictures | RawHtml | Details


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


def mark_words(said: str, reference: str) -> list[tuple[str, bool]]:
    """Runs of the text, and whether the reference has them there.

    mark_words("a red cat", "a cat") -> [("a ", True), ("red ", False), ("cat", True)]
    Where spaces do not separate words, characters are compared instead.
    """
    spaced = is_spaced([reference or said])
    mine, other = (_units(text, spaced) for text in (said, reference))
    matcher = difflib.SequenceMatcher(None, [unit.strip() for unit in mine], [unit.strip() for unit in other], False)
    runs = []
    for tag, start, end, _, _ in matcher.get_opcodes():
        if start < end:
            runs.append(("".join(mine[start:end]), tag == "equal"))
    return runs


def _units(text: str, spaced: bool) -> list[str]:
    if not spaced:
        return list(text)
    words = text.split()
    return [word + " " for word in words[:-1]] + words[-1:]


def duration(seconds: float) -> str:
    """duration(16680) -> "4 h 38 min"; duration(845) -> "14 min 5 s"; duration(0.42) -> "0.4 s"."""
    if seconds < 10:
        return f"{seconds:.1f}{THIN_SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (0 if hours else rest, "s")]
    return " ".join(f"{number}{THIN_SPACE}{unit}" for number, unit in parts if number)


def decimal(value: float | None, digits: int) -> Figure:
    """A dash where there is no number."""
    return Figure("-" if value is None else f"{value:.{digits}f}")


def short_number(value: float, unit: str = "") -> Figure:
    """short_number(7_600_000) -> "7.6 M"; short_number(2.3e9, "B") -> "2.3 GB"."""
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return Figure(f"{value / size:.1f}{THIN_SPACE}{letter}{unit}")
    return Figure(f"{value:.0f}{THIN_SPACE}{unit}".rstrip(THIN_SPACE))
