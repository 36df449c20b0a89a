"""Small random models of every kind, and a sentence for them. All sizes differ, so that a swapped axis fails."""

from typing import Any

import torch

from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

SOURCE = [5, 9, 7, 11, 6, 8, 3]  # S = 7 with the end
INPUTS = [2, 10, 4, 13, 5]  # T = 5 from the start on
KINDS: list[dict[str, Any]] = [
    {"norm_order": "pre", "positions": "sinusoidal"},
    {"norm_order": "post", "positions": "learned"},
    {"norm_order": "pre", "positions": "rotary", "num_kv_heads": 2},
    {"norm_order": "post", "positions": "rotary", "norm": "rms", "activation": "swiglu"},
    {"norm_order": "post", "positions": "sinusoidal", "num_kv_heads": 1, "tie": "none", "output_bias": True},
]


def model_of(seed: int = 1, **changes: Any) -> Transformer:
    """Three layers below, two above, four heads of six numbers."""
    torch.manual_seed(seed)
    shape = {"encoder_layers": 3, "decoder_layers": 2, "d_model": 24, "d_ff": 40, "num_heads": 4, "max_length": 40}
    model = Transformer(ModelConfig(vocab_size=17, dropout=0.0, **{**shape, **changes})).eval()
    with torch.no_grad():  # weights as they start look everywhere alike, and would hide much
        for parameter in model.parameters():
            parameter.mul_(1.4 if parameter.dim() > 1 else 1.0).add_(torch.randn_like(parameter) * 0.02)
    return model
