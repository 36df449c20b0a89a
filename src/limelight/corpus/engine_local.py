"""The engine of one machine: Polars inside a pool of processes, buckets on disk, memory that does not grow with the corpus.

The exchange is two rounds of files. Each batch becomes one chunk file with one record batch per bucket; then each bucket is read from all
of them. A chunk or bucket that is on disk is done, so a run that was interrupted goes on where it stopped.
"""

import json
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from limelight.corpus.engine import Finish, Job, Progress, Stage, Watch, Work
from limelight.corpus.readers import read
from limelight.corpus.reading.raw import RAW, Part
from limelight.corpus.reading.streams import position, size_of
from limelight.errors import LimelightError
from limelight.files import whole_file, write_whole

CHUNK_ROWS = 65_536
WAITING = 2  # tasks waiting for each worker: enough to keep it busy, few enough to bound memory

_tasks: dict[str, Callable[..., Any]] = {}  # what a worker process was started for; sent once, not with every batch


class LocalEngine:
    """`workers` processes beside this one, which reads; 0 does all of it here. Intermediate files live in `folder`."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.workers = workers

    def exchange(
        self, parts: Sequence[Part], stage: Stage, buckets: int, finish: Finish, watch: Watch
    ) -> Iterator[dict[str, Any]]:
        chunks, outcomes = self.folder / "chunks", self.folder / "outcomes"
        for made in (chunks, outcomes):
            made.mkdir(parents=True, exist_ok=True)
        with self._pool({"stage": stage, "finish": finish}) as run:
            for finished in run("stage", _store_chunk, self._batches(parts, chunks, watch)):
                if finished:  # results come in order: all chunks of this part are on disk
                    write_whole(*finished)
            missing = [(b, chunks, outcomes) for b in range(buckets) if not _outcome(outcomes, b).exists()]
            done = buckets - len(missing)
            watch(Progress("settle", done, buckets))
            for _ in run("finish", _finish_bucket, missing):
                done += 1
                watch(Progress("settle", done, buckets))
        for bucket in range(buckets):
            yield json.loads(_outcome(outcomes, bucket).read_bytes())

    def each(self, jobs: Sequence[Job], work: Work[Job], watch: Watch) -> Iterator[dict[str, Any]]:
        watch(Progress("encode", 0, len(jobs)))
        with self._pool({"work": work}) as run:
            for done, result in enumerate(run("work", _call, ((job,) for job in jobs)), 1):
                watch(Progress("encode", done, len(jobs)))
                yield result

    def _batches(self, parts: Sequence[Part], chunks: Path, watch: Watch) -> Iterator[tuple[Path, bytes]]:
        """Batches that have no chunk file yet. A part that was read to its end is not read again."""
        sizes = [sum(map(size_of, part.paths)) for part in parts]
        total, pairs = sum(sizes), 0
        watch(Progress("read", 0, total))
        for number, part in enumerate(parts):
            finished = chunks / f"part-{number:05d}.json"
            if finished.exists():
                pairs += json.loads(finished.read_bytes())["pairs"]
                watch(Progress("read", sum(sizes[: number + 1]), total, pairs))
                continue
            before = pairs
            for index, batch in enumerate(read(part, CHUNK_ROWS)):
                pairs += len(batch)
                path = chunks / f"chunk-{number:05d}-{index:06d}.arrow"
                if not path.exists():
                    yield path, batch.serialize().to_pybytes()
                watch(Progress("read", sum(sizes[:number]) + sum(map(position, part.paths)), total, pairs))
            yield finished, json.dumps({"pairs": pairs - before}).encode()
            watch(Progress("read", sum(sizes[: number + 1]), total, pairs))

    @contextmanager
    def _pool(self, tasks: dict[str, Callable[..., Any]]) -> Iterator[Callable[..., Iterator[Any]]]:
        """A function that runs tasks in the pool, or here when there are no workers, and yields results in order."""
        if self.workers == 0:
            _begin(tasks)
            yield lambda name, call, arguments: (call(name, *each) for each in arguments)
            return
        # One Polars thread per worker: the processes are the parallelism. The variable must be there before a child imports Polars.
        before = os.environ.get("POLARS_MAX_THREADS")
        os.environ["POLARS_MAX_THREADS"] = "1"
        try:
            with ProcessPoolExecutor(
                self.workers, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(tasks,)
            ) as pool:
                yield lambda name, call, arguments: _bounded(pool, self.workers * WAITING, call, name, arguments)
        except BrokenProcessPool:
            raise LimelightError(
                "a worker process died, most likely because memory ran out; run the same command again with fewer --workers: "
                "it goes on where it stopped"
            ) from None
        finally:
            os.environ.pop("POLARS_MAX_THREADS")
            if before is not None:
                os.environ["POLARS_MAX_THREADS"] = before


def _begin(tasks: dict[str, Callable[..., Any]]) -> None:
    _tasks.update(tasks)


def available_cores() -> int:
    """Those this process may use, which in a container are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _bounded(
    pool: ProcessPoolExecutor, most: int, call: Callable[..., Any], name: str, arguments: Iterator[Any]
) -> Iterator[Any]:
    """Like Executor.map, but takes from `arguments` only as fast as results come: a corpus is larger than memory."""
    waiting: deque[Future[Any]] = deque()
    try:
        for each in arguments:
            if len(waiting) >= most:
                yield waiting.popleft().result()
            waiting.append(pool.submit(call, name, *each))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _store_chunk(name: str, path: Path, content: bytes) -> tuple[Path, bytes] | None:
    """One record batch per bucket, in one file. The mark of a finished part goes back to the parent, which writes it in its turn."""
    if path.suffix == ".json":
        return path, content
    rows = pl.DataFrame(_tasks[name](pa.ipc.read_record_batch(pa.py_buffer(content), RAW)))
    buckets = rows.partition_by("bucket", as_dict=True, maintain_order=True)
    with whole_file(path) as beside:
        schema = rows.to_arrow().schema
        with pa.ipc.new_file(beside, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            for bucket in range(max((key[0] for key in buckets), default=-1) + 1):
                part = buckets.get((bucket,), rows.clear())
                writer.write_batch(part.to_arrow().combine_chunks().to_batches()[0] if len(part) else _empty(schema))
    return None


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _finish_bucket(name: str, bucket: int, chunks: Path, outcomes: Path) -> None:
    batches = [_tasks["stage"](_empty(RAW))]  # gives the schema where no chunk has rows for this bucket
    for path in sorted(chunks.glob("chunk-*.arrow")):
        with pa.memory_map(str(path)) as mapped:
            reader = pa.ipc.open_file(mapped)
            if bucket < reader.num_record_batches:
                batches.append(pa.Table.from_batches([reader.get_batch(bucket)]))
    rows = pa.concat_tables(batches)
    write_whole(_outcome(outcomes, bucket), json.dumps(_tasks[name](bucket, rows)).encode())


def _outcome(folder: Path, bucket: int) -> Path:
    return folder / f"bucket-{bucket:05d}.json"


def _call(name: str, job: Any) -> dict[str, Any]:
    result: dict[str, Any] = _tasks[name](job)
    return result
