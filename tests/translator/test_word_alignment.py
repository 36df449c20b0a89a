"""From attention to links between pieces and words."""

import numpy as np
import pytest

from limelight.engines.engine import Matrix
from limelight.translator.alignment import IDLE, WordCount, build_alignment, owners, split_at_spaces, words_of


def looking(*rows: list[float]) -> Matrix:
    return np.array(rows, np.float32)


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁the", "▁c", "at"], [(0,), (1,), (1,)]),
        (["the", "▁cat"], [(0,), (1,)]),
        (["▁of▁the", "▁c", "at", "▁"], [(0, 1), (2,), (2,), ()]),
        (["▁", "cat"], [(), (0,)]),
        (["▁", "▁cat"], [(), (0,)]),
        (["▁a", "▁", "<0xE2>", "<0x80>", "<0x20>", "b"], [(0,), (), (1,), (1,), (), (2,)]),
        (["⟦3⟧", "▁x"], [(0,), (1,)]),
        (["▁a▁", "b"], [(0,), (1,)]),
        ([], []),
    ],
)
def test_pieces_belong_to_words_between_spaces(pieces: list[str], words: list[tuple[int, ...]]) -> None:
    assert words_of(pieces) == words


def test_each_target_piece_is_linked_to_what_it_looked_at_most() -> None:
    found = build_alignment(
        looking([0.1, 0.7, 0.1, 0.1], [0.6, 0.2, 0.1, 0.1], [0.0, 0.3, 0.6, 0.1], [0.0, 0.0, 0.0, 1.0]),
        ["▁the", "▁c", "at"],
        ["▁Kat", "ze", "▁die"],
    )
    assert found.pieces == [(1, 0), (0, 1), (2, 2)]
    assert found.words == [(0, 0), (1, 0), (1, 1)]
    assert found.pharaoh == "0-0 1-0 1-1"


def test_the_end_of_the_source_is_nothing_to_be_linked_to() -> None:
    found = build_alignment(looking([0.2, 0.1, 0.7], [0.0, 0.0, 1.0]), ["▁a", "▁b"], ["▁x"])
    assert found.pieces == [(0, 0)]
    idle = IDLE + 0.05
    found = build_alignment(looking([0.04, 1 - idle - 0.04, idle], [0.0, 0.0, 1.0]), ["▁a", "▁b"], ["▁x"])
    assert found.pieces == [] and found.words == [] and found.pharaoh == ""


def test_pharaoh_is_sorted_by_source() -> None:
    found = build_alignment(looking([0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]), ["▁a", "▁b", "▁c"], ["▁x", "▁y", "▁z"])
    assert found.words == [(2, 0), (1, 1), (0, 2)] and found.pharaoh == "0-2 1-1 2-0"


def test_an_empty_translation_has_no_links() -> None:
    found = build_alignment(looking([0.5, 0.5]), ["▁a"], [])
    assert found.pieces == [] and found.words == []


def test_words_that_vanish_or_part_keep_their_numbers() -> None:
    assert owners(["a", "", "b c"]) == [0, 2, 2]
    assert owners(["a▁b", "▁", "▁c"]) == [0, 0, 2]
    assert split_at_spaces(" a  b\u00a0c ") == ["a", "b\u00a0c"]
    found = build_alignment(looking([1, 0, 0], [0, 1, 0], [0, 0, 1]), ["▁a", "▁b"], ["▁x", "▁y"], [0, 2])
    assert found.words == [(0, 0), (2, 1)]


@pytest.mark.parametrize("text", ["", " ", "a", "a b", " a  b ", "a\nb c\n d", "  \n"])
def test_words_are_counted_alike_in_pieces_of_any_length(text: str) -> None:
    for size in range(1, len(text) + 1):
        count = WordCount()
        for at in range(0, len(text), size):
            count.add(text[at : at + size])
        assert count.words == len(split_at_spaces(text)) and count.inside == (bool(text) and not text.endswith(" "))
