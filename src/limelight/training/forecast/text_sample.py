"""A sample of some thousand pairs, drawn from all files, is prepared and scaled up to the size of a whole text.

Pairs are drawn at random, not evenly spaced: corpora have an order, and Multi30k one in which every second sentence is shorter. Copies
are counted among all that was read, since a sample has few of those that the whole text has.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limelight.chance import Words, draws, key_of
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.exchange.engine import ExchangeEngine, Progress, Watch
from limelight.corpus.exchange.settle import count_words
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.inputs import find_train
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.prepare import prepare
from limelight.corpus.readers import read
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.streams import position, size_of
from limelight.errors import DataError
from limelight.text.pieces.tokenizer import suggest_size
from limelight.training.forecast.text_size import EpochSize, compute_size
from limelight.training.recipe.text_stats import frequencies

MOST: Final = 20_000  # pairs that are prepared
READ: Final = 2_000_000  # pairs that are read of each file to count and to draw from; what is beyond them is told by bytes


def sample_text(settings: PrepareSettings, engine: ExchangeEngine, work: Path, watch: Watch, most: int = MOST) -> EpochSize:
    """Measure a text by preparing a sample in the folder `work`, which the caller throws away."""
    parts, settings = find_train(settings), settings.changed(corpora=[_as_stored(settings, n) for n in range(len(settings.corpora))])
    corpora = [_Sample(corpus, [part for part in parts if part.corpus == number], number) for number, corpus in enumerate(settings.corpora)]
    for done, corpus in enumerate(corpora):
        watch(Progress("sample", done, len(corpora)))
        corpus.read(most)
    everything = np.sort(np.concatenate([corpus.drawn for corpus in corpora]))
    if len(everything) > most:  # the same chance for each pair of all corpora
        for corpus in corpora:
            corpus.keep_below(everything[most])
    watch(Progress("sample", len(corpora), len(corpora), sum(corpus.rows for corpus in corpora)))
    taken = sum(len(corpus.taken) for corpus in corpora)
    if not taken:
        raise DataError(
            "there is no pair to plan for: the files are empty, or none of their rows can be read; look with `limelight prepare ... "
            "--check-only`"
        )
    words = sum(corpus.words() * corpus.pairs / max(1, len(corpus.taken)) for corpus in corpora)
    held_out = settings.held_out.changed(valid=(), test=(), pairs=(), valid_pairs=0, test_pairs=0)
    pieces = settings.pieces.changed(size=settings.pieces.size or suggest_size(round(words)))
    small = settings.changed(corpora=[corpus.write(work) for corpus in corpora if len(corpus.taken)], held_out=held_out, pieces=pieces)
    manifest, _ = prepare(small, work / "prepared", engine, watch)
    told = frequencies(PreparedCorpus.open(work / "prepared", verify=False))
    return replace(_scale_up(settings, corpora, manifest, taken), frequencies=told)


def _as_stored(settings: PrepareSettings, number: int) -> CorpusSettings:
    corpus, stored = settings.corpora[number], settings.stored[number]
    return corpus.changed(swapped=False, languages=None if stored == settings.languages else stored)


def _scale_up(settings: PrepareSettings, corpora: "list[_Sample]", manifest: CorpusManifest, taken: int) -> EpochSize:
    copies = Reason.DUPLICATE.label
    kept = {e.name: (sum(e.kept.values()) + e.dropped.get(copies, 0)) / max(1, e.read) for e in manifest.corpora}
    keys = np.concatenate([key for corpus in corpora for key in corpus.keys])
    single = len(np.unique(keys)) / max(1, len(keys)) if settings.dedup.exact else 1.0  # what is not there a second time
    left = {each.name: each.pairs * each.usable * kept.get(each.name, 0.0) * single for each in corpora}
    everything = sum(left.values())
    training = everything - _count_held_out(settings, everything)
    pairs = sum(left[corpus.name] * corpus.weight for corpus in corpora) * training / max(1.0, everything)
    pairs *= 2 if settings.both_directions else 1
    read = round(sum(corpus.pairs for corpus in corpora))
    seen = compute_size(manifest, pairs, read)
    counted, dropped = all(corpus.whole for corpus in corpora), 1 - everything / max(1, read)
    size = sum(corpus.size() for corpus in corpora) / taken
    return replace(seen, bytes_of_pair=size, sampled=taken, dropped=dropped, counted=counted)


def _count_held_out(settings: PrepareSettings, pairs: float) -> float:
    """Pairs that are split off for validation and test, where none were given for them."""
    given = settings.held_out
    wanted = [each for split, each in (("valid", given.valid_pairs), ("test", given.test_pairs)) if not given.is_given(split)]
    return sum(min(each * len(set(settings.stored)), given.largest_share * pairs) for each in wanted)


class _Sample:
    """Pairs of a corpus with a draw for each; those with the lowest draws stay."""

    def __init__(self, corpus: CorpusSettings, parts: list[CorpusPart], number: int) -> None:
        self.corpus, self.parts, self.number = corpus, parts, number
        self.name, self.weight = corpus.name, corpus.weight
        self.rows = 0  # that were read
        self.pairs = 0.0  # that there are
        self.whole = True
        self.taken: pa.Table = pa.table({"source": pa.array([], pa.string()), "target": pa.array([], pa.string())})
        self.drawn: Words = np.empty(0, np.uint64)
        self.keys: list[npt.NDArray[np.uint64]] = []  # of every pair
        self._bad = 0

    @property
    def usable(self) -> float:
        return 1 - self._bad / max(1, self.rows)

    def words(self) -> int:
        return sum(count_words(pl.Series(self.taken[side])) for side in ("source", "target"))

    def size(self) -> int:
        return sum(pc.sum(pc.binary_length(self.taken[side])).as_py() or 0 for side in ("source", "target"))

    def read(self, most: int) -> None:
        bound, key = np.uint64(2**64 - 1), key_of(self.number)
        for batch in self._batches():
            drawn = draws(key, np.arange(self.rows, self.rows + len(batch), dtype=np.int64))
            self.rows += len(batch)
            sound = np.asarray(batch["fault"]) == 0
            self._bad += int((~sound).sum())
            good, drawn = batch.filter(pa.array(sound)), drawn[sound]
            frame = pl.DataFrame(pl.from_arrow(good))
            self.keys.append(frame.select(pl.struct("source", "target").hash()).to_series().to_numpy())
            low = pa.array(drawn <= bound)
            some = pa.table({side: good[side].filter(low) for side in ("source", "target")})
            self.taken = pa.concat_tables([self.taken, some])
            self.drawn = np.concatenate([self.drawn, drawn[drawn <= bound]])
            if len(self.drawn) > 2 * most:
                bound = np.partition(self.drawn, most)[most]
                self.keep_below(bound)

    def keep_below(self, bound: np.uint64) -> None:
        low = self.drawn < bound
        self.taken, self.drawn = self.taken.filter(pa.array(low)), self.drawn[low]

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for part in self.parts:
            rows, total = 0, sum(map(size_of, part.paths))
            for batch in read(part):
                rows += len(batch)
                yield batch
                at = sum(map(position, part.paths))
                if rows >= READ and at:
                    self.whole = False
                    self.pairs += rows * total / at
                    break
            else:
                self.pairs += rows

    def write(self, work: Path) -> CorpusSettings:
        """As a file of its own. Parquet keeps every character."""
        path = work / f"{self.number}.parquet"
        pq.write_table(self.taken, path)
        return self.corpus.changed(paths=[str(path)], columns=("source", "target"))
