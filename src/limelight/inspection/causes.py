"""Causes of a word are told as frozen records: what each piece did for it, what another sentence changes, and what came from nothing."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

Method = Literal["occlusion", "value-zeroing", "gradient", "integrated"]
METHODS: Final[tuple[Method, ...]] = ("occlusion", "value-zeroing", "gradient", "integrated")
Places = Literal["source", "target", "heads"]
BAR: Final = 24  # columns of the largest effect


@dataclass(frozen=True)
class PieceEffect:
    """An effect is what a piece added to the log-probability of a word; below 0 it spoke against it. `share`: of all effects, by size."""

    piece: str
    effect: float
    share: float


@dataclass(frozen=True)
class Attribution:
    """An attribution says what a word came from: pieces of the source, and of the translation before it, without its start.

    `logp`: of the word; with `instead_of`, how much more likely it was than that. `completeness`: of integrated gradients, how far the
    sum of all effects is from what they should add up to, as a part of it; None for the other methods, which promise no sum.
    """

    word: str
    first: int  # number of its first piece
    instead_of: str | None
    method: Method
    logp: float
    source: tuple[PieceEffect, ...]
    prefix: tuple[PieceEffect, ...]
    completeness: float | None = None

    @property
    def source_share(self) -> float:
        """How far it followed the source, from 0 to 1; 0 too where nothing had any effect."""
        return sum(abs(each.share) for each in self.source)

    @property
    def verdict(self) -> str:
        if not any(each.effect for each in (*self.source, *self.prefix)):
            return "followed nothing: no piece has any effect"
        return f"followed the source by {100 * self.source_share:.0f} %"

    def __str__(self) -> str:
        than = "" if self.instead_of is None else f" and not {self.instead_of}"
        gap = "" if self.completeness is None else f", complete within {100 * self.completeness:.1f} %"
        largest = max((abs(each.effect) for each in (*self.source, *self.prefix)), default=0.0) or 1.0
        wide = max(len(each.piece) for each in (*self.source, *self.prefix))
        lines = [f"why {self.word}{than}: {self.verdict}", f"by {self.method}{gap}; log-probability {self.logp:+.2f}"]
        for side, pieces in (("source", self.source), ("prefix", self.prefix)):
            for each in pieces:
                bar = ("█" if each.effect > 0 else "░") * round(BAR * abs(each.effect) / largest)
                lines.append(f"  {side}  {each.piece:<{wide}}  {each.effect:>+7.2f}  {bar}".rstrip())
        return "\n".join(lines)


@dataclass(frozen=True)
class Unmatched:
    """A word is unmatched if nothing came from it (`omission`, of the source) or if it came from nothing (`addition`, of the translation).

    `effect`: the largest that hiding a source word had on it or, of a source word, on any word of the translation.
    """

    kind: Literal["omission", "addition"]
    word: str
    pieces: tuple[int, ...]
    effect: float

    def __str__(self) -> str:
        what = "nothing in the translation came from it" if self.kind == "omission" else "nothing in the source led to it"
        return f"{self.kind}: {self.word} ({what}; effect {self.effect:.2f})"


@dataclass(frozen=True, eq=False)
class PatchMap:
    """A patch map tells how the log-probability of a word changes when one place computes what it computed for another sentence.

    `change`: (rows, columns), patched minus own; far below 0, this place carries what tells the two sentences apart.
    """

    word: str
    places: Places
    other: str  # the other sentence
    logp: float
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    change: npt.NDArray[np.float32]

    @cached_property
    def strength(self) -> npt.NDArray[np.float32]:
        """Sizes of the changes from 0 to 1, the largest being 1."""
        sizes = np.abs(self.change)
        return np.asarray(sizes / max(float(sizes.max(initial=0)), 1e-9), np.float32)
