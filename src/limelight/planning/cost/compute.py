"""Operations of a batch follow from `ModelConfig` alone: products of matrices, which are all but one or two percent.

A multiplication and an addition are two operations. For each product of the forward pass the backward pass has two: one for the gradient
of the input, one for that of the weight. Equal to what `torch.utils.flop_counter` counts.
"""

from dataclasses import dataclass

from limelight.model.config import ModelConfig
from limelight.planning.cost.shape import BatchShape


@dataclass(frozen=True)
class Flops:
    projections: float  # with the weights of the blocks
    attention: float  # q k^T and weights v
    output: float  # with the matrix of the vocabulary
    spared: float = 0.0  # of the projections: the last of each block, where nothing after it needs its result for the gradient

    @property
    def forward(self) -> float:
        return self.projections + self.attention + self.output

    @property
    def blocks(self) -> float:
        return self.projections + self.attention

    def step(self, recompute: bool = False, fused: bool = False) -> float:
        """Forward and backward. `recompute`: the blocks' forward pass once more. `fused`: attention by a kernel that wrote no weights down,
        and so multiplies q k^T again in the backward pass: five products there for two in the forward pass.
        """
        backward = 2 * self.forward + (self.attention / 2 if fused else 0.0)
        return self.forward + backward + (self.blocks - self.spared if recompute else 0.0)

    def of_rank(self, tensor: int) -> "Flops":
        """One of `tensor` processes that share each block; the output each computes for itself."""
        return Flops(self.projections / tensor, self.attention / tensor, self.output, self.spared / tensor)


def flops(config: ModelConfig, shape: BatchShape) -> Flops:
    """Projections cost by positions of the stream, attention by cells of the grid."""
    return _forward(config, shape.source_stream, shape.target_stream, shape.looks)


def flops_of_pair(config: ModelConfig, source: float, target: float) -> float:
    """Forward and backward of one pair of `source` and `target` pieces; they may be means of a text."""
    return _forward(config, source, target, (source**2, target**2, target * source)).step()


def _forward(c: ModelConfig, source: float, target: float, looks: tuple[float, float, float]) -> Flops:
    """2 operations for each weight that a position meets; 4 D for each piece that it looks at, 2 D in q k^T and 2 D in weights v."""
    narrow = c.kv_heads * c.d_head
    own = 2 * c.d_model * (c.heads_width + narrow)  # qkv, out
    feed_forward = (3 if c.gated else 2) * c.d_model * c.d_ff
    met = source * c.encoder_layers * (own + feed_forward)
    met += target * c.decoder_layers * (own + feed_forward + 2 * c.d_model * c.heads_width)  # cross-attention: q, out
    met += source * c.decoder_layers * c.d_model * 2 * narrow  # k and v of the memory
    encoder, decoder, cross = looks
    looked = c.encoder_layers * encoder + c.decoder_layers * (decoder + cross)
    inputs = c.d_model + (1 if c.output_bias else 0)  # the bias is one more input that is always 1
    down = (source * c.encoder_layers + target * c.decoder_layers) * c.d_model * c.d_ff
    # torch ends a recomputation with the last tensor that is needed: with norms first and no dropout, the last product is not.
    spared = 2 * down if c.norm_order == "pre" and not c.dropout else 0.0
    return Flops(2 * met, 4 * c.heads_width * looked, 2 * target * inputs * c.vocab_size, spared)
