"""Blocks make up a report before it is Markdown or HTML; their cells are text, figures, code or translations."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from markupsafe import Markup


class Code(NamedTuple):
    """Code is a name, a setting or a path: something to be typed as it stands."""

    text: str


class Strong(NamedTuple):
    text: str


class Quote(NamedTuple):
    """A quote is text of a user or of the model. Of its runs, if there are any, those are marked that are not `True`."""

    text: str
    language: str | None = None
    runs: Sequence[tuple[str, bool]] = ()


class Bar(NamedTuple):
    share: float


class Confidence(NamedTuple):
    value: float


Cell: TypeAlias = str | Code | Strong | Quote | Bar | Confidence  # a Figure is a str that stands to the right


class Paragraph(NamedTuple):
    parts: Sequence[Cell]
    first: bool = False  # of a page, and larger


class Table(NamedTuple):
    """The first cell of each row is its heading; `groups` are titles over several columns. A table without rows is left out."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    total: Sequence[Cell] = ()
    groups: Sequence[tuple[str, int]] = ()


class Listing(NamedTuple):
    text: str


class Points(NamedTuple):
    points: Sequence[Sequence[Cell]]


class Pictures(NamedTuple):
    """Pictures have an SVG and a caption each. Markdown leaves them out: there the figures stand in tables."""

    pictures: Sequence[tuple[Markup, str]]


class HtmlOnly(NamedTuple):
    blocks: "Sequence[Block]"


class Details(NamedTuple):
    """Details are closed until asked for, without a script."""

    summary: str
    blocks: "Sequence[Block]"


class Tiles(NamedTuple):
    """Tiles show names and figures, to be seen from afar. Not in Markdown."""

    tiles: Sequence[tuple[str, str]]


class Section(NamedTuple):
    """A section of level 2 can be linked to; one of level 3 stands inside of another."""

    title: str
    blocks: "Sequence[Block]"
    level: int = 2

    @property
    def anchor(self) -> str:
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


Block: TypeAlias = str | Paragraph | Table | Listing | Points | Pictures | HtmlOnly | Details | Tiles | Section
