"""A `RawUnit` is a row as every reader yields it: a pair with its place and its fault.

A reader drops nothing. A row it cannot use comes with a fault, so that later read = kept + dropped holds to the row.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

ROWS = 32_768
BATCH_BYTES = 16 << 20  # a batch also ends here, so that long sentences cost no more memory than short ones
LONGEST_LINE = 1 << 20  # bytes; no sentence is this long, so such a line is a broken file or an attack
PREFIX = 1_024  # bytes kept of a line that is too long: enough to recognise it in a report


class RowFault(IntEnum):
    """A fault says why a row cannot be used as it stands. Of several the greater stays; FUZZY is said only if nothing else is wrong."""

    NONE = 0
    MALFORMED = 1
    BROKEN_ENCODING = 2
    TOO_LONG = 3
    FUZZY = 4


@dataclass(frozen=True)
class CorpusPart:
    """A part is one thing to be read. It has two paths for line pairs, else one; it travels to worker processes as JSON."""

    corpus: int
    file: int
    format: str
    paths: tuple[str, ...]
    languages: tuple[str, str]
    columns: tuple[str, str] | None = None
    swapped: bool = False  # what is read as source is the target
    partial: bool = False  # rows that are empty on one side are no pairs

    def __post_init__(self) -> None:
        # JSON has lists where we have tuples; CorpusPart(**json.loads(...)) must equal the part that was sent.
        object.__setattr__(self, "paths", tuple(self.paths))
        object.__setattr__(self, "languages", tuple(self.languages))
        object.__setattr__(self, "columns", None if self.columns is None else tuple(self.columns))


class RawUnit(NamedTuple):
    """A unit is one row on its way into a batch, from a format that is read piece by piece."""

    source: str
    target: str
    line: int
    segment: str | None = None
    fault: RowFault = RowFault.NONE
