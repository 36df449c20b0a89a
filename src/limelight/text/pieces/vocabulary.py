"""A `Vocabulary` gives the pieces of a published model the ids that others gave them.

SentencePiece numbers its pieces from 0 in the order it learnt them. A published model may number them otherwise, have one list for two
SentencePiece models, or have pieces that none of them knows, such as a language. The SentencePiece model stays as it was published; what
it says is numbered anew, and back.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Self

from pydantic import Field, NonNegativeInt, model_validator
from sentencepiece import SentencePieceProcessor

from limelight.config import Settings

LARGEST = 100_000_000  # bytes of a list of pieces: those of 200 languages need 4 MB
Piece = Annotated[str, Field(min_length=1, max_length=1000)]


class Vocabulary(Settings):
    pieces: tuple[Piece, ...] = Field(min_length=1, max_length=10_000_000)
    pad: NonNegativeInt
    unknown: NonNegativeInt
    start: NonNegativeInt | None = None
    end: NonNegativeInt
    control: tuple[NonNegativeInt, ...] = Field((), description="Others that no text has: languages, unused ids.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = []
        for name in ("pad", "unknown", "start", "end"):
            number = getattr(self, name)
            if number is not None and number >= len(self.pieces):
                problems.append(f"{name}={number} is not among the {len(self.pieces)} pieces")
        outside = [number for number in self.control if number >= len(self.pieces)]
        if outside:
            problems.append(f"control has id {outside[0]}, but there are {len(self.pieces)} pieces")
        if self.unknown in (self.pad, self.end, *self.control):
            also = "the padding, the end or a control piece"
            problems.append(f"unknown={self.unknown} is also {also}; each has an id of its own")
        if self.pad == self.end:
            problems.append(f"pad={self.pad} is the end too; each has an id of its own")
        if len(set(self.pieces)) < len(self.pieces):
            twice = next(piece for piece in self.pieces if self.pieces.count(piece) > 1)
            problems.append(f"the piece {twice[:99]!r} occurs twice")
        return self.refuse(problems)

    @property
    def controls(self) -> frozenset[int]:
        return frozenset({self.pad, self.end, *([] if self.start is None else [self.start]), *self.control})


class Numbering:
    def __init__(self, processor: SentencePieceProcessor, vocabulary: Vocabulary) -> None:
        self.processor, self.vocabulary = processor, vocabulary
        self.id_of = {piece: number for number, piece in enumerate(vocabulary.pieces)}
        for number in vocabulary.controls:  # a text that spells one is cut like any other, or unknown: never taken for it
            del self.id_of[vocabulary.pieces[number]]
        self.unknown_piece: int = processor.unk_id()
        spelt = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
        self._numbers = [self.id_of.get(piece, vocabulary.unknown) for piece in spelt]
        self._numbers[self.unknown_piece] = vocabulary.unknown

    def renumber(self, texts: Sequence[str], found: Iterable[list[int]]) -> list[list[int]]:
        """The ids that SentencePiece found for each text, in our numbers.

        What it does not know, the vocabulary may: a letter that only the other side's model has. Those texts are cut once more, and
        SentencePiece says how the unknown is spelt.
        """
        renumbered = []
        for text, ids in zip(texts, found, strict=True):
            if self.unknown_piece in ids:
                spelt = self.processor.encode(text, out_type=str)
                renumbered.append([self.id_of.get(piece, self.vocabulary.unknown) for piece in spelt])
            else:
                renumbered.append([self._numbers[i] for i in ids])
        return renumbered

    def text(self, ids: Sequence[int]) -> str:
        """A piece that SentencePiece has not comes back as it is spelt."""
        hidden, pieces = self.vocabulary.controls, self.vocabulary.pieces
        shown = [pieces[i] for i in ids if i not in hidden]
        decoded: str = self.processor.decode(shown) if shown else ""
        return decoded.replace("\u2581", " ").strip(" ")
