"""`Pieces` are many sequences of ids in one array, and functions put rows of them together without a loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limelight.text.pieces.tokenizer import END, PAD

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """Pieces are many sequences end to end: row i is values[offsets[i] : offsets[i + 1]]."""

    values: npt.NDArray[Any]
    offsets: Integers

    @classmethod
    def of(cls, lists: pa.ListArray) -> "Pieces":
        return cls(lists.values.to_numpy(), lists.offsets.to_numpy())

    @property
    def lengths(self) -> Integers:
        return np.diff(self.offsets)

    def take(self, rows: Integers) -> "Pieces":
        starts = self.offsets[rows]
        return gather_rows(self.values, starts, self.offsets[rows + 1] - starts)


def gather_rows(values: npt.NDArray[Any], starts: Integers, lengths: Integers) -> Pieces:
    """gather_rows([5, 6, 7, 8], starts=[2, 0], lengths=[1, 2]) -> values [7, 5, 6], offsets [0, 1, 3]"""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return Pieces(values[places], offsets)


def join_rows(first: Pieces, second: Pieces) -> Pieces:
    """Each row of the first with that of the second after it: [4 9] [7] and [1] [2 3] -> [4 9 1] [7 2 3]."""
    values = np.concatenate([first.values, second.values])
    starts = np.stack([first.offsets[:-1], second.offsets[:-1] + len(first.values)], axis=1)
    both = gather_rows(values, starts.ravel(), np.stack([first.lengths, second.lengths], axis=1).ravel())
    return Pieces(both.values, both.offsets[::2])


def replace_rows(pieces: Pieces, places: Integers, others: Pieces) -> Pieces:
    """Other rows at some places: [4 9] [7] [8] with [1 2] at 1 -> [4 9] [1 2] [8]."""
    if not len(places):
        return pieces
    starts, lengths = pieces.offsets[:-1].copy(), pieces.lengths
    starts[places], lengths[places] = others.offsets[:-1] + len(pieces.values), others.lengths
    return gather_rows(np.concatenate([pieces.values, others.values]), starts, lengths)


def pad_rows(
    pieces: Pieces, start: int, stop: int, width: int, pad: int = PAD, begin: Sequence[int] = (), end: int | None = END
) -> Integers:
    """Rows `start` to `stop` as a grid: each after `begin`, followed by the end if there is one, then by padding."""
    offsets = pieces.offsets[start : stop + 1]
    lengths, first = np.diff(offsets), len(begin)
    grid = np.full((stop - start, width), pad, np.int64)
    grid[:, :first] = begin
    body = grid[:, first:]
    body[np.arange(width - first) < lengths[:, None]] = pieces.values[offsets[0] : offsets[-1]]
    if end is not None:
        body[np.arange(stop - start), lengths] = end
    return grid
