"""The sizes people know, models without memory, and names that must not change by accident."""

import time
from pathlib import Path

import pytest
import torch

import limelight.model
from limelight.model.config import PRESETS, ModelConfig
from limelight.model.initialization import initialize
from limelight.model.transformer import Transformer

# The names are a door: bundles and converters rely on them. Rename here and in CHANGELOG.md, or not at all.
NAMES_OF_TOY = """
decoder.blocks.0.attention.out.bias 64
decoder.blocks.0.attention.out.weight 64x64
decoder.blocks.0.attention.qkv.bias 192
decoder.blocks.0.attention.qkv.weight 192x64
decoder.blocks.0.attention_norm.bias 64
decoder.blocks.0.attention_norm.weight 64
decoder.blocks.0.cross_attention.kv.bias 128
decoder.blocks.0.cross_attention.kv.weight 128x64
decoder.blocks.0.cross_attention.out.bias 64
decoder.blocks.0.cross_attention.out.weight 64x64
decoder.blocks.0.cross_attention.q.bias 64
decoder.blocks.0.cross_attention.q.weight 64x64
decoder.blocks.0.cross_attention_norm.bias 64
decoder.blocks.0.cross_attention_norm.weight 64
decoder.blocks.0.feed_forward.down.bias 64
decoder.blocks.0.feed_forward.down.weight 64x256
decoder.blocks.0.feed_forward.up.bias 256
decoder.blocks.0.feed_forward.up.weight 256x64
decoder.blocks.0.feed_forward_norm.bias 64
decoder.blocks.0.feed_forward_norm.weight 64
decoder.blocks.1.attention.out.bias 64
decoder.blocks.1.attention.out.weight 64x64
decoder.blocks.1.attention.qkv.bias 192
decoder.blocks.1.attention.qkv.weight 192x64
decoder.blocks.1.attention_norm.bias 64
decoder.blocks.1.attention_norm.weight 64
decoder.blocks.1.cross_attention.kv.bias 128
decoder.blocks.1.cross_attention.kv.weight 128x64
decoder.blocks.1.cross_attention.out.bias 64
decoder.blocks.1.cross_attention.out.weight 64x64
decoder.blocks.1.cross_attention.q.bias 64
decoder.blocks.1.cross_attention.q.weight 64x64
decoder.blocks.1.cross_attention_norm.bias 64
decoder.blocks.1.cross_attention_norm.weight 64
decoder.blocks.1.feed_forward.down.bias 64
decoder.blocks.1.feed_forward.down.weight 64x256
decoder.blocks.1.feed_forward.up.bias 256
decoder.blocks.1.feed_forward.up.weight 256x64
decoder.blocks.1.feed_forward_norm.bias 64
decoder.blocks.1.feed_forward_norm.weight 64
decoder.norm.bias 64
decoder.norm.weight 64
encoder.blocks.0.attention.out.bias 64
encoder.blocks.0.attention.out.weight 64x64
encoder.blocks.0.attention.qkv.bias 192
encoder.blocks.0.attention.qkv.weight 192x64
encoder.blocks.0.attention_norm.bias 64
encoder.blocks.0.attention_norm.weight 64
encoder.blocks.0.feed_forward.down.bias 64
encoder.blocks.0.feed_forward.down.weight 64x256
encoder.blocks.0.feed_forward.up.bias 256
encoder.blocks.0.feed_forward.up.weight 256x64
encoder.blocks.0.feed_forward_norm.bias 64
encoder.blocks.0.feed_forward_norm.weight 64
encoder.blocks.1.attention.out.bias 64
encoder.blocks.1.attention.out.weight 64x64
encoder.blocks.1.attention.qkv.bias 192
encoder.blocks.1.attention.qkv.weight 192x64
encoder.blocks.1.attention_norm.bias 64
encoder.blocks.1.attention_norm.weight 64
encoder.blocks.1.feed_forward.down.bias 64
encoder.blocks.1.feed_forward.down.weight 64x256
encoder.blocks.1.feed_forward.up.bias 256
encoder.blocks.1.feed_forward.up.weight 256x64
encoder.blocks.1.feed_forward_norm.bias 64
encoder.blocks.1.feed_forward_norm.weight 64
encoder.norm.bias 64
encoder.norm.weight 64
target_embedding.weight 14x64
"""


def on_meta(config: ModelConfig) -> Transformer:
    with torch.device("meta"):
        return Transformer(config)


def count(model: Transformer) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("preset", "parameters", "tolerance"),
    [("base", 65e6, 0.04), ("big", 213e6, 0.04), ("3b", 3e9, 0.1), ("10b", 10e9, 0.1)],
)
def test_presets_have_the_size_in_their_name_or_in_the_paper(preset: str, parameters: float, tolerance: float):
    """base and big as in table 3, with the paper's 37,000 shared pieces (5.1)."""
    begun = time.perf_counter()
    model = on_meta(ModelConfig.preset(preset, 37_000))
    assert time.perf_counter() - begun < 10
    assert count(model) == pytest.approx(parameters, rel=tolerance)
    assert all(tensor.is_meta for tensor in [*model.parameters(), *model.buffers()])


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_builds_and_computes_the_right_shape(preset: str):
    model = on_meta(ModelConfig.preset(preset, 100))
    ids = torch.empty(2, 5, dtype=torch.int64, device="meta")
    assert model(ids, ids[:, :4]).shape == (2, 4, 100)


CHOICES = [
    {},
    {"positions": "learned", "tie": "decoder", "source_vocab_size": 11, "norm": "rms"},
    {"positions": "rotary", "tie": "none", "activation": "swiglu", "num_kv_heads": 2, "norm_order": "post"},
    {"output_bias": True, "bias": False},
]


@pytest.mark.parametrize("changes", CHOICES, ids=["toy", "learned", "rotary", "output_bias"])
def test_a_model_from_meta_given_memory_and_initialized_is_like_any_other(changes: dict[str, object]):
    config = ModelConfig.preset("toy", 14, **changes)
    model, normal = on_meta(config).to_empty(device="cpu").eval(), Transformer(config).eval()
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.fill_(torch.nan)  # so that what is forgotten cannot be mistaken for a start
    initialize(model, config)

    shapes = [[(name, x.shape, x.dtype) for name, x in m.state_dict().items()] for m in (model, normal)]
    assert shapes[0] == shapes[1]
    assert [name for name, x in model.named_parameters() if not x.isfinite().all()] == []
    tables, expected = dict(model.named_buffers()), dict(normal.named_buffers())
    assert tables.keys() == expected.keys()
    assert all(torch.equal(tables[name], expected[name]) for name in tables)

    log_probs_BV, _ = model.step(torch.tensor([2, 2]), model.start(torch.tensor([[4, 5, 6], [7, 8, 0]])))
    assert log_probs_BV.isfinite().all()


def test_the_names_and_shapes_of_parameters_are_stable():
    found = {name: "x".join(map(str, x.shape)) for name, x in on_meta(ModelConfig.preset("toy", 14)).state_dict().items()}
    assert sorted(found.items()) == [tuple(line.split()) for line in NAMES_OF_TOY.split("\n") if line]


def test_tied_matrices_are_one_parameter():
    sizes = {tie: count(on_meta(ModelConfig.preset("toy", 1000, tie=tie))) for tie in ("all", "decoder", "none")}
    assert sizes["none"] - sizes["decoder"] == sizes["decoder"] - sizes["all"] == 1000 * 64


def test_no_file_of_the_model_is_longer_than_250_lines():
    files = list(Path(limelight.model.__file__).parent.glob("*.py"))
    assert len(files) > 10
    assert {file.name: n for file in files if (n := len(file.read_text(encoding="utf-8").splitlines())) > 250} == {}
