"""A `WordMemory` keeps the ids of every word of a column that was segmented, since words come again."""

from collections.abc import Callable, Sequence
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt

from limelight.text.pieces.few_words import REMEMBERED

Integers = npt.NDArray[np.integer]


class WordMemory:
    """Word r has ids[ends[r] : ends[r + 1]]. `segment` gives the ids of words that are new."""

    def __init__(self, segment: Callable[[Sequence[str]], list[list[int]]]) -> None:
        self._segment = segment
        self.row_of_word: dict[str, int] = {}
        self._ids: Integers = np.empty(0, np.int32)
        self._ends: Integers = np.zeros(1, np.int64)

    def lay_out(self, words: list[str], order: Integers) -> tuple[Integers, Integers]:
        """The ids of running words end to end, and where each ends. `order`: the places of these among the distinct words."""
        rows = self._rows(words)[order]
        return lay_out(self._ids, self._ends, rows)

    def _rows(self, words: list[str]) -> Integers:
        """Where each distinct word is remembered, after the new ones are segmented."""
        if len(self.row_of_word) > REMEMBERED:
            self._forget_but(words)
        known = self.row_of_word
        rows = np.fromiter(map(known.get, words, repeat(-1)), np.int64, len(words))
        absent = np.flatnonzero(rows < 0)
        if len(absent):
            new = [words[at] for at in absent]
            rows[absent] = np.arange(len(known), len(known) + len(new))
            found = self._segment(new)
            known.update(zip(new, rows[absent].tolist(), strict=True))
            lengths = np.fromiter(map(len, found), np.int64, len(found))
            self._ids = np.concatenate([self._ids, np.fromiter(chain.from_iterable(found), np.int32, lengths.sum())])
            self._ends = np.concatenate([self._ends, self._ends[-1] + lengths.cumsum()])
        return rows

    def _forget_but(self, words: list[str]) -> None:
        """What occurs now will occur again; the others are mostly rare."""
        known = [word for word in words if word in self.row_of_word]
        rows = np.array([self.row_of_word[word] for word in known], np.int64)
        self._ids, self._ends = lay_out(self._ids, self._ends, rows)
        self.row_of_word = {word: row for row, word in enumerate(known)}


def lay_out(ids: Integers, ends: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """The ids of these rows end to end, and where each ends. Row r has ids[ends[r] : ends[r + 1]]."""
    lengths = (ends[1:] - ends[:-1])[rows]
    reached = np.concatenate([[0], lengths.cumsum()])
    index = np.repeat(ends[rows] - reached[:-1], lengths)
    index += np.arange(reached[-1])
    return ids[index], reached
