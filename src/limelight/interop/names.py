"""A table maps the weights of a Transformer between our names and those of Hugging Face, in both directions.

What is not just another name is a step with its inverse:

    fused        q, k and v of a self-attention are one matrix here, head by head; three there
    embeddings   one matrix has one name here (decision 0002); there it has up to four
    bias         output_bias (V,) here; final_logits_bias (1, V) there
    permutation  sine and cosine in turns here, in two halves there: the same model with the axes of its stream in another order
    positions    computed here, sometimes stored there
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from limelight.interop.heads import join_projections, split_projections
from limelight.model.config import ModelConfig
from limelight.model.positions import sinusoids

Weights = dict[str, Tensor]
PARTS = ("weight", "bias")
FUSED = {2: "kv", 3: "qkv"}  # how many of theirs, and what they are
EMBEDDINGS = {"source_embedding.weight", "target_embedding.weight", "output.weight"}


@dataclass(frozen=True)
class WeightMapping:
    """A mapping is a linear map or a norm of ours and what it is there; several when fused. `stream`: does it read or write d_model?"""

    ours: str
    theirs: tuple[str, ...]
    stream: Literal["read", "written"]

    def axis(self, part: str) -> int | None:
        """Which axis of its weight or bias is d_model; the bias of what reads has none."""
        if self.stream == "written":
            return 0
        return 1 if part == "weight" else None


def _attention(ours: str, theirs: str) -> list[WeightMapping]:
    return [
        WeightMapping(f"{ours}.qkv", (f"{theirs}.q_proj", f"{theirs}.k_proj", f"{theirs}.v_proj"), "read"),
        WeightMapping(f"{ours}.out", (f"{theirs}.out_proj",), "written"),
        WeightMapping(f"{ours}_norm", (f"{theirs}_layer_norm",), "written"),
    ]


def _feed_forward(ours: str, theirs: str) -> list[WeightMapping]:
    return [
        WeightMapping(f"{ours}.feed_forward.up", (f"{theirs}.fc1",), "read"),
        WeightMapping(f"{ours}.feed_forward.down", (f"{theirs}.fc2",), "written"),
        WeightMapping(f"{ours}.feed_forward_norm", (f"{theirs}.final_layer_norm",), "written"),
    ]


_ENCODER, _DECODER = (
    ("encoder.blocks.{i}", "model.encoder.layers.{i}"),
    ("decoder.blocks.{i}", "model.decoder.layers.{i}"),
)
ENCODER_LAYER = [
    *_attention(f"{_ENCODER[0]}.attention", f"{_ENCODER[1]}.self_attn"),
    *_feed_forward(*_ENCODER),
]
DECODER_LAYER = [
    *_attention(f"{_DECODER[0]}.attention", f"{_DECODER[1]}.self_attn"),
    WeightMapping(f"{_DECODER[0]}.cross_attention.q", (f"{_DECODER[1]}.encoder_attn.q_proj",), "read"),
    WeightMapping(
        f"{_DECODER[0]}.cross_attention.kv",
        (f"{_DECODER[1]}.encoder_attn.k_proj", f"{_DECODER[1]}.encoder_attn.v_proj"),
        "read",
    ),
    WeightMapping(f"{_DECODER[0]}.cross_attention.out", (f"{_DECODER[1]}.encoder_attn.out_proj",), "written"),
    WeightMapping(f"{_DECODER[0]}.cross_attention_norm", (f"{_DECODER[1]}.encoder_attn_layer_norm",), "written"),
    *_feed_forward(*_DECODER),
]
LAST_NORMS = [  # only where norms stand before the sub-layers
    WeightMapping("encoder.norm", ("model.encoder.layer_norm",), "written"),
    WeightMapping("decoder.norm", ("model.decoder.layer_norm",), "written"),
]
SHARED, SOURCE, TARGET, OUTPUT = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
BIAS = "final_logits_bias"
TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
M2M100_TABLES = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")  # in old files


def rows(config: ModelConfig) -> list[WeightMapping]:
    """The table for a model with these numbers of layers."""
    stacks = ((ENCODER_LAYER, config.encoder_layers), (DECODER_LAYER, config.decoder_layers))
    found = [
        WeightMapping(row.ours.format(i=i), tuple(name.format(i=i) for name in row.theirs), row.stream)
        for layer, count in stacks
        for i in range(count)
        for row in layer
    ]
    return found + (LAST_NORMS if config.norm_order == "pre" else [])


def to_ours(theirs: Mapping[str, Tensor], config: ModelConfig) -> Weights:
    """Every weight of `config`, by our names. `theirs` has them all."""
    ours: Weights = {}
    for row in rows(config):
        for part in PARTS:
            parts = [theirs[f"{name}.{part}"] for name in row.theirs]
            whole = parts[0] if len(parts) == 1 else join_projections(parts, config)
            ours[f"{row.ours}.{part}"] = reorder_stream(whole, row.axis(part), config, _to_turns)
    ours["target_embedding.weight"] = _first(theirs, TARGET, SHARED, OUTPUT, SOURCE)
    if config.tie != "all":
        ours["source_embedding.weight"] = _first(theirs, SOURCE, SHARED)
    if config.tie == "none":
        ours["output.weight"] = _first(theirs, OUTPUT, TARGET, SHARED)
    for name in EMBEDDINGS & ours.keys():
        ours[name] = reorder_stream(ours[name], 1, config, _to_turns)
    if config.output_bias:
        ours["output_bias"] = theirs[BIAS].flatten()
    return ours


def to_theirs(ours: Mapping[str, Tensor], config: ModelConfig, separate: bool) -> Weights:
    """The inverse. `separate`: can the architecture have two vocabularies? Else its shared matrix is there in any case."""
    theirs: Weights = {}
    for row in rows(config):
        for part in PARTS:
            whole = reorder_stream(ours[f"{row.ours}.{part}"], row.axis(part), config, _to_halves)
            parts = split_projections(whole, config, FUSED[len(row.theirs)]) if len(row.theirs) > 1 else [whole]
            theirs.update({f"{name}.{part}": w for name, w in zip(row.theirs, parts, strict=True)})
    turned = {name: reorder_stream(ours[name], 1, config, _to_halves) for name in EMBEDDINGS & ours.keys()}
    target = turned["target_embedding.weight"]
    if config.tie == "all":
        theirs[SHARED] = target
    else:
        theirs |= {SOURCE: turned["source_embedding.weight"], TARGET: target}
        theirs |= {} if separate else {SHARED: target}
    if config.tie == "none" or (config.tie == "decoder" and not separate):
        theirs[OUTPUT] = turned.get("output.weight", target)
    if config.output_bias:
        theirs[BIAS] = ours["output_bias"][None]
    return theirs


def reorder_stream(weight: Tensor, axis: int | None, config: ModelConfig, order: Callable[[int], Tensor]) -> Tensor:
    """The axes of the stream in another order, where a weight reads or writes it. Every product and norm stays what it was."""
    if axis is None or config.position_layout != "interleaved":
        return weight
    return weight.index_select(axis, order(config.d_model))


def _to_halves(d_model: int) -> Tensor:
    """[0, 2, 4, ..., 1, 3, 5, ...]: the sines, then the cosines."""
    return torch.arange(d_model).view(-1, 2).mT.flatten()


def _to_turns(d_model: int) -> Tensor:
    """[0, n, 1, n + 1, ...]: the inverse."""
    return torch.arange(d_model).view(2, -1).mT.flatten()


def _first(weights: Mapping[str, Tensor], *names: str) -> Tensor:
    return next(weights[name] for name in names if name in weights)


def position_table(config: ModelConfig) -> Tensor:
    """What the other side stores of its positions."""
    return sinusoids(config.max_length, config.d_model, "halves").float()
