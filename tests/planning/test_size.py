"""Counts from the config alone, against the model that is built."""

from typing import Any

import pytest
import torch

from limelight.model.config import PRESETS, ModelConfig
from limelight.model.transformer import Transformer
from limelight.planning.cost.size import parameters

VARIANTS: dict[str, dict[str, Any]] = {
    "post, tied in the decoder": {"tie": "decoder", "source_vocab_size": 61, "norm_order": "post"},
    "nothing tied, with a bias on the output": {"tie": "none", "output_bias": True},
    "learned positions that begin later": {"positions": "learned", "position_offset": 2, "max_length": 50},
    "gated, without biases, rms": {"activation": "swiglu", "bias": False, "norm": "rms"},
    "fewer heads for k and v": {"num_kv_heads": 2, "norm_order": "pre"},
    "pruned heads": {"num_heads": 5, "head_width": 8},
    "rotary": {"positions": "rotary", "encoder_layers": 1, "decoder_layers": 4},
}
SMALL: dict[str, Any] = {
    "d_model": 48,
    "d_ff": 80,
    "num_heads": 6,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "dropout": 0.0,
}


def built(config: ModelConfig) -> dict[str, int]:
    """Counted in the model itself, which has no storage."""
    with torch.device("meta"):
        model = Transformer(config)
    counts = {"embeddings": 0, "encoder": 0, "decoder": 0}
    for name, weight in model.named_parameters():
        part = name.split(".")[0]
        counts[part if part in counts else "embeddings"] += weight.numel()
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_planned_parameters_of_a_preset_equal_the_built_model(preset: str) -> None:
    config = ModelConfig.preset(preset, 8_000)
    assert parameters(config) == built(config)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_planned_parameters_of_a_variant_equal_the_built_model(changes: dict[str, Any]) -> None:
    config = ModelConfig(vocab_size=97, **{**SMALL, **changes})
    assert parameters(config) == built(config)


def test_the_papers_base_model_has_63_million() -> None:
    assert sum(parameters(ModelConfig(vocab_size=37_000)).values()) == 63_082_496
