"""A `Loader` gives one rank batches without end, built ahead by worker processes, from any saved state:

    with Loader(prepared, settings, workers=2, state=saved) as loader:
        for batch in loader:
            ...                        # batch.state, turned into JSON, is all a new process needs to go on with the next batch

Windows follow each other through the epochs. Worker k of n builds windows k, k + n, k + 2 n ... and the parent reads them in turn: while
one window is used up, the next are being built, and the order cannot depend on the number of workers. A worker stops when its pipe is
full, about two batches ahead, and the next window planned; and it ends when the other end is gone, however its parent died.
"""

import logging
import multiprocessing
import signal
import traceback
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import count, islice
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Final, Self

from limelight.corpus.feeding.batches import Batcher, BatchSettings, BatchShare, PairBatch, Window
from limelight.corpus.feeding.loader_state import Position, identity_of, position_in
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import Split
from limelight.corpus.worker_processes import end_with_parent
from limelight.errors import ConfigError, DataError, LimelightError

logger = logging.getLogger(__name__)

SECONDS_TO_END: Final = 5


@dataclass(frozen=True)
class WindowEnd:
    epoch: int
    window: int
    skipped: int


Event = BatchShare | WindowEnd


class Loader:
    """A loader iterates over the batches of one rank. `state` is the place after the last batch handed out, whatever was built ahead."""

    def __init__(
        self,
        prepared: PreparedCorpus,
        settings: BatchSettings,
        *,
        rank: int = 0,
        world: int = 1,
        workers: int = 0,
        state: dict[str, Any] | None = None,
        split: Split = "train",
        turned: bool = False,
    ) -> None:
        """`turned`: pairs come both ways round, until `turn_forward`; a state says which."""
        if not 0 <= rank < world or workers < 0:
            raise ConfigError(f"rank={rank} of world={world} with workers={workers}: ranks count from 0, workers are 0 or more")
        if split != "train":  # validation and test ask for the text as it is
            settings = settings.changed(augment=None, untagged=0.0, temperature=1.0, shards_at_once=0)
        self._prepared, self._job = prepared, LoaderJob(prepared.folder, split, settings, rank, world, turned)
        self._batcher = batcher = Batcher(prepared.split(split, turned), settings)
        if not any(weight * rows for weight, rows in zip(batcher.weights, batcher.pairs.counts, strict=True)):
            raise DataError(f"{prepared.folder} has nothing to load: every corpus of its {split} split is empty or has weight 0")
        if (cache := batcher.pairs.cache) is not None:
            # A worker has a window in use and the next one planned; one more group is fetched ahead.
            windows = max(1, batcher.windows(0) // len(batcher.order(0).groups))
            sizes = [sum(file.bytes for file in batcher.list_files([shard])) for shard in range(len(batcher.pairs.shards))]
            cache.refuse_small(sizes, settings.shards_at_once, 2 + -(-max(0, 2 * workers - 1) // windows))
        self._identity = identity_of(batcher, split, turned)
        self._position = Position() if state is None else position_in(state, self._identity)
        self._workers = workers
        self._team: Team | None = None
        self._events: Iterator[Event] | None = None

    @property
    def state(self) -> dict[str, Any]:
        """A JSON value. It may be used at another world size or with other workers: the list of global batches is the same."""
        return {**self._identity, **asdict(self._position)}

    @property
    def turned(self) -> bool:
        return self._job.turned

    def turn_forward(self) -> None:
        """From here on pairs come one way round, from the beginning of an epoch."""
        self.close()
        self._job = replace(self._job, turned=False)
        self._batcher = Batcher(self._prepared.split(self._job.split), self._job.settings)
        self._identity = identity_of(self._batcher, self._job.split)
        self._position = Position(self._position.epoch + 1)
        self.start()

    @property
    def pairs_per_epoch(self) -> int:
        """A pair that comes both ways round counts once."""
        return self._batcher.order(0).rows // (1 + self.turned)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> PairBatch:
        while True:
            batch = self._advance()
            if batch is not None:
                return batch

    def epoch(self, number: int) -> Generator[PairBatch, None, None]:
        """The rest of one epoch: from the present place if that is within it, else from its beginning."""
        if self._position.epoch != number:
            self.close()
            self._position = Position(epoch=number)
        while self._position.epoch == number and self._batcher.windows(number):
            batch = self._advance()
            if batch is not None:
                yield batch

    def start(self) -> None:
        """Lets the workers begin, so that the first batches are ready when they are asked for. The first `next` does it too."""
        if self._events is not None:
            return
        if self._workers:
            self._team = Team(self._job, self._position, self._workers)
            self._events = self._team.events()
        else:
            places = _windows_from(self._batcher, self._position)
            windows = ((self._batcher.window(place.epoch, place.window), place.batch) for place in places)
            self._events = events(self._job, self._batcher, windows)

    def close(self) -> None:
        """Ends the workers. A closed loader may be used again and goes on from its state."""
        self._events = None
        if self._team is not None:
            self._team.close()
            self._team = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _advance(self) -> PairBatch | None:
        """One batch, or nothing at the end of a window."""
        self.start()
        assert self._events is not None
        try:
            event = next(self._events)
        except BaseException:  # a broken feed must not go on as if nothing had happened
            self.close()
            raise
        here = self._position
        number, skipped = (here.number, here.skipped) if here.epoch == event.epoch else (0, 0)
        if isinstance(event, WindowEnd):
            self._end_window(event, number, skipped + event.skipped)
            return None
        self._position = Position(event.epoch, event.window, event.batch + 1, number + 1, skipped)
        return PairBatch(**vars(event), number=number, state=self.state)

    def _end_window(self, end: WindowEnd, number: int, skipped: int) -> None:
        if end.window + 1 < self._batcher.windows(end.epoch):
            self._position = Position(end.epoch, end.window + 1, 0, number, skipped)
            return
        self._position = Position(end.epoch + 1)
        if number == 0:
            budget = self._job.settings.budget
            raise DataError(f"none of the {skipped:,} pairs fits; raise {budget=} or `longest`")
        if skipped and self._job.rank == 0:
            counts = (end.epoch, skipped, self._batcher.order(end.epoch).rows)
            logger.warning("epoch %d: %d of %d pairs were longer than allowed and were skipped", *counts)


@dataclass(frozen=True)
class LoaderJob:
    """A job is what a worker must know to build the same windows as its parent."""

    folder: Path
    split: Split
    settings: BatchSettings
    rank: int
    world: int
    turned: bool


def events(job: LoaderJob, batcher: Batcher, windows: Iterable[tuple[Window, int]]) -> Iterator[Event]:
    """The batches of each window from a number on, and its end."""
    for window, first in windows:
        yield from batcher.shares(window, job.rank, job.world, first)
        yield WindowEnd(window.epoch, window.number, window.skipped)


def build_ahead(batcher: Batcher, places: Iterator[Position]) -> Iterator[tuple[Window, int]]:
    """The windows of some places, and the first batch asked for. The next window is built by a thread while this one is used up: to
    change or sample the text of one takes seconds, and a worker that waits for its pipe has nothing else to do. All windows are built by
    that thread, since a tokenizer serves one."""
    with ThreadPoolExecutor(1) as thread:
        place = next(places)
        coming = thread.submit(batcher.window, place.epoch, place.window)
        while True:
            first, window, place = place.batch, coming.result(), next(places)
            coming = thread.submit(batcher.window, place.epoch, place.window)
            yield window, first


def _windows_from(batcher: Batcher, position: Position) -> Iterator[Position]:
    for epoch in count(position.epoch):
        for window in range(position.window if epoch == position.epoch else 0, batcher.windows(epoch)):
            here = (epoch, window) == (position.epoch, position.window)
            yield Position(epoch, window, position.batch if here else 0)


class Team:
    """A team is worker processes and their pipes. They are spawned, since the fork of a process with threads may inherit a held lock."""

    def __init__(self, job: LoaderJob, position: Position, size: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.readers: list[Connection] = []
        self.processes: list[BaseProcess] = []
        # At the end of the interpreter, multiprocessing runs this before it waits for its children.
        self.close = Finalize(self, _end, args=(self.readers, self.processes), exitpriority=10)
        for offset in range(size):
            reader, writer = context.Pipe(duplex=False)
            arguments = (writer, job, position, offset, size)
            process = context.Process(target=work, args=arguments, daemon=True, name=f"limelight loader {offset}")
            self.readers.append(reader)
            process.start()
            self.processes.append(process)
            writer.close()  # the worker's own copy is the only one, so that its death is seen here as the end of the pipe

    def events(self) -> Iterator[Event]:
        for turn in count():
            event = None
            while not isinstance(event, WindowEnd):
                event = self._receive(turn % len(self.readers))
                yield event

    def _receive(self, worker: int) -> Event:
        try:
            received = self.readers[worker].recv()
        except EOFError:
            process = self.processes[worker]
            process.join(SECONDS_TO_END)
            raise LimelightError(
                f"loader worker {worker} stopped with code {process.exitcode} (-9: killed, often for want of memory); use fewer workers. "
                "If your script started the loader, it needs `if __name__ == '__main__':` around its work"
            ) from None
        if isinstance(received, Exception):
            raise received
        assert isinstance(received, BatchShare | WindowEnd)
        return received


def _end(readers: list[Connection], processes: list[BaseProcess]) -> None:
    """Workers only read, so they may be killed at any time; one that is deep in a window would notice the closed pipe too late."""
    for reader in readers:
        reader.close()
    for process in processes:
        process.kill()
        process.join(SECONDS_TO_END)
        process.close()


def work(writer: Connection, job: LoaderJob, position: Position, offset: int, every: int) -> None:
    """The life of a worker process."""
    # A signal to the whole group is for the parent, which may want some more batches before it saves.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent()  # a closed pipe is noticed at the next batch only, which may be seconds away
    try:
        batcher = Batcher(PreparedCorpus.open(job.folder, verify=False).split(job.split, job.turned), job.settings)
        places = islice(_windows_from(batcher, position), offset, None, every)
        for event in events(job, batcher, build_ahead(batcher, places)):
            writer.send(event)
    except BrokenPipeError:
        return
    except LimelightError as error:
        writer.send(error)
    except Exception:
        writer.send(LimelightError(f"loader worker {offset} failed:\n{traceback.format_exc()}"))
