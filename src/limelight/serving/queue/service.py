"""The service translates the texts of every route through one queue. Requests may be refused, late or cancelled."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple

from limelight.decoding.config import SearchSettings
from limelight.documents.kinds import Kind as DocumentKind
from limelight.documents.translating import TranslatedDocument
from limelight.serving.queue.batch_kinds import ScoreKind, SearchAgainKind, TranslateKind
from limelight.serving.queue.batcher import RequestBatcher
from limelight.serving.queue.documents import Admit, DocumentPool, Result, recall_first
from limelight.serving.queue.in_flight import InFlight
from limelight.serving.queue.markup import Markup, TranslatedText, translate_markup
from limelight.serving.queue.models import Models
from limelight.serving.queue.observer import ServiceObserver
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.served_store import ServedStore
from limelight.serving.queue.text_thread import SMALL, TextThread, weight
from limelight.serving.queue.work import Deadline, QueuedRequest, hear_next, within
from limelight.serving.refusals import Busy, Failed, Late, SwitchedOff
from limelight.serving.settings import MemoryUse, ServeSettings
from limelight.text.careful.glossary import Glossary
from limelight.translator.parts import TranslationPlan
from limelight.translator.pipeline import TranslationOptions
from limelight.translator.translation import Scored, Translation

LARGE = 1_024  # pieces, some thirty sentences
SLOWER = 10  # times a second search takes, to begin with
JOINING = 60.0  # seconds to put translations together: work that is done is not thrown away
State = Literal["ready", "draining"]


@dataclass(frozen=True)
class TranslateOptions:
    """Options say how one request is translated. `caller` has a fair share of the engine, whatever the others send; empty: nobody known."""

    served: ServedModel
    search: SearchSettings | None = None
    align: bool = False
    probabilities: bool = False
    protect: bool = True
    segment: bool | None = True
    glossary: Glossary | None = None
    check: bool = False  # for words left out and made up: a pass by torch for each word
    memory: MemoryUse | None = None  # is it asked for the same text before the model is, and for similar ones?
    matches: Sequence[str | None] | None = None  # what it has for similar ones, one for each text
    deadline: Deadline | None = None  # else as long as the server gives
    caller: str = ""

    @property
    def settings(self) -> SearchSettings:
        return self.served.translator.settings.search if self.search is None else self.search


class StreamedSentence(NamedTuple):
    """Sentence `part` of the `parts` of text number `text` is done."""

    text: int
    part: int
    parts: int
    translation: Translation


class StreamedText(NamedTuple):
    """All of text number `text` is done."""

    text: int
    translation: Translation


class Pressure(NamedTuple):
    requests: int
    pieces: int
    wait_seconds: float


class Service:
    """The service lives in one event loop. Loading is done before."""

    def __init__(self, models: Models, settings: ServeSettings, watching: ServiceObserver, store: ServedStore | None = None) -> None:
        self.models, self.settings, self.watching, self.store = models, settings, watching, store
        self.started = time.monotonic()
        workers = max(each.translator.engine.workers for each in models.all)
        speed = min(each.speed for each in models.all)
        slower = RequestBatcher(1, speed / SLOWER, settings.queue, watching, stage="wait_again")
        self.batcher = RequestBatcher(workers, speed, settings.queue, watching, slower)
        # Checks take so much longer that they neither stand before others' sentences nor count in what these wait for.
        self.checks = RequestBatcher(1, speed / SLOWER**2, settings.queue, watching, stage="wait_again")
        self._reading, self.documents = TextThread(), DocumentPool()
        self.under_way = InFlight()

    async def translate(
        self,
        texts: Sequence[str],
        options: TranslateOptions,
        *,
        prefixes: Sequence[str] | None = None,
        phrases: Sequence[Sequence[str]] | None = None,
        document: object | None = None,
    ) -> list[Translation]:
        """Return a translation for each text. Cancelling takes what has not begun out of the queue. `document`: what the texts are of, if
        it was let in before."""
        if document is None:
            self.batcher.refuse_when_full(options.caller or None)
        deadline = options.deadline or self.deadline()
        if options.memory:

            def model(left: Sequence[str], told: Sequence[str | None] | None) -> Coroutine[Any, Any, list[Translation]]:
                return self.translate(left, replace(options, memory=None, matches=told, deadline=deadline), document=document)

            return await recall_first(self.store, options.served, options.memory == "tell", model, deadline)(texts)
        with deadline:
            planned, size = await self._plan(texts, options, prefixes, phrases, deadline)
            job = self._submit(planned, options, document=document)
            try:
                made = await within(job, deadline)
            finally:
                self._queue(options).leave(job)
        if job.begun is not None:
            self.watching.stage("translate", time.monotonic() - job.begun)
        return await self._reading.run(options.settings.nbest * size, lambda: planned.join(_numbers(made)), JOINING)

    async def stream(
        self, texts: Sequence[str], options: TranslateOptions, *, prefixes: Sequence[str] | None = None
    ) -> AsyncIterator[StreamedSentence | StreamedText]:
        """Each sentence when it is done, in any order, and each text when its last sentence is."""
        self.batcher.refuse_when_full(options.caller or None)
        deadline = options.deadline or self.deadline()
        with deadline:
            planned, size = await self._plan(texts, options, prefixes, None, deadline)
        told: asyncio.Queue[tuple[int, Any]] = asyncio.Queue()
        job = self._submit(planned, options, told=lambda *each: told.put_nowait(each))
        made: list[Any] = [None] * len(planned.asked)
        owner = [text for text, places in enumerate(planned.places) for _ in places]
        left = [len(places) for places in planned.places]
        try:
            for _ in planned.asked:
                place, result = await hear_next(told, job, deadline)
                made[place] = _numbers([result])[0]
                text = owner[place]
                places = planned.places[text]
                yield StreamedSentence(text, place - places.start, len(places), made[place])
                left[text] -= 1
                if not left[text]:
                    own = made[places.start : places.stop]
                    yield StreamedText(text, await self._reading.run(size, partial(planned.join_text, text, own), JOINING))
        finally:
            self._queue(options).leave(job)
            deadline.end()

    async def score(self, sources: Sequence[str], targets: Sequence[str], options: TranslateOptions) -> list[Scored]:
        """How probable given translations are."""
        translator, deadline = options.served.translator, options.deadline or self.deadline()
        size = weight((*sources, *targets))
        lengths = await self._reading.run(size, lambda: [len(ids) for ids in translator.source_ids(sources)], deadline.left)
        pairs = list(zip(sources, targets, strict=True))
        job = self.batcher.submit(ScoreKind(options.served), pairs, lengths, options.caller or None)
        try:
            return await within(job, deadline)
        finally:
            self.batcher.leave(job)

    async def correct(self, served: ServedModel, text: str, better: str, translation: str, caller: str) -> int:
        """Keep a correction, if the operator wants any; its number. `limelight learn` judges it, and not the server."""
        if self.store is None or not self.keeps_corrections:
            raise SwitchedOff(
                "corrections are not kept on this server",
                "The operator can keep them: limelight serve --store, and --api-key-file where other machines reach it.",
            )
        pair = served.source, served.target
        number = await self.store.ask(lambda kept: kept.corrections.add(*pair, text, translation, better, caller, served.id))
        if not number:
            raise Busy("as many corrections are kept here as may be", "The operator can keep them for fewer days: --keep-days.")
        return number

    async def document(self, data: bytes, kind: DocumentKind, options: TranslateOptions, admit: Admit | None = None) -> TranslatedDocument:
        """A whole document. Its texts share the queue with everybody else's; `Busy` when too many documents are under way."""
        return await self.finish_document(data, kind, options, lambda done: done, admit)

    async def finish_document(
        self,
        data: bytes,
        kind: DocumentKind,
        options: TranslateOptions,
        finish: Callable[[TranslatedDocument], Result],
        admit: Admit | None = None,
    ) -> Result:
        """As `document`, with what `finish` makes of it in its time, in its thread; `admit` may refuse it by its texts."""
        its_own, deadline = object(), options.deadline or self.deadline()

        def translate(texts: Sequence[str]) -> Coroutine[Any, Any, list[Translation]]:
            return self.translate(texts, replace(options, deadline=deadline), document=its_own)

        return await self.documents.translate(data, kind, options.served.direction, translate, deadline, finish, admit)

    async def markup(self, texts: Sequence[str], markup: Markup, options: TranslateOptions) -> tuple[list[TranslatedText], int]:
        """Return texts with their tags, and how many pieces they had. Already to find their words is work, so it is refused before."""
        self.batcher.refuse_when_full(options.caller or None)
        deadline = options.deadline or self.deadline()
        pieces: list[int] = []

        async def translate(given: Sequence[str]) -> list[Translation]:
            made = await self.translate(given, replace(options, deadline=deadline))
            pieces.extend(each.source_pieces for each in made)
            return made

        return await translate_markup(texts, markup, translate, self._reading, deadline), sum(pieces)

    @property
    def keeps_corrections(self) -> bool:
        return self.store is not None and self.settings.knows_callers

    def pressure(self) -> Pressure:
        both = (self.batcher, self.checks)
        return Pressure(sum(len(each.jobs) for each in both), sum(each.queue.pieces for each in both), sum(each.backlog for each in both))

    @property
    def state(self) -> State:
        return "draining" if self.under_way.draining else "ready"

    def drain(self) -> None:
        """Not ready from now on; and after a moment, in which what was sent before may arrive, nothing new is taken."""
        self.under_way.drain()

    async def wait_drained(self) -> None:
        """Return when nothing is under way any more."""
        await self.under_way.over()

    def close(self) -> None:
        self.batcher.close()
        self.checks.close()
        self._reading.close()
        self.documents.close()
        self.models.close()

    def deadline(self, timeout: float | None = None) -> Deadline:
        """Return a deadline `timeout` seconds from now, or as many as a request may have."""
        longest = self.settings.queue.timeout_seconds
        return Deadline(longest if timeout is None else min(timeout, longest))

    def _submit(
        self,
        planned: TranslationPlan,
        options: TranslateOptions,
        told: Callable[[int, Any], None] | None = None,
        document: object | None = None,
    ) -> QueuedRequest:
        """Part of a document was let in with the document. It, and a request as large as one, has a share of the engine of its own: what
        its caller asks for beside it does not wait behind it."""
        wanted = TranslationOptions(options.align, True, options.probabilities, options.check)
        lengths = [each.pieces for each in planned.asked]
        kind = (SearchAgainKind if options.check else TranslateKind)(options.served.bundle, options.settings, wanted)
        flow = document or (options.caller if options.caller and sum(lengths) <= LARGE else None)
        return self._queue(options).submit(kind, planned.asked, lengths, flow, told, document is not None, planned.may_lose)

    def _queue(self, options: TranslateOptions) -> RequestBatcher:
        return self.checks if options.check else self.batcher

    async def _plan(
        self,
        texts: Sequence[str],
        options: TranslateOptions,
        prefixes: Sequence[str] | None,
        phrases: Sequence[Sequence[str]] | None,
        deadline: Deadline,
    ) -> tuple[TranslationPlan, int]:
        """The sentences, and what it costs to cut texts and to join them. With a glossary never little: each place of a text may begin
        many terms."""
        beside = chain(prefixes or (), chain.from_iterable(phrases or ()))
        size = weight(texts) + weight(beside) + (0 if options.glossary is None else SMALL)
        plan = partial(
            options.served.translator.plan,
            texts,
            options.settings,
            prefixes=prefixes,
            phrases=phrases,
            protect=options.protect,
            glossary=options.glossary,
            matches=options.matches,
            segment=options.segment,
            is_over=deadline.is_over,
        )
        begin = time.monotonic()
        try:
            planned = await self._reading.run(size, plan, deadline.left)
        except Late:
            raise deadline.late("the text was not even read, and the answer") from None
        self.watching.stage("prepare", time.monotonic() - begin)
        return planned, size


def _numbers(made: Sequence[Any]) -> list[Any]:
    if any(each is None for each in made):
        raise Failed("the model's scores are no numbers", "the weights are at fault: the operator has to look at the model")
    return list(made)
