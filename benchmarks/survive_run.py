"""A real run under the launcher, for measurements that disturb it: started as a person would, watched from outside.

    job = Job(folder, steps=60);  job.start();  job.wait_for("steps");  job.process.send_signal(SIGTERM);  job.ended(20) -> 75

The text is number words and the model a small one (T0: 64 wide, 2+2 layers). Nothing is replaced: the program is `limelight train`, and
moments are found by what lies in the folder of the run.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "training"))
import small_runs
from inject_fault import fault_environment

from limelight.training.checkpoints import checkpoint
from limelight.training.events import RunNotice, StepReport, ValidReport, read_events
from limelight.training.run_folder import CHECKPOINTS, METRICS, RECIPE, read_status

PHASES = ("start", "steps", "save", "validation")
EVERY = 8  # steps between validations
# Saves and validations of so small a model take milliseconds; so they can be met.
SLOWER = "ckpt.write:sleep=0.5,validate:sleep=0.5"
SECONDS = 240  # for anything to happen on a busy machine


@dataclass
class Job:
    """`folder` gets the recipe and the run. Each `start` is one life of the launcher and its ranks."""

    folder: Path
    steps: int = 60
    nproc: int = 2
    restarts: int = 0
    save_seconds: float = 1.0
    faults: str = SLOWER
    variables: dict[str, str] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.token = secrets.token_hex(8)
        corpus = self.folder.parent / "corpus"
        if not corpus.exists():
            small_runs.make_corpus(corpus)
        changes = {
            "schedule": {"steps": self.steps, "warmup": 10},
            "validation": {"every": EVERY},
            "checkpoints": {"every_seconds": self.save_seconds},
        }
        wanted = small_runs.recipe(corpus.resolve(), **small_runs.merge(changes, self.changes))
        wanted.save(self.folder / RECIPE)

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def start(self, faults: str | None = None) -> None:
        words = [sys.executable, "-m", "limelight", "train", RECIPE, "-o", "run", "--plain", "--workers", "0"]
        words += ["--nproc", str(self.nproc), "--restarts", str(self.restarts)]
        own = {
            "OMP_NUM_THREADS": "1",
            **fault_environment(self.faults if faults is None else faults),
            "SURVIVE_TOKEN": self.token,
        }
        variables = {name: value for name, value in (os.environ | own | self.variables).items() if value}
        self.before, self._old_parts = self.step, self._parts()
        with (self.folder / "log").open("ab") as log:
            self.log_from = log.tell()
            self.process = subprocess.Popen(words, cwd=self.folder, env=variables, stdout=log, stderr=log, start_new_session=True)

    def ended(self, seconds: float) -> int | None:
        """Its exit code, or None if it still runs then."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def finish(self) -> int | None:
        """Undisturbed to the end."""
        self.start("")
        return self.ended(SECONDS)

    @property
    def log(self) -> str:
        """What this life has said."""
        with (self.folder / "log").open("rb") as file:
            file.seek(self.log_from)
            return file.read().decode(errors="replace")

    @property
    def step(self) -> int:
        """The last one that was taken."""
        return max((event.step for event in self.events() if isinstance(event, StepReport)), default=0)

    @property
    def saved(self) -> int:
        """The last one that is safely on disk: every byte is looked at."""
        found = checkpoint.latest(self.run / CHECKPOINTS)
        assert not found.refused, found.refused
        return found.checkpoint.step if found.checkpoint else 0

    @property
    def status(self) -> dict[str, Any]:
        return read_status(self.run)

    def events(self) -> list[Any]:
        path = self.run / METRICS
        return list(read_events(path)) if path.exists() else []

    def resumed_from(self) -> int | None:
        """The step that the last life went on from."""
        return next(
            (event.step for event in reversed(self.events()) if isinstance(event, RunNotice) and event.kind == "resumed"),
            None,
        )

    def wait_for(self, phase: str, random: Random) -> None:
        """Until the run is in it, at a moment that chance decides."""
        if phase == "start":
            self._until(self._hears)
            time.sleep(random.uniform(0.0, 10.0))
        elif phase == "steps":
            self._until(lambda: self.step > self.before)
            time.sleep(random.uniform(0.0, 1.5))
        elif phase == "save":
            self._until(lambda: bool(self._parts() - self._old_parts))
        else:
            self._until(self._validates)
            time.sleep(random.uniform(0.0, 0.4))

    def _parts(self) -> set[str]:
        """Checkpoints that are being written, or were when a life ended."""
        return {path.name for path in (self.run / CHECKPOINTS).glob(".step-*.part")}

    def _hears(self) -> bool:
        """Has the program begun? Before that, a signal ends the interpreter."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_bytes().split(b"\n")
        except OSError:
            return False
        caught = next(int(each.split()[1], 16) for each in lines if each.startswith(b"SigCgt:"))
        return bool(caught >> (signal.SIGTERM - 1) & 1)

    def _validates(self) -> bool:
        events = self.events()
        step = max((event.step for event in events if isinstance(event, StepReport)), default=0)
        done = max((event.step for event in events if isinstance(event, ValidReport)), default=0)
        return step > self.before and step % EVERY == 0 and step > done

    def _until(self, met: Callable[[], bool]) -> None:
        until = time.monotonic() + SECONDS
        while not met():
            if self.process.poll() is not None or time.monotonic() > until:
                return  # it is over before; whoever waited finds out by the code
            time.sleep(0.02)

    def processes(self) -> dict[int, str]:
        """All that belong to it and run, with their rank: "0", "1" or, of the launcher, the empty string."""
        found = {}
        for place in Path("/proc").iterdir():
            if not place.name.isdecimal():
                continue
            try:
                variables = dict(word.split(b"=", 1) for word in (place / "environ").read_bytes().split(b"\0") if b"=" in word)
                state = (place / "stat").read_bytes().rpartition(b") ")[2][:1]
            except (OSError, ValueError):
                continue
            if variables.get(b"SURVIVE_TOKEN") == self.token.encode() and state != b"Z":
                found[int(place.name)] = variables.get(b"RANK", b"").decode()
        return found

    def rank(self, number: int) -> int | None:
        """The process of a rank itself, not one that it started."""
        for process, rank in self.processes().items():
            if rank != str(number):
                continue
            parent = Path(f"/proc/{process}/stat").read_bytes().rpartition(b") ")[2].split()[1]
            if int(parent) == self.process.pid:
                return process
        return None

    def left_after(self, seconds: float) -> int:
        """Processes of it that are still there after so many seconds."""
        until = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.1)
        return len(left)

    def close(self) -> None:
        for process in (*self.processes(), *self.processes()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if hasattr(self, "process"):
            self.process.wait()


def differing(job: Job, straight: Job) -> int:
    """Losses, validations, weights, moments, chance and bundle that are not the same, bit for bit, as those of an undisturbed run."""
    told, expected = small_runs.story(job.run), small_runs.story(straight.run)
    lines = sum(one != other for one, other in zip(told, expected, strict=False)) + abs(len(told) - len(expected))
    left, wanted = small_runs.remains(job.run), small_runs.remains(straight.run)
    return lines + sum(left.get(name) != wanted.get(name) for name in left.keys() | wanted.keys())


def ends_cleanly() -> None:
    """Whoever stops a measurement stops what it started."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))


def line(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)
