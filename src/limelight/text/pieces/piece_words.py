"""`words_of` tells which words each piece is a part of; a word is what stands between spaces."""

from collections.abc import Sequence

from limelight.text.pieces.tokenizer import SPACE

_SPACE_BYTE = "<0x20>"


def words_of(pieces: Sequence[str]) -> list[tuple[int, ...]]:
    """The words between spaces that each piece has a part in: ["▁of▁the", "▁c", "at", "▁"] -> [(0, 1), (2,), (2,), ()]."""
    result, words, inside = [], 0, False
    for piece in pieces:
        parts = (SPACE if piece == _SPACE_BYTE else piece).split(SPACE)
        found = []
        for number, part in enumerate(parts):
            inside = inside and number == 0
            if part:
                words += not inside
                inside = True
                found.append(words - 1)
        result.append(tuple(found))
    return result
