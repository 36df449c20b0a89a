"""A layer of the encoder or decoder has sub-layers, each with a residual connection and a norm (3.1, figure 1).

A stack of encoder blocks with a causal mask is a decoder-only model; without one, an encoder-only model.
"""

from collections.abc import Callable

from torch import Tensor, nn

from limelight.model.attention import Visible
from limelight.model.cache import KeyValues, SelfCache
from limelight.model.config import ModelConfig
from limelight.model.dropout import add_dropout
from limelight.model.feedforward import FeedForward
from limelight.model.grid import Grid
from limelight.model.multi_head import CrossAttention, Memory, SelfAttention
from limelight.model.positions import Rotation


def make_norm(config: ModelConfig) -> nn.Module:
    """Layer normalization (Ba et al. 2016) or its form without mean and bias (Zhang and Sennrich 2019)."""
    if config.norm == "rms":
        return nn.RMSNorm(config.d_model, eps=config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)


class Block(nn.Module):
    """The residual connection around every sub-layer (3.1), with dropout on what the sub-layer adds (5.4).

    post:  LayerNorm(x + Dropout(Sublayer(x)))        the paper
    pre:   x + Dropout(Sublayer(LayerNorm(x)))        keeps a straight path for the gradient (Xiong et al. 2020)
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm_first = config.norm_order == "pre"
        self.drop = config.dropout

    def connect(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        rate = self.drop if self.training else 0.0
        if self.norm_first:
            return add_dropout(x, sublayer(norm(x)), rate)
        normalized: Tensor = norm(add_dropout(x, sublayer(x), rate))
        return normalized


class EncoderBlock(Block):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.attention = SelfAttention(config)
        self.attention_norm = make_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = make_norm(config)

    def forward(self, x: Tensor, visible: Visible, grid: Grid, rotation: Rotation | None = None, cache: SelfCache | None = None) -> Tensor:
        x = self.connect(x, lambda y: self.attention(y, visible, grid, rotation, cache), self.attention_norm)
        return self.connect(x, self.feed_forward, self.feed_forward_norm)


class DecoderBlock(Block):
    """Masked self-attention, attention to the source, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.attention = SelfAttention(config)
        self.attention_norm = make_norm(config)
        self.cross_attention = CrossAttention(config)
        self.cross_attention_norm = make_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = make_norm(config)

    def forward(
        self,
        x: Tensor,
        visible: Visible,
        grid: Grid,
        memory: Memory | KeyValues,
        source_visible: Visible,
        rotation: Rotation | None = None,
        cache: SelfCache | None = None,
    ) -> Tensor:
        x = self.connect(x, lambda y: self.attention(y, visible, grid, rotation, cache), self.attention_norm)
        x = self.connect(x, lambda y: self.cross_attention(y, memory, source_visible, grid), self.cross_attention_norm)
        return self.connect(x, self.feed_forward, self.feed_forward_norm)
