"""Runs every claim, one after the other, and writes a page of what was measured: build/claims.md and build/claims.html.

make claim-all             every claim in its short form, each in under a minute on 2 quiet cores
make claim-all FULL=1      the whole evidence: a day or more
"""

import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"(?P<name>.+?) +(?P<value>[-+.\dnaife]+)  (?P<bar>[<>]= \S+|-) +(?P<holds>ok|SHORT)")

from claim import Claims, run
from limelight.cli.doctor.machine import cpu
from limelight.reporting.blocks import Block, Cell, Code, Section, Table
from limelight.reporting.formats import write_html, write_markdown


class Measured(NamedTuple):
    """A claim that has been run."""

    name: str
    figures: list[tuple[str, ...]]
    seconds: float
    code: int

    @property
    def verdict(self) -> str:
        short = sum(figure[-1] == "SHORT" for figure in self.figures)
        return f"{short} short" if short else "holds" if self.code == 0 else f"ended with {self.code}"


def main(claims: Claims, full: bool) -> None:
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if re.search(r"^    run\(", path.read_text("utf-8"), re.M))
    began, done = datetime.now(UTC), list[Measured]()
    for name in names:
        if name != Path(__file__).stem:
            done.append(measure(name, full))
            claims.at_most(f"{name}: {done[-1].verdict}, in {done[-1].seconds:.0f} s; exit code", abs(done[-1].code), 0)
            write(done, began, full)  # from the first claim on


def measure(name: str, full: bool) -> Measured:
    print(f"\n{name}", flush=True)
    command = [sys.executable, str(ROOT / "claims" / f"{name}.py"), *(["--full"] if full else [])]
    figures, clock = [], time.monotonic()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8", errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(f"  {line}", end="", flush=True)
            if found := LINE.fullmatch(line.rstrip()):
                figures.append(found.group("name", "value", "bar", "holds"))
    return Measured(name, figures, time.monotonic() - clock, process.returncode)


def write(done: list[Measured], began: datetime, full: bool) -> None:
    told = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    machine = cpu()
    head = (
        f"Commit {told.stdout.strip() or 'unknown'}, {began:%Y-%m-%d %H:%M} UTC, {'the whole evidence' if full else 'the short forms'}; "
        f"{machine['name']}, {machine['affinity']} of {machine['cores']} cores, load {machine['load']:.1f} at the end."
    )
    rows: list[list[Cell]] = [
        [Code(f"make claim-{each.name}"), each.verdict, str(len(each.figures)), f"{each.seconds:.0f}"] for each in done
    ]
    sections = [Section(each.name, [Table("", ["", "measured", "bar", ""], each.figures)]) for each in done]
    blocks: list[Block] = [head, Table("Claims", ["", "", "figures", "seconds"], rows)]
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "claims.md").write_text(write_markdown("What was measured", [*blocks, *sections]), "utf-8")
    (ROOT / "build" / "claims.html").write_text(write_html("What was measured", blocks, sections), "utf-8")


if __name__ == "__main__":
    run(main, __doc__)
