"""A `Peak` is the most memory that a process of a run ever holds, by what holds it, from `ModelConfig` alone.

Some of it lies there all the time: weights, moments, averages, the twin that validates. The rest comes and goes within a step, and is
largest at one of these moments:

    loss        all activations are kept, and some rows of logits with their probabilities are there
    a block     going backwards: its own activations, gradients of what is behind it, activations of what is before it
    end         all gradients, and those of the embeddings once more while they are added up

On a CPU the heap needs more than lives in it (`runtime.keep_freed_memory`): a hole that a tensor leaves takes no other of its size, since
an aligned request asks glibc for a little more. What that comes to was fitted to measured peaks (docs/scale.md).
"""

import math
from dataclasses import dataclass

from limelight.model.config import ModelConfig
from limelight.planning.cost.activations import LOGITS_AT_ONCE, Activations, Where, estimate_activations
from limelight.planning.cost.memory import OptimizerName, memory
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.weights import blocks, cut_by_tensor, elements

PARTS = (
    "weights",
    "masters",
    "gradients",
    "moments",
    "average",
    "twin",
    "activations",
    "logits",
    "passing",
    "program",
)

# What a process holds before any model: Python, torch, the rest of Limelight's training, 411 MB; and what the first steps add to it: pages
# of kernels that are used and kernels that are made, 50 MB. Measured by `benchmarks/plan.py`, torch 2.13 on Linux. On an accelerator the
# context of its driver: a figure that people report and nobody measured here.
PROGRAM: dict[Where, float] = {"cpu": 461e6, "accelerator": 600e6}

# The heap's holes, fitted to 14 peaks of 4 to 710 MB of activations in blocks; beyond that it is a guess. They grow with the root of what
# all blocks keep: 9,400 bytes for the root of a byte. With recomputation each block leaves holes of its own, between gradients that stay:
# 0.57 of what all of them would have kept, so that on a CPU less than half of it is saved.
HOLES_KEPT = 9.4e3
HOLES_RECOMPUTED = 0.57


@dataclass(frozen=True)
class Peak:
    parts: dict[str, float]  # bytes, by PARTS
    moment: str
    holes: float  # of what passes: the heap's, on a CPU

    @property
    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True)
class _Moment:
    name: str
    activations: float = 0.0
    logits: float = 0.0
    gradients: float = 0.0
    passing: float = 0.0

    @property
    def total(self) -> float:
        return self.activations + self.logits + self.gradients + self.passing


def peak(
    config: ModelConfig,
    parallel: Parallel,
    precision: Precision,
    shape: BatchShape,
    where: Where,
    recompute: bool = False,
    optimizer: OptimizerName = "adamw",
    average: bool = True,
    validates: bool = True,
) -> Peak:
    """Of the process that holds the most, after some steps. `shape`: of its batch, the largest of the run."""
    state = memory(config, parallel, precision, optimizer, average, validates)
    found = estimate_activations(config, shape, precision, where)
    stays = precision == "masters" and not parallel.sharded  # gradients keep their place from step to step
    step = _Step(config, parallel, precision, shape, where, recompute, found)
    most = max(step.moments(), key=lambda moment: moment.total)
    holes = _holes(found, recompute) / parallel.tensor if where == "cpu" else 0.0
    passing = most.passing + (state.passing if parallel.sharded else 0.0)
    parts = {
        "weights": state.weights + state.tables,
        "masters": state.masters,
        "gradients": state.gradients if stays else most.gradients,
        "moments": state.moments,
        "average": state.average,
        "twin": state.twin,
        "activations": most.activations,
        "logits": most.logits,
        "passing": passing + (most.gradients if stays else 0.0) + holes,
        "program": PROGRAM[where],
    }
    return Peak(parts, most.name, holes)


def _holes(found: Activations, recompute: bool) -> float:
    encoders, decoders = found.layers
    inside = encoders * found.encoder + decoders * found.decoder
    return HOLES_RECOMPUTED * inside if recompute else HOLES_KEPT * math.sqrt(inside)


@dataclass(frozen=True)
class _Step:
    config: ModelConfig
    parallel: Parallel
    precision: Precision
    shape: BatchShape
    where: Where
    recompute: bool
    found: Activations

    def moments(self) -> list[_Moment]:
        return [self._loss(), *self._backward(), self._end()]

    @property
    def _number(self) -> int:
        return 4 if self.precision == "float32" else 2

    @property
    def _table(self) -> int:
        return self.config.vocab_size * self.config.d_model

    def _of_blocks(self, encoder: float, decoder: float) -> float:
        if self.recompute:
            layers = max(1, self.found.layers[0] * self.shape.source_stream + self.found.layers[1] * self.shape.target_stream)
            here = encoder * self.shape.source_stream + decoder * self.shape.target_stream
            return self.found.between * here / layers
        return (encoder * self.found.encoder + decoder * self.found.decoder) / self.parallel.tensor

    @property
    def _outside(self) -> float:
        """Without what the loss leaves behind: the gradients of its input and its matrix."""
        left = self._number * (self.shape.target_stream * self.config.d_model + self._table)
        return self.found.outside - left

    def _loss(self) -> _Moment:
        """The rows before are let go when the next have become logits: three such matrices where there are several."""
        c, e = self.config, self._number
        at_once = max(1, LOGITS_AT_ONCE[self.where] // c.vocab_size // 256) * 256
        several, rows = self.shape.target_stream > at_once, min(at_once, self.shape.target_stream)
        matrix = e * rows * c.vocab_size
        logits = max(2 * matrix + (4 + e) * self._table, 3 * matrix + 4 * self._table if several else 0.0)
        kept_here = self._of_blocks(*self.found.layers) + self._outside + self.found.casts
        return _Moment("loss", kept_here + e * self.shape.target_stream * c.d_model, logits)

    def _backward(self) -> list[_Moment]:
        """Before each block, the last first. What it computes again, or kept, is all there when its feed-forward layer begins."""
        encoders, decoders = self.found.layers
        moments = []
        bytes_each = 2 if self.precision == "masters" else 4
        sizes = {
            name: bytes_each * sum(elements(cut_by_tensor(n, s, self.parallel.tensor)) for n, s in block.items())
            for name, block in blocks(self.config).items()
        }
        output = (2 if self.precision == "masters" else 4) * self._table
        for stack, layers in (("decoder", decoders), ("encoder", encoders)):
            for i in reversed(range(layers)):
                own = i if self.recompute else i + 1  # what it computes again begins with its input
                before = (encoders, own) if stack == "decoder" else (own, 0)
                again = getattr(self.found, stack) / self.parallel.tensor if self.recompute else 0.0
                behind = [f"decoder.blocks.{j}" for j in range(i + 1 if stack == "decoder" else 0, decoders)]
                behind += [f"encoder.blocks.{j}" for j in range(i + 1, encoders)] if stack == "encoder" else []
                gradients = 0.0 if self.parallel.sharded else output + sum(sizes[name] for name in behind)
                N = self.shape.target_stream if stack == "decoder" else self.shape.source_stream
                # Of the embeddings and last norms, the target's are gone when the encoder's turn comes.
                outside = self._outside * (1.0 if stack == "decoder" else N / (N + self.shape.target_stream))
                activations = self._of_blocks(*before) + again + outside + self.found.casts
                moments.append(_Moment(f"{stack} block {i}", activations, 0.0, gradients, self._passing(N, stack)))
        return moments

    def _passing(self, N: int, stack: str) -> float:
        """Gradients of activations in one block: of the inner width of its feed-forward layer, or of attention's (T, S) matrices. A relu
        needs the same numbers as the product after it, and a gate has two inputs; others let one go for each gradient that they make."""
        c, e = self.config, self._number
        alive = 2 if (c.gated or c.activation == "relu") and not c.activation_dropout else 1
        inner = e * N * (alive * c.d_ff + 2 * c.d_model)
        looks = self.shape.looks[0] if stack == "encoder" else max(self.shape.looks[1:])
        attention = (4 + e) * looks * c.num_heads if self.where == "cpu" else 0
        gone = e * N * (c.d_ff + c.d_model)  # of the feed-forward layer, when attention's turn comes
        return max(inner, attention - gone) / self.parallel.tensor

    def _end(self) -> _Moment:
        """The embeddings' gradient as a whole matrix for each side, beside what has been added up so far."""
        if self.parallel.sharded:
            return _Moment("end")
        bytes_each = 2 if self.precision == "masters" else 4
        all_of_them = bytes_each * sum(elements(s) for block in blocks(self.config).values() for s in block.values())
        return _Moment("end", 0.0, 0.0, all_of_them, 2 * bytes_each * self._table)
