"""A task measures which heads of a served model matter. It is made from a request, and run in a thread, one task at a time:

async for told in rankings.run(key, "anna", work):       work(report) -> result; report(done, total) now and then
    ...                                                  ("progress", {"done": 3, "total": 25}), ..., ("result", {...})
"""

import asyncio
import hashlib
import json
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from limelight.errors import ConfigError, DataError, LengthError
from limelight.serving.desk.requests import ImportanceRequest
from limelight.serving.desk.trace_pool import DeskPool
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import BadRequest, NotFound, Refusal, Stopping, TooMany
from limelight.translator import Translator

logger = logging.getLogger(__name__)

Report = Callable[[int, int], None]
REMEMBERED = 64  # results
OWN = 2  # rankings of a caller that has a name, before they are over: the others want their turn
USUAL = 10.0  # seconds that a ranking takes, before any has been made
LONGEST = 86_400.0  # seconds; nobody waits for more
PREPARED = "prepared"  # in the folder of a run
DIGITS = 6


@dataclass(frozen=True)
class ImportanceTask:
    """A task names the sentences to measure on; `texts` None: those of the validation set.

    `key` is the same for the same task; that of given sentences is their owner's alone.
    """

    texts: tuple[str, ...] | None
    sentences: int
    key: Hashable

    @property
    def characters(self) -> int:
        return sum(map(len, self.texts or ()))


class HeadRankings:
    """The rankings live in the event loop; `stopping` says whether the server stops.

    A ranking ends when it is done, when its client leaves, or when the server stops; then `report` raises, so it ends at its next pass.
    What was found is remembered by what was asked for: the same question is answered at once.
    """

    def __init__(self, most: int, stopping: Callable[[], bool]) -> None:
        self._most, self._stopping = most, stopping
        self._pool, self._turn = DeskPool("ranking", 1, most, USUAL), asyncio.Lock()
        self._open: Counter[str] = Counter()  # waiting and running, by owner
        self._known: OrderedDict[Hashable, dict[str, Any]] = OrderedDict()

    async def run(
        self, key: Hashable, owner: str, work: Callable[[Report], dict[str, Any]]
    ) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """Yield how far it is, before each pass, and then the result. Closing it ends the work."""
        if key not in self._known:
            self._check_room(owner)
            self._open[owner] += 1
            progress: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
            running = asyncio.ensure_future(self._run(work, progress.put_nowait))
            running.add_done_callback(lambda _: progress.put_nowait(None))
            try:
                while (told := await progress.get()) is not None:
                    yield "progress", told
                self._known[key] = running.result()
            finally:
                running.cancel()
                self._open[owner] -= 1
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        yield "result", self._known[key]

    def close(self) -> None:
        self._pool.close()

    def _check_room(self, owner: str) -> None:
        own, wait = self._open[owner], self._pool.seconds
        if owner and own >= OWN:
            raise TooMany(f"{own} rankings of yours are not done yet", "wait for one, or end it", retry_after=wait)
        if self._open.total() >= self._most:
            raise TooMany(f"{self._most} rankings wait or run already", "try again later", retry_after=wait)

    async def _run(self, work: Callable[[Report], dict[str, Any]], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """One at a time; who leaves while it waits leaves nothing behind."""
        loop, deadline = asyncio.get_running_loop(), Deadline(LONGEST)

        def check() -> None:
            if deadline.is_over() or self._stopping():
                raise Stopping("the server is stopping", "send it to another one, or again in a moment", retry_after=5)

        def report(done: int, total: int) -> None:
            check()
            loop.call_soon_threadsafe(tell, {"done": done, "total": total})

        def in_thread() -> dict[str, Any]:
            check()
            try:
                return work(report)
            except (ConfigError, DataError) as error:
                raise BadRequest(str(error)) from None
            except Refusal:
                raise
            except Exception as error:  # it may come after the answer has begun, when nobody else writes it down
                logger.error("a ranking failed", exc_info=error)
                raise

        async with self._turn:
            return await self._pool.run(in_thread, deadline)


def make_importance_task(served: ServedModel, asked: ImportanceRequest, owner: str) -> ImportanceTask:
    if (asked.sentences is None) == (asked.set is None):
        raise BadRequest('give either "sentences" or "set"', 'such as {"sentences": ["A cat sits."]}')
    version = served.bundle.loaded.version if served.bundle.loaded else 0
    if asked.sentences is not None:
        written = json.dumps(asked.sentences).encode()
        key = (served.id, version, *asked.tags, asked.mode, owner, hashlib.sha256(written).hexdigest())
        return ImportanceTask(tuple(asked.sentences), len(asked.sentences), key)
    if _find_prepared(served) is None:
        raise NotFound(f"the model {served.id} has no validation set here", 'give "sentences" instead')
    if served.direction != served.bundle.direction:
        raise NotFound(f"pairs of the set are from {' to '.join(served.bundle.direction)}", 'give "sentences" for other directions')
    return ImportanceTask(None, asked.n, (served.id, version, *asked.tags, asked.mode, asked.set, asked.n))


def rank_heads(served: ServedModel, asked: ImportanceTask, longest: int, report: Report) -> dict[str, Any]:
    """What muting each head does to the translations: the model's own, or those of the set."""
    translator = served.translator
    sources, targets = (asked.texts, None) if asked.texts else _pairs_of_set(served, asked.sentences)
    pairs = _as_ids(translator, sources, targets, longest)
    skipped = len(sources) - len(pairs)
    given = len(translator.target_ids([""])[0])
    engine = translator.torch_engine
    from limelight.inspection.analysis.importance import importance

    found = importance(engine.model, pairs, engine.specials, report, given)
    return {"sentences": len(pairs), "skipped": skipped, "heads": [_round_values(asdict(each)) for each in found]}


def _as_ids(
    translator: Translator, sources: tuple[str, ...], targets: tuple[str, ...] | None, longest: int
) -> list[tuple[list[int], list[int]]]:
    """Return ids as the model reads and writes them, without their ends. Pairs of a set that do not fit are left out; given sentences
    are named, and only those whose translation does not fit are left out."""
    read = translator.source_ids(sources)
    room = min(longest, translator.settings.model.max_length - 1)
    wrong = [f"sentence {i} has {len(ids)} pieces" for i, ids in enumerate(read) if not 0 < len(ids) <= room]
    if wrong and targets is None:
        raise LengthError(f"{', '.join(wrong)}, and one takes 1 to {room}; cut them, or leave them out")
    if targets is None:
        # As the model alone does it: what is protected, and terms, are put in beside the model.
        made = translator.translate(sources, protect=False, glossary=[None] * len(sources), segment=False)
        targets = tuple(each.text for each in made)
    written = translator.target_ids(targets)
    pairs = [(source, target) for source, target in zip(read, written, strict=True) if 0 < len(source) <= room and len(target) < room]
    if not pairs:
        raise DataError("none of these sentences has a translation that fits; give others")
    return pairs


def _find_prepared(served: ServedModel) -> Path | None:
    place = None if served.run is None else served.run / PREPARED
    return place if place is not None and (place / "manifest.json").is_file() else None


def _pairs_of_set(served: ServedModel, wanted: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return `wanted` pairs of the validation set, from all over it."""
    from limelight.corpus.feeding.shards import PreparedCorpus

    place = _find_prepared(served)
    if place is None:
        raise NotFound("the validation set is not there any more")
    pairs = PreparedCorpus.open(place, verify=False).split("valid")
    usual = pairs.usual
    some = np.unique(np.linspace(0, len(usual) - 1, min(wanted, len(usual))).astype(np.int64))
    sources, targets = pairs.texts(usual[some])
    return tuple(sources.to_pylist()), tuple(targets.to_pylist())


def _round_values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in values.items()}
