"""`evaluate` scores a system's translations against references and says what looks wrong with them.

evaluate(["Das war gut."], [["Das war gut."]]).scores[0].value -> 100.0
"""

from collections.abc import Sequence
from dataclasses import dataclass

from limelight.errors import DataError
from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.metrics.buckets import LengthBucket, by_length, is_spaced
from limelight.evaluation.metrics.metrics import (
    TITLES,
    MetricCounts,
    MetricScore,
    Watch,
    count,
    tokenizer_for,
    writes_without_spaces,
)
from limelight.evaluation.suspicions import is_degenerate, suspicions, tally
from limelight.evaluation.worst import WorstSentence, worst

TOKENIZED = 0.5  # of the sentences that end in a full stop; in plain text no space stands before it
FEW = 300  # sentences, below which differences of a point or two are mostly chance
LONGEST = 4  # words in a sequence that BLEU counts; without any so long, BLEU is 0 for a perfect translation
RARE = 0.1  # of the references have that many words: BLEU then rests on next to nothing
NO_BLEU = "hardly any reference has four words, and BLEU counts sequences of four: look at chrF instead"


@dataclass(frozen=True)
class Evaluation:
    """An evaluation is all that is known of one system. `counts` are what the scores are made of, in order: a comparison needs them."""

    sentences: int
    references: int
    scores: list[MetricScore]
    buckets: list[LengthBucket]
    bucketed_by: str  # source or reference
    suspicious: dict[str, int]
    degenerate: int  # sentences whose translation is broken, whatever it should have said
    worst: list[WorstSentence]
    notes: list[str]
    counts: list[MetricCounts]


def evaluate(
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    source: Sequence[str] | None = None,
    language: str | None = None,
    settings: EvaluateSettings | None = None,
    watch: Watch = lambda *_: None,
    more: Sequence[MetricCounts] = (),
) -> Evaluation:
    """`references` holds one or more whole translations by people; `language` is the target's, such as de. `more` are counts that were made
    elsewhere, such as COMET's."""
    settings = settings or EvaluateSettings()
    _refuse_lengths(system, references, source)
    counts = [count(name, system, references, settings, language, watch) for name in settings.metrics]
    counts += more
    chrf = next((each for each in counts if each.name == "chrF2"), None)
    if chrf is None:
        chrf = count("chrf", system, references, settings, language)
    found = suspicions(system, references, source)
    by, texts = ("reference", references[0]) if source is None else ("source", source)
    return Evaluation(
        sentences=len(system),
        references=len(references),
        scores=[each.score(settings) for each in counts],
        buckets=by_length(texts, counts, settings),
        bucketed_by=by,
        suspicious=tally(found),
        degenerate=sum(is_degenerate(each) for each in found),
        worst=worst(chrf.of_each(), system, references, source, found, settings.worst),
        notes=_notes(system, references, language, settings) + _short(counts),
        counts=counts,
    )


def _refuse_lengths(system: Sequence[str], references: Sequence[Sequence[str]], source: Sequence[str] | None) -> None:
    if not references or not system:
        raise DataError("there is nothing to score: it takes at least one sentence and one reference")
    others = {f"reference {i}": each for i, each in enumerate(references, 1)}
    others |= {} if source is None else {"the source": source}
    problems = [
        f"{name} has {len(each):,} sentences, the system has {len(system):,}"
        for name, each in others.items()
        if len(each) != len(system)
    ]
    if problems:
        raise DataError("\n  - ".join(["sentences cannot be matched:", *problems]))


def _notes(
    system: Sequence[str], references: Sequence[Sequence[str]], language: str | None, settings: EvaluateSettings
) -> list[str]:
    """What a reader should know before quoting the scores."""
    notes = []
    if "bleu" in settings.metrics and settings.tokenize is None and (note := tokenizer_for(language)[1]):
        notes.append(note)
    if not is_spaced(references[0]) and not writes_without_spaces(language):
        notes.append(
            "the reference has hardly any spaces, and words are found by them; name its language, such as --to zh"
        )
    if len(system) < FEW:
        notes.append(
            f"{len(system)} sentences are few: differences of one or two points between systems are mostly chance"
        )
    if any(list(system) == list(each) for each in references):
        notes.append(
            "the translations are the reference itself, line for line: was a file given twice, or the test set learned?"
        )
    for name, texts in (("the translations seem", system), ("the reference seems", references[0])):
        ends = [text.rstrip() for text in texts if text.rstrip().endswith(".")]
        if len(ends) >= 10 and sum(end.endswith(" .") for end in ends) > TOKENIZED * len(ends):
            notes.append(f"{name} to be tokenized (a space before the full stop); detokenize, or BLEU means little")
    empty = sum(not any(text.strip() for text in some) for some in zip(*references, strict=True))
    if empty:
        notes.append(f"{empty:,} sentences have an empty reference")
    return notes


def _short(counts: Sequence[MetricCounts]) -> list[str]:
    """Of a list of words or headlines BLEU says nothing. A row of BLEU holds the words of translation and reference, as it finds them."""
    bleu = next((each for each in counts if each.name == TITLES["bleu"]), None)
    if bleu is None or (bleu.rows[:, 1] >= LONGEST).mean() > RARE:
        return []
    return [NO_BLEU]
