"""A `Cleaner` normalizes each batch of pairs, asks the filters about it and computes its keys. It is a pure function from table to table.

Rows are never lost: what a filter objects to goes on as a count, so that what was read is compared with what was kept and dropped in one
place, at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import xxhash

from limelight.corpus.cleaning.compact import thin
from limelight.corpus.cleaning.filters import Filter, filters, loose, on_rows
from limelight.corpus.cleaning.leaks import LeakIndex
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import FilterSettings, Mode, PrepareSettings
from limelight.corpus.reading.raw import RowFault
from limelight.text.identify import Identifier
from limelight.text.languages import base
from limelight.text.normalize import normalize

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
        return thin(self.judge_rows(batch), self.settings.dedup.exact, self.settings.keep_dropped).to_arrow()

    def judge_rows(self, batch: pa.RecordBatch | pa.Table) -> pl.DataFrame:
        """One row for each row, whatever stands beside it: normalized text, provenance, reason, warnings (a bit each), keys, bucket."""
        rows = pl.DataFrame(batch)
        for side in ("source", "target"):
            rows = rows.with_columns(normalize(rows[side], self.settings.normalize).alias(side))
        reason, warnings = self._judge(rows["source"], rows["target"], rows["fault"])
        rows = rows.with_columns(reason, warnings, *self._keys(rows["source"], rows["target"])).drop("fault")
        return rows.with_columns((pl.col("source_key") % self.buckets).cast(pl.Int32).alias("bucket"))

    def _judge(self, source: pl.Series, target: pl.Series, fault: pl.Series) -> tuple[pl.Series, pl.Series]:
        """The first filter in `drop` that objects gives the reason; those in `warn` set their bit, dropped or not."""
        # Of a line that is too long only the beginning was read: there is no choice but to drop it.
        reason = (fault == RowFault.TOO_LONG).cast(pl.UInt8).alias("reason") * int(Reason.TOO_LONG)
        warnings = pl.zeros(len(source), dtype=pl.UInt32, eager=True).alias("warnings")
        for why, look in self._looks(fault).items():
            mode = mode_of(self.settings, why)
            if mode == "off":
                continue
            found = (look(source, target, reason == Reason.KEPT) & (reason == Reason.KEPT)).arg_true()
            if mode == "drop":
                reason = reason.scatter(found, int(why))
            else:
                warnings = warnings.scatter(found, warnings.gather(found) | (1 << why))
        return reason, warnings

    def _looks(self, fault: pl.Series) -> dict[Reason, Callable[[pl.Series, pl.Series, pl.Series], pl.Series]]:
        """Return the checks in the order of their reasons. Faults that the reader found are objections of the same standing as ours."""
        quick = filters(self.settings.filters, self.settings.languages)
        slow: dict[Reason, Filter] = {Reason.WRONG_LANGUAGE: wrong_language(self.settings)}
        if self.leaks is not None:
            slow[Reason.LEAK] = self.leaks.find
        met = {why: [int(f) for f, reason in FAULTS.items() if reason == why] for why in Reason}

        def look_for(why: Reason) -> Callable[[pl.Series, pl.Series, pl.Series], pl.Series]:
            def look(source: pl.Series, target: pl.Series, still_open: pl.Series) -> pl.Series:
                objections = [fault.is_in(met[why])] if met[why] else []
                objections += [quick[why](source, target)] if why in quick else []
                objections += [on_rows(still_open, source, target, slow[why])] if why in slow else []
                return reduce(or_, objections)

            return look

        return {why: look_for(why) for why in Reason if met[why] or why in quick or why in slow}

    def _keys(self, source: pl.Series, target: pl.Series) -> list[pl.Series]:
        """source_key: equal for sources that differ in case, accents, digits and punctuation alone; near_key likewise for pairs.

        Text without letters is its own key. XXH3 is a published, stable function: the same keys on every machine and in every version.
        """
        loose_source = _or_itself(loose(source), source)
        keys = [hash_texts("source_key", loose_source)]
        if self.settings.dedup.near:
            keys.append(hash_texts("near_key", loose_source + "\x00" + _or_itself(loose(target), target)))
        return keys


def mode_of(settings: PrepareSettings, why: Reason) -> Mode:
    if why == Reason.LEAK:
        return settings.held_out.leaks
    mode: Mode = getattr(settings.filters, why.label)
    return mode


def hash_texts(name: str, texts: pl.Series) -> pl.Series:
    return pl.Series(
        name, [xxhash.xxh3_64_intdigest(text) for text in texts.cast(pl.Binary).to_list()], dtype=pl.UInt64
    )


def _or_itself(short: pl.Series, whole: pl.Series) -> pl.Series:
    return short.zip_with(short != "", whole)


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


def wrong_language(settings: PrepareSettings) -> Filter:
    """Text long enough to tell, surely in another language."""

    def unlike(text: pl.Series, asked: str) -> pl.Series:
        result = pl.repeat(False, len(text), dtype=pl.Boolean, eager=True)
        found = languages_of(text, asked, settings.filters)
        return result if found is None else result.scatter(found.rows, pl.Series(found.other))

    source_code, target_code = settings.languages
    return lambda source, target: unlike(source, source_code) | unlike(target, target_code)
