"""`BucketFinish` turns a settled bucket into a shard of text, its share of the held-out sets, and counts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl
import pyarrow as pa

from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import PrepareSettings
from limelight.corpus.encode import TextShard
from limelight.corpus.exchange.settle import settle, tally
from limelight.corpus.feeding.shards import TEXT_SCHEMA, write_table
from limelight.corpus.manifest import HELD_OUT, SIDES, Split
from limelight.corpus.readers import read
from limelight.corpus.reading.raw import CorpusPart, RowFault
from limelight.errors import DataError
from limelight.files import write_whole
from limelight.text.normalize import normalize

LARGEST_HELD_OUT = 200_000  # pairs; they are held in memory and in every worker's index of leaks


@dataclass(frozen=True)
class BucketFinish:
    """An engine runs this finish for each bucket. It writes nothing when there is nowhere to write: that is a check of the corpus."""

    settings: PrepareSettings
    buckets: int
    corpora: tuple[str, ...]
    files: tuple[str, ...]
    folder: Path | None
    work: Path

    def __call__(self, bucket: int, rows: pa.Table) -> dict[str, Any]:
        settled = settle(rows, self.settings, bucket, self.buckets)
        outcome: dict[str, Any] = {"tally": settled.tally}
        if self.folder is None:
            return outcome
        train = text_columns(settled.splits["train"])
        name = f"train-{bucket:05d}"
        entry = write_table(self.folder / "shards" / f"{name}.text.arrow", train)
        for split in HELD_OUT:
            if settled.splits[split].num_rows:
                write_table(self.work / split / f"{bucket:05d}.arrow", text_columns(settled.splits[split]))
        if self.settings.keep_dropped:
            self._write_dropped(bucket, settled.dropped)
        rows = by_corpus(train, len(self.corpora))
        return outcome | {"name": name, "rows_by_corpus": rows, "text": entry.model_dump()}

    def _write_dropped(self, bucket: int, dropped: pa.Table) -> None:
        """One JSON object a line, for a person or a script to look at."""
        assert self.folder is not None
        reasons = {int(why): why.label for why in Reason}
        rows = pl.DataFrame(dropped).select(
            pl.col("reason").replace_strict(reasons, return_dtype=pl.String),
            pl.col("corpus").replace_strict(dict(enumerate(self.corpora)), return_dtype=pl.String),
            pl.col("file").replace_strict(dict(enumerate(self.files)), return_dtype=pl.String),
            "line", "segment", "source", "target",
        )  # fmt: skip
        # Through memory: Polars' own error on a full disk has no number by which it could be told from others.
        write_whole(self.folder / "dropped" / f"{bucket:05d}.jsonl", rows.write_ndjson().encode())


def text_columns(table: pa.Table) -> pa.Table:
    """What is stored of the pairs; of tags a column only if any row has some."""
    tagged = "tags" in table.column_names and table.column("tags").null_count < len(table)
    schema = TEXT_SCHEMA.append(pa.field("tags", pa.string())) if tagged else TEXT_SCHEMA
    return table.select(schema.names).cast(schema)


def by_corpus(table: pa.Table, corpora: int) -> list[int]:
    counts = dict(pl.DataFrame(table).group_by("corpus").len().iter_rows())
    return [counts.get(corpus, 0) for corpus in range(corpora)]


def merge_held_out(work: Path, split: Split) -> pa.Table:
    """What the buckets set aside for one held-out set."""
    parts = [pa.ipc.open_file(pa.memory_map(str(path))).read_all() for path in sorted((work / split).glob("*.arrow"))]
    return pa.concat_tables([TEXT_SCHEMA.empty_table(), *parts], promote_options="default")


def write_held_out(folder: Path, split: Split, table: pa.Table, corpora: int) -> TextShard:
    ordered = text_columns(pl.DataFrame(table).sort("corpus", maintain_order=True).to_arrow())
    name = f"{split}-00000"
    entry = write_table(folder / "shards" / f"{name}.text.arrow", ordered)
    return TextShard(name, split, by_corpus(ordered, corpora), entry)


# What its file marks as a guess, or is cut, is nothing to score against.
NO_REFERENCE: Final = {RowFault.FUZZY: Reason.FUZZY, RowFault.TOO_LONG: Reason.TOO_LONG, RowFault.MALFORMED: Reason.MALFORMED}


def read_held_out(parts: list[CorpusPart], settings: PrepareSettings, split: Split) -> tuple[pa.Table, dict[str, Any]]:
    """A given validation or test set: normalized like training text, and otherwise as it is. Only what cannot be a pair is left out."""
    batches = []
    for part in parts:
        for batch in read(part):
            batches.append(batch)
            if sum(map(len, batches)) > LARGEST_HELD_OUT:
                raise DataError(
                    f"{part.paths[0]}: a {split} set of over {LARGEST_HELD_OUT:,} pairs; give a smaller one, it is scored again and again"
                )
    rows = pl.DataFrame(pa.Table.from_batches(batches)) if batches else pl.DataFrame()
    if rows.is_empty():
        raise DataError(
            f"the {split} set {', '.join(part.paths[0] for part in parts)} has no pairs; check the files, or leave it out: "
            "then one is split off"
        )
    rows = rows.with_columns(normalize(rows[side], settings.normalize).alias(side) for side in SIDES)
    empty = (pl.col("source") == "") | (pl.col("target") == "")
    reason = pl.when(empty).then(int(Reason.EMPTY)).otherwise(int(Reason.KEPT))
    for fault, why in NO_REFERENCE.items():
        reason = pl.when(pl.col("fault") == fault).then(int(why)).otherwise(reason)
    rows = rows.with_columns(
        reason.cast(pl.UInt8).alias("reason"), pl.lit(split).alias("split"),
        pl.lit(0, pl.UInt32).alias("warnings"), pl.lit(1, pl.Int64).alias("pairs"),
    )  # fmt: skip
    kept = rows.filter(pl.col("reason") == Reason.KEPT)
    return text_columns(kept.to_arrow()), tally(rows)
