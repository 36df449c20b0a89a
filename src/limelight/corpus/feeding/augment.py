"""Random draws decide which pairs are changed while they are fed, and in which way. Placeholders are masked, capitals and typing mistakes
made, sentences run together, terms told beforehand.

    alterations(draw_alterations(settings, seed=1, epoch=0, positions), ...)  ->  rows [3, 17, 40], and what became of each

Each position of an epoch draws whether and how its pair is changed. The draw depends on the seed, the epoch and the position alone, so the
batches are the same for any number of ranks and workers, and after a stop; a pair that comes again is changed in another way, or not at
all. The kinds of change are in `limelight.corpus.feeding.alter`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from pydantic import Field, model_validator

from limelight.chance import Words, draws, key_of
from limelight.config import Settings
from limelight.corpus.feeding.alter import (
    DRAWN,
    KINDS,
    MOST_MARKS,
    SIGNS,
    AlteredPair,
    Change,
    Kind,
    Speech,
    Texts,
    alter_pair,
)
from limelight.corpus.feeding.order import Integers, Purpose
from limelight.errors import ConfigError
from limelight.text.pieces.tokenizer import Tokenizer, tag

TERM_TAG: Final = 1  # the tag before each term that is told with a source
NAMES: Final = (*DRAWN, None)
NO_PLACEHOLDERS: Final = "the pieces have no placeholders"
Columns = tuple[pa.StringArray, pa.StringArray]
Following = Callable[[Integers], Sequence[Texts | None]]


class AugmentSettings(Settings):
    """The settings are shares of the pairs. Of all but `protect` at most one is drawn for a pair, and not every pair lends itself to it."""

    protect: float = Field(
        0.9,
        ge=0,
        le=1,
        description="placeholders, tags, addresses ... as marks, of the pairs whose sides have the same",
    )
    copied: float = Field(0.03, ge=0, le=1, description="marks in a pair that has nothing to mask")
    upper: float = Field(0.01, ge=0, le=1, description="both sides in capitals")
    title: float = Field(0.02, ge=0, le=1, description="each word of the source with a capital")
    lower: float = Field(0.02, ge=0, le=1, description="the source in small letters")
    typos: float = Field(0.03, ge=0, le=1, description="typing mistakes in the source")
    punctuation: float = Field(0.02, ge=0, le=1, description="both sides without the full stop")
    merged: float = Field(0.03, ge=0, le=1, description="with the next pair of the epoch")
    terms: float = Field(0.05, ge=0, le=1, description="some words of the target told after the source")

    @model_validator(mode="after")
    def _one_is_drawn(self) -> Self:
        shares = {kind: self.share(kind) for kind in DRAWN}
        if sum(shares.values()) > 1 + 1e-9:
            listed = ", ".join(f"{kind}={share:g}" for kind, share in shares.items() if share)
            raise ValueError(f"{listed} are {sum(shares.values()):g} together; one is drawn for a pair, so 1 at most")
        return self

    def share(self, kind: Kind) -> float:
        value: float = getattr(self, kind)
        return value


def lacking(source: Tokenizer, target: Tokenizer) -> dict[Kind, str]:
    """The kinds that these pieces cannot show, and why: a model that others trained has neither placeholders nor tags."""
    found: dict[Kind, str] = {}
    if not count_placeholders(source, target):
        found |= {"protect": NO_PLACEHOLDERS, "copied": NO_PLACEHOLDERS}
    if source is not target:
        found["terms"] = "source and target have pieces of their own"
    elif tag(TERM_TAG) not in source.vocabulary:
        found["terms"] = "the pieces have no tags"
    return found


def count_placeholders(source: Tokenizer, target: Tokenizer) -> int:
    """How many placeholders both sides have, counted from the first."""
    both = source.placeholders().keys() & target.placeholders().keys()
    return next(number for number in count() if number not in both)


def refuse_lacking(settings: AugmentSettings, lacks: Mapping[Kind, str]) -> None:
    problems = [
        f"batch.augment.{kind}={settings.share(kind):g}, but {why}; set it to 0"
        for kind, why in lacks.items()
        if settings.share(kind)
    ]
    if problems:
        raise ConfigError("the text cannot be changed as asked for:", problems)


@dataclass(frozen=True)
class AugmentDraws:
    """The draws are what some positions of an epoch have drawn."""

    kinds: Integers  # places in NAMES
    protects: npt.NDArray[np.bool_]
    numbers: Words
    details: Words


def draw_alterations(settings: AugmentSettings, seed: int, epoch: int, positions: Integers) -> AugmentDraws:
    which, hides, numbers, details = (
        draws(key_of(seed, purpose, epoch), positions)
        for purpose in (Purpose.CHANGE, Purpose.PROTECT, Purpose.MARKS, Purpose.DETAIL)
    )
    reach = np.cumsum([settings.share(kind) for kind in DRAWN])
    kinds = np.searchsorted(reach, _unit(which), side="right").astype(np.int64)
    return AugmentDraws(kinds, _unit(hides) < settings.protect, numbers, details)


def alterations(
    chances: AugmentDraws, texts: Columns, following: Following, speech: Speech
) -> tuple[Integers, list[AlteredPair]]:
    """Which of these pairs are changed, and what they become. `following` gives the pairs that come after some of them."""
    signs, merges = may_hold(texts[0]), chances.kinds == DRAWN.index("merged")
    protects = chances.protects & (signs | merges)
    rows, merging = np.flatnonzero((chances.kinds < len(DRAWN)) | protects), np.flatnonzero(merges)
    after = dict(zip(merging.tolist(), following(merging), strict=True))
    source, target = (side.take(pa.array(rows)) for side in texts)
    plain = ~(signs[rows] | may_hold(target))
    details = (array.tolist() for array in (protects[rows], plain, chances.numbers[rows], chances.details[rows]))
    pairs = zip(source.to_pylist(), target.to_pylist(), strict=True)
    changed: list[tuple[int, AlteredPair]] = []
    for row, pair, kind, *rest in zip(rows.tolist(), pairs, chances.kinds[rows].tolist(), *details, strict=True):
        found = alter_pair(pair, Change(NAMES[kind], *rest), after.get(row), speech)
        if found is not None:
            changed.append((row, found))
    return np.array([row for row, _ in changed], np.int64), [found for _, found in changed]


def may_hold(texts: pa.StringArray) -> npt.NDArray[np.bool_]:
    """Where something to protect may be: some texts have a sign and hold nothing, but none without a sign does."""
    series = pl.from_arrow(texts)
    assert isinstance(series, pl.Series)
    return series.str.contains(SIGNS).to_numpy()


def count_kinds(
    pairs: Sequence[Texts],
    settings: AugmentSettings,
    languages: tuple[str, str],
    *,
    seed: int = 1,
    epoch: int = 0,
    marks: int = MOST_MARKS,
) -> dict[Kind, int]:
    """How many of these pairs one epoch in this order would change, by kind: a pair may be masked and changed in another way too."""
    columns = pa.array([pair[0] for pair in pairs], pa.string()), pa.array([pair[1] for pair in pairs], pa.string())
    after = [*pairs[1:], None]
    chances = draw_alterations(settings, seed, epoch, np.arange(len(pairs)))
    _, changed = alterations(chances, columns, lambda rows: [after[row] for row in rows], Speech(languages, marks))
    found = Counter(kind for each in changed for kind in each.kinds)
    return {kind: found[kind] for kind in KINDS}


def _unit(words: Words) -> npt.NDArray[np.float64]:
    """Return numbers from 0 to 1, without 1, with all the bits that a float has."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
