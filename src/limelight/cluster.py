"""A Ray cluster is joined and watched. Where Ray would wait for ever for a node that does not come back, an error names the node."""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from limelight.errors import LimelightError

POLL_SECONDS = 5.0
# Without any work begun and with idle cores, after a node was lost. Ray itself takes 30 to 60 to notice one that is cut off.
LOST_SECONDS = 50.0
BUSY_SECONDS = 1_800.0  # likewise, while cores are in use
Row = TypeVar("Row")


def join_cluster() -> None:
    """Join the cluster that RAY_ADDRESS or an earlier `ray.init` names, else start one on this machine, which ends with this process."""
    if not ray.is_initialized():
        try:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True)
        except Exception as error:  # it has no class of its own for a machine that is too busy to start it in time
            place = os.environ.get("RAY_ADDRESS", "this machine")
            raise LimelightError(f"Ray cannot be used at {place} ({error}); look at ray status, and at RAY_ADDRESS") from None


class WorkCounter:
    """An actor beside the driver counts what tasks have begun, on whichever node."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1

    def read(self) -> int:
        return self.count


def count_beats() -> Any:
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0)(WorkCounter).options(scheduling_strategy=here).remote()


def end_if_lost(rows: Iterator[Row], beats: Any, is_waiting: Callable[[], bool] = lambda: True) -> Iterator[Row]:
    """The rows; but when nodes were lost and nothing has been begun for LOST_SECONDS, an error with their addresses.

    `is_waiting`: is it the cluster that is waited for?
    """
    found: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_put_rows, args=(rows, found), daemon=True).start()
    before, last, since = _list_lost_nodes(), -1, time.monotonic()
    while True:
        try:
            kind, what = found.get(timeout=POLL_SECONDS)
        except queue.Empty:
            lost = sorted(address for name, address in _list_lost_nodes().items() if name not in before)
            # Between reading and finishing a cluster shuffles, and begins nothing of ours for long: then its cores are in use.
            idle = ray.available_resources().get("CPU", 0) >= ray.cluster_resources().get("CPU", 0)
            count = ray.get(beats.read.remote())
            if count != last or not lost or not is_waiting():
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


def _list_lost_nodes() -> dict[str, str]:
    return {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if not node["Alive"]}


def _put_rows(rows: Iterator[Any], found: "queue.SimpleQueue[tuple[str, Any]]") -> None:
    try:
        for row in rows:
            found.put(("row", row))
        found.put(("end", None))
    except BaseException as error:
        found.put(("error", error))


@contextmanager
def our_errors() -> Iterator[None]:
    """An error of ours, raised on some node and wrapped on its way here, comes out as itself."""
    try:
        yield
    except ray.exceptions.RayError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, LimelightError):
            cause = getattr(cause, "cause", None) or cause.__cause__
        raise cause or LimelightError(f"the cluster gave up: {error}") from None
