"""Parameters are listed by name and shape from `ModelConfig` alone, with the part that one process holds.

Equal to the names and shapes of the built model, so that what is cut over processes can be counted to the byte without building anything.
"""

import math
from collections.abc import Iterable, Mapping

from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Parallel

Shape = tuple[int, ...]

# How tensor parallelism cuts a projection (Shoeybi et al. 2019): these by rows of the weight, each process makes some of the outputs ...
BY_OUTPUTS = frozenset({"qkv", "q", "kv", "up", "gate"})
# ... and these by columns: each takes some of the inputs, and the results are added up.
BY_INPUTS = frozenset({"out", "down"})


def weights(config: ModelConfig) -> dict[str, Shape]:
    """The sum of the products of the shapes is the number of parameters."""
    c = config
    found: dict[str, Shape] = {"target_embedding.weight": (c.vocab_size, c.d_model)}
    if c.tie != "all":
        found["source_embedding.weight"] = (c.source_vocab, c.d_model)
    if c.tie == "none":
        found["output.weight"] = (c.vocab_size, c.d_model)
    if c.output_bias:
        found["output_bias"] = (c.vocab_size,)
    if c.positions == "learned":
        for side in ("source", "target"):
            found[f"{side}_positions.weight"] = (c.max_length + c.position_offset, c.d_model)
    for stack, layers in (("encoder", c.encoder_layers), ("decoder", c.decoder_layers)):
        for i in range(layers):
            block = _block(c, crosses=stack == "decoder")
            found |= {f"{stack}.blocks.{i}.{name}": shape for name, shape in block.items()}
        if c.norm_order == "pre":
            found |= _norm(c, f"{stack}.norm")
    return found


def blocks(config: ModelConfig) -> dict[str, dict[str, Shape]]:
    """The parameters of each block, and under "" what stands in none: what `fully_shard` gathers and scatters together."""
    groups: dict[str, dict[str, Shape]] = {"": {}}
    for name, shape in weights(config).items():
        parts = name.split(".")
        group = ".".join(parts[:3]) if parts[1:2] == ["blocks"] else ""
        groups.setdefault(group, {})[name] = shape
    return groups


def select_block_matrices(named: Mapping[str, Shape]) -> dict[str, Shape]:
    """Those that Muon steps, where it does: matrices inside the blocks."""
    return {name: shape for name, shape in named.items() if ".blocks." in name and len(shape) == 2}


def elements(shape: Shape) -> int:
    return math.prod(shape)


def cut_by_tensor(name: str, shape: Shape, tensor: int) -> Shape:
    """What one of `tensor` processes holds of it: ("...attention.qkv.weight", (1536, 512), 2) -> (768, 512)."""
    *_, module, kind = ("", *name.split("."))
    if module in BY_OUTPUTS:
        return (shape[0] // tensor, *shape[1:])
    if module in BY_INPUTS and kind == "weight":  # its bias is added once, after the sum: all hold it
        return (shape[0], shape[1] // tensor)
    return shape


def count_held(named: Iterable[tuple[str, Shape]], parallel: Parallel) -> int:
    """Elements of these parameters in the process that holds the most, the first: rows are dealt out in equal parts, the last part
    shorter. With all rows divisible it is the sum over the parameters, divided by shards."""
    total = 0
    for name, shape in named:
        rows, *rest = cut_by_tensor(name, shape, parallel.tensor)
        total += math.ceil(rows / parallel.shards) * math.prod(rest)
    return total


def _block(c: ModelConfig, crosses: bool) -> dict[str, Shape]:
    narrow = c.kv_heads * c.d_head
    found = {
        **_linear(c, "attention.out", c.d_model, c.heads_width),
        **_linear(c, "attention.qkv", c.heads_width + 2 * narrow, c.d_model),
        **_norm(c, "attention_norm"),
        **_linear(c, "feed_forward.up", c.d_ff, c.d_model),
        **_linear(c, "feed_forward.down", c.d_model, c.d_ff),
        **_norm(c, "feed_forward_norm"),
    }
    if c.gated:
        found |= _linear(c, "feed_forward.gate", c.d_ff, c.d_model)
    if crosses:
        found |= _linear(c, "cross_attention.out", c.d_model, c.heads_width)
        found |= _linear(c, "cross_attention.q", c.heads_width, c.d_model)
        found |= _linear(c, "cross_attention.kv", 2 * narrow, c.d_model)
        found |= _norm(c, "cross_attention_norm")
    return found


def _linear(c: ModelConfig, name: str, outputs: int, inputs: int) -> dict[str, Shape]:
    found: dict[str, Shape] = {f"{name}.weight": (outputs, inputs)}
    return {**found, f"{name}.bias": (outputs,)} if c.bias else found


def _norm(c: ModelConfig, name: str) -> dict[str, Shape]:
    found: dict[str, Shape] = {f"{name}.weight": (c.d_model,)}
    return {**found, f"{name}.bias": (c.d_model,)} if c.norm == "layer" else found
