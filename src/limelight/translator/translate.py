"""A `Translator` takes texts and gives translations: it cuts, protects, searches, checks, restores and judges.

The translation of a sentence depends on the sentence alone: not on its neighbours, its place, or the size of the batches. In float32 the
last bits of a score may; that changes a translation only where two are equally good. In bfloat16, which accelerators are given, it happens
more often.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, Never, Self

import torch

from limelight.bundle import BundleSettings, Learnt, read
from limelight.bundle.confidence import Calibration
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import IsOver, never
from limelight.engines.engine import Engine
from limelight.engines.torch import TorchEngine
from limelight.errors import ConfigError, DataError, DeadlineError
from limelight.inspection.interventions import Changes, Pin
from limelight.inspection.tracing.live_trace import LiveTrace
from limelight.inspection.tracing.tracer import LONGEST
from limelight.runtime import one_thread_here
from limelight.text.careful.glossary import Glossary
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.translator.careful.protected import Keeper
from limelight.translator.careful.two_searches import CarefulRequest, CarefulSearch
from limelight.translator.loading import load_glossary, open_engines
from limelight.translator.parts import Cutter
from limelight.translator.planned import (
    TranslationOptions,
    TranslationPlan,
    TranslationPlanner,
    over_after,
    refuse_unknown,
)
from limelight.translator.presenting import Presenter
from limelight.translator.running import PostponedSentence, SentenceRunner
from limelight.translator.searching import Searcher, Spare
from limelight.translator.sentences import Reader, check_texts
from limelight.translator.traced import Text, TextTracer, loose_changes
from limelight.translator.translation import InvalidScoresError, Scored, Translation, confidence_of, pieces_of


class Translator:
    """A translator is loaded and asked: Translator.load("en-de").translate(["A cat sits on the mat."]). Several threads may use one."""

    def __init__(
        self,
        engine: Engine,
        settings: BundleSettings,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        spare: Callable[[], Engine] | None = None,
    ) -> None:
        """`spare` makes the engine for what the first one lacks."""
        self.engine, self.settings = engine, settings
        self.tokenizers = source_tokenizer, target_tokenizer
        self.runs_on: tuple[str, ...] = (engine.name,)  # what it was decided to run on, and why
        self.glossary: Glossary | None = None  # for texts that come without one
        self._spare = Spare(spare, target_tokenizer)
        self._reader = Reader(settings, source_tokenizer, target_tokenizer, engine.longest_source)
        self._searcher = Searcher(engine, target_tokenizer)
        self._keeper = Keeper(settings, source_tokenizer, target_tokenizer)
        learnt = settings.learnt or Learnt()
        careful = CarefulSearch(self._reader, self._keeper, learnt.terms)
        longest = min(self._reader.longest, learnt.longest or self._reader.longest)
        cutter = Cutter(settings.languages[0], self._reader.length, longest, self._keeper.most or None)
        self._planner = TranslationPlanner(cutter, self._keeper)
        self._presenter = Presenter(settings, target_tokenizer)
        self._tracing = TextTracer(engine, self._spare, settings, self._reader)
        self._log_probs = partial(self._searcher.log_probs, self._reader.target_begin)
        searchers = self._searcher, self._spare, careful
        self._running = SentenceRunner(*searchers, self._reader, self._presenter, self._log_probs)

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
        (docs/translate.md). Torch's threads stay as they are in the rest of the process.
        """
        bundle = read(Path(folder))
        engines = open_engines(bundle, device, dtype, threads, engine)
        translator = cls(
            engines.first, bundle.settings, bundle.source_tokenizer, bundle.target_tokenizer, engines.spare
        )
        translator.runs_on = engines.runs_on
        translator.glossary = load_glossary(bundle)
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
        timeout: float | None = None,
        **unknown: Never,
    ) -> list[Translation]:
        """One translation for each text, in order. `search` is the bundle's own unless given.

        `protect`: placeholders, tags, addresses and the like come back as they are, or `protected` says that they do not.
        `glossary`: its terms, where a text has them, are translated as it says; one for all texts, or one for each. None: the one that
        lies with the bundle, if there is one.
        `segment`: each sentence of a text is translated by itself, with all between them kept. None: only in texts of several lines, or
        longer than the model takes. A text with a prefix or phrases of its own stays whole.
        `timeout`: seconds after which a DeadlineError ends it; a time that is not reached changes nothing.

        `probabilities` asks for those of the pieces: torch always tells them, CTranslate2 needs a second look.

        A prefix is what the translation begins with: it is cut into pieces like a text of its own. One that ends inside a word may be
        gone on with ("Kat" -> "Katze") or be followed by a new word, as the model finds likelier. A space at its end does not count.
        Phrases are what occurs in the translation, each from the beginning of a word on; its last word may get an ending.
        """
        refuse_unknown(unknown)
        settings = self.settings.search if search is None else search
        known = self.glossary if glossary is None else glossary
        is_over = never if timeout is None else over_after(timeout)
        planned = self._planner.plan(texts, settings, prefixes, phrases, protect, known, segment, is_over)
        made = self.run(planned.asked, settings, TranslationOptions(align, guards, probabilities))
        if None in made and is_over():
            raise DeadlineError(f"not all was translated in {timeout:g} s; give it more time, or fewer texts at once")
        if invalid := sorted({planned.owner[at] for at, each in enumerate(made) if each is None}):
            raise InvalidScoresError(invalid)
        return planned.join([each for each in made if each is not None])

    def plan(
        self,
        texts: Sequence[str],
        search: SearchSettings | None = None,
        *,
        prefixes: Sequence[str] | None = None,
        phrases: Sequence[Sequence[str]] | None = None,
        protect: bool = True,
        glossary: Glossary | Sequence[Glossary | None] | None = None,
        segment: bool | None = None,
        is_over: IsOver = never,
    ) -> TranslationPlan:
        """The sentences that `translate` would search, for those who run them themselves. `is_over`: nobody waits for them any more."""
        settings = self.settings.search if search is None else search
        known = self.glossary if glossary is None else glossary
        return self._planner.plan(texts, settings, prefixes, phrases, protect, known, segment, is_over)

    def lengths(self, planned: TranslationPlan) -> list[int]:
        """Source pieces of each sentence: what it costs to translate."""
        return self._reader.lengths([each.care.text for each in planned.asked])

    @one_thread_here()
    def run(
        self, asked: Sequence[CarefulRequest], settings: SearchSettings, wanted: TranslationOptions
    ) -> list[Translation | None]:
        """One for each sentence, whichever texts they are of. None where the model's scores are no numbers, or where its time was over."""
        return self._running.run(asked, settings, wanted)

    def begin(
        self, asked: Sequence[CarefulRequest], settings: SearchSettings, wanted: TranslationOptions
    ) -> list[Translation | PostponedSentence | None]:
        """As `run`, but what needs a second search is left for `end`."""
        return self._running.begin(asked, settings, wanted)

    def end(
        self, postponed: Sequence[PostponedSentence], settings: SearchSettings, wanted: TranslationOptions
    ) -> list[Translation | None]:
        return self._running.end(postponed, settings, wanted)

    @one_thread_here()
    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
        """How probable given translations are."""
        if len(check_texts(sources, "sources")) != len(check_texts(targets, "targets")):
            raise DataError(f"there are {len(sources)} sources and {len(targets)} targets; give pairs")
        reader = self._reader
        source_ids = reader.source_ids(reader.normalize_texts(sources))
        target_ids = reader.target_ids(reader.normalize_texts(targets))
        for number, ids in enumerate(source_ids):
            if not 0 < len(ids) <= reader.longest:
                raise DataError(
                    f"sources[{number}] has {len(ids)} pieces; give 1 to {reader.longest} of them, or leave the pair out"
                )
        found = self._log_probs([reader.add_source_begin(ids) for ids in source_ids], target_ids)
        if invalid := [i for i, log_probs in enumerate(found) if not all(map(math.isfinite, log_probs))]:
            raise InvalidScoresError(invalid)
        return [
            Scored(sum(log_probs), confidence_of(log_probs), pieces_of(reader.target.pieces(ids), log_probs))
            for ids, log_probs in zip(target_ids, found, strict=True)
        ]

    @one_thread_here()
    def trace(
        self,
        text: str,
        target: Text | None = None,
        *,
        prefix: Text = "",
        gates: Mapping[str, float] | None = None,
        gate_mode: Literal["zero", "mean"] = "zero",
        mask_source: Sequence[int] = (),
        pins: Sequence[Pin] = (),
        positions: str = "normal",
        temperature: float = 1.0,
        changes: Changes | None = None,
        search: SearchSettings | None = None,
        nbest: int = 4,
        topk: int = 8,
        stages: bool = False,
        longest: int = LONGEST,
        is_over: IsOver = never,
    ) -> LiveTrace:
        """Every stage of one translation: trace("A cat sits.", gates={"cross.5.*": 0})["enc.0.scores"].

        `target`: look at this translation instead of searching for one. `prefix`: what the translation begins with. Both may be a text,
        or pieces by id or as they are spelled.
        `gates`: dimmers of heads, by name (cross.5.2) or pattern (enc.0.*), 0 dark to 1 as trained. They and what follows up to
        `temperature` are the fields of `inspection.interventions.Changes`, which may be given whole instead.
        `stages`: keep every stage, not only attention; without, one that is asked for later costs a pass.
        More pieces than `longest`, or than the model takes, are a LengthError. It runs on torch whatever the translator runs on.
        `is_over` is asked at every step; when it says yes, a DeadlineError ends the trace.
        """
        loose = loose_changes(gates, gate_mode, mask_source, pins, positions, temperature, changes)
        return self._tracing.trace(text, target, prefix, search, loose, topk, nbest, stages, longest, is_over)

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts as the model reads them, without the end."""
        normalized = self._reader.normalize_texts(check_texts(texts, "texts"))
        return [self._reader.add_source_begin(ids) for ids in self._reader.source_ids(normalized)]

    def target_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts as the model writes them, without the end."""
        normalized = self._reader.normalize_texts(check_texts(texts, "texts"))
        return [[*self._reader.target_begin, *ids] for ids in self._reader.target_ids(normalized)]

    @property
    def calibration(self) -> Calibration | None:
        """What is true of what the model claims; the bundle's own. None: confidence is what the model claims."""
        return self._presenter.calibration

    @calibration.setter
    def calibration(self, calibration: Calibration | None) -> None:
        self._presenter.calibration = calibration

    @property
    def torch_engine(self) -> TorchEngine:
        """What can be looked into: the engine, or the one for what it lacks."""
        return self._tracing.engine

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

    def stand_by(self) -> None:
        """For a caller that runs as many batches at once as the engine has workers: no batch is shared out among them any more, and
        the engine for what the first one lacks is loaded now, not while somebody waits. Torch on a CPU has one thread then, everywhere."""
        for searcher in (self._searcher, self._spare.searcher()):
            if searcher is not None:
                searcher.shares = False
                if isinstance(searcher.engine, TorchEngine) and searcher.engine.device.type == "cpu":
                    torch.set_num_threads(1)

    def close(self) -> None:
        self._searcher.close()
        self._spare.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
