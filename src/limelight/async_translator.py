"""An `AsyncTranslator` translates for many tasks of an event loop: what waits while a batch runs becomes the next batch.

    async with AsyncTranslator(Translator.load("en-de")) as translator:
        found = await asyncio.gather(*(translator.translate([text]) for text in texts))

The translations are those of `Translator.translate`: no sentence depends on its company.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from limelight.errors import ConfigError
from limelight.translator import Translation, Translator
from limelight.translator.arguments import check_texts, read_search

MOST_TOGETHER: Final = 512  # texts of one batch; more wait for the next
OF_ITS_OWN: Final = {"prefixes", "phrases", "glossary", "timeout"}  # options that belong to the texts of one call, or to its time


@dataclass(frozen=True)
class WaitingTexts:
    texts: list[str]
    options: dict[str, Any]  # of `Translator.translate`; only equal ones run together
    ends: float  # by `time.monotonic`: waiting takes of the time, too
    done: "asyncio.Future[list[Translation]]"


class AsyncTranslator:
    """It belongs to one event loop, and closes its translator when it is left."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self._waiting: deque[WaitingTexts] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "translate")
        self._is_left = False

    async def translate(self, texts: Sequence[str], **options: Any) -> list[Translation]:
        """As `Translator.translate`, with its options. A task that is cancelled takes its texts out of what waits."""
        if self._is_left:
            raise ConfigError("the translator was closed, since its block was left; load it again")
        timeout = options.get("timeout")
        if "search" in options:  # what is changed while it waits is of a later call
            options["search"] = read_search(options["search"], self.translator.settings.search)
        ends = math.inf if timeout is None else time.monotonic() + timeout
        asked = WaitingTexts(check_texts(texts, "texts"), options, ends, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await asked.done

    async def _work(self) -> None:
        while self._waiting:
            batch = self._take()
            if not batch:
                continue
            try:
                await self._translate(batch)
            except BaseException:  # the loop ends: nobody must wait for ever
                for each in (*batch, *self._waiting):
                    each.done.cancel()
                raise

    async def _translate(self, batch: list[WaitingTexts]) -> None:
        texts, options, ends = [text for each in batch for text in each.texts], batch[0].options, batch[0].ends
        if ends < math.inf:
            options = options | {"timeout": max(0.0, ends - time.monotonic())}
        try:
            search = partial(copy_context().run, self.translator.translate, texts, **options)
            results = iter(await asyncio.get_running_loop().run_in_executor(self._thread, search))
        except Exception as error:
            if len(batch) > 1:  # one of them fails, and the others shall not
                for each in batch:
                    if not each.done.done():
                        await self._translate([each])
            elif not batch[0].done.done():
                batch[0].done.set_exception(error)
            return
        for each in batch:
            own = [next(results) for _ in each.texts]
            if not each.done.done():
                each.done.set_result(own)

    def _take(self) -> list[WaitingTexts]:
        """The first that waits, and all others with the same options that have room beside it."""
        batch, left, room = list[WaitingTexts](), deque[WaitingTexts](), MOST_TOGETHER
        for each in self._waiting:
            if each.done.done():
                continue  # cancelled
            alone = OF_ITS_OWN & each.options.keys()
            if not batch or (not alone and len(each.texts) <= room and each.options == batch[0].options):
                batch.append(each)
                room -= len(each.texts)
            else:
                left.append(each)
        self._waiting = left
        return batch

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """What waits is finished first; where that is cancelled, the batch that a thread computes."""
        try:
            if self._worker is not None:
                await asyncio.shield(self._worker)
        finally:
            for each in self._waiting:
                each.done.cancel()
            self._is_left = True
            closed = self._thread.submit(self.translator.close)  # in the thread, so after its batch
            self._thread.shutdown(wait=False)
        await asyncio.wrap_future(closed)
