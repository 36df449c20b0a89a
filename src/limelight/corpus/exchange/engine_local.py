"""`LocalEngine` runs the stages on one machine, in a pool of processes with buckets on disk. The processes use Polars, and memory does not
grow with the corpus.

The exchange is two rounds of files. Each batch becomes one chunk file with one record batch per bucket; then each bucket is read from all
of them. A chunk or bucket that is on disk is done, so a run that was interrupted goes on where it stopped.
"""

import json
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from limelight.corpus.exchange.engine import OUTCOMES, Finish, Job, Progress, Stage, Watch, Work, no_rows, outcome_at
from limelight.corpus.readers import read
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.raw_batches import RAW
from limelight.corpus.reading.streams import position, size_of
from limelight.corpus.worker_processes import end_with_parent
from limelight.errors import DataError, LimelightError
from limelight.files import whole_file, write_whole

CHUNK_ROWS = 65_536
WAITING = 2  # tasks waiting for each worker: enough to keep it busy, few enough to bound memory


class LocalEngine:
    """The engine has `workers` processes beside this one, which reads; 0 does all of it here."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._open()

    def _open(self) -> None:
        """The processes begin again after `close`, if there is more to do."""
        if self.workers and self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.workers, spawn, initializer=end_with_parent)

    def start(self, *used: type) -> None:
        """Let the workers load what these classes need while this process does something else. They start by themselves, too."""
        if self._pool is not None:
            with _one_polars_thread():
                for _ in range(self.workers):
                    self._pool.submit(_load, used)

    def exchange(
        self, parts: Sequence[CorpusPart], stage: Stage, buckets: int, finish: Finish, folder: Path, watch: Watch
    ) -> Iterator[dict[str, Any]]:
        chunks = folder / "chunks"
        for made in (chunks, folder / OUTCOMES):
            made.mkdir(parents=True, exist_ok=True)
        batches = ((stage, path, content) for path, content in self._batches(parts, chunks, watch))
        for finished in self._run(_store_chunk, batches):
            if finished:  # results come in order: all chunks of this part are on disk
                mark, content = finished
                write_whole(mark, content, durable=False)
        missing = [bucket for bucket in range(buckets) if not outcome_at(folder, bucket).exists()]
        done = buckets - len(missing)
        watch(Progress("settle", done, buckets))
        for _ in self._run(_finish_bucket, ((stage, finish, bucket, chunks, folder) for bucket in missing)):
            done += 1
            watch(Progress("settle", done, buckets))
        for bucket in range(buckets):
            yield json.loads(outcome_at(folder, bucket).read_bytes())

    def each(self, jobs: Sequence[Job], work: Work[Job], watch: Watch) -> Iterator[dict[str, Any]]:
        watch(Progress("encode", 0, len(jobs)))
        for done, result in enumerate(self._run(work, ((job,) for job in jobs)), 1):
            watch(Progress("encode", done, len(jobs)))
            yield result

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _batches(self, parts: Sequence[CorpusPart], chunks: Path, watch: Watch) -> Iterator[tuple[Path, bytes]]:
        """Batches that have no chunk file yet. A part that was read to its end, and whose chunks are all there, is not read again."""
        sizes = [sum(map(size_of, part.paths)) for part in parts]
        total, pairs = sum(sizes), 0
        watch(Progress("read", 0, total))
        there = Counter(path.name[: len("chunk-00000")] for path in chunks.glob("chunk-*.arrow"))
        for number, (part, before) in enumerate(zip(parts, accumulate([0, *sizes]), strict=False)):
            mark = chunks / f"part-{number:05d}.json"
            finished = json.loads(mark.read_bytes()) if mark.exists() else None
            if finished and finished["chunks"] == there[f"chunk-{number:05d}"]:
                pairs += finished["pairs"]
                continue
            index, mine = -1, 0
            for index, batch in enumerate(read(part, CHUNK_ROWS)):
                mine += len(batch)
                path = chunks / f"chunk-{number:05d}-{index:06d}.arrow"
                if not path.exists():
                    yield path, batch.serialize().to_pybytes()
                watch(Progress("read", before + sum(map(position, part.paths)), total, pairs + mine))
            pairs += mine
            yield mark, json.dumps({"pairs": mine, "chunks": index + 1}).encode()
        watch(Progress("read", total, total, pairs))

    def _run(self, call: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Like Executor.map, but takes from `arguments` only as fast as results come: a corpus is larger than memory."""
        self._open()
        if self._pool is None:
            yield from (call(*each) for each in arguments)
            return
        waiting: deque[Future[Any]] = deque()
        try:
            with _one_polars_thread():
                for each in arguments:
                    if len(waiting) >= self.workers * WAITING:
                        yield waiting.popleft().result()
                    waiting.append(self._pool.submit(call, *each))
                while waiting:
                    yield waiting.popleft().result()
        except BrokenProcessPool:
            raise LimelightError(
                "a worker process died, most likely because memory ran out; run the same command again with fewer --workers: "
                "it goes on where it stopped"
            ) from None
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _one_polars_thread() -> Iterator[None]:
    """The processes are the parallelism. The variable must be there when a child starts, before it imports Polars."""
    before = os.environ.get("POLARS_MAX_THREADS")
    os.environ["POLARS_MAX_THREADS"] = "1"
    try:
        yield
    finally:
        os.environ.pop("POLARS_MAX_THREADS")
        if before is not None:
            os.environ["POLARS_MAX_THREADS"] = before


def _load(used: tuple[type, ...]) -> None:
    """Receiving the classes has loaded their modules."""


def _store_chunk(stage: Stage, path: Path, content: bytes) -> tuple[Path, bytes] | None:
    """One record batch per bucket, in one file. The mark of a finished part goes back to the parent, which writes it in its turn."""
    if path.suffix == ".json":
        return path, content
    rows = pl.DataFrame(stage(pa.ipc.read_record_batch(pa.py_buffer(content), RAW)))
    ordered = rows.sort("bucket", maintain_order=True)
    buckets = dict(ordered.group_by("bucket").len().iter_rows())
    table, at = ordered.to_arrow().combine_chunks(), 0
    with (
        whole_file(path, durable=False) as beside,
        pa.ipc.new_file(beside, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer,
    ):
        for bucket in range(max(buckets, default=-1) + 1):
            part = table.slice(at, buckets.get(bucket, 0)).combine_chunks()
            writer.write_batch(part.to_batches()[0] if len(part) else no_rows(table.schema))
            at += len(part)
    return None


def _finish_bucket(stage: Stage, finish: Finish, bucket: int, chunks: Path, folder: Path) -> None:
    batches = [stage(no_rows(RAW))]  # gives the schema where no chunk has rows for this bucket
    for path in sorted(chunks.glob("chunk-*.arrow")):
        try:
            with pa.memory_map(str(path)) as mapped:
                reader = pa.ipc.open_file(mapped)
                if bucket < reader.num_record_batches:
                    batches.append(pa.Table.from_batches([reader.get_batch(bucket)]))
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{path}, left by an interrupted run, is damaged ({error}); delete it and run the same command again") from None
    rows = pa.concat_tables(batches, promote_options="default")
    write_whole(outcome_at(folder, bucket), json.dumps(finish(bucket, rows)).encode(), durable=False)
