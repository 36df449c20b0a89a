"""An `AsyncTranslator` translates for many tasks of an event loop: what waits while a batch runs becomes the next batch.

    async with AsyncTranslator(Translator.load("en-de")) as translator:
        found = await asyncio.gather(*(translator.translate([text]) for text in texts))

The translations are those of `Translator.translate`: no sentence depends on its company.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from limelight.translator import Translation, Translator
from limelight.translator.arguments import check_texts

MOST_TOGETHER: Final = 512  # texts of one batch; more wait for the next
OF_ITS_OWN: Final = {"prefixes", "phrases", "glossary", "timeout"}  # options that belong to the texts of one call, or to its time


@dataclass(frozen=True)
class WaitingTexts:
    texts: list[str]
    options: dict[str, Any]  # of `Translator.translate`; only equal ones run together
    done: "asyncio.Future[list[Translation]]"


class AsyncTranslator:
    """It belongs to one event loop, and closes its translator when it is left."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self._waiting: deque[WaitingTexts] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def translate(self, texts: Sequence[str], **options: Any) -> list[Translation]:
        """As `Translator.translate`, with its options. A task that is cancelled takes its texts out of what waits."""
        asked = WaitingTexts(check_texts(texts, "texts"), options, asyncio.get_running_loop().create_future())
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
        texts = [text for each in batch for text in each.texts]
        try:
            results = iter(await asyncio.to_thread(self.translator.translate, texts, **batch[0].options))
        except Exception as error:
            if len(batch) > 1:  # one of them fails, and the others shall not
                for each in batch:
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
        """What waits is finished first."""
        try:
            if self._worker is not None:
                await asyncio.shield(self._worker)
        finally:
            self.translator.close()
