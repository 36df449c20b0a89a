"""Sections about learning show quality, samples, suspicious translations, advice and the next commands."""

import difflib
import math
from collections.abc import Mapping
from typing import Final

from limelight.evaluation.metrics.buckets import is_spaced
from limelight.reporting.blocks import Block, Cell, Code, Confidence, Details, Points, Quote, Section, Strong, Table
from limelight.reporting.units import Figure, decimal, figure, share
from limelight.training.events import ValidReport
from limelight.training.report.advice_learning import NAMES, Advice
from limelight.training.report.run_record import RunRecord

SHOWN_STEPS: Final = 4
KINDS: Final = {"random": "Drawn at random", "best": "The best", "longest": "The longest sources"}
MANY_VALIDATIONS: Final = 25  # more are folded


def quality(record: RunRecord) -> Section:
    blocks: list[Block] = []
    scores = record.scores
    if scores and scores.buckets:
        titles = [score.metric for score in scores.buckets[0].scores]
        rows = []
        for bucket in scores.buckets:
            length = f"{bucket.name} {bucket.unit}" + (" (few)" if bucket.few else "")
            cells = (_with_interval(score.value, score.low, score.high) for score in bucket.scores)
            rows.append([length, figure(bucket.sentences), *cells])
        blocks.append(Table(f"By length of the {scores.bucketed_by}", ["length", "sentences", *titles], rows))
    if record.validations:
        rows = [_validation(valid, valid == record.best) for valid in record.validations]
        every = Table("By validation", ["step", "loss", "perplexity", "BLEU", "chrF", "best"], rows)
        blocks.append(Details(f"All {len(rows)} validations", [every]) if len(rows) > MANY_VALIDATIONS else every)
    if record.best and record.best.directions:
        rows = [[each.direction, decimal(each.bleu, 1), decimal(each.chrf, 1)] for each in record.best.directions]
        blocks.append(Table("By direction, at the best validation; above is their mean", ["direction", "BLEU", "chrF"], rows))
    facts = record.facts
    if facts.compared:
        blocks.append(_table_tried("Which weights became the translator", "weights", facts.compared, facts.winner, record))
    elif facts.winner:
        blocks.append(f"The translator has these weights: {facts.winner}.")
    if facts.searched:
        taken = max(facts.searched, key=lambda name: facts.searched[name])
        blocks.append(_table_tried("How it searches unless asked otherwise", "search", facts.searched, taken, record))
    return Section("Quality", blocks or ["Nothing was validated or scored."])


def _table_tried(title: str, kind: str, tried: Mapping[str, float], taken: str | None, record: RunRecord) -> Table:
    rows = [[name, decimal(value, 2), Figure("★ taken" if name == taken else "")] for name, value in tried.items()]
    return Table(title, [kind, f"validation {NAMES[record.metric]}", ""], rows)


def _validation(valid: ValidReport, best: bool) -> list[str]:
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


def summarize_learning(record: RunRecord) -> list[Block]:
    """For the head of report.md: some validations, and what was said for one sentence then."""
    chosen = choose_validations(record)
    if not chosen:
        return []
    rows: list[list[Cell]] = [
        [
            *(str(figure(valid.step)), decimal(valid.nll, 2), decimal(valid.bleu, 1), decimal(valid.chrf, 1)),
            Quote(valid.samples[0].translation),
        ]
        for valid in chosen
    ]
    said = f"what it said for “{chosen[-1].samples[0].source}”"
    return [Table("", ["step", "validation loss", "BLEU", "chrF", said], rows)]


def samples(record: RunRecord) -> Section:
    source, target = record.languages or (None, None)
    chosen = choose_validations(record)
    blocks: list[Block] = []
    if chosen:
        blocks.append(
            "The same sentences, translated while it learned. Marked are words that the reference does not have there; "
            "confidence is the mean probability of a piece, 1 at most."
        )
    for number, first in enumerate(chosen[-1].samples if chosen else (), 1):
        rows: list[list[Cell]] = [
            ["source", Quote(first.source, source), Figure("")],
            ["reference", Quote(first.reference, target), Figure("")],
        ]
        for valid in chosen:
            if number <= len(valid.samples):
                sample = valid.samples[number - 1]
                step = f"step {figure(valid.step)}" + (" ★" if valid == record.best else "")
                said = _compare(sample.translation, sample.reference, target)
                rows.append([step, said, Confidence(sample.confidence)])
        blocks.append(Table(f"Sentence {number}", ["when", "what it said", "confidence"], rows))
    for kind, title in KINDS.items():
        if some := record.scores.examples.get(kind) if record.scores else None:
            texts = ((Quote(e.source, source), Quote(e.reference, target), _compare(e.translation, e.reference, target)) for e in some)
            rows = [[str(number), *each] for number, each in enumerate(texts, 1)]
            table = Table(title, ["", "source", "reference", "translation"], rows)
            blocks.append(Details(f"{title}: {len(some)} of the test set", [table]))
    return Section("Watch it learn", blocks or ["Nothing was translated."])


def _compare(said: str, reference: str, language: str | None) -> Cell:
    return Quote(said, language, mark_words(said, reference)) if said.strip() else "(nothing)"


def mark_words(said: str, reference: str) -> list[tuple[str, bool]]:
    """Runs of the text, and whether the reference has them there.

    mark_words("a red cat", "a cat") -> [("a ", True), ("red ", False), ("cat", True)]
    Where spaces do not separate words, characters are compared instead.
    """

    def units(text: str) -> list[str]:
        words = text.split()
        return [*(word + " " for word in words[:-1]), *words[-1:]] if spaced else list(text)

    spaced = is_spaced([reference or said])
    mine, other = units(said), units(reference)
    matcher = difflib.SequenceMatcher(None, [unit.strip() for unit in mine], [unit.strip() for unit in other], False)
    runs = [("".join(mine[start:end]), tag == "equal") for tag, start, end, _, _ in matcher.get_opcodes()]
    return [run for run in runs if run[0]]


def suspicious(record: RunRecord) -> Section:
    scores = record.scores
    if scores is None:
        return Section("Suspicious", ["No test set was translated."])
    source, target = record.languages or (None, None)
    blocks: list[Block] = [
        Table(caption, ["what", "sentences", "of all"], [
            [kind.replace("_", " "), figure(number), share(number, scores.sentences)] for kind, number in counts.items()
        ])
        for caption, counts in (
            ("Seen in translation and reference", scores.suspicious),
            ("Warned of while translating", scores.warnings),
        )
        if counts
    ]  # fmt: skip
    if not blocks:
        blocks.append("No translation loops, is empty, is its source again, or lost its numbers.")
    if scores.worst:
        worst: list[list[Cell]] = []
        for each in scores.worst:
            marked = mark_words(each.translation, each.references[0]) if each.references else ()
            texts = (Quote(each.source or "", source), Quote(each.translation, target, marked), Quote(" / ".join(each.references), target))
            worst.append([str(figure(each.line)), decimal(each.chrf, 1), "; ".join(each.reasons), *texts])
        head = ["line", "chrF", "why", "source", "translation", "reference"]
        blocks.append(Details(f"The {len(worst)} worst sentences", [Table("Worst sentences", head, worst)]))
    return Section("Suspicious", blocks)


def advice(found: list[Advice]) -> Section:
    if not found:
        return Section("Advice", ["None: no rule found anything to change."])
    points: list[list[Cell]] = []
    for each in found:
        seen, do = (text[:1].upper() + text[1:] for text in (each.seen, each.do))
        command: list[Cell] = [": ", Code(each.command)] if each.command else ["."]
        points.append([Strong(f"{'⚠ ' if each.serious else ''}{seen}."), f" {do}", *command])
    return Section("Advice", [Points(points)])
