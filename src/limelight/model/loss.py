"""The loss is label-smoothed cross-entropy (section 5.4), computed from a few rows of logits at a time.

The logits of a batch are its largest tensor (4,096 pieces × 37,000 pieces of vocabulary: 600 MB). Here a chunk of rows becomes logits,
then probabilities, then the gradient, and is forgotten. `F.linear_cross_entropy` has no label smoothing in its chunked form (torch 2.13).
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

LOGITS_AT_ONCE = {"cpu": 2**22}  # what stays in a CPU's cache; accelerators prefer fewer, larger products
LOGITS_AT_ONCE_ELSEWHERE = 2**27


@dataclass(frozen=True)
class Loss:
    """A loss is sums over the pieces, so that batches and ranks of different sizes add up. `total` carries the gradient."""

    total: Tensor
    nll: Tensor
    pieces: Tensor

    @property
    def mean(self) -> Tensor:
        return self.total / self.pieces


def smoothed_loss(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    counted: Tensor,
    smoothing: float,
    chunk: int | None = None,
) -> Loss:
    """Cross-entropy of softmax(x W^T + b) against a target that gives `smoothing` of its mass to all pieces alike.

        loss = -(1 - s) log p(target) - s mean_v log p(v)

    x (N, D), weight (V, D), target (N,), counted (N,) boolean: which rows take part. With s = 0 it is the negative log-likelihood.
    """
    device = x.device.type
    if torch.is_autocast_enabled(device):
        # Cast once and turn it off: inside, autocast would give softmax and products different dtypes.
        x, weight = x.to(torch.get_autocast_dtype(device)), weight.to(torch.get_autocast_dtype(device))
        with torch.autocast(device, enabled=False):
            return smoothed_loss(x, weight, bias, target, counted, smoothing, chunk)
    if bias is not None:  # one more input that is always 1, so that the products below need no second form
        x, weight = F.pad(x, (0, 1), value=1.0), torch.cat([weight, bias.to(weight.dtype)[:, None]], dim=1)
    rows = chunk or rows_at_once(weight.shape[0], device)
    total, nll = _SmoothedLoss.apply(x, weight, target, counted, smoothing, rows, torch.is_grad_enabled())  # type: ignore[no-untyped-call]
    return Loss(total=total, nll=nll.detach(), pieces=counted.sum())


def rows_at_once(vocab_size: int, device_type: str) -> int:
    """A multiple of 256, so that the last chunk of a packed batch has one of few shapes."""
    return max(1, LOGITS_AT_ONCE.get(device_type, LOGITS_AT_ONCE_ELSEWHERE) // vocab_size // 256) * 256


def _log_p(p_target: Tensor, z_target: Tensor, z_NV: Tensor, p_NV: Tensor) -> Tensor:
    """log p(target), and where that p is too small for its format, by way of the likeliest piece, whose p is at least 1/V.

    The second way costs two more passes over the logits: 2 % of a step on a CPU, which can look first whether it is needed.
    """
    can_look = p_NV.device.type == "cpu" and not torch.compiler.is_compiling()
    if can_look and float(p_target.min()) > 1e-30:
        return p_target.log()
    return z_target - z_NV.amax(1).to(z_target) + p_NV.amax(1).to(z_target).log()


class _SmoothedLoss(torch.autograd.Function):
    """Computes the gradient with the loss, since it needs the same probabilities. Backward only scales it.

    d loss / d logits = p - s/V - (1 - s) [v = target]. The constant s/V never touches the (rows, V) matrix: times W it is
    s times the mean row of W, and times x the sum of x, for every piece alike.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x_ND: Tensor,
        w_VD: Tensor,
        target_N: Tensor,
        counted_N: Tensor,
        s: float,
        chunk: int,
        need_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        exact = torch.promote_types(x_ND.dtype, torch.float32)
        mean_D = w_VD.mean(0)
        counted_N1 = counted_N[:, None].to(x_ND.dtype)
        total, nll = x_ND.new_zeros((), dtype=exact), x_ND.new_zeros((), dtype=exact)
        dx_ND = torch.empty_like(x_ND) if need_gradient else None
        dw_VD = torch.zeros_like(w_VD, dtype=exact) if need_gradient else None
        for start in range(0, len(x_ND), chunk):
            part = slice(start, start + chunk)
            x, y = x_ND[part], target_N[part]
            rows = torch.arange(len(y), device=y.device)
            z_NV = x @ w_VD.mT
            p_NV = torch.softmax(z_NV, dim=1)
            z_target = z_NV[rows, y].to(exact)
            log_p = _log_p(p_NV[rows, y].to(exact), z_target, z_NV, p_NV)
            smooth = s * (z_target - (x @ mean_D).to(exact))
            total += ((smooth - log_p) * counted_N[part]).sum()
            nll -= (log_p * counted_N[part]).sum()
            if dx_ND is not None and dw_VD is not None:
                p_NV[rows, y] -= 1 - s
                torch.mm(p_NV, w_VD, out=dx_ND[part])
                dw_VD += p_NV.mT @ (x * counted_N1[part])
        if dx_ND is not None and dw_VD is not None:
            dx_ND.sub_(s * mean_D).mul_(counted_N1)
            dw_VD.sub_((x_ND * counted_N1).sum(0, dtype=exact) * (s / w_VD.shape[0]))
            ctx.save_for_backward(dx_ND, dw_VD.to(w_VD.dtype))
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        dx_ND, dw_VD = ctx.saved_tensors
        scale = gradients[0]
        return dx_ND * scale.to(dx_ND.dtype), dw_VD * scale.to(dw_VD.dtype), None, None, None, None, None
