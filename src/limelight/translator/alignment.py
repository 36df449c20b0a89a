"""Attention becomes links between pieces, and those become links between words.

The rule: each target piece is linked to the source piece that it looked at most; the end of the source does not count, for it is where a
head looks when it has nothing to look at. Two words are linked if any of their pieces are. A piece that looked at the end with more than
`IDLE` of its attention is linked to nothing.
"""

from collections.abc import Sequence

from limelight.engines.engine import Matrix
from limelight.text.pieces.piece_words import words_of
from limelight.text.pieces.tokenizer import SPACE
from limelight.translator.translation import Alignment

IDLE = 0.9


def build_alignment(weights: Matrix, source: Sequence[str], target: Sequence[str], source_words: Sequence[int] | None = None) -> Alignment:
    """Attention (T + 1, S + 1) of T target pieces and the end to S source pieces and their end.

    `source_words`: the number of the word, as the source was given, that each word of the pieces belongs to. None: the same numbers.
    """
    looked = weights[: len(target), : len(source)]
    best = looked.argmax(axis=1).tolist() if looked.size else []
    idle = (weights[: len(target), len(source)] > IDLE).tolist()
    pieces = [(at, number) for number, at in enumerate(best) if not idle[number]]
    source_of, target_of = words_of(source), words_of(target)
    links = {(s, t) for at, number in pieces for s in source_of[at] for t in target_of[number]}
    if source_words is not None:
        links = {(source_words[s], t) for s, t in links if s < len(source_words)}
    return Alignment(sorted(links, key=lambda link: link[::-1]), pieces, list(source))


def owners(normalized: Sequence[str]) -> list[int]:
    """Of given words, normalized one by one: which of them each word of the whole comes from. A word may vanish (zero-width spaces) or
    become two (a no-break space): ["a", "", "b c"] -> [0, 2, 2]. The block that pieces have for a space parts their words as well.
    """
    return [number for number, word in enumerate(normalized) for _ in split_at_spaces(word.replace(SPACE, " "))]


def split_at_spaces(text: str) -> list[str]:
    """Return the words between spaces, as `awk` and aligners count them."""
    return [word for word in text.split(" ") if word]


class WordCount:
    """A word count is kept of a text, piece by piece: a piece that follows without a space goes on with the last word."""

    def __init__(self) -> None:
        self.words, self.inside = 0, False  # inside: the next letter belongs to the last word

    def add(self, text: str) -> None:
        if text:
            self.words += len(split_at_spaces(text)) - (self.inside and text[0] != " ")
            self.inside = text[-1] != " "
