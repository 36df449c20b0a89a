"""`RayEngine` runs the stages on a cluster, where Ray Data reads, maps and shuffles by hash. Same functions, same bytes as on one machine.

Inputs and the output folder must be reachable from every node under the same name (a shared file system, or for inputs any fsspec address).
Parts are read in parallel, each by one task, so a corpus of many files uses many nodes. A lost node costs its own work, which Ray does
again; a lost driver costs the exchange. Where Ray would wait for ever for a node that does not come back, an error names the node.
"""

import json
import logging
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import ray
import ray.data
from ray.data.context import ShuffleStrategy
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from limelight.corpus.exchange.engine import Finish, Job, Progress, Stage, Watch, Work, no_rows
from limelight.corpus.readers import read
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.raw_batches import RAW
from limelight.errors import LimelightError

ROWS = 65_536
# Ray's hash shuffle keeps cores back for its second half: of two, that leaves one for all the rest (23 s against 14 for a million pairs).
FEW_CORES = 4
POLL_SECONDS = 5.0
LOST_SECONDS = (
    90.0  # without any work begun and with idle cores, after a node was lost; Ray itself takes up to 30 to notice one that is cut off
)
BUSY_SECONDS = 1_800.0  # likewise, while cores are in use
Row = TypeVar("Row")


class RayEngine:
    """The engine joins the cluster that RAY_ADDRESS or an earlier `ray.init` names, else starts one on this machine."""

    def __init__(self) -> None:
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        if ray.cluster_resources().get("CPU", 0) <= FEW_CORES:
            context.shuffle_strategy = ShuffleStrategy.SORT_SHUFFLE_PULL_BASED
        logging.getLogger("ray.data").setLevel(logging.WARNING)

    def exchange(
        self, parts: Sequence[CorpusPart], stage: Stage, buckets: int, finish: Finish, folder: Path, watch: Watch
    ) -> Iterator[dict[str, Any]]:
        def read_and_map(items: pa.Table) -> Iterator[pa.Table]:
            for item in items.column("part").to_pylist():
                for batch in read(CorpusPart(**json.loads(item)), ROWS):
                    beats.add.remote()
                    yield stage(batch)

        def finish_bucket(rows: pa.Table) -> pa.Table:
            beats.add.remote()
            bucket = rows.column("bucket")[0].as_py()
            return pa.table({"bucket": [bucket], "outcome": [json.dumps(finish(bucket, rows.combine_chunks()))]})

        watch(Progress("settle", 0, buckets))
        beats = _count_beats()
        items = [{"part": json.dumps(asdict(part))} for part in parts]
        rows = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(read_and_map, batch_size=1, batch_format="pyarrow")
        finished = rows.groupby("bucket", num_partitions=buckets).map_groups(finish_bucket, batch_format="pyarrow")
        outcomes: dict[int, dict[str, Any]] = {}
        with _our_errors():
            for row in _end_if_lost(finished.iter_rows(), beats):
                outcomes[row["bucket"]] = json.loads(row["outcome"])
                watch(Progress("settle", len(outcomes), buckets))
        for bucket in range(buckets):  # a bucket without rows is settled here
            yield outcomes[bucket] if bucket in outcomes else finish(bucket, stage(no_rows(RAW)))

    def each(self, jobs: Sequence[Job], work: Work[Job], watch: Watch) -> Iterator[dict[str, Any]]:
        watch(Progress("encode", 0, len(jobs)))
        beats = _count_beats()

        def run(job: Job) -> dict[str, Any]:
            beats.add.remote()
            return work(job)

        waiting = [ray.remote(run).remote(job) for job in jobs]
        with _our_errors():
            for done, result in enumerate(_end_if_lost(map(ray.get, waiting), beats), 1):
                watch(Progress("encode", done, len(jobs)))
                yield result

    def close(self) -> None:
        """The cluster stays: it may be somebody else's, and one that was started here ends with this process."""


class WorkCounter:
    """An actor beside the driver counts what tasks have begun, on whichever node."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1

    def read(self) -> int:
        return self.count


def _count_beats() -> Any:
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0)(WorkCounter).options(scheduling_strategy=here).remote()


def _end_if_lost(rows: Iterator[Row], beats: Any) -> Iterator[Row]:
    """The rows; but when nodes were lost and nothing has been begun for LOST_SECONDS, an error with their addresses."""
    found: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_put_rows, args=(rows, found), daemon=True).start()
    before, last, since = _lost_nodes(), -1, time.monotonic()
    while True:
        try:
            kind, what = found.get(timeout=POLL_SECONDS)
        except queue.Empty:
            lost = sorted(address for name, address in _lost_nodes().items() if name not in before)
            # Between reading and finishing a cluster shuffles, and begins nothing of ours for long: then its cores are in use.
            idle = ray.available_resources().get("CPU", 0) >= ray.cluster_resources().get("CPU", 0)
            count = ray.get(beats.read.remote())
            if count != last or not lost:
                last, since = count, time.monotonic()
            elif time.monotonic() - since >= (LOST_SECONDS if idle else BUSY_SECONDS):
                raise LimelightError(
                    f"the cluster lost {', '.join(lost)}, and nothing was begun for {time.monotonic() - since:.0f} s; see to it that "
                    "enough nodes are there (ray status), and run the same command again"
                ) from None
            continue
        if kind == "error":
            raise what
        if kind == "end":
            return
        since = time.monotonic()
        yield what


def _lost_nodes() -> dict[str, str]:
    return {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if not node["Alive"]}


def _put_rows(rows: Iterator[Any], found: "queue.SimpleQueue[tuple[str, Any]]") -> None:
    try:
        for row in rows:
            found.put(("row", row))
        found.put(("end", None))
    except BaseException as error:
        found.put(("error", error))


@contextmanager
def _our_errors() -> Iterator[None]:
    """An error of ours, raised on some node and wrapped on its way here, comes out as itself."""
    try:
        yield
    except ray.exceptions.RayError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, LimelightError):
            cause = getattr(cause, "cause", None) or cause.__cause__
        raise cause or LimelightError(f"the cluster gave up: {error}") from None
