"""The feed-forward network is applied to each position by itself (section 3.3)."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from limelight.model.config import ModelConfig
from limelight.model.dropout import dropout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "reglu": F.relu,
    "geglu": F.gelu,
    "swiglu": F.silu,
}


class FeedForward(nn.Module):
    """Applied to each position by itself (equation 2).

        FFN(x) = max(0, x W_1 + b_1) W_2 + b_2

    W_1 is `up`, W_2 is `down`. The gated forms (Shazeer 2020) multiply by a second projection:
    FFN(x) = (f(x W_g) * x W_1) W_2.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=config.bias) if config.gated else None
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]
        self.drop = config.activation_dropout

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)"""
        inner = self.activation(self.up(x)) if self.gate is None else self.activation(self.gate(x)) * self.up(x)
        output: Tensor = self.down(dropout(inner, self.drop if self.training else 0.0))
        return output
