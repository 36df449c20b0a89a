"""Plans against what happens: peak memory and seconds of a step of 12 configurations on this machine, each in a fresh process.

python benchmarks/plan.py             VmHWM against `planning.cost.peak`, seconds of a step against `recipe.calibrate.measure`, on one core
python benchmarks/plan.py memory      without the times, on a machine that has other work

`--only 0,3,7` takes some of them. Prints a table and the worst. Seconds are those that the step computed, by the kernel's account, the
fastest of four as in a calibration: what other programs do to a machine can only slow it. Its own speed changes too, by a third within
minutes where others share the processor, so two cases at a time are timed right after a calibration of their numbers.

The prices of a step come from other models (`PROBES`), but how many numbers RMSNorm, gates and rotation move was set with the last of
these cases in view. The heap's constants of planning.peak were fitted to 14 peaks; cases 0, 3, 5, 8, 10 and 11 are among them.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch

from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.peak import Peak, peak
from limelight.planning.cost.shape import BatchShape
from limelight.planning.time.measured_time import work
from limelight.training.recipe.calibrate import StepCosts, measure

RUN = Path(__file__).with_name("plan_run.py")
WARM_UP = 1  # steps that are not timed
ROUNDS = 4
TOGETHER = 2  # processes that take turns; more would need too much memory


@dataclass(frozen=True)
class Case:
    model: str
    vocab: int
    precision: Precision
    shape: tuple[int, int, int]  # rows, S, T
    recompute: bool = False
    changes: dict[str, Any] = field(default_factory=dict)
    validates: bool = True

    @property
    def config(self) -> ModelConfig:
        return ModelConfig.preset(self.model, self.vocab, **self.changes)

    @property
    def batch(self) -> BatchShape:
        rows, S, T = self.shape
        return BatchShape.packed(rows, S, T, rows * S, rows * T)

    @property
    def planned(self) -> Peak:
        return peak(
            self.config,
            Parallel(),
            self.precision,
            self.batch,
            "cpu",
            recompute=self.recompute,
            validates=self.validates,
        )

    @property
    def title(self) -> str:
        rows, S, T = self.shape
        more = ", ".join(f"{name} {value}" for name, value in self.changes.items())
        return (
            f"`{self.model}` {self.vocab:,}{f' ({more})' if more else ''}, {self.precision}, {rows} x {S} + {T}"
            f"{', recomputed' if self.recompute else ''}{'' if self.validates else ', no twin'}"
        )


MODERN = {"norm": "rms", "activation": "swiglu", "positions": "rotary", "bias": False, "num_kv_heads": 2}
CASES = (
    Case("tiny", 8000, "float32", (64, 32, 32)),
    Case("tiny", 8000, "masters", (64, 32, 32)),
    Case("small", 8000, "masters", (64, 24, 24)),
    Case("small", 16_000, "float32", (64, 32, 32)),
    Case("small", 16_000, "masters", (4, 256, 256)),
    Case("small", 8000, "float32", (96, 32, 32), recompute=True),
    Case("small", 8000, "masters", (4, 400, 400), recompute=True),
    Case("base", 32_000, "masters", (8, 32, 32)),
    Case("base", 16_000, "float32", (8, 64, 64), recompute=True),
    Case("small", 8000, "autocast", (32, 32, 40)),
    Case("deep", 16_000, "float32", (24, 32, 32), validates=False),
    Case("small", 16_000, "float32", (8, 160, 200), changes=MODERN),
)


@contextmanager
def started(case: Case, core: int | None = None) -> Iterator[subprocess.Popen[str]]:
    asked = {
        "model": case.model,
        "vocab": case.vocab,
        "precision": case.precision,
        "shape": case.shape,
        "recompute": case.recompute,
        "changes": case.changes,
        "validates": case.validates,
        "core": core,
    }
    command = [sys.executable, str(RUN), json.dumps(asked)]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=alone, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def take(process: subprocess.Popen[str]) -> dict[str, float]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{process.args} ended with {process.wait()}")
    return dict(json.loads(line))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Found:
    """What a process said of its steps."""

    program: float
    held: float
    seconds: list[float]  # that the step computed
    wall: list[float]


def in_turns(cases: Sequence[Case], core: int | None, rounds: int) -> Iterator[tuple[Case, Found]]:
    """A process for each, with steps to warm up and then one step in each round."""
    with ExitStack() as stack:
        running = [stack.enter_context(started(case, core)) for case in cases]
        for process in running:
            for _ in range(WARM_UP):
                take(process)
        turns = [[take(process) for process in running] for _ in range(rounds)]
    for case, said in zip(cases, zip(*turns, strict=True), strict=True):
        last, seconds, wall = said[-1], [each["seconds"] for each in said], [each["wall"] for each in said]
        yield case, Found(last["program"], last["held"], seconds, wall)


def timed(cases: Sequence[Case], core: int, rounds: int = ROUNDS) -> Iterator[tuple[Case, Found, StepCosts]]:
    """A few at a time that compute in the same numbers, right after a calibration of these."""
    for precision in dict.fromkeys(case.precision for case in cases):
        alike = [case for case in cases if case.precision == precision]
        for some in (alike[i : i + TOGETHER] for i in range(0, len(alike), TOGETHER)):
            calibration = measure(precision)
            yield from ((case, found, calibration) for case, found in in_turns(some, core, rounds))


def show(case: Case, found: Found, calibration: StepCosts | None) -> tuple[float, float]:
    """A row of the table, and by how much memory and time are off."""
    plan = case.planned
    # The program is most of a small run; what is asked for here is what a recipe can change.
    largest = max((name for name in plan.parts if name != "program"), key=lambda name: plan.parts[name])
    off = plan.total / found.held - 1, 0.0
    row = (
        f"| {case.title} | {found.held / 1e6:,.0f} | {plan.total / 1e6:,.0f} | {off[0]:+.1%} "
        f"| {largest} {plan.parts[largest] / plan.total:.0%}, {plan.moment} |"
    )
    if calibration is not None:
        planned, fastest = calibration.step_seconds(case.config, case.batch, case.recompute), min(found.seconds)
        shares = calibration.rates.shares(work(case.config, case.batch, case.precision, case.recompute))
        most = max(shares, key=lambda name: shares[name])
        off = off[0], planned / fastest - 1
        row += (
            f" {fastest:.2f} | {median(found.seconds):.2f}, {max(found.seconds):.2f} | {median(found.wall):.2f} | {planned:.2f} "
            f"| {off[1]:+.1%} | {most} {shares[most]:.0%} |"
        )
    say(row)
    return off


def concluded(off: Sequence[float]) -> str:
    return f"worst {max(off, key=abs):+.1%}, mean of sizes {mean(map(abs, off)):.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["memory", "all"], default="all")
    parser.add_argument("--only", help="numbers of cases, such as 0,3,7")
    asked = parser.parse_args()
    cases = [CASES[int(n)] for n in asked.only.split(",")] if asked.only else list(CASES)
    times = asked.what == "all"
    columns = ["", "MB held", "planned", "off by", "most of it, and when"]
    if times:
        columns += ["s a step, fastest", "median, slowest", "on the wall", "planned", "off by", "most of it"]
    say("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    if times:
        core = max(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {core})
        torch.set_num_threads(1)
        off = [show(case, found, calibration) for case, found, calibration in timed(cases, core)]
    else:
        off = [show(*each, None) for case in cases for each in in_turns([case], None, 2)]
    say(f"\nmemory: {concluded([each for each, _ in off])}")
    if times:
        say(f"time: {concluded([each for _, each in off])}")


if __name__ == "__main__":
    main()
