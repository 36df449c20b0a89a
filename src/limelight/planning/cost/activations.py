"""Activations are what a forward pass keeps for the backward pass, in bytes, from `ModelConfig` alone.

One line of this file for each tensor that a sub-layer keeps. N is the positions of the stream, C the cells of the grid, L the pairs of a
query and a key; s the bytes of a number in the stream, e in products. On a CPU attention goes in stages, which keep their (T, S) matrices,
and the masks of dropout are numbers; on an accelerator attention is one kernel that keeps the sum of each row, and masks are bytes.
Equal to the storages that autograd keeps, but for small change.
"""

from dataclasses import dataclass
from typing import Literal

from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Precision
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.weights import elements, weights

Where = Literal["cpu", "accelerator"]

# As in `model.attention` and `model.loss`, which need torch; tests hold them equal.
STAGES_UP_TO = {2: 512, 4: 128}
LOGITS_AT_ONCE: dict[Where, int] = {"cpu": 2**22, "accelerator": 2**27}


@dataclass(frozen=True)
class Activations:
    encoder: float  # of one block
    decoder: float  # of one block
    between: float  # blocks: what is kept when each block is computed again
    outside: float  # embeddings, last norms, gradients that the loss makes at once
    casts: float  # autocast's copies of the weights
    logits: float  # while the loss is computed: one chunk, and the gradient of its matrix in float32
    layers: tuple[int, int]

    @property
    def total(self) -> float:
        """Kept at the end of the forward pass."""
        return self.layers[0] * self.encoder + self.layers[1] * self.decoder + self.outside + self.casts


@dataclass(frozen=True)
class _Numbers:
    s: int  # in the stream and the norms
    e: int  # in products
    mask: int
    where: Where

    @property
    def rounds(self) -> bool:
        """Autocast: each product rounds its inputs for itself, also where another has rounded the same."""
        return self.s != self.e


def estimate_activations(config: ModelConfig, shape: BatchShape, precision: Precision, where: Where) -> Activations:
    c = config
    s, e = {"float32": (4, 4), "autocast": (4, 2), "masters": (2, 2)}[precision]
    n = _Numbers(s, e, e if where == "cpu" else 1, where)
    source, target = shape.source_stream, shape.target_stream
    in_encoder, in_decoder, across = shape.looks
    own = _self_attention(c, n, source, shape.source_cells, in_encoder, shape.S)
    encoder = own + _feed_forward(c, n, source) + 2 * _connection(c, n, source)
    decoder = _self_attention(c, n, target, shape.target_cells, in_decoder, shape.T) + _feed_forward(c, n, target)
    decoder += _cross_attention(c, n, shape, across) + 3 * _connection(c, n, target)
    casts = 0
    if precision == "autocast":
        casts = 2 * sum(elements(shape) for name, shape in weights(c).items() if ".blocks." in name and len(shape) == 2)
    return Activations(
        encoder=encoder,
        decoder=decoder,
        between=c.d_model * s * (c.encoder_layers * source + c.decoder_layers * target),
        outside=_outside(c, n, shape),
        casts=casts,
        logits=_logits(c, n, target),
        layers=(c.encoder_layers, c.decoder_layers),
    )


def _connection(c: ModelConfig, n: _Numbers, N: int) -> float:
    """The norm and the residual connection of a sub-layer, with the mask of its dropout."""
    return _norm(c, n, N) + (N * c.d_model * n.mask if c.dropout else 0)


def _norm(c: ModelConfig, n: _Numbers, N: int) -> float:
    if c.norm == "layer":
        return N * c.d_model * n.s + 2 * N * n.s  # its input, means and deviations
    if n.where == "accelerator":
        return N * c.d_model * n.s + 4 * N
    return N * c.d_model * (4 + 4) + 4 * N  # no kernel of its own: its input and output before the weight, in float32


def _self_attention(c: ModelConfig, n: _Numbers, N: int, C: int, L: int, width: int) -> float:
    shared = c.kv_heads < c.num_heads
    copies = shared and n.where == "cpu"  # k and v are repeated for all heads
    rotated = c.positions == "rotary"
    narrow = c.kv_heads * c.d_head
    wide = C * c.heads_width
    if copies:
        heads = 3 * wide
    elif rotated or shared:  # q and k anew, v as a part of all three
        heads = wide + (C * narrow if rotated else 0) + C * (c.heads_width + 2 * narrow)
    else:
        heads = 3 * wide
    return n.e * (N * c.d_model + heads) + _looking(c, n, C, L, width) + n.e * N * c.heads_width


def _cross_attention(c: ModelConfig, n: _Numbers, shape: BatchShape, L: int) -> float:
    copies = c.kv_heads < c.num_heads and n.where == "cpu"
    width = c.heads_width if copies else c.kv_heads * c.d_head
    heads = shape.target_cells * c.heads_width + 2 * shape.source_cells * width
    streams = shape.target_stream * (c.d_model + c.heads_width) + (shape.source_stream * c.d_model if n.rounds else 0)
    return n.e * (heads + streams) + _looking(c, n, shape.target_cells, L, max(shape.S, shape.T))


def _looking(c: ModelConfig, n: _Numbers, C: int, L: int, width: int) -> float:
    """Between q, k, v and the heads' outputs."""
    fused = n.where == "accelerator" or (width > STAGES_UP_TO[n.e] and not c.attention_dropout)
    if fused:
        return n.e * C * c.heads_width + 4 * C * c.num_heads  # the output, and the logarithm of each row's sum
    each = 4 + (n.e if n.e == 2 else 0)  # the softmax in float32, rounded for the product
    if c.attention_dropout:
        each += 2 * n.e if n.e == 4 else n.e  # mask and dropped weights
    return each * L * c.num_heads


def _feed_forward(c: ModelConfig, n: _Numbers, N: int) -> float:
    smooth = c.activation not in ("relu", "reglu")  # keeps its input; relu is content with its output
    inner = 1 + (1 if smooth else 0) + (2 if c.gated else 0)
    # The mask; and where nothing else kept what was dropped from, both that and what is left of it.
    dropped = n.mask + (n.e if c.activation == "relu" else 0) if c.activation_dropout else 0
    inputs = 2 if c.gated and n.rounds else 1
    return N * (n.e * (inputs * c.d_model + inner * c.d_ff) + dropped * c.d_ff)


def _outside(c: ModelConfig, n: _Numbers, shape: BatchShape) -> float:
    source, target = shape.source_stream, shape.target_stream
    streams = source + target
    cells = shape.source_cells + shape.target_cells
    embeddings = 8 * streams + (8 * (streams + cells) if shape.is_packed else 0)  # ids; which cell, which position
    embeddings += streams * c.d_model * (n.s if n.where == "cpu" else 1) if c.dropout else 0
    last = sum(_norm(c, n, N) for N in (source, target)) if c.norm_order == "pre" else 0
    memory = source * c.d_model * n.e  # which every decoder block projects
    inputs = c.d_model + (1 if c.output_bias else 0)
    return embeddings + last + memory + n.e * inputs * (target + c.vocab_size)


def _logits(c: ModelConfig, n: _Numbers, N: int) -> float:
    """One chunk as logits and as probabilities; the product for the gradient of the matrix, and its sum in float32."""
    rows = max(1, LOGITS_AT_ONCE[n.where] // c.vocab_size // 256) * 256
    return 2 * n.e * min(rows, N) * c.vocab_size + (4 + n.e) * c.vocab_size * c.d_model
