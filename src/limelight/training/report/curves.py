"""Curves draw losses, scores, learning rate, gradient and speed of a run as SVG. Like the pictures of a corpus they stand inside the page.

A long run has more steps than a picture has pixels. A raw curve keeps the lowest and the highest point of each stretch, so that a
spike of one step is still seen; what is drawn are points of `metrics.jsonl`, none is made up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

from limelight.corpus.report import pictures
from limelight.corpus.report.markup import figure
from limelight.corpus.report.pictures import BLUE, INK, LOOK, ORANGE, WIDTH
from limelight.training.report.run_record import RunRecord

try:  # an extra, as for the corpus
    import matplotlib.style
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
except ModuleNotFoundError:
    INSTALLED = False
else:
    INSTALLED = True

MOST: Final = 500  # points of a curve
SMOOTHED_OVER: Final = 50  # a point of the smoothed curve is the mean of a fiftieth of the steps
GREEN: Final = "#2a9d6f"
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class ChartLine:
    """A chart line is one line of a picture; `look` are matplotlib's words for it."""

    points: Points
    label: str | None
    look: dict[str, Any]


def curves(record: RunRecord) -> list[tuple[str, str]]:
    """Each picture with its caption; none where nothing was recorded or nothing can be drawn."""
    if not INSTALLED:
        return []
    drawn = [_losses(record), _qualities(record), _rates(record), _gradients(record), _speeds(record)]
    return [(svg, caption) for svg, caption in drawn if svg]


def _losses(record: RunRecord) -> tuple[str, str]:
    raw: Points = [(step.step, step.nll) for step in record.steps]
    valid: Points = [(each.step, each.nll) for each in record.validations]
    lines = [
        ChartLine(thin(raw), "training", {"color": BLUE, "alpha": 0.4, "linewidth": 0.8}),
        ChartLine(_evenly(smooth(raw)), "training, smoothed", {"color": BLUE, "linewidth": 2}),
        ChartLine(_evenly(valid), "validation", {"color": ORANGE, "linewidth": 2, **_dots(valid)}),
    ]
    alt = "Loss over the steps." + _ends("training, smoothed", smooth(raw), 2) + _ends("validation", valid, 2)
    caption = (
        "Negative log-likelihood of a target piece, in nats; of training with dropout, without label smoothing. "
        "The first steps stand above the picture."
    )
    return _chart(record, "loss", lines, alt, top=_soon(smooth(raw), valid)), caption


def _soon(training: Points, valid: Points) -> float | None:
    """Where the picture of the losses ends: the first steps, high above all others, would press the rest into a line."""
    soon = [y for _, y in training[len(training) // 20 :][:1]] + [y for _, y in valid if math.isfinite(y)]
    return 1.05 * max(soon) if soon else None


def _qualities(record: RunRecord) -> tuple[str, str]:
    chrf: Points = [(each.step, each.chrf) for each in record.validations]
    bleu: Points = [(each.step, each.bleu) for each in record.validations]
    lines = [
        ChartLine(_evenly(chrf), "chrF", {"color": BLUE, "linewidth": 2, **_dots(chrf)}),
        ChartLine(_evenly(bleu), "BLEU", {"color": ORANGE, "linewidth": 2, "linestyle": "--", **_dots(bleu)}),
    ]
    alt = "Scores of the validations." + _ends("chrF", chrf, 1) + _ends("BLEU", bleu, 1)
    return _chart(record, "score", lines, alt), "Scores of the translated validation set."


def _rates(record: RunRecord) -> tuple[str, str]:
    points: Points = [(step.step, step.learning_rate) for step in record.steps]
    highest = max((rate for _, rate in points), default=0.0)
    lines = [ChartLine(thin(points), None, {"color": BLUE, "linewidth": 2})]
    return _chart(
        record, "learning rate", lines, f"Learning rate over the steps, at most {highest:g}."
    ), "Learning rate."


def _gradients(record: RunRecord) -> tuple[str, str]:
    points: Points = [(step.step, step.gradient_norm) for step in record.steps if step.gradient_norm > 0]
    lines = [
        ChartLine(thin(points), None, {"color": BLUE, "alpha": 0.4, "linewidth": 0.8}),
        ChartLine(_evenly(smooth(points)), None, {"color": BLUE, "linewidth": 2}),
    ]
    clip = record.recipe.optimizer.clip if record.recipe else None
    alt = "Norm of the gradient over the steps." + _ends("smoothed", smooth(points), 2)
    bound = "" if clip is None else f" The line is the bound, {clip:g}, to which a longer one is shortened."
    svg = _chart(record, "gradient norm", lines, alt, logarithmic=True, bound=clip)
    return svg, f"Norm of the gradient before clipping, raw and smoothed, on a logarithmic axis.{bound}"


def _speeds(record: RunRecord) -> tuple[str, str]:
    points: Points = [
        (step.step, (step.source_pieces + step.target_pieces) / step.seconds) for step in record.steps if step.seconds > 0
    ]  # fmt: skip
    lines = [
        ChartLine(thin(points), None, {"color": BLUE, "alpha": 0.4, "linewidth": 0.8}),
        ChartLine(_evenly(smooth(points)), None, {"color": BLUE, "linewidth": 2}),
    ]
    alt = "Source and target pieces per second over the steps." + _ends("smoothed", smooth(points), 0)
    svg = _chart(record, "pieces/s", lines, alt, from_zero=True)
    return svg, "Source and target pieces per second, data included, raw and smoothed."


def thin(points: Points, most: int = MOST) -> Points:
    """Keep at most `most` points, in their order: of each stretch its lowest and its highest. Those that are no numbers are left out."""
    known = [point for point in points if math.isfinite(point[1])]
    if len(known) <= most:
        return known
    stretches = most // 2
    bounds = [len(known) * i // stretches for i in range(stretches + 1)]
    kept: Points = []
    for start, end in pairwise(bounds):
        stretch = known[start:end]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept += sorted(ends)
    return kept


def _evenly(points: Points, most: int = MOST) -> Points:
    """Keep at most `most` points of a curve without spikes, the first and the last among them."""
    known = [point for point in points if math.isfinite(point[1])]
    if len(known) <= most:
        return known
    return [known[round(i * (len(known) - 1) / (most - 1))] for i in range(most)]


def smooth(points: Points) -> Points:
    """Mean over as many neighbours on either side. One that looks back alone would hang behind where the curve is steep."""
    known = [point for point in points if math.isfinite(point[1])]
    reach = len(known) // (2 * SMOOTHED_OVER)
    sums = [0.0, *accumulate(y for _, y in known)]
    result: Points = []
    for i, (x, _) in enumerate(known):
        aside = min(reach, i, len(known) - 1 - i)
        result.append((x, (sums[i + aside + 1] - sums[i - aside]) / (2 * aside + 1)))
    return result


def _chart(
    record: RunRecord,
    unit: str,
    lines: Sequence[ChartLine],
    alt: str,
    logarithmic: bool = False,
    from_zero: bool = False,
    bound: float | None = None,
    top: float | None = None,
) -> str:
    lines = [line for line in lines if line.points]
    if not lines:
        return ""
    with matplotlib.style.context(["default", LOOK]):
        picture = Figure(figsize=(WIDTH, 3.0))
        axes = picture.add_axes((0.15, 0.17, 0.82, 0.71))
        for line in lines:
            xs, ys = zip(*line.points, strict=True)
            axes.plot(xs, ys, label=line.label, **line.look)
        if logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
            axes.yaxis.set_minor_formatter(NullFormatter())
        if bound is not None:
            axes.axhline(bound, color=ORANGE, linewidth=1)
        if from_zero:
            axes.set_ylim(bottom=0)
        if top is not None:
            axes.set_ylim(top=top)
        axes.set_xlim(0, max(1, record.last_step))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(round(value))))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _format_tick(value)))
        axes.set(xlabel="step", ylabel=unit)
        _mark(axes, record)
        if any(line.label for line in lines):
            axes.legend(frameon=False, loc="best")
        return pictures.svg(picture, f"run {unit}", alt)


def _mark(axes: "Axes", record: RunRecord) -> None:
    """What happened, above the curves: ★ the best validation, ↻ where the run went on after a stop, × steps that were left out."""
    above: Any = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom", "clip_on": False}
    if record.best:
        axes.axvline(record.best.step, color=GREEN, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.text(record.best.step, 1.02, "★", color=GREEN, **above)
    for notice in record.notices:
        if notice.kind == "resumed":
            axes.axvline(notice.step, color=INK, linewidth=0.8, linestyle=":")
            axes.text(notice.step, 1.02, "↻", color=INK, **above)
    skipped = [step.step for step in record.skipped]
    if skipped:
        shown = [
            skipped[round(i * (len(skipped) - 1) / max(1, min(MOST, len(skipped)) - 1))]
            for i in range(min(MOST, len(skipped)))
        ]
        look: Any = {"transform": axes.get_xaxis_transform(), "clip_on": False, "zorder": 5}
        axes.plot(shown, [0.0] * len(shown), linestyle="", marker="x", color=ORANGE, markersize=6, **look)


def _dots(points: Points) -> dict[str, Any]:
    """Each validation as a dot, as long as they do not run together; a single one would not be seen without."""
    return {"marker": "o", "markersize": 4} if len(points) <= 40 else {}


def _format_tick(value: float) -> str:
    return figure(round(value)) if value >= 1000 else f"{value:g}"


def _ends(name: str, points: Points, digits: int) -> str:
    if not points:
        return ""
    return f" {name}: {points[0][1]:.{digits}f} at step {points[0][0]:.0f}, {points[-1][1]:.{digits}f} at step {points[-1][0]:.0f}."


def sparkline(values: Sequence[float], width: int = 32) -> str:
    """A curve in one line of text: sparkline([1, 2, 3, 4, 5, 6, 7, 8]) -> "▁▂▃▄▅▆▇█"."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ""
    size = min(width, len(known))
    cuts = [len(known) * i // size for i in range(size + 1)]
    means = [sum(known[a:b]) / (b - a) for a, b in pairwise(cuts)]
    low, high = min(means), max(means)
    levels = "▁▂▃▄▅▆▇█"
    return "".join(levels[round((mean - low) / (high - low) * 7)] if high > low else levels[0] for mean in means)
