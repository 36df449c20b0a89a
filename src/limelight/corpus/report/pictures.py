"""Pictures show what the filters took away and how long the texts are."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from limelight.corpus.encode import PIECE_LENGTHS
from limelight.corpus.exchange.settle import LENGTHS
from limelight.reporting import charts
from limelight.reporting.charts import BLUE, INK, ORANGE, chart, count_axis
from limelight.reporting.units import THIN_SPACE, figure

MINUS: Final = "\u2212"
FEW: Final = 0.1  # dropped; less than this part would be lines without width on an axis from zero
COVERED: Final = 0.995  # of the pairs are drawn by length; the few longer ones share the last bar

Counts = npt.NDArray[np.float64]


def name(label: str) -> str:
    """name("wrong_script") -> "wrong script"."""
    return label.replace("_", " ")


def waterfall(read: int, drops: Sequence[tuple[str, int]], alt: str) -> Markup:
    """From read to kept: a falling bar for each reason, in the given order."""
    left = [read - gone for gone in accumulate((pairs for _, pairs in drops), initial=0)]
    few = read - left[-1] < FEW * read
    begin = math.floor(read - 1.3 * (read - left[-1])) if few else 0
    bars = [
        ("read", begin, read, figure(read), BLUE),
        *((name(reason), left[i + 1], left[i], figure(pairs, MINUS), ORANGE) for i, (reason, pairs) in enumerate(drops)),
        ("kept", begin, left[-1], figure(left[-1]), BLUE),
    ]

    def draw(axes: "charts.Axes") -> None:
        charts.bars(axes, bars)
        for row in [row for row, (_, start, *_) in enumerate(bars) if begin and start == begin]:
            for place in (0.04, 0.06):  # a mark across a bar that does not begin where it is drawn from
                across = [place, place + 0.02], [row + 0.42, row - 0.42]
                axes.plot(*across, color=INK, linewidth=1.2, clip_on=False, transform=axes.get_yaxis_transform())
        rows = np.arange(len(left))
        axes.vlines(left, rows + 0.31, rows + 0.69, color=INK, linewidth=0.8)
        axes.set(xlim=(begin, max(begin + 1, read)))
        axes.set_xlabel("pairs left" + (" (the axis does not begin at zero)" if begin else ""))
        count_axis(axes.xaxis)

    height = 0.28 * len(bars) + 0.6
    return chart(draw, "waterfall", alt, height, (0.26, 0.52 / height, 0.58, 1 - 0.6 / height))


def piece_histogram(counts: Sequence[Sequence[int]], alt: str) -> Markup:
    """Pairs by pieces, in even steps; what is longer than nearly all shares the last bar."""
    bounds = np.array([*PIECE_LENGTHS, math.inf])
    ends = [_first_covering(side) for side in counts]
    cut = min(bounds[max(ends) + 1], bounds[-2])
    width = 4 if cut <= 128 else 32  # the steps of PIECE_LENGTHS
    cut = width * math.ceil(cut / width)
    place = np.minimum(bounds[:-1], cut).astype(int) // width
    sides = [np.bincount(place, side, cut // width + 1).astype(np.float64) for side in counts]
    longer = any(side[-1] for side in sides)
    edges = np.arange(len(sides[0]) + 1.0) * width
    step = width * math.ceil(cut / 6 / width)
    ticks = [(float(at), str(at)) for at in range(0, cut - step // 2, step)]
    ticks += [(cut + width / 2, f"≥{THIN_SPACE}{cut}")] if longer else [(float(cut), str(cut))]
    if not longer:
        sides, edges = [side[:-1] for side in sides], edges[:-1]
    return _histogram(edges, sides, ticks, "pieces", alt)


def character_histogram(counts: Sequence[Sequence[int]], alt: str) -> Markup:
    """Pairs by characters, in steps that grow by a quarter and so look even on this axis. The first bar holds all that is shorter."""
    sides = [np.array(side, dtype=np.float64) for side in counts]
    used = np.flatnonzero(sides[0] + sides[1])
    last = int(used[-1]) + 1 if len(used) else 1
    edges = np.log10([LENGTHS[1] / 1.25, *LENGTHS[1:], LENGTHS[-1] * 1.25][: last + 1])
    ticks = [(math.log10(n), f"{n}") for n in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)]
    inside = [(at, label) for at, label in ticks if at <= edges[-1]]
    return _histogram(edges, [side[:last] for side in sides], inside, "characters", alt)


def _first_covering(counts: Sequence[int]) -> int:
    running = list(accumulate(counts))
    return next(i for i, count in enumerate(running) if count >= COVERED * running[-1])


def _histogram(edges: Counts, sides: Sequence[Counts], ticks: Sequence[tuple[float, str]], unit: str, alt: str) -> Markup:
    """Source as a surface, target as a line: the two differ in shape too, not in colour alone."""

    def draw(axes: "charts.Axes") -> None:
        axes.stairs(sides[0], edges, fill=True, color=BLUE, alpha=0.75, label="source")
        axes.stairs(sides[1], edges, color=ORANGE, linewidth=2.2, label="target")
        axes.set(xlim=(edges[0], edges[-1]), ylim=(0, max(1.0, 1.06 * max(side.max() for side in sides))))
        axes.set_xticks([at for at, _ in ticks], [label for _, label in ticks])
        axes.xaxis.set_minor_locator(charts.ticker.NullLocator())
        axes.set(xlabel=unit, ylabel="pairs")
        count_axis(axes.yaxis)
        axes.legend(frameon=False, loc="upper right")

    return chart(draw, unit, alt, 2.8, (0.19, 0.2, 0.79, 0.76))
