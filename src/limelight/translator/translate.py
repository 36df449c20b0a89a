"""Text in, `Translation` out: cut, protect, normalize, pieces, sort, batch, search, text again, check, restore, judge, and back in order.

The translation of a sentence depends on the sentence alone: not on its neighbours, its place, or the size of the batches. In float32 the
last bits of a score may; that changes a translation only where two are equally good. In bfloat16, which accelerators are given, it happens
more often.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from limelight.bundle import BundleSettings, Learnt, read
from limelight.bundle.confidence import Calibration
from limelight.decoding.config import SearchSettings
from limelight.decoding.guards import Notice
from limelight.engines.engine import Engine
from limelight.errors import ConfigError, DataError, LimelightError
from limelight.text.glossary import Glossary
from limelight.text.tokenizer import Tokenizer
from limelight.translator.aligning import alignments
from limelight.translator.care import Keeper
from limelight.translator.careful import Asked, Careful, Found
from limelight.translator.loading import open_engines
from limelight.translator.parts import Cutter, joined
from limelight.translator.presenting import Presenter
from limelight.translator.searching import Answer, Searcher, Spare
from limelight.translator.sentences import Reader, Sentence, checked, many_each, one_each
from limelight.translator.translation import (
    Alignment,
    InvalidScoresError,
    Scored,
    Translation,
    confidence_of,
    nothing,
    pieces_of,
)

LEAST_CUT = 64  # pieces: whoever asks for shorter translations wants them short, not in parts
GROWTH = 1.25  # pieces of a translation for one of its source, where the search has a limit
GLOSSARY = "glossary.tsv"  # in the folder of a bundle: a person's own file, to be edited at any time, so the manifest does not know it


@dataclass(frozen=True)
class Wanted:
    """What is wanted beside the text."""

    align: bool
    guards: bool
    probabilities: bool


class Translator:
    """Translator.load("en-de").translate(["A cat sits on the mat."]). Several threads may use one."""

    def __init__(
        self, engine: Engine, settings: BundleSettings, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
    ) -> None:
        self.engine, self.settings = engine, settings
        self.runs_on: tuple[str, ...] = (engine.name,)  # what it was decided to run on, and why
        self.glossary: Glossary | None = None  # for texts that come without one
        self._spare = Spare(None, target_tokenizer)
        self._reader = Reader(settings, source_tokenizer, target_tokenizer, engine.longest_source)
        self._searcher = Searcher(engine, target_tokenizer)
        self._keeper = Keeper(settings, source_tokenizer, target_tokenizer)
        learnt = settings.learnt or Learnt()
        self._careful = Careful(self._reader, self._keeper, learnt.terms)
        longest = min(self._reader.longest, learnt.longest or self._reader.longest)
        self._cutter = Cutter(settings.languages[0], self._reader.length, longest, self._keeper.most or None)
        self._presenter = Presenter(settings, target_tokenizer)

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
        if (terms := bundle.folder / GLOSSARY).is_file():
            translator.glossary = Glossary.load(terms, bundle.settings.languages)
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
        protect: bool = True,
        glossary: Glossary | Sequence[Glossary | None] | None = None,
        segment: bool | None = None,
    ) -> list[Translation]:
        """One translation for each text, in order. `search` is the bundle's own unless given.

        `protect`: placeholders, tags, addresses and the like come back as they are, or `protected` says that they do not.
        `glossary`: its terms, where a text has them, are translated as it says; one for all texts, or one for each. None: the one that
        lies with the bundle, if there is one.
        `segment`: each sentence of a text is translated by itself, with all between them kept. None: only in texts of several lines, or
        longer than the model takes. A text with a prefix or phrases of its own stays whole.

        `probabilities` asks for those of the pieces: torch always tells them, CTranslate2 needs a second look.

        A prefix is what the translation begins with: it is cut into pieces like a text of its own. One that ends inside a word may be
        gone on with ("Kat" -> "Katze") or be followed by a new word, as the model finds likelier. A space at its end does not count.
        Phrases are what occurs in the translation, each from the beginning of a word on; its last word may get an ending.
        """
        settings = self.settings.search if search is None else search
        given = checked(texts, "texts")
        glossaries = _one_each(self.glossary if glossary is None else glossary, len(given))
        begins, needed = one_each(prefixes, "prefixes", len(given)), many_each(phrases, len(given))
        longest = max(LEAST_CUT, round(settings.max_length / GROWTH))
        cuts = [
            self._cutter.cut(text, False if begins[at] or needed[at] else segment, longest)
            for at, text in enumerate(given)
        ]
        owner = [at for at, cut in enumerate(cuts) for _ in cut.parts]
        asked = []
        for at, part in zip(owner, (part for cut in cuts for part in cut.parts), strict=True):
            known = glossaries[at]
            terms = [] if known is None else known.found(self._keeper.opaque(part.text))
            asked.append(Asked(self._keeper.take(part.text, terms, watched=protect), begins[at], needed[at]))
        made = iter(self._translated(asked, owner, settings, Wanted(align, guards, probabilities)))
        return [joined(cut, [next(made) for _ in cut.parts]) for cut in cuts]

    def _translated(
        self, asked: Sequence[Asked], owner: Sequence[int], settings: SearchSettings, wanted: Wanted
    ) -> list[Translation]:
        """One for each sentence; `owner` is the number of the text that it is part of."""

        def search(sentences: Sequence[Sentence]) -> list[Answer]:
            return self._answers(sentences, settings, wanted.guards)

        def again(sentences: Sequence[Sentence]) -> list[Answer]:
            """Phrases need a plain beam. What cannot be searched so, by an engine without constraints or for lack of room, keeps its
            first answer, and fails nobody else's."""
            plain = {"sampling": None, "mbr_samples": None, "groups": 1, "nbest": min(settings.nbest, settings.beam)}
            bound = settings.changed(**plain) if any(each.request.phrases for each in sentences) else settings
            try:
                return self._answers(sentences, bound, wanted.guards)
            except LimelightError:
                return [Answer([])] if len(sentences) == 1 else [again([each])[0] for each in sentences]

        found = self._careful.translate(asked, search, again if wanted.guards else None)
        spoken = [at for at, each in enumerate(found) if not each.sentence.empty]
        if invalid := sorted({owner[at] for at in spoken if not found[at].answer.candidates}):
            raise InvalidScoresError(invalid)
        if wanted.probabilities:
            told = self._with_probabilities([found[at] for at in spoken])
            found = [*found]
            for at, each in zip(spoken, told, strict=True):
                found[at] = each
        heard = [found[at] for at in spoken]
        links: list[list[Alignment]] | list[None] = [None] * len(heard)
        if wanted.align:
            links = alignments(heard, self.engine, self._searcher, self._reader)
        result = [nothing(each.care.given) for each in asked]
        for at, each, link in zip(spoken, heard, links, strict=True):
            result[at] = self._presenter.translation(each, link, wanted.guards)
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
    def calibration(self) -> Calibration | None:
        """What is true of what the model claims; the bundle's own. None: confidence is what the model claims."""
        return self._presenter.calibration

    @calibration.setter
    def calibration(self, calibration: Calibration | None) -> None:
        self._presenter.calibration = calibration

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

    def _with_probabilities(self, found: Sequence[Found]) -> list[Found]:
        """Those of every piece, where the engine gave only their sum."""
        unknown = [(each, c) for each in found for c in each.answer.candidates if not c.hypothesis.log_probs]
        sources = [each.sentence.request.source for each, _ in unknown]
        scores = iter(self._log_probs(sources, [candidate.hypothesis.ids for _, candidate in unknown]))
        told = {id(c): replace(c.hypothesis, log_probs=next(scores)[: c.hypothesis.steps]) for _, c in unknown}
        result = []
        for each in found:
            known = [replace(c, hypothesis=told.get(id(c), c.hypothesis)) for c in each.answer.candidates]
            result.append(replace(each, answer=replace(each.answer, candidates=known)))
        return result


def _one_each(glossary: Glossary | Sequence[Glossary | None] | None, count: int) -> list[Glossary | None]:
    if glossary is None or isinstance(glossary, Glossary):
        return [glossary] * count
    if len(glossary) != count:
        raise DataError(f"there are {len(glossary)} glossaries for {count} texts; give one for all, or one for each")
    return list(glossary)
