"""The law of `planning.scaling` is fitted to the runs of `scaling_runs.json`. It has three amplitudes, one exponent and a level a corpus.

    fit(runs()) -> Fit(...)        equal to `scaling.FITTED`; scaling_runs.py --write prints it after new runs
    fit_beginning(beginnings()) -> Beginning(...)        equal to `scaling.BEGINNING`, with the fit of the long runs held

Least squares of the loss by the method of Levenberg and Marquardt, in logarithms of what cannot be negative; a level lies between zero and
the lowest loss of its corpus. The start is fixed, so the same runs give the same numbers.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from limelight.model.config import ModelConfig
from limelight.planning.scaling import (
    BLEU_UP_TO,
    FITTED,
    Beginning,
    Fit,
    loss_of,
    predict_early_loss,
    unknown_level,
    without_embeddings,
)

PLACE: Final = Path(__file__).with_name("scaling_runs.json")
START: Final = (math.log(30.0), math.log(3.0), math.log(4e5), 1.0)  # ln a, ln b, ln c, beta
ROUNDS: Final = 400
NUDGE: Final = 1e-5  # of a parameter, for a derivative

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ScalingRun:
    name: str
    corpus: str
    config: ModelConfig
    seen: float
    unique: float
    loss: float
    bleu: float | None
    steps: int
    frequencies: float | None = None


def runs(place: Path = PLACE) -> list[ScalingRun]:
    points: list[dict[str, Any]] = json.loads(place.read_bytes())["points"]
    return [_run(each) for each in points]


def beginnings(place: Path = PLACE) -> list[ScalingRun]:
    """Runs of seconds to minutes."""
    points: list[dict[str, Any]] = json.loads(place.read_bytes())["beginnings"]
    return [_run(each) for each in points]


def _run(each: dict[str, Any]) -> ScalingRun:
    config = ModelConfig.preset(each["preset"], each["vocab_size"], **each.get("changes", {}))
    return ScalingRun(
        each["name"],
        each["corpus"],
        config,
        each["seen"],
        each["unique"],
        each["loss"],
        each["bleu"],
        each["steps"],
        each.get("frequencies"),
    )


def fit(given: Sequence[ScalingRun]) -> Fit:
    corpora = sorted({run.corpus for run in given})
    lowest = {corpus: min(run.loss for run in given if run.corpus == corpus) for corpus in corpora}

    counts, seen, unique = _ranges(given)

    def named(values: Numbers) -> Fit:
        ln_a, ln_b, ln_c, beta, *levels = (float(value) for value in values)
        bounded = {corpus: lowest[corpus] / (1 + math.exp(-x)) for corpus, x in zip(corpora, levels, strict=True)}
        return Fit(math.exp(ln_a), math.exp(ln_b), math.exp(ln_c), beta, bounded, 0.0, counts, seen, unique, {})

    def left(values: Numbers) -> Numbers:
        found = named(values)
        return np.array([difference(found, run) for run in given])

    found = named(_least(left, np.array([*START, *(1.0 for _ in corpora)])))
    told = {corpus: line for corpus in corpora if (line := _bleu([run for run in given if run.corpus == corpus])) is not None}
    return Fit(**{**vars(found), "spread": spread(found, given), "bleu": told})


def fit_beginning(given: Sequence[ScalingRun], fit: Fit = FITTED) -> Beginning:
    """What is gained, steps and how much harder, by the same method; runs that the long ones' law lies below for leave them as they are."""
    _, seen, unique = _ranges(given)

    def named(values: Numbers) -> Beginning:
        gained, ln_steps, harder = (float(value) for value in values)
        return Beginning(gained, math.exp(ln_steps), harder, 0.0, seen, unique)

    def left(values: Numbers) -> Numbers:
        return np.array([early_difference(named(values), run, fit) for run in given])

    values = _least(left, np.array([0.3, math.log(5.0), 2.0]))
    found = named(values)
    return replace(found, spread=math.sqrt(float(np.mean(left(values) ** 2))))


def early_difference(beginning: Beginning, run: ScalingRun, fit: Fit = FITTED) -> float:
    """What was measured, less what a plan expects of a text whose level is not known."""
    level = unknown_level(fit, run.config, run.frequencies, beginning)
    return run.loss - min(
        predict_early_loss(run.config, run.steps, run.frequencies, beginning),
        loss_of(fit, level, run.config, run.seen, run.unique),
    )


def spread(fit: Fit, given: Sequence[ScalingRun]) -> float:
    """Root of the mean squared difference of the loss."""
    return math.sqrt(sum(difference(fit, run) ** 2 for run in given) / len(given))


def difference(fit: Fit, run: ScalingRun) -> float:
    """What was measured, less what the fit says."""
    return run.loss - loss_of(fit, fit.levels[run.corpus], run.config, run.seen, run.unique)


def _bleu(given: Sequence[ScalingRun]) -> tuple[float, float, float] | None:
    """A straight line through BLEU over loss: at 0, what a nat costs, and its spread. None: the runs do not tell."""
    points = [(run.loss, run.bleu) for run in given if run.bleu is not None and run.loss <= BLEU_UP_TO]
    if len(points) < 4 or max(points)[0] - min(points)[0] < 1:
        return None
    losses, scores = (np.array(side) for side in zip(*points, strict=True))
    slope, at_zero = np.polyfit(losses, scores, 1)
    off = math.sqrt(float(np.mean((at_zero + slope * losses - scores) ** 2)))
    return float(at_zero), float(-slope), off


def _ranges(given: Sequence[ScalingRun]) -> list[tuple[float, float]]:
    """The least and the most of parameters, pieces seen, and pieces of text."""
    sides = zip(*((without_embeddings(run.config), run.seen, run.unique) for run in given), strict=True)
    return [(float(min(side)), float(max(side))) for side in sides]


def _least(left: Any, values: Numbers) -> Numbers:
    """Where the squares of `left(values)` are least: a step of Newton's, held back by `damping` as long as it would lead upwards."""
    damping, now = 1e-3, left(values)
    for _ in range(ROUNDS):
        moves = NUDGE * np.eye(len(values))
        slopes = np.array([(left(values + move) - left(values - move)) / (2 * NUDGE) for move in moves]).T
        square = slopes.T @ slopes
        step = np.linalg.solve(square + damping * (np.diag(np.diag(square)) + 1e-9 * np.eye(len(values))), -slopes.T @ now)
        step = np.clip(step, -1.0, 1.0)
        then = left(values + step)
        if then @ then < now @ now:
            gained = now @ now - then @ then
            values, now, damping = values + step, then, damping / 3
            if gained < 1e-12:
                break
        else:
            damping *= 4
            if damping > 1e12:
                break
    return values
