"""The same run in one, two and four processes, in every way of sharing the model: are the loss curves one curve? (AT-12 d)

    python benchmarks/survive_width.py [--steps 200] [--kinds ddp-2,fsdp-2]

Real runs by the real command, on number words, without dropout. Bars, relative: 1e-6 for the first 8 steps, 1e-3 at the last of 200. The
control is another seed, which must be further away. The exit code is 1 if any figure is not as it must be.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))
from small_runs import make_corpus, recipe

from limelight.training.events import StepReport, read_events
from survive_command import limelight

KINDS = {
    "ddp-2": (2, ["machine.parallel=ddp"]),
    "fsdp-2": (2, ["machine.parallel=fsdp"]),
    "tensor-2": (2, ["machine.parallel=tensor", "machine.tensor=2"]),
    "ddp-4": (4, ["machine.parallel=ddp"]),
    "fsdp-4": (4, ["machine.parallel=fsdp"]),
    "hybrid-4": (4, ["machine.parallel=hybrid", "machine.shard=2"]),
    "tensor-4": (4, ["machine.parallel=tensor", "machine.tensor=2"]),
}
FIRST, EARLY, LATE = 8, 1e-6, 1e-3
RATE = 5e-4  # at 2e-3, where so small a model learns faster, its curve jumps, and a last bit is a hundredth after 200 steps


def losses(run: Path) -> list[float]:
    return [event.loss for event in read_events(run / "metrics.jsonl") if isinstance(event, StepReport)]


def apart(one: list[float], other: list[float], steps: slice) -> float:
    return max(abs(a - b) / a for a, b in zip(one[steps], other[steps], strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description="Are the loss curves of any number of processes one curve?")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--kinds", default=",".join(KINDS))
    asked = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        changes = {
            "model": {"dropout": 0.0},
            "schedule": {"steps": asked.steps, "warmup": asked.steps // 10},
            "optimizer": {"learning_rate": RATE},
            "batch": {"budget": 512},
            "validation": {"every": 100},
        }
        recipe(make_corpus(folder / "corpus"), **changes).save(folder / "recipe.toml")

        def curve(name: str, processes: int, *more: str) -> list[float]:
            words = f"train {folder}/recipe.toml -o {folder}/{name} --quiet --nproc {processes} --restarts 0".split()
            done = limelight(*words, *more)
            if done.code:
                raise SystemExit(f"{name} ended with {done.code}: {done.said[-2000:]}")
            return losses(folder / name)

        alone = curve("alone", 1)
        figures["control"] = {"first": apart(alone, curve("control", 1, "--seed", "7"), slice(FIRST))}
        for name in asked.kinds.split(","):
            processes, more = KINDS[name]
            found = curve(name, processes, *more)
            figures[name] = {
                "first": apart(alone, found, slice(FIRST)),
                "worst": apart(alone, found, slice(None)),
                "last": apart(alone, found, slice(-1, None)),
            }
            print(name, json.dumps(figures[name]), flush=True)
    kinds = [each for name, each in figures.items() if name != "control"]
    holds = all(each["first"] <= EARLY and each["last"] <= LATE for each in kinds) and figures["control"]["first"] > LATE
    print(json.dumps({"steps": asked.steps, "holds": holds, **figures}))
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
