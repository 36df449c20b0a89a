"""SVG pictures show what the filters took away and how long the texts are.

A picture stands inside the page, so it takes the colour of its text and the fonts from there, in light and in dark. It has no date and no
random names: equal counts give equal bytes. Text that users wrote never goes into a picture. Without matplotlib a picture is empty text.
"""

import io
import math
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt

from limelight.corpus.encode import PIECE_LENGTHS
from limelight.corpus.exchange.settle import LENGTHS
from limelight.corpus.report.markup import THIN_SPACE, figure, name, text

try:  # Pictures are an extra: a cluster node that only prepares text need not install a drawing library.
    import matplotlib.style
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
except ModuleNotFoundError:
    INSTALLED = False
else:
    INSTALLED = True

WIDTH: Final = 5.6  # inches; narrow, so that the text is still read on a phone
INK: Final = "#010203"  # drawn with this, then replaced by the colour of the page's text
MINUS: Final = "\u2212"
BLUE, ORANGE = "#3b8bc4", "#d8701b"  # told apart by colour-blind people, and seen on black and on white
FEW: Final = 0.1  # dropped; less than this part would be lines without width on an axis from zero
COVERED: Final = 0.995  # of the pairs are drawn by length; the few longer ones share the last bar
LOOK: Final = {
    "svg.fonttype": "none",  # letters stay letters: small, searchable, in the font of the page
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}

Counts = npt.NDArray[np.float64]


def waterfall(read: int, drops: Sequence[tuple[str, int]], alt: str) -> str:
    """From read to kept: a falling bar for each reason, in the given order."""
    if not INSTALLED:
        return ""
    left = [read - gone for gone in accumulate((pairs for _, pairs in drops), initial=0)]
    few = read - left[-1] < FEW * read
    begin = math.floor(read - 1.3 * (read - left[-1])) if few else 0
    bars = [("read", begin, read, figure(read))]
    bars += [(name(reason), left[i + 1], left[i], figure(pairs, MINUS)) for i, (reason, pairs) in enumerate(drops)]
    bars += [("kept", begin, left[-1], figure(left[-1]))]
    with matplotlib.style.context(["default", LOOK]):
        height = 0.28 * len(bars) + 0.6
        picture = Figure(figsize=(WIDTH, height))
        axes = picture.add_axes((0.26, 0.52 / height, 0.58, 1 - 0.6 / height))
        for row, (_, start, end, printed) in enumerate(bars):
            colour = BLUE if row in (0, len(bars) - 1) else ORANGE
            # The outline keeps a bar of a few pairs among a million visible.
            bar = axes.barh(row, end - start, 0.62, left=start, color=colour, edgecolor=colour, linewidth=1.2)
            bar[0].set_clip_on(False)
            axes.text(1.27, row, printed, transform=axes.get_yaxis_transform(), ha="right", va="center")
            if begin and start == begin:
                _cut_mark(axes, row)
        rows = np.arange(len(left))
        axes.vlines(left, rows + 0.31, rows + 0.69, color=INK, linewidth=0.8)
        axes.set(xlim=(begin, max(begin + 1, read)), ylim=(len(bars) - 0.5, -0.5))
        axes.set_yticks(range(len(bars)), [label for label, *_ in bars])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("pairs left" + (" (the axis does not begin at zero)" if begin else ""))
        _count_axis(axes, "x")
        return svg(picture, "waterfall", alt)


def _cut_mark(axes: "Axes", row: int) -> None:
    """Across a bar that does not begin where it is drawn from."""
    for place in (0.04, 0.06):
        across = [place, place + 0.02], [row + 0.42, row - 0.42]
        axes.plot(*across, color=INK, linewidth=1.2, clip_on=False, transform=axes.get_yaxis_transform())


def piece_histogram(source: Sequence[int], target: Sequence[int], alt: str) -> str:
    """Pairs by pieces, in even steps; what is longer than nearly all shares the last bar."""
    if not INSTALLED:
        return ""
    bounds = np.array([*PIECE_LENGTHS, math.inf])
    ends = [_first_covering(side) for side in (source, target)]
    cut = min(bounds[max(ends) + 1], bounds[-2])
    width = 4 if cut <= 128 else 32  # the steps of PIECE_LENGTHS
    cut = width * math.ceil(cut / width)
    place = np.minimum(bounds[:-1], cut).astype(int) // width
    sides = [np.bincount(place, side, cut // width + 1).astype(np.float64) for side in (source, target)]
    longer = any(side[-1] for side in sides)
    edges = np.arange(len(sides[0]) + 1.0) * width
    step = width * math.ceil(cut / 6 / width)
    ticks = [(float(at), str(at)) for at in range(0, cut - step // 2, step)]
    ticks += [(cut + width / 2, f"≥{THIN_SPACE}{cut}")] if longer else [(float(cut), str(cut))]
    if not longer:
        sides, edges = [side[:-1] for side in sides], edges[:-1]
    return _histogram(edges, sides, ticks, "pieces", alt)


def character_histogram(source: Sequence[int], target: Sequence[int], alt: str) -> str:
    """Pairs by characters, in steps that grow by a quarter and so look even on this axis. The first bar holds all that is shorter."""
    if not INSTALLED:
        return ""
    sides = [np.array(side, dtype=np.float64) for side in (source, target)]
    used = np.flatnonzero(sides[0] + sides[1])
    last = int(used[-1]) + 1 if len(used) else 1
    edges = np.log10([LENGTHS[1] / 1.25, *LENGTHS[1:], LENGTHS[-1] * 1.25][: last + 1])
    ticks = [(math.log10(n), f"{n}") for n in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)]
    inside = [(at, label) for at, label in ticks if at <= edges[-1]]
    return _histogram(edges, [side[:last] for side in sides], inside, "characters", alt)


def _first_covering(counts: Sequence[int]) -> int:
    running = list(accumulate(counts))
    return next(i for i, count in enumerate(running) if count >= COVERED * running[-1])


def _histogram(edges: Counts, sides: Sequence[Counts], ticks: Sequence[tuple[float, str]], unit: str, alt: str) -> str:
    """Source as a surface, target as a line: the two differ in shape too, not in colour alone."""
    with matplotlib.style.context(["default", LOOK]):
        picture = Figure(figsize=(WIDTH, 2.8))
        axes = picture.add_axes((0.19, 0.2, 0.79, 0.76))
        axes.stairs(sides[0], edges, fill=True, color=BLUE, alpha=0.75, label="source")
        axes.stairs(sides[1], edges, color=ORANGE, linewidth=2.2, label="target")
        axes.set(xlim=(edges[0], edges[-1]), ylim=(0, max(1.0, 1.06 * max(side.max() for side in sides))))
        axes.set_xticks([at for at, _ in ticks], [label for _, label in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(unit)
        axes.set_ylabel("pairs")
        _count_axis(axes, "y")
        axes.legend(frameon=False, loc="upper right")
        return svg(picture, unit, alt)


def _count_axis(axes: "Axes", which: str) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(4, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: figure(round(value))))


def svg(picture: "Figure", salt: str, alt: str) -> str:
    """For the inside of a page: as wide as its place, and without what would reach beyond the picture.

    That is the head of a file with its addresses, names that two pictures share, and a rule of style that holds for the whole page.
    """
    file = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": salt}):  # names of shapes are hashes, and random without it
        picture.savefig(file, format="svg", transparent=True, metadata=nothing)
    svg = re.sub(r"<metadata>.*?(?:</metadata>|\Z)|<style.*?(?:</style>|\Z)", "", file.getvalue(), flags=re.DOTALL)
    svg = re.sub(r' id="[\w.]+_\d+"', "", svg)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(r" font-family: [^;\"]*;?", "", svg).replace(INK, "currentColor")
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box is not None
    namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    content = svg[svg.index(">", box.end()) + 1 :].rstrip()
    return f'<svg {namespaces} {box[0]} role="img" aria-label="{text(alt)}">{content}'
