"""Charts show a plan as SVG: memory by part, sizes by loss and time, time by devices, loss by time or money."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from limelight.reporting import charts
from limelight.reporting.charts import BLUE, INK, ORANGE, chart
from limelight.reporting.units import duration, money, size

if TYPE_CHECKING:
    from limelight.planning.options import CostCurve
    from limelight.training.forecast.forecast import Forecast

BOX = (0.16, 0.18, 0.77, 0.77)
# Times that people think in, for an axis of time.
MINUTE, HOUR, DAY = 60, 3_600, 86_400
TIMES = (
    *(1, 2, 5, 10, 30),
    *(number * MINUTE for number in (1, 2, 5, 10, 30)),  # 20 would stand too near to 30
    *(number * HOUR for number in (1, 2, 6, 12)),
    *(number * DAY for number in (1, 2, 7, 30, 90, 365, 3_650, 36_500)),
)
MOST_TICKS = 6


def draw_pictures(outlook: "Forecast", curve: "CostCurve") -> list[tuple[Markup, str]]:
    made = [_memory(outlook), _devices(outlook, curve), _frontier(outlook, curve)]
    return [(svg, caption) for svg, caption in made if svg]


def _memory(o: "Forecast") -> tuple[Markup, str]:
    parts = [(name, value) for name, value in o.peak.parts.items() if value > 0]
    total, room = size(o.peak.total), size(o.question.device.memory)
    alt = f"Memory by part: {', '.join(f'{name} {size(value)}' for name, value in parts)}; {total} of {room}."

    def draw(axes: "charts.Axes") -> None:
        charts.bars(axes, [(name, 0.0, value, size(value), BLUE) for name, value in parts])
        axes.set_xlabel("bytes at the peak")
        axes.xaxis.set_major_formatter(lambda value, _: size(value) if value else "0")
        axes.xaxis.set_major_locator(charts.ticker.MaxNLocator(4))

    height = 0.28 * len(parts) + 0.75
    svg = chart(draw, "plan memory", alt, height, (0.2, 0.5 / height, 0.62, 1 - 0.6 / height))
    each = " of each device" if o.question.count > 1 else ""
    told = f"{total} of {room}{each}, at a batch of the longest sentences. The most is held at: {o.peak.moment}."
    return svg, told


def _devices(o: "Forecast", curve: "CostCurve") -> tuple[Markup, str]:
    points = [point for point in curve.devices if point.option.fits]
    if len(points) < 2:
        return Markup(""), ""
    xs, ys = [point.count for point in points], [point.option.seconds for point in points]
    alt = "Time against devices: " + "; ".join(f"{x:,}: {duration(y)}" for x, y in zip(xs, ys, strict=True)) + "."

    def draw(axes: "charts.Axes") -> None:
        axes.plot(xs, [ys[0] * xs[0] / x for x in xs], color=INK, linewidth=0.8, linestyle=":", label="in proportion")
        axes.plot(xs, ys, color=BLUE, linewidth=2, marker="o", markersize=4, label="planned")
        if curve.useful in xs:
            last = [curve.useful], [ys[xs.index(curve.useful)]]
            axes.plot(*last, color=ORANGE, marker="o", markersize=9, linestyle="", label="the last that helps much")
        axes.set(xscale="log", yscale="log", xlabel=o.question.device.name, ylabel="time")
        axes.xaxis.set_major_locator(charts.ticker.FixedLocator([x for i, x in enumerate(xs) if i % 2 == 0 or len(xs) < 6]))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _time_axis(axes.yaxis, ys)
        axes.legend(frameon=False, loc="best")

    caption = (
        f"Until the model has nothing more to learn from the text, on more and more devices. Beyond {curve.useful:,} twice as many "
        "are less than 1.2 times as fast. Nothing of this was measured on such devices."
    )
    return chart(draw, "plan devices", alt, box=BOX), caption


def _frontier(o: "Forecast", curve: "CostCurve") -> tuple[Markup, str]:
    points = curve.frontier
    if len(points) < 2:
        return Markup(""), ""
    paid = points[0].option.cost is not None
    xs = [float(point.option.cost or 0) if paid else point.option.seconds for point in points]
    ys = [point.option.expected.loss for point in points]
    unit = "USD" if paid else "time"
    said = [money(x) if paid else duration(x) for x in xs]
    alt = f"Expected loss against {unit}: " + "; ".join(f"{x}: {y:.2f}" for x, y in zip(said, ys, strict=True)) + "."

    def draw(axes: "charts.Axes") -> None:
        axes.plot(xs, ys, color=BLUE, linewidth=2, marker="o", markersize=4)
        last = ""
        for x, y, point in zip(xs, ys, points, strict=True):
            if point.option.name != last:
                axes.annotate(point.option.name, (x, y), xytext=(4, 6), textcoords="offset points", color=INK)
                last = point.option.name
        chosen = o.chosen
        at = float(chosen.cost or 0) if paid else chosen.seconds
        axes.plot([at], [chosen.expected.loss], color=ORANGE, marker="o", markersize=9, linestyle="")
        axes.set(xscale="log", xlabel=unit, ylabel="expected loss")
        if paid:
            axes.xaxis.set_major_locator(charts.ticker.LogLocator(numticks=6))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.2g}" if value < 10 else f"{value:,.0f}")
            axes.xaxis.set_minor_formatter(charts.ticker.NullFormatter())
        else:
            _time_axis(axes.xaxis, [*xs, chosen.seconds])

    what = "money" if paid else "time"
    caption = f"What {what} buys, with the size that suits it. The orange dot is this plan."
    return chart(draw, "plan frontier", alt, box=BOX), caption


def _time_axis(axis: Any, values: Sequence[float]) -> None:
    inside = [at for at in TIMES if min(values) / 1.5 <= at <= max(values) * 1.5]
    axis.set_major_locator(charts.ticker.FixedLocator(inside[:: -(-len(inside) // MOST_TICKS)]))
    axis.set_minor_locator(charts.ticker.NullLocator())
    axis.set_major_formatter(lambda value, _: _round_time(value))


def _round_time(seconds: float) -> str:
    for unit, name in ((365 * DAY, "y"), (DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        if seconds >= unit:
            return f"{seconds / unit:,.0f} {name}"
    return f"{seconds:g} s"
