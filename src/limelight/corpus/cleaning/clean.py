"""A `Cleaner` normalizes each batch of pairs, asks the filters about it and computes its keys. It is a pure function from table to table.

Rows are never lost: what a filter objects to goes on as a count, so that what was read is compared with what was kept and dropped in one
place, at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import xxhash

from limelight.corpus.cleaning.filters import Filter, filters, loose_key, none_of, on_rows
from limelight.corpus.cleaning.leaks import LeakIndex
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import FilterSettings, Mode, PrepareSettings
from limelight.corpus.manifest import SIDES
from limelight.corpus.reading.raw import RowFault
from limelight.text.identify import Identifier
from limelight.text.languages import SCRIPTS, base, scripts_of
from limelight.text.normalize import normalize

SHOWN = 3  # pairs shown for each corpus and reason
FAULTS = {
    RowFault.MALFORMED: Reason.MALFORMED,
    RowFault.FUZZY: Reason.FUZZY,
    RowFault.BROKEN_ENCODING: Reason.BROKEN_TEXT,
}


@dataclass(frozen=True)
class Cleaner:
    """A cleaner holds what the stage needs besides the batch. `leaks` is absent while the held-out sets themselves are read."""

    settings: PrepareSettings
    buckets: int
    leaks: LeakIndex | None = None

    def __call__(self, batch: pa.RecordBatch | pa.Table) -> pa.Table:
        """RAW in; out what must go on: kept pairs, and counts of the others."""
        within = within_direction(self.settings)
        return thin(self.judge_rows(batch), self.settings.dedup.exact, self.settings.keep_dropped, within).to_arrow()

    def judge_rows(self, batch: pa.RecordBatch | pa.Table) -> pl.DataFrame:
        """One row for each row, whatever stands beside it: normalized text, provenance, reason, warnings (a bit each), keys, bucket."""
        rows = pl.DataFrame(batch)
        rows = rows.with_columns(normalize(rows[side], self.settings.normalize).alias(side) for side in SIDES)
        reason, warnings = self._judge_by_languages(rows)
        rows = rows.with_columns(reason, warnings, *self._keys(rows)).drop("fault")
        return rows.with_columns((pl.col("source_key") % self.buckets).cast(pl.Int32).alias("bucket"))

    def _judge_by_languages(self, rows: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
        """Each row is judged by the languages of its own corpus."""
        stored = self.settings.stored
        if len(set(stored)) == 1:
            return self._judge(rows["source"], rows["target"], rows["fault"], stored[0])
        reason, warnings = (pl.zeros(rows.height, dtype=kind, eager=True) for kind in (pl.UInt8, pl.UInt32))
        for languages in sorted({stored[corpus] for corpus in rows["corpus"].unique()}):
            mine = rows["corpus"].is_in([number for number, pair in enumerate(stored) if pair == languages]).arg_true()
            some = rows[mine]
            why, warned = self._judge(some["source"], some["target"], some["fault"], languages)
            reason, warnings = reason.scatter(mine, why), warnings.scatter(mine, warned)
        return reason.alias("reason"), warnings.alias("warnings")

    def _judge(self, source: pl.Series, target: pl.Series, fault: pl.Series, languages: tuple[str, str]) -> tuple[pl.Series, pl.Series]:
        """The first filter in `drop` that objects gives the reason; those in `warn` set their bit, dropped or not.

        Faults that the reader found are objections of the same standing as ours.
        """
        quick = filters(self.settings.filters, languages)
        slow: dict[Reason, Filter] = {Reason.WRONG_LANGUAGE: wrong_language(self.settings, languages)}
        if self.leaks is not None:
            slow[Reason.LEAK] = self.leaks.find
        # Of a line that is too long only the beginning was read: there is no choice but to drop it.
        reason = (fault == RowFault.TOO_LONG).cast(pl.UInt8).alias("reason") * int(Reason.TOO_LONG)
        warnings = pl.zeros(len(source), dtype=pl.UInt32, eager=True).alias("warnings")
        for why in sorted({*FAULTS.values(), *quick, *slow}):
            mode = mode_of(self.settings, why)
            if mode == "off":
                continue
            still_open = reason == Reason.KEPT
            objections = [fault == met for met, said in FAULTS.items() if said == why]
            objections += [quick[why](source, target)] if why in quick else []
            objections += [on_rows(still_open, source, target, slow[why])] if why in slow else []
            found = (reduce(or_, objections) & still_open).arg_true()
            if mode == "drop":
                reason = reason.scatter(found, int(why))
            else:
                warnings = warnings.scatter(found, warnings.gather(found) | (1 << why))
        return reason, warnings

    def _keys(self, rows: pl.DataFrame) -> list[pl.Series]:
        """source_key: equal for sources that differ in case, accents, digits and punctuation alone; near_key likewise for pairs. Of
        several pairs of languages the side counts whose language most of them share: a sentence is held out in all of them, or in none.

        Text without letters is its own key. XXH3 is a published, stable function: the same keys on every machine and in every version.
        """
        pivot, source = self.settings.pivot, loose_key(rows["source"])
        turned = [number for number, (first, second) in enumerate(self.settings.stored) if second == pivot != first]
        near = self.settings.dedup.near
        target = loose_key(rows["target"]) if turned or near else None
        grouped = source if not turned or target is None else target.zip_with(rows["corpus"].is_in(turned), source)
        keys = [hash_texts("source_key", grouped)]
        if near and target is not None:
            keys.append(hash_texts("near_key", source + "\x00" + target))
        return keys


def mode_of(settings: PrepareSettings, why: Reason) -> Mode:
    mode: Mode = settings.held_out.leaks if why == Reason.LEAK else getattr(settings.filters, why.label)
    return mode


def hash_texts(name: str, texts: pl.Series) -> pl.Series:
    hashes = [xxhash.xxh3_64_intdigest(text) for text in texts.cast(pl.Binary).to_list()]
    return pl.Series(name, hashes, dtype=pl.UInt64)


@cache
def _identifier() -> Identifier:
    """Load its model once in a process, since that takes a second."""
    return Identifier()


@dataclass(frozen=True)
class LanguageCheck:
    """Rows with text long enough to tell have a likeliest language, and whether they are surely not in the one asked for."""

    rows: pl.Series
    best: npt.NDArray[np.str_]
    other: npt.NDArray[np.bool_]


def languages_of(text: pl.Series, asked: str, bounds: FilterSettings) -> LanguageCheck | None:
    """None for a language that the identifier does not know, and where all is too short.

    Names, commands and labels look like many languages a little, hence both bounds: 0.05 % of software strings are found wrong, not 3 %.
    """
    identifier = _identifier()
    code = asked if identifier.knows(asked) else base(asked)
    rows = (text.str.count_matches(r"\p{L}") >= bounds.identified_letters).arg_true()
    if not identifier.knows(code) or rows.is_empty():
        return None
    identified = identifier.identify(text.gather(rows).to_arrow())
    other = (identified.probability(code) < bounds.least_likely) & (identified.confidence >= bounds.surely_other)
    return LanguageCheck(rows, identified.languages, other)


def wrong_language(settings: PrepareSettings, languages: tuple[str, str]) -> Filter:
    """Text long enough to tell, surely in another language."""

    def unlike(text: pl.Series, asked: str) -> pl.Series:
        usual = scripts_of(asked) == SCRIPTS.get(base(asked), ())  # another script may be known as another language
        found = languages_of(text, asked, settings.filters) if usual else None
        return none_of(text) if found is None else none_of(text).scatter(found.rows, pl.Series(found.other))

    source_code, target_code = languages
    return lambda source, target: unlike(source, source_code) | unlike(target, target_code)


def within_direction(settings: PrepareSettings) -> list[pl.Expr]:
    """What pairs must have in common, beside their text, to be the same: of several pairs of languages, the pair."""
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(settings.stored))}
    if len(numbers) == 1:
        return []
    by_corpus = {corpus: numbers[pair] for corpus, pair in enumerate(settings.stored)}
    return [pl.col("corpus").replace_strict(by_corpus, return_dtype=pl.Int16).alias("direction")]


def thin(rows: pl.DataFrame, exact: bool, keep_dropped: bool, within: Sequence[pl.Expr] = ()) -> pl.DataFrame:
    """Make counts of copies and dropped pairs of a batch, so that a million equal lines cost no more than a few.

    Every row gets `pairs`, how many it stands for, and `copies`, how often its pair was met. A batch comes in the order of reading. What
    is kept in the end does not depend on how rows were cut into batches: the first of equals stays here, the first of those when batches
    meet. `exact`: copies are dropped anyway. `keep_dropped`: dropped pairs are wanted one by one, with their text.
    """
    rows = rows.with_columns(pl.lit(1, pl.Int64).alias("pairs"), pl.lit(1, pl.Int64).alias("copies"))
    kept, dropped = rows.filter(pl.col("reason") == Reason.KEPT), rows.filter(pl.col("reason") != Reason.KEPT)
    if exact and not kept.is_empty():
        kept = kept.with_columns(pl.len().over(*within, "source", "target").cast(pl.Int64).alias("copies"))
        first = kept.select(pl.struct(*within, "source", "target").is_first_distinct()).to_series()
        copies = kept.filter(~first).with_columns(pl.lit(int(Reason.DUPLICATE), pl.UInt8).alias("reason"))
        kept, dropped = kept.filter(first), pl.concat([dropped, copies])
    return pl.concat([kept, dropped if keep_dropped else _as_counts(dropped)])


def _as_counts(dropped: pl.DataFrame) -> pl.DataFrame:
    """Keep of each corpus and reason the first few, to be shown, and one row without text for all the others."""
    number, group = pl.int_range(pl.len()).over("corpus", "reason"), pl.len().over("corpus", "reason")
    pairs = pl.when(number < SHOWN).then(1).otherwise(group - SHOWN).cast(pl.Int64).alias("pairs")
    few = dropped.with_columns(pairs, number.alias("number")).filter(pl.col("number") <= SHOWN)
    text = [pl.when(pl.col("number") < SHOWN).then(pl.col(side)).otherwise(pl.lit("")).alias(side) for side in SIDES]
    return few.with_columns(text).drop("number")
