"""A `Searcher` finds candidates for sentences with an engine, and searches again where one loops or is empty."""

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from limelight.decoding.config import SearchSettings
from limelight.decoding.guards import Notice, find_looping
from limelight.decoding.risk import choose
from limelight.decoding.steps import LATE, Hypothesis, Outcome
from limelight.engines.engine import Engine
from limelight.runtime import use_one_thread_here
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.translator.batching import BATCH_ROWS, LEAST_PIECES, cut, run
from limelight.translator.sentences import SourceSentence

USUAL_BEAM = 4  # rows of a sentence with which the engines' sizes of batches were measured
NO_REPEAT = 3  # pieces: what a translation that loops is searched again without
Result = TypeVar("Result")


@dataclass(frozen=True)
class Candidate:
    """A candidate is a hypothesis and its text."""

    hypothesis: Hypothesis
    text: str


@dataclass(frozen=True)
class SearchResult:
    """A search result is the candidates of a sentence, best first, and what happened on the way. None at all where the scores were not
    numbers, or its time was over."""

    candidates: list[Candidate]
    degenerate: bool = False
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Remedy:
    """A remedy says how a translation can fail as a whole, and what a second search does about it."""

    fails: Callable[[SourceSentence, Sequence[Candidate]], bool]
    changed: Callable[[SearchSettings], SearchSettings | None]  # None: that is how it was searched already
    message: str


def _loops(sentence: SourceSentence, candidates: Sequence[Candidate]) -> bool:
    return bool(candidates) and find_looping(sentence.text, candidates[0].text) is not None


def _without_repeats(settings: SearchSettings) -> SearchSettings | None:
    already = settings.no_repeat_ngram is not None and settings.no_repeat_ngram <= NO_REPEAT
    return None if already else settings.changed(no_repeat_ngram=NO_REPEAT)


def _is_empty(sentence: SourceSentence, candidates: Sequence[Candidate]) -> bool:
    return bool(candidates) and not candidates[0].text.strip()


def _not_empty(settings: SearchSettings) -> SearchSettings | None:
    return settings.changed(min_length=1) if settings.min_length == 0 and settings.max_length > 1 else None


REMEDIES = (
    # Nothing at all can have a better score than any translation, since it has only one probability to multiply (Stahlberg and Byrne 2019).
    Remedy(_is_empty, _not_empty, "the first translation was empty; this one was searched with at least one piece"),
    Remedy(
        _loops,
        _without_repeats,
        f"the first translation repeated itself; this one was searched without repeats of {NO_REPEAT} pieces",
    ),
)


class Searcher:
    """A searcher runs the batches, as many at once as the engine has workers."""

    def __init__(self, engine: Engine, target: Tokenizer) -> None:
        self.engine, self.target = engine, target
        self.batch_pieces = engine.batch_pieces
        self.shares = True  # few sentences among all workers of the engine
        # Tags are put among the source's pieces and would be invisible; a placeholder that no request has stands for nothing.
        self._never = tuple(sorted({*target.controls(), *target.placeholders().values()} - {target.end}))
        self._pool = None
        if engine.workers > 1:
            self._pool = ThreadPoolExecutor(engine.workers, "translate", initializer=use_one_thread_here)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self.engine.close()

    def answers(
        self, sentences: Sequence[SourceSentence], settings: SearchSettings, guards: bool
    ) -> list[SearchResult]:
        """Search, and once more, with a remedy, for the translations that loop or are empty."""
        answers = [SearchResult(candidates) for candidates in self._search(sentences, settings)]
        for remedy in REMEDIES if guards else ():
            failed = [i for i, answer in enumerate(answers) if remedy.fails(sentences[i], answer.candidates)]
            again: list[list[Candidate]] = [[] for _ in failed]
            careful, chosen = remedy.changed(settings), [sentences[i] for i in failed]
            settings = careful or settings  # what cured the one failure must not be undone by the cure of the next
            if failed and careful and not self.engine.lacks(careful, [sentence.request for sentence in chosen]):
                again = self._search(chosen, careful)
            for i, second in zip(failed, again, strict=True):
                answers[i] = _better(remedy, sentences[i], answers[i], second)
        return answers

    def in_batches(self, lengths: Sequence[int], width: int, work: Callable[[list[int]], list[Result]]) -> list[Result]:
        """`work` on numbers of sentences, batch by batch; its results by number. `width`: rows that a sentence has."""
        # Few sentences are shared out, so that no worker idles.
        share = max(LEAST_PIECES, -(-sum(lengths) // (self.engine.workers if self.shares else 1)))
        pool = self._pool if self.shares else None
        batches = cut(lengths, min(self.batch_pieces, share), max(1, BATCH_ROWS // width))
        found: dict[int, Result] = {}
        for batch, results in zip(batches, run(pool, work, batches), strict=True):
            found.update(zip(batch, results, strict=True))
        return [found[number] for number in range(len(lengths))]

    def log_probs(
        self, begin: Sequence[int], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """Of every target piece and the end. Sources as the model reads them, targets without `begin`, with which all of them begin."""
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]

        def work(batch: list[int]) -> list[list[float]]:
            scored = self.engine.score([sources[i] for i in batch], [[*begin, *targets[i]] for i in batch])
            return [log_probs[len(begin) :] for log_probs in scored]

        return self.in_batches(lengths, 1, work)

    def _search(self, sentences: Sequence[SourceSentence], settings: SearchSettings) -> list[list[Candidate]]:
        """The candidates of each sentence, best first, with different texts; what was drawn stays as it was drawn."""
        drawn = settings.changed(suppress=(*settings.suppress, *self._never))
        if settings.mbr_samples is not None:
            drawn = drawn.changed(nbest=settings.mbr_samples, mbr_samples=None)
        requests = [sentence.request for sentence in sentences]

        def work(batch: list[int]) -> list[Outcome]:
            waiting = [i for i in batch if not requests[i].is_over()]
            outcomes = self.engine.search([requests[i] for i in waiting], drawn) if waiting else []
            found = dict(zip(waiting, outcomes, strict=True))
            return [found.get(i, LATE) for i in batch]

        # Drawing sorts and adds up whole rows of probabilities in float64: eight times what a beam holds of them.
        width = 8 * drawn.nbest if drawn.sampling is not None else drawn.beam
        # A batch lasts as long whatever the beam: some engines cannot stop within one.
        each = 1 if drawn.sampling is not None else max(1, drawn.beam // USUAL_BEAM)
        outcomes = self.in_batches([len(request.source) * each for request in requests], width, work)
        shown = [_strip_begin(outcome, sentence.hidden) for sentence, outcome in zip(sentences, outcomes, strict=True)]
        texts = iter(self.target.decode([hypothesis.ids for hypotheses in shown for hypothesis in hypotheses]))
        result = []
        for hypotheses in shown:
            candidates = [Candidate(hypothesis, next(texts)) for hypothesis in hypotheses]
            if not all(math.isfinite(candidate.hypothesis.score) for candidate in candidates):
                candidates = []
            if settings.mbr_samples is not None:
                candidates = [candidates[i] for i in choose([candidate.text for candidate in candidates])]
            result.append(
                candidates
                if settings.sampling and settings.mbr_samples is None
                else _distinct(candidates)[: settings.nbest]
            )
        return result


class Spare:
    """A spare is the searcher of another engine, loaded when it is needed for the first time."""

    def __init__(self, load: Callable[[], Engine] | None, target: Tokenizer) -> None:
        self._load, self._target = load, target
        self._loaded: Searcher | None = None
        self._pieces: int | None = None
        self._lock = threading.Lock()

    def searcher(self) -> Searcher | None:
        """None when there is no other engine."""
        with self._lock:
            if self._loaded is None and self._load is not None:
                self._loaded = Searcher(self._load(), self._target)
                self._loaded.batch_pieces = self._pieces or self._loaded.batch_pieces
            return self._loaded

    def limit(self, pieces: int) -> None:
        """Source pieces of a batch, also of an engine that is not loaded yet."""
        with self._lock:
            self._pieces = pieces
            if self._loaded is not None:
                self._loaded.batch_pieces = pieces

    def close(self) -> None:
        with self._lock:
            if self._loaded is not None:
                self._loaded.close()


def _strip_begin(outcome: Outcome, hidden: int) -> list[Hypothesis]:
    """Without the ids that all began with, which are no text."""
    if not hidden:
        return outcome.hypotheses
    return [replace(h, ids=h.ids[hidden:], log_probs=h.log_probs[hidden:]) for h in outcome.hypotheses]


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The first with each text: two ways to cut a text into pieces are one translation."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.text, candidate)
    return list(first.values())


def _better(remedy: Remedy, sentence: SourceSentence, first: SearchResult, second: list[Candidate]) -> SearchResult:
    """The second translation if it fails neither so nor in a way that was cured before, else the better scored."""
    cured = REMEDIES[: REMEDIES.index(remedy) + 1]
    if second and not any(each.fails(sentence, second) for each in cured):
        return SearchResult(second, notices=(*first.notices, Notice("redecoded", remedy.message)))
    if second and second[0].hypothesis.score > first.candidates[0].hypothesis.score:
        return SearchResult(second, degenerate=True, notices=first.notices)
    return replace(first, degenerate=True)
