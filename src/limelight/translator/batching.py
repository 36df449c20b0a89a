"""Sentences of mixed length are grouped into batches that waste little, longest first.

Sorted by length, a batch has almost no padding. The longest come first, so that memory is at its peak at once instead of after an hour, and
what is left gets faster, never slower, than an estimate said.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TypeVar

LEAST_PIECES = 256  # below this a batch takes no less time for being smaller
# Rows of a batch, beams included. Short sentences would else fill thousands, and a row has a logit for every piece of the vocabulary:
# 1,024 rows are 130 MB at 32,000 pieces. More are not faster on a CPU.
BATCH_ROWS = 1024

Work = TypeVar("Work")
Result = TypeVar("Result")


def cut(lengths: Sequence[int], pieces: int, rows: int = BATCH_ROWS) -> list[list[int]]:
    """Numbers of sentences, batch by batch: as many as rows * longest <= pieces allows, and always one.

    cut([3, 9, 2, 8], pieces=18) -> [[1, 3], [0, 2]]
    """
    batches: list[list[int]] = []
    room = 0
    for number in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if not room:
            batches.append([])
            room = max(1, min(rows, pieces // max(1, lengths[number])))
        batches[-1].append(number)
        room -= 1
    return batches


def run(pool: Executor | None, work: Callable[[Work], Result], batches: Sequence[Work]) -> Iterator[Result]:
    """The results in the order of the batches: one after the other, or as many at once as the pool has threads."""
    if pool is None or len(batches) < 2:
        yield from map(work, batches)
        return
    futures = [pool.submit(work, batch) for batch in batches]
    try:
        for future in futures:
            yield future.result()
    finally:  # an error or Ctrl-C: what has not begun never will
        for future in futures:
            future.cancel()
