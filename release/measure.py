"""What an installed Limelight weighs, by part, and how fast it starts. Run with the python of the environment that is measured.

python release/measure.py   ->  {"megabytes": {"torch": 640.1, ...}, "total": 1021.3, "seconds": {"import limelight": 0.03, ...}}
"""

import json
import statistics
import subprocess
import sys
import time
from importlib.metadata import distributions
from pathlib import Path

RUNS = 7
SMALLEST = 5.0  # megabytes; what is less is one line
TOOLS = ("pip", "setuptools", "wheel")


def sizes() -> dict[str, float]:
    """Bytes that the files of each package occupy, compiled ones included, largest first."""
    found: dict[str, float] = {}
    for package in distributions():
        files = {Path(str(package.locate_file(file))).resolve() for file in package.files or ()}
        found[package.metadata["Name"]] = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
    large = {
        name: round(size, 1) for name, size in sorted(found.items(), key=lambda each: -each[1]) if size >= SMALLEST and name not in TOOLS
    }
    rest = sum(size for name, size in found.items() if name not in large and name not in TOOLS)
    return {**large, "all others": round(rest, 1)}


def seconds(words: list[str]) -> float:
    """The median of some runs, after one that warms the disk."""
    taken = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
        taken.append(time.perf_counter() - began)
    return round(statistics.median(taken[1:]), 3)


if __name__ == "__main__":
    parts = sizes()
    times = {
        "python alone": seconds(["-c", "pass"]),
        "import limelight": seconds(["-c", "import limelight"]),
        "limelight --help": seconds(["-m", "limelight", "--help"]),
    }
    sys.stdout.write(json.dumps({"megabytes": parts, "total": round(sum(parts.values()), 1), "seconds": times}, indent=1) + "\n")
