"""`Rarity` knows which trigrams of a text are rare, and chooses those by which it is found again.

A text is found by its rarest trigrams only: common ones would lead to half of a memory, and to index all would take four times the room.
Indexed and searched are the first of one order, so that similar texts choose many of the same. The order is learnt from the memory itself.
"""

from collections.abc import Iterable
from functools import reduce

import numpy as np
import numpy.typing as npt

INDEXED = 12  # trigrams of a segment; docs/decisions/0046
SEARCHED = 16  # of a text that is looked for
BUCKETS = 1 << 16
LONGEST = 2_000  # characters by which a text is found


class Rarity:
    """`counts` says in how many segments a trigram of each bucket is. The trigrams of each pair of languages are others."""

    def __init__(self, pair: str, counts: bytes | None = None) -> None:
        self._salt = np.uint32(reduce(lambda salt, byte: (salt * 31 + byte) & 0xFFFF_FFFF, pair.encode(), 0))
        self.counts = np.zeros(BUCKETS, np.uint32) if counts is None else np.frombuffer(counts, np.uint32)

    def learn(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.counts[self._grams(text) & (BUCKETS - 1)] += 1  # once, however often it is there

    def choose(self, text: str, most: int) -> npt.NDArray[np.int32]:
        """The rarest trigrams of a text. Of two that are as rare the smaller number comes first, in every text the same."""
        grams = np.unique(self._grams(text))
        if len(grams) > most:
            order = (self.counts[grams & (BUCKETS - 1)].astype(np.uint64) << np.uint64(32)) | grams
            grams = grams[np.argpartition(order, most)[:most]]
        return grams.view(np.int32)

    def _grams(self, text: str) -> npt.NDArray[np.uint32]:
        """Case and the number of blanks do not count, and a text of one character has a trigram, too."""
        folded = f" {' '.join(text[:LONGEST].casefold().split())} "
        signs = np.frombuffer(folded.encode("utf-32-le", "replace"), np.uint32)
        mixed = ((signs[:-2] * np.uint32(0x9E3779B1) ^ signs[1:-1]) * np.uint32(0x85EBCA77) ^ signs[2:] ^ self._salt) * np.uint32(
            0xC2B2AE3D
        )
        return mixed ^ (mixed >> np.uint32(15))
