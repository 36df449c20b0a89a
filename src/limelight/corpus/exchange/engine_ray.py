"""`RayEngine` runs the stages on a cluster, where Ray Data reads, maps and shuffles by hash. Same functions, same bytes as on one machine.

Inputs and the output folder must be reachable from every node under the same name (a shared file system, or for inputs any fsspec address).
Parts are read in parallel, each by one task, so a corpus of many files uses many nodes. A lost node costs its own work, which Ray does
again. A bucket whose outcome is on disk is done: after the driver was lost, text is read again, and rows of the other buckets alone go on.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import ray
import ray.data
from ray.data.context import ShuffleStrategy

from limelight.cluster import count_beats, end_if_lost, join_cluster, our_errors
from limelight.corpus.exchange.engine import OUTCOMES, Finish, Job, Progress, Stage, Watch, Work, no_rows, outcome_at
from limelight.corpus.readers import read
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.raw_batches import RAW
from limelight.files import write_whole

ROWS = 65_536
# Ray's hash shuffle keeps cores back for its second half: of two, that leaves one for all the rest (23 s against 14 for a million pairs).
FEW_CORES = 4


class RayEngine:
    """The engine joins the cluster that RAY_ADDRESS or an earlier `ray.init` names, else starts one on this machine."""

    def __init__(self) -> None:
        join_cluster()
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
                    rows = stage(batch)
                    yield rows.filter(pc.is_in(rows.column("bucket"), wanted))

        def finish_bucket(rows: pa.Table) -> pa.Table:
            beats.add.remote()
            bucket = rows.column("bucket")[0].as_py()
            return pa.table({"bucket": [bucket], "outcome": [json.dumps(finish(bucket, rows.combine_chunks()))]})

        (folder / OUTCOMES).mkdir(parents=True, exist_ok=True)
        missing = [bucket for bucket in range(buckets) if not outcome_at(folder, bucket).exists()]
        done = buckets - len(missing)
        watch(Progress("settle", done, buckets))
        wanted, beats = pa.array(missing, pa.int32()), count_beats()
        items = [{"part": json.dumps(asdict(part))} for part in parts]
        rows = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(read_and_map, batch_size=1, batch_format="pyarrow")
        finished = rows.groupby("bucket", num_partitions=buckets).map_groups(finish_bucket, batch_format="pyarrow")
        with our_errors():
            for row in end_if_lost(finished.iter_rows() if missing else iter(()), beats):
                write_whole(outcome_at(folder, row["bucket"]), row["outcome"].encode(), durable=False)
                done += 1
                watch(Progress("settle", done, buckets))
        for bucket in range(buckets):
            path = outcome_at(folder, bucket)
            if not path.exists():  # a bucket without rows has none, and is settled here
                write_whole(path, json.dumps(finish(bucket, stage(no_rows(RAW)))).encode(), durable=False)
            yield json.loads(path.read_bytes())

    def each(self, jobs: Sequence[Job], work: Work[Job], watch: Watch) -> Iterator[dict[str, Any]]:
        watch(Progress("encode", 0, len(jobs)))
        beats = count_beats()

        def run(job: Job) -> dict[str, Any]:
            beats.add.remote()
            return work(job)

        waiting = [ray.remote(run).remote(job) for job in jobs]
        with our_errors():
            for done, result in enumerate(end_if_lost(map(ray.get, waiting), beats), 1):
                watch(Progress("encode", done, len(jobs)))
                yield result

    def close(self) -> None:
        """The cluster stays: it may be somebody else's, and one that was started here ends with this process."""
