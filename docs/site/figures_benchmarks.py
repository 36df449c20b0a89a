"""What `benchmarks/headline.py` measured, as bars: one for each contestant, with the range of its rounds."""

import json
import statistics
from functools import cache
from typing import Any

from matplotlib.axes import Axes

from figures_style import SECOND, SPOT, Drawn, figure
from sources import ROOT

RESULTS = ROOT / "benchmarks" / "results"


@cache
def measured(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return found


def training_speed() -> Drawn:
    found = measured("training")
    made, [axes] = figure(6, 0.4 * len(found["rounds"]) + 0.9)
    bars(axes, found["rounds"], found["unit"])
    return Drawn(made, f"Training, {found['model']} in {found['numbers']}. {where(found)}", spoken(found["rounds"]))


def decoding_speed() -> Drawn:
    found = measured("decoding")
    made, both = figure(9, 3, columns=2)
    for axes, (beam, rounds) in zip(both, found["rounds"].items(), strict=True):
        bars(axes, rounds, found["unit"])
        axes.set_title("greedy" if beam == "beam 1" else beam)
    both[1].set_yticklabels([])
    return Drawn(made, f"Decoding, {found['model']}. {where(found)}", spoken(found["rounds"]["beam 4"]))


def bars(axes: Axes, rounds: dict[str, list[float]], unit: str) -> None:
    names = list(rounds)[::-1]
    middle = [statistics.median(rounds[name]) for name in names]
    apart = [[m - min(rounds[name]), max(rounds[name]) - m] for m, name in zip(middle, names, strict=True)]
    colours = [SPOT if name.lower().startswith("limelight") else SECOND for name in names]
    axes.barh(names, middle, color=colours, xerr=list(zip(*apart, strict=True)), error_kw={"ecolor": "#888888", "capsize": 3})
    axes.set_xlabel(unit)


def where(found: dict[str, Any]) -> str:
    made = found["made"]
    return f"{made['cores']} cores of {made['processor']}, shared, {made['date']}; bars are medians, lines ranges of the rounds."


def spoken(rounds: dict[str, list[float]]) -> str:
    return "; ".join(f"{name} {statistics.median(values):.0f}" for name, values in rounds.items())
