"""A result sums up a run that ended: lines for people, values for programs, and the exit code."""

import json
from pathlib import Path
from typing import Any, Final

from limelight.training.checkpoints import checkpoint
from limelight.training.config import Recipe
from limelight.training.recipe.request import TrainResult
from limelight.training.report.headline import tell_before
from limelight.training.report.run_record import read_run
from limelight.training.run_folder import BUNDLE, CHECKPOINTS, PREPARED, REPORT_HTML, SCORES, SYNTHETIC_FOLDER, RunFacts, State, read_status

# 130: what shells say after Ctrl-C. The rest is sysexits.h: 75 try again, 70 internal.
NOTHING_YET = ("nothing was saved yet", "what was made before its own training is saved; the same command goes on")
EXIT_CODES: Final[dict[State, int]] = {"done": 0, "interrupted": 130, "preempted": 75, "diverged": 70}


def result_of(run: Path, state: State) -> TrainResult:
    facts, status, path = RunFacts.load(run), read_status(run), run / SCORES
    stored: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
    scores = list(stored["evaluation"]["scores"]) if stored else []
    headline = " · ".join(f"{each['name']} {each['value']:.1f}" for each in scores)
    directions = list(stored.get("directions", ()))
    told = f"{headline} ({directions[0]['direction']})" if headline and directions else headline
    lines = [f"{run}: {told}" if told else f"{run}: {state}"]
    for each in directions:
        told = " · ".join(f"{score['name']} {score['value']:.1f}" for score in each["scores"])
        lines.append(f"{each['direction']:11} {told}" + ("" if each["trained"] else " (never trained)"))
    # Only of a run that is over: reading all of it would keep one waiting that was told to stop.
    record = read_run(run) if state == "done" else None
    verdict = record.verdict if record is not None else None
    if verdict is not None:
        lines += [f"{verdict.headline}.", verdict.because]
    if facts.problem:
        lines.append(facts.problem)
    if state in ("interrupted", "preempted"):
        saved = checkpoint.latest(run / CHECKPOINTS).checkpoint
        again = "; the same command goes on from there" if state == "preempted" else ""  # Ctrl-C is told so by the command line
        lines.append(f"saved at step {saved.step:,}{again}" if saved else NOTHING_YET[(run / SYNTHETIC_FOLDER).exists()])
    if (run / BUNDLE).exists():
        lines.append(f'translate   limelight translate {run} "..."')
    if record is not None and record.scores is not None and record.scores.before:
        lines.append(tell_before(record.scores.before))
    elif scores and record is not None and record.recipe is not None and (tuned := record.recipe.fine_tuning) and tuned.parent is None:
        lines.append(f"is it better? limelight evaluate {tuned.bundle} {run / PREPARED} --compare {run}")
    if (run / REPORT_HTML).exists():
        lines.append(f"report      {run / REPORT_HTML}")
    values: dict[str, Any] = {"state": state, "folder": str(run), **status, "scores": scores, "seconds": facts.seconds}
    values |= {"directions": directions} if directions else {}
    values["verdict"] = None if verdict is None else verdict.values()
    return TrainResult(state, run, EXIT_CODES.get(state, 70), headline or None, lines, values)


def dry_result(run: Path, facts: RunFacts) -> TrainResult:
    lines = [str(each) for each in facts.chosen]
    values = {"state": "done", "folder": str(run), "chosen": [vars(each) for each in facts.chosen]}
    return TrainResult("done", run, 0, None, [*lines, "nothing was trained; leave out --dry-run to begin"], values)


def divergence(recipe: Recipe, step: int) -> str:
    rate, warmup = recipe.optimizer.learning_rate, recipe.schedule.warmup
    return (
        f"{recipe.trouble.in_a_row} steps in a row could not be used (up to step {step:,}); likely the learning rate {rate:g} is too "
        f"high for a warm-up of {warmup}; try optimizer.learning_rate={rate / 3:.2g} in a new folder"
    )
