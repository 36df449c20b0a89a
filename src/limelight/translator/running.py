"""A `SentenceRunner` takes sentences through the engines and gives their translations.
The first search is with any engine; the second, under constraints, is for the few that need one.

A server, which has many callers, begins with `begin` and ends with `end`: a second search takes several times as long as a
first, and those whose translation is done need not wait for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from limelight.decoding.config import SearchSettings
from limelight.decoding.guards import Notice
from limelight.engines.engine import Engine
from limelight.errors import ConfigError, LimelightError
from limelight.translator.careful.sentence_alignment import alignments
from limelight.translator.careful.two_searches import CarefulRequest, CarefulResult, CarefulSearch
from limelight.translator.planned import TranslationOptions
from limelight.translator.presenting import Presenter
from limelight.translator.searching import Searcher, SearchResult, Spare
from limelight.translator.sentences import Reader, SourceSentence
from limelight.translator.translation import Alignment, Translation, nothing

UNABLE = SearchResult([])  # this engine has no search for it
LogProbs = Callable[[Sequence[Sequence[int]], Sequence[Sequence[int]]], list[list[float]]]


@dataclass(frozen=True)
class PostponedSentence:
    """A postponed sentence is not done. `first`: what the first search found, with its faults; None where the engine cannot do what was
    asked for."""

    asked: CarefulRequest
    first: CarefulResult | None


class SentenceRunner:
    """A runner asks for `log_probs` of given pairs where an engine does not tell those of what it found."""

    def __init__(
        self,
        searcher: Searcher,
        spare: Spare,
        careful: CarefulSearch,
        reader: Reader,
        presenter: Presenter,
        log_probs: LogProbs,
    ) -> None:
        self.searcher, self.spare, self.careful = searcher, spare, careful
        self.reader, self.presenter, self.log_probs = reader, presenter, log_probs

    @property
    def engine(self) -> Engine:
        return self.searcher.engine

    def run(
        self, asked: Sequence[CarefulRequest], settings: SearchSettings, wanted: TranslationOptions
    ) -> list[Translation | None]:
        """One for each sentence. None where the model's scores are no numbers, or its time was over before it was done."""
        found = self.careful.first(asked, lambda sentences: self._answers(sentences, settings, wanted.guards))
        return self._present(self._again(asked, found, settings, wanted), wanted)

    def begin(
        self, asked: Sequence[CarefulRequest], settings: SearchSettings, wanted: TranslationOptions
    ) -> list[Translation | PostponedSentence | None]:
        """As `run`, but what needs a second search, or another engine, is postponed."""

        def search(sentences: Sequence[SourceSentence]) -> list[SearchResult]:
            able = [at for at, each in enumerate(sentences) if not self.engine.lacks(settings, [each.request])]
            answers = self.searcher.answers([sentences[at] for at in able], settings, wanted.guards) if able else []
            found = dict(zip(able, answers, strict=True))
            return [found.get(at, UNABLE) for at in range(len(sentences))]

        first = self.careful.first(asked, search)
        result: list[Translation | PostponedSentence | None] = [None] * len(asked)
        done = []
        for at, (each, found) in enumerate(zip(asked, first, strict=True)):
            if found.answer is UNABLE:
                result[at] = PostponedSentence(each, None)
            elif wanted.guards and self.careful.harder(each, found):
                result[at] = PostponedSentence(each, found)
            else:
                done.append(at)
        for at, translation in zip(done, self._present([first[at] for at in done], wanted), strict=True):
            result[at] = translation
        return result

    def end(
        self, postponed: Sequence[PostponedSentence], settings: SearchSettings, wanted: TranslationOptions
    ) -> list[Translation | None]:
        """Finish the sentences that `begin` postponed."""
        new = [at for at, each in enumerate(postponed) if each.first is None]
        made: dict[int, Translation | None] = {}
        made.update(zip(new, self.run([postponed[at].asked for at in new], settings, wanted), strict=True))
        known = [(at, each.asked, each.first) for at, each in enumerate(postponed) if each.first is not None]
        found = self._again([asked for _, asked, _ in known], [first for _, _, first in known], settings, wanted)
        made.update(zip([at for at, _, _ in known], self._present(found, wanted), strict=True))
        return [made[at] for at in range(len(postponed))]

    def _again(
        self,
        asked: Sequence[CarefulRequest],
        first: list[CarefulResult],
        settings: SearchSettings,
        wanted: TranslationOptions,
    ) -> list[CarefulResult]:
        def again(sentences: Sequence[SourceSentence]) -> list[SearchResult]:
            """Phrases need a plain beam. What cannot be searched so, by an engine without constraints or for lack of room, keeps its
            first answer, and fails nobody else's."""
            plain = {"sampling": None, "mbr_samples": None, "groups": 1, "nbest": min(settings.nbest, settings.beam)}
            bound = settings.changed(**plain) if any(each.request.phrases for each in sentences) else settings
            try:
                return self._answers(sentences, bound, wanted.guards)
            except LimelightError:
                return [SearchResult([])] if len(sentences) == 1 else [again([each])[0] for each in sentences]

        return self.careful.second(asked, first, again) if wanted.guards else first

    def _present(self, found: list[CarefulResult], wanted: TranslationOptions) -> list[Translation | None]:
        # What was found before the end of a search that was ended is not what the search would have found.
        spoken = [at for at, each in enumerate(found) if each.answer.candidates and not each.sentence.request.is_over()]
        heard = [found[at] for at in spoken]
        if wanted.probabilities:
            heard = self._with_probabilities(heard)
        links: list[list[Alignment]] | list[None] = [None] * len(heard)
        if wanted.align:
            links = alignments(heard, self.engine, self.searcher, self.reader)
        result: list[Translation | None] = [nothing(each.care.given) if each.sentence.empty else None for each in found]
        for at, each, link in zip(spoken, heard, links, strict=True):
            result[at] = self.presenter.translation(each, link, wanted.guards)
        return result

    def _answers(
        self, sentences: Sequence[SourceSentence], settings: SearchSettings, guards: bool
    ) -> list[SearchResult]:
        """From the engine, and for what it cannot do from the spare one, which is said."""
        lacking = [self.engine.lacks(settings, [sentence.request]) for sentence in sentences]
        missed = [at for at, lacks in enumerate(lacking) if lacks]
        if not missed:
            return self.searcher.answers(sentences, settings, guards)
        spare = self.spare.searcher()
        if spare is None:
            words = list(dict.fromkeys(what for lacks in lacking for what in lacks))
            raise ConfigError(f"the engine {self.engine.name} cannot do all that was asked for:", words)
        able = [at for at, lacks in enumerate(lacking) if not lacks]
        said = f"searched by {spare.engine.name}, since {self.engine.name} has no"
        found = dict(zip(able, self.searcher.answers([sentences[at] for at in able], settings, guards), strict=True))
        for at, answer in zip(missed, spare.answers([sentences[at] for at in missed], settings, guards), strict=True):
            notice = Notice("engine", f"{said} {'; '.join(lacking[at])}")
            found[at] = replace(answer, notices=(*answer.notices, notice))
        return [found[at] for at in range(len(sentences))]

    def _with_probabilities(self, found: Sequence[CarefulResult]) -> list[CarefulResult]:
        """Those of every piece, where the engine gave only their sum."""
        unknown = [(each, c) for each in found for c in each.answer.candidates if not c.hypothesis.log_probs]
        sources = [each.sentence.request.source for each, _ in unknown]
        scores = iter(self.log_probs(sources, [candidate.hypothesis.ids for _, candidate in unknown]))
        told = {id(c): replace(c.hypothesis, log_probs=next(scores)[: c.hypothesis.steps]) for _, c in unknown}
        result = []
        for each in found:
            known = [replace(c, hypothesis=told.get(id(c), c.hypothesis)) for c in each.answer.candidates]
            result.append(replace(each, answer=replace(each.answer, candidates=known)))
        return result
