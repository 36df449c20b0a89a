"""Steps that would do harm, in real runs of two ranks: what goes wrong on rank 1 alone, and whether anything was changed by it (AT-09).

    python benchmarks/survive_bad_steps.py [--short]

A run of `limelight train` is stopped after so many steps that the watchdog knows what is usual. From copies of that checkpoint:

    a  the loss of a step is no number           left out: 0 bits of weights, moments and averages may differ from before
    b  a gradient is infinite                    the same
    c  the loss is a hundred times as large      the same, by the rule of 6 deviations and 128 steps
    d  memory is short                           computed in halves: within 1e-6 of the step that nobody disturbed
    e  one exponent bit of one gradient flips    as c
    f  ten bad steps in a row                    exit 70, the checkpoint as it was, and a kept step that gives no number again
    g  a low bit of one weight flips             nothing is wrong to see: found by comparing before it is saved; then as if nothing had been
    -  2,000 steps of which none is disturbed    at most 0.1 % are left out

The controls: an undisturbed step changes hundreds of tensors, and the step of c is taken when the watchdog is told to look away. `--short`
has a window of 8 steps in place of 128, and no clean run.
"""

import argparse
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))
from limelight.training.checkpoints import checkpoint
from limelight.training.events import RunNotice, StepReport, read_events
from limelight.training.run_folder import CHECKPOINTS, METRICS, read_status
from limelight.training.step.step_dump import reproduce
from survive_ranks import Stage

KIND: Final = "ddp"
STOPPED, LOST = [75, 75], [70, 70]
IN_A_ROW: Final = 10


@dataclass
class Ground:
    """A run that stands at `step`, to be copied."""

    folder: Path
    step: int
    window: int
    stage: Stage = field(init=False)

    def __post_init__(self) -> None:
        # Without dropout: halves of a batch would draw other numbers than the whole.
        self.stage = Stage(
            self.folder,
            1000,
            model={"dropout": 0.0},
            trouble={"window": self.window, "in_a_row": IN_A_ROW},
            validation={"every": 10_000, "sentences": 4},
        )
        self.run = self.stage.new("ground")
        codes = self.stage.train(self.run, KIND, f"step.forward:term@{self.step}")
        assert codes == STOPPED, (codes, said(self.run))

    def copy(self, name: str) -> Path:
        return shutil.copytree(self.run, self.folder / name)

    def steps(self, name: str, fault: str, steps: int = 1, codes: list[int] = STOPPED, **changes: Any) -> Path:
        """A copy that takes so many steps more, with this fault in the first of them."""
        run = self.copy(name)
        faults = [fault] if fault else []
        found = self.stage.train(run, KIND, ",".join([*faults, f"step.forward:term@{self.step + steps}"]), **changes)
        assert found == codes, (name, found, said(run))
        return run


def said(run: Path) -> str:
    path = run.with_suffix(".said")
    return path.read_bytes().decode(errors="replace")[-3000:] if path.exists() else ""


def learned(run: Path) -> dict[str, Tensor]:
    found = checkpoint.latest(run / CHECKPOINTS)
    assert found.checkpoint is not None and not found.refused, found.refused
    return {name: tensor for name, tensor in found.checkpoint.tensors().items() if not name.startswith("chance")}


def saved_step(run: Path) -> int:
    found = checkpoint.latest(run / CHECKPOINTS).checkpoint
    return found.step if found else 0


def differing(one: dict[str, Tensor], other: dict[str, Tensor]) -> int:
    """Tensors with a bit that is not the same."""
    assert one.keys() == other.keys()
    return sum(one[name].numpy().tobytes() != other[name].numpy().tobytes() for name in one)


def apart(one: dict[str, Tensor], other: dict[str, Tensor], part: str) -> float:
    """Relative, of all tensors with this in their name as one vector.

    Not the biases of keys: they add the same to all scores of a row, which softmax does not see. Their gradient is rounding alone, and
    Adam makes a step of full size of it.
    """
    names = [name for name in one if part in name and not name.endswith(("qkv.bias", "kv.bias"))]
    square = sum(float((one[name] - other[name]).double().square().sum()) for name in names)
    return math.sqrt(square / sum(float(other[name].double().square().sum()) for name in names))


def skips(run: Path, after: int) -> tuple[list[int], list[str]]:
    """Steps that were left out, and what was said of them."""
    events = list(read_events(run / METRICS))
    steps = [e.step for e in events if isinstance(e, StepReport) and e.skipped and e.step > after]
    return steps, [e.text for e in events if isinstance(e, RunNotice) and e.kind == "skipped" and e.step > after]


def left_out(ground: Ground, name: str, fault: str, reason: str) -> dict[str, Any]:
    """a, b, c, e: nothing has changed, both ranks agree, and it is told with its samples."""
    bad = ground.step + 1
    run = ground.steps(name, f"{fault}@{bad}#1")
    steps, words = skips(run, ground.step)
    bits = differing(learned(run), learned(ground.run))
    told = len(words) == 1 and reason in words[0] and "; samples " in words[0]
    return {"differing": bits, "passed": steps == [bad] and bits == 0 and told and saved_step(run) == bad}


def halved(ground: Ground, straight: Path) -> dict[str, Any]:
    run = ground.steps("d", f"step.forward:oom@{ground.step + 1}#1")
    one, other = learned(run), learned(straight)
    far = max(apart(one, other, part) for part in ("weights/", "exp_avg"))
    # Not the same to the last bit: so it was halved.
    return {"apart": far, "passed": 0 < far <= 1e-6 and not skips(run, ground.step)[0]}


def given_up(ground: Ground, name: str, rank: str) -> dict[str, Any]:
    """f: of all ranks, the run has diverged; of one alone, that one is named."""
    fault, last = f"step.weights:nan@{ground.step + 1}{rank}", ground.step + IN_A_ROW
    run = ground.steps(name, fault, 50, LOST)
    kept = run / "trouble" / checkpoint.name_of(last)
    again = reproduce(kept).loss
    state, words = read_status(run)["state"], said(run)
    named = "ranks 0 and 1 hold different tensors" in words if rank else str(kept) in words
    intact = saved_step(run) == ground.step and differing(learned(run), learned(ground.run)) == 0
    passed = (
        skips(run, ground.step)[0] == list(range(ground.step + 1, last + 1))
        and math.isnan(again)
        and intact
        and named
        and state == ("failed" if rank else "diverged")
    )
    return {"state": state, "again": str(again), "intact": intact, "named": named, "passed": passed}


def silent_flip(ground: Ground) -> dict[str, Any]:
    """g: seen by nobody but the comparison; the next start goes on as if it had not been."""
    run = ground.steps("g", f"step.weights:flip=3@{ground.step + 1}#1", 3, LOST)
    named = "ranks 0 and 1 hold different tensors" in said(run)
    kept = saved_step(run) == ground.step and differing(learned(run), learned(ground.run)) == 0
    unseen = skips(run, ground.step)[0] == []
    codes = ground.stage.train(run, KIND, f"step.forward:term@{ground.step + 3}")
    straight = ground.steps("g-straight", "", 3)
    bits = differing(learned(run), learned(straight))
    passed = named and kept and unseen and codes == STOPPED and bits == 0
    return {"named": named, "unseen": unseen, "differing": bits, "passed": passed}


def looked_away(folder: Path, step: int, window: int) -> dict[str, Any]:
    """The control of c: a watchdog that lets everything through but what is no number takes the same step."""
    stage = Stage(folder, 1000, trouble={"window": window, "sigmas": 1e30}, validation={"every": 10_000, "sentences": 4})
    run = stage.new("looked-away")
    codes = stage.train(run, KIND, f"step.loss:scale=100@{step}#1,step.forward:term@{step}")
    losses = [event.loss for event in read_events(run / METRICS) if isinstance(event, StepReport)]
    taken = len(losses) == step and losses[-1] > 20 * losses[-2] and skips(run, 0)[0] == []
    return {"taken": taken, "passed": codes == STOPPED and taken}


def clean(folder: Path, steps: int) -> dict[str, Any]:
    """A run that nobody disturbs."""
    stage = Stage(folder, steps, validation={"every": steps, "sentences": 4}, checkpoints={"every_seconds": 3600.0})
    run = stage.new("clean")
    codes = stage.train(run, KIND)
    left = len(skips(run, 0)[0])
    return {
        "steps": steps,
        "left_out": left,
        "share": left / steps,
        "passed": codes == [0, 0] and left / steps <= 0.001,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--short", action="store_true", help="a window of 8 steps, and no long clean run")
    parser.add_argument("--only", default="", help="some cases by their letter: d,f")
    asked = parser.parse_args()
    short = asked.short
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        ground = Ground(Path(place) / "ground", 12 if short else 140, 8 if short else 128)
        straight = ground.steps("straight", "")
        changed = differing(learned(straight), learned(ground.run))
        cases: list[tuple[str, Callable[[], dict[str, Any]]]] = [
            ("control: undisturbed", lambda: {"changed": changed, "passed": changed > 100}),
            ("a NaN loss", lambda: left_out(ground, "a", "step.loss:nan", "the loss is not a number")),
            ("b infinite gradient", lambda: left_out(ground, "b", "step.gradient:inf", "the gradient is infinite")),
            ("c loss x 100", lambda: left_out(ground, "c", "step.loss:scale=100", "standard deviations above")),
            ("control: c, looked away", lambda: looked_away(Path(place) / "away", ground.step + 1, ground.window)),
            ("d out of memory", lambda: halved(ground, straight)),
            ("e exponent bit", lambda: left_out(ground, "e", "step.gradient:flip", "the gradient ")),
            ("f ten in a row", lambda: given_up(ground, "f", "")),
            ("f ten in a row, rank 1", lambda: given_up(ground, "f-rank", "#1")),
            ("g low bit of a weight", lambda: silent_flip(ground)),
        ]
        if not short:
            cases.append(("clean run", lambda: clean(Path(place) / "clean", 2000)))
        letters = set(filter(None, asked.only.split(",")))
        cases = [(name, case) for name, case in cases if not letters or name.split()[0] in letters]
        for name, case in cases:
            found = {"case": name, **case()}
            failed += not found["passed"]
            print(json.dumps(found), flush=True)
    print(json.dumps({"cases": len(cases), "passed": len(cases) - failed}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
