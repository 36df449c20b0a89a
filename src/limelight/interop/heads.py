"""Rows of attention's projections are put from our order into the usual one, and back.

Ours go group by group, [q ... q k v] of the first group before those of the second, so that a device with a share of the rows has whole
heads. Others keep all of q, then all of k, then all of v.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from limelight.model.config import ModelConfig


def split_projections(rows: Tensor, config: ModelConfig, letters: str) -> list[Tensor]:
    """The projections in `letters`, "qkv" or "kv", of our joint weight (R, D) or bias (R,), each whole."""
    shares = [config.num_heads // config.kv_heads if letter == "q" else 1 for letter in letters]
    grouped = rows.view(config.kv_heads, sum(shares) * config.d_head, *rows.shape[1:])
    cut = [share * config.d_head for share in shares]
    return [part.flatten(0, 1) for part in torch.split(grouped, cut, dim=1)]


def join_projections(parts: Sequence[Tensor], config: ModelConfig) -> Tensor:
    """Our joint weight or bias of whole projections, q, k, v or k, v."""
    grouped = [part.view(config.kv_heads, -1, *part.shape[1:]) for part in parts]
    return torch.cat(grouped, dim=1).flatten(0, 1)
