"""A ribbon draws the alignment: source above, translation below, bands between, and how sure each piece is."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from limelight.inspection.drawing.colours import INK, LINKS, QUIET, RULE
from limelight.inspection.drawing.heatmaps import MARGIN, cite
from limelight.inspection.drawing.svg import Picture, draw_picture, escape_xml, label, rect, room, words
from limelight.inspection.head_names import Head
from limelight.inspection.trace import Trace

FAINTEST: Final = 0.05  # of a weight that gets a band
THICKEST: Final = 9.0
GAP: Final = 18.0
BETWEEN: Final = 90.0  # height of the bands
BAR: Final = 24.0  # height of a bar that says 100 %


def ribbon(trace: Trace) -> Picture:
    head = Head.parse(trace.align.head)
    weights = trace.attention[head.kind][head.layer, head.head]
    target, source = trace.axes("cross")
    above, below = _places(source), _places(target)
    width = max(above[-1][1], below[-1][1], 420.0) + MARGIN
    high, low = MARGIN + 44, MARGIN + 44 + BETWEEN
    parts = [words(MARGIN, MARGIN + 12, f"Alignment by {head}", INK, 'font-size="15" font-weight="600"')]
    parts += _pieces(source, above, high - 6, trace.model.source)
    for row in range(len(target)):
        for column in range(len(source)):
            weight = float(weights[row, column])
            if weight >= FAINTEST:
                parts.append(_band(_middle(above[column]), high, _middle(below[row]), low, weight))
    parts += _pieces(target, below, low + 14, trace.model.target)
    sure = [math.exp(min(0.0, each.logp)) for each in trace.target.tokens]
    parts += _bars(sure, below, low + 22)
    small, end = cite(trace, str(head), width, low + 22 + BAR + 50)
    links = [f"{target[t]} from {source[s]} {weight:.2f}" for s, t, weight in trace.align.links[:64] if t < len(target)]
    which = f"Which source piece each target piece comes from, by {head}, and its probability."
    return draw_picture(width, end, f"Alignment by {head}", f"{which} {'; '.join(links)}.", [*parts, *small])


def _places(pieces: Sequence[str]) -> list[tuple[float, float]]:
    found, at = [], MARGIN
    for piece in pieces:
        wide = max(room(label(piece)), 22.0)
        found.append((at, at + wide))
        at += wide + GAP
    return found


def _middle(place: tuple[float, float]) -> float:
    return (place[0] + place[1]) / 2


def _pieces(pieces: Sequence[str], places: Sequence[tuple[float, float]], y: float, language: str) -> Iterator[str]:
    yield f'<g text-anchor="middle" xml:lang="{escape_xml(language)}">'
    yield from (words(_middle(place), y, label(piece), INK) for piece, place in zip(pieces, places, strict=True))
    yield "</g>"


def _band(x: float, y: float, to_x: float, to_y: float, weight: float) -> str:
    bend = (to_y - y) / 2
    path = f"M{x:.1f} {y:.1f}C{x:.1f} {y + bend:.1f} {to_x:.1f} {to_y - bend:.1f} {to_x:.1f} {to_y:.1f}"
    look = f'stroke-width="{1 + (THICKEST - 1) * weight:.1f}" stroke-opacity="{0.25 + 0.6 * weight:.2f}"'
    return f'<path d="{path}" fill="none" stroke="{LINKS}" {look}/>'


def _bars(probabilities: Sequence[float], places: Sequence[tuple[float, float]], top: float) -> Iterator[str]:
    """A bar and its number: never colour alone."""
    yield '<g font-size="10" text-anchor="middle">'
    for probability, place in zip(probabilities, places, strict=True):
        x = _middle(place) - 9
        yield rect(x, top, 18, BAR, "none", f'stroke="{RULE}"')
        yield rect(x, top + BAR * (1 - probability), 18, BAR * probability, LINKS)
        yield words(x + 9, top + BAR + 12, f"{100 * probability:.0f}", QUIET)
    yield "</g>"
    yield words(MARGIN, top + BAR + 26, "probability of each piece, %", QUIET, 'font-size="10"')
