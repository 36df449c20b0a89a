"""A `Picture` is SVG text that browsers and drawing programs open, with its words as words and a description."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from limelight.errors import MissingExtraError
from limelight.files import write_whole
from limelight.inspection.drawing.colours import PAPER, QUIET

try:  # Pixels are an extra; SVG needs nothing.
    import resvg_py
except ModuleNotFoundError:
    INSTALLED = False
else:
    INSTALLED = True

# Those of systems first, then such as a bare server has.
FONTS: Final = "system-ui, 'Segoe UI', 'Helvetica Neue', 'Noto Sans', 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif"
SHARPNESS: Final = 2.0  # pixels of a PNG for each unit of the drawing: sharp on today's screens
LONGEST_LABEL: Final = 24  # characters; a longer piece is cut
HATCH: Final = (
    '<pattern id="masked" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="6" height="6" fill="{PAPER}"/><rect width="1.6" height="6" fill="{QUIET}"/></pattern>'
)
_NOT_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Picture:
    """A picture shows itself in a notebook."""

    svg: str

    def save(self, path: str | Path) -> None:
        path = Path(path)
        write_whole(path, self.png() if path.suffix.lower() == ".png" else self.svg.encode())

    def png(self, sharpness: float = SHARPNESS) -> bytes:
        if not INSTALLED:
            raise MissingExtraError("resvg-py", "a PNG", "pictures", ", or save an .svg")
        return bytes(resvg_py.svg_to_bytes(svg_string=self.svg, zoom=sharpness, sans_serif_family="DejaVu Sans"))

    def _repr_svg_(self) -> str:
        return self.svg

    _repr_html_ = _repr_svg_


def draw_picture(width: float, height: float, title: str, description: str, parts: Iterable[str]) -> Picture:
    """The whole of a picture, on paper of its own: it is read in a dark page too."""
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_number(width)} {_number(height)}" width="{_number(width)}" '
        f'height="{_number(height)}" role="img" font-family="{FONTS}" font-size="12">\n'
        f"<title>{escape_xml(title)}</title>\n<desc>{escape_xml(description)}</desc>\n<defs>{HATCH}</defs>\n"
        f'<rect width="100%" height="100%" fill="{PAPER}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def rect(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
    return f'<rect {place} fill="{fill}"{" " if more else ""}{more}/>'


def words(x: float, y: float, text: str, fill: str, more: str = "") -> str:
    """`more`: attributes, such as text-anchor="end"."""
    return f'<text x="{_number(x)}" y="{_number(y)}" fill="{fill}"{" " if more else ""}{more}>{escape_xml(text)}</text>'


def escape_xml(text: str) -> str:
    """For the inside of an element or an attribute. Characters that no XML may hold become U+FFFD."""
    return escape(_NOT_IN_XML.sub("\ufffd", text), {'"': "&quot;"})


def label(piece: str) -> str:
    """At most LONGEST_LABEL characters, and no space that would not be seen."""
    shown = piece if len(piece) <= LONGEST_LABEL else piece[: LONGEST_LABEL - 1] + "\u2026"
    return re.sub(r"\s", "\u2423", shown)


def columns_of(text: str) -> int:
    """How many columns of a terminal it takes: columns_of("猫 e\u0301") -> 4. Wide signs take two, combining ones none."""
    return sum(_columns(sign) for sign in text)


def _columns(sign: str) -> int:
    inner = "\u1160" <= sign <= "\u11ff"  # letters of Hangul
    if inner or unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1


def room(text: str, size: float = 12) -> float:
    """About how wide it is drawn; fonts differ, so it is a little more than most need."""
    return columns_of(text) * size * 0.62


def wrap_lines(text: str, most: int) -> list[str]:
    """Lines of at most `most` columns, cut at spaces where there are any."""
    lines, line = [], ""
    for word in text.split(" "):
        while columns_of(word) > most:
            cut = _fitting(word, most)
            lines += [line] * bool(line) + [word[:cut]]
            line, word = "", word[cut:]
        joined = f"{line} {word}" if line else word
        if columns_of(joined) > most:
            lines, joined = [*lines, line], word
        line = joined
    return [*lines, line] if line else lines


def _fitting(word: str, most: int) -> int:
    """How many of its characters take at most `most` columns, one at least."""
    taken = 0
    for number, sign in enumerate(word):
        taken += _columns(sign)
        if taken > most:
            return max(1, number)
    return len(word)


def citation(texts: Sequence[str], x: float, y: float, most: int) -> tuple[list[str], float]:
    """Small print under a picture, from its first line at y, in lines of at most `most` columns; and where it ends."""
    lines = [line for text in texts for line in wrap_lines(text, most)]
    drawn = [words(x, y + 14 * number, line, QUIET, 'font-size="10"') for number, line in enumerate(lines)]
    return drawn, y + 14 * len(lines)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
