"""Each document has a thread that reads and writes it, and asks the service in the event loop for its texts."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from limelight.documents.document import find_units
from limelight.documents.kinds import Kind
from limelight.documents.translating import FoundUnits, GivenText, TranslatedDocument
from limelight.errors import ConfigError, DeadlineError, LimelightError
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.served_store import ServedStore
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import BadRequest, Busy, Refusal, SwitchedOff
from limelight.translator.arguments import refuse_matches
from limelight.translator.translation import Translation, recall

if TYPE_CHECKING:
    from limelight.store.store import Store

AT_ONCE = 2  # threads
WAITING = 6  # documents beside those
Translate = Callable[[Sequence[str]], Coroutine[Any, Any, list[Translation]]]
TranslateRest = Callable[[Sequence[str], Sequence[str | None] | None], Coroutine[Any, Any, list[Translation]]]  # and what each is told
Admit = Callable[[Sequence[str]], None]  # hears its texts before any is translated, and may refuse it
Result = TypeVar("Result")


class DocumentPool:
    def __init__(self) -> None:
        self.open = 0
        self._pool = ThreadPoolExecutor(AT_ONCE, "document")

    async def translate(
        self,
        data: bytes,
        kind: Kind,
        languages: tuple[str, str],
        translate: Translate,
        deadline: Deadline,
        finish: Callable[[TranslatedDocument], Result],
        admit: Admit | None = None,
    ) -> Result:
        """When nobody waits, or time is over, no further text is asked for. What `finish` makes of it is made in its thread, too."""
        asking = LoopBridge(asyncio.get_running_loop(), translate, deadline)

        def is_over() -> bool:
            return asking.over or deadline.is_over()

        try:
            return await self._run(lambda: finish(_find(data, kind, languages, is_over, admit).translate(asking.texts)), deadline)
        finally:
            asking.end()

    async def place(
        self, data: bytes, kind: Kind, languages: tuple[str, str], given: Mapping[str, GivenText], deadline: Deadline, admit: Admit
    ) -> TranslatedDocument:
        """The document with given texts in their places, by the names of their segments."""

        def work() -> TranslatedDocument:
            found = _find(data, kind, languages, deadline.is_over, admit)
            found.take_given(given)
            return found.splice({})

        return await self._run(work, deadline)

    async def _run(self, made: Callable[[], Result], deadline: Deadline) -> Result:
        if self.open >= AT_ONCE + WAITING:
            raise Busy("too many documents are being translated", "try again a little later", retry_after=5.0)
        gone = False

        def unless_gone() -> Result:
            if gone:
                raise deadline.late("the document")
            return made()

        work = asyncio.get_running_loop().run_in_executor(self._pool, _forgetting, unless_gone)
        self.open += 1
        # Nobody cancels it: what a thread still reads, and what still lies before one, is no room for another document.
        work.add_done_callback(self._release)
        try:
            with deadline:
                return await _within(asyncio.shield(work), deadline)
        except LimelightError as error:
            raise BadRequest(f"the document cannot be translated: {error}") from None
        finally:
            gone = True

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _release(self, work: "asyncio.Future[Any]") -> None:
        self.open -= 1
        if not work.cancelled():
            work.exception()  # whoever waited has heard of it


class LoopBridge:
    """A bridge leads from the thread of a document into the event loop. `end` may come at any moment, from the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, translate: Translate, deadline: Deadline) -> None:
        self.loop, self.translate, self.deadline = loop, translate, deadline
        self.over = False
        self.asked: Future[list[Translation]] | None = None

    def texts(self, texts: Sequence[str]) -> list[Translation]:
        if self.over or self.deadline.is_over():
            raise self.deadline.late("the document")
        self.asked = asyncio.run_coroutine_threadsafe(self.translate(texts), self.loop)
        if self.over:  # it ended between the look and the question
            self.asked.cancel()
        return self.asked.result()

    def end(self) -> None:
        self.over = True
        if self.asked is not None:
            self.asked.cancel()


def recall_first(store: ServedStore | None, served: ServedModel, tell: bool, translate: TranslateRest, deadline: Deadline) -> Translate:
    """The memory is asked for each text before the translator is. `tell`: and for similar ones, which the translator is told."""
    if store is None:
        raise SwitchedOff("memory: this server has no memory", "The operator can give it one: limelight serve --store.")
    if tell:
        check_told(served)

    async def look(work: "Callable[[Store], Result]") -> Result:
        return await _within(store.ask(work, search=True), deadline, "the answer")

    async def ask(texts: Sequence[str]) -> list[Translation]:
        with deadline:
            found = await look(lambda opened: opened.memory.find_exact(served.direction, texts))
            left = [text for text in texts if text not in found]
            # One by one, so that who asks for less need not wait for all.
            told = [await look(partial(_find_similar, served.direction, text)) for text in left] if tell else None
        known = {text: recall(text, match.target) for text, match in found.items()}
        known |= dict(zip(left, await translate(left, told), strict=True)) if left else {}
        return [known[text] for text in texts]

    return ask


def _find_similar(pair: tuple[str, str], text: str, store: "Store") -> str | None:
    return next((match.target for match in store.memory.find(pair, text, 1)), None)


def check_told(served: ServedModel) -> None:
    try:
        refuse_matches(served.translator.settings)
    except ConfigError as error:
        raise BadRequest(f"memory=tell: {error}", "memory=use takes what the memory has of the same text alone.") from None


def _find(data: bytes, kind: Kind, languages: tuple[str, str], is_over: Callable[[], bool], admit: Admit | None) -> FoundUnits:
    found = find_units(data, kind, languages, is_over=is_over)
    if admit is not None:
        admit(found.list_sources())
    return found


def _forgetting(work: Callable[[], Result]) -> Result:
    """An error holds the frames it came through, and they a million lines: freed in this thread, not in the event loop (40 ms)."""
    try:
        return work()
    except (LimelightError, Refusal) as error:
        error.__traceback__ = error.__context__ = error.__cause__ = None
        raise


async def _within(work: Awaitable[Result], deadline: Deadline, what: str = "the document") -> Result:
    try:
        async with asyncio.timeout(deadline.left):
            return await work
    except (TimeoutError, DeadlineError):
        raise deadline.late(what) from None
