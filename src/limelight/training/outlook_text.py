"""What a text is to a plan: how many pairs and pieces an epoch has, how long they are, and how much is dropped.

    with TemporaryDirectory() as work:
        sampled(settings, engine, Path(work), watch)  ->  Seen(pairs=154_351, source=1.5e6, target=1.6e6, ...)

Some thousands of pairs, taken evenly from all files, are really prepared by `limelight.corpus`, and what is found there is scaled up.
Copies are counted among all that was read: a sample has few of those that the whole text has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.encode import at_most
from limelight.corpus.engine import Engine, Progress, Watch
from limelight.corpus.manifest import Manifest
from limelight.corpus.prepare import prepare
from limelight.corpus.readers import find, read
from limelight.corpus.reading.raw import Part
from limelight.corpus.reading.streams import position, size_of
from limelight.corpus.reasons import Reason
from limelight.errors import DataError
from limelight.planning.choosing import Text
from limelight.planning.corpus_work import BYTES
from limelight.text.tokenizer import suggest_size

MOST: Final = 20_000  # pairs that are prepared
READ: Final = (
    2_000_000  # pairs that are read of each file to count and to choose from; what is beyond them is told by bytes
)
PAIRS_OF_THE_PAPER: Final = 4_500_000  # WMT 2014 English-German (5.1)
LONG: Final = 0.999  # of the sentences are no longer than what a batch of long ones is made of


@dataclass(frozen=True)
class Seen:
    """An epoch of training. Pieces with what stands around them; corpora as often as their weights say."""

    pairs: float
    source: float
    target: float
    vocab_sizes: tuple[int, int]
    joint: bool  # one vocabulary for both sides
    longest: tuple[int, int]  # pieces that nearly no sentence has more of
    read: int  # pairs in the files
    bytes_of_pair: float = BYTES  # of text, both sides
    sampled: int | None = None  # of which so many were prepared. None: all, earlier
    dropped: float = 0.0  # of what was read
    counted: bool = True  # False: a file was too long to be read to its end, and its pairs are told by its bytes
    typical: bool = False  # nobody saw a text: lengths that are common

    @property
    def text(self) -> Text:
        return Text(self.pairs, self.source, self.target)

    @property
    def means(self) -> tuple[float, float]:
        """Pieces of a pair."""
        return self.source / self.pairs, self.target / self.pairs

    def of(self, pairs: float) -> "Seen":
        """The same kind of text, so many pairs of it."""
        more = pairs / self.pairs
        values = {**vars(self), "pairs": pairs, "source": self.source * more, "target": self.target * more}
        return Seen(**{**values, "read": round(self.read * more), "counted": False})


def typical(pairs: float) -> Seen:
    """Of a text that nobody has shown: a sentence of news has about 25 words, 30 pieces with its end (docs/plan.md)."""
    pieces, words = 30.0, 25 * 2
    size = suggest_size(round(words * pairs))
    return Seen(pairs, pieces * pairs, pieces * pairs, (size, size), True, (128, 128), round(pairs), typical=True)


def prepared(folder: Path) -> Seen:
    """Of a corpus that was prepared: exact."""
    manifest = Manifest.load(folder)
    rows = [0] * len(manifest.corpora)
    for shard in manifest.splits["train"]:
        rows = [a + b for a, b in zip(rows, shard.rows_by_corpus, strict=True)]
    pairs = sum(count * corpus.weight for count, corpus in zip(rows, manifest.corpora, strict=True))
    return _seen(manifest, pairs, sum(corpus.read for corpus in manifest.corpora))


def _seen(manifest: Manifest, pairs: float, read: int) -> Seen:
    figures = manifest.statistics["pieces"]["train"]
    plain = sum(shard.rows for shard in manifest.splits["train"])
    sides = zip(("source", "target"), manifest.marks.around, strict=True)
    source, target = (pairs * (figures[side]["pieces"] / plain + around) for side, around in sides)
    one, other = (
        at_most(figures[side]["lengths"], LONG, figures[side]["longest"]) + 1 for side in ("source", "target")
    )
    judged = sum(corpus.read for corpus in manifest.corpora)
    dropped = sum(sum(corpus.dropped.values()) for corpus in manifest.corpora)
    return Seen(
        pairs, source, target, manifest.vocab_sizes, len(manifest.pieces) == 1, (one, other), read,
        dropped=dropped / max(1, judged),
    )  # fmt: skip


def sampled(settings: PrepareSettings, engine: Engine, work: Path, watch: Watch, most: int = MOST) -> Seen:
    """By preparing a sample in the folder `work`, which the caller throws away."""
    corpora = [
        _Sample(corpus, find(corpus.paths, settings.languages, columns=corpus.columns, corpus=number))
        for number, corpus in enumerate(settings.corpora)
    ]
    stride = 1
    for done, corpus in enumerate(corpora):
        watch(Progress("sample", done, len(corpora)))
        stride = corpus.read(stride, most)
    stride = _evenly(corpora, stride, most)
    watch(Progress("sample", len(corpora), len(corpora), sum(corpus.rows for corpus in corpora)))
    taken = sum(len(corpus.taken) for corpus in corpora)
    if not taken:
        raise DataError(
            "there is no pair to plan for: the files are empty, or none of their rows can be read; look with `limelight prepare ... "
            "--check-only`"
        )
    words = sum(corpus.words() * corpus.pairs / max(1, len(corpus.taken)) for corpus in corpora)
    held_out = settings.held_out.changed(valid=(), test=(), valid_pairs=0, test_pairs=0)
    pieces = settings.pieces.changed(size=settings.pieces.size or suggest_size(round(words)))
    small = settings.changed(
        corpora=[corpus.written(work) for corpus in corpora if len(corpus.taken)], held_out=held_out, pieces=pieces
    )
    manifest, _ = prepare(small, work / "prepared", engine, watch)
    return _scaled(settings, corpora, manifest, taken)


def _scaled(settings: PrepareSettings, corpora: "list[_Sample]", manifest: Manifest, taken: int) -> Seen:
    copies = Reason.DUPLICATE.label
    kept = {e.name: (sum(e.kept.values()) + e.dropped.get(copies, 0)) / max(1, e.read) for e in manifest.corpora}
    single = _single(corpora) if settings.dedup.exact else 1.0
    left = {each.name: each.pairs * each.usable * kept.get(each.name, 0.0) * single for each in corpora}
    everything = sum(left.values())
    training = everything - _held_out(settings, everything)
    pairs = sum(left[corpus.name] * corpus.weight for corpus in corpora) * training / max(1.0, everything)
    read = round(sum(corpus.pairs for corpus in corpora))
    seen = _seen(manifest, pairs, read)
    counted = all(corpus.whole for corpus in corpora)
    size = sum(corpus.size() for corpus in corpora) / taken
    values = {
        **vars(seen),
        "bytes_of_pair": size,
        "sampled": taken,
        "dropped": 1 - everything / max(1, read),
        "counted": counted,
    }
    return Seen(**values)


def _single(corpora: "list[_Sample]") -> float:
    """The part of all that was read that is not there a second time."""
    keys = np.concatenate([key for corpus in corpora for key in corpus.keys])
    return len(np.unique(keys)) / max(1, len(keys))


def _held_out(settings: PrepareSettings, pairs: float) -> float:
    """Pairs that are split off for validation and test, where none were given for them."""
    given = settings.held_out
    wanted = (0 if given.valid else given.valid_pairs, 0 if given.test else given.test_pairs)
    return sum(min(each, given.largest_share * pairs) for each in wanted)


class _Sample:
    """Every `stride`-th pair of a corpus."""

    def __init__(self, corpus: CorpusSettings, parts: list[Part]) -> None:
        self.corpus, self.parts = corpus, parts
        self.name, self.weight = corpus.name, corpus.weight
        self.rows = 0  # that were read
        self.pairs = 0.0  # that there are
        self.whole = True
        self.taken: pa.Table = pa.table({"source": pa.array([], pa.string()), "target": pa.array([], pa.string())})
        self.keys: list[npt.NDArray[np.uint64]] = []  # of every pair
        self._bad = 0

    @property
    def usable(self) -> float:
        return 1 - self._bad / max(1, self.rows)

    def words(self) -> int:
        """On both sides."""
        counts = [pc.sum(pc.count_substring(self.taken[side], " ")).as_py() or 0 for side in ("source", "target")]
        return sum(counts) + 2 * len(self.taken)

    def size(self) -> int:
        """Bytes of what was taken."""
        return sum(pc.sum(pc.binary_length(self.taken[side])).as_py() or 0 for side in ("source", "target"))

    def read(self, stride: int, most: int) -> int:
        """Reads all, or as much as is enough; doubles the stride when twice as many were taken as are wanted."""
        tables = []
        taken = 0
        for batch in self._batches():
            good = batch.filter(pc.equal(batch["fault"], 0))
            self._bad += len(batch) - len(good)
            self.keys.append(
                pl.DataFrame(pl.from_arrow(good)).select(pl.struct("source", "target").hash()).to_series().to_numpy()
            )
            first = -self.rows % stride
            self.rows += len(batch)
            every = good.take(pa.array(np.arange(first, len(good), stride)))
            tables.append(pa.table({side: every[side] for side in ("source", "target")}))
            taken += len(every)
            if taken > 2 * most:
                tables = [_thinned(pa.concat_tables(tables), 2)]
                taken, stride = len(tables[0]), 2 * stride
        if tables:
            self.taken = pa.concat_tables(tables)
        self.stride = stride
        return stride

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

    def written(self, work: Path) -> CorpusSettings:
        """As a file of its own. Parquet keeps every character."""
        path = work / f"{self.parts[0].corpus}.parquet"
        pq.write_table(self.taken, path)
        return self.corpus.changed(paths=[str(path)], columns=("source", "target"))


def _evenly(corpora: list[_Sample], stride: int, most: int) -> int:
    """All by the same stride, the least of twice each that leaves at most so many."""
    for corpus in corpora:
        corpus.taken = _thinned(corpus.taken, stride // corpus.stride)
    while sum(len(corpus.taken) for corpus in corpora) > most:
        stride *= 2
        for corpus in corpora:
            corpus.taken = _thinned(corpus.taken, 2)
    return stride


def _thinned(table: pa.Table, by: int) -> pa.Table:
    return table.take(pa.array(np.arange(0, len(table), by))) if by > 1 else table
