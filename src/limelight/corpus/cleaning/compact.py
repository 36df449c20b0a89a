"""Copies within a batch and dropped pairs become counts, so that a million equal lines cost no more than a few.

Every row gets `pairs`, how many it stands for, and `copies`, how often its pair was met. A batch comes in the order of reading. What is
kept in the end does not depend on how rows were cut into batches: the first of equals stays here, the first of those when batches meet.
"""

import polars as pl

from limelight.corpus.cleaning.reasons import Reason

SHOWN = 3  # pairs shown for each corpus and reason


def thin(rows: pl.DataFrame, exact: bool, keep_dropped: bool) -> pl.DataFrame:
    """Thin out a batch. `exact`: copies are dropped anyway. `keep_dropped`: dropped pairs are wanted one by one, with their text."""
    rows = rows.with_columns(pl.lit(1, pl.Int64).alias("pairs"), pl.lit(1, pl.Int64).alias("copies"))
    kept, dropped = rows.filter(pl.col("reason") == Reason.KEPT), rows.filter(pl.col("reason") != Reason.KEPT)
    if exact and not kept.is_empty():
        kept = kept.with_columns(pl.len().over("source", "target").cast(pl.Int64).alias("copies"))
        first = kept.select(pl.struct("source", "target").is_first_distinct()).to_series()
        dropped = pl.concat(
            [dropped, kept.filter(~first).with_columns(pl.lit(int(Reason.DUPLICATE), pl.UInt8).alias("reason"))]
        )
        kept = kept.filter(first)
    return pl.concat([kept, dropped if keep_dropped else _as_counts(dropped)])


def _as_counts(dropped: pl.DataFrame) -> pl.DataFrame:
    """Keep of each corpus and reason the first few, to be shown, and one row without text for all the others."""
    number = pl.int_range(pl.len()).over("corpus", "reason")
    others = (
        pl.when(number < SHOWN)
        .then(1)
        .when(number == SHOWN)
        .then(pl.len().over("corpus", "reason") - SHOWN)
        .otherwise(0)
    )
    few = dropped.with_columns(others.cast(pl.Int64).alias("pairs"), number.alias("number")).filter(pl.col("pairs") > 0)
    text = [
        pl.when(pl.col("number") < SHOWN).then(pl.col(side)).otherwise(pl.lit("")).alias(side)
        for side in ("source", "target")
    ]
    return few.with_columns(text).drop("number")
