"""Functions write the figures of a plan as people read them: 7.6 M, 1.9 GB, 4 h 38 min, 7,490 USD."""

import math


def short(number: float) -> str:
    """short(7_600_000) -> "7.6 M"."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.1f} {letter}"
    return f"{number:.0f}"


def size(number: float) -> str:
    """size(1.9e9) -> "1.9 GB"."""
    for unit, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.1f} {letter}B" if number < 10 * unit else f"{number / unit:,.0f} {letter}B"
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
    """duration(16_680) -> "4 h 38 min"."""
    if number < 100:
        return f"{number:.3g} s" if number >= 1 else f"{number:.1g} s"
    minutes = round(number / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h" + (f" {minutes} min" if minutes else "")
    return f"{number / 86_400:,.1f} days"


def percent(share: float, digits: int = 1) -> str:
    """percent(0.011) -> "1.1 %"; never rounds something to nothing."""
    return "nothing" if share <= 0 else "< 0.1 %" if share < 0.0005 else f"{100 * share:.{digits}f} %"
