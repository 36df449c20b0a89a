"""Figures of the page on layers."""

import numpy as np
import torch

from figures_style import SECOND, SPOT, THIRD, Drawn, figure
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer

LAYERS = 12


def gradients_by_layer() -> Drawn:
    """The gradient that reaches each encoder block at the start, norms before and after the sub-layers."""
    found = {order: _gradients(order) for order in ("post", "pre")}
    drawn, (place,) = figure(5.6, 2.7)
    for (order, values), colour in zip(found.items(), (SECOND, SPOT), strict=True):
        place.plot(range(1, LAYERS + 1), values, marker="o", color=colour, label=f"norm {order}")
    place.set(xlabel="decoder block, from the first", ylabel="gradient of its feed-forward", yscale="log")
    place.legend()
    ratio = {order: max(values) / min(values) for order, values in found.items()}
    caption = (
        f"A model of {LAYERS}+{LAYERS} layers that has learnt nothing, one batch, the length of the gradient in "
        f"each decoder block. With norms "
        f"after the sub-layers the largest is {ratio['post']:.1f} times the smallest, before them "
        f"{ratio['pre']:.1f} times."
    )
    return Drawn(drawn, caption, "The gradient in each layer, with norms before and after")


def _gradients(order: str) -> list[float]:
    torch.manual_seed(7)
    config = ModelConfig(
        vocab_size=50,
        d_model=64,
        num_heads=4,
        d_ff=256,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        norm_order=order,
        dropout=0.0,
    )
    model = Transformer(config)
    ids = torch.randint(4, 50, (8, 12))
    model.loss(Batch.padded(ids, ids, ids.roll(-1, 1))).mean.backward()
    return [float(block.feed_forward.down.weight.grad.norm()) for block in model.decoder.blocks]


def where_parameters_are() -> Drawn:
    """Parameters of the paper's base model, by part; built without memory."""
    with torch.device("meta"):
        model = Transformer(ModelConfig(vocab_size=37_000))
    parts = {"embeddings": 0, "self-attention": 0, "cross-attention": 0, "feed-forward": 0, "norms": 0}
    for name, value in model.named_parameters():
        part = (
            "norms"
            if "norm" in name
            else "cross-attention"
            if "cross_attention" in name
            else "self-attention"
            if "attention" in name
            else "feed-forward"
            if "feed_forward" in name
            else "embeddings"
        )
        parts[part] += value.numel()
    total = sum(parts.values())
    drawn, (place,) = figure(5.6, 2.0)
    millions = np.array(list(parts.values())) / 1e6
    place.barh(list(parts), millions, color=[THIRD, SPOT, SPOT, SECOND, "#888888"])
    place.invert_yaxis()
    place.set(xlabel="parameters, millions")
    for at, value in enumerate(millions):
        place.text(value + 0.2, at, f"{value:.1f}", va="center")
    caption = (
        f"The base model of the paper with 37,000 pieces: {total / 1e6:.1f} million parameters. The feed-forward "
        f"networks, which nobody draws, are "
        f"{100 * parts['feed-forward'] / total:.0f} % of it, all attention "
        f"{100 * (parts['self-attention'] + parts['cross-attention']) / total:.0f} %."
    )
    return Drawn(drawn, caption, "Bars: parameters of the base model by part")
