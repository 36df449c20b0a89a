"""`settle` drops duplicates, caps conflicting targets, splits off held-out pairs and shuffles, in one bucket.

Rows arrive in buckets by the key of their source, all rows of a key in the same bucket. One exchange between machines therefore serves
exact and near deduplication, the cap on conflicting targets, the split by groups and the global shuffle. A pure function: the order of
arrival does not matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from limelight.chance import draws, key_of
from limelight.corpus.cleaning.clean import SHOWN, within_direction
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import PrepareSettings
from limelight.corpus.manifest import HELD_OUT, SIDES, Split
from limelight.text.languages import LETTERS_OF_A_WORD, UNSPACED_LETTER

PLACE = ("corpus", "file", "line", "segment")  # the order in which pairs were read, whatever engine read them
LINES_IN_A_FILE = 1 << 40  # more than any file has
LARGEST_GROUP = 10  # pairs; a set that is one source again and again would tell nothing
SHOWN_CHARACTERS = 100
DRAW_HELD_OUT, DRAW_ORDER = 101, 102  # what chance is drawn for
LENGTHS = (0, *(round(10 * 1.25**k) for k in range(28)))  # bounds of the histogram, in characters


@dataclass(frozen=True)
class BucketResult:
    """The result parts a bucket into splits and dropped rows. `tally` turns into JSON and adds up with those of other buckets."""

    splits: dict[Split, pa.Table]
    dropped: pa.Table
    tally: dict[str, Any]


def settle(arrived: pa.Table, settings: PrepareSettings, bucket: int, buckets: int) -> BucketResult:
    # Pairs of one place come from one batch, and stay in its order.
    rows = _without_repeats(pl.DataFrame(arrived).sort(PLACE, maintain_order=True), settings)
    rows = _hold_out(rows, settings, bucket, buckets)
    kept = rows.filter(pl.col("reason") == Reason.KEPT)
    dropped = rows.filter(pl.col("reason") != Reason.KEPT)
    names: tuple[Split, ...] = ("train", *HELD_OUT)
    splits = {name: _shuffle(kept.filter(pl.col("split") == name), settings.seed).to_arrow() for name in names}
    return BucketResult(splits, dropped.to_arrow(), tally(rows))


def _without_repeats(rows: pl.DataFrame, settings: PrepareSettings) -> pl.DataFrame:
    """Reasons for what occurred before: only pairs that are still kept count, and the first of equals stays."""
    wanted, within = settings.dedup, within_direction(settings)
    rows = rows.with_columns(pl.col("copies").sum().over(*within, "source", "target", "reason")).with_row_index("place")
    if wanted.exact:
        rows = _mark(rows, ~pl.struct(*within, "source", "target").is_first_distinct(), Reason.DUPLICATE)
    if wanted.near:
        rows = _mark(rows, ~pl.struct(*within, "near_key").is_first_distinct(), Reason.NEAR_DUPLICATE)
    if wanted.targets_per_source is not None:
        rows = _cap_targets(rows, wanted.targets_per_source, within)
    return rows


def _cap_targets(rows: pl.DataFrame, most: int, within: Sequence[pl.Expr]) -> pl.DataFrame:
    """The most frequent targets of a source stay; of equally frequent ones those that came first."""
    kept = rows.filter(pl.col("reason") == Reason.KEPT)
    crowded = kept.filter(pl.len().over(*within, "source") > most)  # few, and ranking is slow
    first = pl.col("place").min().over(*within, "source", "target")
    rank = pl.struct(-pl.col("copies"), first).rank("dense").over(*within, "source")
    conflicts = crowded.filter(rank > most)["place"]
    return rows.with_columns(rows["reason"].scatter(conflicts, int(Reason.CONFLICT)))


def _mark(rows: pl.DataFrame, objection: pl.Expr, why: Reason) -> pl.DataFrame:
    """The objection, evaluated among the kept rows alone, becomes their reason."""
    kept = (rows["reason"] == Reason.KEPT).arg_true()
    if kept.is_empty():
        return rows
    objected = rows[kept].select(objection).to_series()
    return rows.with_columns(rows["reason"].scatter(kept.filter(objected), int(why)))


def _hold_out(rows: pl.DataFrame, settings: PrepareSettings, bucket: int, buckets: int) -> pl.DataFrame:
    """Whole groups of equal source go to test and validation until this bucket's share is full.

    Buckets are random subsets of the groups, and the groups are taken in a random order, so the sets are random samples of the groups.
    """
    wanted = settings.held_out
    kept = rows.filter(pl.col("reason") == Reason.KEPT)
    split = pl.lit("train")
    pairs = len(set(settings.stored))  # of languages: each has its own validation and test set
    # Given sets are not split off again.
    totals = [0 if wanted.is_given("test") else wanted.test_pairs * pairs, 0 if wanted.is_given("valid") else wanted.valid_pairs * pairs]
    if any(totals) and not kept.is_empty():
        most = int(wanted.largest_share * kept.height)
        shares = [min(most, total // buckets + (bucket < total % buckets)) for total in totals]
        groups = kept.group_by("source_key").len().filter(pl.col("len") <= LARGEST_GROUP * pairs)
        order = _draw_order(groups["source_key"], settings.seed, DRAW_HELD_OUT)
        running = groups.with_columns(order).sort("order").with_columns(pl.col("len").cum_sum().alias("until"))
        # The last group may go beyond the share, else small groups would be favoured.
        begun = pl.col("until") - pl.col("len")
        test = running.filter(begun < shares[0])["source_key"]
        room = running.filter(begun >= shares[0]).with_columns(pl.col("len").cum_sum().alias("until"))
        valid = room.filter(begun < shares[1])["source_key"]
        for name, keys in (("valid", valid), ("test", test)):
            split = pl.when(pl.col("source_key").is_in(keys.implode())).then(pl.lit(name)).otherwise(split)
    return rows.with_columns(split.alias("split"))


def _shuffle(rows: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Corpus by corpus, as shards are, and within it in an order that depends on the seed and the place of the pair alone."""
    places = rows["file"].cast(pl.Int64) * LINES_IN_A_FILE + rows["line"]
    return rows.with_columns(_draw_order(places, seed, DRAW_ORDER)).sort("corpus", "order", maintain_order=True)


def _draw_order(keys: pl.Series, seed: int, purpose: int) -> pl.Series:
    """A random number for each key, the same wherever the key is met."""
    return pl.Series("order", draws(key_of(seed, purpose), keys.to_numpy().view(np.int64)), dtype=pl.UInt64)


def tally(rows: pl.DataFrame) -> dict[str, Any]:
    """Counts by corpus that add up: read = kept over the splits + dropped over the reasons."""
    kept = rows.filter(pl.col("reason") == Reason.KEPT)
    dropped = rows.filter(pl.col("reason") != Reason.KEPT)
    warned = []
    for why in Reason:
        objected = kept.filter(pl.col("warnings") & (1 << why) != 0).group_by("corpus").len().sort("corpus")
        warned += [{"corpus": corpus, "reason": why.label, "pairs": pairs} for corpus, pairs in objected.iter_rows()]
    return {
        "read": _counts(rows, "corpus"),
        "kept": _counts(kept, "corpus", "split"),
        "dropped": [{**row, "reason": Reason(row["reason"]).label} for row in _counts(dropped, "corpus", "reason")],
        "warned": warned,
        "shown": _collect_examples(dropped),
        "lengths": {side: _histogram(kept[side].str.len_chars()) for side in SIDES},
        "words": {side: count_words(kept[side]) for side in SIDES},
        "characters": {side: int(kept[side].str.len_chars().sum()) for side in SIDES},
        **_count_tags(kept),
    }


def count_words(texts: pl.Series) -> int:
    """Of all texts together, as `text.languages.count_words` does of one."""
    blanks, letters = texts.str.count_matches(" ", literal=True), texts.str.count_matches(UNSPACED_LETTER)
    return int(blanks.sum()) + int((letters // LETTERS_OF_A_WORD).sum()) + len(texts)


def _count_tags(kept: pl.DataFrame) -> dict[str, Any]:
    """How many pairs have each tag of their own; nothing where no pair has one."""
    if "tags" not in kept.columns or kept["tags"].null_count() == kept.height:
        return {}
    named = kept.select("pairs", pl.col("tags").str.split(" ").alias("tag")).drop_nulls().explode("tag")
    return {"tags": _counts(named, "tag")}


def _counts(rows: pl.DataFrame, *by: str) -> list[dict[str, Any]]:
    return rows.group_by(by).agg(pl.col("pairs").sum()).sort(by).to_dicts()


def _histogram(lengths: pl.Series) -> list[int]:
    counts, _ = np.histogram(lengths.to_numpy(), bins=[*LENGTHS, np.inf])
    return [int(count) for count in counts]


def _collect_examples(dropped: pl.DataFrame) -> list[dict[str, Any]]:
    """The first pairs of each corpus and reason, so that a person can look them up."""
    single = dropped.filter(pl.col("pairs") == 1)
    first = single.group_by("corpus", "reason", maintain_order=True).head(SHOWN).sort("corpus", "reason", *PLACE[1:])
    text = [pl.col(side).str.slice(0, SHOWN_CHARACTERS) for side in SIDES]
    shown = first.select("corpus", "reason", "file", "line", "segment", *text).to_dicts()
    return [{**row, "reason": Reason(row["reason"]).label} for row in shown]


def add(one: Any, other: Any) -> Any:
    """Tallies added: numbers by sum, tables by row, and of the shown pairs the first ones."""
    result: dict[str, Any] = {key: _sum_rows(one[key] + other[key]) for key in ("read", "kept", "dropped", "warned")}
    result["shown"] = _first_shown(one["shown"] + other["shown"])
    lengths = ((side, zip(one["lengths"][side], other["lengths"][side], strict=True)) for side in one["lengths"])
    result["lengths"] = {side: [a + b for a, b in pairs] for side, pairs in lengths}
    for key in ("words", "characters"):
        result[key] = {side: one[key][side] + other[key][side] for side in one[key]}
    if tags := one.get("tags", []) + other.get("tags", []):
        result["tags"] = _sum_rows(tags)
    return result


def _sum_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    total: dict[tuple[Any, ...], int] = {}
    names = [name for name in rows[0] if name != "pairs"] if rows else []
    for row in rows:
        key = tuple(row[name] for name in names)
        total[key] = total.get(key, 0) + row["pairs"]
    return [{**dict(zip(names, key, strict=True)), "pairs": pairs} for key, pairs in sorted(total.items())]


def _first_shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows.sort(key=lambda row: (row["corpus"], row["reason"], row["file"], row["line"], row["segment"] or ""))
    groups = groupby(rows, key=lambda row: (row["corpus"], row["reason"]))
    return [row for _, group in groups for row in islice(group, SHOWN)]
