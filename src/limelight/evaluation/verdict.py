"""`judge` says what a translator is good for, in words that cannot be misread. It looks at its scores, its broken translations and how
often it saw its text. See docs/metrics.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from limelight.evaluation.evaluate import NO_BLEU, Evaluation
from limelight.evaluation.metrics.metrics import MetricScore, short_code
from limelight.reporting.units import rough


class Use(StrEnum):
    """The uses go from the worst to the best."""

    NOT_USABLE = "not usable"
    GIST = "for gist"
    POST_EDIT = "to post-edit"
    GOOD = "good within its kind of text"


MEANING: Final = {
    Use.NOT_USABLE: "its translations do not say what the sources say",
    Use.GIST: "it tells what a text is about, and is wrong in much of it",
    Use.POST_EDIT: "a person who knows both languages saves time by correcting it",
    Use.GOOD: "read it before you publish it; on other text nothing is known",
}
# The least chrF and the least BLEU of each use. GOOD: a person who translates news well has 58.0 and 26.3 by another person's reference
# (docs/metrics.md). POST_EDIT: above two public systems for English to Icelandic (45.4 and 17.5, 46.2 and 18.3) whose sentences have to be
# written anew as often as corrected. GIST: below it our own runs on captions name a man and a street where the source has others
# (docs/experiments.md); BLEU below 10 is called almost useless in makers' tables (from memory).
LEAST: Final = {Use.GIST: (38.0, 10.0), Use.POST_EDIT: (48.0, 18.0), Use.GOOD: (57.0, 25.0)}
# A character of these says about as much as two letters, so fewer sequences agree; by memory of published tables, not measured here.
DENSE: Final = frozenset({"zh", "ja", "ko", "yue"})
DENSE_SHARE: Final = 0.55  # of the least chrF
# Broken translations (empty, copied, looping, the same for several sentences) beyond these shares lower a verdict whatever the scores say:
# real systems of the stored outputs have 0 to 0.3 %; at 2 % a reader of a page meets one, at 20 % one in every few lines.
BROKEN: Final = {Use.GOOD: 0.02, Use.POST_EDIT: 0.05, Use.GIST: 0.20}
# Mean error of its confidence in words; on text of its own kind it is 0.01 to 0.03 (docs/confidence.md).
UNRELIABLE: Final = 0.15
FEW_EPOCHS: Final = 4.0  # passes up to which repeated text teaches like new (Muennighoff et al. 2023)
FEW_PAIRS: Final = 50_000
TOO_FEW: Final = 30  # sentences, to call a translator good by them


@dataclass(frozen=True)
class Bound:
    """A bound is a score and what is certain of it: the lower end of its interval, or itself."""

    value: float
    low: float

    @classmethod
    def of(cls, score: MetricScore | None) -> "Bound | None":
        return None if score is None else cls(score.value, score.value if score.low is None else score.low)


@dataclass(frozen=True)
class QualityEvidence:
    """A figure that is not known is None. `bleu` is None too where it means nothing, as of a list of words."""

    chrf: Bound | None
    bleu: Bound | None = None
    language: str | None = None  # the target's
    sentences: int = 0
    degenerate: int = 0  # of them broken: empty, copied, looping, the same for several
    confidence_error: float | None = None
    epochs: float | None = None  # how often the text was seen
    pairs: int | None = None  # that it learnt from
    hopeless: bool = False  # by the law of `planning.scaling` no time is enough with so little text, once it was seen
    fine_tuned: bool = False  # began with the weights of another translator
    diverged: bool = False  # its training ended in steps that could not be used
    mismatched: bool = False  # what it was tried on is of another kind than what it learnt from

    @property
    def broken(self) -> float:
        return self.degenerate / self.sentences if self.sentences else 0.0


@dataclass(frozen=True)
class QualityVerdict:
    use: Use
    reasons: tuple[str, ...]  # the figures that decided
    change: tuple[str, ...]  # what would make it better

    @property
    def headline(self) -> str:
        """NOT USABLE: its translations do not say what the sources say"""
        name = self.use.upper() if self.use is Use.NOT_USABLE else self.use[:1].upper() + self.use[1:]
        return f"{name}: {MEANING[self.use]}"

    @property
    def because(self) -> str:
        """The figures that decided, and what would change it, in two sentences; the first begins with the name of a score."""
        told = "; ".join(self.reasons)
        helps = f" What would change it: {'; '.join(self.change)}." if self.change else ""
        return f"{told}.{helps}"

    def values(self) -> dict[str, Any]:
        return {"use": self.use.value, "reasons": list(self.reasons), "change": list(self.change)}


def judge(evidence: QualityEvidence) -> QualityVerdict | None:
    """The best use that scores, broken translations and confidence all allow. None: there is no score to judge by."""
    if evidence.chrf is None and evidence.bleu is None:
        return None
    by_broken = next((use for use, most in BROKEN.items() if evidence.broken <= most), Use.NOT_USABLE)
    # Where nobody can tell its right words from its wrong ones, all of them have to be read against the source.
    error = evidence.confidence_error or 0.0
    use = min(_by_scores(evidence), by_broken, Use.POST_EDIT if error > UNRELIABLE else Use.GOOD, key=list(Use).index)
    if use is Use.GOOD and 0 < evidence.sentences < TOO_FEW:
        few = f"{evidence.sentences} sentences are too few to say more"
        return QualityVerdict(Use.POST_EDIT, (_scores_told(evidence, use), few), (f"a test set of {TOO_FEW} sentences or more",))
    reasons = [_scores_told(evidence, use)]
    if evidence.degenerate and (evidence.broken > BROKEN[Use.GOOD] or by_broken is use):
        broken = f"{100 * evidence.broken:.0f} % of the translations"
        reasons.append(f"{broken} are empty, copies, loops or the same for several sentences")
    if error > UNRELIABLE:
        reasons.append(f"its confidence is off by {error:.2f}")
    if evidence.diverged:
        reasons.append("its training diverged")
    elif evidence.mismatched and use is not Use.GOOD:
        reasons.append("its training text is of another kind than the text it was tried on")
    elif use is not Use.GOOD and evidence.epochs is not None and evidence.epochs < FEW_EPOCHS:
        reasons.append(f"it saw its text {times(evidence.epochs)}")
    return QualityVerdict(use, tuple(reasons), _change(evidence, use))


def evidence_of(
    evaluation: Evaluation, language: str | None = None, confidence_error: float | None = None, learnt: Mapping[str, object] | None = None
) -> QualityEvidence:
    """`learnt`: what a bundle says of its training."""
    chrf, bleu = bounds(evaluation.scores, evaluation.notes)
    known = QualityEvidence(chrf, bleu, language, evaluation.sentences, evaluation.degenerate, confidence_error)
    pairs = (learnt or {}).get("pairs")
    return replace(known, pairs=pairs if isinstance(pairs, int) else None, fine_tuned="parent" in (learnt or {}))


def bounds(scores: Sequence[MetricScore], notes: Sequence[str]) -> tuple[Bound | None, Bound | None]:
    """Of chrF and of BLEU, where it counts words: sequences of four characters agree far more often."""
    named = {score.name: score for score in scores}
    by_words = NO_BLEU not in notes and not any("tok:char" in score.signature.split("|") for score in scores)
    return Bound.of(named.get("chrF2")), Bound.of(named.get("BLEU")) if by_words else None


def least_chrf(use: Use, language: str | None) -> float:
    return LEAST[use][0] * (DENSE_SHARE if short_code(language) in DENSE else 1.0)


def times(epochs: float) -> str:
    """times(0.1) -> "0.1 times"; times(1) -> "once"."""
    return "once" if 0.95 <= epochs < 1.05 else f"{rough(epochs)} times"


def _by_scores(evidence: QualityEvidence) -> Use:
    reached = Use.NOT_USABLE
    for use, (_, least_bleu) in LEAST.items():
        enough = evidence.chrf is None or evidence.chrf.low >= least_chrf(use, evidence.language)
        if enough and (evidence.bleu is None or evidence.bleu.low >= least_bleu):
            reached = use
    return reached


def _scores_told(evidence: QualityEvidence, use: Use) -> str:
    """chrF 8.0 and BLEU 0.1, where gist takes 38 and 10"""
    found = [("chrF", evidence.chrf), ("BLEU", evidence.bleu)]
    told = " and ".join(f"{name} {bound.value:.1f}" for name, bound in found if bound is not None)
    if use is Use.GOOD:
        return told
    better = list(Use)[list(Use).index(use) + 1]
    least = [least_chrf(better, evidence.language), LEAST[better][1]]
    wanted = " and ".join(f"{value:.0f}" for value, (_, bound) in zip(least, found, strict=True) if bound is not None)
    return f"{told}, where “{better}” takes {wanted}, interval included"


def _change(evidence: QualityEvidence, use: Use) -> tuple[str, ...]:
    if use is Use.GOOD:
        return ()
    change = []
    if evidence.diverged:
        return ("a run that does not diverge: a lower learning rate, a longer warm-up",)
    if evidence.mismatched:
        return ("the right pairs: source and target not swapped, the right language, no shifted lines",)
    few_epochs = 1.0 if evidence.hopeless and use is Use.NOT_USABLE else FEW_EPOCHS
    if evidence.epochs is not None and evidence.epochs < few_epochs:
        change.append("more time")
    few = evidence.pairs is not None and evidence.pairs < FEW_PAIRS
    change.append("more text" if few else "more text of the kind it is to translate")
    if not evidence.fine_tuned and (few or use is Use.NOT_USABLE):
        change.append("a parent: a finished translator of these or related languages to go on from (--from)")
    return tuple(change)
