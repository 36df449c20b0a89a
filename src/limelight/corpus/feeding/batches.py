"""A `Batcher` cuts the order of an epoch into windows, sorts them by length and fills padded batches by a budget.

An epoch is cut into windows of consecutive positions, each of one group of shards. In a window, pairs are sorted so that neighbours are
about equally long on both sides, cut where the next row would pass the budget, and the batches are shuffled. Every step is a function of
the seed, the epoch and the window alone, so the list of global batches is the same for any number of ranks and workers, and any of them
can be found again.

Rank r of W takes rows r, r + W, r + 2 W ... of every global batch, padded to the width of the whole batch. The share of a rank is empty
when the batch has fewer rows than there are ranks; `targets`, the count over all ranks, is what a loss should be divided by.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from limelight.chance import draws, key_of
from limelight.config import Settings, SparseSettings
from limelight.corpus.config import SpecialIds
from limelight.corpus.feeding.augment import AugmentedRows, Augmenter, AugmentSettings
from limelight.corpus.feeding.directions import list_fed, temper
from limelight.corpus.feeding.order import EpochOrder, Purpose, shuffle
from limelight.corpus.feeding.pieces import Integers, Pieces, join_rows, pad_rows
from limelight.corpus.feeding.shards import Pairs
from limelight.corpus.feeding.tagging import Tagger
from limelight.corpus.manifest import FileEntry
from limelight.text.pieces.sampling import Sampler

# Pairs sorted together, for each cell of the budget: a window of this many batches' worth has the same padding at any budget. On
# Europarl (31 pieces a side) that is 1.3 % with 32, planned in 0.1 s for a budget of 4,096, and 4.7 % with 4. A sampler segments
# the whole window before its first batch, and takes seconds for that until it has seen most words.
WINDOW: Final = 32
WINDOW_WHEN_SAMPLING: Final = 4
LEAST_WINDOW: Final = 16_384

# Pieces fetched from the shards at once: enough to make one call for many batches, few enough to stay in the cache.
PIECES_FETCHED_TOGETHER: Final = 1 << 18


class SamplingSettings(Settings):
    """These decide how texts are cut by chance: alpha is for unigram models, dropout for BPE. See `limelight.text.pieces.sampling`."""

    alpha: float = Field(0.2, ge=0)
    dropout: float = Field(0.1, ge=0, le=1)
    candidates: int = Field(16, ge=1)


class BatchSettings(SparseSettings):
    """These settings decide the batches. All of it is part of a loader's state: a run does not go on with other values."""

    rare: ClassVar = {"untagged", "temperature", "shards_at_once"}  # what only text with tags, or larger than the disk, needs
    budget: int = Field(
        4096,
        ge=2,
        description="most cells of a batch: rows x (longest source + longest target), with what stands around",
    )
    window: int | None = Field(None, ge=1, description="pairs sorted together; by default in proportion to the budget")
    seed: int = Field(1, ge=0)
    longest: int | None = Field(None, ge=1, description="most pieces on either side, beside its end; longer pairs are skipped and counted")
    sampling: SamplingSettings | None = Field(None, description="segment the text anew, by chance, each time it comes")
    augment: AugmentSettings | None = Field(None, description="change some of the text, by chance, each time it comes")
    untagged: float = Field(0.1, ge=0, le=1, description="share of the sources that are told no tags but the language")
    temperature: float = Field(1.0, ge=1, le=100, description="a direction of n pairs is seen in proportion to n ** (1 / temperature)")
    shards_at_once: int = Field(0, ge=0, description="shards whose pairs are mixed, in an order of their own in each epoch; 0: all of them")

    @property
    def window_rows(self) -> int:
        per_piece = WINDOW if self.sampling is None else WINDOW_WHEN_SAMPLING
        return self.window or max(LEAST_WINDOW, per_piece * self.budget)

    def fits(self, source: Integers, target: Integers) -> npt.NDArray[np.bool_]:
        """Which pairs go into a batch at all, by the ids of each side: its pieces and what stands around them."""
        fits = source + target <= self.budget
        return fits if self.longest is None else fits & (np.maximum(source, target) <= self.longest + 1)


@dataclass(frozen=True)
class BatchShare:
    """A share is the part of one global batch that one rank gets. Each row has its marks around it and is then filled with padding."""

    epoch: int
    window: int
    batch: int  # within the window
    samples: Integers  # (B,)
    source: Integers  # (B, S)
    target: Integers  # (B, T)
    rows: int  # of the global batch
    targets: int  # target pieces of the global batch, ends included
    marks: SpecialIds = field(default=SpecialIds(), kw_only=True)

    @property
    def target_in(self) -> Integers:
        """What the decoder reads: the start, then the target up to the piece before its end. As long as the target, also where it
        starts with the padding."""
        pad = self.marks.pad
        shifted = np.concatenate([np.full_like(self.target[:, :1], self.marks.start), self.target[:, :-1]], axis=1)
        return np.where(self.target == pad, pad, shifted)

    @property
    def target_out(self) -> Integers:
        """What the decoder should say: the target with its end."""
        return self.target

    @property
    def sources(self) -> int:
        """Source pieces of this share, ends included."""
        return int(np.count_nonzero(self.source != self.marks.pad))

    @property
    def cells(self) -> int:
        return self.source.size + self.target.size

    def padding(self) -> float:
        """The part of the cells that holds nothing."""
        pieces = self.sources + int(np.count_nonzero(self.target != self.marks.pad))
        return 1 - pieces / self.cells if self.cells else 0.0


@dataclass(frozen=True)
class PairBatch(BatchShare):
    """A batch is a share as training sees it. `state` is the place right after it: a loader that starts there goes on with the next."""

    number: int  # within the epoch
    state: dict[str, Any]


@dataclass(frozen=True)
class Window:
    """A window is planned: it says which rows make up which batch. `order` lists the rows that fit, sorted; batch i is a slice of it."""

    epoch: int
    number: int
    samples: Integers
    lengths: tuple[Integers, Integers]  # of pieces and what stands around them
    sampled: list[Pieces] | None
    changed: AugmentedRows | None
    tags: Pieces | None  # before each source
    order: Integers
    starts: Integers
    stops: Integers
    skipped: int


class Batcher:
    """A batcher plans any window of any epoch, and fills any of its batches."""

    def __init__(self, pairs: Pairs, settings: BatchSettings) -> None:
        self.pairs = pairs
        self.settings = settings
        self.marks = pairs.prepared.manifest.marks
        manifest = pairs.prepared.manifest
        weights = [corpus.weight for corpus in manifest.corpora] * (2 if pairs.turns else 1)
        self.weights = temper(pairs.counts, weights, list_fed(manifest, pairs.turns), settings.temperature)
        self.tagger = Tagger(pairs, settings.seed, settings.untagged)
        self.samplers: list[Sampler] | None = None
        if settings.sampling is not None:  # one for each side, also when both share their pieces: each remembers words
            sampling = settings.sampling.model_dump()
            self.samplers = [Sampler(tokenizer, **sampling) for tokenizer in pairs.prepared.tokenizers()]
        self.augmenter: Augmenter | None = None
        if settings.augment is not None:
            self.tokenizers = pairs.prepared.tokenizers()
            self.augmenter = Augmenter(pairs, settings.augment, settings.seed, self.tokenizers, self.cut, self.tagger)
        self.order = lru_cache(maxsize=2)(
            lambda epoch: EpochOrder(pairs.counts, self.weights, settings.seed, epoch, pairs.rows_by_shard, settings.shards_at_once)
        )
        self.edges = lru_cache(maxsize=2)(lambda epoch: self.order(epoch).cut_windows(settings.window_rows))

    def windows(self, epoch: int) -> int:
        return len(self.edges(epoch)) - 1

    def window(self, epoch: int, number: int) -> Window:
        order, positions = self.order(epoch), np.arange(*self.edges(epoch)[number : number + 2], dtype=np.int64)
        if self.pairs.cache is not None:
            (group,) = order.groups_of(positions[:1]).tolist()
            now, coming, *_ = *order.groups[group:], *self.order(epoch + 1).groups
            self.pairs.cache.follow(self.list_files(now), self.list_files(coming))
        samples = self.pairs.samples(*order.at(positions))
        sampled: list[Pieces] | None = None
        if self.samplers is not None:
            sampled = [self.cut(at, texts, epoch, positions) for at, texts in enumerate(self.pairs.texts(samples))]
        source, target = (side.lengths for side in sampled) if sampled else self.pairs.lengths(samples)
        changed = self.augmenter.augment(order, epoch, positions, samples, self._fits_with_tags) if self.augmenter else None
        if changed:
            source[changed.rows], target[changed.rows] = changed.source.lengths, changed.target.lengths
        tags = self.tagger.tags(epoch, positions, samples)
        source = source if tags is None else source + tags.lengths
        fitting = np.flatnonzero(self._fits(source, target))
        whole = source + self.marks.around[0], target + self.marks.around[1]
        stride = stride_for(source[fitting], target[fitting], self.settings.budget)
        rows = fitting[snake(source[fitting], target[fitting], stride)]
        cuts = cut(whole[0][rows], whole[1][rows], self.settings.budget)
        batches, key = len(cuts) - 1, key_of(self.settings.seed, Purpose.BATCHES, epoch, number)
        mixed = shuffle(np.arange(batches), batches, key)
        starts, stops, skipped = cuts[:-1][mixed], cuts[1:][mixed], len(samples) - len(rows)
        return Window(epoch, number, samples, whole, sampled, changed, tags, rows, starts, stops, skipped)

    def list_files(self, shards: Iterable[int]) -> list[FileEntry]:
        """What is read of some shards: their text only where it is changed, or cut anew."""
        found = [self.pairs.shards[number] for number in shards]
        reads_text = self.samplers is not None or self.augmenter is not None
        return [each.ids for each in found] + [each.text for each in found if reads_text]

    def cut(self, side: int, texts: pa.StringArray | Sequence[str], epoch: int, positions: Integers) -> Pieces:
        """The pieces of some texts. A draw belongs to a position of an epoch, not to a sample: a pair that comes twice is segmented in
        two ways."""
        if self.samplers is None:
            lists = self.tokenizers[side].encode(texts)
        else:
            purpose = (Purpose.SOURCE_PIECES, Purpose.TARGET_PIECES)[side]
            lists = self.samplers[side].encode(texts, draws(key_of(self.settings.seed, purpose, epoch), positions))
        return Pieces.of(lists)

    def _fits(self, source: Integers, target: Integers) -> npt.NDArray[np.bool_]:
        return self.settings.fits(source + self.marks.around[0], target + self.marks.around[1])

    def _fits_with_tags(self, source: Integers, target: Integers) -> npt.NDArray[np.bool_]:
        return self._fits(source + self.tagger.most, target)

    def shares(self, window: Window, rank: int, world: int, first: int = 0) -> Iterator[BatchShare]:
        """The share of one rank in each batch of a window, from batch `first` on."""
        marks, source_end = self.marks, self.marks.end if self.marks.source_ends else None
        together = max(1, PIECES_FETCHED_TOGETHER // (self.settings.budget // world + 1))
        for begin in range(first, len(window.starts), together):
            numbers = range(begin, min(begin + together, len(window.starts)))
            shares = [window.order[window.starts[n] + rank : window.stops[n] : world] for n in numbers]
            rows = np.concatenate(shares)
            samples = window.samples[rows]
            if window.sampled is None:
                source, target = self.pairs.ids(samples)
            else:
                source, target = (side.take(rows) for side in window.sampled)
            if window.changed is not None:
                source, target = window.changed.over(rows, source, target)
            if window.tags is not None:
                source = join_rows(window.tags.take(rows), source)
            stop = 0
            for number, share in zip(numbers, shares, strict=True):
                start, stop = stop, stop + len(share)
                everyone = window.order[window.starts[number] : window.stops[number]]
                widths = [int(side[everyone].max()) for side in window.lengths]
                yield BatchShare(
                    epoch=window.epoch,
                    window=window.number,
                    batch=number,
                    samples=samples[start:stop],
                    source=pad_rows(source, start, stop, widths[0], marks.pad, marks.source_begin, source_end),
                    target=pad_rows(target, start, stop, widths[1], marks.pad, marks.target_begin, marks.end),
                    rows=len(everyone),
                    targets=int(window.lengths[1][everyone].sum()),
                    marks=marks,
                )


def stride_for(source: Integers, target: Integers, budget: int) -> int:
    """How many target lengths count as equal when pairs are sorted: 1.5 x mean length x sqrt(rows of a batch / rows), rounded up.

    With few rows there are too few of each target length to choose the sources from. The factor fits Europarl and Multi30k, windows
    of 4,096 to 131,072 and budgets of 4,096 and 25,000. Integers alone decide, so that every machine finds the same.
    """
    rows, pieces = max(1, len(source)), int(source.sum() + target.sum())
    return math.isqrt(9 * pieces * budget // (16 * rows * rows)) + 1


def snake(source: Integers, target: Integers, stride: int) -> Integers:
    """The order by target length in steps of `stride`; within a step by source length, up and down in turn: no neighbours are far apart.

    targets 1 1 2 2 with sources 5 9 5 9, stride 1  ->  (5, 1) (9, 1) (9, 2) (5, 2)
    """
    step = target // stride
    return np.lexsort((target, np.where(step % 2 == 1, source, -source), step))


def cut(source: Integers, target: Integers, budget: int) -> Integers:
    """Where batches begin and end: each takes rows while rows x (longest source + longest target) stays within the budget.

    cut([2, 2, 3], [2, 2, 3], budget=8) -> [0, 2, 3]
    """
    cuts = [0]
    while cuts[-1] < len(source):
        begin = cuts[-1]
        most = budget // int(source[begin] + target[begin])
        some = slice(begin, begin + most)
        widths = np.maximum.accumulate(source[some]) + np.maximum.accumulate(target[some])
        cells = widths * np.arange(1, len(widths) + 1)
        cuts.append(begin + int(np.searchsorted(cells, budget, side="right")))
    return np.array(cuts, np.int64)
