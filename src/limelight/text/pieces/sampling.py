"""A `Sampler` cuts words by chance in a way that can be repeated, for subword regularization. The same text and draw give the same
segmentation, anywhere.

Seeing a word cut in several ways makes a translator robust (Kudo 2018; Provilkov et al. 2020). SentencePiece draws from
a hidden generator, so a run could not be resumed. Here the ways to cut each distinct word and their probabilities are
found once, and a counter-based random number picks one: it depends on the draw and the place of the word, on nothing else.

    unigram  P(cut) ~ P_model(cut) ** alpha, over the best candidates of each word (Kudo 2018, section 3.2). Since a
             sentence's probability is the product of its words', this equals sampling whole sentences.
    bpe      merges are dropped with probability `dropout` (Provilkov et al. 2020, algorithm 1); the distribution is
             that of a fixed number of trials, made by a generator seeded with the word.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limelight.chance import STEP, mix_bits
from limelight.errors import ConfigError, DataError
from limelight.text.pieces.tokenizer import SLICE, Tokenizer
from limelight.text.pieces.word_memory import Integers, lay_out
from limelight.text.pieces.words import as_column, as_lists, split_texts

REMEMBERED = 200_000  # distinct words kept between calls, with all their candidates: about 200 MB

LONGEST = 200  # characters; merging in Python is quadratic, and what is longer is hardly a word

Candidates = list[tuple[list[int], float]]  # ids and probability


class Sampler:
    """A sampler segments texts by chance. With alpha = inf (unigram) or dropout = 0 (bpe) it equals `Tokenizer.encode`."""

    def __init__(self, tokenizer: Tokenizer, *, alpha: float = 0.2, dropout: float = 0.1, candidates: int = 16) -> None:
        problems = []
        if not alpha >= 0:
            problems.append(f"alpha={alpha}: choose 0 (all candidates alike) to inf (only the best), such as 0.2")
        if not 0 <= dropout <= 1:
            problems.append(f"dropout={dropout}: choose 0 (never) to 1 (single characters), such as 0.1")
        if candidates < 1:
            problems.append(f"candidates={candidates}: at least 1 is needed")
        if tokenizer.facts.algorithm not in ("unigram", "bpe"):
            problems.append(f"a {tokenizer.facts.algorithm} model cuts in one way only; use Tokenizer.encode")
        if problems:
            raise ConfigError("Sampler cannot be used:", problems)
        self.tokenizer, self.alpha, self.dropout, self.candidates = tokenizer, alpha, dropout, candidates
        self._score = [tokenizer.processor.get_score(i) for i in range(len(tokenizer.learnt))]
        self._merges = Merges(tokenizer)
        self._forget()

    def encode(self, texts: pa.StringArray | Sequence[str], draws: npt.NDArray[np.uint64]) -> pa.ListArray:
        """Like `Tokenizer.encode`. Text i is cut by draws[i]: use another draw for each text and epoch."""
        column = as_column(texts)
        if len(draws) != len(column):
            raise DataError(f"{len(column)} texts need as many draws, not {len(draws)}")
        draws = np.asarray(draws, np.uint64)
        parts = ((column.slice(at, SLICE), draws[at : at + SLICE]) for at in range(0, len(column), SLICE))
        slices = [self._encode_slice(*part) for part in parts]
        return pa.concat_arrays(slices) if slices else pa.array([], pa.list_(pa.int32()))

    def segmentations(self, word: str) -> Candidates:
        """The ways to cut one word, with probabilities that sum to 1."""
        sure = self.alpha == math.inf if self.tokenizer.facts.algorithm == "unigram" else self.dropout == 0
        if sure or self.candidates == 1 or not word or len(word) > LONGEST:
            return [(self.tokenizer.segment_words([word])[0], 1.0)]
        found = self._best(word) if self.tokenizer.facts.algorithm == "unigram" else self._trials(word)
        numbered = self.tokenizer.renumber([word] * len(found), [ids for ids, _ in found])
        return [(ids, probability) for ids, (_, probability) in zip(numbered, found, strict=True)]

    def _best(self, word: str) -> Candidates:
        found = self.tokenizer.processor.nbest_encode(word, nbest_size=self.candidates)
        # A placeholder cut into its characters is none. The first candidate, the best, has them all.
        held = [sum(i in self._merges.whole_ids for i in ids) for ids in found]
        kept = [ids for ids, count in zip(found, held, strict=True) if count == held[0]]
        scores = [sum(self._score[i] for i in ids) for ids in kept]
        weights = [math.exp(self.alpha * (score - max(scores))) for score in scores]
        return [(ids, weight / sum(weights)) for ids, weight in zip(kept, weights, strict=True)]

    def _trials(self, word: str) -> Candidates:
        generator = random.Random(word)  # a str seeds by SHA-512, alike on every machine
        symbols = self._merges.symbols(self.tokenizer.processor.normalize(word))
        trials = (self._merges.merge(symbols, self.dropout, generator.random) for _ in range(self.candidates))
        cut = Counter(map(tuple, trials))
        return [(self._merges.ids(pieces), count / self.candidates) for pieces, count in sorted(cut.items())]

    def _forget(self) -> None:
        self._row_of_word: dict[str, int] = {}
        self._ids: Integers = np.empty(0, np.int32)
        self._ends: Integers = np.zeros(1, np.int64)  # candidate c has ids _ends[c] to _ends[c + 1]
        self._reach: npt.NDArray[np.float64] = np.empty(0)  # row of the word + the probability up to and with c

    def _encode_slice(self, texts: pa.StringArray, draws: npt.NDArray[np.uint64]) -> pa.ListArray:
        split = split_texts(texts, at_spaces=self.tokenizer.by_words)
        if len(self._row_of_word) > REMEMBERED:
            self._forget()
        words = self.tokenizer.bare_words(split.words)
        self._remember([word for word in dict.fromkeys(words) if word not in self._row_of_word])
        rows = np.fromiter(map(self._row_of_word.__getitem__, words), np.int64, len(words))[split.rows]
        counts = np.diff(split.starts)
        places = np.arange(len(rows)) - np.repeat(split.starts[:-1], counts)
        chance = uniform(np.repeat(draws, counts), places)
        # chance has 32 bits and rows fewer than 20, so the sum is exact and stays below row + 1.
        picked = np.searchsorted(self._reach, rows + chance, side="right")
        ids, ends = lay_out(self._ids, self._ends, picked)
        return as_lists(ids, ends[split.starts])

    def _remember(self, words: list[str]) -> None:
        if not words:
            return
        first = len(self._row_of_word)
        self._row_of_word.update(zip(words, range(first, first + len(words)), strict=True))
        found = [self.segmentations(word) for word in words]
        reach = []
        for row, candidates in enumerate(found, start=first):
            reach.append(row + np.cumsum([probability for _, probability in candidates]))
            reach[-1][-1] = row + 1  # exactly, whatever the sum was rounded to
        ids = [ids for candidates in found for ids, _ in candidates]
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        self._ids = np.concatenate([self._ids, np.fromiter(chain.from_iterable(ids), np.int32, lengths.sum())])
        self._ends = np.concatenate([self._ends, self._ends[-1] + lengths.cumsum()])
        self._reach = np.concatenate([self._reach, *reach])


class Merges:
    """The merges of a BPE model are applied in Python where some must be dropped."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        processor, whole = tokenizer.processor, set(tokenizer.facts.whole)
        self.unknown = processor.unk_id()
        self.id_of = {piece: i for i, piece in enumerate(tokenizer.learnt)}
        self.whole_ids = {self.id_of[piece] for piece in whole}
        special = {i for i in range(len(tokenizer.learnt)) if processor.is_control(i) or processor.is_byte(i)}
        special |= {self.unknown, *self.whole_ids}
        self.score_of = {p: processor.get_score(i) for p, i in self.id_of.items() if i not in special}
        self.bytes = [self.id_of[f"<0x{byte:02X}>"] for byte in range(256)] if "<0x00>" in self.id_of else None
        longest_first = sorted(whole, key=len, reverse=True)
        self.symbol = re.compile("|".join([*map(re.escape, longest_first), "."]), re.DOTALL)

    def symbols(self, normalized: str) -> list[str]:
        """Where merging starts: characters and uncut placeholders, "▁a⟦0⟧" -> "▁", "a", "⟦0⟧"."""
        return self.symbol.findall(normalized)

    def merge(self, symbols: Sequence[str], dropout: float, chance: Callable[[], float]) -> list[str]:
        """Join the best pair again and again, the leftmost of equals. At each step each pair is overlooked with p = dropout."""
        symbols = list(symbols)
        get = self.score_of.get
        scores = [get(left + right) for left, right in pairwise(symbols)]
        while True:
            at, best = -1, -math.inf
            for place, score in enumerate(scores):
                if score is not None and score > best and not (dropout and chance() < dropout):
                    at, best = place, score
            if at < 0:
                return symbols
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
            del scores[at]
            if at > 0:
                scores[at - 1] = get(symbols[at - 1] + symbols[at])
            if at < len(scores):
                scores[at] = get(symbols[at] + symbols[at + 1])

    def ids(self, pieces: Sequence[str]) -> list[int]:
        """Unknown characters become bytes, or one unknown id for each run of them."""
        found: list[int] = []
        for piece in pieces:
            if piece in self.score_of or self.id_of.get(piece) in self.whole_ids:
                found.append(self.id_of[piece])
            elif self.bytes:
                found += [self.bytes[byte] for byte in piece.encode()]
            elif found[-1:] != [self.unknown]:
                found.append(self.unknown)
        return found


def uniform(draws: npt.NDArray[np.uint64], places: Integers) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1) with 32 bits, a function of draw and place alone."""
    golden = np.uint64(STEP)
    # Mixed twice: draws that differ by a multiple of golden would otherwise share a shifted sequence.
    bits = mix_bits(mix_bits(draws + golden) + places.astype(np.uint64) * golden) >> np.uint64(32)
    return bits.astype(np.float64) * 2.0**-32
