"""An embedding is a learned vector per piece, level with the positions that are added to it (section 3.4)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limelight.model.config import ModelConfig
from limelight.model.dropout import dropout
from limelight.model.positions import Positions


class Embedding(nn.Module):
    """Embedding(piece) * sqrt(d_model) + position, then dropout (5.4).

    The weights start with standard deviation 1/sqrt(d_model), so that as the output matrix they give logits of order 1; the
    factor brings them back to order 1 as inputs, level with the sinusoids.
    """

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, config.d_model))
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.drop = config.dropout

    def forward(self, ids: Tensor, positions: Positions, columns: Tensor, start: int = 0) -> Tensor:
        """ids of any shape -> (..., D)"""
        x = positions(F.embedding(ids, self.weight) * self.scale, columns, start)
        return dropout(x, self.drop if self.training else 0.0)
