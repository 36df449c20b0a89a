"""A `LeakIndex` finds training pairs that repeat validation or test sentences, exactly or nearly. None of them stays in training. (Sets
split off are apart by groups of source.)

Exact means the same letters: case, accents, digits and punctuation aside. Near means a sentence with a word changed, a typing error, a
clause less: candidates share phrases of three words with a held-out sentence, and are then compared by their letters.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from limelight.corpus.cleaning.filters import loose_key

UNSPACED = r"([\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}])"
LEAST_WORDS = 5  # "The debate is closed." may be said again; a shorter target that recurs is no leak, a shorter edit is another sentence
LONG_BYTES = 40  # also for scripts without spaces
COMMONEST = 100  # a phrase in more held-out sentences than this points to none of them
SHARED = 0.2  # of the phrases of the longer sentence: below this no comparison of letters comes out near

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class LeakIndex:
    """The index has the held-out sentences of both sides, as normalized text. It is small: it travels to the workers with every batch."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    near: float

    def find(self, source: pl.Series, target: pl.Series) -> pl.Series:
        """True where the pair is a leak: its source is held out, or its target is and is long enough to be no accident."""
        sources, targets = side_index(self.sources, self.near), side_index(self.targets, self.near)
        long = (target.str.count_matches(" ", literal=True) >= LEAST_WORDS - 1) | (target.str.len_bytes() >= LONG_BYTES)
        found = sources.same(source) | (long & targets.same(target))
        for index, texts in ((sources, source), (targets, target)):
            rest = (~found).arg_true()
            found = found.scatter(rest.filter(index.alike(texts.gather(rest))), True)
        return found


@dataclass(frozen=True)
class SideIndex:
    sentences: Sequence[str]
    near: float

    @cached_property
    def _letters(self) -> pl.Series:
        return loose_key(pl.Series(self.sentences, dtype=pl.String))

    def same(self, texts: pl.Series) -> pl.Series:
        return loose_key(texts).is_in(self._letters.implode())

    def alike(self, texts: pl.Series) -> pl.Series:
        """Rows that share enough phrases with one held-out sentence and enough letters with it."""
        result = np.zeros(len(texts), dtype=bool)
        candidates = list(self._candidates(texts))
        if candidates:
            letters = loose_key(texts.gather([row for row, _ in candidates])).to_list()
            for (row, sentence), mine in zip(candidates, letters, strict=True):
                if not result[row]:
                    result[row] = similarity(mine, self._letters[sentence]) >= self.near
        return pl.Series(result)

    def _candidates(self, texts: pl.Series) -> Iterator[tuple[int, int]]:
        phrases, rows, counts = _phrases(texts)
        known, starts, members, lengths = self._inverted
        if not len(known) or not len(phrases):
            return
        place = np.searchsorted(known, phrases).clip(max=len(known) - 1)
        hit = np.flatnonzero(known[place] == phrases)
        reach = starts[place[hit] + 1] - starts[place[hit]]
        sentences = members[np.repeat(starts[place[hit]] - np.cumsum(reach) + reach, reach) + np.arange(reach.sum())]
        met = np.stack([np.repeat(rows[hit], reach), sentences], axis=1)
        pairs, shared = np.unique(met, axis=0, return_counts=True)
        enough = shared >= SHARED * np.maximum(counts[pairs[:, 0]], lengths[pairs[:, 1]])
        yield from ((int(row), int(sentence)) for row, sentence in pairs[enough])

    @cached_property
    def _inverted(self) -> tuple[Hashes, npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Phrase -> sentences that have it: sorted phrases, where each one's sentences start, the sentences; and phrases per sentence."""
        phrases, rows, counts = _phrases(pl.Series(self.sentences, dtype=pl.String))
        table = defaultdict(set)
        for phrase, row in zip(phrases.tolist(), rows.tolist(), strict=True):
            table[phrase].add(row)
        useful = sorted(phrase for phrase, found in table.items() if len(found) <= COMMONEST)
        starts = np.cumsum([0, *(len(table[phrase]) for phrase in useful)])
        members = np.array([row for phrase in useful for row in sorted(table[phrase])], dtype=np.int64)
        return np.array(useful, dtype=np.uint64), starts, members, counts


side_index = lru_cache(maxsize=4)(SideIndex)  # built once in a process, whatever number of equal indexes arrive


def _phrases(texts: pl.Series) -> tuple[Hashes, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Hashes of three words in a row, the row of each, and how many each row has; rows of fewer than LEAST_WORDS words have none. Where
    words stand without blanks each character is one."""
    plain = texts.str.normalize("NFD").str.to_lowercase().str.replace_all(r"\p{M}", "")
    plain = plain.str.replace_all(UNSPACED, " ${1} ")
    tidy = plain.str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars()
    lists = pc.split_pattern(tidy.to_arrow().cast(pa.large_string()), " ")
    lengths = np.asarray(pc.list_value_length(lists)).astype(np.int64)
    words = pc.list_flatten(lists).dictionary_encode()
    hashes = np.array([xxhash.xxh3_64_intdigest(word.encode()) for word in words.dictionary.to_pylist()], np.uint64)
    if not len(hashes):
        return np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(len(texts), np.int64)
    stream = hashes[np.asarray(words.indices)]
    row = np.repeat(np.arange(len(lengths)), lengths)
    mixed = stream[:-2] * np.uint64(0x9E3779B97F4A7C15) + stream[1:-1] * np.uint64(0xC2B2AE3D27D4EB4F) + stream[2:]
    inside = (row[:-2] == row[2:]) & (lengths[row[:-2]] >= LEAST_WORDS)
    counts = np.where(lengths >= LEAST_WORDS, lengths - 2, 0)
    return mixed[inside], row[:-2][inside], counts


def similarity(a: str, b: str) -> float:
    """Dice coefficient of the trigrams of letters: 1 for equal texts, about 0.9 for one typing error in thirty letters."""
    grams_a, grams_b = ({text[i : i + 3] for i in range(len(text) - 2)} for text in (a, b))
    return 2 * len(grams_a & grams_b) / max(1, len(grams_a) + len(grams_b))
