"""Draws docs/scale.svg from the figures that `python benchmarks/corpus.py run ...` prints, one JSON object a line, on standard input."""

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure


def main() -> None:
    runs = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    speed, memory = figure.subplots(1, 2)
    for axes, key, title, scale in (
        (speed, "seconds", "seconds", 1),
        (memory, "peak_megabytes", "peak memory, GB", 1000),
    ):
        for engine in sorted({run["engine"] for run in runs}):
            points = sorted((run["pairs"] / 1e6, run[key] / scale) for run in runs if run["engine"] == engine and run[key])
            axes.plot(*zip(*points, strict=True), marker="o", label=engine)
        axes.set(xlabel="million pairs", title=title, xlim=(0, None), ylim=(0, None))
        axes.legend()
    figure.savefig(Path(__file__).parents[1] / "docs" / "scale.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
