"""Figures are written as people read them: 166 241, 17.8 %, 7.6 M, 1.9 GB, 4 h 38 min, 7,490 USD."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

THIN_SPACE: Final = "\u202f"
SCALES: Final = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
LEVELS: Final = "▁▂▃▄▅▆▇█"


class Figure(str):
    """A figure is a number as it is printed; tables align it to the right."""


def figure(number: int, sign: str = "") -> Figure:
    """figure(166241) -> "166 241", which no language reads as a decimal."""
    return Figure(sign + f"{number:,}".replace(",", THIN_SPACE))


def rough(value: float) -> str:
    """rough(0.123) -> "0.12"; rough(123.4) -> "123"."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def decimal(value: float | None, digits: int) -> Figure:
    """A dash where there is no number."""
    return Figure("-" if value is None else f"{value:.{digits}f}")


def share(part: float, whole: float) -> Figure:
    """Never rounds something to nothing, nor a part to the whole: share(5, 29000) -> "< 0.1 %"."""
    ratio = part / max(1, whole)
    if part and ratio < 0.0005:
        return Figure(f"<{THIN_SPACE}0.1{THIN_SPACE}%")
    if part < whole and ratio >= 0.9995:
        return Figure(f">{THIN_SPACE}99.9{THIN_SPACE}%")
    return hundredths(ratio)


def hundredths(ratio: float) -> Figure:
    """hundredths(0.178) -> "17.8 %"."""
    return Figure(f"{100 * ratio:.1f}{THIN_SPACE}%")


def short_figure(value: float, unit: str = "") -> Figure:
    """short_figure(7_600_000) -> "7.6 M"; short_figure(2.3e9, "B") -> "2.3 GB"."""
    for scale, letter in SCALES:
        if abs(value) >= scale:
            return Figure(f"{value / scale:.1f}{THIN_SPACE}{letter}{unit}")
    return Figure(f"{value:.0f}{THIN_SPACE}{unit}".rstrip(THIN_SPACE))


def time_taken(seconds: float) -> Figure:
    """A time that was measured: time_taken(16680) -> "4 h 38 min"; time_taken(845) -> "14 min 5 s"; time_taken(0.42) -> "0.4 s"."""
    if seconds < 10:
        return Figure(f"{seconds:.1f}{THIN_SPACE}s")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (0 if hours else rest, "s")]
    return Figure(" ".join(f"{number}{THIN_SPACE}{unit}" for number, unit in parts if number))


def sparkline(values: Sequence[float], width: int = 32) -> str:
    """A curve in one line of text: sparkline([1, 2, 3, 4, 5, 6, 7, 8]) -> "▁▂▃▄▅▆▇█"."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ""
    size = min(width, len(known))
    cuts = [len(known) * i // size for i in range(size + 1)]
    means = [sum(known[a:b]) / (b - a) for a, b in pairwise(cuts)]
    low, high = min(means), max(means)
    return "".join(LEVELS[round((mean - low) / (high - low) * 7)] if high > low else LEVELS[0] for mean in means)


def short(number: float) -> str:
    """short(7_600_000) -> "7.6 M"."""
    for scale, letter in SCALES[2:]:
        if number >= scale:
            return f"{number / scale:.1f} {letter}"
    return f"{number:.0f}"


def size(number: float) -> str:
    """size(1.9e9) -> "1.9 GB"."""
    for scale, letter in SCALES:
        if number >= scale:
            return f"{number / scale:.1f} {letter}B" if number < 10 * scale else f"{number / scale:,.0f} {letter}B"
    return f"{number:.0f} B"


def round_figure(number: float) -> str:
    """round_figure(6_454_581) -> "6,450,000": no more digits than are meant."""
    if number <= 0:
        return f"{number:g}"
    digits = max(0, math.floor(math.log10(number)) - 2)
    return f"{round(number, -digits):,.0f}"


def money(number: float) -> str:
    """money(7_487.99) -> "7,490 USD"."""
    return f"{number:,.2f} USD" if number < 100 else f"{round_figure(number)} USD"


def seconds(number: float) -> str:
    return f"{1000 * number:.3g} ms" if number < 1 else f"{number:.3g} s"


def duration(number: float) -> str:
    """A time that is expected, and so no more exact than that: duration(16_680) -> "4 h 38 min"; duration(845) -> "14 min"."""
    if number < 100:
        return f"{number:.3g} s" if number >= 1 else f"{number:.1g} s"
    minutes = round(number / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h" + (f" {minutes} min" if minutes else "")
    return f"{number / 86_400:,.1f} days"


def percent(ratio: float, digits: int = 1) -> str:
    """percent(0.011) -> "1.1 %"; never rounds something to nothing."""
    return "nothing" if ratio <= 0 else "< 0.1 %" if ratio < 0.0005 else f"{100 * ratio:.{digits}f} %"
