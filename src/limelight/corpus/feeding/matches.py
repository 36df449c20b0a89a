"""`find_matches` finds for some pairs of a window another pair whose target is told with their source, as a memory's match will be.

    "Could not open file %s"   ->   the row of "Could not open the file %s"

A similar source stands near by in the alphabetical order of the window's sources, read from the front or from the back: a few neighbours
on each side are compared. So it costs a window two sorts, and no index. One pair in five, and each that has no similar one, gets an
unrelated pair, so that a model learns how far to trust what it is told.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from rapidfuzz.distance import Indel
from rapidfuzz.process import cpdist

from limelight.chance import Words
from limelight.corpus.feeding.pieces import Integers

LEAST_SIMILAR: Final = 0.5  # the share of characters that need not be inserted or deleted: below a memory's least, to have enough of them
NEIGHBOURS: Final = 6  # on each side, from the front and from the back
UNRELATED: Final = 5  # one in so many
COMPARED: Final = 300  # characters
SLICE: Final = 1 << 13  # rows compared at once: their texts take some 50 MB


def find_matches(sources: pa.StringArray, groups: Integers, rows: Integers, chances: Words) -> Integers:
    """Of each of these rows, the row whose target it is told; -1: none. Both are of one group, and their sources differ."""
    texts = pl.from_arrow(sources)
    assert isinstance(texts, pl.Series)
    front, back = (_sort(groups, each) for each in (texts, texts.str.reverse()))
    near = np.concatenate([_list_neighbours(order, rows) for order in (front, back)], axis=1)
    slices = (slice(at, at + SLICE) for at in range(0, len(rows), SLICE))
    scores = np.concatenate([_compare(texts, groups, rows[some], near[some]) for some in slices])
    every, best = np.arange(len(rows)), scores.argmax(axis=1)
    number, drawn = np.divmod(chances, np.uint64(UNRELATED))
    begin, end = (np.searchsorted(groups[front], groups[rows], side) for side in ("left", "right"))
    unrelated = front[begin + (number % (end - begin).astype(np.uint64)).astype(np.int64)]
    told = np.where((scores[every, best] >= LEAST_SIMILAR) & (drawn > 0), near[every, best], unrelated)
    return np.where((texts.gather(told) != texts.gather(rows)).to_numpy(), told, -1)


def _sort(groups: Integers, texts: pl.Series) -> Integers:
    """The rows by group and text; equals stay in their order."""
    both = pl.DataFrame({"group": groups, "text": texts})
    return both.select(pl.arg_sort_by("group", "text", maintain_order=True)).to_series().to_numpy().astype(np.int64)


def _list_neighbours(order: Integers, rows: Integers) -> Integers:
    """Of each row those that stand before and after it in an order; at an end of it, some twice."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    steps = np.array([step for step in range(-NEIGHBOURS, NEIGHBOURS + 1) if step])
    found: Integers = order[np.clip(place[rows][:, None] + steps, 0, len(order) - 1)]
    return found


def _compare(texts: pl.Series, groups: Integers, rows: Integers, near: Integers) -> npt.NDArray[np.float32]:
    """How similar each row is to each of its neighbours; 0 if that is of another group, or the same text."""
    pairs = np.repeat(rows, near.shape[1]), near.ravel()
    mine, theirs = map(texts.gather, pairs)
    apart = (mine == theirs).to_numpy() | (groups[pairs[0]] != groups[pairs[1]])
    begins = (side.str.head(COMPARED).to_list() for side in (mine, theirs))
    scores = cpdist(*begins, scorer=Indel.normalized_similarity, score_cutoff=LEAST_SIMILAR)
    return np.where(apart, np.float32(0), scores).reshape(near.shape)
