"""The head of a report says how the run ended, in a sentence, with the figures by which it is known."""

from collections.abc import Sequence
from typing import Final

from limelight.evaluation.metrics.compare import Difference
from limelight.evaluation.metrics.metrics import MetricScore
from limelight.evaluation.verdict import Use
from limelight.reporting.blocks import Block, Cell, Code, Paragraph, Strong, Table
from limelight.reporting.units import Figure, decimal, figure, time_taken
from limelight.training.report.advice_learning import GAIN, NAMES, Advice, gain, still_improving
from limelight.training.report.run_record import RunRecord, Scores

GOES_ON: Final = "The same command goes on from there."
ENDINGS: Final = {
    "preparing": "It ended while the corpus was being prepared.",
    "training": "It is still training, or was killed: its last word is of step {step} of {steps}.",
    "scoring": "It is being scored, or was killed meanwhile.",
    "interrupted": "Interrupted at step {step} of {steps}. " + GOES_ON,
    "preempted": "Stopped from outside at step {step} of {steps}. " + GOES_ON,
    "diverged": "Diverged at step {step} of {steps}.",
    "failed": "Failed at step {step} of {steps}.",
    "unknown": "Nothing says how it ended; its last word is of step {step} of {steps}.",
}
SIGNS: Final = {True: "✔", False: "⚠"}


def title(record: RunRecord, advice: list[Advice]) -> str:
    """en-de — BLEU 24.7 ±0.9 · chrF 50.3 ±0.6 · 4 h 38 min · 5 860 source + target pieces/s ✔"""
    told = _scores_told(record)
    told += [time_taken(record.seconds)] if record.seconds else []
    if record.pieces_per_second:
        told.append(f"{figure(round(record.pieces_per_second))} source + target pieces/s")
    return f"{record.name} — {' · '.join(told) or 'nothing was recorded'} {SIGNS[fine(record, advice)]}"


def short_title(record: RunRecord, advice: list[Advice]) -> str:
    """en-de — BLEU 24.7 ±0.9 · chrF 50.3 ±0.6 ✔"""
    scores = " · ".join(_scores_told(record))
    return f"{record.name}{' — ' if scores else ''}{scores} {SIGNS[fine(record, advice)]}"


def _scores_told(record: RunRecord) -> list[str]:
    found = [record.scores.of(name) for name in ("BLEU", "chrF")] if record.scores else []
    return [f"{score.name.removesuffix('2')} {with_half(score)}" for score in found if score is not None]


def fine(record: RunRecord, advice: list[Advice]) -> bool:
    """It ended as planned, has scores, all was readable, no serious advice was found, and people can work with what it says."""
    serious = any(each.serious for each in advice) or bool(record.unreadable)
    usable = record.verdict is not None and record.verdict.use in (Use.POST_EDIT, Use.GOOD)
    return record.state == "done" and record.scores is not None and not serious and usable


def describe_verdict(record: RunRecord, advice: list[Advice]) -> Paragraph:
    """The first words of a report: what the translator is good for, why, and what would change that."""
    found = record.verdict
    if found is None:
        return Paragraph([Strong(f"{SIGNS[False]} Not judged: there is no score of any kind.")])
    where = "" if record.scores else " These are scores of validation, which the weights were chosen by."
    return Paragraph([Strong(f"{SIGNS[fine(record, advice)]} {found.headline}."), f" {found.because}{where}"])


def sentences(record: RunRecord) -> list[str]:
    steps = {"step": figure(record.last_step), "steps": figure(record.planned_steps)}
    told = []
    if record.state != "done":
        told.append(ENDINGS.get(record.state, ENDINGS["unknown"]).format(**steps))
    if record.facts.problem:
        told.append(f"{record.facts.problem.rstrip('.')}.")
    if not record.steps:
        told.append("It ended before its first step.")
    elif record.best is None:
        told.append("It was not validated.")
    else:
        told.append(f"Best at step {figure(record.best.step)} of {steps['step']}.")
        found = gain(record)
        if record.state == "done" and found and found[0] >= GAIN:
            more = ": train longer" if still_improving(record) else ""
            told.append(f"Still improving (+{found[0]:.1f} {NAMES[record.metric]} in the last {figure(found[1])} steps){more}.")
    if record.steps and record.scores is None:
        told.append("It was not scored on a test set.")
    return told


def numbers(record: RunRecord) -> list[tuple[str, str]]:
    shown: list[tuple[str, str]] = [
        (score.name.removesuffix("2") + ("" if score.higher_is_better else ", lower is better"), with_half(score))
        for score in (record.scores.scores if record.scores else ())
    ]
    if not shown and record.best:
        shown = [("BLEU, validation", f"{record.best.bleu:.1f}"), ("chrF, validation", f"{record.best.chrf:.1f}")]
    if record.best:
        shown.append((f"best step of {figure(record.last_step)}", figure(record.best.step)))
    if record.seconds:
        shown.append(("wall clock", time_taken(record.seconds)))
    if record.pieces_per_second:
        shown.append(("source + target pieces/s", figure(round(record.pieces_per_second))))
    return shown


def soundness(record: RunRecord, advice: list[Advice]) -> str:
    serious = [each.seen for each in advice if each.serious]
    if fine(record, advice):
        hints = "1 hint" if len(advice) == 1 else f"{len(advice)} hints"
        return "✔ Nothing serious was seen." + (f" {hints} at the end." if advice else "")
    reasons = serious + list(record.unreadable)
    if record.state not in ("done", "diverged"):
        reasons.insert(0, f"the run did not come to its end (state: {record.state})")
    elif record.state == "done" and record.scores is None:
        reasons.insert(0, "there are no scores of a test set")
    told = "; ".join(reasons) or "see the verdict above"
    return f"⚠ {told[:1].upper()}{told[1:]}."


def headline(record: RunRecord, advice: list[Advice]) -> list[Block]:
    """Whether it is sound, and its scores, without the sentences and the figures, which each format sets in its own way."""
    blocks: list[Block] = [Paragraph([Strong(soundness(record, advice))])]
    scores = record.scores
    if scores and scores.scores:
        rows: list[list[Cell]] = [
            [score.name, decimal(score.value, _digits(score)), _half(score), _interval(score), Code(score.signature)]
            for score in scores.scores
        ]
        told = scores.set + (f", beam {scores.search['beam']}" if "beam" in scores.search else "")
        blocks.append(Table(f"Scores on {told}", ["metric", "value", "±", "95 % between", "signature"], rows))
        blocks += [f"Note: {note}." for note in scores.notes]
        blocks += [f"{tell_before(scores.before)}."] if scores.before else []
        blocks += _directions(scores)
        if (speed := scores.speed).seconds:
            blocks.append(
                f"Translated in {time_taken(speed.seconds)}: {speed.sentences_per_second:.1f} sentences/s, "
                f"{figure(round(speed.pieces_per_second))} source + target pieces/s."
            )
    return blocks


def tell_before(differences: Sequence[Difference]) -> str:
    """before: BLEU 31.2 · chrF2 55.0 by the translator it went on from; this one is better by 2.1 BLEU (p = 0.010): unlikely ..."""
    had = " · ".join(f"{each.metric} {each.system:.1f}" for each in differences)
    return f"before: {had} by the translator it went on from; {'; '.join(each.verdict for each in differences)}"


def _directions(scores: Scores) -> list[Block]:
    rows: list[list[Cell]] = [
        [each.direction, "yes" if each.trained else "never", figure(each.sentences), *map(with_half, each.scores)]
        for each in scores.directions
    ]
    if not rows:
        return []
    names = [score.name for score in scores.directions[0].scores]
    left = f"Never trained, and not measured: {', '.join(scores.unmeasured)}." if scores.unmeasured else ""
    return [Table("Scores of each direction", ["direction", "trained", "sentences", *names], rows), *([left] if left else [])]


def with_half(score: MetricScore) -> str:
    """with_half(a score of 24.7 between 23.8 and 25.6) -> "24.7 ±0.9": half the width of the interval."""
    value = f"{score.value:.{_digits(score)}f}"
    return value if (half := _half(score)) == "-" else f"{value} ±{half}"


def _half(score: MetricScore) -> Figure:
    if score.low is None or score.high is None:
        return Figure("-")
    return decimal((score.high - score.low) / 2, _digits(score))


def _interval(score: MetricScore) -> Figure:
    if score.low is None or score.high is None:
        return Figure("-")
    return Figure(f"{score.low:.{_digits(score)}f} and {score.high:.{_digits(score)}f}")


def _digits(score: MetricScore) -> int:
    return 3 if score.name == "COMET" else 1  # COMET is a number around 0.8; the others are percent
