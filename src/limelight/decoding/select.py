"""The moves of every search are here: the most probable pieces of each row, looking up by row, and which sentences stay."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from limelight.decoding.steps import Booleans, Floats, Integers

BLOCK = 64  # pieces looked at together by `best`
WIDE = 2048  # below this a whole row is searched as fast

Number = TypeVar("Number", bound=np.generic)


def best(log_probs_RV: Floats, k: int) -> tuple[Floats, Integers]:
    """The k highest of each row (..., V) and their ids, highest first. A number that is not one (NaN) counts as highest, so it is seen.

    The k highest lie in the k blocks with the highest maxima, so it is enough to find those and to search them: one pass over the row
    instead of several.
    """
    size = log_probs_RV.shape[-1]
    k = min(k, size)
    blocks = size // BLOCK
    if size < WIDE or blocks <= 2 * k:
        return _highest(log_probs_RV, k)
    return _best_by_blocks(log_probs_RV, k, blocks)


def _highest(x_RV: Floats, k: int) -> tuple[Floats, Integers]:
    """Of equals the first."""
    if k == 1:
        ids = x_RV.argmax(axis=-1)[..., None]
        return gather(x_RV, ids), ids
    size = x_RV.shape[-1]
    some = x_RV.argpartition(size - k, axis=-1)[..., size - k :] if k < size else np.broadcast_to(np.arange(k), x_RV.shape)
    ids = np.sort(some, axis=-1)[..., ::-1]  # falling, and turned round once more below
    order = gather(x_RV, ids).argsort(axis=-1, kind="stable")[..., ::-1]
    ids = gather(ids, order)
    return gather(x_RV, ids), ids


def _best_by_blocks(log_probs_RV: Floats, k: int, blocks: int) -> tuple[Floats, Integers]:
    *rows, size = log_probs_RV.shape
    flat_RV = log_probs_RV.reshape(-1, size)
    even_RNB = flat_RV[:, : blocks * BLOCK].reshape(-1, blocks, BLOCK)
    chosen_Rk = _highest(even_RNB.max(axis=-1), k)[1]
    inside_RkB = even_RNB[np.arange(len(flat_RV))[:, None], chosen_Rk]
    ids_RkB = chosen_Rk[..., None] * BLOCK + np.arange(BLOCK)
    rest_ids = np.broadcast_to(np.arange(blocks * BLOCK, size), (len(flat_RV), size - blocks * BLOCK))
    pool_RM = np.concatenate([inside_RkB.reshape(len(flat_RV), -1), flat_RV[:, blocks * BLOCK :]], axis=1)
    ids_RM = np.concatenate([ids_RkB.reshape(len(flat_RV), -1), rest_ids], axis=1)
    values, places = _highest(pool_RM, k)
    return values.reshape(*rows, k), gather(ids_RM, places).reshape(*rows, k)


def gather(x: npt.NDArray[Number], places: Integers) -> npt.NDArray[Number]:
    """Along the last axis, row by row: gather([[5, 6, 7]], [[2, 0]]) -> [[7, 5]]. Axes before it are the same in both."""
    size, count = x.shape[-1], places.shape[-1]
    first_R1 = np.arange(0, x.size, max(size, 1))[:, None]
    found: npt.NDArray[Number] = x.reshape(-1)[places.reshape(-1, count) + first_R1].reshape(places.shape)
    return found


def take_rows(x_BWX: npt.NDArray[Number], rows_BM: Integers) -> npt.NDArray[Number]:
    """Of each sentence these rows, (B, M, ...)."""
    found: npt.NDArray[Number] = x_BWX[np.arange(len(rows_BM))[:, None], rows_BM]
    return found


def staying(done_B: Booleans) -> tuple[int, Integers | None]:
    """How many sentences are not done, and which stay in the batch; None while it does not pay to move them.

    A move copies all that is remembered, so it is made only when a quarter of the batch is done.
    """
    stay = np.flatnonzero(~done_B)
    return len(stay), stay if 0 < len(stay) <= 0.75 * len(done_B) else None
