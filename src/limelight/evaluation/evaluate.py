"""`evaluate` scores a system's translations against references and says what looks wrong with them."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from limelight.errors import DataError
from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.metrics.buckets import LengthBucket, by_length, is_spaced
from limelight.evaluation.metrics.metrics import MetricCounts, MetricScore, Watch, count, is_spaceless, tokenizer_for
from limelight.evaluation.suspicions import Suspicion, is_degenerate, suspicions, tally

TOKENIZED = 0.5  # of the sentences that end in a full stop; in plain text no space stands before it
FEW = 300  # sentences, below which differences of a point or two are mostly chance
LONGEST = 4  # words in a sequence that BLEU counts; without any so long, BLEU is 0 for a perfect translation
RARE = 0.1  # of the references have that many words: BLEU then rests on next to nothing
AVERAGE = 20  # characters of mean quality that are added to a sentence before it is ranked
LITTLE = 50.0  # chrF below which most of the reference's character sequences are missing
NO_BLEU = "hardly any reference has four words, and BLEU counts sequences of four: look at chrF instead"


@dataclass(frozen=True)
class WorstSentence:
    """Each is one sentence with its own chrF. `line` counts from 1, as editors do."""

    line: int
    chrf: float
    reasons: list[str]
    source: str | None
    translation: str
    references: list[str]


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
    counts = [*(count(name, system, references, settings, language, watch) for name in settings.metrics), *more]
    chrf = next((each for each in counts if each.name == "chrF2"), None)
    chrf = chrf or count("chrf", system, references, settings, language)
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
        notes=[*_notes(system, references, language, settings), *([NO_BLEU] if _are_short(counts) else [])],
        counts=counts,
    )


def _refuse_lengths(system: Sequence[str], references: Sequence[Sequence[str]], source: Sequence[str] | None) -> None:
    if not references or not system:
        raise DataError("there is nothing to score: it takes at least one sentence and one reference")
    others = {f"reference {i}": each for i, each in enumerate(references, 1)}
    others |= {} if source is None else {"the source": source}
    lengths = {name: len(each) for name, each in others.items() if len(each) != len(system)}
    if lengths:
        problems = (f"{name} has {n:,} sentences, the system has {len(system):,}" for name, n in lengths.items())
        raise DataError("\n  - ".join(["sentences cannot be matched:", *problems]))


def _notes(system: Sequence[str], references: Sequence[Sequence[str]], language: str | None, settings: EvaluateSettings) -> list[str]:
    """What a reader should know before quoting the scores."""
    notes = []
    if "bleu" in settings.metrics and settings.tokenize is None and (note := tokenizer_for(language)[1]):
        notes.append(note)
    if not is_spaced(references[0]) and not is_spaceless(language):
        spaces = "the reference has hardly any spaces, and words are found by them"
        notes.append(f"{spaces}; name its language, such as --to zh")
    if len(system) < FEW:
        few = f"{len(system)} sentences are few"
        notes.append(f"{few}: differences of one or two points between systems are mostly chance")
    if any(list(system) == list(each) for each in references):
        same = "the translations are the reference itself, line for line"
        notes.append(f"{same}: was a file given twice, or the test set learned?")
    for name, texts in (("the translations seem", system), ("the reference seems", references[0])):
        ends = [text.rstrip() for text in texts if text.rstrip().endswith(".")]
        if len(ends) >= 10 and sum(end.endswith(" .") for end in ends) > TOKENIZED * len(ends):
            notes.append(f"{name} to be tokenized (a space before the full stop); detokenize, or BLEU means little")
    parted = [sum(not unicodedata.is_normalized("NFC", text) for text in texts) for texts in (system, references[0])]
    if parted[0] != parted[1]:
        name = "the translations have" if parted[0] > parted[1] else "the references have"
        notes.append(
            f"{name} letters in parts (Unicode NFD) in {max(parted):,} lines, other words than the same ones composed; normalize to NFC"
        )
    empty = sum(not any(text.strip() for text in some) for some in zip(*references, strict=True))
    if empty:
        notes.append(f"{empty:,} sentences have an empty reference")
    return notes


def _are_short(counts: Sequence[MetricCounts]) -> bool:
    """Of a list of words or headlines BLEU says nothing. A row of BLEU holds the words of translation and reference, as it finds them."""
    bleu = next((each for each in counts if each.name == "BLEU"), None)
    return bleu is not None and (bleu.rows[:, 1] >= LONGEST).mean() <= RARE


def worst(
    chrf: Sequence[float],
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    source: Sequence[str] | None,
    found: Sequence[Sequence[Suspicion]],
    most: int,
) -> list[WorstSentence]:
    """The `most` sentences of lowest chrF, where a short one counts for less: of three letters chrF tells next to nothing."""
    mean = sum(chrf) / max(1, len(chrf))

    def rank(i: int) -> float:
        length = len(references[0][i])
        return (chrf[i] * length + mean * AVERAGE) / (length + AVERAGE)

    wrong = [i for i, text in enumerate(system) if all(text.strip() != each[i].strip() for each in references)]
    return [
        WorstSentence(
            line=i + 1,
            chrf=chrf[i],
            reasons=[str(suspicion) for suspicion in found[i]]
            or [f"{'shares little with' if chrf[i] < LITTLE else 'worded otherwise than'} the reference"],
            source=None if source is None else source[i],
            translation=system[i],
            references=[each[i] for each in references],
        )
        for i in sorted(wrong, key=rank)[:most]
    ]
