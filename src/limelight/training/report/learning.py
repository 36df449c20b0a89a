"""Sections about learning show curves, quality, samples, suspicious translations, advice and the next commands."""

import math
import shlex
from collections.abc import Sequence
from typing import Final

from limelight.corpus.report.markup import Figure, figure, share
from limelight.corpus.report.report import NO_PICTURES
from limelight.training.events import Sample, ValidReport
from limelight.training.report import curves as report_pictures
from limelight.training.report.advice_learning import NAMES, Advice, lengthen_command
from limelight.training.report.blocks import (
    Block,
    Cell,
    Code,
    Confidence,
    Details,
    Listing,
    Paragraph,
    Pictures,
    Points,
    QuotedText,
    RawHtml,
    Section,
    Strong,
    Table,
    decimal,
)
from limelight.training.report.run_record import Example, RunRecord
from limelight.training.run_folder import PREPARED

SHOWN_STEPS: Final = 4
KINDS: Final = {
    "random": "Drawn at random",
    "best": "The best",
    "worst": "The worst",
    "longest": "The longest sources",
}
MOST_EVENTS: Final = 100
MANY_VALIDATIONS: Final = 25  # more are folded
HAPPENED: Final = ("skipped", "replanned", "resumed", "stopped", "note")


def curves(record: RunRecord) -> Section:
    if not record.steps and not record.validations:
        return Section("Curves", [Paragraph(["There is nothing to draw: no step was recorded."])])
    told = "Over the steps. ★ is the best validation"
    told += ", ↻ where the run went on after a stop" if any(each.kind == "resumed" for each in record.notices) else ""
    told += ", ✕ a step that was left out" if record.skipped else ""
    drawn: Block = Pictures(report_pictures.curves(record))
    if not report_pictures.INSTALLED:
        drawn = RawHtml(f"<p>{NO_PICTURES}</p>")
    blocks: list[Block] = [Paragraph([f"{told}."]), drawn]
    blocks.append(Details("The curves in figures", [Table("Curves", _WORDS, _in_words(record))]))
    happened = [notice for notice in record.notices if notice.kind in HAPPENED]
    if happened:
        rows: list[list[Cell]] = [
            [str(figure(each.step)), f"{each.kind}: {each.text}"] for each in happened[:MOST_EVENTS]
        ]
        blocks.append(Details(_events_told(len(happened)), [Table("Events", ["step", "what"], rows)]))
    return Section("Curves", blocks)


def _events_told(number: int) -> str:
    return f"What happened: {number}" + (f", the first {MOST_EVENTS} of them" if number > MOST_EVENTS else "")


_WORDS: Final = ["curve", "first", "last", "lowest", "highest", "shape"]


def _in_words(record: RunRecord) -> list[list[Cell]]:
    steps, valids = record.steps, record.validations
    series: list[tuple[str, list[float], int | None]] = [
        ("training loss", [step.nll for step in steps], 3),
        ("validation loss", [valid.nll for valid in valids], 3),
        ("BLEU", [valid.bleu for valid in valids], 1),
        ("chrF", [valid.chrf for valid in valids], 1),
        ("learning rate", [step.learning_rate for step in steps], None),
        ("gradient norm", [step.gradient_norm for step in steps], 3),
        ("pieces/s", [(s.source_pieces + s.target_pieces) / s.seconds for s in steps if s.seconds > 0], 0),
    ]
    rows: list[list[Cell]] = []
    for name, values, digits in series:
        known = [value for value in values if math.isfinite(value)]
        if known:
            ends = (known[0], known[-1], min(known), max(known))
            rows.append(
                [
                    name,
                    *(_format_number(value, digits) for value in ends),
                    Code(report_pictures.sparkline(values)),
                ]
            )
    return rows


def _format_number(value: float, digits: int | None) -> Figure:
    if digits is None:
        return Figure(f"{value:.3g}")
    return decimal(value, digits) if digits else figure(round(value))


def quality(record: RunRecord) -> Section:
    blocks: list[Block] = []
    scores = record.scores
    if scores and scores.buckets:
        titles = [score.metric for score in scores.buckets[0].scores]
        rows: list[list[Cell]] = [
            [
                f"{bucket.name} {bucket.unit}" + (" (few)" if bucket.few else ""),
                figure(bucket.sentences),
                *(_with_interval(score.value, score.low, score.high) for score in bucket.scores),
            ]
            for bucket in scores.buckets
        ]
        blocks.append(Table(f"By length of the {scores.bucketed_by}", ["length", "sentences", *titles], rows))
    if record.validations:
        rows = [_validation(valid, valid == record.best) for valid in record.validations]
        every = Table("By validation", _VALIDATION, rows)
        many = len(rows) > MANY_VALIDATIONS
        blocks.append(Details(f"All {len(rows)} validations", [every]) if many else every)
    if record.facts.compared:
        metric = NAMES[record.metric]
        tried: list[list[Cell]] = [
            [name, decimal(value, 2), Figure("★ taken" if name == record.facts.winner else "")]
            for name, value in record.facts.compared.items()
        ]
        blocks.append(Table("Which weights became the translator", ["weights", f"validation {metric}", ""], tried))
    elif record.facts.winner:
        blocks.append(Paragraph([f"The translator has these weights: {record.facts.winner}."]))
    return Section("Quality", blocks or [Paragraph(["Nothing was validated or scored."])])


_VALIDATION: Final = ["step", "loss", "perplexity", "BLEU", "chrF", "best"]


def _validation(valid: ValidReport, best: bool) -> list[Cell]:
    perplexity = math.exp(valid.nll) if valid.nll < 20 else math.inf  # a loss that is no number has none
    numbers = [decimal(valid.nll, 3), decimal(perplexity, 1), decimal(valid.bleu, 1), decimal(valid.chrf, 1)]
    return [str(figure(valid.step)), *numbers, Figure("★" if best else "")]


def _with_interval(value: float, low: float | None, high: float | None) -> Figure:
    half = "" if low is None or high is None else f" ±{(high - low) / 2:.1f}"
    return Figure(f"{value:.1f}{half}")


def choose_validations(record: RunRecord) -> list[ValidReport]:
    """The first, the best, and some between them evenly: at most SHOWN_STEPS, for seeing how a translation came about."""
    spoken = [valid for valid in record.validations if valid.samples]
    if record.best in spoken:
        spoken = spoken[: spoken.index(record.best) + 1]
    if len(spoken) <= SHOWN_STEPS:
        return spoken
    return [spoken[round(i * (len(spoken) - 1) / (SHOWN_STEPS - 1))] for i in range(SHOWN_STEPS)]


def samples(record: RunRecord) -> Section:
    source, target = record.languages or (None, None)
    chosen = choose_validations(record)
    blocks: list[Block] = []
    if chosen:
        blocks.append(
            Paragraph(
                [
                    "The same sentences, translated while it learned. Marked are words that the reference does not have there; "
                    "confidence is the mean probability of a piece, 1 at most."
                ]
            )
        )
    for number, first in enumerate(chosen[-1].samples if chosen else (), 1):
        rows: list[list[Cell]] = [
            ["source", QuotedText(first.source, source), Figure("")],
            ["reference", QuotedText(first.reference, target), Figure("")],
        ]
        for valid in chosen:
            if number <= len(valid.samples):
                sample = valid.samples[number - 1]
                step = f"step {figure(valid.step)}" + (" ★" if valid == record.best else "")
                rows.append([step, _against(sample, target), Confidence(sample.confidence)])
        blocks.append(Table(f"Sentence {number}", ["when", "what it said", "confidence"], rows))
    for kind, title in KINDS.items():
        some = record.scores.examples.get(kind, ()) if record.scores else ()
        if some:
            blocks.append(Details(f"{title}: {len(some)} of the test set", [_examples(title, some, source, target)]))
    return Section("Watch it learn", blocks or [Paragraph(["Nothing was translated."])])


def _examples(title: str, some: Sequence[Example], source: str | None, target: str | None) -> Table:
    rows: list[list[Cell]] = []
    for number, each in enumerate(some, 1):
        sure = [] if each.confidence is None else [Confidence(each.confidence)]
        rows.append(
            [
                str(number),
                QuotedText(each.source, source),
                QuotedText(each.reference, target),
                _against(each, target),
                *sure,
            ]
        )
    head = ["", "source", "reference", "translation", "confidence"]
    return Table(title, head[: min(map(len, rows))], [row[: min(map(len, rows))] for row in rows])


def _against(sample: Sample | Example, language: str | None) -> Cell:
    return QuotedText(sample.translation, language, sample.reference) if sample.translation.strip() else "(nothing)"


def suspicious(record: RunRecord) -> Section:
    scores = record.scores
    if scores is None:
        return Section("Suspicious", [Paragraph(["No test set was translated."])])
    source, target = record.languages or (None, None)
    blocks: list[Block] = []
    for caption, counts in (
        ("Seen in translation and reference", scores.suspicious),
        ("Warned of while translating", scores.warnings),
    ):
        rows: list[list[Cell]] = [
            [kind.replace("_", " "), figure(number), share(number, scores.sentences)] for kind, number in counts.items()
        ]
        if rows:
            blocks.append(Table(caption, ["what", "sentences", "of all"], rows))
    if not blocks:
        blocks.append(Paragraph(["No translation loops, is empty, is its source again, or lost its numbers."]))
    if scores.worst:
        worst: list[list[Cell]] = [
            [
                str(figure(each.line)),
                decimal(each.chrf, 1),
                "; ".join(each.reasons),
                QuotedText(each.source or "", source),
                QuotedText(each.translation, target, each.references[0] if each.references else None),
                QuotedText(" / ".join(each.references), target),
            ]
            for each in scores.worst
        ]
        head = ["line", "chrF", "why", "source", "translation", "reference"]
        blocks.append(Details(f"The {len(worst)} worst sentences", [Table("Worst sentences", head, worst)]))
    return Section("Suspicious", blocks)


def advice(found: list[Advice]) -> Section:
    if not found:
        return Section("Advice", [Paragraph(["None: no rule found anything to change."])])
    points: list[list[Cell]] = []
    for each in found:
        seen = each.seen[:1].upper() + each.seen[1:]
        point: list[Cell] = [Strong(f"{'⚠ ' if each.serious else ''}{seen}."), f" {each.do[:1].upper()}{each.do[1:]}"]
        points.append([*point, ": " if each.command else ".", *([Code(each.command)] if each.command else [])])
    return Section("Advice", [Points(points)])


def following(record: RunRecord) -> Section:
    """Commands to copy."""
    run = str(record.run)
    commands = []
    if record.bundled:
        spoken = [sample.source for valid in record.validations[-1:] for sample in valid.samples[:1]]
        text = spoken[0] if spoken else "A sentence."
        commands.append(("Translate", ["limelight", "translate", run, text]))
        if record.manifest:
            commands.append(("Evaluate", ["limelight", "evaluate", run, f"{run}/{PREPARED}"]))
        commands.append(("Evaluate on another set", ["limelight", "evaluate", run, "test.source", "test.reference"]))
    lines = [f"# {what}\n{shlex.join(words)}" for what, words in commands]
    if record.state in ("interrupted", "preempted", "failed", "training") and record.facts.command:
        lines.append(f"# Go on from the last checkpoint\n{shlex.join(record.facts.command)}")
    more = lengthen_command(record)
    if more and record.state == "done":
        lines.append(f"# The same for longer\n{more}")
    lines.append(f"# Write this report again\n{shlex.join(['limelight', 'report', run])}")
    return Section("Next", [Listing("\n".join(lines))])
