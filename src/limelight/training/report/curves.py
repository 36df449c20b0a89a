"""Curves show losses, scores, learning rate, gradient and speed of a run: as pictures, and in figures."""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from markupsafe import Markup

from limelight.reporting import charts
from limelight.reporting.blocks import Block, Cell, Code, Details, Pictures, Section, Table
from limelight.reporting.charts import BLUE, GREEN, INK, ORANGE, chart, count_axis
from limelight.reporting.units import Figure, decimal, figure, sparkline
from limelight.training.report.run_record import RunRecord

MOST: Final = 500  # points of a curve
SMOOTHED_OVER: Final = 50  # a point of the smoothed curve is the mean of a fiftieth of the steps
MOST_EVENTS: Final = 100
HAPPENED: Final = ("skipped", "replanned", "resumed", "stopped", "note")
Curve = list[tuple[float, float]]
Line = tuple[Curve, str | None, dict[str, Any]]  # its label, and matplotlib's words for its look


def curves(record: RunRecord) -> Section:
    if not record.steps and not record.validations:
        return Section("Curves", ["There is nothing to draw: no step was recorded."])
    told = "Over the steps. ★ is the best validation"
    told += ", ↻ where the run went on after a stop" if any(each.kind == "resumed" for each in record.notices) else ""
    told += ", ✕ a step that was left out" if record.skipped else ""
    drawn = Pictures(draw_curves(record)) if charts.INSTALLED else charts.MISSING
    blocks: list[Block] = [f"{told}.", drawn, Details("The curves in figures", [_in_figures(record)])]
    happened = [notice for notice in record.notices if notice.kind in HAPPENED]
    if happened:
        rows = [[str(figure(each.step)), f"{each.kind}: {each.text}"] for each in happened[:MOST_EVENTS]]
        more = f", the first {MOST_EVENTS} of them" if len(happened) > MOST_EVENTS else ""
        blocks.append(Details(f"What happened: {len(happened)}{more}", [Table("Events", ["step", "what"], rows)]))
    return Section("Curves", blocks)


def _read_curves(record: RunRecord) -> dict[str, Curve]:
    steps, valids = record.steps, record.validations
    found: dict[str, Curve] = {
        "training loss": [(each.step, each.nll) for each in steps],
        "validation loss": [(each.step, each.nll) for each in valids],
        "BLEU": [(each.step, each.bleu) for each in valids],
        "chrF": [(each.step, each.chrf) for each in valids],
        "learning rate": [(each.step, each.learning_rate) for each in steps],
        "gradient norm": [(each.step, each.gradient_norm) for each in steps],
        "pieces/s": [(s.step, (s.source_pieces + s.target_pieces) / s.seconds) for s in steps if s.seconds > 0],
    }
    return {name: [point for point in points if math.isfinite(point[1])] for name, points in found.items()}


DIGITS: Final = {"BLEU": 1, "chrF": 1, "pieces/s": 0}


def _in_figures(record: RunRecord) -> Table:
    def number(value: float, name: str) -> Figure:
        if name == "learning rate":
            return Figure(f"{value:.3g}")
        digits = DIGITS.get(name, 3)
        return decimal(value, digits) if digits else figure(round(value))

    rows: list[list[Cell]] = []
    for name, points in _read_curves(record).items():
        if values := [value for _, value in points]:
            ends = (values[0], values[-1], min(values), max(values))
            rows.append([name, *(number(value, name) for value in ends), Code(sparkline(values))])
    return Table("Curves", ["curve", "first", "last", "lowest", "highest", "shape"], rows)


def draw_curves(record: RunRecord) -> list[tuple[Markup, str]]:
    """Each picture with its caption; none where nothing was recorded or nothing can be drawn."""
    if not charts.INSTALLED:
        return []
    found = _read_curves(record)
    losses, valid, chrf, bleu = (found[name] for name in ("training loss", "validation loss", "chrF", "BLEU"))
    norms, speeds = [point for point in found["gradient norm"] if point[1] > 0], found["pieces/s"]
    highest = max((rate for _, rate in found["learning rate"]), default=0.0)
    clip = record.recipe.optimizer.clip if record.recipe else None
    bound = "" if clip is None else f" The line is the bound, {clip:g}, to which a longer one is shortened."
    smooth_loss, smooth_norm, smooth_speed = smooth(losses), smooth(norms), smooth(speeds)
    of_loss = _ends("training, smoothed", smooth_loss, 2) + _ends("validation", valid, 2)
    drawn = [
        (
            _draw(record, "loss", f"Loss over the steps.{of_loss}", [
                *_raw_and_smooth(losses, "training"), (_evenly(valid), "validation", {"color": ORANGE, **_dots(valid)}),
            ], top=_soon(smooth_loss, valid)),
            "Negative log-likelihood of a target piece, in nats; of training with dropout, without label smoothing. "
            "The first steps stand above the picture.",
        ),
        (
            _draw(record, "score", f"Scores of the validations.{_ends('chrF', chrf, 1)}{_ends('BLEU', bleu, 1)}", [
                (_evenly(chrf), "chrF", {"color": BLUE, **_dots(chrf)}),
                (_evenly(bleu), "BLEU", {"color": ORANGE, "linestyle": "--", **_dots(bleu)}),
            ]),
            "Scores of the translated validation set.",
        ),
        (
            _draw(record, "learning rate", f"Learning rate over the steps, at most {highest:g}.",
                  [(thin(found["learning rate"]), None, {"color": BLUE})]),
            "Learning rate.",
        ),
        (
            _draw(record, "gradient norm", f"Norm of the gradient over the steps.{_ends('smoothed', smooth_norm, 2)}",
                  _raw_and_smooth(norms), logarithmic=True, bound=clip),
            f"Norm of the gradient before clipping, raw and smoothed, on a logarithmic axis.{bound}",
        ),
        (
            _draw(record, "pieces/s", f"Source and target pieces per second over the steps.{_ends('smoothed', smooth_speed, 0)}",
                  _raw_and_smooth(speeds), bottom=0),
            "Source and target pieces per second, data included, raw and smoothed.",
        ),
    ]  # fmt: skip
    return [(svg, caption) for svg, caption in drawn if svg]


def _raw_and_smooth(points: Curve, label: str | None = None) -> list[Line]:
    return [
        (thin(points), label, {"color": BLUE, "alpha": 0.4, "linewidth": 0.8}),
        (_evenly(smooth(points)), label and f"{label}, smoothed", {"color": BLUE}),
    ]


def _soon(training: Curve, valid: Curve) -> float | None:
    """Where the picture of the losses ends: the first steps, high above all others, would press the rest into a line."""
    soon = [y for _, y in training[len(training) // 20 :][:1]] + [y for _, y in valid]
    return 1.05 * max(soon) if soon else None


def thin(points: Curve, most: int = MOST) -> Curve:
    """Keep at most `most` points, in their order: of each stretch its lowest and its highest. Those that are no numbers are left out."""
    known = [point for point in points if math.isfinite(point[1])]
    if len(known) <= most:
        return known
    stretches = most // 2
    bounds = [len(known) * i // stretches for i in range(stretches + 1)]
    kept: Curve = []
    for start, end in pairwise(bounds):
        stretch = known[start:end]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept += sorted(ends)
    return kept


def _evenly(points: Sequence[Any], most: int = MOST) -> list[Any]:
    """Keep at most `most` points of a curve without spikes, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]


def smooth(points: Curve) -> Curve:
    """Mean over as many neighbours on either side. One that looks back alone would hang behind where the curve is steep."""
    known = [point for point in points if math.isfinite(point[1])]
    reach = len(known) // (2 * SMOOTHED_OVER)
    sums = [0.0, *accumulate(y for _, y in known)]
    result: Curve = []
    for i, (x, _) in enumerate(known):
        aside = min(reach, i, len(known) - 1 - i)
        result.append((x, (sums[i + aside + 1] - sums[i - aside]) / (2 * aside + 1)))
    return result


def _draw(
    record: RunRecord,
    unit: str,
    alt: str,
    lines: Sequence[Line],
    logarithmic: bool = False,
    bottom: float | None = None,
    top: float | None = None,
    bound: float | None = None,
) -> Markup:
    def draw(axes: "charts.Axes") -> None:
        for points, label, look in lines:
            if points:
                axes.plot(*zip(*points, strict=True), label=label, **{"linewidth": 2, **look})
        if logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(charts.ticker.LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
            axes.yaxis.set_minor_formatter(charts.ticker.NullFormatter())
        if bound is not None:
            axes.axhline(bound, color=ORANGE, linewidth=1)
        axes.set_ylim(bottom=bottom, top=top)
        axes.set_xlim(0, max(1, record.last_step))
        count_axis(axes.xaxis, 5)
        axes.yaxis.set_major_formatter(lambda value, _: figure(round(value)) if value >= 1000 else f"{value:g}")
        axes.set(xlabel="step", ylabel=unit)
        _mark(axes, record)
        if any(label for points, label, _ in lines if points):
            axes.legend(frameon=False, loc="best")

    return chart(draw, f"run {unit}", alt) if any(points for points, *_ in lines) else Markup("")


def _mark(axes: "charts.Axes", record: RunRecord) -> None:
    """What happened, above the curves: ★ the best validation, ↻ where the run went on after a stop, × steps that were left out."""
    above: Any = {"transform": axes.get_xaxis_transform(), "clip_on": False}
    middle: Any = {**above, "ha": "center", "va": "bottom"}
    if record.best:
        axes.axvline(record.best.step, color=GREEN, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.text(record.best.step, 1.02, "★", color=GREEN, **middle)
    for notice in record.notices:
        if notice.kind == "resumed":
            axes.axvline(notice.step, color=INK, linewidth=0.8, linestyle=":")
            axes.text(notice.step, 1.02, "↻", color=INK, **middle)
    if shown := _evenly([step.step for step in record.skipped]):
        axes.plot(shown, [0.0] * len(shown), linestyle="", marker="x", color=ORANGE, markersize=6, zorder=5, **above)


def _dots(points: Curve) -> dict[str, Any]:
    """Each validation as a dot, as long as they do not run together; a single one would not be seen without."""
    return {"marker": "o", "markersize": 4} if len(points) <= 40 else {}


def _ends(name: str, points: Curve, digits: int) -> str:
    if not points:
        return ""
    return f" {name}: {points[0][1]:.{digits}f} at step {points[0][0]:.0f}, {points[-1][1]:.{digits}f} at step {points[-1][0]:.0f}."
