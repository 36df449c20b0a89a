"""An error in one process of a run is raised in all of them, with its rank and file.

Without this the others would wait for the one that failed until somebody ends them.
"""

import errno
from collections.abc import Callable
from typing import Any, TypeVar

from limelight.training.processes.world import World

Made = TypeVar("Made")


def run_on_all(world: World, doing: Callable[[], Made]) -> Made:
    """Called by all. Each does its own; when it failed in any, all raise the same OSError. A fault of ours stays what it is where it was.

    rank 1 has no space left:   OSError(28, "rank 1: No space left on device", "/run/checkpoints/...") in rank 0 as well
    """
    if world.size == 1:
        return doing()
    error: Exception | None = None
    try:
        made = doing()
    except Exception as raised:
        error = raised
    failed = [(rank, words) for rank, words in enumerate(world.gather(_words_of(error))) if words is not None]
    if not failed:
        return made
    if error is not None and not isinstance(error, OSError):
        raise error
    rank, (number, text, path) = failed[0]
    others = f" (and {len(failed) - 1} more of {world.size} ranks failed)" if len(failed) > 1 else ""
    raise OSError(number, f"rank {rank}: {text}{others}", path) from error


def run_on_main(world: World, doing: Callable[[], Made]) -> Made:
    """Called by all, done by the main process; what it returns, as JSON has it, is told to the others."""

    def done() -> Any:
        return doing() if world.main else None

    made: Made = world.broadcast(run_on_all(world, done))
    return made


def _words_of(error: Exception | None) -> tuple[int, str, str | None] | None:
    if error is None:
        return None
    if isinstance(error, OSError):
        return error.errno or errno.EIO, error.strerror or str(error), error.filename and str(error.filename)
    return errno.EIO, f"{type(error).__name__}: {error}", None
