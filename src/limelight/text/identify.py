"""An `Identifier` tells which language each text of a column is in, by the model of py3langid. It takes many texts at once.

py3langid walks an automaton over the bytes of one text, collects the n-grams that it meets and adds up their naive
Bayes weights. Here all texts of a slice take a step together:

    states of all texts  ->  (text, n-gram) pairs, sorted and counted  ->  log(1 + count) @ weights  ->  softmax

The result is that of `LanguageIdentifier(norm_probs=True).classify(text[:longest])`.
"""

import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from limelight.errors import ConfigError
from limelight.text.pieces.words import Integers, as_column

SLICE = 4096  # texts walked together: the pairs of (text, n-gram) then fit in 32 bits and the work in a few MB
ROWS = 1024  # of the weights, gathered at once for a group of texts: they stay in the cache
NGRAM_BITS = 17  # the model has about 100,000 n-grams

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Identification:
    """The result has for each text the best language, its probability, and those of all languages (texts, languages)."""

    languages: npt.NDArray[np.str_]
    confidence: Floats
    known: tuple[str, ...]
    probabilities: Floats

    def probability(self, code: str) -> Floats:
        """How likely each text is in this language."""
        return self.probabilities[:, self.known.index(_check_codes([code], self.known)[0])]


@dataclass(frozen=True)
class Model:
    """The model is the tables of py3langid as arrays."""

    next_state: Integers  # at row_of_state[state] + byte
    row_of_state: Integers
    ngram_of_state: Integers  # -1: none ends here
    weights: Floats  # (n-grams, classes): log P(n-gram | class)
    prior: Floats  # (classes,)
    classes: tuple[str, ...]  # scripts of one language are classes with the same code


class Identifier:
    """An identifier loads its model at first use. `languages` restricts the answer, which then is the best of these."""

    def __init__(self, languages: Sequence[str] | None = None, *, longest: int = 400) -> None:
        if longest < 1:
            raise ConfigError(f"longest={longest}: at least one character must be read; 400 is plenty")
        self.languages = tuple(languages) if languages is not None else None
        self.longest = longest  # characters of a text that are read

    @cached_property
    def model(self) -> Model:
        tables = LanguageIdentifier.from_model_file(MODEL_FILE)
        if self.languages is not None:
            tables.set_languages(_check_codes(self.languages, tables.labels))
        ngrams = len(tables.nb_ptc)
        assert ngrams < 1 << NGRAM_BITS
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
        """Every language that can be the answer."""
        return tuple(dict.fromkeys(self.model.classes))

    def knows(self, code: str) -> bool:
        return code in self.known

    def identify(self, texts: pa.StringArray | Sequence[str]) -> Identification:
        column = _prepare(as_column(texts), self.longest)
        lengths = np.diff(_offsets(column))
        probabilities = np.empty((len(column), len(self.known)), np.float32)
        # Long texts first: the texts that still walk are then always the first ones of a slice.
        order = np.argsort(-lengths, kind="stable")
        for at in range(0, len(column), SLICE):
            chosen = order[at : at + SLICE]
            probabilities[chosen] = self._probabilities(column, chosen)
        best = probabilities.argmax(axis=1)
        confidence = probabilities[np.arange(len(column)), best]
        return Identification(np.array(self.known)[best], confidence, self.known, probabilities)

    def _probabilities(self, column: pa.StringArray, chosen: Integers) -> Floats:
        """Softmax of the scores, at the temperature sqrt(bytes) that keeps long texts from being too sure."""
        offsets = _offsets(column)
        lengths = (offsets[1:] - offsets[:-1])[chosen]
        letters = np.frombuffer(column.buffers()[2] or b"", np.uint8)
        scores = self._scores(walk(self.model, letters, offsets[chosen], lengths), lengths)
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
        room = np.empty(
            (max(ROWS, int(lengths[0])), classes), np.float32
        )  # kept: new memory costs more than filling it
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


def walk(model: Model, letters: npt.NDArray[np.uint8], begins: Integers, lengths: Integers) -> Integers:
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


def _prepare(column: pa.StringArray, longest: int) -> pa.StringArray:
    """Cut, and as py3langid reads them: a text in capitals in lower case, letters and accents composed (NFC)."""
    offsets = _offsets(column)
    letters = np.frombuffer(column.buffers()[2] or b"", np.uint8)[: offsets[-1]]
    filled = np.flatnonzero(offsets[:-1] < offsets[1:])
    odd = np.zeros(len(column), bool)
    if len(filled):
        begins = offsets[filled]
        small = np.logical_or.reduceat((letters >= ord("a")) & (letters <= ord("z")), begins)
        # Short texts of ASCII with a small letter are ready; only the others are worth a Python loop.
        odd[filled] = ~small | (np.maximum.reduceat(letters, begins) > 127) | (np.diff(offsets)[filled] > longest)
    mask = pa.array(odd)
    changed = [_normalize(text[:longest]) for text in column.filter(mask).to_pylist()]
    return pc.replace_with_mask(column, mask, pa.array(changed, pa.string())) if changed else column


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text.lower() if text.isupper() else text)


def _offsets(column: pa.StringArray) -> Integers:
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)


def _check_codes(codes: Sequence[str], known: Sequence[str]) -> list[str]:
    problems = []
    for code in codes:
        if code not in known:
            near = difflib.get_close_matches(code, known, n=3, cutoff=0.5)
            problems.append(
                f"{code}: {'did you mean ' + ' or '.join(near) if near else 'known are ' + ' '.join(known)}"
            )
    if problems:
        raise ConfigError("these languages cannot be identified:", problems)
    return list(codes)
