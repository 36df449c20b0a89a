"""`EpochOrder` computes which pairs stand at any positions of an epoch, without a list or random state:

    order = EpochOrder(counts=(1000, 40), weights=(1.0, 2.5), seed=1, epoch=3)
    order.rows                          1100
    order.at(np.array([7, 8]))          two pairs as (corpus, index in corpus)

A weight says how often a corpus is seen per epoch. Each corpus is an endless stream of passes, and each pass is a shuffle of its own.
Epoch e takes the places floor(e w n) to floor((e + 1) w n) of the stream, so that weight 1 shows each pair once per epoch, weight 0.5
shows one half and then the other, and within a corpus no pair gets ahead of another by more than one. What all corpora give is
shuffled as one.

Nothing here uses the generators of Python or NumPy: their streams may change between versions, and a run must resume after an upgrade.
"""

import math
from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from limelight.chance import STEP, WORD, Words, draws, key_of, mix_bits

Integers = npt.NDArray[np.int64]

# Two positions that share one half keep their distance while the other half does not part them: with sides of about sqrt(count) that
# lasts through all rounds with a chance of sqrt(count) ** (-ROUNDS / 2). Small domains, such as the batches of a window, need more.
SMALL = 1024
ROUNDS = 8
ROUNDS_WHEN_SMALL = 32


class Purpose(IntEnum):
    """A purpose says what a key is for, so that no two uses of a seed are related. The numbers must never change."""

    EPOCH = 1
    PASS = 2
    BATCHES = 3
    SOURCE_PIECES = 4
    TARGET_PIECES = 5
    CHANGE = 6
    PROTECT = 7
    MARKS = 8
    DETAIL = 9
    UNTAGGED = 10


def shuffle(positions: Integers, count: int, keys: int | Words) -> Integers:
    """Where each position goes in the shuffle of [0, count) that belongs to its key: a bijection for every key.

    A Feistel network on pairs (left, right) with left < width, right < height and width * height a little over `count`
    (Black and Rogaway 2002). Each round adds to one half a random function of the other, which can be undone, hence one to one.
    What lands outside [0, count) goes through again until it is inside ("cycle walking"); less than one in sqrt(count) does.
    """
    if count == 0:
        return positions.astype(np.int64)
    width = math.isqrt(count - 1) + 1  # the square root, rounded up; exact, unlike the floating one
    height = -(-count // width)
    words = positions.astype(np.uint64)
    spread = np.broadcast_to(np.asarray(keys, np.uint64), words.shape)
    words = _network(words, width, height, spread)
    outside = np.flatnonzero(words >= count)
    while outside.size:
        words[outside] = _network(words[outside], width, height, spread[outside])
        outside = outside[words[outside] >= count]
    return words.astype(np.int64)


def _network(words: Words, width: int, height: int, keys: Words) -> Words:
    left, right = words % np.uint64(width), words // np.uint64(width)
    for round_number in range(ROUNDS if width * height >= SMALL else ROUNDS_WHEN_SMALL):
        key = keys + np.uint64((round_number + 1) * STEP & WORD)
        if round_number % 2 == 0:
            left = _add_modulo(left, width, mix_bits(key + right))
        else:
            right = _add_modulo(right, height, mix_bits(key + left))
    return right * np.uint64(width) + left


def _add_modulo(half: Words, size: int, chance: Words) -> Words:
    """(half + chance scaled to [0, size)) modulo size. Scaling by multiplication is ten times faster than a remainder."""
    half = half + ((chance >> np.uint64(32)) * np.uint64(size) >> np.uint64(32))
    return half - np.uint64(size) * (half >= size)


class EpochOrder:
    """The order has all places of one epoch; `at` answers for any of them in time that depends only on how many are asked for."""

    def __init__(self, counts: Sequence[int], weights: Sequence[float], seed: int, epoch: int) -> None:
        # 0.1 is a tenth, not the binary number nearest to it.
        seen = [Fraction(repr(float(weight))) * count for weight, count in zip(weights, counts, strict=True)]
        self.counts = tuple(counts)
        self.first = [int(epoch * each) for each in seen]
        lengths = [int((epoch + 1) * each) - first for each, first in zip(seen, self.first, strict=True)]
        self.starts = np.cumsum([0, *lengths], dtype=np.int64)
        self.rows = int(self.starts[-1])
        self.key = key_of(seed, Purpose.EPOCH, epoch)
        self.pass_keys = [key_of(seed, Purpose.PASS, corpus) for corpus in range(len(counts))]

    def at(self, positions: Integers) -> tuple[Integers, Integers]:
        """The corpus at each position of the epoch, and the index within that corpus."""
        slots = shuffle(positions, self.rows, self.key)
        corpora = np.searchsorted(self.starts, slots, side="right").astype(np.int64) - 1
        indexes = np.zeros_like(slots)
        for corpus, count in enumerate(self.counts):
            here = np.flatnonzero(corpora == corpus)
            if here.size:
                streamed = slots[here] - self.starts[corpus] + self.first[corpus]
                keys = draws(self.pass_keys[corpus], streamed // count)
                indexes[here] = shuffle(streamed % count, count, keys)
        return corpora, indexes
