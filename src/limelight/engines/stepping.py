"""The stepping engine searches with `decoding` what CTranslate2 computes, so that everything a search can do needs no torch.

CTranslate2 tells the scores of the next piece after any beginning, and remembers nothing between two calls: each step reads the source
and the beginning of every row anew. That is work in the square of a translation's length, a few milliseconds a step for a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ctranslate2
import numpy as np

from limelight.decoding.config import SearchSettings
from limelight.decoding.search import search
from limelight.decoding.steps import Floats, Integers, Outcome, Request
from limelight.engines.ctranslate2 import CTranslate2Engine
from limelight.engines.engine import Matrix


class SteppingEngine:
    """An engine beside one of CTranslate2, with the same files: it can do all but tell where a step looked."""

    name = "ctranslate2 step by step"
    batch_pieces = 512

    def __init__(self, engine: CTranslate2Engine) -> None:
        self.engine, self.workers, self.longest_source = engine, engine.workers, engine.longest_source

    def lacks(self, settings: SearchSettings, requests: Sequence[Request]) -> list[str]:
        return ["coverage_penalty"] if settings.coverage_penalty > 0 else []

    def search(self, requests: Sequence[Request], settings: SearchSettings) -> list[Outcome]:
        settings = settings.changed(max_length=min(settings.max_length, self.longest_source))
        return search(SteppedModel(self.engine), requests, settings, self.engine.specials)

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        return self.engine.score(sources, targets)

    def attend(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Matrix]:
        return self.engine.attend(sources, targets)

    def close(self) -> None:
        """The files belong to the engine beside it."""


@dataclass
class SteppedRows:
    """The pieces of B sources, and those that each of W rows of a source has so far; None before the start was read."""

    sources: list[list[str]]
    width: int
    rows: list[list[int] | None]

    def reorder(self, rows: Integers) -> None:
        self.rows = [self.rows[row] for row in rows]

    def select(self, sentences: Integers) -> None:
        self.sources = [self.sources[sentence] for sentence in sentences]
        width = self.width
        self.rows = [row for sentence in sentences for row in self.rows[sentence * width : (sentence + 1) * width]]


class SteppedModel:
    """A model that forgets: it is asked for the next piece after each beginning. Equal beginnings are asked for once."""

    def __init__(self, engine: CTranslate2Engine) -> None:
        self.engine, self.specials = engine, engine.specials

    def start(self, source: Integers, width: int = 1) -> SteppedRows:
        ends = {self.specials.pad, self.specials.end} if self.specials.source_ends else {self.specials.pad}
        pieces = []
        for row in source.tolist():
            while row and row[-1] in ends:  # CTranslate2 adds the end itself
                row.pop()
            pieces.append(self.engine.spell(self.engine.source, row))
        return SteppedRows(pieces, width, [None] * (len(pieces) * width))

    def step(self, token: Integers, state: SteppedRows) -> tuple[Floats, SteppedRows]:
        state.rows = [[] if row is None else [*row, piece] for row, piece in zip(state.rows, token.tolist(), strict=True)]
        asked: dict[tuple[int, tuple[int, ...]], int] = {}
        places = [asked.setdefault((at // state.width, tuple(row or ())), len(asked)) for at, row in enumerate(state.rows)]
        scores_NV = self._scores([(state.sources[sentence], ids) for sentence, ids in asked])
        return scores_NV[places], state

    def _scores(self, asked: Sequence[tuple[Sequence[str], Sequence[int]]]) -> Floats:
        """Log-probabilities of the next piece after each beginning (N, V); of what has ended, that nothing is more probable."""
        over = {self.specials.pad, self.specials.start, self.specials.end}
        going = [at for at, (_, ids) in enumerate(asked) if not over.intersection(ids)]
        scores_NV = np.zeros((len(asked), len(self.engine.target)), np.float32)
        if going:
            begun = len(asked[going[0]][1])  # pieces that every row has
            results = self.engine.translator.translate_batch(
                [asked[at][0] for at in going],
                target_prefix=[self.engine.spell(self.engine.target, asked[at][1]) for at in going],
                beam_size=1,
                max_input_length=0,
                max_decoding_length=begun + 1,
                min_decoding_length=0,  # else the end would be forbidden
                return_logits_vocab=True,
                return_end_token=True,
            )
            for at, result in zip(going, results, strict=True):
                logits_V = _fetch(result.logits[0][begun])
                high = logits_V.max()
                scores_NV[at] = logits_V - (high + np.log(np.exp(logits_V - high).sum()))
        return scores_NV


def _fetch(logits_V: Any) -> Floats:
    """As NumPy reads it: it sees neither the memory of a GPU nor bfloat16."""
    if logits_V.device != "cpu":
        logits_V = logits_V.to_device(ctranslate2.Device.cpu)
    if logits_V.dtype != ctranslate2.DataType.float32:
        logits_V = logits_V.to(ctranslate2.DataType.float32)
    return np.array(logits_V)
