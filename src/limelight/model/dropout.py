"""Dropout (section 5.4) zeroes numbers at random, with masks that a CPU draws fast.

torch draws a CPU dropout mask one number at a time, a quarter of a training step at the size `small`. Here one 64-bit draw makes
eight masks, so on the CPU the rate is rounded to 1/256, at most 255/256, and the scale follows the rounded rate.
Draws come from torch's global generator, as with torch's own dropout, so that activation checkpointing can repeat them.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def dropout(x: Tensor, rate: float) -> Tensor:
    """Zero each element with probability `rate`, scale the rest by 1 / (1 - rate). The caller passes 0 when not training."""
    if rate == 0.0:
        return x
    if _torch_is_faster(x):
        return F.dropout(x, rate)
    return x * keep_mask(x, rate)


def add_dropout(x: Tensor, y: Tensor, rate: float) -> Tensor:
    """x + dropout(y), in one pass over memory where possible."""
    if rate == 0.0:
        return x + y
    if _torch_is_faster(y) or x.dtype != y.dtype:
        return x + dropout(y, rate)
    added: Tensor = _AddKept.apply(x, y, keep_mask(y, rate))  # type: ignore[no-untyped-call]
    return added


def keep_mask(x: Tensor, rate: float) -> Tensor:
    """A tensor like x of 0 (dropped) and 1 / (1 - rate) (kept), with the rate rounded to 1/256."""
    dropped = min(round(rate * 256), 255)
    draws = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    random_bytes = draws.view(torch.uint8)[: x.numel()].view(x.shape)
    # Numbers up to 256 are exact in bfloat16. Comparing in x's own dtype is vectorized; through bool it takes eight times as long.
    return random_bytes.to(x.dtype).ge_(dropped).mul_(256 / (256 - dropped))


class _AddKept(torch.autograd.Function):
    """x + y * mask. torch's own gradient of `addcmul` multiplies the mask by 1 first, a pass over memory for nothing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        return torch.addcmul(x, y, mask)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (mask,) = ctx.saved_tensors
        return gradients[0], gradients[0] * mask, None


def _torch_is_faster(x: Tensor) -> bool:
    return x.device.type != "cpu" or torch.compiler.is_compiling()
