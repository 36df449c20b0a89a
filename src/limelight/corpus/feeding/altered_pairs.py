"""An `Augmenter` changes the text of some pairs of a window and cuts it into pieces again. Their ids take the place of those that were
prepared.

A source that is told terms ends in them, each after its tag:    4 9 7   ->   4 9 7 <tag:1> 31 8 <tag:1> 52
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from limelight.corpus.feeding.alter import AlteredPair, Kind, Speech, Texts
from limelight.corpus.feeding.augment import (
    TERM_TAG,
    AugmentSettings,
    alterations,
    count_placeholders,
    draw_alterations,
    lacking,
    refuse_lacking,
)
from limelight.corpus.feeding.order import EpochOrder
from limelight.corpus.feeding.shards import Integers, Pairs, Pieces, gather_rows
from limelight.text.pieces.tokenizer import Tokenizer

Cut = Callable[[int, Sequence[str], int, Integers], Pieces]  # side, texts, epoch, the position of each in it
Fits = Callable[[Integers, Integers], npt.NDArray[np.bool_]]  # by the pieces of source and target


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
        return replace_rows(source, places, self.source.take(taken)), replace_rows(
            target, places, self.target.take(taken)
        )


class Augmenter:
    """An augmenter changes the pairs of any window. What cannot be cut without unknown pieces, or would no longer fit, stays as it was."""

    def __init__(
        self, pairs: Pairs, settings: AugmentSettings, seed: int, tokenizers: tuple[Tokenizer, Tokenizer], cut: Cut
    ) -> None:
        lacks = lacking(*tokenizers)
        refuse_lacking(settings, lacks)
        self.pairs, self.settings, self.seed, self.tokenizers, self.cut = pairs, settings, seed, tokenizers, cut
        self.speech = Speech(pairs.prepared.manifest.languages, count_placeholders(*tokenizers))
        self.term_tag = None if "terms" in lacks else tokenizers[0].tag(TERM_TAG)

    def augment(
        self, order: EpochOrder, epoch: int, positions: Integers, samples: Integers, fits: Fits
    ) -> AugmentedRows | None:
        """None when every pair stays as it was."""

        def following(some: Integers) -> list[Texts | None]:
            places = positions[some]
            inside = places[places + 1 < order.rows]
            texts = self.pairs.texts(self.pairs.samples(*order.at(inside + 1)))
            after = dict(zip(inside.tolist(), zip(*(side.to_pylist() for side in texts), strict=True), strict=True))
            return [after.get(place) for place in places.tolist()]

        chances = draw_alterations(self.settings, self.seed, epoch, positions)
        rows, found = alterations(chances, self.pairs.texts(samples), following, self.speech)
        if not found:
            return None
        source = self.cut(0, [each.source for each in found], epoch, positions[rows])
        target = self.cut(1, [each.target for each in found], epoch, positions[rows])
        source = self._append_terms(source, found)
        good = fits(source.lengths, target.lengths)
        for side, tokenizer in zip((source, target), self.tokenizers, strict=True):
            good &= ~_holding(side, tokenizer.unknown)
        kept = np.flatnonzero(good)
        if not len(kept):
            return None
        return AugmentedRows(rows[kept], source.take(kept), target.take(kept), tuple(found[at].kinds for at in kept))

    def _append_terms(self, source: Pieces, found: Sequence[AlteredPair]) -> Pieces:
        """The sources with the terms after them. Terms are cut in the best way, as those of a glossary will be."""
        terms = [term for each in found for term in each.terms]
        if self.term_tag is None or not terms:
            return source
        cut = self.tokenizers[1].encode(terms)
        pieces = Pieces(cut.values.to_numpy(), cut.offsets.to_numpy().astype(np.int64))
        tags = Pieces(np.full(len(terms), self.term_tag, np.int32), np.arange(len(terms) + 1))
        tagged = join_rows(tags, pieces)
        reached = np.cumsum([0, *(len(each.terms) for each in found)])
        return join_rows(source, Pieces(tagged.values, tagged.offsets[reached]))


def join_rows(first: Pieces, second: Pieces) -> Pieces:
    """Each row of the first with that of the second after it: [4 9] [7] and [1] [2 3] -> [4 9 1] [7 2 3]."""
    values = np.concatenate([first.values, second.values])
    starts = np.stack([first.offsets[:-1], second.offsets[:-1] + len(first.values)], axis=1)
    both = gather_rows(values, starts.ravel(), np.stack([first.lengths, second.lengths], axis=1).ravel())
    return Pieces(both.values, both.offsets[::2])


def replace_rows(pieces: Pieces, places: Integers, others: Pieces) -> Pieces:
    """Other rows at some places: [4 9] [7] [8] with [1 2] at 1 -> [4 9] [1 2] [8]."""
    if not len(places):
        return pieces
    starts, lengths = pieces.offsets[:-1].copy(), pieces.lengths
    starts[places], lengths[places] = others.offsets[:-1] + len(pieces.values), others.lengths
    return gather_rows(np.concatenate([pieces.values, others.values]), starts, lengths)


def _holding(pieces: Pieces, piece: int) -> npt.NDArray[np.bool_]:
    """Which rows have a piece."""
    seen = np.concatenate([[0], np.cumsum(pieces.values == piece)])
    found: npt.NDArray[np.bool_] = seen[pieces.offsets[1:]] > seen[pieces.offsets[:-1]]
    return found
