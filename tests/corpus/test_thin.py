"""Thinning loses no count, and what is kept does not depend on how rows were cut into batches."""

import itertools
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_settle import Row, cleaned, rows_drawn, wanted

from limelight.corpus.cleaning.clean import SHOWN, thin
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.exchange.settle import PLACE, settle


def bare(rows: list[Row]) -> pl.DataFrame:
    return cleaned(rows).drop("pairs", "copies")


def outcome(parts: list[pl.DataFrame], chosen: Any) -> tuple[Any, Any, Any]:
    """Kept pairs with their places, and the counts; what is shown may be others of the same kind."""
    settled = settle(pl.concat(parts).to_arrow(), chosen, 0, 1)
    places = {name: table.select(["line", "source", "target"]).to_pylist() for name, table in settled.splits.items()}
    return places, settled.tally["read"], settled.tally["dropped"]


@pytest.mark.slow
@given(rows_drawn, st.data(), st.booleans(), st.sampled_from([None, 1, 2]))
def test_batches_cut_anywhere_come_to_the_same_end(rows: list[Row], data: st.DataObject, exact: bool, cap: int | None) -> None:
    chosen = wanted(exact=exact, targets_per_source=cap)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3))), len(rows)]
    table = bare(rows).sort(PLACE)  # a batch comes in the order of reading
    parts = [thin(table[start:stop], exact, False) for start, stop in itertools.pairwise(cuts)]
    assert outcome(parts, chosen) == outcome([thin(table, exact, False)], chosen)
    assert outcome(parts, chosen) == outcome([cleaned(rows)], chosen)


def test_a_crowd_of_equals_is_a_few_rows_that_count_for_all() -> None:
    rows = bare([Row("a", "b")] * 5000 + [Row("", "", reason=Reason.EMPTY)] * 7000)
    thinned = thin(rows, True, False)
    assert thinned.height <= 1 + 2 * (SHOWN + 1)
    assert thinned["pairs"].sum() == 12_000
    assert thinned.filter(pl.col("reason") == Reason.KEPT)["copies"].to_list() == [5000]


def test_dropped_pairs_that_are_wanted_stay_one_by_one_with_their_text() -> None:
    rows = bare([Row("a", "b")] * 3 + [Row("<b>", "c", reason=Reason.MARKUP)] * 9)
    thinned = thin(rows, True, True)
    assert thinned.height == 12
    assert set(thinned.filter(pl.col("reason") == Reason.DUPLICATE)["source"]) == {"a"}
