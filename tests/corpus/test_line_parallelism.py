"""AT-05: no line is ever shifted against its translation. Planted errors at each stage show that a shift would be seen."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import line_parallelism
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from line_parallelism import LINE_ENDS, corpora, drawn, shifts

from limelight.corpus import encode
from limelight.corpus.exchange import finish
from limelight.corpus.reading import formats
from limelight.corpus.reading.lines import DecodedLines
from limelight.corpus.reading.streams import open_bytes
from limelight.text.pieces.tokenizer import Tokenizer

SHIFTING = pytest.MonkeyPatch


@pytest.mark.slow
def test_no_line_is_shifted_in_any_stage() -> None:
    assert shifts(500, seed=5) == 0


@pytest.mark.long
def test_no_line_is_shifted_in_a_thousand_corpora() -> None:
    assert shifts(1_000, seed=50) == 0


@pytest.mark.slow
def test_the_corpora_hold_what_ends_lines_elsewhere() -> None:
    """Each of these characters is in many corpora, and str.splitlines would miscount most of them."""
    some = drawn(200, 5)
    for letter in LINE_ENDS:
        assert sum(letter in text for corpus in some for pair in corpus for text in pair) >= 20, repr(letter)
    assert sum(any(len(text.splitlines()) != 1 for pair in corpus for text in pair) for corpus in some) > 100
    assert {len(corpus) for corpus in some} == {1, 2, 3, 4, 5, 6}
    assert max(letter for corpus in some for pair in corpus for text in pair for letter in text) > "\uffff"


@pytest.mark.slow
@given(corpora())
def test_line_i_carries_tag_i_once_on_both_sides(corpus: line_parallelism.Corpus) -> None:
    for i, pair in enumerate(corpus):
        assert all(text.count("#") == 2 and f"#{i}#" in text and "\n" not in text for text in pair)


def by_splitlines(address: str, rows: int) -> Iterator[DecodedLines]:
    """The reader that everybody writes first."""
    with open_bytes(address) as stream:
        lines = stream.read(1 << 20).decode().splitlines()
    for begin in range(0, len(lines), rows):
        some = lines[begin : begin + rows]
        yield DecodedLines(pa.array(some, pa.string()), np.zeros(len(some), np.uint8))


def plant_reader(patch: SHIFTING) -> None:
    patch.setattr(formats, "read_lines", by_splitlines)


def plant_targets_one_row_on(patch: SHIFTING) -> None:
    right = finish.text_columns

    def rolled(table: pa.Table) -> pa.Table:
        table = right(table)
        order = np.roll(np.arange(table.num_rows), 1)
        return table.set_column(1, table.schema.field(1), table.column(1).take(pa.array(order)))

    patch.setattr(finish, "text_columns", rolled)


def plant_ids_one_row_on(patch: SHIFTING) -> None:
    class Rolled(Tokenizer):
        def encode(self, texts: Any) -> pa.ListArray:
            right = super().encode(texts)
            return right.take(pa.array(np.roll(np.arange(len(right)), 1)))

    def rolled(folder: Path, pieces: Sequence[Any], vocabulary: Sequence[Any]) -> tuple[Rolled, Rolled]:
        models = [Rolled.load(folder / entry.path) for entry in pieces]
        return models[0], models[-1]

    patch.setattr(encode, "_tokenizers", rolled)


def plant_a_lost_row(patch: SHIFTING) -> None:
    right = finish.text_columns
    patch.setattr(finish, "text_columns", lambda table: right(table).slice(1))


def plant_a_batch_with_two_rows_exchanged(patch: SHIFTING) -> None:
    class Mixed(line_parallelism.Loader):
        def epoch(self, number: int) -> Iterator[Any]:  # type: ignore[override]
            for batch in super().epoch(number):
                batch.target[:2] = batch.target[:2][::-1].copy()
                yield batch

    patch.setattr(line_parallelism, "Loader", Mixed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plant",
    [
        plant_reader,
        plant_targets_one_row_on,
        plant_ids_one_row_on,
        plant_a_lost_row,
        plant_a_batch_with_two_rows_exchanged,
    ],
)
def test_a_planted_shift_is_counted(plant: Callable[[SHIFTING], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert shifts(20, seed=7) > 0
