"""A table of names turns our Transformer into one of CTranslate2 and back, and says what that has no place for.

CTranslate2 takes positions as a table, whatever they are, and q, k and v in one matrix, but in another order of rows. Its words for
alignment are a layer and its first heads, so the heads that align best are moved to the front: the order of heads means nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from ctranslate2 import specs
from torch import Tensor

from limelight.interop.names import split_projections
from limelight.model.config import ModelConfig
from limelight.model.positions import sinusoids

UNGATED = {"relu": specs.Activation.RELU, "gelu": specs.Activation.GELU, "silu": specs.Activation.SWISH}
ACTIVATIONS = {**UNGATED, "reglu": UNGATED["relu"], "geglu": UNGATED["gelu"], "swiglu": UNGATED["silu"]}
POSITIONS = ("sinusoidal", "learned", "rotary")
ENCODER_PARTS = (
    ("attention_norm", "self_attention/layer_norm"),
    ("attention.qkv", "self_attention/linear_0"),
    ("attention.out", "self_attention/linear_1"),
    ("feed_forward_norm", "ffn/layer_norm"),
    ("feed_forward.down", "ffn/linear_1"),
)
DECODER_PARTS = (
    *ENCODER_PARTS,
    ("cross_attention_norm", "attention/layer_norm"),
    ("cross_attention.q", "attention/linear_0"),
    ("cross_attention.kv", "attention/linear_1"),
    ("cross_attention.out", "attention/linear_2"),
)
PLAIN, GATED = (
    (("feed_forward.up", "ffn/linear_0"),),
    (("feed_forward.gate", "ffn/linear_0"), ("feed_forward.up", "ffn/linear_0_noact")),
)


def names(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """("encoder.blocks.0.attention.qkv.weight", "encoder/layer_0/self_attention/linear_0/weight") and so on, each weight once or, where
    one matrix of ours has several places in the engine, several times."""
    source = "target_embedding" if config.tie == "all" else "source_embedding"
    yield f"{source}.weight", "encoder/embeddings_0/weight"
    yield "target_embedding.weight", "decoder/embeddings/weight"
    yield "output.weight" if config.tie == "none" else "target_embedding.weight", "decoder/projection/weight"
    if config.output_bias:
        yield "output_bias", "decoder/projection/bias"
    inner = GATED if config.gated else PLAIN
    for side, count, parts in (
        ("encoder", config.encoder_layers, ENCODER_PARTS),
        ("decoder", config.decoder_layers, DECODER_PARTS),
    ):
        for layer in range(count):
            for ours, theirs in (*parts, *inner):
                yield from _both(f"{side}.blocks.{layer}.{ours}", f"{side}/layer_{layer}/{theirs}", config)
        if config.norm_order == "pre":
            yield from _both(f"{side}.norm", f"{side}/layer_norm", config)


def _both(ours: str, theirs: str, config: ModelConfig) -> Iterator[tuple[str, str]]:
    """A weight and its bias, by the engine's names for those of a product or of a norm."""
    norm = theirs.endswith("layer_norm")
    yield f"{ours}.weight", f"{theirs}/gamma" if norm else f"{theirs}/weight"
    if config.norm == "layer" if norm else config.bias:
        yield f"{ours}.bias", f"{theirs}/beta" if norm else f"{theirs}/bias"


def lacks(config: ModelConfig) -> list[str]:
    """What of this model the engine has no place for, each with its reason; empty when it can run it."""
    found = []
    if config.positions not in POSITIONS:
        found.append(f"positions={config.positions}: the engine knows {', '.join(POSITIONS)}")
    if config.activation not in ACTIVATIONS:
        found.append(f"activation={config.activation}: the engine knows {', '.join(ACTIVATIONS)}")
    if config.positions == "rotary" and config.position_offset:
        found.append(f"position_offset={config.position_offset}: the engine turns rotary positions from 0")
    return found


def spec_of(config: ModelConfig, weights: Mapping[str, Tensor], alignment: Sequence[tuple[int, int]]) -> Any:
    """The engine's description with every weight in its place. Ask `lacks` before."""
    layer, heads = alignment_of(config, alignment)
    encoder, decoder = _sides(config, layer, len(heads))
    spec = specs.TransformerSpec(encoder, decoder)
    order = [*heads, *(head for head in range(config.num_heads) if head not in heads)]
    for ours, theirs in names(config):
        value = weights[ours]
        if order != sorted(order) and ours.startswith(f"decoder.blocks.{layer}.cross_attention."):
            value = _reorder_heads(config, ours, value, order)
        scope, _, name = theirs.rpartition("/")
        # A copy: the engine's own quantization multiplies the very numbers that it is given.
        setattr(specs.model_spec.index_spec(spec, scope), name, _theirs(config, ours, value).float().clone())
    encoder.scale_embeddings = decoder.scale_embeddings = config.scale_embeddings
    if config.positions != "rotary":
        for side, name in ((encoder, "source"), (decoder, "target")):
            side.position_encodings.encodings = position_table(config, weights, name)
    return spec


def alignment_of(config: ModelConfig, alignment: Sequence[tuple[int, int]]) -> tuple[int, list[int]]:
    """The engine looks at one layer: the one that most of the heads are in, and those heads. All of them where heads share k and v, for
    those cannot change places freely."""
    layers = [layer for layer, _ in alignment]
    layer = max(sorted(set(layers)), key=layers.count)
    if config.kv_heads != config.num_heads:
        return layer, list(range(config.num_heads))
    return layer, sorted({head for its, head in alignment if its == layer})


def position_table(config: ModelConfig, weights: Mapping[str, Tensor], side: str) -> Tensor:
    """One row for each position from the first on, (max_length, D)."""
    if config.positions == "learned":
        return weights[f"{side}_positions.weight"][config.position_offset :].float().contiguous()
    # The table as the model has it: computed in float64, kept in float32.
    return sinusoids(config.max_length, config.d_model, config.position_layout, config.position_offset).float()


def _sides(config: ModelConfig, layer: int, heads: int) -> tuple[Any, Any]:
    shared = {
        "pre_norm": config.norm_order == "pre",
        "activation": ACTIVATIONS[config.activation],
        "ffn_glu": config.gated,
        "rms_norm": config.norm == "rms",
    }
    if config.kv_heads != config.num_heads:
        shared["num_heads_kv"] = config.kv_heads
    if config.heads_width != config.d_model:
        shared["head_dim"] = config.d_head
    if config.positions == "rotary":
        # 0: all dimensions of a head.
        shared |= {"rotary_dim": 0, "rotary_interleave": config.position_layout == "interleaved"}
    encoder = specs.TransformerEncoderSpec(config.encoder_layers, config.num_heads, **shared)
    decoder = specs.TransformerDecoderSpec(config.decoder_layers, config.num_heads, alignment_layer=layer, alignment_heads=heads, **shared)
    return encoder, decoder


def _theirs(config: ModelConfig, name: str, value: Tensor) -> Tensor:
    """Rows of a joint projection: all of q, then all of k, then all of v."""
    joint = next((letters for letters in ("qkv", "kv") if f".{letters}." in name), None)
    return value if joint is None else torch.cat(split_projections(value, config, joint))


def _reorder_heads(config: ModelConfig, name: str, value: Tensor, order: Sequence[int]) -> Tensor:
    """A part of cross-attention with its heads in this order: rows of q, k and v, columns of the output."""
    *_, part, kind = name.split(".")
    if part == "out":
        columns = value if kind == "bias" else value.view(len(value), config.num_heads, -1)[:, list(order)]
        return columns if kind == "bias" else columns.flatten(1)
    return value.view(config.num_heads, -1, *value.shape[1:])[list(order)].flatten(0, 1)
