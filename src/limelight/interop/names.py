"""A table maps the weights of a Transformer between our names and those of Hugging Face, in both directions.

What is not just another name is a step with its inverse:

    fused        q, k and v of a self-attention are one matrix here, head by head; three there
    embeddings   one matrix has one name here (decision 0002); there it has up to four
    bias         output_bias (V,) here; final_logits_bias (1, V) there
    permutation  sine and cosine in turns here, in two halves there: the same model with the axes of its stream in another order
    positions    computed here, sometimes stored there
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from limelight.model.config import ModelConfig

Weights = dict[str, Tensor]
# A linear map or a norm of ours, what it is there, several when fused, and whether it reads d_model or writes it.
Row = tuple[str, tuple[str, ...], Literal["read", "written"]]

SELF_ATTENTION: tuple[Row, ...] = (
    ("attention.qkv", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "read"),
    ("attention.out", ("self_attn.out_proj",), "written"),
    ("attention_norm", ("self_attn_layer_norm",), "written"),
)
CROSS_ATTENTION: tuple[Row, ...] = (
    ("cross_attention.q", ("encoder_attn.q_proj",), "read"),
    ("cross_attention.kv", ("encoder_attn.k_proj", "encoder_attn.v_proj"), "read"),
    ("cross_attention.out", ("encoder_attn.out_proj",), "written"),
    ("cross_attention_norm", ("encoder_attn_layer_norm",), "written"),
)
FEED_FORWARD: tuple[Row, ...] = (
    ("feed_forward.up", ("fc1",), "read"),
    ("feed_forward.down", ("fc2",), "written"),
    ("feed_forward_norm", ("final_layer_norm",), "written"),
)
LAYERS = {"encoder": SELF_ATTENTION + FEED_FORWARD, "decoder": SELF_ATTENTION + CROSS_ATTENTION + FEED_FORWARD}
SIDES = ("model.encoder.embed", "model.decoder.embed")
SHARED, OUTPUT = "model.shared.weight", "lm_head.weight"
SOURCE, TARGET = (f"{side}_tokens.weight" for side in SIDES)
EMBEDDINGS = {"source_embedding.weight", "target_embedding.weight", "output.weight"}
BIAS = "final_logits_bias"
TABLES = tuple(f"{side}_positions.weight" for side in SIDES)
M2M100_TABLES = tuple(f"{side}_positions.weights" for side in SIDES)  # in old files


def split_projections(rows: Tensor, config: ModelConfig, letters: str) -> list[Tensor]:
    """The projections in `letters`, "qkv" or "kv", of our joint weight (R, D) or bias (R,), each whole.

    Ours go group by group, [q ... q k v] of the first group before those of the second, so that a device with a share of the rows has
    whole heads. Others keep all of q, then all of k, then all of v.
    """
    shares = [config.num_heads // config.kv_heads if letter == "q" else 1 for letter in letters]
    grouped = rows.view(config.kv_heads, sum(shares) * config.d_head, *rows.shape[1:])
    cut = [share * config.d_head for share in shares]
    return [part.flatten(0, 1) for part in torch.split(grouped, cut, dim=1)]


def join_projections(parts: Sequence[Tensor], config: ModelConfig) -> Tensor:
    """Our joint weight or bias of whole projections, q, k, v or k, v."""
    grouped = [part.view(config.kv_heads, -1, *part.shape[1:]) for part in parts]
    return torch.cat(grouped, dim=1).flatten(0, 1)


def rows(config: ModelConfig) -> Iterator[tuple[str, list[str], int | None]]:
    """Each weight and bias: our name, their names, and the axis that is d_model; the bias of what reads has none."""
    for side, layer in LAYERS.items():
        for i in range(getattr(config, f"{side}_layers")):
            for ours, theirs, stream in layer:
                for part, read in (("weight", 1), ("bias", None)):
                    names = [f"model.{side}.layers.{i}.{name}.{part}" for name in theirs]
                    yield f"{side}.blocks.{i}.{ours}.{part}", names, 0 if stream == "written" else read
    for side in LAYERS if config.norm_order == "pre" else ():
        for part in ("weight", "bias"):
            yield f"{side}.norm.{part}", [f"model.{side}.layer_norm.{part}"], 0


def to_ours(theirs: Mapping[str, Tensor], config: ModelConfig) -> Weights:
    ours: Weights = {}
    for name, names, axis in rows(config):
        parts = [theirs[one] for one in names]
        whole = parts[0] if len(parts) == 1 else join_projections(parts, config)
        ours[name] = _reorder_stream(whole, axis, config, _to_turns)
    ours["target_embedding.weight"] = _first(theirs, TARGET, SHARED, OUTPUT, SOURCE)
    if config.tie != "all":
        ours["source_embedding.weight"] = _first(theirs, SOURCE, SHARED)
    if config.tie == "none":
        ours["output.weight"] = _first(theirs, OUTPUT, TARGET, SHARED)
    for name in EMBEDDINGS & ours.keys():
        ours[name] = _reorder_stream(ours[name], 1, config, _to_turns)
    if config.output_bias:
        ours["output_bias"] = theirs[BIAS].flatten()
    return ours


def to_theirs(ours: Mapping[str, Tensor], config: ModelConfig, separate: bool) -> Weights:
    """The inverse. `separate`: can the architecture have two vocabularies? Else its shared matrix is there in any case."""
    theirs: Weights = {}
    for name, names, axis in rows(config):
        whole = _reorder_stream(ours[name], axis, config, _to_halves)
        parts = split_projections(whole, config, "qkv"[-len(names) :]) if len(names) > 1 else [whole]
        theirs.update(zip(names, parts, strict=True))
    turned = {name: _reorder_stream(ours[name], 1, config, _to_halves) for name in EMBEDDINGS & ours.keys()}
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


def _reorder_stream(weight: Tensor, axis: int | None, config: ModelConfig, order: Callable[[int], Tensor]) -> Tensor:
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
