"""The gradient of one step: of one batch or of several, divided by the pieces of all, so that how they are cut does not matter."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from limelight.corpus.batches import Share
from limelight.model.transformer import Batch, Transformer
from limelight.training.numbers import Numbers


@dataclass(frozen=True)
class Losses:
    """Per target piece, over all batches of the step."""

    loss: float
    nll: float


def batch_of(share: Share, device: torch.device, pad_token: int, rows: slice = slice(None)) -> Batch:
    """Ids as the loader gives them -> a packed batch on the device."""
    source, target_in, target_out = (
        torch.from_numpy(np.ascontiguousarray(side[rows], np.int64))
        for side in (share.source, share.target_in, share.target_out)
    )
    return Batch.packed(source, target_in, target_out, pad_token).to(device)


def gradients(
    numbers: Numbers,
    shares: Sequence[Share],
    smoothing: float,
    r_drop: float | None,
    notice: Callable[[str], None] = lambda text: None,
    least: int = 0,
) -> Losses:
    """Leaves d loss / d weight in the weights that the optimizer sees. A batch that does not fit into memory is halved, and again.

    With fewer than `least` target pieces the sum is divided by `least`: the longest pair of a corpus is often a batch of its own, and
    its pieces should not count for a hundred times as much as others.
    """
    parts = 1
    while True:
        try:
            return _in_parts(numbers, shares, smoothing, r_drop, parts, least)
        except torch.OutOfMemoryError:
            if parts >= max(len(share.source) for share in shares):
                raise
        # Here and not above: an exception that is being handled holds all that the failed pass held.
        numbers.drop_gradients()
        parts *= 2
        if numbers.device.type == "cuda":
            torch.cuda.empty_cache()
        notice(f"out of memory: the batch of {shares[0].rows} pairs is computed in {parts} parts")


def _in_parts(
    numbers: Numbers, shares: Sequence[Share], smoothing: float, r_drop: float | None, parts: int, least: int
) -> Losses:
    model, pieces = numbers.model, sum(share.targets for share in shares)
    total = torch.zeros((), device=numbers.device)
    nll = torch.zeros((), device=numbers.device)
    for share in shares:
        for part in range(min(parts, len(share.source))):
            batch = batch_of(share, numbers.device, model.config.pad_token, slice(part, None, parts))
            with numbers.computing():
                if r_drop is None:
                    found = model.loss(batch, smoothing)
                    loss, plain = found.total, found.nll
                else:
                    loss, plain = r_drop_loss(model, batch, smoothing, r_drop)
            (loss / max(pieces, least)).backward()  # type: ignore[no-untyped-call]
            numbers.take_gradients()
            total += loss.detach()
            nll += plain
    return Losses(float(total) / pieces, float(nll) / pieces)


def r_drop_loss(model: Transformer, batch: Batch, smoothing: float, alpha: float) -> tuple[Tensor, Tensor]:
    """R-Drop (Liang et al. 2021): two passes with different dropout should say the same.

        loss = (CE(p1) + CE(p2)) / 2 + alpha / 4 (KL(p1 | p2) + KL(p2 | p1)),  summed over the target pieces

    The original adds both cross-entropies and alpha / 2 of the divergences; halved, the learning rate keeps its meaning.
    Returns the loss with its gradient, and the negative log-likelihood of the first pass.
    """
    target = batch.target_grid.take(batch.target_out)
    filled = batch.target_grid.filled(target.device)  # filler repeats the first piece: it must not count
    counted = target != model.config.pad_token if filled is None else filled
    log_p = []
    for _ in range(2):
        x = model.decode(batch, model.encode(batch.source, batch.source_grid))
        # All positions, also those that do not count: their number is round, and each new one would cost a new kernel and its memory.
        logits = model.logits(x)
        log_p.append(torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1))
    cross = [-each.gather(-1, target[..., None])[..., 0][counted].sum() for each in log_p]
    uniform = [-each.mean(-1)[counted].sum() for each in log_p]
    smoothed = [(1 - smoothing) * c + smoothing * u for c, u in zip(cross, uniform, strict=True)]
    p_less_p = log_p[0].exp() - log_p[1].exp()
    divergences = (p_less_p * (log_p[0] - log_p[1])).sum(-1)[counted].sum()  # KL(p1 | p2) + KL(p2 | p1)
    return (smoothed[0] + smoothed[1]) / 2 + alpha / 4 * divergences, cross[0].detach()
