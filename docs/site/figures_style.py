"""What all figures share: colours that can be read in the light and in the dark, and the two translators that they look into."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limelight.inspection.tracing.live_trace import LiveTrace
from limelight.translator.translate import Translator
from sources import ROOT

INK = "#010203"  # becomes the colour of the text
SPOT, SECOND, THIRD = "#c58f00", "#4a7fb5", "#a65b8f"
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": "cycler('color', ['#c58f00', '#4a7fb5', '#a65b8f', '#5a9a68'])",
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
SENTENCE = "three seven one"


@dataclass(frozen=True)
class Drawn:
    """`caption` is HTML; `says` is for those who do not see."""

    figure: Figure
    caption: str
    says: str


@cache
def translator() -> Translator:
    """The small translator of number words that the tests use: 2+2 layers, four heads."""
    return Translator.load(ROOT / "tests" / "bundles" / "format-1", threads=1, engine="torch")


@cache
def trace() -> LiveTrace:
    return translator().trace(SENTENCE, stages=True)


def figure(width: float, height: float, columns: int = 1, rows: int = 1, **more: Any) -> tuple[Figure, list[Axes]]:
    made = Figure(figsize=(width, height), layout="constrained")
    made.get_layout_engine().set(w_pad=0.1)  # type: ignore[union-attr]
    axes = made.subplots(rows, columns, squeeze=False, **more)
    return made, list(axes.flatten())


def matrix(
    axes: Axes,
    values: npt.NDArray[Any],
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    numbers: str | None = None,
    **scale: Any,
) -> Any:
    """A matrix as squares, its rows from the top; with `numbers`, a format, each has its number in it."""
    drawn = axes.pcolormesh(values, cmap="cividis", edgecolors="none", **scale)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=45, ha="left", rotation_mode="anchor")
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.xaxis.tick_top()
    if numbers:
        middle = (np.nanmin(values[np.isfinite(values)]) + np.nanmax(values[np.isfinite(values)])) / 2
        for (row, column), value in np.ndenumerate(values):
            text = numbers.format(value) if np.isfinite(value) else "−∞"  # noqa: RUF001
            dark = np.isfinite(value) and value < middle
            axes.text(
                column + 0.5,
                row + 0.5,
                text,
                ha="center",
                va="center",
                fontsize=7,
                color="#ffffff" if dark else "#000000",
            )
    return drawn
