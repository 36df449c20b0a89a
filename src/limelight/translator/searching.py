"""A `Searcher` finds candidates for sentences with an engine, batch by batch, and searches again where one loops or is empty.

Sorted by length, a batch has almost no padding. The longest come first, so that memory is at its peak at once instead of after an hour, and
what is left gets faster, never slower, than an estimate said.
"""

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from limelight.decoding.config import SearchSettings
from limelight.decoding.guards import Notice, find_looping
from limelight.decoding.steps import LATE, Hypothesis, Outcome
from limelight.engines.engine import Engine
from limelight.errors import ConfigError, MissingExtraError
from limelight.runtime import use_one_thread_here
from limelight.translator.loading import has_torch
from limelight.translator.sentences import Reader, SourceSentence, on_some

LEAST_PIECES = 256  # below this a batch takes no less time for being smaller
# Rows of a batch, beams included. Short sentences would else fill thousands, and a row has a logit for every piece of the vocabulary:
# 1,024 rows are 130 MB at 32,000 pieces. More are not faster on a CPU.
BATCH_ROWS = 1024
USUAL_BEAM = 4  # rows of a sentence with which the engines' sizes of batches were measured
NO_REPEAT = 3  # pieces: what a translation that loops is searched again without
Result = TypeVar("Result")


class Remedy(NamedTuple):
    """A remedy says how a translation can fail as a whole, and what a second search does about it."""

    fails: Callable[[SourceSentence], bool]
    helps: Callable[[SearchSettings], bool]  # else that is how it was searched already
    change: dict[str, int]
    message: str


REMEDIES = (
    # Nothing at all can have a better score than any translation, since it has only one probability to multiply (Stahlberg and Byrne 2019).
    Remedy(
        lambda sentence: not sentence.candidates[0].text.strip(),
        lambda settings: settings.min_length == 0 and settings.max_length > 1,
        {"min_length": 1},
        "the first translation was empty; this one was searched with at least one piece",
    ),
    Remedy(
        lambda sentence: find_looping(sentence.text, sentence.candidates[0].text) is not None,
        lambda settings: settings.no_repeat_ngram is None or settings.no_repeat_ngram > NO_REPEAT,
        {"no_repeat_ngram": NO_REPEAT},
        f"the first translation repeated itself; this one was searched without repeats of {NO_REPEAT} pieces",
    ),
)


class Searcher:
    """A searcher runs the batches, as many at once as the engine has workers. `load_spare` makes the engine for what this one lacks."""

    def __init__(self, engine: Engine, reader: Reader, load_spare: Callable[[], Engine] | None = None) -> None:
        self.engine, self.reader = engine, reader
        self.batch_pieces = engine.batch_pieces
        self.shares = True  # few sentences among all workers of the engine
        # Tags are put among the source's pieces and would be invisible; a placeholder that no request has stands for nothing.
        never = {*reader.target.controls(), *reader.placeholders.values()} - {reader.target.end}
        self._never = tuple(sorted(never))
        self._pool = None
        if engine.workers > 1:
            self._pool = ThreadPoolExecutor(engine.workers, "translate", initializer=use_one_thread_here)
        self._load_spare = load_spare
        self._spare: Searcher | None = None
        self._limit: int | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._last: tuple[SearchSettings | None, SearchSettings] = None, SearchSettings()  # settings, and as an engine is asked

    def spare(self) -> "Searcher | None":
        """The searcher of the other engine, loaded when it is needed for the first time; None when there is none."""
        with self._lock:
            if self._spare is None and self._load_spare is not None:
                self._spare = Searcher(self._load_spare(), self.reader)
                self._spare.batch_pieces = self._limit or self._spare.batch_pieces
            return self._spare

    def find_torch(self) -> Engine:
        """The engine that can be looked into: this one, or the one for what it lacks."""
        if not has_torch():
            raise MissingExtraError("torch", "looking inside a model", "desk")
        spare = None if self.engine.name == "torch" else self.spare()
        engine = self.engine if spare is None else spare.engine
        if engine.name != "torch":
            raise ConfigError(
                f"the engine {self.engine.name} cannot be looked into; load the translator with engine='torch', or without naming one"
            )
        return engine

    def limit(self, pieces: int) -> None:
        """Give every batch at most so many source pieces, also of an engine that is not loaded yet."""
        if pieces < 1:
            raise ConfigError(f"batches of {pieces} pieces hold nothing; give 1 or more")
        with self._lock:
            self.batch_pieces = self._limit = pieces
            if self._spare is not None:
                self._spare.batch_pieces = pieces

    def close(self) -> None:
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self.engine.close()
        if self._spare is not None:
            self._spare.close()

    def search(self, sentences: Sequence[SourceSentence], settings: SearchSettings, guards: bool) -> list[SourceSentence]:
        """Search, and once more, with a remedy, for the translations that loop or are empty. What the engine cannot do, the spare does."""
        lacking = {at: lacks for at, each in enumerate(sentences) if (lacks := self.lacks(each, settings))}
        if lacking:
            return self._search_by_both(sentences, settings, guards, lacking)
        found = self._find(sentences, settings)
        for remedy in REMEDIES if guards else ():
            failed = [at for at, each in enumerate(found) if each.candidates and remedy.fails(each)]
            chosen, helps = [found[at] for at in failed], remedy.helps(settings)
            # What cured the one failure must not be undone by the cure of the next.
            settings = settings.changed(**remedy.change) if helps else settings
            again = chosen and helps and not self.engine.lacks(settings, [each.request for each in chosen])
            second = self._find(chosen, settings) if again else [replace(each, candidates=[]) for each in chosen]
            for at, each in zip(failed, second, strict=True):
                found[at] = _better(remedy, found[at], each)
        return found

    def _search_by_both(
        self,
        sentences: Sequence[SourceSentence],
        settings: SearchSettings,
        guards: bool,
        lacking: dict[int, list[str]],
    ) -> list[SourceSentence]:
        """What the spare engine did is said."""
        spare = self.spare()
        if spare is None:
            words = list(dict.fromkeys(what for lacks in lacking.values() for what in lacks))
            raise ConfigError(f"the engine {self.engine.name} cannot do all that was asked for:", words)
        able = [at for at in range(len(sentences)) if at not in lacking]
        found = on_some(sentences, able, partial(self.search, settings=settings, guards=guards))
        found = on_some(found, list(lacking), partial(spare.search, settings=settings, guards=guards))
        for at, lacks in lacking.items():
            said = f"searched by {spare.engine.name}, since {self.engine.name} has no {'; '.join(lacks)}"
            found[at] = replace(found[at], notices=(*found[at].notices, Notice("engine", said)))
        return found

    def lacks(self, sentence: SourceSentence, settings: SearchSettings) -> list[str]:
        return [] if sentence.empty else self.engine.lacks(settings, [sentence.request])

    def _find(self, sentences: Sequence[SourceSentence], settings: SearchSettings) -> list[SourceSentence]:
        """Each with its candidates, best first, with different texts; what was drawn stays as it was drawn."""
        drawn = self._forbid(settings)
        requests = [each.request for each in sentences if not each.empty]

        def work(batch: list[int]) -> list[Outcome]:
            waiting = [i for i in batch if not requests[i].is_over()]
            outcomes = self.engine.search([requests[i] for i in waiting], drawn) if waiting else []
            found = dict(zip(waiting, outcomes, strict=True))
            return [found.get(i, LATE) for i in batch]

        # Drawing sorts and adds up whole rows of probabilities in float64: eight times what a beam holds of them.
        width = 8 * drawn.nbest if drawn.sampling is not None else drawn.beam
        # A batch lasts as long whatever the beam: some engines cannot stop within one.
        each = 1 if drawn.sampling is not None else max(1, drawn.beam // USUAL_BEAM)
        outcomes = iter(self.in_batches([len(request.source) * each for request in requests], width, work))
        read = ([] if one.empty else self._read(one, next(outcomes), settings) for one in sentences)
        return [one.fill(is_searched=True, candidates=some, attention=()) for one, some in zip(sentences, read, strict=True)]

    def _forbid(self, settings: SearchSettings) -> SearchSettings:
        """As the engine is asked: without pieces that mean nothing. Nearly always the settings are those of the last time."""
        known, drawn = self._last
        if known is not settings:
            drawn = settings.changed(suppress=(*settings.suppress, *self._never))
            if settings.mbr_samples is not None:
                drawn = drawn.changed(nbest=settings.mbr_samples, mbr_samples=None)
            self._last = settings, drawn
        return drawn

    def _read(self, sentence: SourceSentence, outcome: Outcome, settings: SearchSettings) -> list[Hypothesis]:
        """The hypotheses with their texts, without the ids that all began with, which are no text."""
        begin = sentence.request.given
        if not all(math.isfinite(hypothesis.score) for hypothesis in outcome.hypotheses):
            return []
        texts = self.reader.target.decode([hypothesis.ids[begin:] for hypothesis in outcome.hypotheses])
        read = [
            replace(h, ids=h.ids[begin:], log_probs=h.log_probs[begin:], text=text)
            for h, text in zip(outcome.hypotheses, texts, strict=True)
        ]
        if settings.mbr_samples is not None:
            from limelight.decoding.risk import choose

            read = [read[i] for i in choose([hypothesis.text for hypothesis in read])]
        elif settings.sampling:
            return read
        first: dict[str, Hypothesis] = {}
        for hypothesis in read:  # two ways to cut a text into pieces are one translation
            first.setdefault(hypothesis.text, hypothesis)
        return list(first.values())[: settings.nbest]

    def log_probs(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], begins: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """Of every target piece and the end. Sources as the model reads them, targets without what each of them begins with."""
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]

        def work(batch: list[int]) -> list[list[float]]:
            scored = self.engine.score([sources[i] for i in batch], [[*begins[i], *targets[i]] for i in batch])
            return [log_probs[len(begins[i]) :] for i, log_probs in zip(batch, scored, strict=True)]

        return self.in_batches(lengths, 1, work)

    def in_batches(self, lengths: Sequence[int], width: int, work: Callable[[list[int]], list[Result]]) -> list[Result]:
        """`work` on numbers of sentences, batch by batch; its results by number. `width`: rows that a sentence has."""
        if self._closed:
            raise ConfigError("the translator was closed; load it again")
        # Few sentences are shared out, so that no worker idles.
        share = max(LEAST_PIECES, -(-sum(lengths) // (self.engine.workers if self.shares else 1)))
        batches = cut_batches(lengths, min(self.batch_pieces, share), max(1, BATCH_ROWS // width))
        pool = self._pool if self.shares and len(batches) > 1 else None
        found: dict[int, Result] = {}
        # After an error or Ctrl-C what has not begun never will.
        for batch, results in zip(batches, (map if pool is None else pool.map)(work, batches), strict=True):
            found.update(zip(batch, results, strict=True))
        return [found[number] for number in range(len(lengths))]


def cut_batches(lengths: Sequence[int], pieces: int, rows: int = BATCH_ROWS) -> list[list[int]]:
    """Numbers of sentences, batch by batch: as many as rows * longest <= pieces allows, and always one.

    cut_batches([3, 9, 2, 8], pieces=18) -> [[1, 3], [0, 2]]
    """
    batches: list[list[int]] = []
    room = 0
    for number in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not room:
            batches.append([])
            room = max(1, min(rows, pieces // max(1, lengths[number])))
        batches[-1].append(number)
        room -= 1
    return batches


def _better(remedy: Remedy, first: SourceSentence, second: SourceSentence) -> SourceSentence:
    """The second translation if it fails neither so nor in a way that was cured before, else the better scored."""
    cured = REMEDIES[: REMEDIES.index(remedy) + 1]
    if not second.candidates:
        return replace(first, is_degenerate=True)
    if not any(each.fails(second) for each in cured):
        return replace(second, notices=(*first.notices, Notice("redecoded", remedy.message)), is_degenerate=False)
    better = second if second.candidates[0].score > first.candidates[0].score else first
    return replace(better, is_degenerate=True)
