"""`Pairs` reads any rows of a prepared corpus from its memory-mapped shards. It goes through the page cache, without a copy or a Python
object per row.

A shard is two Arrow files of one uncompressed record batch each, so that a column is a view of the mapped file:

    NAME.text.arrow   source, target, corpus, file, line, segment      looked up when a person asks, or pieces are sampled
    NAME.ids.arrow    source, target as lists of piece ids, without start and end

Where rows have tags of their own, both have a column `tags`: names as text, and a bit for each name.

A pair has two addresses: (corpus, index in corpus), by which the order of an epoch finds it, and its sample number, the position in
the split when all shards stand one after another, by which logs and states name it. `Pairs.samples` leads from the first to the second.
Where both directions are learnt, each pair has a second address for its sides exchanged: both numbers count on, after all the others.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limelight.corpus.feeding.pieces import Integers, Pieces, replace_rows
from limelight.corpus.feeding.shard_cache import ADDRESS, ShardCache
from limelight.corpus.manifest import SIDES, CorpusManifest, FileEntry, Shard, Split
from limelight.corpus.reading.raw_batches import RAW
from limelight.corpus.tokenizers import load_tokenizers
from limelight.errors import DataError
from limelight.files import sha256_of, whole_file
from limelight.text.languages import Direction
from limelight.text.pieces.tokenizer import Tokenizer

TEXT_SCHEMA: Final = pa.schema([RAW.field(name) for name in ("source", "target", "corpus", "file", "line", "segment")])
TAGS_FIELD: Final = pa.field("tags", pa.uint64(), nullable=False)
FIRST_VOCABULARY_TOO_LARGE_FOR_16_BITS: Final = 65_537
MappedIds = tuple[Pieces, Pieces, pa.RecordBatch]  # source, target, and what they are columns of


@dataclass(frozen=True)
class Provenance:
    """The provenance says where a pair came from. `paths` are the files read: one, or one for each side."""

    corpus: str
    paths: tuple[str, ...]
    line: int
    segment: str | None
    source: str
    target: str


def ids_schema(vocab_sizes: tuple[int, int]) -> pa.Schema:
    """Two bytes per piece as long as the vocabulary allows it."""
    widths = [pa.uint32() if size >= FIRST_VOCABULARY_TOO_LARGE_FOR_16_BITS else pa.uint16() for size in vocab_sizes]
    sides = zip(SIDES, widths, strict=True)
    return pa.schema([pa.field(side, pa.list_(pa.field("item", width, False)), False) for side, width in sides])


def write_table(path: Path, table: pa.Table) -> FileEntry:
    """The table as one record batch, whole or absent. The entry names it from the prepared folder: shards/NAME.arrow."""
    batches = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    if len(batches) > 1:
        raise DataError(f"{path.name} would hold over 2 GiB in one column; prepare with fewer pairs per shard")
    with whole_file(path) as beside:
        with pa.ipc.new_file(beside, table.schema, options=pa.ipc.IpcWriteOptions(compression=None)) as writer:
            writer.write_batch(batches[0])
        size, digest = beside.stat().st_size, sha256_of(beside)
    return FileEntry(path=f"{path.parent.name}/{path.name}", bytes=size, sha256=digest)


@dataclass(frozen=True)
class PreparedCorpus:
    """A prepared corpus is a finished folder of `limelight prepare`."""

    folder: Path
    manifest: CorpusManifest
    cache: ShardCache | None = None  # where its shards of training are at an address

    @classmethod
    def open(cls, folder: Path, verify: bool = True) -> "PreparedCorpus":
        """Refuses a folder in which any file is missing or differs from the manifest by a single byte, and names each of them.

        `verify=False` is for those who have just verified, such as the workers of a loader.
        """
        manifest, address = CorpusManifest.load(folder), folder / ADDRESS
        cache = ShardCache(address.read_bytes().decode()) if address.is_file() else None
        if verify:
            if cache is not None:
                cache.remove_damaged()
            at_hand = manifest.files if cache is None else manifest.without_training
            with ThreadPoolExecutor() as threads:  # hashing leaves Python's lock, so threads are enough
                problems = list(filter(None, threads.map(lambda entry: _problem(folder, entry), at_hand)))
            if problems:
                listed = "\n".join(f"  - {problem}" for problem in problems)
                raise DataError(f"{folder} is damaged; copy these files again, or delete the folder and prepare it again:\n{listed}")
        return cls(folder, manifest, cache)

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Load those of source and target anew: each remembers words, and serves one thread."""
        return load_tokenizers(self.folder, self.manifest.pieces, self.manifest.vocabulary)

    def split(self, name: Split, turned: bool = False) -> "Pairs":
        """`turned`: every pair also comes with its sides exchanged, whether or not the text was prepared for both directions."""
        if name not in self.manifest.splits:
            raise DataError(f"{self.folder} has no {name} split; it has: {', '.join(self.manifest.splits)}")
        return Pairs(self, self.manifest.splits[name], turned, self.cache if name == "train" else None)

    def validation_pairs(self) -> "Pairs":
        pairs = self.split("valid")
        if not pairs.rows:
            raise DataError(
                f"none of the {self.split('train').rows:,} pairs in {self.folder} could be set aside for validation, so nobody could tell "
                "which weights are best; give a set with --valid, or more text: some hundred pairs"
            )
        return pairs


class Pairs:
    """Pairs are the rows of one split. Files are mapped, not read: opening is instant and memory belongs to the page cache. Those of a
    `cache` are mapped anew each time, or they would stay on the disk when it removes them."""

    def __init__(self, prepared: PreparedCorpus, shards: list[Shard], turned: bool = False, cache: ShardCache | None = None) -> None:
        self.prepared, self.cache = prepared, cache
        self.shards = shards
        corpora = len(prepared.manifest.corpora)
        for shard in shards:
            if sum(shard.rows_by_corpus) != shard.rows or len(shard.rows_by_corpus) != corpora:
                raise DataError(f"the manifest of {prepared.folder} contradicts itself about {shard.name}; prepare the corpus again")
        rows = np.array([shard.rows_by_corpus for shard in shards], np.int64).reshape(len(shards), corpora)
        counts = tuple(int(count) for count in rows.sum(axis=0))
        self.turns = turned or prepared.manifest.both_directions
        self.counts = counts * (2 if self.turns else 1)
        self.rows_by_shard = np.tile(rows, 2 if self.turns else 1)
        self.rows = sum(counts)
        self.fed = sum(self.counts)  # as samples: more than rows where each is also turned round
        self._shard_starts = np.concatenate([[0], np.cumsum(rows.sum(axis=1))])
        # Of each corpus and shard: how many of the corpus came before, and the sample number of the first one here.
        self._before = np.cumsum(rows, axis=0) - rows
        self._first = self._shard_starts[:-1, None] + np.cumsum(rows, axis=1) - rows
        # Text is mapped when first needed: most runs never look at it, and each mapped file holds a file descriptor.
        remember: Callable[[Any], Any] = lru_cache(maxsize=None) if cache is None else lambda read: read
        self._text: Callable[[int], pa.RecordBatch] = remember(lambda shard: self._map(shards[shard].text, shards[shard].rows))
        self._ids_of: Callable[[int], MappedIds] = remember(self._map_ids)
        for number in range(len(shards) if cache is None else 0):
            self._ids_of(number)

    @property
    def usual(self) -> Integers:
        """The samples of the first direction."""
        return self.list_samples(self.prepared.manifest.languages)

    def list_samples(self, direction: Direction) -> Integers:
        """The samples of the corpora that are stored in this direction."""
        every, stored = np.arange(self.rows, dtype=np.int64), self.prepared.manifest.stored
        wanted = [number for number, pair in enumerate(stored) if pair == direction]
        return every if len(wanted) == len(stored) else every[np.isin(self.corpora_of(every), wanted)]

    def samples(self, corpora: Integers, indexes: Integers) -> Integers:
        """Sample numbers of pairs given as corpus and index in corpus."""
        found = np.empty_like(indexes)
        for corpus in np.unique(corpora):
            here = np.flatnonzero(corpora == corpus)
            turned, stored = divmod(int(corpus), self._before.shape[1])
            before = self._before[:, stored]
            # The last of equals: empty shards are passed over.
            shard = np.searchsorted(before, indexes[here], side="right") - 1
            found[here] = turned * self.rows + self._first[shard, stored] + indexes[here] - before[shard]
        return found

    def corpora_of(self, samples: Integers) -> Integers:
        """The corpora of samples, counted on for those that are turned round."""
        turned, stored = np.divmod(samples, max(1, self.rows))
        corpora = self._first.shape[1]
        # The last of equals again: a corpus that is not in a shard begins where the next does.
        place: Integers = np.searchsorted(self._first.ravel(), stored, side="right") - 1
        return np.asarray(place % corpora + turned * corpora)

    def tags(self, samples: Integers) -> npt.NDArray[np.uint64]:
        """The tags of rows that have their own, as bits."""
        found = np.zeros(len(samples), np.uint64)
        for shard, places, rows in self._by_shard(samples):
            if "tags" in (batch := self._ids_of(shard)[2]).schema.names:
                found[places] = batch.column("tags").to_numpy()[rows]
        return found

    def lengths(self, samples: Integers) -> tuple[Integers, Integers]:
        """Pieces of each source and each target."""
        source, target = np.empty_like(samples), np.empty_like(samples)
        for shard, places, rows in self._by_shard(samples):
            for side, found in zip(self._ids_of(shard)[:2], (source, target), strict=True):
                found[places] = side.offsets[rows + 1] - side.offsets[rows]
        if self.turns:
            turned = samples >= self.rows
            return np.where(turned, target, source), np.where(turned, source, target)
        return source, target

    def ids(self, samples: Integers) -> tuple[Pieces, Pieces]:
        """Source and target of each sample, in the order asked for."""
        source, target = self._gather(0, samples), self._gather(1, samples)
        turned = np.flatnonzero(samples >= self.rows)
        if not len(turned):
            return source, target
        return replace_rows(source, turned, target.take(turned)), replace_rows(target, turned, source.take(turned))

    def texts(self, samples: Integers) -> tuple[pa.StringArray, pa.StringArray]:
        """Source and target as text, in the order asked for."""
        parts = list(self._by_shard(samples))
        back = np.argsort(np.concatenate([places for _, places, _ in parts])) if parts else np.zeros(0, np.int64)
        empty = pa.array([], pa.string())

        def column(name: str) -> pa.StringArray:
            taken = [self._text(shard).column(name).take(pa.array(rows)) for shard, _, rows in parts]
            return pa.concat_arrays([empty, *taken]).take(pa.array(back))

        source, target = column("source"), column("target")
        turned = samples >= self.rows
        if not turned.any():
            return source, target
        both, here = pa.concat_arrays([source, target]), np.arange(len(samples))
        first = np.where(turned, here + len(samples), here)
        return both.take(pa.array(first)), both.take(pa.array((first + len(samples)) % (2 * len(samples))))

    def provenance(self, sample: int) -> Provenance:
        if not 0 <= sample < self.fed:
            raise DataError(f"there is no sample {sample}; the split has {self.fed:,} pairs, counted from 0")
        (shard, _, rows), *_ = self._by_shard(np.array([sample], np.int64))
        row = self._text(shard).slice(int(rows[0]), 1).select(TEXT_SCHEMA.names).to_pylist()[0]
        if sample >= self.rows:
            row["source"], row["target"] = row["target"], row["source"]
        manifest = self.prepared.manifest
        corpus, paths = manifest.corpora[row.pop("corpus")].name, tuple(manifest.inputs[row.pop("file")].paths)
        return Provenance(corpus=corpus, paths=paths, **row)

    def _map_ids(self, shard: int) -> MappedIds:
        batch = self._map(self.shards[shard].ids, self.shards[shard].rows)
        return Pieces.of(batch.column("source")), Pieces.of(batch.column("target")), batch

    def _map(self, entry: FileEntry, rows: int) -> pa.RecordBatch:
        while True:
            path = self.prepared.folder / entry.path if self.cache is None else self.cache.find(entry)
            try:
                return _map_batch(path, rows)
            except DataError:
                if self.cache is None or path.exists():  # else another process needed its room in between
                    raise

    def _by_shard(self, samples: Integers) -> list[tuple[int, Integers, Integers]]:
        """For each shard that is met: its number, the places in `samples` that lead to it, and their rows in it."""
        samples = samples % max(1, self.rows) if self.turns else samples
        shards = np.searchsorted(self._shard_starts, samples, side="right") - 1
        places = np.argsort(shards, kind="stable")
        met, begins = np.unique(shards[places], return_index=True)
        parts = zip(met, np.split(places, begins[1:]), strict=True) if len(met) else ()
        return [(int(shard), some, samples[some] - self._shard_starts[shard]) for shard, some in parts]

    def _gather(self, side: Literal[0, 1], samples: Integers) -> Pieces:
        parts = self._by_shard(samples)
        if not parts:
            return Pieces(np.zeros(0, np.uint16), np.zeros(1, np.int64))
        taken = [self._ids_of(shard)[side].take(rows) for shard, _, rows in parts]
        if len(taken) == 1:
            return taken[0]
        ends = np.concatenate([[0], np.cumsum(np.concatenate([some.lengths for some in taken]))])
        together = Pieces(np.concatenate([some.values for some in taken]), ends)
        return together.take(np.argsort(np.concatenate([places for _, places, _ in parts])))


def _map_batch(path: Path, rows: int) -> pa.RecordBatch:
    try:
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path} cannot be read ({error}); prepare the corpus again") from None
    if batch.num_rows != rows:
        raise DataError(f"{path} has {batch.num_rows:,} rows, its manifest says {rows:,}; prepare the corpus again")
    return batch


def _problem(folder: Path, entry: FileEntry) -> str | None:
    path = folder / entry.path
    if not path.is_file():
        return f"{entry.path} is missing"
    size = path.stat().st_size
    if size != entry.bytes:
        return f"{entry.path} has {size:,} bytes instead of {entry.bytes:,}"
    other = sha256_of(path) != entry.sha256
    return f"{entry.path} has other content than when it was written (SHA-256 differs)" if other else None
