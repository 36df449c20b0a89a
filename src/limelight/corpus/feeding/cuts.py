"""These functions sort the pairs of a window by length and find where one batch ends and the next begins."""

import math

import numpy as np

from limelight.corpus.feeding.order import Integers


def stride_for(source: Integers, target: Integers, budget: int) -> int:
    """How many target lengths count as equal when pairs are sorted: 1.5 x mean length x sqrt(rows of a batch / rows), rounded up.

    With few rows there are too few of each target length to choose the sources from. The factor fits Europarl and Multi30k, windows
    of 4,096 to 131,072 and budgets of 4,096 and 25,000. Integers alone decide, so that every machine finds the same.
    """
    rows, pieces = max(1, len(source)), int(source.sum() + target.sum())
    return math.isqrt(9 * pieces * budget // (16 * rows * rows)) + 1


def snake(source: Integers, target: Integers, stride: int) -> Integers:
    """The order by target length in steps of `stride`; within a step by source length, up and down in turn: no neighbours are far apart.

    targets 1 1 2 2 with sources 5 9 5 9, stride 1  ->  (5, 1) (9, 1) (9, 2) (5, 2)
    """
    step = target // stride
    return np.lexsort((target, np.where(step % 2 == 1, source, -source), step))


def cut(source: Integers, target: Integers, budget: int) -> Integers:
    """Where batches begin and end: each takes rows while rows x (longest source + longest target) stays within the budget.

    cut([2, 2, 3], [2, 2, 3], budget=8) -> [0, 2, 3]
    """
    cuts = [0]
    while cuts[-1] < len(source):
        begin = cuts[-1]
        most = budget // int(source[begin] + target[begin])
        widths = np.maximum.accumulate(source[begin : begin + most]) + np.maximum.accumulate(
            target[begin : begin + most]
        )
        cells = widths * np.arange(1, len(widths) + 1)
        cuts.append(begin + int(np.searchsorted(cells, budget, side="right")))
    return np.array(cuts, np.int64)
