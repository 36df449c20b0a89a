"""A `Tagger` gives the ids that stand before each source: the target language, then the names of its corpus and its own.

A share of the sources is told no names, so that a request without them stays one that the model knows. The draw depends on the seed, the
epoch and the position alone, as all draws of a feed do. The language is always told.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from limelight.chance import draws, key_of, scale_to_one
from limelight.corpus.feeding.directions import list_fed
from limelight.corpus.feeding.order import Purpose
from limelight.corpus.feeding.pieces import Integers, Pieces, gather_rows
from limelight.corpus.feeding.shards import Pairs
from limelight.text.pieces.tags import language_piece, name_piece

Bits = npt.NDArray[np.uint64]
NONE: Final = np.uint64(0)


class Tagger:
    """A tagger knows the tags of every pair of a split. Without any it has nothing to do, and `most` is 0."""

    def __init__(self, pairs: Pairs, seed: int, untagged: float) -> None:
        manifest = pairs.prepared.manifest
        tags = manifest.tag_set
        self.pairs, self.seed, self.untagged = pairs, seed, untagged
        fed = list_fed(manifest, pairs.turns)
        self.directions = tuple(dict.fromkeys(fed))
        self._direction = np.array([self.directions.index(each) for each in fed], np.int64)
        bit = {name: 1 << number for number, name in enumerate(tags.names)}
        of_corpus = [sum(bit[name] for name in set(names)) for names in manifest.names]
        self._names = np.array(of_corpus * (len(self._direction) // len(of_corpus)), np.uint64)
        find = pairs.prepared.tokenizers()[0].id_of_control if tags.pieces else None
        self._name_ids = [find(name_piece(name)) for name in tags.names] if find else []
        told = [target for _, target in self.directions] if tags.languages else []
        self._language_ids = [find(language_piece(target)) for target in told] if find else []
        self.most = bool(tags.languages) + len(tags.names)

    def directions_of(self, samples: Integers) -> Integers:
        """The place of each in `directions`."""
        return self._direction[self.pairs.corpora_of(samples)]

    def names_of(self, samples: Integers) -> Bits:
        """The names of each as bits, in the order of the tag set."""
        return self._names[self.pairs.corpora_of(samples)] | self.pairs.tags(samples)

    def tags(self, epoch: int, positions: Integers, samples: Integers) -> Pieces | None:
        """The ids before each source; None where no source has any."""
        if not self.most:
            return None
        names = self.names_of(samples)
        chances = scale_to_one(draws(key_of(self.seed, Purpose.UNTAGGED, epoch), positions))
        names[chances < self.untagged] = NONE
        bits, which = np.unique(names, return_inverse=True)
        spelt = self.directions_of(samples) * len(bits) + which
        rows = [self._spell(way, int(mask)) for way in range(len(self.directions)) for mask in bits]
        starts = np.cumsum([0, *map(len, rows)])
        values = np.array([number for row in rows for number in row], np.int64)
        return gather_rows(values, starts[spelt], np.diff(starts)[spelt])

    def _spell(self, direction: int, names: int) -> list[int]:
        language = [self._language_ids[direction]] if self._language_ids else []
        return language + [number for bit, number in enumerate(self._name_ids) if names >> bit & 1]
