"""Paths record a search step by step: the pieces it took, from which row, how probable. Translations are read back at the end.

Nothing is copied when hypotheses branch. The record is also the tree of the search, with the branches that died.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limelight.decoding.select import gather
from limelight.decoding.steps import Booleans, Finish, Floats, Hypothesis, Integers, Outcome

UNKNOWN_END = float("nan")  # the log-probability of an end that was never taken


@dataclass(frozen=True)
class Ending:
    """A path ends here: it has `length` pieces, the last of them in row `row`. `end` is the log-probability of the end piece."""

    sentence: int
    length: int
    row: int
    score: float
    end: float


@dataclass(frozen=True)
class Grown:
    """Grown holds the hypotheses after a step, (B, W) each: sum of log-probabilities (-inf: no hypothesis here), the row each came from,
    the piece it took, and that piece's log-probability."""

    sums: Floats
    parents: Integers
    tokens: Integers
    log_probs: Floats

    def first(self, width: int) -> "Grown":
        return Grown(*(column[:, :width] for column in self._columns()))

    def mask(self, gone_BW: Booleans) -> "Grown":
        """Without the hypotheses that are gone; their places stay."""
        return replace(self, sums=np.where(gone_BW, -np.inf, self.sums))

    def reorder(self, places_BW: Integers) -> "Grown":
        return Grown(*(gather(column, places_BW) for column in self._columns()))

    def beside(self, other: "Grown") -> "Grown":
        return Grown(*(np.concatenate(pair, axis=1) for pair in zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> tuple[Any, ...]:
        return self.sums, self.parents, self.tokens, self.log_probs


class Paths:
    """Paths have room for N sentences with W rows, and grow as the search gets longer. Sentences are counted as in the request."""

    FIRST_ROOM = 32

    def __init__(self, sentences: int, width: int) -> None:
        shape = (self.FIRST_ROOM, sentences, width)
        self.tokens = np.zeros(shape, np.int32)
        self.parents = np.zeros(shape, np.int32)
        self.log_probs = np.zeros(shape, np.float32)
        self.length = 0

    def record(self, number_B: Integers, tokens_BW: Integers, parents_BW: Integers, log_probs_BW: Floats) -> None:
        """One step more, of the sentences that are still there."""
        if self.length == len(self.tokens):
            for name in ("tokens", "parents", "log_probs"):
                room = getattr(self, name)
                setattr(self, name, np.concatenate([room, np.zeros_like(room)]))
        for room, newest in ((self.tokens, tokens_BW), (self.parents, parents_BW), (self.log_probs, log_probs_BW)):
            room[self.length, number_B] = newest
        self.length += 1

    def outcomes(self, sentences: int, endings: Sequence[Ending]) -> list[Outcome]:
        """The hypotheses of each sentence, in the order given."""
        found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        for ending, hypothesis in zip(endings, self.read(endings), strict=True):
            found[ending.sentence].append(hypothesis)
        return [Outcome(hypotheses) for hypotheses in found]

    def read(self, endings: Sequence[Ending]) -> list[Hypothesis]:
        """Walk back from each ending, all of them at once."""
        tokens, parents, log_probs = (room[: self.length] for room in (self.tokens, self.parents, self.log_probs))
        sentence = np.array([ending.sentence for ending in endings], dtype=np.int64)
        length = np.array([ending.length for ending in endings], dtype=np.int64)
        row = np.array([ending.row for ending in endings], dtype=np.int64)
        longest = int(length.max(initial=0))
        ids, scores = np.zeros((len(endings), longest), np.int64), np.zeros((len(endings), longest))
        for step in reversed(range(longest)):
            here = np.flatnonzero(length > step)
            place = (step, sentence[here], row[here])
            ids[here, step], scores[here, step] = tokens[place], log_probs[place]
            row[here] = parents[place]
        return [_hypothesis(ending, ids[i], scores[i]) for i, ending in enumerate(endings)]


def _hypothesis(ending: Ending, ids: np.ndarray, scores: np.ndarray) -> Hypothesis:
    ended = not np.isnan(ending.end)
    finish: Finish = "eos" if ended else "length"
    log_probs = [*scores[: ending.length].tolist(), *([ending.end] if ended else [])]
    return Hypothesis(ids=ids[: ending.length].tolist(), score=ending.score, log_probs=log_probs, finish=finish)
