"""Positions are sinusoidal as in the paper (section 3.5), learned, or rotary (Su et al. 2021)."""

import torch
from torch import Tensor, nn

from limelight.errors import LengthError
from limelight.model.config import ModelConfig
from limelight.model.grid import NARROWEST

Rotation = tuple[Tensor, Tensor]  # cosines and sines, (positions, K) each


def angles(length: int, width: int, layout: str, offset: int = 0) -> Tensor:
    """pos / 10000^(2i/width) for each position and each of width / 2 frequencies, in float64.

    tensor2tensor, and after it fairseq and M2M100, spread the same frequencies so that the last is exactly 1/10000.
    """
    pairs = width // 2
    steps = max(pairs - 1, 1) if layout == "tensor2tensor" else pairs
    frequencies = 10000.0 ** -(torch.arange(pairs, dtype=torch.float64) / steps)
    return torch.arange(offset, offset + length, dtype=torch.float64)[:, None] * frequencies


def sinusoids(length: int, d_model: int, layout: str = "interleaved", offset: int = 0) -> Tensor:
    """Sinusoidal positions (section 3.5), (length, d_model).

        PE(pos, 2i)   = sin(pos / 10000^(2i/d_model))
        PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))

    PE(pos + k) is a linear function of PE(pos): each pair (sin, cos) turns by k times its frequency.
    """
    angle = angles(length, d_model, layout, offset)
    if layout == "interleaved":
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


class Positions(nn.Module):
    """Positions are added to the embeddings. `learned` has a row per position; `sinusoidal` a table that is not a parameter."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        shape = (config.max_length + config.position_offset, config.d_model)
        if config.positions == "learned":
            self.weight = nn.Parameter(torch.empty(shape))
        elif config.positions == "sinusoidal":
            self.register_buffer("table", torch.empty(shape), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        c = self.config
        if c.positions == "learned" and not self.weight.is_meta:
            nn.init.normal_(self.weight, std=0.5**0.5 if c.scale_embeddings else c.d_model**-0.5)
        elif c.positions == "sinusoidal" and not self.table.is_meta:
            self.table.copy_(sinusoids(c.max_length + c.position_offset, c.d_model, c.position_layout))

    def forward(self, x: Tensor, columns: Tensor, start: int = 0) -> Tensor:
        """x (..., D) with the position of each piece in its sentence, counted from `start`."""
        if self.config.positions == "rotary":
            return x
        table = self.weight if self.config.positions == "learned" else self.table
        return x + table[columns + (start + self.config.position_offset)].to(x.dtype)


class RotaryPositions(nn.Module):
    """Rotary positions are the rotation for q and k of self-attention; None for the other kinds of positions."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.rows = max(config.max_length, NARROWEST)
        if config.positions == "rotary":
            for name in ("cosines", "sines"):
                self.register_buffer(name, torch.empty(self.rows, config.d_head), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        c = self.config
        if c.positions == "rotary" and not self.cosines.is_meta:
            angle = angles(self.rows, c.d_head, c.position_layout, c.position_offset)
            angle = angle.repeat_interleave(2, 1) if c.position_layout == "interleaved" else torch.cat([angle, angle], 1)
            self.cosines.copy_(angle.cos())
            self.sines.copy_(angle.sin())

    def forward(self, length: int, start: int = 0) -> Rotation | None:
        if self.config.positions != "rotary":
            return None
        return self.cosines[start : start + length], self.sines[start : start + length]


def rotate(x_BHTK: Tensor, rotation: Rotation, layout: str) -> Tensor:
    """Rotary positions (Su et al. 2021, equation 34): turn each pair of numbers by its position times its frequency.

        (a, b) -> (a cos t - b sin t, b cos t + a sin t)

    The product of a rotated q and a rotated k depends on their distance only.
    """
    if layout == "interleaved":
        turned = torch.stack([-x_BHTK[..., 1::2], x_BHTK[..., ::2]], dim=-1).flatten(-2)
    else:
        first, second = x_BHTK.chunk(2, dim=-1)
        turned = torch.cat([-second, first], dim=-1)
    cosines, sines = rotation
    return x_BHTK * cosines.to(x_BHTK.dtype) + turned * sines.to(x_BHTK.dtype)


def check_length(length: int, config: ModelConfig) -> None:
    """Shapes only, so that nothing waits for a device."""
    if length > config.max_length:
        raise LengthError(
            f"a sequence of {length} pieces is longer than the model's max_length={config.max_length}; "
            "split the text, or make the model with a larger max_length"
        )
