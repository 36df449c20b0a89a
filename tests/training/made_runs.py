"""Run folders as `limelight train` leaves them, with curves that are functions of the step: equal stories give equal bytes."""

import json
import math
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.manifest import CorpusEntry, CorpusManifest
from limelight.evaluation.confidence.reliability import reliability
from limelight.evaluation.suspicions import DEGENERATE
from limelight.model.config import ModelConfig
from limelight.training.config import OptimizerSettings, Recipe, ScheduleSettings, ValidationSettings
from limelight.training.events import Event, RunNotice, Sample, StepReport, ValidReport, line_of
from limelight.training.run_folder import (
    BUNDLE,
    METRICS,
    PREPARED,
    RECIPE,
    SCORES,
    RunChoice,
    RunFacts,
    State,
    write_status,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from reported_manifests import corpus, manifest

SENTENCES = [
    (
        "Two men are standing on a bridge.",
        "Zwei Männer stehen auf einer Brücke.",
        ["Ein Mann in einem Mann.", "Zwei Männer sind auf einem Strand.", "Zwei Männer stehen auf einem Brücke.", None],
    ),
    (
        "A boy in a red shirt is playing with a dog in the snow.",
        "Ein Junge in einem roten Hemd spielt mit einem Hund im Schnee.",
        [
            "Ein Mann in einem Mann in einem Mann.",
            "Ein Junge in einem roten Hemd spielt mit einem Ball.",
            "Ein Junge in rotem Hemd spielt mit einem Hund im Schnee.",
            None,
        ],
    ),
    (
        "Several people wait for the 14:30 train to Berlin.",
        "Mehrere Leute warten auf den Zug um 14:30 Uhr nach Berlin.",
        [
            "Eine Gruppe von Menschen.",
            "Mehrere Leute warten auf einen Zug.",
            "Mehrere Personen warten auf den Zug nach Berlin.",
            "Mehrere Leute warten auf den 14:30 Zug nach Berlin.",
        ],
    ),
]
COMMAND = ["limelight", "train", "train.en", "train.de", "-o", "en-de", "--budget", "30m", "--seed", "1"]
SIGNATURE = "nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


@dataclass(frozen=True)
class Story:
    """What happens in a run. The defaults are a healthy one that ended as planned."""

    steps: int = 1200
    planned: int = 1200
    every: int = 100
    state: State = "done"
    problem: str | None = None
    chrf: tuple[float, ...] | None = None  # of the validations; None: rising to 56 and level at the end
    valid_nll: tuple[float, ...] | None = None  # None: falling to 1.6
    train_nll: float = 1.5  # at the end
    dropout: float = 0.2
    skipped: tuple[int, ...] = ()
    resumed: tuple[int, ...] = ()
    padding: float = 0.05
    waited: float = 0.01  # of each step's time
    command: tuple[str, ...] = tuple(COMMAND)
    corpora: tuple[CorpusEntry, ...] = (
        corpus("train", {"train": 27_954}, {"duplicate": 31, "length_ratio": 7, "leak": 8}, {"numbers": 12}),
        corpus("valid", {"valid": 1014}, {}),
        corpus("test", {"test": 1000}, {}),
    )
    test_chrf: float | None = 57.2  # None: not scored
    long_chrf: float = 54.0  # of the longest sentences
    suspicious: dict[str, int] = field(default_factory=lambda: {"numbers differ": 4, "too short": 1})
    text: str = ""  # added to every text that users, files or the model may have written

    def but(self, **changes: Any) -> "Story":
        return replace(self, **changes)


HEALTHY = Story()
INTERRUPTED = Story(steps=450, state="interrupted", problem="stopped by Ctrl-C", test_chrf=None)
DIVERGED = Story(
    steps=312,
    state="diverged",
    problem="10 steps in a row were left out",
    skipped=tuple(range(303, 313)),
    test_chrf=None,
)
BEFORE_THE_FIRST_STEP = Story(steps=0, state="interrupted", problem="stopped by Ctrl-C", test_chrf=None)


def make(run: Path, story: Story = HEALTHY) -> Path:
    """All files of a run, but checkpoints and what is inside of the bundle."""
    run.mkdir(parents=True)
    recipe(story).save(run / RECIPE)
    facts(story).save(run)
    (run / PREPARED).mkdir()
    told(story).save(run / PREPARED)
    (run / METRICS).write_bytes("".join(map(line_of, events(story))).encode())
    write_status(run, story.state, story.steps, story.planned)
    if story.steps:
        (run / BUNDLE).mkdir()
    if story.test_chrf is not None:
        (run / SCORES).write_bytes(json.dumps(scores(story, story.test_chrf), ensure_ascii=False).encode())
    return run


def recipe(story: Story) -> Recipe:
    return Recipe(
        data=PrepareSettings(languages=("en", "de"), corpora=[CorpusSettings(name="train", paths=["train.en", "train.de"])]),
        model=ModelConfig.preset("small", 8000, dropout=story.dropout, tie="all"),
        optimizer=OptimizerSettings(learning_rate=0.002),
        schedule=ScheduleSettings(steps=story.planned, warmup=min(100, story.planned // 3)),
        validation=ValidationSettings(every=story.every),
        budget_seconds=1800.0,
        seed=1,
    )


def facts(story: Story) -> RunFacts:
    return RunFacts(
        command=list(story.command),
        began="2026-11-15T11:30:00+00:00",
        versions={"python": "3.12.3", "limelight": "0.1.0", "torch": "2.13.0+cpu" + story.text},
        commit="0c4e05b1c2a94d1f, dirty",
        machine={
            "cpu": "AMD EPYC 9B14" + story.text,
            "cores": "2",
            "memory": "7.8 GB",
            "device": "cpu",
            "precision": "masters",
        },
        chosen=[
            RunChoice("model", "small: 3+3 layers, 256 wide, 7.6 M parameters", "27 954 pairs, and 30 minutes" + story.text),
            RunChoice("steps", f"{story.planned}", "what fits into 30 minutes at 5 900 pieces/s"),
            RunChoice("vocabulary", "8 000 pieces", "shared; suggested from the corpus"),
        ],
        parameters={"embeddings": 2_048_000, "encoder": 2_369_280, "decoder": 3_159_552},
        flops_per_piece=4.1e7,
        seconds={"prepare": 9.1, "calibrate": 12.0, "train": 1.02 * story.steps, "validate": 96.0, "save": 4.2}
        | ({} if story.test_chrf is None else {"score": 48.5}),
        memory=2_310_000_000,
        winner=None if story.test_chrf is None else "mean of the 3 best",
        compared={}
        if story.test_chrf is None
        else {"weights at the end": 56.01, "best validation (step 1,100)": 56.1, "mean of the 3 best": 56.32},
        calibrated=None if story.test_chrf is None else 1000,
        problem=None if story.problem is None else story.problem + story.text,
    )  # fmt: skip


def told(story: Story) -> CorpusManifest:
    return manifest(story.corpora, story.text or "en-de")


def events(story: Story) -> list[Event]:
    made: list[Event] = [RunNotice(0, 21.0, "chosen", "model: small" + story.text)]
    elapsed, best, number = 21.0, -1.0, 0
    for step in range(1, story.steps + 1):
        if step in story.resumed:
            made.append(RunNotice(step - 1, elapsed, "resumed", f"goes on from step {step - 1}" + story.text))
        elapsed += 1.0
        made.append(_step(story, step, elapsed))
        if step in story.skipped:
            made.append(RunNotice(step, elapsed, "skipped", "the loss is not a number" + story.text))
        if step % story.every == 0:
            elapsed += 8.0
            chrf = _chrf(story, number)
            made.append(_valid(story, step, elapsed, number, chrf, chrf > best))
            best, number = max(best, chrf), number + 1
    return made


def _wave(step: int) -> float:
    """Noise that is the same each time, between -1 and 1."""
    return math.sin(12.9898 * step) * math.cos(4.1 * step * step % 6.28)


def _step(story: Story, step: int, elapsed: float) -> StepReport:
    nll = story.train_nll + 7.2 * math.exp(-step / (story.planned / 9)) + 0.12 * _wave(step)
    bad = step in story.skipped
    warmup = min(100, story.planned // 3)
    rate = 0.002 * min(step / warmup, 1 - 0.99 * max(0, step - warmup) / max(1, story.planned - warmup))
    seconds = 1.0 + 0.06 * _wave(3 * step)
    return StepReport(
        step=step,
        steps=story.planned,
        epoch=step / 200,
        loss=math.nan if bad else nll + 0.9,
        nll=math.nan if bad else nll,
        learning_rate=rate,
        gradient_norm=math.inf if bad else 0.5 + 4 * math.exp(-step / 60) + 0.2 * abs(_wave(7 * step)),
        source_pieces=2810 + int(90 * _wave(step)),
        target_pieces=3050 + int(120 * _wave(2 * step)),
        padding=story.padding,
        seconds=seconds,
        waited=story.waited * seconds,
        elapsed=elapsed,
        left=story.planned - step,
        memory=2_310_000_000,
        skipped=("the loss is not a number" + story.text) if bad else None,
    )


def _chrf(story: Story, number: int) -> float:
    if story.chrf is not None:
        return story.chrf[number]
    return 56 * (1 - math.exp(-(number + 1) / 1.6)) + 0.05 * _wave(number)


def _valid(story: Story, step: int, elapsed: float, number: int, chrf: float, best: bool) -> ValidReport:
    nll = 1.6 + 3.4 * math.exp(-(number + 1) / 1.5) if story.valid_nll is None else story.valid_nll[number]
    phase = min(3, number * 4 // max(1, story.planned // story.every))
    samples = tuple(
        Sample(
            source + story.text,
            reference + story.text,
            (said[phase] or reference) + story.text,
            0.35 + 0.15 * phase + 0.02 * place,
        )
        for place, (source, reference, said) in enumerate(SENTENCES)
    )
    return ValidReport(step, elapsed, 8.0, nll, max(0.0, 1.3 * chrf - 36), chrf, best, samples)


def scores(story: Story, chrf: float) -> dict[str, Any]:
    def score(name: str, value: float, half: float, higher: bool = True) -> dict[str, Any]:
        return {
            "name": name, "value": value, "low": value - half, "high": value + half,
            "signature": SIGNATURE, "higher_is_better": higher,
        }  # fmt: skip

    def bucket(shortest: int, longest: int | None, sentences: int, value: float, half: float) -> dict[str, Any]:
        triples = [("BLEU", 1.3 * value - 36), ("chrF2", value), ("TER", 100 - value)]
        return {
            "shortest": shortest, "longest": longest, "unit": "words", "sentences": sentences, "few": sentences < 100,
            "scores": [{"metric": m, "value": v, "low": v - half, "high": v + half} for m, v in triples],
        }  # fmt: skip

    examples = [
        {"source": s + story.text, "reference": r + story.text, "translation": (said[2] or r) + story.text} for s, r, said in SENTENCES
    ]
    worst = [
        {
            "line": 17 + i, "chrf": 21.5 + i, "reasons": ["numbers differ: 14:30 lost" + story.text],
            "source": s + story.text, "translation": (said[1] or r) + story.text, "references": [r + story.text],
        }
        for i, (s, r, said) in enumerate(SENTENCES)
    ]  # fmt: skip
    return {
        "set": "test_2016_flickr.en, 1,000 pairs" + story.text,
        "evaluation": {
            "sentences": 1000,
            "references": 1,
            "scores": [score("BLEU", 1.3 * chrf - 36, 1.13), score("chrF2", chrf, 0.81), score("TER", 44.4, 1.2, False)],
            "buckets": [
                bucket(0, 10, 402, chrf + 2.1, 1.2),
                bucket(11, 20, 478, chrf - 0.4, 1.0),
                bucket(21, 40, 120, story.long_chrf, 2.2),
            ],
            "bucketed_by": "source",
            "suspicious": story.suspicious,
            "degenerate": max(story.suspicious.get(kind.value, 0) for kind in DEGENERATE),
            "worst": worst,
            "notes": ["the reference seems to be tokenized" + story.text] if story.text else [],
        },
        "speed": {"sentences": 1000, "seconds": 38.4, "source_pieces": 15_820, "target_pieces": 17_300},
        "search": {"beam": 4, "length_penalty": 0.6},
        "warnings": {"too_short": 1},
        "examples": {"best": examples, "longest": examples, "random": examples},
        "confidence": confidence(),
    }  # fmt: skip


def confidence() -> dict[str, Any]:
    """Of 12,000 words, right as often as they say; the model claims the square root of that."""
    true = (np.arange(12_000) % 97) / 97
    right = ((np.arange(12_000) * 0.618) % 1 < true).astype(np.float64)
    shares = right.reshape(-1, 12).mean(axis=1)
    sentences = reliability(true.reshape(-1, 12).mean(axis=1), shares, shares**0.5)
    return {
        "words": asdict(reliability(true, right, true**0.5)),
        "sentences": asdict(sentences),
        "whole": asdict(sentences),
    }
