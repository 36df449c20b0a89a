"""Rules about learning tell whether a run was long enough, learned by heart, could not learn, or was shaken."""

import math
import re
import shlex
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from limelight.evaluation.verdict import LEAST, Use, times
from limelight.planning.shortfall import PARENT
from limelight.reporting.units import figure
from limelight.training.report.run_record import BY_HEART, RunRecord

NUMBER: Final = r"\d+(\.\d+)?"
NAMES: Final = {"chrf": "chrF", "bleu": "BLEU"}


@dataclass(frozen=True)
class Advice:
    """An advice says what was seen, in figures, and what usually helps. `serious`: the translator or its score is doubtful."""

    code: str
    seen: str
    do: str
    command: str | None = None
    serious: bool = False


VALIDATIONS: Final = 4  # fewer tell no direction
GAIN: Final = 0.3  # points, between the last quarter and all before


def gain(record: RunRecord) -> tuple[float, int] | None:
    """What the last quarter of the validations added to the best score before it, and over how many steps."""
    if len(record.validations) < VALIDATIONS:
        return None
    cut = len(record.validations) - max(1, len(record.validations) // 4)
    before, after = record.validations[:cut], record.validations[cut:]
    best = [max(getattr(valid, record.metric) for valid in some) for some in (before, after)]
    return best[1] - best[0], after[-1].step - before[-1].step


def is_too_short(record: RunRecord) -> bool:
    """Did it end, useless, before it had seen its text a few times? Of what such a run learnt there is nothing to say yet."""
    useless = record.verdict is not None and record.verdict.use is Use.NOT_USABLE
    return record.state == "done" and useless and record.epochs is not None and record.epochs < BY_HEART


def too_short(record: RunRecord) -> Advice | None:
    if not is_too_short(record) or record.epochs is None or record.is_mismatched:
        return None
    short = record.shortfall
    seen = f"its text was seen {times(record.epochs)} in {figure(record.last_step)} steps"
    if short is not None and short.pieces is None:
        first = "train longer first; even then, " if record.epochs < 1 else ""
        do = f"{first}by the estimate of limelight plan no time is enough for a model of this size with so little text: {PARENT}"
        return Advice("too_short", seen, do, serious=True)
    more = short.pieces / (record.epochs * short.unique) if short is not None and short.pieces and record.epochs else None
    told = f"; by the law of limelight plan about {figure(round(more))} times as much of it would do" if more else ""
    do = f"train longer, before anything else is changed{told}"
    return Advice("too_short", seen, do, lengthen_command(record, math.ceil(more or 2.0)), serious=True)


def another_kind(record: RunRecord) -> Advice | None:
    if not record.is_mismatched:
        return None
    late, last, epochs = record.late_nll, record.validations[-1], record.epochs
    return Advice(
        "another_kind",
        f"the training loss, {late:.2f}, stands far below the validation loss, {last.nll:.2f}, after {epochs:.2g} passes",
        "it cannot know its text by heart yet, so the validation pairs are of another kind than the corpus: source and target swapped, "
        "another language, or lines that are shifted; read some pairs of both",
        serious=True,
    )


def still_improving(record: RunRecord) -> Advice | None:
    found = gain(record)
    if found is None or found[0] < GAIN or record.state != "done" or is_too_short(record) or overfits(record):
        return None
    points, steps = found
    seen = f"still improving: +{points:.1f} {NAMES[record.metric]} in the last {figure(steps)} steps"
    return Advice("longer", seen, "train longer", lengthen_command(record))


def lengthen_command(record: RunRecord, factor: int = 2) -> str | None:
    """The same command with `factor` times the time or the steps: the run goes on where it ended. A budget that was larger than the text
    needed gives way to steps: more of it would add none."""
    words, grown = _command(record), False
    if record.recipe is not None and record.recipe.schedule.fixed:
        kept = [each for each in pairwise(["", *words]) if not (each[0] == "--budget" or each[1].startswith("--budget"))]
        words = [word for _, word in kept]
    for i, (before, word) in enumerate(pairwise(["", *words])):
        if before in ("--budget", "--steps") or word.startswith(("--budget=", "--steps=")):
            words[i], grown = re.sub(NUMBER, lambda number: f"{factor * float(number[0]):.15g}", word), True
    more = [] if grown else ["--steps", str(factor * record.planned_steps)]
    return shlex.join([*words, *more]) if words else None


def _command(record: RunRecord) -> list[str]:
    """That of the run, if it takes settings of a training: `demo` and `learn` do not."""
    words = record.facts.command
    return list(words) if {"train", "distill"} & {*words[1:2]} else []


def change_command(record: RunRecord, *settings: str) -> str | None:
    """The same command with other settings, into a folder of its own: a run does not go on with other settings."""
    words = _command(record)
    place = f"{str(record.run).rstrip('/')}-2"
    for i, (before, word) in enumerate(pairwise(["", *words])):
        if before in ("-o", "--output") or word.startswith("--output="):
            del words[max(0, i - (before in ("-o", "--output"))) : i + 1]
            break
    return shlex.join([*words, *settings, "-o", place]) if words else None


LONG_AGO: Final = 0.7  # of the steps at which the best score came
AFTER_BEST: Final = 3  # validations that did not reach it again
# Scores below which a best one is mostly chance: what is said then is the same of all sentences.
TELLS: Final = {"chrf": LEAST[Use.GIST][0], "bleu": LEAST[Use.GIST][1]}
RISE: Final = 0.03  # of the lowest validation loss


def overfits(record: RunRecord) -> Advice | None:
    best, valids = record.best, record.validations
    if best is None or len(valids) < VALIDATIONS or (record.epochs or 0.0) < BY_HEART:
        return None
    seen = []
    told = getattr(best, record.metric) >= TELLS[record.metric]
    if told and best.step <= LONG_AGO * record.last_step and sum(valid.step > best.step for valid in valids) >= AFTER_BEST:
        seen.append(
            f"the best {NAMES[record.metric]} came at step {figure(best.step)} of {figure(record.last_step)} and was not reached again"
        )
    lowest, last = min(valids, key=lambda each: each.nll if math.isfinite(each.nll) else math.inf), valids[-1]
    if last.nll > (1 + RISE) * lowest.nll:
        seen.append(
            f"the validation loss rose from {lowest.nll:.3f} at step {figure(lowest.step)} to {last.nll:.3f} at step {figure(last.step)}"
        )
    if not seen:
        return None
    dropout = record.recipe.model.dropout if record.recipe else 0.1
    more = min(0.5, round(dropout + 0.1, 2))
    return Advice(
        "overfits",
        "; ".join(seen),
        f"the model learns its corpus by heart: more dropout (model.dropout={more:g}, now {dropout:g}), more text, or a smaller model; "
        "validation.patience=5 ends such a run by itself; the best weights were kept",
    )


UNDERFIT: Final = 0.4  # nats by which the training loss stands above that of validation


def underfits(record: RunRecord) -> Advice | None:
    late, best = record.late_nll, record.best
    broken_off = is_too_short(record) or record.state == "diverged"
    if late is None or best is None or broken_off or not late > best.nll + UNDERFIT:
        return None
    dropout = record.recipe.model.dropout if record.recipe else 0.1
    seen = f"the training loss, {late:.2f}, stands far above the validation loss, {best.nll:.2f}"
    do = f"so much is dropped while it learns (model.dropout={dropout:g}) that it cannot learn more: less dropout, or a larger model"
    return Advice("underfits", seen, do)


SKIPPED: Final = 3  # steps; one or two happen to healthy runs
SKIPPED_SHARE: Final = 0.01  # of all steps, from which on they are serious


def unstable(record: RunRecord) -> Advice | None:
    diverged = record.state == "diverged"
    if len(record.skipped) < SKIPPED and not diverged:
        return None
    reasons = Counter(_kind(step.skipped or "") for step in record.skipped).most_common()
    told = ", ".join(f"{figure(number)} times {reason}" for reason, number in reasons)
    seen = f"{figure(len(record.skipped))} of {figure(len(record.steps))} steps were left out"
    seen += f" ({told}), the first at step {figure(record.skipped[0].step)}" if reasons else ""
    if diverged:
        seen = f"diverged at step {figure(record.last_step)}; {seen}"
    do, settings = "a lower learning rate, and a longer warm-up", []
    if record.recipe:
        rate, warmup = record.recipe.optimizer.learning_rate, record.recipe.schedule.warmup
        room = max(1, record.recipe.schedule.steps // 2)
        calm = min(room, max(2 * warmup, 1000))
        settings = [f"optimizer.learning_rate={rate * 0.35:.1g}", f"schedule.warmup={calm}"]
        do = f"learning rate {rate:g} is likely too high for a warm-up of {figure(warmup)} steps; try lower and longer"
    serious = diverged or len(record.skipped) > SKIPPED_SHARE * max(1, len(record.steps))
    return Advice("unstable", seen, do, change_command(record, *settings) if settings else None, serious)


def _kind(reason: str) -> str:
    """_kind("the loss 31.2 is 9 standard deviations above ...") -> "the loss was out of proportion"."""
    what, number, _ = re.split(r"(\d)", reason, maxsplit=1) if re.search(r"\d", reason) else (reason, "", "")
    return f"{what.strip()} was out of proportion" if number else what
