"""A step is timed on a machine that was measured, for a model and a batch that were not.

A step is a sum of kinds of work, each with a price of its own:

    products    operations of matrices with weights, and inside attention     seconds an operation
    moved       numbers that norms, dropout and activations read and write    seconds a number
    looks       cells of attention's (T, S) matrices, all heads, in stages    seconds a cell
    fused       the same where one kernel does it all (`model.attention`)
    logits      cells of the logits: softmax and what belongs to it
    weights     parameters that the optimizer, the average and the norm of the gradient go through
    calls       sub-layers, however small: the time to call kernels at all

Narrow layers reach fewer operations a second than wide ones; that follows from the sum, since they move more numbers for each operation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from limelight.model.config import ModelConfig
from limelight.planning.cost.activations import STAGES_UP_TO
from limelight.planning.cost.compute import flops
from limelight.planning.cost.parallel import Precision
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.size import parameters
from limelight.planning.cost.weights import select_block_matrices, weights

ROUNDS = 5_000  # of the fit, at most
STANDS_STILL = 1e-7  # a change of all that is foretold in one round, as a share
BESIDE = 4  # calls of a step outside of all sub-layers, counted as this number of them


@dataclass(frozen=True)
class Work:
    products: float
    moved: float
    looks: float
    fused: float
    logits: float
    weights: float
    calls: float

    @property
    def kinds(self) -> tuple[float, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class Rates:
    """Rates are seconds for a unit of each kind of work. `error`: the largest by which the fit misses what it was fitted to, as a share."""

    prices: Work
    error: float

    def seconds(self, work: Work) -> float:
        return sum(price * units for price, units in zip(self.prices.kinds, work.kinds, strict=True))

    def shares(self, work: Work) -> dict[str, float]:
        whole = self.seconds(work)
        named = zip(fields(work), self.prices.kinds, work.kinds, strict=True)
        return {field.name: price * units / whole for field, price, units in named}


def work(config: ModelConfig, shape: BatchShape, precision: Precision, recompute: bool = False) -> Work:
    c = config
    # A forward pass and a backward one, which is two of them; recomputation is one more of what is inside blocks.
    again = 4 / 3 if recompute else 1.0
    in_encoder, in_decoder, across = shape.looks
    kinds = [(c.encoder_layers * in_encoder, shape.S), (c.decoder_layers * in_decoder, shape.T)]
    kinds.append((c.decoder_layers * across, max(shape.S, shape.T)))
    most = STAGES_UP_TO[4 if precision == "float32" else 2]
    in_stages = [cells for cells, width in kinds if width <= most or c.attention_dropout]
    everything = sum(cells for cells, _ in kinds)
    return Work(
        products=flops(c, shape).step(recompute),
        moved=again * _count_moved(c, shape),
        looks=again * c.num_heads * sum(in_stages),
        fused=again * c.num_heads * (everything - sum(in_stages)),
        logits=float(shape.target_stream * c.vocab_size),
        weights=float(sum(parameters(c).values()) + 2 * c.vocab_size * c.d_model),  # embeddings: a gradient for each use
        calls=again * (2 * c.encoder_layers + 3 * c.decoder_layers) + BESIDE,
    )


def count_muon(config: ModelConfig) -> float:
    """Operations of Muon's step: five rounds of three products for each A x B matrix inside the blocks, A <= B."""
    sides = [sorted(shape) for shape in select_block_matrices(weights(config)).values()]
    return float(sum(5 * (4 * a * a * b + 2 * a**3) for a, b in sides))


def _count_moved(c: ModelConfig, shape: BatchShape) -> float:
    """By sub-layer: norm, dropout and sum 6 vectors; heads to the grid and back 8; RMSNorm without a kernel and rotation some more."""
    each = (6 if c.norm == "layer" else 7) * c.d_model
    heads = (10 if c.positions == "rotary" else 8) * c.d_model
    inner = (4 if c.gated else 2) * c.d_ff
    encoder = c.encoder_layers * shape.source_stream * (2 * each + heads + inner)
    decoder = c.decoder_layers * (shape.target_stream * (3 * each + heads + 4 * c.d_model + inner))
    return float(encoder + decoder + c.decoder_layers * shape.source_stream * 4 * c.d_model)


def fit_rates(measured: Sequence[tuple[Work, float]]) -> Rates:
    """Prices, none of them negative, that miss the measured seconds by the least, as shares: the sum of ((price . work) / seconds - 1)^2.

    By coordinate descent, one price at a time. A kind that was not measured costs what it saves nobody: nothing; so measure all.
    """
    rows = [[units / seconds for units in each.kinds] for each, seconds in measured]
    count = len(fields(Work))
    prices, squares = [0.0] * count, [sum(row[k] ** 2 for row in rows) for k in range(count)]
    left = [1.0] * len(rows)  # what is not explained yet
    for _ in range(ROUNDS):
        moved = 0.0
        for k in range(count):
            if squares[k]:
                slope = sum(row[k] * rest for row, rest in zip(rows, left, strict=True))
                price = max(0.0, prices[k] + slope / squares[k])
                change, prices[k] = price - prices[k], price
                left = [rest - change * row[k] for row, rest in zip(rows, left, strict=True)]
                moved = max(moved, abs(change) * max(row[k] for row in rows))
        if moved < STANDS_STILL:
            break
    return Rates(Work(*prices), max(map(abs, left)))
