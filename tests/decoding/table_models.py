"""Models that are tables: what a search is tested on.

A `TableModel` looks up the log-probabilities of the next piece by the sentence and by all pieces before. It checks what a search may
ask of a model: rows stay with their sentence, every translation begins with the start piece. Rows of what has already ended tempt:
there each piece is certain, so that a search which extends a finished hypothesis gets a better score and is found out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from limelight.decoding.config import SearchSettings
from limelight.decoding.search import search
from limelight.decoding.steps import Floats, Integers, Outcome, Request, Specials

# pad = start, as Marian has it, and no unknown: the smallest set of special ids. Every other id is a piece.
SMALL = Specials(pad=0, unknown=None, start=0, end=1)

Prefix = tuple[int, ...]
Rows = Callable[[int, Prefix], np.ndarray]


@dataclass
class TableState:
    """The pieces so far of every row, without the start piece; `sentences` are the first ids of the sources."""

    source: Integers
    sentences: list[int]
    width: int
    prefixes: list[Prefix | None]  # None: nothing was read yet, not even the start piece

    def reorder(self, rows: Integers) -> None:
        assert rows.shape == (len(self.prefixes),), rows.shape
        order = rows.tolist()
        assert all(0 <= j < len(order) and i // self.width == j // self.width for i, j in enumerate(order)), order
        self.prefixes = [self.prefixes[j] for j in order]

    def select(self, sentences: Integers) -> None:
        kept, W = sentences.tolist(), self.width
        self.sentences = [self.sentences[b] for b in kept]
        self.source = self.source[kept]
        self.prefixes = [prefix for b in kept for prefix in self.prefixes[b * W : (b + 1) * W]]


class TableModel:
    """rows(sentence, prefix) -> log-probabilities (V,). The sentence is the first id of the source."""

    def __init__(self, rows: Rows, vocab_size: int, specials: Specials = SMALL) -> None:
        self.rows, self.vocab_size, self.specials = rows, vocab_size, specials
        self.over = {specials.pad, specials.start, specials.end}
        self.steps = 0

    def start(self, source: Integers, width: int = 1) -> TableState:
        assert source.dtype == np.int64 and source.ndim == 2, (source.dtype, source.shape)
        sentences = [int(row[0]) for row in source]
        return TableState(source, sentences, width, [None] * (len(source) * width))

    def step(self, token: Integers, state: TableState) -> tuple[Floats, TableState]:
        assert token.shape == (len(state.prefixes),), (token.shape, len(state.prefixes))
        self.steps += 1
        for row, piece in enumerate(token.tolist()):
            before = state.prefixes[row]
            if before is None:
                assert piece == self.specials.start, f"a translation begins with {piece}"
            state.prefixes[row] = () if before is None else (*before, piece)
        return np.stack([self._row(state, row) for row in range(len(token))]), state

    def _row(self, state: TableState, row: int) -> np.ndarray:
        prefix = state.prefixes[row]
        assert prefix is not None
        if self.over.intersection(prefix):
            return np.zeros(self.vocab_size, np.float32)
        return self.rows(state.sentences[row // state.width], prefix)


class LookingTableModel(TableModel):
    """Tells where it looked: anywhere, by the sentence and the pieces so far, but not at padding."""

    def attention(self, state: TableState) -> Floats:
        S, W = state.source.shape[1], state.width
        looks = np.zeros((len(state.prefixes), S), np.float32)
        for row, prefix in enumerate(state.prefixes):
            real = int((state.source[row // W] != self.specials.pad).sum())
            looks[row, :real] = look(state.sentences[row // W], prefix or (), real)
        return looks


def look(sentence: int, prefix: Prefix, positions: int) -> np.ndarray:
    """Weights of a source of so many positions, which sum to 1, when the piece after this prefix is decided. (positions,)"""
    weights = np.random.default_rng([sentence, 7, *prefix]).random(positions) ** 4 + 1e-3
    return weights / weights.sum()


def random_rows(vocab_size: int, seed: int, kind: str = "plain", specials: Specials = SMALL) -> Rows:
    """Rows that depend on the whole prefix. They are drawn from 997, so that distant prefixes may share one.

    plain: no two alike. ties: log-probabilities of two values only. holes: two of five pieces impossible. eos_first: the end is
    nearly certain at once. shy: the end is nearly impossible.
    """
    generator = np.random.default_rng(seed)
    logits = 1.5 * generator.standard_normal((997, vocab_size))
    if kind == "ties":
        logits = (logits > 0).astype(float)
    if kind == "eos_first":
        logits[:, specials.end] += 6
    if kind == "shy":
        logits[:, specials.end] -= 8
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    if kind == "holes":
        log_probs[generator.random(log_probs.shape) < 0.4] = -np.inf
    table = log_probs.astype(np.float32)
    return lambda sentence, prefix: table[hash((seed, sentence, *prefix)) % 997]


def listed_rows(table: dict[Prefix, dict[int, float]], vocab_size: int) -> Rows:
    """Probabilities by prefix; what is not listed is impossible. {(): {2: 0.6, 1: 0.4}}"""

    def row(_: int, prefix: Prefix) -> np.ndarray:
        probabilities = np.zeros(vocab_size)
        for piece, probability in table.get(prefix, {}).items():
            probabilities[piece] = probability
        with np.errstate(divide="ignore"):
            return np.log(probabilities).astype(np.float32)

    return row


def sentence(number: int, pieces: int = 1, **more: object) -> Request:
    """A source that begins with its number, which should be no special id: take 100 and more."""
    return Request(source=[number] * pieces, key=number, **more)  # type: ignore[arg-type]


def find(model: TableModel, requests: Sequence[Request], settings: SearchSettings) -> list[Outcome]:
    outcomes = search(model, requests, settings, model.specials)
    assert len(outcomes) == len(requests)
    return outcomes
