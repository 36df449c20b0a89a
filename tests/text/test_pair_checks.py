"""A pair is judged the same text by text as by columns."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.corpus.cleaning import filters
from limelight.text import pair_checks

MARKS = ["%s", "%1$s", "{0}", "20 %", "20%", "1,000", "1.000", "3", "12", "_x_", "5%ige "]
WORDS = [" ", " ", ", ", "ha ", "Öffnen ", "offnen ", "dog", "犬"]
TEXT = st.lists(st.sampled_from(MARKS + WORDS), max_size=24).map("".join)


@given(TEXT, TEXT)
def test_text_by_text_as_by_columns(one: str, other: str) -> None:
    a, b = pl.Series([one], dtype=pl.String), pl.Series([other], dtype=pl.String)
    assert pair_checks.numbers_differ(one, other) == filters.numbers_differ(a, b)[0]
    assert pair_checks.placeholders_differ(one, other) == filters.placeholders_differ(a, b)[0]
    assert pair_checks.is_copied(one, other, 2) == filters.is_copied(a, b, 2)[0]
    assert pair_checks.is_repetitive(one, 0.5) == filters.is_repetitive(a, 0.5)[0]


@pytest.mark.parametrize(
    ("source", "target", "copied"),
    [
        ("Open the file now", "open The File now!", True),
        ("Open the file now", "Datei jetzt öffnen", False),
        ("Café au lait noir", "cafe au lait noir", True),
        ("窓を閉めてください、寒いです。", "窓を閉めてください、寒いです", True),
        ("東京都千代田区", "東京都千代田区", False),
    ],
)
def test_a_copy_is_seen_whatever_its_case_and_accents(source: str, target: str, copied: bool) -> None:
    assert pair_checks.is_copied(source, target, 4) == copied
