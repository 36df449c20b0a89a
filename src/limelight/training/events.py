"""Events tell watchers how a run goes: each step, each validation, and notices for people.

Watchers get frozen values, never the trainer; `metrics.jsonl` holds the same, a line each.
"""

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

NoticeKind = Literal["chosen", "skipped", "replanned", "saved", "resumed", "stopped", "note"]


@dataclass(frozen=True)
class StepReport:
    """A step report is about one step of the optimizer. Pieces are counted with their ends, padding not."""

    step: int  # 1 is the first
    steps: int  # of the whole run, as planned by now
    epoch: float  # 2.25: a quarter into the third
    loss: float  # per target piece, in nats, smoothing and R-Drop included
    nll: float  # the same without them
    learning_rate: float
    gradient_norm: float  # before clipping
    source_pieces: int
    target_pieces: int
    padding: float  # share of the cells of its batches that hold nothing
    seconds: float  # that this step took, data included
    waited: float  # of them, for data
    elapsed: float  # seconds of the run so far, with everything, over all its starts
    left: float  # seconds until the end of training, as it looks by now
    memory: int  # most bytes held so far
    skipped: str | None = None  # why the weights were left as they were


@dataclass(frozen=True)
class Sample:
    source: str
    reference: str
    translation: str
    confidence: float  # geometric mean of the probabilities of its pieces


@dataclass(frozen=True)
class DirectionScore:
    direction: str  # en-de
    bleu: float
    chrf: float


@dataclass(frozen=True)
class ValidReport:
    step: int
    elapsed: float
    seconds: float
    nll: float  # per target piece, in nats
    bleu: float
    chrf: float
    best: bool
    samples: tuple[Sample, ...]
    directions: tuple[DirectionScore, ...] = ()  # of several; the scores above are their mean


@dataclass(frozen=True)
class RunNotice:
    step: int
    elapsed: float
    kind: NoticeKind
    text: str


Event = StepReport | ValidReport | RunNotice
Watcher = Callable[[Event], None]

KINDS: dict[str, type[Any]] = {"step": StepReport, "valid": ValidReport, "notice": RunNotice}


def line_of(event: Event) -> str:
    """One line of `metrics.jsonl`; numbers survive bit by bit. What is no number becomes null: JSON has no other word for it."""
    tag = next(tag for tag, kind in KINDS.items() if isinstance(event, kind))
    values = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in dataclasses.asdict(event).items()
    }
    if values.get("directions") == ():
        del values["directions"]
    return json.dumps({"event": tag, **values}, ensure_ascii=False, allow_nan=False) + "\n"


def event_of(line: str | bytes) -> Event:
    value = json.loads(line)
    kind = KINDS[value.pop("event")]
    if kind is ValidReport:
        value["samples"] = tuple(Sample(**sample) for sample in value["samples"])
        value["directions"] = tuple(DirectionScore(**score) for score in value.get("directions", ()))
    numbers = {field.name for field in dataclasses.fields(kind) if field.type in (float, "float")}
    event: Event = kind(**{key: math.nan if each is None and key in numbers else each for key, each in value.items()})
    return event


def read_events(path: Path) -> list[Event]:
    """All of `metrics.jsonl`. A last line that was cut off by a crash is left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return [event_of(line) for line in lines[:-1] if line]
