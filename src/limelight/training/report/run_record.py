"""A run record is a run folder, read once into one frozen value. Reports and advice are made from it and from nothing else.

A run may have ended before any of its files was written, or while one was. What is missing is None or empty; what cannot be read is
named in `unreadable`. Reading a run never raises.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from limelight.corpus.manifest import NAME as MANIFEST
from limelight.corpus.manifest import CorpusManifest
from limelight.errors import LimelightError
from limelight.evaluation.confidence.calibration import ConfidenceCheck
from limelight.evaluation.config import Speed
from limelight.evaluation.evaluate import Evaluation, WorstSentence
from limelight.evaluation.metrics.buckets import BucketScore, LengthBucket
from limelight.evaluation.metrics.compare import Difference
from limelight.evaluation.metrics.metrics import MetricScore
from limelight.evaluation.verdict import Bound, QualityEvidence, QualityVerdict, evidence_of, judge
from limelight.planning.shortfall import Shortfall, find_shortfall
from limelight.training import run_folder
from limelight.training.config import Metric, Recipe
from limelight.training.events import Event, RunNotice, StepReport, ValidReport, event_of, read_events
from limelight.training.recipe.text_stats import PreparedText, frequencies_in
from limelight.training.run_folder import BUNDLE, FACTS, METRICS, PREPARED, RECIPE, SCORES, STATUS, RunFacts

DAMAGED = (*run_folder.DAMAGED, LimelightError)
TITLES: dict[Metric, str] = {"chrf": "chrF2", "bleu": "BLEU"}  # of a validation's score among those of the test set
# Passes up to which repeated text teaches like new (Muennighoff et al. 2023): nothing is known by heart before.
BY_HEART = 4.0
MISMATCH = 1.5  # nats by which validation then stands above training only where it is of another kind
LATELY = 200  # steps, or a tenth of all, whose mean says where training stands

T = TypeVar("T")


@dataclass(frozen=True)
class Example:
    source: str
    reference: str
    translation: str


@dataclass(frozen=True)
class DirectionResult:
    direction: str  # en-de
    trained: bool
    sentences: int
    scores: list[MetricScore]


@dataclass(frozen=True)
class Scores(Evaluation):
    """Scores tell what the finished translator reached on its test set, and what it said there (`scores.json`)."""

    set: str
    speed: Speed
    search: dict[str, Any]
    warnings: dict[str, int]
    examples: dict[str, list[Example]]
    confidence: ConfidenceCheck | None  # how far it can be believed there
    directions: tuple[DirectionResult, ...] = ()  # of several; what stands above is of the first
    before: tuple[Difference, ...] = ()  # from the translator that it went on from
    unmeasured: tuple[str, ...] = ()  # directions between its languages that were neither trained nor scored

    def of(self, title: str) -> MetricScore | None:
        """By the metric's name; chrF stands for chrF2."""
        return next((score for score in self.scores if score.name in (title, f"{title}2")), None)


@dataclass(frozen=True)
class RunRecord:
    """A record has steps and validations in order, each once: what was done again after a restart counts, what it replaced does not."""

    run: Path
    recipe: Recipe | None
    facts: RunFacts
    status: dict[str, Any]
    steps: tuple[StepReport, ...]
    validations: tuple[ValidReport, ...]
    notices: tuple[RunNotice, ...]
    manifest: CorpusManifest | None
    scores: Scores | None
    bundled: bool
    unreadable: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.run.resolve().name

    @property
    def state(self) -> str:
        return str(self.status.get("state", "unknown"))

    @property
    def last_step(self) -> int:
        seen = [*(step.step for step in self.steps[-1:]), *(valid.step for valid in self.validations[-1:])]
        return max(seen, default=0)

    @property
    def planned_steps(self) -> int:
        if self.steps:
            return self.steps[-1].steps
        return self.recipe.schedule.steps if self.recipe else 0

    @property
    def metric(self) -> Metric:
        return self.recipe.validation.metric if self.recipe else "chrf"

    @property
    def best(self) -> ValidReport | None:
        return next((valid for valid in reversed(self.validations) if valid.best), None)

    @property
    def languages(self) -> tuple[str, str] | None:
        if self.manifest:
            return self.manifest.languages
        return self.recipe.data.languages if self.recipe else None

    @property
    def skipped(self) -> tuple[StepReport, ...]:
        return tuple(step for step in self.steps if step.skipped is not None)

    @property
    def seconds(self) -> float:
        """Seconds of all of it. A run that was killed did not write down its last part; its last event knows better then."""
        last: list[Event] = [*self.steps[-1:], *self.validations[-1:], *self.notices[-1:]]
        return max([sum(self.facts.seconds.values()), *(event.elapsed for event in last)])

    @property
    def pieces_per_second(self) -> float | None:
        """Source and target pieces of all steps over the seconds of all steps: data included, validation not."""
        seconds = sum(step.seconds for step in self.steps)
        return sum(step.source_pieces + step.target_pieces for step in self.steps) / seconds if seconds else None

    @property
    def padding(self) -> float | None:
        """Share of all cells that held nothing. A step with n pieces and the share p has n / (1 - p) cells."""
        pieces = [(step.source_pieces + step.target_pieces, step.padding) for step in self.steps if step.padding < 1]
        cells = sum(n / (1 - p) for n, p in pieces)
        return 1 - sum(n for n, _ in pieces) / cells if cells else None

    @property
    def waiting(self) -> float | None:
        """Share of the time of the steps that went by waiting for data."""
        seconds = sum(step.seconds for step in self.steps)
        return sum(step.waited for step in self.steps) / seconds if seconds else None

    @property
    def outside(self) -> float | None:
        """Share of the training time, validation excluded, in which the model did not work: waiting, telling watchers, work done twice."""
        inside = sum(step.seconds - step.waited for step in self.steps)
        training = max(self.facts.seconds.get("train", 0.0), sum(step.seconds for step in self.steps))
        return 1 - inside / training if training else None

    @property
    def late_nll(self) -> float | None:
        """Mean loss of training over its last steps."""
        known = [step.nll for step in self.steps if math.isfinite(step.nll)]
        some = known[-max(1, min(LATELY, len(known) // 10)) :]
        return sum(some) / len(some) if some else None

    @property
    def epochs(self) -> float | None:
        """How often the text was seen."""
        return self.steps[-1].epoch if self.steps else None

    @property
    def is_mismatched(self) -> bool:
        """Does validation stand far above training although the text was seen too seldom to be known by heart? Old text is, where it is
        seen again."""
        if self.recipe is not None and self.recipe.fine_tuning is not None and self.recipe.fine_tuning.replay:
            return False
        late, last = self.late_nll, self.validations[-1:]
        seldom = self.epochs is not None and self.epochs < BY_HEART
        return seldom and late is not None and bool(last) and last[0].nll > late + MISMATCH

    @cached_property
    def shortfall(self) -> Shortfall | None:
        """What the law says is missing. None: it does not know, as of a run that began with another's weights."""
        if self.recipe is None or self.manifest is None or self.recipe.fine_tuning is not None:
            return None
        try:
            text = replace(PreparedText.of(self.manifest), frequencies=frequencies_in(self.run / PREPARED))
        except DAMAGED:
            return None
        seen, muon = max(1.0, text.target * (self.epochs or 0.0)), self.recipe.optimizer.name == "muon"
        return find_shortfall(self.recipe.model, text, seen, self.last_step, muon=muon)

    @property
    def verdict(self) -> QualityVerdict | None:
        """By the test set; without one by the best validation, which has no interval and does not count what is broken."""
        scores, best, language = self.scores, self.best, self.languages[1] if self.languages else None
        if scores is not None:
            evidence = evidence_of(scores, language, scores.confidence.words.error if scores.confidence else None)
        elif best is not None:
            evidence = QualityEvidence(Bound(best.chrf, best.chrf), Bound(best.bleu, best.bleu), language)
        else:
            return None
        tuned = self.recipe is not None and self.recipe.fine_tuning is not None
        evidence = replace(evidence, epochs=self.epochs, pairs=self.train_pairs(), fine_tuned=tuned)
        if self.epochs is not None and self.epochs < BY_HEART:
            evidence = replace(evidence, hopeless=self.shortfall is not None and self.shortfall.pieces is None)
        return judge(replace(evidence, diverged=self.state == "diverged", mismatched=self.is_mismatched))

    def train_pairs(self) -> int | None:
        if self.manifest is None:
            return None
        return sum(corpus.kept.get("train", 0) for corpus in self.manifest.corpora)


def read_run(run: Path) -> RunRecord:
    unreadable: list[str] = []

    def attempt(name: str, read: Callable[[Path], T], instead: T) -> T:
        try:
            return read(run / name) if (run / name).exists() else instead
        except DAMAGED as error:
            unreadable.append(f"{name} cannot be read ({type(error).__name__})")
            return instead

    nothing: list[Event] = []
    events = attempt(METRICS, _events, nothing)
    return RunRecord(
        run=run,
        recipe=attempt(RECIPE, Recipe.load, None),
        facts=attempt(FACTS, lambda path: RunFacts.of(path.read_bytes()), RunFacts()),
        status=attempt(STATUS, lambda path: dict(json.loads(path.read_bytes())), {}),
        steps=_each_once([event for event in events if isinstance(event, StepReport)]),
        validations=_each_once([event for event in events if isinstance(event, ValidReport)]),
        notices=tuple(event for event in events if isinstance(event, RunNotice)),
        manifest=attempt(f"{PREPARED}/{MANIFEST}", lambda path: CorpusManifest.load(path.parent), None),
        scores=attempt(SCORES, lambda path: _scores(**json.loads(path.read_bytes())), None),
        bundled=(run / BUNDLE).exists(),
        unreadable=tuple(unreadable),
    )


def _events(path: Path) -> list[Event]:
    """All of them; or, where a line in the middle is damaged, all others."""
    try:
        return read_events(path)
    except DAMAGED:
        events = []
        for line in path.read_bytes().split(b"\n"):
            try:
                events.append(event_of(line))
            except DAMAGED:
                continue
        return events


S = TypeVar("S", StepReport, ValidReport)


def _each_once(events: Sequence[S]) -> tuple[S, ...]:
    """A run that goes on from step 400 writes steps 401 to 500 a second time."""
    kept: list[S] = []
    for event in events:
        while kept and kept[-1].step >= event.step:
            kept.pop()
        kept.append(event)
    return tuple(kept)


def _scores(evaluation: dict[str, Any], speed: dict[str, Any], examples: dict[str, Any], confidence: Any, **more: Any) -> Scores:
    rows = [{**row, "scores": [MetricScore(**each) for each in row["scores"]]} for row in more.pop("directions", ())]
    before = tuple(Difference(**each) for each in more.pop("before", None) or ())
    evaluation["scores"] = [MetricScore(**each) for each in evaluation["scores"]]
    for each in evaluation["buckets"]:
        each["scores"] = [BucketScore(**score) for score in each["scores"]]
    evaluation["buckets"] = [LengthBucket(**each) for each in evaluation["buckets"]]
    evaluation["worst"] = [WorstSentence(**each) for each in evaluation["worst"]]
    return Scores(
        **evaluation,
        **more,
        before=before,
        directions=tuple(DirectionResult(**row) for row in rows),
        counts=[],
        speed=Speed(**speed),
        examples={kind: [Example(**each) for each in some] for kind, some in examples.items()},
        confidence=ConfidenceCheck.of(confidence) if confidence else None,
    )
