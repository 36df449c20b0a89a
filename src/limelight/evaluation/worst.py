"""`worst` lists the worst sentences with their reason, for a person to read before believing a score."""

from collections.abc import Sequence
from dataclasses import dataclass

from limelight.evaluation.suspicions import Suspicion

AVERAGE = 20
LITTLE = 50.0  # chrF below which most of the reference's character sequences are missing


@dataclass(frozen=True)
class WorstSentence:
    """Each is one sentence with its own chrF. `line` counts from 1, as editors do."""

    line: int
    chrf: float
    reasons: list[str]
    source: str | None
    translation: str
    references: list[str]


def worst(
    chrf: Sequence[float],
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    source: Sequence[str] | None,
    found: Sequence[Sequence[Suspicion]],
    most: int,
) -> list[WorstSentence]:
    """The `most` sentences of lowest chrF, where a short one counts for less: of three letters chrF tells next to nothing.

    Each is ranked as if AVERAGE characters of the set's mean quality were added to it.
    """
    mean = sum(chrf) / max(1, len(chrf))

    def rank(i: int) -> float:
        length = len(references[0][i])
        return (chrf[i] * length + mean * AVERAGE) / (length + AVERAGE)

    wrong = [i for i, text in enumerate(system) if all(text.strip() != each[i].strip() for each in references)]
    order = sorted(wrong, key=rank)
    return [
        WorstSentence(
            line=i + 1,
            chrf=chrf[i],
            reasons=[str(suspicion) for suspicion in found[i]] or [_overlap(chrf[i])],
            source=None if source is None else source[i],
            translation=system[i],
            references=[each[i] for each in references],
        )
        for i in order[:most]
    ]


def _overlap(chrf: float) -> str:
    return "shares little with the reference" if chrf < LITTLE else "worded otherwise than the reference"
