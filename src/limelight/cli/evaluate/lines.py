"""The report of an evaluation becomes lines for people, or one JSON object for programs."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight.cli.screen import group_digits

if TYPE_CHECKING:
    from limelight.evaluation.confidence.calibration import ConfidenceCheck
    from limelight.evaluation.config import EvaluateSettings
    from limelight.evaluation.evaluate import Evaluation, WorstSentence
    from limelight.evaluation.inputs import EvaluationInputs
    from limelight.evaluation.metrics.buckets import LengthBucket
    from limelight.evaluation.metrics.compare import Difference
    from limelight.evaluation.metrics.metrics import MetricScore
    from limelight.evaluation.translating import TranslatedSet
    from limelight.evaluation.verdict import QualityVerdict

CUT = 300  # characters of a sentence that are shown; JSON has all
# Escape sequences of a terminal and characters that turn the direction of writing: text of strangers must not steer a screen.
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class EvaluationReport:
    """A report holds all that an evaluation found.

    The last three are there when two systems were compared, `believed` where the translator is calibrated.
    """

    inputs: "EvaluationInputs"
    settings: "EvaluateSettings"
    evaluation: "Evaluation"
    translated: "TranslatedSet | None"
    saved: Path | None
    language: str | None  # of the translations, as far as is known
    believed: "ConfidenceCheck | None" = None
    calibrated: bool = False  # just now, to this very set
    other: "Evaluation | None" = None
    other_translated: "TranslatedSet | None" = None
    differences: "Sequence[Difference]" = ()


def describe(report: EvaluationReport) -> list[str]:
    """What it is good for and the score first, then what it is made of, then what it takes to get it again."""
    evaluation, settings = report.evaluation, report.settings
    references = "1 reference" if evaluation.references == 1 else f"{evaluation.references} references"
    counted = f"{group_digits(evaluation.sentences)} sentences, {references}"
    counted += "" if report.translated is None else f", {' to '.join(report.translated.languages)}"
    verdict = _verdict(report)
    said = [] if verdict is None else [f"{verdict.headline}.", verdict.because, ""]
    lines = [f"{_sanitize(report.inputs.system.name)}: {counted}", *said, *_scores(evaluation.scores, settings)]
    if report.other is not None:
        lines += ["", *_comparison(report)]
    lines += ["", *_buckets(evaluation.buckets, evaluation.bucketed_by)]
    if evaluation.suspicious:
        kinds = " · ".join(f"{group_digits(number)} {kind}" for kind, number in evaluation.suspicious.items())
        lines += ["", f"suspicious sentences: {kinds}"]
    if evaluation.worst:
        lines += ["", *_worst(evaluation.worst)]
    for name, made in ((report.inputs.system.name, report.translated), (_other_name(report), report.other_translated)):
        if made is not None:
            lines += ["", *_speed(name, made)]
    if report.believed is not None:
        lines += ["", *_confidence(report.believed, report.calibrated)]
    notes = [*evaluation.notes, *_contradiction(report.differences)]
    lines += ["", *(f"note: {_sanitize(note)}" for note in notes)] if notes else []
    lines += ["", "signatures, to be quoted with the scores:"]
    width = max(len(score.name) for score in evaluation.scores)
    lines += [f"  {score.name:<{width}}  {score.signature}" for score in evaluation.scores]
    return lines + ([f"wrote {_sanitize(str(report.saved))}"] if report.saved else [])


def as_json(report: EvaluationReport) -> dict[str, Any]:
    evaluation, other = report.evaluation, report.other
    result = {"system": report.inputs.system.name, **_one(evaluation, report.translated)}
    verdict = _verdict(report)
    result["verdict"] = None if verdict is None else verdict.values()
    result["settings"] = report.settings.model_dump(mode="json")
    result["saved"] = None if report.saved is None else str(report.saved)
    result["confidence"] = None if report.believed is None else asdict(report.believed)
    result["calibrated"] = report.calibrated
    result["compare"] = None
    if other is not None:
        differences = [asdict(difference) for difference in report.differences]
        named = {"system": _other_name(report), **_one(other, report.other_translated)}
        result["compare"] = {"with": named, "differences": differences, "notes": _contradiction(report.differences)}
    return result


def _verdict(report: EvaluationReport) -> "QualityVerdict | None":
    from limelight.evaluation.verdict import evidence_of, judge

    error = None if report.believed is None or report.calibrated else report.believed.words.error
    learnt = None if report.translated is None else report.translated.learnt
    return judge(evidence_of(report.evaluation, report.language, error, learnt))


def _one(evaluation: "Evaluation", made: "TranslatedSet | None") -> dict[str, Any]:
    values: dict[str, Any] = {
        "sentences": evaluation.sentences,
        "references": evaluation.references,
        "scores": [asdict(score) for score in evaluation.scores],
        "buckets": [{"by": evaluation.bucketed_by, "name": each.name, **asdict(each)} for each in evaluation.buckets],
        "suspicious": evaluation.suspicious,
        "degenerate": evaluation.degenerate,
        "worst": [asdict(sentence) for sentence in evaluation.worst],
        "notes": evaluation.notes,
        "languages": None,
        "speed": None,
        "warnings": None,
    }
    if made is not None:
        values["languages"] = list(made.languages)
        values["speed"] = {
            **asdict(made.speed),
            "sentences_per_second": made.speed.sentences_per_second,
            "source_and_target_pieces_per_second": made.speed.pieces_per_second,
            "search": made.search.model_dump(mode="json"),
            "runs_on": made.runs_on,
        }
        values["warnings"] = made.warnings
    return values


def _scores(scores: Sequence["MetricScore"], settings: "EvaluateSettings") -> list[str]:
    lines = []
    for score in scores:
        digits = _digits(score.name)
        line = f"{score.name:<8}{score.value:>6.{digits}f}"
        if score.low is not None and score.high is not None:
            half = (score.high - score.low) / 2
            line += f" ±{half:.{digits}f}   {score.low:.{digits}f} to {score.high:.{digits}f}"
        lines.append(line + ("" if score.higher_is_better else "   lower is better"))
    if settings.resamples is not None:
        lines.append(
            f"          ± 95 % confidence: what other sentences like these would give ({group_digits(settings.resamples)} resamples)"
        )
    return lines


def _comparison(report: EvaluationReport) -> list[str]:
    names = [_sanitize(report.inputs.system.name), _sanitize(_other_name(report))]
    widths = [max(len(name), 7) for name in names]
    lines = [f"{'compared':<10}{names[0]:>{widths[0]}}   {names[1]:>{widths[1]}}   difference"]
    for each in report.differences:
        digits = _digits(each.metric)
        a, b = (f"{value:>{width}.{digits}f}" for value, width in zip((each.system, each.other), widths, strict=True))
        line = f"{each.metric:<10}{a}   {b}   {each.difference:+.{digits}f}"
        if each.low is not None and each.high is not None:
            line += f"  ({each.low:+.{digits}f} to {each.high:+.{digits}f})"
        lines.append(line)
    return lines + [f"        {_sanitize(each.verdict)}" for each in report.differences]


def _buckets(buckets: Sequence["LengthBucket"], by: str) -> list[str]:
    titles = [score.metric for score in buckets[0].scores]
    lines = [f"{by + ' length':<22}sentences   " + "".join(f"{title:<14}" for title in titles).rstrip()]
    for number, bucket in enumerate(buckets):
        name = bucket.name + ("" if number else f" {bucket.unit}")
        cells = "".join(f"{_bucket_cell(score):<14}" for score in bucket.scores)
        lines.append(f"  {name:<20}{group_digits(bucket.sentences):>9}   {cells}{'few sentences' if bucket.few else ''}".rstrip())
    return lines


def _bucket_cell(score: Any) -> str:
    digits = _digits(score.metric)
    half = "" if score.low is None else f" ±{(score.high - score.low) / 2:.{digits}f}"
    return f"{score.value:.{digits}f}{half}"


def _worst(sentences: Sequence["WorstSentence"]) -> list[str]:
    lines = ["worst sentences (by their own chrF; short ones weigh less):"]
    for sentence in sentences:
        lines.append(f"  line {sentence.line}, chrF {sentence.chrf:.1f}: {_sanitize('; '.join(sentence.reasons))}")
        lines += [f"    source       {_sanitize(sentence.source)}"] if sentence.source is not None else []
        lines.append(f"    translation  {_sanitize(sentence.translation) or '(empty)'}")
        lines += [f"    reference    {_sanitize(text)}" for text in sentence.references]
    return lines


def _speed(name: str, made: "TranslatedSet") -> list[str]:
    speed = made.speed
    lines = [
        f"{_sanitize(name)} translated {group_digits(speed.sentences)} sentences in {speed.seconds:.1f} s (beam {made.search.beam}, "
        f"{made.runs_on[0]}): {speed.sentences_per_second:.1f} sentences/s, "
        f"{group_digits(round(speed.pieces_per_second))} source + target pieces/s"
    ]
    if made.warnings:
        kinds = " · ".join(f"{group_digits(number)} {code.replace('_', ' ')}" for code, number in made.warnings.items())
        lines.append(f"  and warned of: {kinds}")
    return lines


def _confidence(believed: "ConfidenceCheck", calibrated: bool) -> list[str]:
    words, sentences = believed.words, believed.sentences
    lines = [
        f"confidence is off by {words.error:.3f} on average for words ({words.claimed_error:.3f} as the model claims it), "
        f"by {sentences.error:.3f} for sentences"
    ]
    if words.auc is not None:
        lines.append(f"  a right word has more of it than a wrong one in {100 * words.auc:.0f} of 100 cases{words.doubt}")
    if believed.unedited is not None:
        share, error = 100 * believed.unedited.right, believed.unedited.error
        lines.append(f"  {share:.0f} of 100 sentences are word for word as a person wrote them; what was expected is off by {error:.3f}")
    if calibrated:
        lines.append("  fitted to this very set and kept in the bundle; evaluate on another to see how it holds")
    return lines


def _contradiction(differences: "Sequence[Difference]") -> list[str]:
    from limelight.evaluation.metrics.compare import summary

    found = summary(differences)
    return [found] if found else []


def _other_name(report: EvaluationReport) -> str:
    return report.inputs.other.name if report.inputs.other else ""


def _digits(metric: str) -> int:
    """COMET is a number around 0.8; the others are percent."""
    return 3 if metric == "COMET" else 1


def _sanitize(text: str) -> str:
    calm = _STEERING.sub("\ufffd", text)
    return calm if len(calm) <= CUT else calm[: CUT - 1] + "…"
