"""The bytes that the processes of a run send each other in one step follow from `ModelConfig` alone.

With n processes and a tensor of b bytes, by rings, which no other way beats in bytes (Patarasu and Yuan 2009):

    all-gather        everybody has the whole in the end                    (n - 1) / n b
    reduce-scatter    everybody has its part of the sum                     (n - 1) / n b
    all-reduce        everybody has the sum: one of each, one after the other   2 (n - 1) / n b

Equal to what is counted in a step of the real model (`planning.cost.collective_counter`), by bytes and by number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.weights import blocks, count_held, elements, weights

Collective = Literal["all_gather", "reduce_scatter", "all_reduce"]
BUCKET = 25 * 2**20  # bytes of gradients that DistributedDataParallel sends at once; its first bucket is smaller
WORDS = "words"
SENT: dict[Collective, int] = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}


@dataclass(frozen=True)
class Traffic:
    purpose: str
    collective: Collective
    among: int  # processes
    calls: int
    payload: float  # bytes of the whole tensors

    @property
    def sent(self) -> float:
        """By one process. Nothing when it is alone; at most 1 or 2 times the payload, however many they are."""
        return SENT[self.collective] * (self.among - 1) / self.among * self.payload


@dataclass(frozen=True)
class Communication:
    traffic: tuple[Traffic, ...]

    @property
    def sent(self) -> float:
        return sum(each.sent for each in self.traffic)


def communication(
    config: ModelConfig,
    parallel: Parallel,
    precision: Precision,
    shape: BatchShape,
    accumulate: int = 1,
    recompute: bool = False,
) -> Communication:
    """`shape`: of the batch of one process. `accumulate`: batches to a step. Replicas exchange gradients once a step; what is cut is
    gathered and scattered for every batch, since nobody has room for all gradients."""
    found: list[Traffic] = []
    if parallel.kind == "ddp":
        payload = 4 * sum(elements(s) for s in weights(config).values())
        calls = len(blocks(config)) if precision == "masters" else 1 + math.ceil(payload / BUCKET)
        found.append(Traffic("gradients", "all_reduce", parallel.replicas, calls, payload))
    if parallel.sharded:
        found += _count_sharded(config, parallel, 2 if precision == "masters" else 4, accumulate)
    if parallel.tensor > 1:
        found += _tensor(config, parallel.tensor, 4 if precision == "float32" else 2, shape, accumulate, recompute)
    found.append(_words(parallel, precision))
    return Communication(tuple(each for each in found if each.among > 1))


def _words(parallel: Parallel, precision: Precision) -> Traffic:
    """Loss, counts, norm, who was asked to stop: nine float64. Before, where weights are cut, the squares of the lengths of the parts."""
    cut = parallel.sharded or (parallel.kind == "ddp" and precision == "masters")
    lengths = 3 if parallel.tensor > 1 else 1
    return Traffic(WORDS, "all_reduce", parallel.size, 2 if cut else 1, 8 * (9 + (lengths if cut else 0)))


def _count_sharded(config: ModelConfig, parallel: Parallel, number: int, accumulate: int) -> Sequence[Traffic]:
    """FSDP2: each block is gathered before its forward pass and, since it was let go, before its backward pass; what stands in no block,
    the embeddings among it, once. Gradients are added up in float32 while they are scattered; with several groups, the parts of each group
    are added up too. A parameter whose rows do not divide is padded: with very many processes small ones cost more than they weigh."""
    n = parallel.shards
    whole = {name: n * count_held(block.items(), parallel) for name, block in blocks(config).items()}
    root, inside = whole[""], sum(whole.values()) - whole[""]
    layers = len(whole) - 1
    found = [
        Traffic("weights, forward", "all_gather", n, accumulate * (layers + 1), accumulate * number * (inside + root)),
        Traffic("weights, backward", "all_gather", n, accumulate * layers, accumulate * number * inside),
        Traffic("gradients", "reduce_scatter", n, accumulate * (layers + 1), accumulate * 4 * (inside + root)),
    ]
    if parallel.replicas > 1:
        part = 4 * (inside + root) / n
        found.append(Traffic("gradients between groups", "all_reduce", parallel.replicas, layers + 1, part))
    return found


def _tensor(c: ModelConfig, among: int, number: int, shape: BatchShape, accumulate: int, recompute: bool) -> Sequence[Traffic]:
    """Each sub-layer ends in a sum over its processes; backwards, each projection that begins one has a gradient of its input to add up.

    forward    attention.out, cross_attention.out, feed_forward.down                              each N D numbers
    backward   attention.qkv, cross_attention.q and kv, feed_forward.up, and gate where it is gated
    """
    source, target = shape.source_stream * c.d_model * number, shape.target_stream * c.d_model * number
    ups = 2 if c.gated else 1
    passes = 2 if recompute else 1
    forward_calls = 2 * c.encoder_layers + 3 * c.decoder_layers
    forward = 2 * c.encoder_layers * source + 3 * c.decoder_layers * target
    backward_calls = (1 + ups) * c.encoder_layers + (3 + ups) * c.decoder_layers
    backward = (1 + ups) * c.encoder_layers * source + c.decoder_layers * ((2 + ups) * target + source)
    return [
        Traffic("sums, forward", "all_reduce", among, accumulate * passes * forward_calls, accumulate * passes * forward),
        Traffic("sums, backward", "all_reduce", among, accumulate * backward_calls, accumulate * backward),
    ]
