"""A trace is shown as lines of text, for a terminal or a log."""

import math
from collections.abc import Sequence
from typing import Final

from limelight.inspection.drawing.heatmaps import KIND_NAMES, hundredths, mask, select_weights
from limelight.inspection.drawing.svg import columns_of, label
from limelight.inspection.head_names import Head
from limelight.inspection.trace import TargetToken, Trace

BLOCKS: Final = " ▁▂▃▅▇█"  # from below 0.05 up
STEPS: Final = (0.05, 0.15, 0.3, 0.5, 0.7, 0.9)
CLOSE: Final = 0.1  # a second piece with more probability than this is told
MASKED: Final = "░"
NARROWEST: Final = 3
CUT: Final = 6  # columns of a name where all do not fit side by side


def heat(trace: Trace, head: Head, width: int = 100) -> list[str]:
    """One head as blocks. With more columns than the width has room for, it goes on below."""
    weights, layer = select_weights(trace, head.kind, head.layer, head.head)
    rows, columns = trace.axes(head.kind)
    hidden, tokens = mask(trace, head.kind), trace.target.tokens
    aligns = "   aligns" if str(head) == trace.align.head else ""
    dimmed = "" if trace.gate_of(head) == 1 else f"   dimmed to {trace.gate_of(head):g}"
    title = f"{KIND_NAMES[head.kind]} · layer {layer} · head {head.head}{aligns}{dimmed}"
    left = max(columns_of(label(piece)) for piece in rows)
    ends = [] if head.kind == "enc" else [_sure(token) for token in tokens]
    room = width - left - 2 - max([0, *map(columns_of, ends)])
    names = [label(piece) for piece in columns]
    if sum(columns_of(name) + 1 for name in names) > room:
        names = [shorten(name, CUT) for name in names]
    wide = [max(NARROWEST, columns_of(name)) for name in names]
    lines = [title]
    for at, some in enumerate(_bands(wide, room)):
        last = some.stop == len(columns)
        heading = " " * left + "  " + " ".join(_align_right(names[c], wide[c]) for c in some)
        lines += [""] * bool(at) + [(heading + ("  p" if ends and last else "")).rstrip()]
        for row, piece in enumerate(rows):
            blocks = (MASKED if hidden(row, c) else block(float(weights[row, c])) for c in some)
            cells = [_align_right(each, wide[c]) for c, each in zip(some, blocks, strict=True)]
            line = f"{label(piece)}{' ' * (left - columns_of(label(piece)))}  {' '.join(cells)}"
            lines.append((line + (f"  {ends[row]}" if ends and last else "")).rstrip())
    return lines


def block(weight: float) -> str:
    """Of 0.03 a space, of 0.4 ▃, of 0.95 █."""
    return BLOCKS[sum(weight >= step for step in STEPS)]


def summary(trace: Trace) -> list[str]:
    """What was translated, how sure, and what the changes did."""
    target = trace.target
    lines = [f"{trace.source.text}  →  {target.text}"]
    cut = "" if target.finish == "eos" else "   cut at the limit"
    agree = "" if trace.verified else f"   search and shown pass differ by {trace.difference:.4f}"
    lines.append(f"log-probability {target.logp:.2f}{cut}{agree}")
    if trace.baseline is not None:
        before = trace.baseline
        same = "the same text" if before.text == target.text else f"{before.text}  (chrF {before.chrf:.0f} to it)"
        lines.append(f"without the changes: {same}; they change its log-probability by {before.delta_logp:+.2f}")
    return lines


def every_head(trace: Trace) -> list[str]:
    """A line for each head: how spread, how diagonal, how much at the end; the least spread first in each kind."""
    lines = [f"{'head':<12} {'entropy':>8} {'diagonal':>9} {'at end':>7}  "]
    for kind in KIND_NAMES:
        some = [each for each in trace.heads if each.id.startswith(f"{kind}.")]
        for each in sorted(some, key=lambda one: one.entropy):
            notes = ["aligns"] * (each.id == trace.align.head) + [f"dimmed to {each.gate:g}"] * (each.gate != 1)
            if each.importance is not None:
                notes.append(f"importance {each.importance:.3f}")
            figures = f"{each.id:<12} {each.entropy:>8.2f} {each.diagonal:>9.2f} {each.end_mass:>7.2f}"
            lines.append(f"{figures}  {'   '.join(notes)}".rstrip())
    return lines


def shorten(text: str, most: int) -> str:
    """▁standing in at most 6 columns is ▁stan…"""
    if columns_of(text) <= most:
        return text
    while columns_of(text) > most - 1:
        text = text[:-1]
    return f"{text}…"


def _sure(token: TargetToken) -> str:
    """.64   ▁sitzt .21"""
    probability = math.exp(min(0.0, token.logp))
    others = [(piece, math.exp(logp)) for number, piece, logp in token.topk if number != token.id]
    close = f"   {label(others[0][0])} {hundredths(others[0][1])}" if others and others[0][1] >= CLOSE else ""
    return hundredths(probability) + close


def _bands(wide: Sequence[int], room: int) -> list[range]:
    """Columns that fit side by side, one at least."""
    found, begin, taken = [], 0, 0
    for at, each in enumerate(wide):
        if at > begin and taken + each > room:
            found.append(range(begin, at))
            begin, taken = at, 0
        taken += each + 1
    return [*found, range(begin, len(wide))]


def _align_right(text: str, width: int) -> str:
    return " " * (width - columns_of(text)) + text
