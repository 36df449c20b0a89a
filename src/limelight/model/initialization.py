"""Weights start at random, scaled so that the variance of the stream hardly grows with depth.

- Norms before the sub-layers: projections normal, variance 1 / fan-in, so that a position of unit variance stays so through one of them.
  Those that write into the stream (`out`, `down`) are divided by sqrt(writers of the stack), so that the stream's variance grows by about
  1 over the whole depth, not by 1 per sub-layer (Radford et al. 2019).
- Norms after: Xavier's variance, 2 / (fan-in + fan-out), and half of it for q, k and v, each counted by itself. Every norm restores the
  scale, but what a sub-layer adds must start small beside the stream that goes past it, or the gradients of the first blocks are lost in
  the norms after them (Liu et al. 2020). With 1 / fan-in throughout, four layers at the paper's kind of rate never look at the source.
- Embeddings: normal, standard deviation 1/sqrt(d_model) (see embedding.py). Learned positions: level with the sinusoids, sqrt(1/2), where
  embeddings are scaled, else with the embeddings. Biases 0; norms 1.

tests/model/test_initialization.py measures the stream at depth 24.
"""

import math

from torch import nn

from limelight.model.config import ModelConfig
from limelight.model.embedding import Embedding
from limelight.model.positions import Positions, RotaryPositions


def initialize(model: nn.Module, config: ModelConfig) -> None:
    """Fill all parameters and tables, also of a model that was made on the meta device and then given memory."""
    if next(model.parameters()).is_meta:  # nothing to fill, and torch would load a second's worth of modules to pretend it did
        return
    writers = {"encoder": 2 * config.encoder_layers, "decoder": 3 * config.decoder_layers}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            std = math.sqrt(_variance(name, module, config.norm_order))
            if config.norm_order == "pre" and name.endswith((".out", ".down")):
                std /= math.sqrt(writers[name.split(".")[0]])
            nn.init.normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, Embedding):
            nn.init.normal_(module.weight, std=1 / math.sqrt(config.d_model))
        elif isinstance(module, nn.LayerNorm | nn.RMSNorm | Positions | RotaryPositions):
            module.reset_parameters()
    output_bias = getattr(model, "output_bias", None)  # a parameter of the model itself, in no module of its own
    if output_bias is not None:
        nn.init.zeros_(output_bias)


def _variance(name: str, module: nn.Linear, norm_order: str) -> float:
    if norm_order == "pre" or name == "output":
        return 1 / module.in_features
    if name.endswith(("qkv", ".q", ".kv")):
        return 1 / (2 * module.in_features)
    return 2 / (module.in_features + module.out_features)
