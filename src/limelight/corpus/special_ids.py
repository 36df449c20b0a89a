"""`SpecialIds` say where a text begins and ends, what the decoder reads first and what fills a row.

Pieces learnt here have fixed ones. A model that others trained brings its own: Marian lets the decoder read the padding first, M2M100 the
end, and both sides may begin with a language.

    SpecialIds()                                       source  4 9 3         target  7 8 3         the decoder reads  2 7 8
    SpecialIds(pad=9, start=9, end=0)                  source  4 9 0         target  7 8 0         the decoder reads  9 7 8
    SpecialIds(pad=1, start=2, end=2,                  source  50 4 9 2      target  51 7 8 2      the decoder reads  2 51 7 8
               source_begin=[50], target_begin=[51])
"""

from typing import Self

from pydantic import NonNegativeInt, model_validator

from limelight.config import Settings
from limelight.text.pieces.tokenizer import END, PAD, START


class SpecialIds(Settings):
    """The ids are those of the model that a corpus is prepared for. Targets always end; a model must learn when to stop."""

    pad: NonNegativeInt = PAD
    start: NonNegativeInt = START
    end: NonNegativeInt = END
    source_begin: tuple[NonNegativeInt, ...] = ()
    target_begin: tuple[NonNegativeInt, ...] = ()
    source_ends: bool = True

    @model_validator(mode="after")
    def _padding_is_told_apart(self) -> Self:
        """A row is as long as it has ids that are no padding. `start` may be it: the decoder's input is as long as its output."""
        if self.pad in (self.end, *self.source_begin, *self.target_begin):
            raise ValueError(f"pad={self.pad} is also the end or a beginning; padding has an id of its own")
        return self

    @property
    def around(self) -> tuple[int, int]:
        """How many ids stand around the pieces of a source and of a target."""
        return len(self.source_begin) + self.source_ends, len(self.target_begin) + 1

    @property
    def largest(self) -> tuple[int, int]:
        """The largest id on each side, which its vocabulary must have."""
        source = [self.pad, *self.source_begin, *([self.end] if self.source_ends else [])]
        return max(source), max(self.pad, self.start, self.end, *self.target_begin)
