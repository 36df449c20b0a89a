"""Where pieces stand in a text, which word they belong to, and how probable they were."""

import math

import pytest
import torch
from trace_bundle import BUNDLE

from limelight.bundle import read
from limelight.inspection.tracing.tokens import silent_of, source_tokens, spans, target_tokens, word_numbers

ALL = [True] * 9


@pytest.mark.parametrize(
    ("pieces", "text", "places"),
    [
        (["▁a", "▁b", "c"], "a bc", [(0, 1), (2, 3), (3, 4)]),
        (["▁", "中", "文"], "中文", [(0, 0), (0, 1), (1, 2)]),
        (["▁x", "<0xE4>", "<0xB8>", "<0xAD>", "y"], "x中y", [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]),
        (["▁of▁the", "▁sea"], "of the sea", [(0, 6), (7, 10)]),
        (["▁a", "▁", "▁b"], "a  b", [(0, 1), (2, 2), (3, 4)]),
        (["▁ﬁ", "ne", "▁day"], "fine day", [(0, 0), (2, 4), (5, 8)]),  # a model that changes characters
    ],
)
def test_a_piece_has_the_characters_that_it_stands_for(pieces: list[str], text: str, places: list[tuple[int, int]]) -> None:
    assert spans(pieces, ALL[: len(pieces)], text) == places


def test_what_is_no_text_has_an_empty_range() -> None:
    assert spans(["__de__", "▁a", "</s>"], [False, True, False], "a") == [(0, 0), (0, 1), (1, 1)]


def test_words_are_those_between_spaces() -> None:
    pieces = ["__de__", "▁the", "▁c", "at", "▁of▁the", "s", "▁", "</s>"]
    spoken = [False, *[True] * 6, False]
    assert word_numbers(pieces, spoken) == [None, 0, 1, 1, 2, 3, None, None]
    assert word_numbers(["a", "<0x20>", "b"], [True] * 3) == [0, None, 1]


def test_every_character_of_a_real_text_is_in_one_piece() -> None:
    tokenizer, text = read(BUNDLE).source_tokenizer, "two seven § nine"
    ids = tokenizer.encode([text])[0].as_py()
    tokens = source_tokens([*ids, tokenizer.end], text, tokenizer, silent_of(tokenizer))
    covered = [at for token in tokens for at in range(token.start, token.end)]
    assert set(covered) == {at for at, letter in enumerate(text) if letter != " "}
    assert tokens[-1].word is None and tokens[-1].piece == "</s>" and tokens[-1].start == tokens[-1].end == len(text)


def test_probability_entropy_rank_and_margin_are_those_of_the_row() -> None:
    tokenizer = read(BUNDLE).target_tokenizer
    probabilities = torch.full((2, tokenizer.size), 1e-30)
    probabilities[0, [10, 11, 12]] = torch.tensor([0.5, 0.25, 0.25])
    probabilities[1, [10, 11, 12]] = torch.tensor([0.5, 0.375, 0.125])
    first, second = target_tokens(probabilities.log(), [10, 12], 3, tokenizer, silent_of(tokenizer))
    assert (first.logp, first.entropy, first.rank) == pytest.approx((math.log(0.5), 1.5, 0), abs=1e-4)
    assert first.margin == pytest.approx(math.log(2), abs=1e-4)
    assert (second.rank, second.margin) == pytest.approx((2, math.log(0.125 / 0.5)), abs=1e-4)
    assert [number for number, _, _ in second.topk] == [10, 11, 12]
    assert [piece for _, piece, _ in second.topk] == tokenizer.pieces([10, 11, 12])
    alone = target_tokens(probabilities.log(), [10, 12], 1, tokenizer, silent_of(tokenizer))
    assert [len(token.topk) for token in alone] == [1, 1] and alone[0].margin == first.margin
