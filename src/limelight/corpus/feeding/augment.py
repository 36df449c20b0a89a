"""An `Augmenter` changes the text of some pairs while they are fed, and cuts it into pieces again. Placeholders are masked, capitals and
typing mistakes made, sentences run together, terms and translations of similar texts told beforehand. A source that is told something
ends in it, each after its tag:

    4 9 7   ->   4 9 7 <tag:1> 31 8 <tag:1> 52

Each position of an epoch draws whether and how its pair is changed. The draw depends on the seed, the epoch and the position alone, so the
batches are the same for any number of ranks and workers, and after a stop; a pair that comes again is changed in another way, or not at
all. The kinds of change are in `limelight.corpus.feeding.alter`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Annotated, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from pydantic import Field, model_validator

from limelight.chance import Words, draws, key_of, scale_to_one
from limelight.config import SparseSettings
from limelight.corpus.feeding.alter import DRAWN, SIGNS, AlteredPair, Change, Kind, Speech, Texts, alter_pair
from limelight.corpus.feeding.matches import find_matches
from limelight.corpus.feeding.names import NameLexicon, learn_names
from limelight.corpus.feeding.order import EpochOrder, Purpose
from limelight.corpus.feeding.pieces import Integers, Pieces, join_rows, replace_rows
from limelight.corpus.feeding.shards import Pairs
from limelight.corpus.feeding.tagging import Tagger
from limelight.errors import ConfigError
from limelight.text.pieces.tokenizer import MATCH_TAG, TERM_TAG, Tokenizer, tag

NAMES: Final = (*DRAWN, None)
REACH: Final = 8  # positions ahead in which a pair of the same direction and tags is looked for
NO_PLACEHOLDERS: Final = "the pieces have no placeholders"
Columns = tuple[pa.StringArray, pa.StringArray]
Others = Callable[[Integers], Sequence[Texts | None]]
Cut = Callable[[int, Sequence[str], int, Integers], Pieces]  # side, texts, epoch, the position of each in it
Fits = Callable[[Integers, Integers], npt.NDArray[np.bool_]]  # by the pieces of source and target


TOLD: Final[dict[Kind, int]] = {"terms": TERM_TAG, "matches": MATCH_TAG}
Share = Annotated[float, Field(ge=0, le=1)]


class AugmentSettings(SparseSettings):
    """The settings are shares of the pairs. Of all but `protect` at most one is drawn for a pair, and not every pair lends itself to it."""

    rare: ClassVar = {"matches", "names"}
    protect: Share = Field(0.9, description="placeholders, tags, addresses ... as marks, of the pairs whose sides have the same")
    copied: Share = Field(0.03, description="marks in a pair that has nothing to mask")
    upper: Share = Field(0.01, description="both sides in capitals")
    title: Share = Field(0.02, description="each word of the source with a capital")
    lower: Share = Field(0.02, description="the source in small letters")
    typos: Share = Field(0.03, description="typing mistakes in the source")
    punctuation: Share = Field(0.02, description="both sides without the full stop")
    merged: Share = Field(0.03, description="with the next pair of the epoch")
    terms: Share = Field(0.05, description="some words of the target told after the source")
    matches: Share = Field(0.0, description="the target of a similar pair told after the source, as a memory would")
    names: Share = Field(0.0, description="a name in the place of another, on both sides: one that the text has a few times is learnt, too")

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
    for kind, number in TOLD.items():
        if source is not target:
            found[kind] = "source and target have pieces of their own"
        elif tag(number) not in source.vocabulary:
            found[kind] = f"the pieces have no {tag(number)}"
    return found


def count_placeholders(source: Tokenizer, target: Tokenizer) -> int:
    """How many placeholders both sides have, counted from the first."""
    both = source.placeholders().keys() & target.placeholders().keys()
    return next(number for number in count() if number not in both)


@dataclass(frozen=True)
class AugmentDraws:
    """The draws are what some positions of an epoch have drawn."""

    kinds: Integers  # places in NAMES
    protects: npt.NDArray[np.bool_]
    numbers: Words
    details: Words


def draw_alterations(settings: AugmentSettings, seed: int, epoch: int, positions: Integers) -> AugmentDraws:
    which, hides, numbers, details = (
        draws(key_of(seed, purpose, epoch), positions) for purpose in (Purpose.CHANGE, Purpose.PROTECT, Purpose.MARKS, Purpose.DETAIL)
    )
    reach = np.cumsum([settings.share(kind) for kind in DRAWN])
    kinds = np.searchsorted(reach, scale_to_one(which), side="right").astype(np.int64)
    return AugmentDraws(kinds, scale_to_one(hides) < settings.protect, numbers, details)


def alterations(
    chances: AugmentDraws, texts: Columns, others: Others, speeches: Sequence[Speech], directions: Integers
) -> tuple[Integers, list[AlteredPair]]:
    """Which of these pairs are changed, and what they become. `others` gives the pairs that some of them are merged with, or told the
    target of; `directions` the place of each in `speeches`."""
    signs, merges = may_hold(texts[0]), chances.kinds == DRAWN.index("merged")
    protects = chances.protects & (signs | merges)
    rows = np.flatnonzero((chances.kinds < len(DRAWN)) | protects)
    asking = np.flatnonzero(merges | (chances.kinds == DRAWN.index("matches")))
    other = dict(zip(asking.tolist(), others(asking), strict=True))
    source, target = (side.take(pa.array(rows)) for side in texts)
    plain = ~(signs[rows] | may_hold(target))
    details = (array.tolist() for array in (protects[rows], plain, chances.numbers[rows], chances.details[rows]))
    pairs = zip(source.to_pylist(), target.to_pylist(), strict=True)
    changed: list[tuple[int, AlteredPair]] = []
    spoken = zip(rows.tolist(), directions[rows].tolist(), strict=True)
    for (row, way), pair, kind, *rest in zip(spoken, pairs, chances.kinds[rows].tolist(), *details, strict=True):
        found = alter_pair(pair, Change(NAMES[kind], *rest), other.get(row), speeches[way])
        if found is not None:
            changed.append((row, found))
    return np.array([row for row, _ in changed], np.int64), [found for _, found in changed]


def may_hold(texts: pa.StringArray) -> npt.NDArray[np.bool_]:
    """Where something to protect may be: some texts have a sign and hold nothing, but none without a sign does."""
    series = pl.from_arrow(texts)
    assert isinstance(series, pl.Series)
    return series.str.contains(SIGNS).to_numpy()


@dataclass(frozen=True)
class AugmentedRows:
    """Row i of both sides takes the place of row `rows[i]` of the window."""

    rows: Integers  # ascending
    source: Pieces
    target: Pieces
    kinds: tuple[tuple[Kind, ...], ...]

    def over(self, rows: Integers, source: Pieces, target: Pieces) -> tuple[Pieces, Pieces]:
        """The pieces of some rows of the window, with those that were changed."""
        found = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        places = np.flatnonzero(self.rows[found] == rows)
        taken = found[places]
        sides = ((source, self.source), (target, self.target))
        first, second = (replace_rows(before, places, after.take(taken)) for before, after in sides)
        return first, second


class Augmenter:
    """An augmenter changes the pairs of any window. What cannot be cut without unknown pieces, or would no longer fit, stays as it was."""

    def __init__(
        self, pairs: Pairs, settings: AugmentSettings, seed: int, tokenizers: tuple[Tokenizer, Tokenizer], cut: Cut, tagger: Tagger
    ) -> None:
        lacks = lacking(*tokenizers)
        asked = {kind: why for kind, why in lacks.items() if settings.share(kind)}
        if asked:
            problems = [f"batch.augment.{k}={settings.share(k):g}, but {why}; set it to 0" for k, why in asked.items()]
            raise ConfigError("the text cannot be changed as asked for:", problems)
        self.pairs, self.settings, self.seed, self.tokenizers, self.cut = pairs, settings, seed, tokenizers, cut
        self.tagger = tagger
        self.told = {kind: tokenizers[0].tag(number) for kind, number in TOLD.items() if kind not in lacks}

    @cached_property
    def speeches(self) -> list[Speech]:
        """Made by whoever changes pairs: names take seconds to learn, and whose workers build its batches needs none."""
        marks, ways = count_placeholders(*self.tokenizers), len(self.tagger.directions)
        names = learn_names(self.pairs, self.tagger.directions_of, ways) if self.settings.names else [NameLexicon()] * ways
        return [Speech(languages, marks, some) for languages, some in zip(self.tagger.directions, names, strict=True)]

    def augment(self, order: EpochOrder, epoch: int, positions: Integers, samples: Integers, fits: Fits) -> AugmentedRows | None:
        """None when every pair stays as it was."""
        ways, names, texts = self.tagger.directions_of(samples), self.tagger.names_of(samples), self.pairs.texts(samples)
        chances = draw_alterations(self.settings, self.seed, epoch, positions)

        def follow(some: Integers) -> Integers:
            """The sample of the next pair of the same direction and tags; -1 if none is near."""
            found = np.full(len(some), -1, np.int64)
            ends = order.bounds[order.groups_of(positions) + 1]  # a pair of another group may not be at hand
            for ahead in range(1, 1 + (1 if self.tagger.most == 0 else REACH)):
                waiting = np.flatnonzero((found < 0) & (positions[some] + ahead < ends[some]))
                next_ones = self.pairs.samples(*order.at(positions[some[waiting]] + ahead))
                like = self.tagger.directions_of(next_ones) == ways[some[waiting]]
                like &= self.tagger.names_of(next_ones) == names[some[waiting]]
                found[waiting[like]] = next_ones[like]
            return found

        def match(some: Integers) -> Integers:
            """The sample of the pair whose target is told, likewise."""
            known, spelt = np.unique(names, return_inverse=True)
            found = find_matches(texts[0], ways * len(known) + spelt, some, chances.details[some])
            return np.where(found < 0, -1, samples[found])

        def others(some: Integers) -> list[Texts | None]:
            found = np.full(len(some), -1, np.int64)
            for kind, find in (("merged", follow), ("matches", match)):
                if len(here := np.flatnonzero(chances.kinds[some] == NAMES.index(kind))):
                    found[here] = find(some[here])
            there = np.flatnonzero(found >= 0)
            pairs = zip(*(side.to_pylist() for side in self.pairs.texts(found[there])), strict=True)
            by_place = dict(zip(there.tolist(), pairs, strict=True))
            return [by_place.get(place) for place in range(len(some))]

        rows, found = alterations(chances, texts, others, self.speeches, ways)
        if not found:
            return None
        source = self.cut(0, [each.source for each in found], epoch, positions[rows])
        target = self.cut(1, [each.target for each in found], epoch, positions[rows])
        source = self._tell(source, "terms", [each.terms for each in found])
        source = self._tell(source, "matches", [(each.match,) if each.match else () for each in found])
        good = fits(source.lengths, target.lengths)
        for side, tokenizer in zip((source, target), self.tokenizers, strict=True):
            unknown = np.concatenate([[0], np.cumsum(side.values == tokenizer.unknown)])
            good &= unknown[side.offsets[1:]] == unknown[side.offsets[:-1]]
        kept = np.flatnonzero(good)
        if not len(kept):
            return None
        return AugmentedRows(rows[kept], source.take(kept), target.take(kept), tuple(found[at].kinds for at in kept))

    def _tell(self, source: Pieces, kind: Kind, told: Sequence[tuple[str, ...]]) -> Pieces:
        """The sources with what each is told after them. That is cut in the best way, as what a glossary or a memory has will be."""
        texts = [text for each in told for text in each]
        if kind not in self.told or not texts:
            return source
        tags = Pieces(np.full(len(texts), self.told[kind], np.int32), np.arange(len(texts) + 1))
        tagged = join_rows(tags, Pieces.of(self.tokenizers[1].encode(texts)))
        reached = np.cumsum([0, *map(len, told)])
        return join_rows(source, Pieces(tagged.values, tagged.offsets[reached]))
