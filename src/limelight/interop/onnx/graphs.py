"""Two ONNX graphs are a Transformer: the encoder, run once for a translation, and a decoder step, run for each piece.

    encoder   source (B, S)                        ->  memory.i.k, memory.i.v (B, G, S, K) of each decoder block i, visible (B, S)
    decoder   token (B,), visible, memory, past    ->  log_probs (B, V), present
              past.i.k, past.i.v (B, G, T, K)          present.i.k, present.i.v (B, G, T + 1, K): the past of the next step

The first past has no positions: T = 0. A token stands where its past ends, so no position is handed over. B, S and T may differ from run
to run; G are the heads of k and v. A lit decoder is also given `gates` (L, H), by which its cross-attentions are dimmed, and tells where
they looked: look.i (B, H, S).
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxscript  # noqa: F401  torch.onnx needs it and says so only when it is too late
import torch
from torch import Tensor, nn
from torch.export import Dim

from limelight.errors import LimelightError
from limelight.model.attention import Visible
from limelight.model.cache import KeyValues, SelfCache
from limelight.model.config import ModelConfig
from limelight.model.grid import Grid
from limelight.model.transformer import Transformer

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
OPSET = 20  # of the operators; ONNX Runtime knows it from 1.17 on
# Of the tensors that the graphs are traced with. Not 0 or 1, which torch takes for sizes that never change.
ROWS, SOURCE_LENGTH, PAST_LENGTH = 2, 3, 2
SHORTEST = 4  # max_length: with less, source and past have no room to vary


class OnnxError(LimelightError):
    """A model cannot be written as ONNX, or its graphs do not compute what it computes."""

    exit_code = 70


@dataclass(frozen=True)
class Port:
    """A port is an input or output: Port("token", "int64", ("batch",)). An axis is a size, or the name of one that may differ."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


VISIBLE = Port("visible", "bool", ("batch", "source"))


def encoder_ports(config: ModelConfig) -> tuple[list[Port], list[Port]]:
    source = Port("source", "int64", ("batch", "source"))
    return [source], [*_pairs(config, "memory", "source"), VISIBLE]


def decoder_ports(config: ModelConfig, lit: bool = False) -> tuple[list[Port], list[Port]]:
    token = Port("token", "int64", ("batch",))
    log_probs = Port("log_probs", "float32", ("batch", config.vocab_size))
    inputs = [token, VISIBLE, *_pairs(config, "memory", "source"), *_pairs(config, "past", "past")]
    outputs, layers, heads = [log_probs, *_pairs(config, "present", "past + 1")], config.decoder_layers, config.num_heads
    if lit:
        inputs.append(Port("gates", "float32", (layers, heads)))
        outputs += [Port(f"look.{layer}", "float32", ("batch", heads, "source")) for layer in range(layers)]
    return inputs, outputs


def write_graphs(model: Transformer, folder: Path, lit: bool = False) -> None:
    """encoder.onnx and decoder.onnx of a float32 model.

    torch puts weights of more than 1.5 GB beside them, into *.onnx.data: a file of ONNX ends at 2 GB.
    """
    config = model.config
    if config.max_length < SHORTEST:
        raise OnnxError(f"max_length={config.max_length} is too short for ONNX; it needs {SHORTEST} or more")
    batch, source, past = Dim("batch"), Dim("source", max=config.max_length), Dim("past", max=config.max_length - 1)
    ids = torch.full((ROWS, SOURCE_LENGTH), config.end_token)
    token = torch.full((ROWS,), config.start_token)
    count = 2 * config.decoder_layers
    with torch.no_grad(), in_stages(model), quiet():
        *memory, visible = EncoderGraph(model)(ids)
        pasts = [memory[0].new_zeros(ROWS, config.kv_heads, PAST_LENGTH, config.d_head) for _ in range(count)]
        graph: Any = _trace_graph(EncoderGraph(model), (ids,), ({0: batch, 1: source},), encoder_ports(config))
        graph.save(folder / ENCODER)
        shapes: tuple[Any, ...] = ({0: batch}, {0: batch, 1: source}, [{0: batch, 2: source}] * count, [{0: batch, 2: past}] * count)
        given: tuple[Any, ...] = (token, visible, memory, pasts)
        if lit:
            shapes, given = (*shapes, {}), (*given, torch.ones(config.decoder_layers, config.num_heads))
        graph = _trace_graph(DecoderGraph(model), given, shapes, decoder_ports(config, lit))
        graph.save(folder / DECODER)


class TracedGraph(nn.Module):
    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        self.eval()


class EncoderGraph(TracedGraph):
    def forward(self, source: Tensor) -> tuple[Tensor, ...]:
        state = self.model.start(source)
        assert state.visible.keys is not None
        return *_flat(state.memories), state.visible.keys


class DecoderGraph(TracedGraph):
    """A decoder graph is `Transformer.step` for one row a sentence, without what only eager code needs: room ahead, shared caches."""

    def forward(
        self, token: Tensor, visible: Tensor, memory: list[Tensor], past: list[Tensor], gates: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        if gates is None:
            return self._step(token, visible, memory, past)
        lights = [light.attention for light in self.model.spotlights() if light.kind == "cross"]
        seen: list[Tensor] = []
        for light, gate in zip(lights, gates.unbind(), strict=True):
            light.gate = gate
            light.looks.append(lambda stage, value: seen.append(value.squeeze(2)) if stage == "weights" else None)
        try:
            return *self._step(token, visible, memory, past), *seen
        finally:
            for light in lights:
                light.gate = None
                light.looks.pop()

    def _step(self, token: Tensor, visible: Tensor, memory: list[Tensor], past: list[Tensor]) -> tuple[Tensor, ...]:
        model, decoder = self.model, self.model.decoder
        caches, length = [JoinedCache(pair) for pair in _pair_tensors(past)], past[0].shape[2]
        token_B1, first = token[:, None], torch.zeros_like(token[:1])
        x_B1D = model.target_embedding(token_B1, model.target_positions, first, length)
        grid, rotation, source_visible = Grid.padded(token_B1), decoder.rotary(1, start=length), Visible(keys=visible)
        for block, cache, looked_at in zip(decoder.blocks, caches, _pair_tensors(memory), strict=True):
            x_B1D = block(x_B1D, Visible(), grid, looked_at, source_visible, rotation, cache)
        logits_BV = model.logits(decoder.finish(x_B1D).squeeze(1))
        return torch.log_softmax(logits_BV, dim=-1), *_flat([cache.pair for cache in caches])


class JoinedCache(SelfCache):
    """A joined cache is k and v of a past that was handed in, joined to the new ones: a graph makes no room ahead."""

    def __init__(self, past: KeyValues) -> None:
        super().__init__()
        self.pair = past

    def extend(self, k_BGTK: Tensor, v_BGTK: Tensor) -> KeyValues:
        self.pair = KeyValues(torch.cat([self.pair.k, k_BGTK], dim=2), torch.cat([self.pair.v, v_BGTK], dim=2))
        return self.pair


@contextmanager
def in_stages(model: Transformer) -> Iterator[None]:
    """Attention in stages: the choice of the faster kernel asks for sizes, and a graph that was traced with some must serve all.

    A look at an attention gets the stages; this one leaves them as they are.
    """

    def look(stage: str, value: Tensor) -> None:
        return None

    lights = [light.attention for light in model.spotlights()]
    for attention in lights:
        attention.looks.append(look)
    try:
        yield
    finally:
        for attention in lights:
            attention.looks.remove(look)


@contextmanager
def quiet() -> Iterator[None]:
    """The exporter warns of deprecations in itself and of packages that we do not use; nobody here can do anything about them."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _trace_graph(graph: nn.Module, inputs: tuple[Any, ...], shapes: tuple[Any, ...], ports: Sequence[list[Port]]) -> Any:
    names = [[port.name for port in side] for side in ports]
    try:
        # Not left to the ONNX exporter, which would silently fix the sizes that it cannot let vary. Deferred: with grouped heads torch ends
        # with a condition that holds for every length (min(2 + 2 T, 4 + 4 T) = 2 + 2 T), but that it cannot prove.
        program = torch.export.export(graph, inputs, dynamic_shapes=shapes, strict=False, prefer_deferred_runtime_asserts_over_guards=True)
        written: Any = torch.onnx.export(
            program,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=names[0],
            output_names=names[1],
            opset_version=OPSET,
            verbose=False,
        )
    # Of many kinds, most of them private to torch.
    except Exception as error:
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise OnnxError(
            f"torch {torch.__version__} cannot write the {type(graph).__name__} of this model as ONNX: {said}; "
            "please report it with the config.json of the bundle"
        ) from error
    for node in written.model.graph.all_nodes():
        node.metadata_props.clear()  # the lines of source that made it, with the folders of the person who exports
    return written


def _flat(pairs: Sequence[KeyValues]) -> list[Tensor]:
    return [tensor for pair in pairs for tensor in pair]


def _pair_tensors(tensors: Sequence[Tensor]) -> list[KeyValues]:
    return [KeyValues(k, v) for k, v in zip(tensors[::2], tensors[1::2], strict=True)]


def _pairs(config: ModelConfig, name: str, length: str) -> list[Port]:
    shape = ("batch", config.kv_heads, length, config.d_head)
    return [Port(f"{name}.{layer}.{letter}", "float32", shape) for layer in range(config.decoder_layers) for letter in "kv"]
