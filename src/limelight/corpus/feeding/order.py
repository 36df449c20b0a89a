"""`EpochOrder` computes which pairs stand at any positions of an epoch, without a list or random state:

    order = EpochOrder(counts=(1000, 40), weights=(1.0, 2.5), seed=1, epoch=3)
    order.rows                          1100
    order.at(np.array([7, 8]))          two pairs as (corpus, index in corpus)

A weight says how often a corpus is seen per epoch. Each corpus is an endless stream of passes, and each pass is a shuffle of its own.
Epoch e takes the places floor(e w n) to floor((e + 1) w n) of the stream, so that weight 1 shows each pair once per epoch, weight 0.5
shows one half and then the other, and within a corpus no pair gets ahead of another by more than one. What all corpora give is
shuffled as one.

With `at_once` each epoch takes the shards in an order of its own, and shuffles groups of so many: a window needs those of one group alone.
What a corpus has in a shard is then a stream of its own, by the same rule.

Nothing here uses the generators of Python or NumPy: their streams may change between versions, and a run must resume after an upgrade.
"""

import math
from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction
from itertools import pairwise

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
    SHARDS = 11


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
    """The order has all places of one epoch; `at` answers for any of them in time that depends only on how many are asked for.

    A cell has a stream of its own: it is a corpus, or what a corpus has in one shard. Cell i is of corpus i modulo their number.
    """

    def __init__(
        self, counts: Sequence[int], weights: Sequence[float], seed: int, epoch: int, shards: Integers | None = None, at_once: int = 0
    ) -> None:
        """`shards` are the rows of each, by corpus; without `at_once` all of them are one group."""
        rows, mixed, self.corpora = np.array([counts], np.int64), np.zeros(1, np.int64), len(counts)
        self.groups = [np.arange(1 if shards is None else len(shards))]
        self.keys = [key_of(seed, Purpose.EPOCH, epoch)]
        self.pass_keys = [key_of(seed, Purpose.PASS, corpus) for corpus in range(self.corpora)]
        if shards is not None and at_once:
            rows, mixed = shards, shuffle(np.arange(len(shards)), len(shards), key_of(seed, Purpose.SHARDS, epoch))
            self.keys = [key_of(self.keys[0], group) for group in range(-(-len(shards) // at_once))]
            self.pass_keys = [key_of(key, shard) for shard in mixed.tolist() for key in self.pass_keys]
            self.groups = np.split(mixed, range(at_once, len(shards), at_once))
        self.counts: list[int] = rows[mixed].ravel().tolist()
        self.before = (np.cumsum(rows, axis=0) - rows)[mixed].ravel()  # rows of the corpus in earlier shards
        # 0.1 is a tenth, not the binary number nearest to it. Streams of one corpus are out of step, so that they give in each epoch what
        # it would give as a whole: floor(x) + floor(x + 1/n) + ... + floor(x + (n - 1)/n) = floor(n x) (Hermite).
        n, exact = len(mixed), [Fraction(repr(float(weight))).as_integer_ratio() for weight in weights]
        cells = list(zip(self.counts, exact * n, np.repeat(mixed, self.corpora).tolist(), strict=True))
        self.first, after = (
            [(number * count * over * n + shard * under) // (under * n) for count, (over, under), shard in cells]
            for number in (epoch, epoch + 1)
        )
        self.starts = np.cumsum([0, *(end - first for end, first in zip(after, self.first, strict=True))], dtype=np.int64)
        self.rows = int(self.starts[-1])
        self.bounds = self.starts[[*range(0, n * self.corpora, (at_once or n) * self.corpora), -1]]  # of the groups

    def groups_of(self, positions: Integers) -> Integers:
        return np.searchsorted(self.bounds, positions, side="right") - 1

    def cut_windows(self, most: int) -> list[int]:
        """Where windows of at most so many positions begin, and the last ends. All of a group are about equally large, so that none ends in
        a few batches that are nearly empty."""
        groups = [(begin, end - begin, -(-(end - begin) // most)) for begin, end in pairwise(self.bounds.tolist())]
        return [*(begin + number * rows // count for begin, rows, count in groups for number in range(count)), self.rows]

    def at(self, positions: Integers) -> tuple[Integers, Integers]:
        """The corpus at each position of the epoch, and the index within that corpus."""
        slots, groups = np.empty_like(positions), self.groups_of(positions)
        for group in np.unique(groups).tolist():
            here, (begin, end) = np.flatnonzero(groups == group), self.bounds[group : group + 2].tolist()
            slots[here] = begin + shuffle(positions[here] - begin, end - begin, self.keys[group])
        cells = np.searchsorted(self.starts, slots, side="right").astype(np.int64) - 1
        indexes = np.zeros_like(slots)
        for cell in np.unique(cells).tolist():
            here, count = np.flatnonzero(cells == cell), self.counts[cell]
            streamed = slots[here] - self.starts[cell] + self.first[cell]
            keys = draws(self.pass_keys[cell], streamed // count)
            indexes[here] = self.before[cell] + shuffle(streamed % count, count, keys)
        return cells % self.corpora, indexes
