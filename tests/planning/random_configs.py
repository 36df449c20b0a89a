"""Model shapes by chance, every choice among them: the formulas of planning have to hold for all."""

import random
from typing import Any

from limelight.model.config import ModelConfig


def random_config(chance: random.Random, **fixed: Any) -> ModelConfig:
    heads = chance.choice([2, 4, 6])
    source_alone = chance.random() < 0.3
    shape: dict[str, Any] = {
        "vocab_size": chance.choice([97, 503]),
        "source_vocab_size": 61 if source_alone else None,
        "tie": chance.choice(["decoder", "none"]) if source_alone else chance.choice(["all", "decoder", "none"]),
        "output_bias": chance.random() < 0.3,
        "d_model": heads * chance.choice([8, 16]),
        "d_ff": chance.choice([80, 160]),
        "num_heads": heads,
        "num_kv_heads": chance.choice([heads, 2, 1]),
        "encoder_layers": chance.choice([1, 3]),
        "decoder_layers": chance.choice([1, 2]),
        "norm_order": chance.choice(["pre", "post"]),
        "norm": chance.choice(["layer", "rms"]),
        "activation": chance.choice(["relu", "gelu", "silu", "reglu", "geglu", "swiglu"]),
        "positions": chance.choice(["sinusoidal", "learned", "rotary"]),
        "position_offset": chance.choice([0, 2]),
        "max_length": chance.choice([200, 333]),
        "bias": chance.random() < 0.5,
        "dropout": chance.choice([0.0, 0.1]),
        "attention_dropout": chance.choice([0.0, 0.0, 0.1]),
        "activation_dropout": chance.choice([0.0, 0.0, 0.1]),
        "head_width": chance.choice([None, None, 8]),
    }
    return ModelConfig(**{**shape, **fixed})
