"""IBM model 1 says how probable a target piece is as the translation of a source piece (Brown et al. 1993), learnt from pairs alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Row = Sequence[int] | npt.NDArray[Any]
Ids = Sequence[Sequence[int]] | Sequence[npt.NDArray[Any]]
ROUNDS = 5  # of expectation and maximization


@dataclass(frozen=True)
class ModelOne:
    """Model 1 has a probability for each source and target piece that were met in one pair. Their key is `source * stride + target`."""

    keys: Integers  # sorted
    probabilities: Numbers
    stride: int

    @classmethod
    def learn(cls, sources: Ids, targets: Ids) -> "ModelOne":
        stride = 1 + max((int(np.max(ids)) for ids in targets if len(ids)), default=0)
        pairs: list[tuple[Row, Row]] = list(zip(sources, targets, strict=True))
        cells = [_keys_of(source, target, stride).ravel() for source, target in pairs]
        keys, kind = np.unique(np.concatenate(cells or [np.zeros(0, np.int64)]), return_inverse=True)
        widths = [len(source) for source, target in pairs for _ in target]
        row = np.repeat(np.arange(len(widths)), widths)
        source_of, table = keys // stride, np.ones(len(keys))
        for _ in range(ROUNDS):
            share = table[kind]
            share /= np.bincount(row, share)[row]
            counts = np.bincount(kind, share, len(keys))
            table = counts / np.bincount(source_of, counts)[source_of]
        return cls(keys, table, stride)

    def find_posterior(self, source: Sequence[int], target: Sequence[int]) -> Numbers:
        """How probable it is that target piece t comes from source piece s: (T, S), rows sum to 1. All pieces were learnt from."""
        share: Numbers = self.probabilities[np.searchsorted(self.keys, _keys_of(source, target, self.stride))]
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    def keep_likely(self, least: float) -> "ModelOne":
        likely = self.probabilities >= least
        return ModelOne(self.keys[likely], self.probabilities[likely], self.stride)


def _keys_of(source: Row, target: Row, stride: int) -> Integers:
    """(T, S)"""
    return np.asarray(target, np.int64)[:, None] + np.asarray(source, np.int64)[None, :] * stride
