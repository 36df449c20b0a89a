"""kill -9, again and again: does a run reach its end by itself, and with the same bits as one that nobody touched?

    python benchmarks/survive_storm.py                                 32 kills, about six minutes on 2 quiet cores
    python benchmarks/survive_storm.py --background --kind ddp         checkpoints written while the next steps are taken
    python benchmarks/survive_storm.py --kills 4 --forked              a loop of our own in place of `limelight train --nproc 2`

Every kill is SIGKILL, either of one process, which the launcher has to notice, or of all of them with the launcher, after which the same
command is given again. Half of them wait until a checkpoint is being written, which a fault makes last a second. After each kill: the
checkpoints that are left are read to the last byte, and what a save left behind is counted. A control must be found: a
run that goes on from a checkpoint with one other bit.
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))
from inject_fault import fault_environment

from limelight.training.checkpoints import checkpoint
from limelight.training.processes.supervisor import find_last_step
from limelight.training.run_folder import CHECKPOINTS
from survive_killed import Forked, Launched
from survive_ranks import Stage, differing

EVERY: Final = 1.6  # seconds between checkpoints
FAULTS: Final = "ckpt.write:sleep=1.0,step.forward:sleep=0.05"  # neither changes a number
KEEP: Final = 2
PART: Final = re.compile(r"\.step-(\d+)\.[0-9a-f]{8}\.part")
MOST: Final = {
    "differ": 0,
    "intervals_lost_most": 1,
    "leftovers_most": 1,
    "leftovers_at_the_end": 0,
    "invalid": 0,
    "unsound_by_inspect": 0,
    "disk_in_checkpoints": KEEP + 2,
}
START: Final = 120.0  # seconds in which a run that was killed must have begun to save again
STEPS_PER_KILL: Final = {False: 25, True: 45}  # in the background more of them are taken


@dataclass(frozen=True)
class Kill:
    whom: str
    saving: int | None  # step of the checkpoint that was being written
    step: int  # the last that was taken
    goes_on: int  # the step of the checkpoint that is left
    intervals: int  # between checkpoints, of which the steps are lost
    leftovers: int  # unfinished folders
    invalid: list[str]


class Storm:
    def __init__(self, stage: Stage, kind: str, background: bool, forked: bool, seed: int) -> None:
        self.stage, self.kind, self.chance = stage, kind, Random(seed)
        self.run = stage.new(f"storm-{kind}")
        self.root = self.run / CHECKPOINTS
        self.saving = {"every_seconds": EVERY, "keep": KEEP, "background": background}
        words = stage.words(self.run, kind, checkpoints=self.saving)
        self.lives: Forked | Launched = (Forked if forked else Launched)(words, fault_environment(FAULTS))
        self.begun: set[int] = set()  # steps of checkpoints
        self.parts: dict[str, int] = {}  # folders that are being written now, and their steps
        self.left: set[str] = set()  # those that the last kill left
        self.largest = 0  # bytes in the folder of checkpoints
        self.kills: list[Kill] = []

    def rage(self, kills: int) -> None:
        with self.lives:
            for number in range(kills):
                if not self._until_moment(inside=number % 2 == 0):
                    return  # it is done: too few
                self._strike("all" if number % 4 in (1, 2) else f"rank {self.chance.randrange(2)}")
                print(json.dumps(asdict(self.kills[-1])), flush=True)

    def _until_moment(self, inside: bool) -> bool:
        """Inside a save; while it starts; or soon after a new checkpoint, so that it gets on however slow the machine is.

        False: the run ended before.
        """
        was = self._saved()
        if inside:
            known, until = self.parts.keys(), time.monotonic() + START
            while not self.parts.keys() - known:
                assert time.monotonic() < until, f"no checkpoint was begun in {START:.0f} s"
                if not self._look():
                    return False
            return self._wait(self.chance.uniform(0, 0.9))
        if self.chance.random() < 0.3:  # while it starts
            return self._wait(self.chance.uniform(0, 2))
        until = time.monotonic() + START
        while self._saved() == was:
            assert time.monotonic() < until, f"no checkpoint was written in {START:.0f} s"
            if not self._look():
                return False
        return self._wait(self.chance.uniform(0, EVERY))

    def _saved(self) -> int:
        """The step of the newest checkpoint, by its name."""
        return max((int(path.name.removeprefix("step-")) for path in self.root.glob("step-*")), default=0)

    def _wait(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self._look():
                return False
        return True

    def _look(self) -> bool:
        """At the folder, every few milliseconds. False: the run has ended."""
        time.sleep(0.02)
        there = [path for path in self.root.glob("*") if path.is_dir()] if self.root.is_dir() else []
        self.parts = {name: step for name, step in _unfinished(there).items() if name not in self.left}
        self.begun |= set(self.parts.values())
        self.largest = max(self.largest, sum(_bytes(path) for path in there))
        return self.lives.goes_on()

    def _strike(self, whom: str) -> None:
        self.lives.kill(whom)
        there = checkpoint.list_checkpoints(self.root)
        invalid = [problem for each in there for problem in each.problems]
        saved = max((each.step for each in there if not each.problems), default=0)
        self.left = set(_unfinished(list(self.root.glob(".*"))))
        lost = [step for step in self.begun if step > saved]
        inside = max(self.parts.values(), default=0)
        saving = inside if inside > saved else None  # not one that was committed meanwhile
        self.kills.append(Kill(whom, saving, find_last_step(self.run), saved, len(lost), len(self.left), invalid))
        self.begun, self.parts = {step for step in self.begun if step <= saved}, {}

    def finish(self) -> list[int | None]:
        """With no more faults."""
        codes = self.stage.train(self.run, self.kind, checkpoints=self.saving)
        assert set(codes) == {0}, f"{codes}: {self.run.with_suffix('.said').read_bytes()[-2000:].decode()}"
        return codes


def _unfinished(there: Sequence[Path]) -> dict[str, int]:
    return {path.name: int(match[1]) for path in there if (match := PART.fullmatch(path.name))}


def _bytes(folder: Path) -> int:
    total = 0
    for path in folder.glob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # renamed or removed at this moment
            continue
    return total


def one_bit(stage: Stage, kind: str, straight: Path) -> list[str]:
    """The control: what differs when one bit of one weight does."""
    run = stage.new(f"control-{kind}")
    stage.train(run, kind, fault="step.forward:term@7")
    found = checkpoint.latest(run / CHECKPOINTS).checkpoint
    assert found is not None
    tensors = found.tensors()
    # A low bit may be rounded away by the next steps, as that of a bias that is still small; this one is an eighth of the weight.
    tensors["weights/decoder.blocks.1.feed_forward.up.weight"].view(-1).view(torch.int32)[0] ^= 1 << 20
    checkpoint.save(run / CHECKPOINTS, found.step, tensors, found.state, keep=1)
    stage.train(run, kind)
    return differing(run, straight)


def figures(storm: Storm, straight: Path, codes: Sequence[int | None], asked: int) -> dict[str, Any]:
    size = max(each.bytes for each in checkpoint.list_checkpoints(storm.root))
    kills = storm.kills
    return {
        "kills": len(kills),
        "inside_saves": sum(kill.saving is not None for kill in kills),
        "of_all": sum(kill.whom == "all" for kill in kills),
        "went_on_from": len({kill.goes_on for kill in kills} - {0}),  # different checkpoints
        "ended_by_itself": int(set(codes) == {0} and len(kills) == asked),
        "differ": len(differing(storm.run, straight)),
        "intervals_lost_most": max(kill.intervals for kill in kills),
        "steps_lost_most": max(kill.step - kill.goes_on for kill in kills),
        "leftovers_most": max(kill.leftovers for kill in kills),
        "leftovers_at_the_end": len(list(storm.root.glob(".*"))),
        "invalid": sum(len(kill.invalid) for kill in kills) + sum(len(each.problems) for each in checkpoint.list_checkpoints(storm.root)),
        "disk_in_checkpoints": round(storm.largest / size, 2),
    }  # fmt: skip


def problems(found: dict[str, Any]) -> list[str]:
    wrong = [f"{name} is {found[name]}, more than {bar}" for name, bar in MOST.items() if found.get(name, 0) > bar]
    wrong += [] if found["ended_by_itself"] else ["it did not reach its end, or before all kills"]
    wrong += [] if 5 * found["went_on_from"] >= found["kills"] else ["it hardly got on between the kills"]
    return wrong + ([] if 3 * found["inside_saves"] >= found["kills"] else ["too few kills fell into saves"])


def stormed(stage: Stage, kind: str, background: bool, forked: bool, kills: int, seed: int) -> dict[str, Any]:
    straight = stage.new(f"straight-{kind}")
    assert set(stage.train(straight, kind)) == {0}, straight.with_suffix(".said").read_bytes().decode()
    storm = Storm(stage, kind, background, forked, seed)
    storm.rage(kills)
    found = figures(storm, straight, storm.finish(), kills)
    return found | {"differ_in_the_control": len(one_bit(stage, kind, straight))}


def unsound(run: Path) -> int:
    """As the command says that a person would ask."""
    words = [sys.executable, "-m", "limelight", "inspect", str(run), "--checkpoints", "--json"]
    listed = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    return sum(not each["sound"] for each in listed)


def stage_for(folder: Path, kills: int, background: bool) -> Stage:
    return Stage(folder, 40 + kills * STEPS_PER_KILL[background])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=32)
    parser.add_argument("--kind", default="fsdp", help="ddp, fsdp, hybrid or tensor")
    parser.add_argument("--background", action="store_true")
    parser.add_argument("--forked", action="store_true", help="starts in a second, without the launcher")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))  # so that nothing is left running
    with tempfile.TemporaryDirectory(prefix="survive-storm-") as folder:
        stage = stage_for(Path(folder), asked.kills, asked.background)
        found = stormed(stage, asked.kind, asked.background, asked.forked, asked.kills, asked.seed)
        found["unsound_by_inspect"] = unsound(stage.folder / f"storm-{asked.kind}")
    wrong = problems(found) + ([] if found["differ_in_the_control"] else ["one other bit was not found"])
    print(json.dumps(found | {"problems": wrong}))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
