"""Branch coverage by room, against the floors of the project: 85 % of all, 95 % where a mistake is silent.

python benchmarks/coverage_gate.py                       all tests that CI runs, many minutes
python benchmarks/coverage_gate.py -- tests/decoding     these alone: a look at a room, no verdict on the rest
python benchmarks/coverage_gate.py --read FILE           judge a coverage.json that is there

Needs coverage (pip install coverage). Tests that start `limelight` in another process are followed there too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = "src/limelight/"
OVERALL = 85.0  # per cent
FLOORS = {"model/": 95.0, "decoding/": 95.0, "corpus/": 95.0, "training/checkpoints/": 95.0}
MARKERS = "not long and not gpu and not network"
SETTINGS = """\
[run]
branch = true
parallel = true
sigterm = true
source = {source}
data_file = {data}
patch = subprocess, _exit, fork
[report]
exclude_also =
    if TYPE_CHECKING:
    raise NotImplementedError
    @overload
    ^\\s*\\.\\.\\.$
"""


@dataclass(frozen=True)
class Count:
    """Lines and branches together, as coverage's own percentage counts them."""

    covered: int = 0
    possible: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.covered + other.covered, self.possible + other.possible)

    @property
    def percent(self) -> float:
        return 100 * self.covered / self.possible if self.possible else 100.0


def count(summary: Mapping[str, int]) -> Count:
    return Count(summary["covered_lines"] + summary["covered_branches"], summary["num_statements"] + summary["num_branches"])


def by_file(report: Mapping[str, Any]) -> dict[str, Count]:
    """{"model/attention.py": Count(...)}"""
    found = {}
    for path, each in report["files"].items():
        _, ours, inside = Path(path).as_posix().rpartition(PACKAGE)
        if ours:
            found[inside] = count(each["summary"])
    return found


def verdict(files: Mapping[str, Count]) -> tuple[list[str], list[str]]:
    """Lines to print, and what is below its floor."""
    lines, low = [], []
    rooms = {"all": ("", OVERALL), **{name: (name, floor) for name, floor in FLOORS.items()}}
    for name, (prefix, floor) in rooms.items():
        total = sum((each for path, each in files.items() if path.startswith(prefix)), Count())
        lines.append(f"{name:20} {total.percent:6.2f} %   floor {floor:.0f} %   {total.covered:,} of {total.possible:,}")
        if total.percent < floor:
            low.append(f"{name}: {total.percent:.2f} % is below {floor:.0f} %")
    worst = sorted(files.items(), key=lambda each: each[1].covered - each[1].possible)[:12]
    lines += ["", "most left uncovered:"]
    lines += [f"  {path:40} {each.percent:6.2f} %   {each.possible - each.covered} left" for path, each in worst]
    return lines, low


def measured(tests: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run the tests under coverage, and read what it found."""
    settings, data, written = folder / "coveragerc", folder / "data", folder / "coverage.json"
    settings.write_bytes(SETTINGS.format(source=ROOT / PACKAGE, data=data).encode())
    environment = {**os.environ, "COVERAGE_PROCESS_START": str(settings), "OMP_NUM_THREADS": "1"}
    cover = [sys.executable, "-m", "coverage"]
    marked = [] if tests else ["-m", MARKERS, "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    ran = subprocess.run([*cover, "run", f"--rcfile={settings}", "-m", "pytest", "-q", *marked, *tests], cwd=ROOT, env=environment)
    if ran.returncode > 1:  # 1: some test failed; what was covered is still so, and pytest said it
        sys.exit(f"pytest ended with code {ran.returncode}, and nothing was measured")
    for step in (["combine", "-q"], ["json", "-q", "-o", str(written)]):
        subprocess.run([*cover, step[0], f"--rcfile={settings}", *step[1:]], cwd=ROOT, env=environment, check=True)
    found: dict[str, Any] = json.loads(written.read_bytes())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--read", type=Path)
    parser.add_argument("--keep", type=Path, help="also write coverage.json here")
    parser.add_argument("tests", nargs="*")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = json.loads(asked.read.read_bytes()) if asked.read else measured(asked.tests, Path(folder))
    if asked.keep:
        asked.keep.write_bytes(json.dumps(report).encode())
    lines, low = verdict(by_file(report))
    print(*lines, sep="\n")
    if low and not asked.tests:
        sys.exit("\n".join(low))


if __name__ == "__main__":
    main()
