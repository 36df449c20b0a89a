"""An `Identifier` tells which language each text of a column is in, by the model of py3langid. It takes many texts at once.

py3langid walks an automaton over the bytes of one text, collects the n-grams that it meets and adds up their naive
Bayes weights. Here all texts of a slice take a step together:

    states of all texts  ->  (text, n-gram) pairs, sorted and counted  ->  log(1 + count) @ weights  ->  softmax

The result is that of `LanguageIdentifier(norm_probs=True).classify(text[:LONGEST])`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from limelight.text.normalize import recompose
from limelight.text.pieces.few_words import to_bytes
from limelight.text.pieces.word_memory import Integers

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST = 400  # characters of a text that are read
SLICE = 4096  # texts walked together: the pairs of (text, n-gram) then fit in 32 bits and the work in a few MB
ROWS = 1024  # of the weights, gathered at once for a group of texts: they stay in the cache
NGRAM_BITS = 17  # the model has about 100,000 n-grams

Floats = npt.NDArray[np.float32]
Letters = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Identification:
    """The result has for each text the best language, its probability, and those of all languages (texts, languages)."""

    languages: npt.NDArray[np.str_]
    confidence: Floats
    known: tuple[str, ...]
    probabilities: Floats

    def probability(self, code: str) -> Floats:
        return self.probabilities[:, self.known.index(code)]


@dataclass(frozen=True)
class Model:
    next_state: Integers  # at row_of_state[state] + byte
    row_of_state: Integers
    ngram_of_state: Integers  # -1: none ends here
    weights: Floats  # (n-grams, classes): log P(n-gram | class)
    prior: Floats  # (classes,)
    classes: tuple[str, ...]  # scripts of one language are classes with the same code


class Identifier:
    @cached_property
    def model(self) -> Model:
        tables = LanguageIdentifier.from_model_file(MODEL_FILE)
        assert len(tables.nb_ptc) < 1 << NGRAM_BITS
        return Model(
            next_state=np.asarray(tables.tk_nextmove, np.int32),
            row_of_state=np.asarray(tables.tk_row, np.int32) << 8,
            ngram_of_state=np.asarray(tables.tk_output, np.int32),
            weights=np.asarray(tables.nb_ptc, np.float32),
            prior=np.asarray(tables.nb_pc, np.float32),
            classes=tuple(tables.nb_classes),
        )

    @cached_property
    def known(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.model.classes))

    def knows(self, code: str) -> bool:
        return code in self.known

    def identify(self, texts: "pa.StringArray | Sequence[str]") -> Identification:
        """Of a column of Arrow, or of a few texts."""
        if hasattr(texts, "buffers") or hasattr(texts, "combine_chunks"):
            letters, offsets = _prepare_column(texts)
        else:
            raw = [to_bytes(_prepare_text(text)) for text in texts]
            letters = np.frombuffer(b"".join(raw), np.uint8)
            offsets = np.cumsum([0, *map(len, raw)])
        lengths = np.diff(offsets)
        probabilities = np.empty((len(lengths), len(self.known)), np.float32)
        # Long texts first: the texts that still walk are then always the first ones of a slice.
        order = np.argsort(-lengths, kind="stable")
        for at in range(0, len(order), SLICE):
            chosen = order[at : at + SLICE]
            probabilities[chosen] = self._probabilities(letters, offsets[chosen], lengths[chosen])
        best = probabilities.argmax(axis=1)
        confidence = probabilities[np.arange(len(best)), best]
        return Identification(np.array(self.known)[best], confidence, self.known, probabilities)

    def _probabilities(self, letters: Letters, begins: Integers, lengths: Integers) -> Floats:
        """Softmax of the scores, at the temperature sqrt(bytes) that keeps long texts from being too sure."""
        scores = self._scores(walk(self.model, letters, begins, lengths), lengths)
        scores /= np.sqrt(np.maximum(lengths, 1)).astype(np.float32)[:, None]
        np.exp(scores - scores.max(axis=1, keepdims=True), out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return self._sum_scripts(scores)

    def _scores(self, met: Integers, lengths: Integers) -> Floats:
        """log(1 + count) @ weights + prior for each text; met has `text << NGRAM_BITS | n-gram`, sorted."""
        new = np.flatnonzero(np.diff(met, prepend=met[:1] - 1))
        counts = np.log1p(np.diff(new, append=len(met)).astype(np.float32))
        pairs = met[new]
        ngrams = pairs & ((1 << NGRAM_BITS) - 1)
        starts = np.searchsorted(pairs, np.arange(len(lengths) + 1) << NGRAM_BITS)
        classes = len(self.model.prior)
        scores = np.empty((len(lengths), classes), np.float32)
        room = np.empty((max(ROWS, int(lengths[0])), classes), np.float32)  # kept: new memory costs more than filling it
        at = 0
        while at < len(lengths):
            # A text has at most as many n-grams as bytes, and none after it in the slice is longer.
            edges = starts[at : at + max(1, ROWS // max(1, int(lengths[at]))) + 1, None]
            index = edges[:-1] + np.arange((edges[1:] - edges[:-1]).max())
            # Texts of a group are about equally long, so little is padded: with any n-gram, counted zero times.
            weight = np.where(index < edges[1:], counts.take(index, mode="clip"), np.float32(0))
            wanted = ngrams.take(index.ravel(), mode="clip")
            rows = self.model.weights.take(wanted, axis=0, out=room[: len(wanted)], mode="clip")
            scores[at : at + len(index)] = (weight[:, None, :] @ rows.reshape(*index.shape, classes))[:, 0]
            at += len(index)
        scores += self.model.prior
        scores[starts[:-1] == starts[1:]] = 0  # without any n-gram no language is likelier than another
        return scores

    def _sum_scripts(self, probabilities: Floats) -> Floats:
        """One column for each language: the scripts of a language add up."""
        classes = self.model.classes
        if len(classes) == len(self.known):
            return probabilities
        folded = probabilities[:, [classes.index(code) for code in self.known]]
        for at, code in enumerate(classes):
            if classes.index(code) != at:
                folded[:, self.known.index(code)] += probabilities[:, at]
        return folded


def walk(model: Model, letters: Letters, begins: Integers, lengths: Integers) -> Integers:
    """The n-grams that each text meets, as sorted `text << NGRAM_BITS | n-gram`. Texts come longest first."""
    longest = int(lengths[0]) if len(lengths) else 0
    # walking[j]: how many texts have a byte j
    walking = np.searchsorted(-lengths, -np.arange(longest), side="left").tolist()
    visited = np.empty(int(lengths.sum()), np.int32)
    state: Integers = np.zeros(len(lengths), np.int32)
    filled = 0
    for place, count in enumerate(walking):
        index = model.row_of_state.take(state[:count])
        index += letters.take(begins[:count] + place)
        state = model.next_state.take(index)
        visited[filled : filled + count] = state
        filled += count
    ngrams = model.ngram_of_state.take(visited)
    texts = np.concatenate([np.arange(count, dtype=np.int32) for count in walking]) if walking else visited
    found = ngrams >= 0
    return np.sort((texts[found] << NGRAM_BITS) | ngrams[found])


def _prepare_text(text: str) -> str:
    """Cut, and as py3langid reads it: a text in capitals in lower case, letters and accents composed (NFC)."""
    cut = text[:LONGEST]
    return recompose(cut.lower() if cut.isupper() else cut)


def _prepare_column(texts: "pa.StringArray | Sequence[str]") -> tuple[Letters, Integers]:
    """The same of a column: its bytes, and where each text begins and ends."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from limelight.text.pieces.words import as_column

    column = as_column(texts)
    offsets = _offsets(column)
    letters = np.frombuffer(column.buffers()[2] or b"", np.uint8)[: offsets[-1]]
    filled = np.flatnonzero(offsets[:-1] < offsets[1:])
    odd = np.zeros(len(column), bool)
    if len(filled):
        begins = offsets[filled]
        small = np.logical_or.reduceat((letters >= ord("a")) & (letters <= ord("z")), begins)
        # Short texts of ASCII with a small letter are ready; only the others are worth a Python loop.
        odd[filled] = ~small | (np.maximum.reduceat(letters, begins) > 127) | (np.diff(offsets)[filled] > LONGEST)
    mask = pa.array(odd)
    changed = [_prepare_text(text) for text in column.filter(mask).to_pylist()]
    if changed:
        column = pc.replace_with_mask(column, mask, pa.array(changed, pa.string()))
    return np.frombuffer(column.buffers()[2] or b"", np.uint8), _offsets(column)


def _offsets(column: "pa.StringArray") -> Integers:
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)
