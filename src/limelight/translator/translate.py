"""Text in, `Translation` out: normalize, pieces, sort, batch, search, text again, judge, and back in order.

The translation of a sentence depends on the sentence alone: not on its neighbours, its place, or the size of the batches. In float32 the
last bits of a score may; that changes a translation only where two are equally good. In bfloat16, which accelerators are given, it happens
more often.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from limelight.bundle import BundleSettings, read
from limelight.decoding.config import SearchSettings
from limelight.decoding.guards import Notice, judge
from limelight.engines.engine import Engine, Matrix
from limelight.errors import ConfigError, DataError
from limelight.text.languages import base, density
from limelight.text.tokenizer import Tokenizer
from limelight.translator.alignment import aligned, given_words, owners
from limelight.translator.loading import open_engines
from limelight.translator.searching import Answer, Candidate, Searcher, Spare
from limelight.translator.sentences import Reader, Sentence, checked
from limelight.translator.translation import (
    Alignment,
    Alternative,
    InvalidScoresError,
    Scored,
    Translation,
    confidence_of,
    likely,
    nothing,
    pieces_of,
)


class Translator:
    """Translator.load("en-de").translate(["A cat sits on the mat."]). Several threads may use one."""

    def __init__(
        self, engine: Engine, settings: BundleSettings, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
    ) -> None:
        self.engine, self.settings = engine, settings
        self.runs_on: tuple[str, ...] = (engine.name,)  # what it was decided to run on, and why
        self._spare = Spare(None, target_tokenizer)
        self._reader = Reader(settings, source_tokenizer, target_tokenizer, engine.longest_source)
        self._searcher = Searcher(engine, target_tokenizer)
        source, target = settings.languages
        self._expected = density(target) / density(source)
        self._same_language = base(source) == base(target)

    @classmethod
    def load(
        cls,
        folder: Path | str,
        device: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        engine: str | None = None,
    ) -> Self:
        """Open a bundle, or the bundle of a run. With CTranslate2 if it was exported for it, else with torch, unless `engine` says.

        Torch on a CPU in float32 unless asked: in bfloat16 a translation would depend on its batch. There `threads` batches run at
        once, with one thread each: two threads for one batch wait for each other in every small operation, and on busy cores for long
        (docs/translate.md). This sets torch's threads for the whole process.
        """
        bundle = read(Path(folder))
        engines = open_engines(bundle, device, dtype, threads, engine)
        translator = cls(engines.first, bundle.settings, bundle.source_tokenizer, bundle.target_tokenizer)
        translator.runs_on, translator._spare = engines.runs_on, Spare(engines.spare, bundle.target_tokenizer)
        return translator

    def translate(
        self,
        texts: Sequence[str],
        search: SearchSettings | None = None,
        *,
        prefixes: Sequence[str] | None = None,
        phrases: Sequence[Sequence[str]] | None = None,
        align: bool = False,
        guards: bool = True,
        probabilities: bool = False,
    ) -> list[Translation]:
        """One translation for each text, in order. `search` is the bundle's own unless given.

        `probabilities` asks for those of the pieces: torch always tells them, CTranslate2 needs a second look.

        A prefix is what the translation begins with: it is cut into pieces like a text of its own. One that ends inside a word may be
        gone on with ("Kat" -> "Katze") or be followed by a new word, as the model finds likelier. A space at its end does not count.
        Phrases are what occurs in the translation, each from the beginning of a word on; its last word may get an ending.
        """
        settings = self.settings.search if search is None else search
        sentences = self._reader.read(texts, prefixes, phrases)
        places = [i for i, sentence in enumerate(sentences) if not sentence.empty]
        asked = [sentences[i] for i in places]
        answers = self._answers(asked, settings, guards)
        if invalid := [i for i, answer in zip(places, answers, strict=True) if not answer.candidates]:
            raise InvalidScoresError(invalid)
        if probabilities:
            answers = self._with_probabilities(asked, answers)
        alignments = self._alignments(asked, answers) if align else [None] * len(asked)
        result = [nothing(sentence.given) for sentence in sentences]
        for i, answer, links in zip(places, answers, alignments, strict=True):
            notices = [*sentences[i].notices, *answer.notices, *self._judged(sentences[i], answer, guards)]
            result[i] = self._translation(sentences[i], answer, links, notices)
        return result

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
        """How probable given translations are."""
        if len(checked(sources, "sources")) != len(checked(targets, "targets")):
            raise DataError(f"there are {len(sources)} sources and {len(targets)} targets; give pairs")
        reader = self._reader
        source_ids, target_ids = (
            reader.source_ids(reader.tidied(sources)),
            reader.target_ids(reader.tidied(targets)),
        )
        for number, ids in enumerate(source_ids):
            if not 0 < len(ids) <= reader.longest:
                raise DataError(
                    f"sources[{number}] has {len(ids)} pieces; give 1 to {reader.longest} of them, or leave the pair out"
                )
        found = self._log_probs([reader.begun(ids) for ids in source_ids], target_ids)
        if invalid := [i for i, log_probs in enumerate(found) if not all(map(math.isfinite, log_probs))]:
            raise InvalidScoresError(invalid)
        return [
            Scored(sum(log_probs), confidence_of(log_probs), pieces_of(reader.target.pieces(ids), log_probs))
            for ids, log_probs in zip(target_ids, found, strict=True)
        ]

    def _log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Of every target piece and the end. Sources as the model reads them, targets without the ids that all begin with."""
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        begin = self._reader.target_begin

        def work(batch: list[int]) -> list[list[float]]:
            scored = self.engine.score([sources[i] for i in batch], [[*begin, *targets[i]] for i in batch])
            return [log_probs[len(begin) :] for log_probs in scored]

        return self._searcher.in_batches(lengths, 1, work)

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts as the model reads them, without the end."""
        return [
            self._reader.begun(ids) for ids in self._reader.source_ids(self._reader.tidied(checked(texts, "texts")))
        ]

    def target_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts as the model writes them, without the end."""
        begin = self._reader.target_begin
        return [[*begin, *ids] for ids in self._reader.target_ids(self._reader.tidied(checked(texts, "texts")))]

    @property
    def batch_pieces(self) -> int:
        """Source pieces of a batch, padding included: more need more memory, and are faster up to a point."""
        return self._searcher.batch_pieces

    @batch_pieces.setter
    def batch_pieces(self, pieces: int) -> None:
        if pieces < 1:
            raise ConfigError(f"batches of {pieces} pieces hold nothing; give 1 or more")
        self._searcher.batch_pieces = pieces
        self._spare.limit(pieces)

    def close(self) -> None:
        self._searcher.close()
        self._spare.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answers(self, sentences: Sequence[Sentence], settings: SearchSettings, guards: bool) -> list[Answer]:
        """From the engine, and for what it cannot do from the spare one, which is said."""
        lacking = [self.engine.lacks(settings, [sentence.request]) for sentence in sentences]
        missed = [at for at, lacks in enumerate(lacking) if lacks]
        if not missed:
            return self._searcher.answers(sentences, settings, guards)
        spare = self._spare.searcher()
        if spare is None:
            words = list(dict.fromkeys(what for lacks in lacking for what in lacks))
            raise ConfigError(f"the engine {self.engine.name} cannot do all that was asked for:", words)
        able = [at for at, lacks in enumerate(lacking) if not lacks]
        said = f"searched by {spare.engine.name}, since {self.engine.name} has no"
        found = dict(zip(able, self._searcher.answers([sentences[at] for at in able], settings, guards), strict=True))
        for at, answer in zip(missed, spare.answers([sentences[at] for at in missed], settings, guards), strict=True):
            notice = Notice("engine", f"{said} {'; '.join(lacking[at])}")
            found[at] = replace(answer, notices=(*answer.notices, notice))
        return [found[at] for at in range(len(sentences))]

    def _with_probabilities(self, sentences: Sequence[Sentence], answers: list[Answer]) -> list[Answer]:
        """Those of every piece, where the engine gave only their sum."""
        unknown = [(at, c) for at, a in enumerate(answers) for c in a.candidates if not c.hypothesis.log_probs]
        sources = [sentences[at].request.source for at, _ in unknown]
        scores = iter(self._log_probs(sources, [candidate.hypothesis.ids for _, candidate in unknown]))
        told = {id(c): replace(c.hypothesis, log_probs=next(scores)[: c.hypothesis.steps]) for _, c in unknown}
        return [
            replace(a, candidates=[replace(c, hypothesis=told.get(id(c), c.hypothesis)) for c in a.candidates])
            for a in answers
        ]

    def _judged(self, sentence: Sentence, answer: Answer, guards: bool) -> list[Notice]:
        best, notices = answer.candidates[0], []
        if best.hypothesis.finish == "length":
            count = len(best.hypothesis.ids)
            notices.append(Notice("length", f"the translation was ended at its limit, after {count} pieces"))
        return notices + (judge(sentence.text, best.text, self._expected, self._same_language) if guards else [])

    def _translation(
        self, sentence: Sentence, answer: Answer, alignments: list[Alignment] | None, notices: list[Notice]
    ) -> Translation:
        made = [self._alternative(candidate) for candidate in answer.candidates]
        if alignments is not None:
            made = [replace(one, alignment=links) for one, links in zip(made, alignments, strict=True)]
        return Translation(
            **vars(made[0]),
            source=sentence.given,
            source_pieces=len(sentence.request.source),
            alternatives=made[1:],
            degenerate=answer.degenerate,
            warnings=notices,
        )

    def _alternative(self, candidate: Candidate) -> Alternative:
        hypothesis = candidate.hypothesis
        return Alternative(
            text=candidate.text,
            score=hypothesis.score,
            confidence=likely(hypothesis.mean_log_prob),
            pieces=pieces_of(self._reader.target.pieces(hypothesis.ids), hypothesis.log_probs),
            finish=hypothesis.finish,
        )

    def _alignments(self, sentences: Sequence[Sentence], answers: Sequence[Answer]) -> list[list[Alignment]]:
        """Of every candidate of every sentence."""
        pairs = [
            (sentence, candidate.hypothesis.ids)
            for sentence, answer in zip(sentences, answers, strict=True)
            for candidate in answer.candidates
        ]
        lengths = [len(sentence.request.source) + len(ids) for sentence, ids in pairs]
        unseen = len(self._reader.source_begin)

        def work(batch: list[int]) -> list[Matrix]:
            sources, begin = [pairs[i][0].request.source for i in batch], self._reader.target_begin
            seen = self.engine.attend(sources, [[*begin, *pairs[i][1]] for i in batch])
            return [weights[len(begin) :, unseen:] for weights in seen]

        weights = iter(self._searcher.in_batches(lengths, 1, work))
        result = []
        for sentence, answer in zip(sentences, answers, strict=True):
            source = self._reader.source.pieces(sentence.request.source[unseen:])
            words = self._given_words(sentence)
            targets = [self._reader.target.pieces(candidate.hypothesis.ids) for candidate in answer.candidates]
            result.append([aligned(next(weights), source, target, words) for target in targets])
        return result

    def _given_words(self, sentence: Sentence) -> list[int] | None:
        """Normalization may join, part or remove words; links are between the words as they were given."""
        if sentence.text == sentence.given:
            return None
        return owners(self._reader.tidied(given_words(sentence.given)))
