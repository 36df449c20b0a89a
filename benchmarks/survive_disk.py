"""A disk that is full: does a run lose nothing, leave nothing behind, and go on as if nothing had been?

    python benchmarks/survive_disk.py                20 sizes of disk, about ten minutes
    python benchmarks/survive_disk.py --cases 4      some of them

Each case is a small disk of its own (a tmpfs; needs root) with a run that was stopped at a checkpoint, and so many pages left that the
next checkpoint, its manifest, its name, the log or the best weights do not fit. The run goes on under `limelight train`. In every second
case the disk grows while it runs, in the others only afterwards. One JSON object per line: exit code, what did not fit, what was left
behind, and the bits that differ in the end from a run that always had room. The exit code is 1 if any case is not as it must be.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))
from inject_fault import fault_environment
from small_runs import make_corpus, recipe

from limelight import bundle
from limelight.training.checkpoints import checkpoint
from limelight.training.events import StepReport, read_events
from limelight.training.run_folder import BUNDLE, CHECKPOINTS, METRICS, PREPARED
from survive_command import limelight

PAGE: Final = 4096
MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a checkpoint at every step is much for a real disk
ROOM: Final = 96 << 20
STEPS: Final = 20
OFTEN: Final = {"checkpoints.every_seconds": "0.01"}  # a checkpoint at every step
STRUCK: Final = re.compile(r"(cannot be written|could not be written|are not kept|not traced)[^\n]*")
FULL: Final = re.compile(r"No space left on device")


@dataclass(frozen=True)
class Case:
    pages: int  # left on the disk
    validates: bool  # weights, bundle and probes are written as well
    background: bool
    grows: bool  # while it runs
    ranks: int = 1

    @property
    def asked(self) -> "Case":
        """Cases whose command is the same begin from the same run."""
        return Case(0, self.validates, self.background, False, self.ranks)


@dataclass(frozen=True)
class Outcome:
    case: Case
    code: int  # of the run without room
    struck: list[str]  # what did not fit
    seconds: float
    again: int | None  # exit code once there is room; None: it was done already
    problems: list[str]


@contextmanager
def disk(place: Path, size: int) -> Iterator[Path]:
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "limelight", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def resize(place: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True)


def used(place: Path) -> int:
    found = os.statvfs(place)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def cases(checkpoint_bytes: int) -> list[Case]:
    """Around every border: nothing, the log, parts of the tensors, and the last pages, which state, manifest and name need."""
    whole = -(-checkpoint_bytes // PAGE)
    quiet = [0, 2, 4, 8, 16, whole // 4, whole // 2, whole - 8, *range(whole - 1, whole + 5)]
    found = [Case(pages, False, index % 4 == 3, index % 2 == 1) for index, pages in enumerate(quiet)]
    return found + [
        Case(pages, True, index % 2 == 0, index > 2)
        for index, pages in enumerate((9, whole // 3, whole + 9, 2 * whole, 3 * whole, 4 * whole))
    ]


class Stage:
    """The runs that all cases begin from and are compared with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.corpus = make_corpus(folder / "corpus")
        self.recipes = {validates: self._recipe(validates) for validates in (False, True)}
        self.stopped: dict[Case, Path] = {}
        self.straight: dict[Case, dict[str, str]] = {}

    def _recipe(self, validates: bool) -> Path:
        path = self.folder / f"recipe-{validates}.toml"
        validation = {"every": 5 if validates else STEPS, "sentences": 4}
        recipe(self.corpus, schedule={"steps": STEPS, "warmup": 10}, validation=validation).save(path)
        return path

    def words(self, run: Path, case: Case) -> list[str]:
        more = OFTEN | {"checkpoints.background": str(case.background).lower()}
        ranks = ["--nproc", str(case.ranks), "machine.parallel=fsdp"] if case.ranks > 1 else []
        return [
            "train",
            str(self.recipes[case.validates]),
            "-o",
            str(run),
            "--plain",
            "--workers",
            "0",
            *ranks,
            *(f"{k}={v}" for k, v in more.items()),
        ]

    def new(self, name: str) -> Path:
        run = self.folder / name
        shutil.copytree(self.corpus / PREPARED, run / PREPARED)
        return run

    def prepare(self, case: Case) -> None:
        """One that was stopped early, and one that had room to the end."""
        key = case.asked
        if key in self.stopped:
            return
        run = self.new(f"stopped-{len(self.stopped)}")
        kill = fault_environment("step.forward:kill@8")
        limelight(*self.words(run, case), environment=kill)
        found = checkpoint.latest(run / CHECKPOINTS).checkpoint
        assert found is not None and found.step >= 5, "the run to begin from was not saved"
        straight = self.new(f"straight-{len(self.stopped)}")
        done = limelight(*self.words(straight, case))
        assert done.code == 0, done.said
        self.stopped[key], self.straight[key] = run, bits(straight)


def bits(run: Path) -> dict[str, str]:
    """Every tensor of the translator and of the last checkpoint, and every loss, to the bit."""
    found = checkpoint.latest(run / CHECKPOINTS).checkpoint
    if found is None:
        return {}
    tensors = {f"bundle {name}": tensor for name, tensor in bundle.read(run / BUNDLE).weights().items()}
    # Training may end while there is no room for its last checkpoint; then the one before stands, and the translator is whole.
    tensors |= found.tensors() if found.step == STEPS else {}
    hashes = {name: hashlib.sha256(tensor.contiguous().view(-1).numpy().tobytes()).hexdigest() for name, tensor in tensors.items()}
    losses = {f"loss {e.step}": e.loss.hex() for e in read_events(run / METRICS) if isinstance(e, StepReport)}
    return hashes | losses


def played(stage: Stage, case: Case, place: Path) -> Outcome:
    stage.prepare(case)
    key = case.asked
    with disk(place, ROOM):
        run = place / "run"
        shutil.copytree(stage.stopped[key], run)
        before = checkpoint.latest(run / CHECKPOINTS).checkpoint
        assert before is not None
        resize(place, used(place) + case.pages * PAGE)
        grown = False

        def meanwhile(said: Path) -> None:
            nonlocal grown
            if case.grows and not grown and STRUCK.search(said.read_bytes().decode(errors="replace")):
                grown = True
                resize(place, ROOM)

        done = limelight(*stage.words(run, case), meanwhile=meanwhile, reports=case.pages % 4 == 1)
        problems = [] if done.code in (0, 74) else [f"exit code {done.code}: {done.said[-500:]}"]
        if case.grows and grown and done.code != 0:
            problems.append(f"had room again, and ended with {done.code}")
        if done.code == 74 and not FULL.search(done.said):
            problems.append("does not say what is wrong")
        found = checkpoint.latest(run / CHECKPOINTS)
        if found.refused or found.checkpoint is None or found.checkpoint.step < before.step:
            problems.append(f"the checkpoint of step {before.step} is lost: {found.refused}")
        left = [str(path.relative_to(run)) for path in run.rglob(".*") if path.name != ".lock"]
        problems += [f"left behind: {name}" for name in left]
        resize(place, ROOM)
        again = None
        if done.code:
            again = limelight(*stage.words(run, case)).code
            problems += [f"with room, it ends with {again}"] if again else []
        struck = sorted({_place(each.group()) for each in STRUCK.finditer(done.said)})
        found_bits, wanted = bits(run), stage.straight[key]
        last = checkpoint.latest(run / CHECKPOINTS).checkpoint
        ended_early = last is not None and last.step < STEPS and done.code == 0 and bool(struck)
        names = found_bits.keys() if ended_early else wanted.keys() | found_bits.keys()
        differ = [name for name in names if found_bits.get(name) != wanted.get(name)]
        problems += [f"{len(differ)} of {len(wanted)} values differ: {sorted(differ)[:3]}"] if differ else []
    return Outcome(case, done.code, struck, round(done.seconds, 1), again, problems)


def _place(sentence: str) -> str:
    """Which of its files it was."""
    names = (
        "manifest.json",
        "state.json",
        "shard-",
        "tensors.safetensors",
        "are not kept",
        "not traced",
        "metrics.jsonl",
        "status.json",
    )
    return next((name for name in names if name in sentence), "the translator" if "translator" in sentence else sentence[:60])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--only", default="", help="some by their number: 3,7,11")
    parser.add_argument("--ranks", type=int, default=1, help="2: two processes with FSDP, each with a shard")
    asked = parser.parse_args()
    failed: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="survive-disk-", dir=MEMORY) as folder:
        stage = Stage(Path(folder))
        first = Case(0, False, False, False, asked.ranks)
        stage.prepare(first)
        saved = checkpoint.latest(stage.stopped[first] / CHECKPOINTS).checkpoint
        assert saved is not None
        size = sum(-(-path.stat().st_size // PAGE) * PAGE for path in saved.folder.iterdir())
        every = [Case(c.pages, c.validates, c.background, c.grows, asked.ranks) for c in cases(size)]
        chosen = every[:: max(1, len(every) // asked.cases)][: asked.cases]
        if asked.only:
            chosen = [every[int(number)] for number in asked.only.split(",")]
        for case in chosen:
            outcome = played(stage, case, Path(folder) / "disk")
            print(json.dumps(asdict(outcome)), flush=True)
            failed += [outcome] if outcome.problems else []
    print(json.dumps({"cases": len(chosen), "good": len(chosen) - len(failed), "checkpoint_bytes": size}))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
