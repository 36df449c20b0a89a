"""The two moves of every search are here: the most probable pieces of each row, and which sentences stay."""

import torch
from torch import Tensor

BLOCK = 64  # pieces looked at together by `best`
WIDE = 2048  # below this torch's own search is as fast


def best(log_probs_RV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of each row (..., V) and their ids, highest first. A number that is not one (NaN) counts as highest, so it is seen.

    torch.topk copies each row with its indices. The k highest lie in the k blocks with the highest maxima, so it is enough to
    find those and to search them: one pass over the row instead of several.
    """
    size = log_probs_RV.shape[-1]
    k = min(k, size)
    blocks = size // BLOCK
    if size < WIDE or blocks <= 2 * k or log_probs_RV.device.type != "cpu":
        return _highest(log_probs_RV, k)
    return _best_by_blocks(log_probs_RV, k, blocks)


def _highest(x_RV: Tensor, k: int) -> tuple[Tensor, Tensor]:
    found = x_RV.max(dim=-1, keepdim=True) if k == 1 else x_RV.topk(k, dim=-1)
    return found.values, found.indices


def _best_by_blocks(log_probs_RV: Tensor, k: int, blocks: int) -> tuple[Tensor, Tensor]:
    *rows, size = log_probs_RV.shape
    even_RNB = log_probs_RV[..., : blocks * BLOCK].view(*rows, blocks, BLOCK)
    chosen_Rk = _highest(even_RNB.amax(dim=-1), k)[1]
    inside_RkB = even_RNB.gather(-2, chosen_Rk[..., None].expand(*rows, k, BLOCK))
    ids_RkB = chosen_Rk[..., None] * BLOCK + torch.arange(BLOCK, device=log_probs_RV.device)
    rest_RM = log_probs_RV[..., blocks * BLOCK :]
    rest_ids = torch.arange(blocks * BLOCK, size, device=log_probs_RV.device).expand_as(rest_RM)
    values, places = _highest(torch.cat([inside_RkB.flatten(-2), rest_RM], dim=-1), k)
    return values, torch.cat([ids_RkB.flatten(-2), rest_ids], dim=-1).gather(-1, places)


def staying(done_B: Tensor) -> tuple[int, Tensor | None]:
    """How many sentences are not done, and which stay in the batch; None while it does not pay to move them.

    This is the one place of a search that waits for its device. A move copies all that is remembered, so it is made only when a
    quarter of the batch is done.
    """
    waiting = int((~done_B).sum())
    if waiting == 0 or waiting > 0.75 * len(done_B):
        return waiting, None
    return waiting, done_B.to(torch.int8).argsort(stable=True)[:waiting]
