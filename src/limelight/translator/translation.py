"""A `Translation` has the text, how sure the model was, what it looked at, and what to be careful about."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from limelight.decoding.guards import Notice as Notice
from limelight.errors import ScoreError
from limelight.text.careful.protect import text_faults
from limelight.translator.confidence import Word as Word

Finish = Literal["eos", "length", "empty_input"]
UNPROTECTED = "unprotected"  # the code of a notice
DIGITS = 6  # of probabilities and scores in JSON: more are noise, and three quarters of the bytes


class Piece(NamedTuple):
    """A piece is spelled as in the vocabulary (▁ is a space), and has the model's probability of it after those before it.

    None where the engine does not tell it and was not asked for it.
    """

    text: str
    probability: float | None


@dataclass(frozen=True)
class Alignment:
    """An alignment says where a translation comes from: pairs of (source, target), counted from 0, sorted by target.

    `words` are those between spaces, of the source as it was given and of the translation. `pieces` refer to `source`, the pieces of the
    source, and to those of the translation.
    """

    words: list[tuple[int, int]]
    pieces: list[tuple[int, int]]
    source: list[str]

    @property
    def pharaoh(self) -> str:
        """The words as other tools write them: "0-0 1-2", source first, sorted by source."""
        return " ".join(f"{source}-{target}" for source, target in sorted(self.words))

    def as_dict(self) -> dict[str, Any]:
        return {
            "words": self.pharaoh,
            "pieces": [list(pair) for pair in self.pieces],
            "source": self.source,
        }


@dataclass(frozen=True)
class Alternative:
    """An alternative is a translation that was not the first."""

    text: str
    score: float
    confidence: float
    pieces: list[Piece]
    finish: Finish
    alignment: Alignment | None = None
    words: list[Word] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "score": round(self.score, DIGITS),
            "confidence": round(self.confidence, DIGITS),
            "finish": self.finish,
            "words": [{"text": text, "confidence": round_score(sure)} for text, sure in self.words],
            "pieces": _as_dicts(self.pieces),
            "alignment": None if self.alignment is None else self.alignment.as_dict(),
        }


@dataclass(frozen=True)
class Translation(Alternative):
    """A translation is the best of a source. `score` is what the search maximized: log-probability over the length normalization.

    `confidence` is the share of its words that can be expected to be right, and `words` say it of each, where the bundle was calibrated
    (docs/confidence.md). Else it is what the model claims, the geometric mean of the probabilities of the pieces and of the end: good
    enough to look at the doubtful ones first, and no more.
    `unedited`: how probably nobody would change a word of it; None where the bundle does not know.
    `finish`: the model ended it (eos), the limit did (length), or there was nothing to translate (empty_input).
    `degenerate`: it repeats itself or is empty, and a second search did not help.
    `protected`: placeholders, tags and what else must not be translated are all there, once each, well nested and in order; a warning
    says why not.
    """

    source: str = ""
    source_pieces: int = 0  # that the model saw
    alternatives: list[Alternative] = field(default_factory=list)
    degenerate: bool = False
    protected: bool = True
    warnings: list[Notice] = field(default_factory=list)
    unedited: float | None = None

    @property
    def from_memory(self) -> bool:
        """Did no model make it? See `recall`."""
        return self.finish == "eos" and not self.source_pieces

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "source": self.source,
            **super().as_dict(),
            "source_pieces": self.source_pieces,
            "alternatives": [alternative.as_dict() for alternative in self.alternatives],
            "degenerate": self.degenerate,
            "protected": self.protected,
            "warnings": [notice._asdict() for notice in self.warnings],
            "unedited": round_score(self.unedited),
        }


@dataclass(frozen=True)
class Scored:
    """Scored says how probable a given translation is. `log_prob` is the natural logarithm, of all its pieces and of the end after them."""

    log_prob: float
    confidence: float
    pieces: list[Piece]

    def as_dict(self) -> dict[str, Any]:
        return {
            "log_prob": round(self.log_prob, DIGITS),
            "confidence": round(self.confidence, DIGITS),
            "pieces": _as_dicts(self.pieces),
        }


def _as_dicts(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    return [{"text": text, "probability": round_score(probability)} for text, probability in pieces]


def round_score(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


class InvalidScoresError(ScoreError):
    """The model's scores of some texts were not numbers. `positions` are theirs, counted from 0 unless `counted` says otherwise."""

    def __init__(self, positions: Sequence[int], counted: str = "texts, counted from 0") -> None:
        self.positions = tuple(positions)
        named = ", ".join(map(str, self.positions[:20])) + (", ..." if len(self.positions) > 20 else "")
        super().__init__(
            f"the model's scores leave no translation for {len(self.positions)} of the {counted}: {named}. They are not numbers, or "
            "the search forbids all that is possible (suppressed pieces, fewest pieces). None is made up; try float32 and the bundle's "
            "own search, else the weights are at fault: train again from a checkpoint before the fault"
        )


def nothing(source: str) -> Translation:
    """The translation of an empty source."""
    return Translation(source=source, text="", score=0.0, confidence=1.0, pieces=[], finish="empty_input")


def recall(source: str, target: str) -> Translation:
    """The translation of a text that a memory has: the blanks around the text stay around it. It is a person's, and is not changed."""
    fault = text_faults(source, target)
    warnings = [Notice(UNPROTECTED, f"in the memory: {fault}")] if fault else []
    text = source.replace(source.strip(), target, 1)
    return Translation(text, 0.0, 1.0, [], "eos", source=source, protected=not fault, warnings=warnings)


def confidence_of(log_probs: Sequence[float]) -> float:
    """exp of the mean: the geometric mean of the probabilities. 1 for none at all."""
    return likely(sum(log_probs) / len(log_probs)) if log_probs else 1.0


def likely(log_prob: float) -> float:
    """exp, and never above 1: a sum of roundings can be."""
    return min(1.0, math.exp(log_prob))


def pieces_of(texts: Sequence[str], log_probs: Sequence[float]) -> list[Piece]:
    """One for each text; a log-probability more, that of the end, is left out. Without any log-probabilities, none is told."""
    if not log_probs:
        return [Piece(text, None) for text in texts]
    return [Piece(text, likely(log_prob)) for text, log_prob in zip(texts, log_probs, strict=False)]
