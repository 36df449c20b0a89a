"""Causes of a word are told as frozen records: what each piece did for it, what another sentence changes, and what came from nothing."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from limelight.inspection.trace import Array

Method = Literal["occlusion", "value-zeroing", "gradient", "integrated"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
Places = Literal["source", "target", "heads"]
PLACES: Final[tuple[Places, ...]] = get_args(Places)
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

    `logp`: of the word; with `instead_of`, how much more likely it was than that. `source_share`: how far it followed the source, 0 to 1.
    `gap`: of integrated gradients, how far the sum of all effects is from what they should add up to, as a part of it; None for the other
    methods, which promise no sum.
    """

    word: str
    first: int  # number of its first piece
    instead_of: str | None
    method: Method
    logp: float
    source_share: float
    source: tuple[PieceEffect, ...]
    prefix: tuple[PieceEffect, ...]
    gap: float | None = None

    def __str__(self) -> str:
        than = "" if self.instead_of is None else f" and not {self.instead_of}"
        gap = "" if self.gap is None else f", complete within {100 * self.gap:.1f} %"
        every = [("source", each) for each in self.source] + [("prefix", each) for each in self.prefix]
        largest, wide = max(abs(each.effect) for _, each in every) or 1.0, max(len(each.piece) for _, each in every)
        lines = [f"why {self.word}{than}: followed the source by {100 * self.source_share:.0f} %"]
        lines.append(f"by {self.method}{gap}; log-probability {self.logp:+.2f}")
        for side, each in every:
            bar = ("█" if each.effect > 0 else "░") * round(BAR * abs(each.effect) / largest)
            lines.append(f"  {side}  {each.piece:<{wide}}  {each.effect:>+7.2f}  {bar}".rstrip())
        return "\n".join(lines)


@dataclass(frozen=True)
class Unmatched:
    """A word is unmatched if nothing came from it (`omission`, of the source) or if it came from nothing (`addition`, of the translation).

    `effect`: how much more likely the translation is with a source word than without; of a word of the translation, see `find_unmatched`.
    """

    kind: Literal["omission", "addition"]
    word: str
    pieces: tuple[int, ...]
    effect: float

    def __str__(self) -> str:
        what = "the translation is likelier without it" if self.kind == "omission" else "unlikely, and the source does not call for it"
        return f"{self.kind}: {self.word} ({what}; {self.effect:.2f})"


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
    change: Array
