"""A `SourceSentence` is filled on its way to a translation, and a `Reader` turns its text into ids as the training text was."""

import copy
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar, cast

from limelight.bundle import BundleSettings, Learnt
from limelight.decoding.guards import Notice
from limelight.decoding.steps import Hypothesis, Request
from limelight.engines.engine import Matrix
from limelight.text.normalize import normalize_text
from limelight.text.pieces.tokenizer import MATCH_TAG, SPACE, TERM_TAG, Tokenizer
from limelight.translator.protected import NUMBERS, TERMS, ProtectedSentence
from limelight.translator.translation import UNPROTECTED

_WITHOUT_CARE, _NO_REQUEST = ProtectedSentence("", ""), Request(())  # before a sentence comes to them
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class SourceSentence:
    """A sentence is cut out of a text, protected, encoded and searched; each step fills in what it found."""

    given: str
    before: str = ""  # what stands before it in its text, if it is the first; and what stands after it
    after: str = ""
    message: Literal["", "plain", "doubled"] = ""  # of one `given` is as `messages.unescape` gives it; how it writes apostrophes
    split: tuple[Notice, ...] = ()  # said of the first part of a sentence that was too long
    prefix: str = ""  # its translation begins so, and contains these
    phrases: tuple[str, ...] = ()
    match: str = ""  # what a memory has for a similar text; the model is told it
    # By whom it is read, in its direction and with its tags: sentences of several may be in one batch. Known before all that follows.
    reader: "Reader" = field(default=cast("Reader", None), repr=False, compare=False)
    care: ProtectedSentence = _WITHOUT_CARE
    text: str = ""  # as it is translated, normalized
    request: Request = _NO_REQUEST
    pieces: int = 0  # of its text, however many the model takes
    own: int = 0  # ids of the source that are its text and what stands before it, not what is told after it
    is_searched: bool = False
    # Best first. None at all where the scores were not numbers, or its time was over.
    candidates: list[Hypothesis] = field(default_factory=list)
    is_degenerate: bool = False
    attention: tuple[Matrix, ...] = ()  # of each candidate, where it was asked for already
    notices: tuple[Notice, ...] = ()  # what happened on the way
    faults: tuple[Notice, ...] = ()  # of the best candidate

    def fill(self, **found: Any) -> Self:
        """The same sentence with what was found; `dataclasses.replace` takes five times as long, eight times for each sentence."""
        filled = object.__new__(type(self))
        vars(filled).update(vars(self), **found)
        return filled

    @property
    def empty(self) -> bool:
        return not self.request.source

    @property
    def is_kept(self) -> bool:
        """Is all that must not be translated in the best candidate? What is watched was looked at already."""
        if self.care.watched:
            return all(fault.code != UNPROTECTED for fault in self.faults)
        return self.care.explain_loss(self.candidates[0].text) is None

    @property
    def rank(self) -> tuple[int, ...]:
        """The smaller, the better: first what was promised, then what reads well."""
        codes = {fault.code for fault in self.faults}
        loss = self.care.loss(self.candidates[0].text) if UNPROTECTED in codes else 0
        return loss, TERMS in codes, NUMBERS in codes, self.is_degenerate


def on_some(items: Sequence[Item], chosen: Sequence[int], work: Callable[[list[Item]], Sequence[Result]]) -> list[Item | Result]:
    """All items, with those that have the chosen numbers replaced by what `work` makes of them."""
    result: list[Item | Result] = list(items)
    if chosen:
        for at, made in zip(chosen, work([items[at] for at in chosen]), strict=True):
            result[at] = made
    return result


class Reader:
    """A reader turns text into ids by a bundle's normalization and pieces, and knows what its model was taught."""

    def __init__(self, settings: BundleSettings, source: Tokenizer, target: Tokenizer, longest: int) -> None:
        self.source, self.target, self._positions = source, target, longest
        self._aim(settings)
        self.learnt = settings.learnt or Learnt()
        taught = ((TERM_TAG, self.learnt.terms), (MATCH_TAG, self.learnt.matches))
        self._tags = {number: source.tag(number) for number, is_known in taught if is_known}
        self.placeholders = target.placeholders()
        self.blank = target.vocabulary.index(SPACE) if SPACE in target.vocabulary else None
        # Pieces that exist but were never seen in training would be translated into anything.
        known = self.placeholders.keys() & source.placeholders().keys()
        self.most_marks = min(len(known), self.learnt.marks)
        self._lock = threading.Lock()  # of all directions: a tokenizer remembers words; several threads may translate

    def towards(self, settings: BundleSettings) -> Self:
        """A reader in another direction, or with other tags, of the same pieces."""
        reader = copy.copy(self)
        reader._aim(settings)
        return reader

    def _aim(self, settings: BundleSettings) -> None:
        self.settings = settings
        self.source_begin, self.target_begin = list(settings.source_begin), list(settings.target_begin)
        self.longest = self._positions - len(self.source_begin)

    def normalize(self, texts: Sequence[str]) -> list[str]:
        return [normalize_text(text, self.settings.normalization) for text in texts]

    def length(self, text: str) -> int:
        """In pieces, without what stands around them."""
        return len(self.source_ids(self.normalize([text]))[0])

    def source_ids(self, tidy: Sequence[str]) -> list[list[int]]:
        """Blank text has no ids: there is nothing to translate."""
        return self._ids(self.source, tidy)

    def target_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return self._ids(self.target, self.normalize(texts))

    def phrase_ids(self, phrases: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        ids = iter(self.target_ids([phrase for some in phrases for phrase in some]))
        return [[found for _ in some if (found := next(ids))] for some in phrases]

    def tell(self, sentences: Sequence[SourceSentence], own: Sequence[list[int]]) -> list[list[int]]:
        """What each is told after its own ids: terms, and what a memory has, if that is no longer than what the model was taught."""
        terms = self._put_tags(TERM_TAG, [[term.targets[0] for term in each.care.terms] for each in sentences])
        matches = self._put_tags(MATCH_TAG, [[match] if (match := each.care.protect_match(each.match)) else [] for each in sentences])
        room = min(self.longest, self.learnt.longest or self.longest)
        each = zip(own, terms, matches, strict=True)
        return [[*some, *match] if len(ids) + len(some) + len(match) <= room else some for ids, some, match in each]

    def _put_tags(self, number: int, told: Sequence[Sequence[str]]) -> list[list[int]]:
        """Each text after this tag, as in training: "Konnektor" -> <tag:1> ▁Kon nektor. None where a model was not taught to use them."""
        if number not in self._tags:
            return [[] for _ in told]
        ids = iter(self.source_ids(self.normalize([text for some in told for text in some])))
        return [[each for _ in some for each in (self._tags[number], *next(ids))] for some in told]

    def add_source_begin(self, ids: list[int]) -> list[int]:
        """A source as the model reads it; nothing stays nothing."""
        return [*self.source_begin, *ids] if ids else []

    def _ids(self, tokenizer: Tokenizer, tidy: Sequence[str]) -> list[list[int]]:
        if not any(tidy):
            return [[] for _ in tidy]
        with self._lock:
            return tokenizer.encode_texts(["" if text.isspace() else text for text in tidy])
