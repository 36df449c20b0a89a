"""A `Reader` turns texts into requests: checked, normalized and cut into pieces as the training text was."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl
import xxhash

from limelight.bundle import BundleSettings
from limelight.corpus.feeding.augment import TERM_TAG
from limelight.decoding.guards import Notice
from limelight.decoding.steps import Request
from limelight.errors import DataError
from limelight.text.normalize import normalize
from limelight.text.pieces.tokenizer import Tokenizer


@dataclass(frozen=True)
class SourceSentence:
    """A source sentence is a text as it was given, as it was normalized, as ids."""

    given: str
    text: str
    request: Request
    notices: tuple[Notice, ...] = ()
    hidden: int = 0  # ids that the prefix begins with and nobody sees: the target's language
    own: int = 0  # ids of the source that are its text and what stands before it, not terms told after it

    @property
    def empty(self) -> bool:
        return not self.request.source


class Reader:
    """A reader turns text into ids by a bundle's normalization and pieces."""

    def __init__(self, settings: BundleSettings, source: Tokenizer, target: Tokenizer, longest: int) -> None:
        self._told = source.tag(TERM_TAG) if settings.learnt is not None and settings.learnt.terms else None
        self.steps = settings.normalization
        self.source, self.target = source, target
        self.source_begin, self.target_begin = list(settings.source_begin), list(settings.target_begin)
        self.longest = longest - len(self.source_begin)
        self._lock = threading.Lock()  # a tokenizer remembers words; several threads may translate

    def read(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None,
        phrases: Sequence[Sequence[str]] | None,
        terms: Sequence[Sequence[str]] | None = None,
    ) -> list[SourceSentence]:
        """One sentence for each text. Sources longer than the model takes are cut, and say so.

        `terms` are told to the model after the source, if it was taught to use them.
        """
        given = check_texts(texts, "texts")
        tidy = self.normalize_texts(given)
        ids = self.source_ids(tidy)
        begins = self.target_ids(self.normalize_texts(one_each(prefixes, "prefixes", len(given))))
        needed = self._encode_phrases(many_each(phrases, len(given)))
        told = self._encode_terms(terms, len(given))
        return [self._sentence(*parts) for parts in zip(given, tidy, ids, begins, needed, told, strict=True)]

    def normalize_texts(self, texts: Sequence[str]) -> list[str]:
        column = normalize(pl.Series(texts, dtype=pl.String), self.steps)
        result: list[str] = column.to_list()
        return result

    def length(self, text: str) -> int:
        """In pieces, without what stands around them."""
        return self.lengths([text])[0]

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.source_ids(self.normalize_texts(texts))]

    def source_ids(self, tidy: Sequence[str]) -> list[list[int]]:
        """Blank text has no ids: there is nothing to translate."""
        return self._ids(self.source, tidy)

    def target_ids(self, tidy: Sequence[str]) -> list[list[int]]:
        return self._ids(self.target, tidy)

    def _ids(self, tokenizer: Tokenizer, tidy: Sequence[str]) -> list[list[int]]:
        with self._lock:
            rows = tokenizer.encode(["" if text.isspace() else text for text in tidy])
        ids, ends = rows.values.to_numpy().tolist(), rows.offsets.to_numpy().tolist()
        return [ids[begin:end] for begin, end in pairwise(ends)]

    def _sentence(
        self, given: str, tidy: str, ids: list[int], prefix: list[int], phrases: list[list[int]], told: list[int]
    ) -> SourceSentence:
        notices: tuple[Notice, ...] = ()
        told = told if len(ids) + len(told) <= self.longest else []
        if len(ids) > self.longest:
            lost = f"the source has {len(ids)} pieces and the model takes {self.longest}; the rest was not translated"
            notices = (Notice("source_cut", lost),)
        # Drawn from the text alone, so that what is sampled for a sentence depends neither on its place nor on its neighbours.
        key = xxhash.xxh3_64_intdigest(tidy.encode()) >> 1
        begin = self.target_begin
        source = self.add_source_begin(ids[: self.longest])
        request = Request([*source, *told] if source else [], [*begin, *prefix], phrases, key, len(begin))
        return SourceSentence(given, tidy, request, notices, len(self.target_begin), len(source))

    def add_source_begin(self, ids: list[int]) -> list[int]:
        """A source as the model reads it; nothing stays nothing."""
        return [*self.source_begin, *ids] if ids else []

    def _encode_terms(self, terms: Sequence[Sequence[str]] | None, count: int) -> list[list[int]]:
        """Each after its tag: "Konnektor" -> <tag:1> ▁Kon nektor, as in training."""
        if terms is None or self._told is None:
            return [[]] * count
        ids = iter(self._ids(self.source, self.normalize_texts([term for some in terms for term in some])))
        return [[number for _ in some for number in (self._told, *next(ids))] for some in terms]

    def _encode_phrases(self, phrases: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        ids = iter(self.target_ids(self.normalize_texts([phrase for some in phrases for phrase in some])))
        return [[found for _ in some if (found := next(ids))] for some in phrases]


def one_each(prefixes: Sequence[str] | None, what: str, count: int) -> list[str]:
    if prefixes is None:
        return [""] * count
    if len(check_texts(prefixes, what)) != count:
        raise DataError(f"there are {len(prefixes)} {what} for {count} texts; give one for each, '' for none")
    return list(prefixes)


def many_each(phrases: Sequence[Sequence[str]] | None, count: int) -> list[tuple[str, ...]]:
    if phrases is None:
        return [()] * count
    if isinstance(phrases, str) or any(isinstance(some, str) for some in phrases):
        raise TypeError("phrases wants a list of phrases for each text, such as [['die Matte'], []]")
    if len(phrases) != count:
        raise DataError(f"there are phrases for {len(phrases)} texts, but {count} texts; give a list for each")
    check_texts([phrase for some in phrases for phrase in some], "phrases")
    return [tuple(some) for some in phrases]


def check_texts(texts: Sequence[str], what: str) -> list[str]:
    """A list of texts that can be written as UTF-8; a single text is a common slip, and each of its letters would be translated."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"{what} wants a list of texts, not one text; write [text]")
    result = list(texts)
    for number, text in enumerate(result):
        if not isinstance(text, str):
            raise TypeError(f"{what}[{number}] is no text but {type(text).__name__}; give a list of str")
    try:
        "\n".join(result).encode()
    except UnicodeEncodeError:
        wrong = next(number for number, text in enumerate(result) if not _writable(text))
        raise DataError(f"{what}[{wrong}] holds half a character and cannot be written as UTF-8; remove it") from None
    return result


def _writable(text: str) -> bool:
    try:
        return text.encode() is not None
    except UnicodeEncodeError:
        return False
