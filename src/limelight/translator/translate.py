"""A `Translator` takes texts and gives translations: it cuts, protects, searches, checks, restores and judges.

The translation of a sentence depends on the sentence alone: not on its neighbours, its place, or the size of the batches. In float32 the
last bits of a score may; that changes a translation only where two are equally good, and in bfloat16 it happens more often.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Never, Self, cast

import limelight.translator.pipeline as pipeline
from limelight.bundle import BundleSettings
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import IsOver, never
from limelight.engines.engine import Engine
from limelight.errors import DeadlineError
from limelight.runtime import choose_threads, one_thread_here
from limelight.text.careful.glossary import Glossary
from limelight.text.languages import Direction
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.translator.arguments import Glossaries, Search, Text, check_texts, read_glossary, read_search, read_target, refuse_unknown
from limelight.translator.directions import Directions
from limelight.translator.loading import load_glossary, open_engines, read_bundle
from limelight.translator.parts import TranslationPlan
from limelight.translator.pipeline import TranslationOptions
from limelight.translator.searching import Searcher
from limelight.translator.second_search import constrain, search_first, search_twice
from limelight.translator.sentences import Reader, SourceSentence, on_some
from limelight.translator.translation import InvalidScoresError, Scored, Translation

if TYPE_CHECKING:  # these need torch, and a translation by CTranslate2 does not
    from limelight.engines.torch import TorchEngine
    from limelight.inspection.interventions import Changes, Pin
    from limelight.inspection.tracing.live_trace import LiveTrace
    from limelight.inspection.tracing.tracer import Tracer


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
        self.engine, self.settings = engine, settings.aim()
        self.tokenizers = source_tokenizer, target_tokenizer
        self.runs_on: tuple[str, ...] = (engine.name,)  # what it was decided to run on, and why
        self.calibration = settings.confidence  # None: confidence is what the model claims
        self._reader = Reader(self.settings, source_tokenizer, target_tokenizer, engine.longest_source)
        self._searcher = Searcher(engine, self._reader, spare)
        self._directions, self._is_view = Directions[Self](settings), False

    @classmethod
    def load(
        cls,
        folder: Path | str,
        device: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        engine: str | None = None,
    ) -> Self:
        """Open a bundle, or that of a run, or one at an address. With CTranslate2 if exported for it, else torch, unless `engine` says.

        Torch on a CPU in float32 unless asked: in bfloat16 a translation would depend on its batch. There `threads` batches run at
        once, with one thread each. Torch's threads stay as they are in the rest of the process.
        """
        bundle = read_bundle(folder)
        engines = open_engines(bundle, device, dtype, threads, engine)
        translator = cls(engines.first, bundle.settings, bundle.source_tokenizer, bundle.target_tokenizer, engines.spare)
        translator.runs_on = engines.runs_on
        translator.glossary = load_glossary(bundle)
        return translator

    @property
    def directions(self) -> list[Direction]:
        """All that the model was taught, the usual one first."""
        return self._directions.settings.directions

    @property
    def glossary(self) -> Glossary | None:
        """For texts that come without one. It belongs to a direction: others have none, or another."""
        return self._directions.glossaries.get(self.settings.languages)

    @glossary.setter
    def glossary(self, glossary: Glossary | None) -> None:
        self._directions.glossaries[self.settings.languages] = glossary

    def towards(self, target: str | None = None, source: str | None = None, tags: Sequence[str] = ()) -> Self:
        """The same translator in another direction, and told other tags: towards("fr", tags=["formal"]).

        It shares engine and all else with this one, whose sentences may be in one batch with its own, and to close it closes nothing.
        """
        return self._directions.find(target, source, tags, self._make_view)

    def _make_view(self, settings: BundleSettings) -> Self:
        view = copy.copy(self)
        vars(view).pop("_tracer", None)
        view.settings, view._reader, view._is_view = settings, self._reader.towards(settings), True
        return view

    def translate(
        self,
        texts: Sequence[str],
        search: Search = None,
        *,
        prefixes: Sequence[str] | None = None,
        phrases: Sequence[Sequence[str]] | None = None,
        align: bool = False,
        guards: bool = True,
        probabilities: bool = False,
        check: bool = False,
        protect: bool = True,
        glossary: Glossaries = None,
        matches: Sequence[str | None] | None = None,
        segment: bool | None = None,
        timeout: float | None = None,
        target: str | None = None,
        source: str | None = None,
        tags: Sequence[str] = (),
        **unknown: Never,
    ) -> list[Translation]:
        """One translation for each text, in order. `search` is the bundle's own unless given; {"beam": 8} changes it.

        `protect`: placeholders, tags, addresses and the like come back as they are, or `protected` says that they do not.
        `glossary`: how terms are translated ({"dog": "Hund"}); one for all texts, or a Glossary for each. None: the bundle's own.
        `matches`: of each text what a memory has for a similar one, which the model is told, if it was taught to be; None for none.
        `segment`: sentences are translated one by one, with all between them kept. None: only in texts of several lines, or longer
        than the model takes. A text with a prefix or phrases of its own stays whole.
        `timeout`: seconds after which a DeadlineError ends it; a time that is not reached changes nothing.
        `target`, `source`, `tags`: as `towards`, for a model that has several directions, registers or domains.
        `probabilities` asks for those of the pieces: torch always tells them, CTranslate2 needs a second look.
        `check`: warnings name words left out and made up (docs/inspect.md). It takes a pass by torch for each word of the source.
        A prefix is what the translation begins with, cut into pieces like a text of its own: "Kat" may become "Katze" or "Kat im".
        Phrases are what occurs in the translation, each from the beginning of a word on; its last word may get an ending.
        """
        refuse_unknown(unknown)
        settings, ends = read_search(search, self.settings.search), time.monotonic() + (timeout or 0.0)
        is_over = never if timeout is None else lambda: time.monotonic() >= ends
        view = self if target is None and source is None and not tags else self.towards(target, source, tags)
        known, wanted = read_glossary(glossary, view.glossary), TranslationOptions(align, guards, probabilities, check)
        plan = pipeline.plan(texts, settings, prefixes, phrases, protect, known, matches, segment, is_over, view._reader)
        with one_thread_here():
            made = self._restore(search_twice(plan.asked, settings, guards, self._searcher), wanted)
        if None in made and is_over():
            raise DeadlineError(f"not all was translated in {timeout:g} s; give it more time, or fewer texts at once")
        if invalid := [text for text, places in enumerate(plan.places) if None in made[places.start : places.stop]]:
            raise InvalidScoresError(invalid)
        return plan.join([each for each in made if each is not None])

    def plan(
        self,
        texts: Sequence[str],
        search: Search = None,
        *,
        prefixes: Sequence[str] | None = None,
        phrases: Sequence[Sequence[str]] | None = None,
        protect: bool = True,
        glossary: Glossaries = None,
        matches: Sequence[str | None] | None = None,
        segment: bool | None = None,
        is_over: IsOver = never,
    ) -> TranslationPlan:
        """The sentences that `translate` would search, for those who run them themselves. `is_over`: nobody waits for them any more."""
        settings, known = read_search(search, self.settings.search), read_glossary(glossary, self.glossary)
        return pipeline.plan(texts, settings, prefixes, phrases, protect, known, matches, segment, is_over, self._reader)

    def lengths(self, planned: TranslationPlan) -> list[int]:
        """Source pieces of each sentence: what it costs to translate."""
        return [each.pieces for each in planned.asked]

    @one_thread_here()
    def run(self, asked: Sequence[SourceSentence], settings: SearchSettings, wanted: TranslationOptions) -> list[Translation | None]:
        """One for each sentence, whichever texts they are of. None where the model's scores are no numbers, or where its time was over."""
        return self._restore(search_twice(asked, settings, wanted.guards, self._searcher), wanted)

    def begin(
        self, asked: Sequence[SourceSentence], settings: SearchSettings, wanted: TranslationOptions
    ) -> list[Translation | SourceSentence | None]:
        """As `run`, but what needs a second search, or another engine, comes back as a sentence, for `end`: such a search takes several
        times as long as a first, and those whose translation is done need not wait for it."""
        able = [at for at, each in enumerate(asked) if not self._searcher.lacks(each, settings)]
        found = search_first(asked, able, settings, wanted.guards, self._searcher)
        done = [] if wanted.check else [at for at in able if not (wanted.guards and constrain(found[at]))]
        return on_some(found, done, partial(self._restore, wanted=wanted))

    def end(self, postponed: Sequence[SourceSentence], settings: SearchSettings, wanted: TranslationOptions) -> list[Translation | None]:
        """Finish the sentences that `begin` postponed."""
        return self._restore(search_twice(postponed, settings, wanted.guards, self._searcher), wanted)

    def _restore(self, found: Sequence[SourceSentence], wanted: TranslationOptions) -> list[Translation | None]:
        return pipeline.restore(found, wanted, self._searcher, self.calibration)

    @one_thread_here()
    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[Scored]:
        """How probable given translations are."""
        return pipeline.score(sources, targets, self._reader, self._searcher)

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
        pins: "Sequence[Pin]" = (),
        positions: str = "normal",
        temperature: float = 1.0,
        changes: "Changes | None" = None,
        search: Search = None,
        nbest: int = 4,
        topk: int = 8,
        stages: bool = False,
        longest: int | None = None,
        is_over: IsOver = never,
    ) -> "LiveTrace":
        """Every stage of one translation: trace("A cat sits.", gates={"cross.5.*": 0})["enc.0.scores"].

        `target`: look at this translation instead of searching for one. `prefix`: what the translation begins with. Both may be a text,
        or pieces by id or as they are spelled.
        `gates`: dimmers of heads, by name (cross.5.2) or pattern (enc.0.*), 0 dark to 1 as trained. They and what follows up to
        `temperature` are the fields of `inspection.interventions.Changes`, which may be given whole instead.
        `stages`: keep every stage, not only attention; without, one that is asked for later costs a pass.
        More pieces than `longest` (256) or the model takes are a LengthError. It runs on torch; a DeadlineError ends it when `is_over`.
        """
        reader, tidy, tracer = self._reader, self._reader.normalize(check_texts([text], "text")), self._tracer
        return tracer.trace(
            tidy[0],
            source_ids=reader.add_source_begin(reader.source_ids(tidy)[0]),
            target_ids=None if target is None else read_target(target, reader),
            prefix_ids=read_target(prefix, reader),
            search=read_search(search, self.settings.search),
            changes=tracer.join_changes(gates, gate_mode, mask_source, pins, positions, temperature, changes),
            topk=topk,
            nbest=nbest,
            stages=stages,
            longest=longest,
            is_over=is_over,
        )

    @cached_property
    def _tracer(self) -> "Tracer":
        engine = self.torch_engine  # first: it says what to do where there is no torch
        from limelight.inspection.tracing.tracer import Tracer

        return Tracer(engine, self._reader.settings, *self.tokenizers)

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts as the model reads them, without the end."""
        reader = self._reader
        return [reader.add_source_begin(ids) for ids in reader.source_ids(reader.normalize(check_texts(texts, "texts")))]

    def target_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Texts as the model writes them, without the end."""
        return [[*self._reader.target_begin, *ids] for ids in self._reader.target_ids(check_texts(texts, "texts"))]

    @property
    def torch_engine(self) -> "TorchEngine":
        """What can be looked into."""
        return cast("TorchEngine", self._searcher.find_torch())

    @property
    def batch_pieces(self) -> int:
        """Source pieces of a batch, padding included: more need more memory, and are faster up to a point."""
        return self._searcher.batch_pieces

    @batch_pieces.setter
    def batch_pieces(self, pieces: int) -> None:
        self._searcher.limit(pieces)

    def stand_by(self) -> None:
        """For a caller that runs as many batches at once as the engine has workers: no batch is shared out any more, and the engine for
        what the first one lacks is loaded now. Torch on a CPU has one thread then, everywhere."""
        for searcher in filter(None, (self._searcher, self._searcher.spare())):
            searcher.shares = False
            if searcher.engine.name == "torch" and self.torch_engine.device.type == "cpu":
                choose_threads(1)

    def close(self) -> None:
        """End the engine of all directions; what `towards` gave ends nothing."""
        if not self._is_view:
            self._directions.forget()
            self._searcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
