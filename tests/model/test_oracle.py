"""Every part of the model equals the NumPy oracle to 1e-10 in float64, and with a planted error it does not."""

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import oracle
from limelight.model import attention
from limelight.model.attention import Visible, attend_fused, attend_in_stages
from limelight.model.config import ModelConfig
from limelight.model.decoder import NO_LOOK_AHEAD
from limelight.model.grid import Grid
from limelight.model.multi_head import CrossAttention, Memory, MultiHeadAttention
from limelight.model.positions import Positions, RotaryPositions, rotate, sinusoids
from limelight.model.transformer import Transformer

TOLERANCE = 1e-10
FAR_OUTSIDE = 1e-3  # what a planted error must exceed
ACTIVATIONS = ["relu", "gelu", "silu", "reglu", "geglu", "swiglu"]
POSITIONS = [("sinusoidal", "interleaved"), ("sinusoidal", "halves"), ("sinusoidal", "tensor2tensor")]
POSITIONS += [("learned", "interleaved"), ("rotary", "interleaved"), ("rotary", "halves")]


def numpy_of(x: Tensor) -> np.ndarray:
    return x.detach().double().numpy().copy()


def error(ours: Tensor, sentence: Callable[..., np.ndarray], *rows: Any) -> float:
    """The largest difference between our batch and what the oracle makes of each sentence."""
    expected = np.stack([sentence(*row) for row in zip(*rows, strict=True)])
    assert ours.dtype == torch.float64 and ours.shape == expected.shape
    return float(np.abs(numpy_of(ours) - expected).max())


def linear_of(layer: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """Our parameters in the paper's form: (inputs, outputs)."""
    return numpy_of(layer.weight).T, np.zeros(layer.out_features) if layer.bias is None else numpy_of(layer.bias)


def attention_of(module: MultiHeadAttention) -> dict[str, Any]:
    """A matrix per head. Rows go group by group [q ... q k v]; in cross-attention q head by head, and k and v group by group [k v]."""

    def heads_of(layer: nn.Linear, roles: str) -> list[tuple[str, np.ndarray, np.ndarray]]:
        weight, bias = linear_of(layer)
        cuts = [slice(start, start + module.d_head) for start in range(0, layer.out_features, module.d_head)]
        return [(roles[i % len(roles)], weight[:, cut], bias[cut]) for i, cut in enumerate(cuts)]

    if isinstance(module, CrossAttention):
        heads = heads_of(module.q, "Q") + heads_of(module.kv, "KV")
    else:
        heads = heads_of(module.qkv, "Q" * (module.num_heads // module.kv_heads) + "KV")
    p: dict[str, Any] = {f"W_{role}": [w for name, w, _ in heads if name == role] for role in "QKV"}
    p |= {f"b_{role}": [b for name, _, b in heads if name == role] for role in "QKV"}
    p["W_O"], p["b_O"] = linear_of(module.out)
    return p


def feed_forward_of(module: nn.Module) -> dict[str, np.ndarray]:
    first = module.up if module.gate is None else module.gate
    (w_1, b_1), (v, c), (w_2, b_2) = (linear_of(layer) for layer in (first, module.up, module.down))
    return {"W_1": w_1, "b_1": b_1, "V": v, "c": c, "W_2": w_2, "b_2": b_2}


def norm_of(module: nn.Module) -> dict[str, np.ndarray]:
    return {{"weight": "gain"}.get(name, name): numpy_of(p) for name, p in module.named_parameters()}


def layer_of(block: nn.Module) -> dict[str, Any]:
    p = {"attention": attention_of(block.attention), "attention_norm": norm_of(block.attention_norm)}
    p |= {"feed_forward": feed_forward_of(block.feed_forward), "feed_forward_norm": norm_of(block.feed_forward_norm)}
    if hasattr(block, "cross_attention"):
        p |= {"cross": attention_of(block.cross_attention), "cross_norm": norm_of(block.cross_attention_norm)}
    return p


def parameters_of(model: Transformer) -> dict[str, Any]:
    p: dict[str, Any] = {"output": numpy_of(model.output_weight).T}
    p["output_bias"] = 0.0 if model.output_bias is None else numpy_of(model.output_bias)
    p["source_embedding"] = numpy_of((model.source_embedding or model.target_embedding).weight)
    p["target_embedding"] = numpy_of(model.target_embedding.weight)
    for side, stack in {"encoder": model.encoder, "decoder": model.decoder}.items():
        p[side], p[f"{side}_norm"] = [layer_of(block) for block in stack.blocks], norm_of(stack.norm)
    if model.config.positions == "learned":
        for name in ("source_positions", "target_positions"):
            p[name] = numpy_of(getattr(model, name).weight)
    return p


@dataclass
class Case:
    """A model, a batch with padding, and what the oracle knows of both."""

    model: Transformer
    p: dict[str, Any]  # as drawn, whatever is planted in the model later
    variant: oracle.Variant
    source: Tensor
    target: Tensor
    keys: np.ndarray  # (B, S)
    x: Tensor  # (B, S, D)
    y: Tensor  # (B, T, D)


def draw_case(seed: int, **choices: Any) -> Case:
    """Sizes that all differ, no parameter at 0 or 1, rows of random lengths, one of them nothing but padding at times."""
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    B, S, T, H, d_ff = sizes = rng.sample(range(2, 8), 5)
    K = rng.choice([k for k in range(2, 10, 1 if choices.get("positions") == "learned" else 2) if k not in sizes])
    drawn = {name: rng.random() < 0.5 for name in ("bias", "output_bias", "scale_embeddings")}
    drawn |= {name: rng.randint(1, 2) for name in ("encoder_layers", "decoder_layers")}
    groups = [g for g in range(1, H + 1) if H % g == 0]
    drawn |= {"num_kv_heads": rng.choice(groups), "position_offset": rng.randint(0, 2)}
    drawn |= {"tie": rng.choice(["all", "decoder", "none"]), "norm_eps": rng.choice([1e-6, 1e-5, 1e-2])}
    shape = {"vocab_size": 13, "d_model": H * K, "num_heads": H, "d_ff": d_ff, "max_length": 8}
    config = ModelConfig(**{**shape, **drawn, **choices})
    model = Transformer(config).double().eval()
    for module in model.modules():
        if isinstance(module, Positions | RotaryPositions):
            module.reset_parameters()  # again, since a table made in float32 is only that exact
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter), alpha=0.2)
    lengths = [rng.randint(0, S - 1), *(rng.randint(1, S) for _ in range(B - 1))]
    source = torch.tensor([[rng.randint(4, 12) if s < length else 0 for s in range(S)] for length in lengths])
    target = torch.randint(0, 13, (B, T))
    keys = np.array([[s < max(1, length) for s in range(S)] for length in lengths])
    variant = oracle.Variant(**{field.name: getattr(config, field.name) for field in fields(oracle.Variant)})
    streams = (torch.randn(B, length, config.d_model, dtype=torch.float64) for length in (S, T))
    return Case(model, parameters_of(model), variant, source, target, keys, *streams)


def self_attention_error(c: Case) -> float:
    S, p, module = c.x.shape[1], c.p["encoder"][0]["attention"], c.model.encoder.blocks[0].attention
    ours = module(c.x, Visible.pieces(c.source, 0), Grid.padded(c.source), c.model.encoder.rotary(S))
    turn, rows = oracle.turn(c.variant), (c.x.numpy(), c.keys)
    return error(ours, lambda x, keys: oracle.multi_head(x, x, oracle.every_query(keys, S), p, turn), *rows)


def causal_attention_error(c: Case) -> float:
    T, p, module = c.y.shape[1], c.p["decoder"][0]["attention"], c.model.decoder.blocks[0].attention
    ours = module(c.y, NO_LOOK_AHEAD, Grid.padded(c.target), c.model.decoder.rotary(T))
    turn = oracle.turn(c.variant)
    return error(ours, lambda y: oracle.multi_head(y, y, oracle.causal(T), p, turn), c.y.numpy())


def cross_attention_error(c: Case) -> float:
    T, p, module = c.y.shape[1], c.p["decoder"][0]["cross"], c.model.decoder.blocks[0].cross_attention
    memory = module.project(Memory(c.x, Grid.padded(c.source)))
    ours = module(c.y, memory, Visible.pieces(c.source, 0), Grid.padded(c.target))
    rows = (c.y.numpy(), c.x.numpy(), c.keys)
    return error(ours, lambda y, x, keys: oracle.multi_head(y, x, oracle.every_query(keys, T), p), *rows)


def feed_forward_error(c: Case) -> float:
    p, ours = c.p["encoder"][0]["feed_forward"], c.model.encoder.blocks[0].feed_forward(c.x)
    return error(ours, lambda x: oracle.feed_forward(x, p, c.variant.activation), c.x.numpy())


def norm_error(c: Case) -> float:
    p, ours = c.p["encoder"][0]["attention_norm"], c.model.encoder.blocks[0].attention_norm(c.x)
    return error(ours, lambda x: oracle.normalize(x, p, c.variant), c.x.numpy())


def encoder_layer_error(c: Case) -> float:
    S, p, block = c.x.shape[1], c.p["encoder"][0], c.model.encoder.blocks[0]
    ours = block(c.x, Visible.pieces(c.source, 0), Grid.padded(c.source), c.model.encoder.rotary(S))
    rows = (c.x.numpy(), c.keys)
    return error(ours, lambda x, keys: oracle.encoder_layer(x, oracle.every_query(keys, S), p, c.variant), *rows)


def decoder_layer_error(c: Case) -> float:
    T, p, block = c.y.shape[1], c.p["decoder"][0], c.model.decoder.blocks[0]
    memory, grid = block.cross_attention.project(Memory(c.x, Grid.padded(c.source))), Grid.padded(c.target)
    ours = block(c.y, NO_LOOK_AHEAD, grid, memory, Visible.pieces(c.source, 0), c.model.decoder.rotary(T))
    layer, so_far = oracle.decoder_layer, oracle.causal(T)
    rows = (c.y.numpy(), c.x.numpy(), c.keys)
    return error(ours, lambda y, x, keys: layer(y, x, so_far, oracle.every_query(keys, T), p, c.variant), *rows)


def logits_error(c: Case) -> float:
    rows = (c.source.tolist(), c.target.tolist(), c.keys)
    return error(c.model(c.source, c.target), lambda *row: oracle.logits(*row, c.p, c.variant), *rows)


PARTS = {  # and the weight that is planted transposed, or for a norm turned by one
    self_attention_error: "encoder.blocks.0.attention.qkv.weight",
    causal_attention_error: "decoder.blocks.0.attention.out.weight",
    cross_attention_error: "decoder.blocks.0.cross_attention.kv.weight",
    feed_forward_error: "encoder.blocks.0.feed_forward.up.weight",
    norm_error: "encoder.blocks.0.attention_norm.weight",
    encoder_layer_error: "encoder.blocks.0.feed_forward.down.weight",
    decoder_layer_error: "decoder.blocks.0.cross_attention.q.weight",
    logits_error: "decoder.blocks.0.feed_forward.up.weight",
}


def attention_error(attend: Callable[..., Tensor], seed: int) -> float:
    """Random q, k, v; causal or not, padded or not. The last query stands at the last key."""
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    B, H, K, T, more = rng.sample(range(2, 9), 5)
    causal, padded, S = seed % 2 == 0, seed % 4 > 0, T + more if seed % 3 else T
    q, k, v = (torch.randn(B, H, length, K, dtype=torch.float64) for length in (T, S, S))
    keys_BS = torch.rand(B, S) < (0.6 if padded else 1)
    keys_BS[:, :1] = True
    look_ahead_TS = [[not causal or s - S <= t - T for s in range(S)] for t in range(T)]
    seen_BTS = keys_BS[:, None].numpy() & np.array(look_ahead_TS)
    ours = attend(q, k, v, Visible(keys=keys_BS if padded else None, causal=causal)).flatten(0, 1)
    return error(ours, oracle.attention, *(x.flatten(0, 1).numpy() for x in (q, k, v)), seen_BTS.repeat(H, axis=0))


@pytest.fixture
def without_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "math", SimpleNamespace(sqrt=lambda _: 1.0))
    fused = partial(F.scaled_dot_product_attention, scale=1.0)
    monkeypatch.setattr(attention, "F", SimpleNamespace(scaled_dot_product_attention=fused))


@pytest.fixture
def mask_shifted_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Visible.mask
    monkeypatch.setattr(Visible, "mask", lambda *given: right(*given).roll(1, dims=-1))


@pytest.mark.parametrize("attend", [attend_in_stages, attend_fused])
def test_attention_equals_the_paper(attend: Callable[..., Tensor]) -> None:
    assert max(attention_error(attend, seed) for seed in range(30)) < TOLERANCE


@pytest.mark.parametrize("attend", [attend_in_stages, attend_fused])
@pytest.mark.parametrize("planted", ["without_scale", "mask_shifted_by_one"])
def test_a_wrong_attention_is_noticed(attend: Callable[..., Tensor], planted: str, request: Any) -> None:
    request.getfixturevalue(planted)
    assert min(attention_error(attend, seed) for seed in (1, 2, 3, 6)) > FAR_OUTSIDE


@pytest.mark.parametrize("layout", ["interleaved", "halves", "tensor2tensor"])
@pytest.mark.parametrize("length, d_model, first", [(1, 2, 0), (7, 4, 0), (5, 18, 2), (60, 6, 3)])
def test_sinusoids_equal_the_paper_and_one_place_aside_do_not(length: int, d_model: int, first: int, layout: str) -> None:
    rows = oracle.sinusoidal_positions(length, d_model, layout, first)
    assert error(sinusoids(length, d_model, layout, first), np.copy, rows) < TOLERANCE
    assert error(sinusoids(length, d_model, layout, first + 1), np.copy, rows) > FAR_OUTSIDE
    other = "halves" if layout == "interleaved" else "interleaved"
    assert d_model == 2 or error(sinusoids(length, d_model, other, first), np.copy, rows) > FAR_OUTSIDE


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotary_equals_the_paper_and_turned_the_wrong_way_does_not(layout: str) -> None:
    for seed in range(10):
        case = draw_case(seed, positions="rotary", position_layout=layout)
        x = case.x.unflatten(-1, (-1, case.model.config.d_head)).transpose(1, 2)
        cosines, sines = case.model.encoder.rotary(x.shape[2])
        right, wrong = (rotate(x, (cosines, y), layout).flatten(0, 1) for y in (sines, -sines))
        rows = x.flatten(0, 1).numpy()
        assert error(right, oracle.turn(case.variant), rows) < TOLERANCE
        assert error(wrong, oracle.turn(case.variant), rows) > FAR_OUTSIDE


@pytest.mark.slow
@pytest.mark.parametrize("positions, layout", POSITIONS)
@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_each_part_and_the_whole_equal_the_paper_in_every_variant(
    positions: str, layout: str, norm_order: str, norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = 100 * zlib.crc32(f"{positions} {layout} {norm_order} {norm}".encode())  # other shapes for each
    for seed, activation in enumerate(ACTIVATIONS, first):
        monkeypatch.setattr(attention, "stages_are_faster", lambda q, k, seed=seed: seed % 2 == 1)  # both by turns
        choices = {"norm_order": norm_order, "norm": norm, "activation": activation}
        case = draw_case(seed, positions=positions, position_layout=layout, **choices)
        errors = {part.__name__: part(case) for part in PARTS}
        assert max(errors.values()) < TOLERANCE, (errors, case.variant)


@pytest.mark.parametrize("part", PARTS)
def test_a_transposed_weight_is_noticed_in_each_part(part: Callable[[Case], float]) -> None:
    case = draw_case(1, activation="geglu")
    weight = case.model.get_parameter(PARTS[part]).data
    weight.copy_(weight.roll(1) if part is norm_error else weight.mT.reshape(weight.shape).clone())
    assert part(case) > FAR_OUTSIDE


@pytest.mark.parametrize("part", [part for part in PARTS if part not in (feed_forward_error, norm_error)])
@pytest.mark.parametrize("planted", ["without_scale", "mask_shifted_by_one"])
def test_a_wrong_attention_is_noticed_in_each_part_that_attends(
    part: Callable[[Case], float], planted: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(planted)
    assert part(draw_case(1)) > FAR_OUTSIDE
