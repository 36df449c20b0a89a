"""Heat maps show attention: one head large, or all heads small."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

import numpy as np

from limelight.errors import ConfigError
from limelight.inspection.causes import PatchMap
from limelight.inspection.drawing.colours import INK, QUIET, RULE, SPOT, cividis, readable_on
from limelight.inspection.drawing.svg import Picture, citation, draw_picture, escape_xml, label, rect, room, words
from limelight.inspection.head_names import KINDS, Head, Kind
from limelight.inspection.interventions import Changes
from limelight.inspection.trace import Array, Trace

KIND_NAMES: Final = {"enc": "encoder", "dec": "decoder", "cross": "cross"}
LOOKS: Final = {
    "enc": "each source piece (rows) looked at each source piece (columns)",
    "dec": "each target piece, as it was predicted (rows), looked at the pieces before it (columns)",
    "cross": "each target piece (rows) looked at each source piece (columns)",
}
LEVELS: Final = 255  # of colour
NUMBERS_UP_TO: Final = 400  # cells; in larger maps the numbers would be too small to read
LARGEST, SMALLEST, WITH_NUMBERS = 24.0, 3.0, 32.0  # side of a cell
WIDEST: Final = 1000.0  # about so wide is a map of many cells
SMALLEST_TEXT: Final = 9.0  # with less room for a label, only every second, third ... is written
THUMBNAIL: Final = 64.0
POOLED: Final = 16  # rows and columns of a thumbnail at most
MARGIN: Final = 16.0
NARROWEST: Final = 480.0  # the legend needs it

Masked = Callable[[int, int], bool]
Axes = tuple[Sequence[str], Sequence[str]]  # of rows and of columns


def heatmap(trace: Trace, kind: Kind = "cross", layer: int = -1, head: int | None = None) -> Picture:
    """One head; without `head` the mean of the layer. Layers from the end count as in Python."""
    weights, layer = select_weights(trace, kind, layer, head)
    rows, columns = trace.axes(kind)
    which = f"head {head}" if head is not None else f"mean of {trace.model.heads} heads"
    title = f"{KIND_NAMES[kind]} · layer {layer} · {which}"
    named = str(Head(kind, layer, head)) if head is not None else f"{kind}.{layer}.*"
    description = f"How much {LOOKS[kind]}. {_strongest(weights, rows, columns)}"
    source, target = trace.model.source, trace.model.target
    languages = (source if kind == "enc" else target), (target if kind == "dec" else source)
    parts, width, bottom = _draw_map(weights, (rows, columns), languages, mask(trace, kind), title, "weight")
    small, bottom = cite(trace, named, width, bottom)
    return draw_picture(width, bottom, f"Attention: {title}", description, [*parts, *small])


def patch_picture(trace: Trace, patched: PatchMap) -> Picture:
    """Layers by positions or heads, by the size of the change; the largest is 1."""
    rows, columns, sizes = patched.rows, patched.columns, np.abs(patched.change)
    strength = np.asarray(sizes / max(float(sizes.max(initial=0)), 1e-9), np.float32)
    title = f"patched from “{label(patched.other)}” · log p of {patched.word}"
    languages = "en", trace.model.source if patched.places == "source" else trace.model.target
    parts, width, bottom = _draw_map(strength, (rows, columns), languages, lambda row, column: False, title, "size of the change")
    small, bottom = cite(trace, f"1: changed by {sizes.max(initial=0):.2f}; from “{patched.other}”", width, bottom)
    description = f"How much each place changes when it is patched. {_strongest(strength, rows, columns)}"
    return draw_picture(width, bottom, f"Patching: {title}", description, [*parts, *small])


def _draw_map(
    weights: Array, axes: Axes, languages: tuple[str, str], hidden: Masked, title: str, scale: str
) -> tuple[list[str], float, float]:
    """The parts of a map from 0 to 1, how wide it is, and where its small print begins."""
    rows, columns = axes
    numbers = weights.size <= NUMBERS_UP_TO
    side = WITH_NUMBERS if numbers else max(SMALLEST, min(LARGEST, WIDEST / max(weights.shape)))
    size = min(12.0, max(SMALLEST_TEXT, side * 0.62))
    left = MARGIN + max(room(label(each), size) for each in rows) + 8
    top = MARGIN + 28 + max(room(label(each), size) for each in columns) * 0.75 + 12
    height, width = side * weights.shape[0], side * weights.shape[1]
    parts = [words(MARGIN, MARGIN + 12, title, INK, 'font-size="15" font-weight="600"')]
    parts += _columns_axis(columns, left, top, side, size, languages[1])
    parts += _rows_axis(rows, left, top, side, size, languages[0])
    parts += cells(weights, hidden, left, top, side)
    if numbers:
        parts += _numbers(weights, hidden, left, top, side)
    parts += _legend(left, top + height + 18, any(hidden(r, c) for r, c in np.ndindex(weights.shape)), scale)
    return parts, max(left + width, NARROWEST) + MARGIN + room(columns[-1], size) * 0.7, top + height + 68


def overview(trace: Trace, kinds: Sequence[Kind] = KINDS) -> Picture:
    """All heads, a row for each layer; the kinds side by side if there is room. The head that aligns is framed and named."""
    step = THUMBNAIL + 12
    wide, high = 28 + trace.model.heads * step + MARGIN, MARGIN + 30
    beside = wide * len(kinds) <= WIDEST
    x, y, bottom = MARGIN, high, high
    parts = [words(MARGIN, MARGIN + 12, "All heads", INK, 'font-size="15" font-weight="600"')]
    for kind in kinds:
        parts += _heads_of_kind(trace, kind, x, y + 10)
        end = y + 40 + len(trace.attention[kind]) * (step + 12)
        x, y, bottom = (x + wide, y, max(bottom, end)) if beside else (x, end, end)
    width = max(MARGIN + wide * (len(kinds) if beside else 1), NARROWEST)
    parts += _legend(MARGIN + 28, bottom - 6, True)
    small, end = cite(trace, f"framed: {trace.align.head}, which aligns", width, bottom + 44)
    described = ", ".join(f"{KIND_NAMES[kind]} {'x'.join(map(str, trace.attention[kind].shape[:2]))}" for kind in kinds)
    aligns = f"The head that aligns is {trace.align.head}."
    description = f"A small map for each head, layers by heads: {described}. {aligns}"
    return draw_picture(width, end, "Attention: all heads", description, [*parts, *small])


def _heads_of_kind(trace: Trace, kind: Kind, x: float, top: float) -> Iterator[str]:
    yield words(x, top, KIND_NAMES[kind], INK, 'font-weight="600"')
    for layer in range(len(trace.attention[kind])):
        y = top + 10 + layer * (THUMBNAIL + 24)
        yield words(x, y + THUMBNAIL / 2, f"L{layer}", QUIET)
        for head in range(trace.model.heads):
            yield from _thumbnail(trace, Head(kind, layer, head), x + 28 + head * (THUMBNAIL + 12), y)


def select_weights(trace: Trace, kind: Kind, layer: int, head: int | None) -> tuple[Array, int]:
    """Weights (queries, keys) of a head or of a layer's mean, and the layer counted from 0."""
    if kind not in trace.attention:
        raise ConfigError(f"there is no attention {kind!r} here; there are {', '.join(trace.attention)}")
    every = trace.attention[kind]
    layers, heads = every.shape[:2]
    if not -layers <= layer < layers or (head is not None and not 0 <= head < heads):
        named = f"{kind}.{layer}" if head is None else f"{kind}.{layer}.{head}"
        raise ConfigError(f"{named} is not there: {kind} has layers 0 to {layers - 1} and heads 0 to {heads - 1}")
    found = every[layer].mean(axis=0) if head is None else every[layer, head]
    return found, layer % layers


def mask(trace: Trace, kind: Kind) -> Masked:
    """What a head may not look at, by the rule and not by its zeros: what comes later, and source pieces that are hidden."""
    if kind == "dec":
        return lambda row, column: column > row
    hidden = set(trace.changes.mask_source)
    return lambda row, column: column in hidden


def cells(weights: Array, hidden: Masked, left: float, top: float, side: float) -> Iterator[str]:
    """Rectangles for all cells, neighbours of one colour as one."""
    height, width = (side * count for count in weights.shape)
    yield f'<g shape-rendering="crispEdges">{rect(left, top, width, height, cividis(0))}'
    levels = np.rint(np.clip(np.nan_to_num(weights), 0, 1) * LEVELS).astype(int)
    for row, line in enumerate(levels.tolist()):
        at, y = 0, top + row * side
        for level, some in groupby([-1 if hidden(row, column) else value for column, value in enumerate(line)]):
            count = len(list(some))
            if level < 0:
                yield rect(left + at * side, y, count * side, side, "url(#masked)")
            elif level:
                yield rect(left + at * side, y, count * side, side, cividis(level / LEVELS))
            at += count
    yield "</g>"


def cite(trace: Trace, what: str, width: float, y: float) -> tuple[list[str], float]:
    """Which model, which sentence, what of it: all that one needs to make the picture again. And where the lines end."""
    model, changes = trace.model, trace.changes
    step = f", step {model.step:,}" if model.step is not None else ""
    parts = [f"Limelight · {model.id}{step}, {model.sha[:12]} · {what} · “{trace.source.text}” → “{trace.target.text}”"]
    if changes.any():
        parts.append(f"changed: {'; '.join(describe_changes(changes))}")
    return citation(parts, MARGIN, y, max(40, int((width - 2 * MARGIN) / 6.0)))


def describe_changes(changes: Changes) -> list[str]:
    """What is not as the model was trained, in words: ["cross.1.2 at 0.4", "source piece 3 hidden"]"""
    said = [f"{name} at {gate:g}" for name, gate in changes.gates.items() if gate != 1]
    said += [f"dimmed to the {changes.gate_mode}"] * (changes.gate_mode != "zero" and bool(said))
    said += [f"source piece {number} hidden" for number in changes.mask_source]
    said += [f"row {pin.step} looks at {pin.source} with {pin.strength:g}" for pin in changes.pins]
    said += [f"positions {changes.positions}"] * (changes.positions != "normal")
    return said + [f"temperature {changes.attention_temperature:g}"] * (changes.attention_temperature != 1)


def _columns_axis(pieces: Sequence[str], left: float, top: float, side: float, size: float, language: str) -> Iterator[str]:
    yield f'<g font-size="{size:g}" xml:lang="{escape_xml(language)}">'
    every = math.ceil(SMALLEST_TEXT / side)
    for at in range(0, len(pieces), every):
        x, y = left + (at + 0.5) * side, top - 6
        turned = f'transform="rotate(-50 {x:.1f} {y:.1f})"'
        yield words(x, y, label(pieces[at]), INK, turned)
    yield "</g>"


def _rows_axis(pieces: Sequence[str], left: float, top: float, side: float, size: float, language: str) -> Iterator[str]:
    yield f'<g font-size="{size:g}" text-anchor="end" xml:lang="{escape_xml(language)}">'
    every = math.ceil(SMALLEST_TEXT / side)
    for at in range(0, len(pieces), every):
        yield words(left - 6, top + (at + 0.5) * side + size * 0.35, label(pieces[at]), INK)
    yield "</g>"


def _numbers(weights: Array, hidden: Masked, left: float, top: float, side: float) -> Iterator[str]:
    """Hundredths, where there is one to tell: a colour alone is hard to read off."""
    yield '<g font-size="10" text-anchor="middle">'
    for row, column in np.ndindex(weights.shape):
        weight = float(weights[row, column])
        if not hidden(row, column) and round(100 * weight):
            x, y = left + (column + 0.5) * side, top + (row + 0.5) * side + 3.5
            yield words(x, y, hundredths(weight), readable_on(cividis(weight)))
    yield "</g>"


def hundredths(weight: float) -> str:
    """hundredths(0.714) -> ".71"; hundredths(0.999) -> "1.0\""""
    return "1.0" if round(100 * weight) >= 100 else f".{round(100 * weight):02d}"


def _legend(left: float, top: float, hatched: bool, scale: str = "weight") -> Iterator[str]:
    stops = "".join(f'<stop offset="{n / 12:.4f}" stop-color="{cividis(n / 12)}"/>' for n in range(13))
    yield f'<defs><linearGradient id="scale">{stops}</linearGradient></defs>'
    yield rect(left, top, 160, 10, "url(#scale)", f'stroke="{RULE}"')
    yield f'<g font-size="10" fill="{QUIET}" text-anchor="middle">'
    yield from (words(left + 160 * share, top + 22, f"{share:g}", QUIET) for share in (0, 0.5, 1))
    yield "</g>" + words(left + 170, top + 9, scale, QUIET, 'font-size="10"')
    if hatched:
        yield rect(left + 220, top, 22, 10, "url(#masked)", f'stroke="{RULE}"')
        yield words(left + 248, top + 9, "masked: may not be looked at", QUIET, 'font-size="10"')


def _thumbnail(trace: Trace, head: Head, x: float, y: float) -> Iterator[str]:
    whole, hidden = trace.attention[head.kind][head.layer, head.head], mask(trace, head.kind)
    seen = np.array([[not hidden(r, c) for c in range(whole.shape[1])] for r in range(whole.shape[0])])
    small, dark = pool_max(whole, POOLED), pool_max(seen, POOLED) == 0
    rows, columns = small.shape
    side = THUMBNAIL / max(rows, columns)
    yield from cells(small, lambda r, c: bool(dark[r, c]), x, y, side)
    aligns = str(head) == trace.align.head
    frame = f'stroke="{SPOT if aligns else RULE}" stroke-width="{3 if aligns else 1}"'
    yield rect(x, y, side * columns, side * rows, "none", frame)
    gate = "" if trace.gate_of(head) == 1 else f" at {trace.gate_of(head):g}"
    ink = SPOT if aligns else QUIET
    yield words(x, y + THUMBNAIL + 12, f"{head.kind[0]}{head.layer}.{head.head}{gate}", ink, 'font-size="10"')


def pool_max(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], most: int) -> Array:
    """Pool to at most `most` rows and columns, each the largest of those it stands for: one bright cell stays seen."""
    found = np.asarray(values, np.float32)
    for axis in (0, 1):
        if found.shape[axis] > most:
            starts = np.arange(most) * found.shape[axis] // most
            found = np.maximum.reduceat(found, starts, axis=axis)
    return found


def _strongest(weights: Array, rows: Sequence[str], columns: Sequence[str]) -> str:
    best = weights.argmax(axis=1)
    said = [f"{rows[row]} at {columns[column]} {weights[row, column]:.2f}" for row, column in enumerate(best.tolist())]
    return "Strongest in each row: " + "; ".join(said[:64]) + ("; and so on." if len(said) > 64 else ".")
