"""A run folder has fixed file names; its `run.json` and `status.json` are written and read here."""

import json
import logging
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from limelight.files import write_whole

RECIPE, METRICS, STATUS, FACTS, SCORES = "recipe.toml", "metrics.jsonl", "status.json", "run.json", "scores.json"
PREPARED, CHECKPOINTS, KEPT, BUNDLE, PROBES = "prepared", "checkpoints", "best", "bundle", "probes"
TEACHER, TRANSLATIONS = "teacher.json", "translations"  # what a teacher was asked for, and what it made
SYNTHETIC_FOLDER = "synthetic"  # of a run with monolingual text: the runs and pairs before its own
REAL_TEXT = f"{SYNTHETIC_FOLDER}/text"  # the sets that all of these share
PROBE = ".json.gz"  # ending of a trace
REPORT_MD, REPORT_HTML = "report.md", "report.html"
DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError)  # of a file that is broken, or not there

logger = logging.getLogger(__name__)

State = Literal["preparing", "training", "scoring", "done", "interrupted", "preempted", "diverged", "failed"]


@dataclass(frozen=True)
class RunChoice:
    name: str  # "model"
    value: str  # "small: 3+3 layers, 256 wide, 7.6 M parameters"
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value} ({self.why})"


@dataclass
class RunFacts:
    """The facts say how the run came about, and grow while it goes on (`run.json`)."""

    command: list[str] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)  # what the command asked for: the same is asked to go on
    began: str = ""  # 2026-11-15T11:30:00+00:00
    versions: dict[str, str] = field(default_factory=dict)  # python, limelight, torch ...
    commit: str | None = None  # of the repository it was started in, with "dirty" when it was
    machine: dict[str, str] = field(default_factory=dict)  # cpu, cores, memory, device
    chosen: list[RunChoice] = field(default_factory=list)
    parameters: dict[str, int] = field(default_factory=dict)  # embeddings, encoder, decoder
    flops_per_piece: float | None = None  # forward and backward, per target piece
    seconds: dict[str, float] = field(default_factory=dict)  # prepare, calibrate, train, validate, save, score
    memory: int = 0  # most bytes held
    winner: str | None = None  # which weights became the bundle
    compared: dict[str, float] = field(default_factory=dict)  # what was tried as the winner, and its validation score
    searched: dict[str, float] = field(default_factory=dict)  # beams and length penalties that were tried, likewise
    calibrated: int | None = None  # sentences that its confidence was fitted on
    problem: str | None = None  # why it ended early, in words

    def save(self, run: Path) -> None:
        write_whole(run / FACTS, json.dumps(asdict(self), indent=1, ensure_ascii=False).encode() + b"\n")

    @classmethod
    def load(cls, run: Path) -> "RunFacts":
        """What cannot be read is as good as absent: a run should go on all the same."""
        try:
            return cls.of((run / FACTS).read_bytes())
        except DAMAGED:
            return cls()

    @classmethod
    def of(cls, content: bytes) -> "RunFacts":
        value = json.loads(content)
        value["chosen"] = [RunChoice(**each) for each in value["chosen"]]
        return cls(**value)


def write_status(run: Path, state: State, step: int, steps: int, **more: Any) -> None:
    """Small and whole at any moment, for scripts that wait for a run. On a disk that is full the last one stays: no reason to end a run."""
    try:
        put_status(run, state, step, steps, **more)
    except OSError as error:
        logger.warning("%s: cannot be written, so that it does not say %r: %s", run / STATUS, state, error.strerror)


def put_status(run: Path, state: State, step: int, steps: int, **more: Any) -> None:
    write_whole(run / STATUS, json.dumps({"state": state, "step": step, "steps": steps, **more}).encode() + b"\n", durable=False)


def read_status(run: Path) -> dict[str, Any]:
    """Empty when there is none, or none that can be read."""
    try:
        return dict(json.loads((run / STATUS).read_bytes()))
    except DAMAGED:
        return {}


def list_probed_steps(folder: Path) -> list[int]:
    names = {path.name.removesuffix(PROBE) for path in folder.glob(f"*/*{PROBE}")}
    return sorted(int(name) for name in names if name.isdecimal())
