"""A run that is stopped after step k and goes on in new processes: does a single bit differ from the run that was never stopped?

    python benchmarks/survive_resume.py                               36 cases and 6 controls, about eight minutes on 2 cores
    python benchmarks/survive_resume.py --kinds one,fsdp --seeds 1    some of them

k is 1, 37, the last step of an epoch, and 199 of 200; with one process, and with two that share the gradients (ddp) or the weights (fsdp).
What is compared: loss, likelihood and norm of every step, and in the end every tensor of the checkpoint (weights, both moments, step
counters, averages, the random numbers of each process), the place in the text, and the translator. The controls take a part out of the
checkpoint and seal it again: all of them must be found. One that takes nothing out must not.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch

from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.training.checkpoints import checkpoint
from limelight.training.run_folder import CHECKPOINTS, PREPARED
from survive_ranks import ONE, Stage, differing, size_of

STEPS: Final = 200
KINDS: Final = (ONE, "ddp", "fsdp")
STOPPED: Final = 75

Lose = Callable[[dict[str, Any], dict[str, Any]], None]


def nothing(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    """Writing a checkpoint anew changes nothing by itself."""


def chance(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    for name in [name for name in tensors if name.startswith("chance/")]:
        del tensors[name]


def place(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    state["loader"] |= {"epoch": 0, "window": 0, "batch": 0, "number": 0}


def moments(tensors: dict[str, Any], state: dict[str, Any]) -> None:
    for name in tensors:
        if name.startswith("optimizer/"):
            tensors[name] = torch.zeros_like(tensors[name])


LOSSES: Final[tuple[Lose, ...]] = (chance, place, moments)


def epoch_end(stage: Stage) -> int:
    """The last step of the first epoch: a batch is a step."""
    with Loader(PreparedCorpus.open(stage.corpus / PREPARED), stage.recipe.batch) as loader:
        return next(number for number, batch in enumerate(loader) if batch.epoch == 1)


def stopped(stage: Stage, name: str, kind: str, k: int, **changes: Any) -> tuple[Path, list[str]]:
    """A run of which step k is the last one, and what is wrong with that."""
    run = stage.new(name)
    codes = stage.train(run, kind, fault=f"step.forward:term@{k}", **changes)
    found = checkpoint.latest(run / CHECKPOINTS).checkpoint
    problems = [] if set(codes) == {STOPPED} else [f"stopped with {codes}"]
    problems += [] if found is not None and found.step == k else [f"saved {found and found.step}"]
    return run, problems


def goes_on(stage: Stage, run: Path, straight: Path, kind: str, **changes: Any) -> list[str]:
    """What differs in the end."""
    codes = stage.train(run, kind, **changes)
    return differing(run, straight) if set(codes) == {0} else [f"ended with {codes}"]


def case(stage: Stage, straight: Path, kind: str, k: int, **changes: Any) -> list[str]:
    run, problems = stopped(stage, f"{straight.name}-{k}", kind, k, **changes)
    return problems or goes_on(stage, run, straight, kind, **changes)


def control(stage: Stage, straight: Path, kind: str, k: int, lose: Lose, **changes: Any) -> list[str]:
    """The same with a checkpoint from which something was taken."""
    run = stage.folder / f"{straight.name}-{k}-stopped"
    if not run.exists():
        problems = stopped(stage, run.name, kind, k, **changes)[1]
        assert not problems, problems
    without = shutil.copytree(run, stage.folder / f"{run.name}-{lose.__name__}")
    found = checkpoint.latest(without / CHECKPOINTS).checkpoint
    assert found is not None
    tensors, state = found.tensors(), found.state
    lose(tensors, state)
    checkpoint.save(without / CHECKPOINTS, k, tensors, state, keep=1)
    return goes_on(stage, without, straight, kind, **changes)


def parts_missing(straight: Path, kind: str) -> list[str]:
    """A comparison of checkpoints shows nothing of what they do not hold."""
    found = checkpoint.latest(straight / CHECKPOINTS).checkpoint
    assert found is not None
    names = found.names()
    parts = [*(f"chance/cpu/{rank}" for rank in range(size_of(kind))), "/exp_avg", "/exp_avg_sq", "/step", "weights/"]
    return [part for part in parts if not any(name.startswith(part) or name.endswith(part) for name in names)]


def measured(stage: Stage, kinds: list[str], seeds: list[int]) -> dict[str, int]:
    counted = {"cases": 0, "equal": 0, "controls": 0, "found": 0}
    for kind in kinds:
        for seed in seeds:
            changes: dict[str, Any] = {"seed": seed, "batch": {"seed": seed}}
            straight = stage.new(f"{kind}-{seed}")
            began = time.monotonic()
            codes = stage.train(straight, kind, **changes)
            assert set(codes) == {0}, (straight.with_suffix(".said").read_bytes().decode(), codes)
            assert not (missing := parts_missing(straight, kind)), missing
            _tell(kind, seed, "straight", [], began)
            for k in (1, 37, epoch_end(stage), STEPS - 1):
                began = time.monotonic()
                problems = case(stage, straight, kind, k, **changes)
                counted["cases"] += 1
                counted["equal"] += not problems
                _tell(kind, seed, f"stopped after {k}", problems, began)
            for lose in (nothing, *LOSSES) if seed == seeds[0] else ():
                began = time.monotonic()
                problems = control(stage, straight, kind, 37, lose, **changes)
                counted["controls"] += 1
                counted["found"] += bool(problems) == (lose is not nothing)
                _tell(kind, seed, f"control: {lose.__name__} taken out", problems, began)
    return counted


def _tell(kind: str, seed: int, what: str, problems: list[str], began: float) -> None:
    seconds = round(time.monotonic() - began, 1)
    line = {
        "kind": kind,
        "seed": seed,
        "case": what,
        "differ": len(problems),
        "first": problems[:2],
        "seconds": seconds,
    }
    print(json.dumps(line), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seeds", default="1,2,3")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="survive-resume-") as folder:
        stage = Stage(Path(folder), STEPS)
        counted = measured(stage, asked.kinds.split(","), [int(seed) for seed in asked.seeds.split(",")])
    print(json.dumps(counted))
    return counted["equal"] < counted["cases"] or counted["found"] < counted["controls"]


if __name__ == "__main__":
    sys.exit(main())
