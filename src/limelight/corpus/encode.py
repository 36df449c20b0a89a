"""`ShardEncoder` turns shards of text into piece ids, and `sample` draws the text that pieces are learnt from."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from limelight.corpus.feeding.shards import TAGS_FIELD, ids_schema, write_table
from limelight.corpus.manifest import FileEntry, Split
from limelight.corpus.tokenizers import load_tokenizers
from limelight.text.pieces.tokenizer import Tokenizer

PIECE_LENGTHS = (*range(0, 128, 4), *range(128, 513, 32))  # bounds of the histogram, in pieces


@dataclass(frozen=True)
class TextShard:
    """A text shard has its text and not yet its ids."""

    name: str
    split: Split
    rows_by_corpus: list[int]
    text: FileEntry

    @property
    def rows(self) -> int:
        return sum(self.rows_by_corpus)


def sample(folder: Path, shards: Sequence[TextShard], weights: Sequence[float], pairs: int, sides: Sequence[str]) -> Iterator[str]:
    """Up to `pairs` pairs, from every shard, each corpus in proportion to what training will see of it.

    Rows stand in random order within a corpus, so the first ones of each shard are a random sample.
    """
    seen = [weight * sum(shard.rows_by_corpus[c] for shard in shards) for c, weight in enumerate(weights)]
    for shard in shards:
        table = _map_table(folder / shard.text.path)
        start = 0
        for corpus, rows in enumerate(shard.rows_by_corpus):
            share = pairs * weights[corpus] / max(1.0, sum(seen))
            taken = table.slice(start, min(rows, math.ceil(rows * share)))
            for side in sides:
                yield from taken.column(side).to_pylist()
            start += rows


@dataclass(frozen=True)
class ShardEncoder:
    """An engine runs the encoder: text in, ids beside it, and the figures for the report."""

    folder: Path
    pieces: tuple[FileEntry, ...]
    vocabulary: tuple[FileEntry, ...]
    names: tuple[str, ...] = ()  # of tags; the tags of a row are bits in this order

    def __call__(self, shard: TextShard) -> dict[str, Any]:
        table = _map_table(self.folder / shard.text.path)
        tokenizers = _tokenizers(self.folder, self.pieces, self.vocabulary)
        schema = ids_schema((tokenizers[0].size, tokenizers[1].size))
        columns, figures = [], {}
        for field, tokenizer in zip(schema, tokenizers, strict=True):
            column = tokenizer.encode(table.column(field.name).combine_chunks())
            narrow = column.values.cast(field.type.value_type)
            columns.append(pa.ListArray.from_arrays(column.offsets, narrow, type=field.type))
            figures[field.name] = _figures(column, tokenizer)
        if "tags" in table.column_names:
            schema = schema.append(TAGS_FIELD)
            columns.append(pa.array(self._tag_bits(table.column("tags").to_pylist())))
        path = self.folder / shard.text.path.replace(".text.", ".ids.")
        entry = write_table(path, pa.table(columns, schema=schema))
        return {"name": shard.name, "ids": entry.model_dump(), "figures": figures}

    def _tag_bits(self, spelt: Sequence[str | None]) -> npt.NDArray[np.uint64]:
        bit = {name: 1 << number for number, name in enumerate(self.names)}
        value = {text: sum(bit[name] for name in (text or "").split()) for text in set(spelt)}
        return np.array([value[text] for text in spelt], np.uint64)


def _figures(column: pa.ListArray, tokenizer: Tokenizer) -> dict[str, Any]:
    lengths = np.diff(np.asarray(column.offsets))
    counts, _ = np.histogram(lengths, bins=[*PIECE_LENGTHS, np.inf])
    return {
        "pieces": int(lengths.sum()),
        "longest": int(lengths.max(initial=0)),
        "unknown": int(pc.sum(pc.equal(column.values, tokenizer.unknown)).as_py() or 0),
        "lengths": [int(count) for count in counts],
    }


def at_most(histogram: Sequence[int], part: float, longest: int) -> int:
    """The greatest length in the bin where this part of the texts is reached."""
    running = list(accumulate(histogram))
    place = next(i for i, count in enumerate(running) if count >= part * running[-1])
    return min(longest, PIECE_LENGTHS[place + 1] - 1) if place + 1 < len(PIECE_LENGTHS) else longest


def add_figures(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Figures of two shards as one."""
    return {
        side: {
            "pieces": one[side]["pieces"] + other[side]["pieces"],
            "longest": max(one[side]["longest"], other[side]["longest"]),
            "unknown": one[side]["unknown"] + other[side]["unknown"],
            "lengths": [a + b for a, b in zip(one[side]["lengths"], other[side]["lengths"], strict=True)],
        }
        for side in one
    }


# Loaded once in a worker, and with them the words they remember. The hashes tell apart what stood at the same path.
_tokenizers = lru_cache(maxsize=1)(load_tokenizers)


def _map_table(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as mapped:
        return pa.ipc.open_file(mapped).read_all()
