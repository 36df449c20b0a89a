"""R-Drop passes each batch twice and adds to the loss what dropout changes (Liang et al. 2021)."""

import torch
from torch import Tensor

from limelight.model.transformer import Batch, Transformer


def r_drop_loss(model: Transformer, batch: Batch, smoothing: float, alpha: float) -> tuple[Tensor, Tensor]:
    """Two passes with different dropout should say the same.

        loss = (CE(p1) + CE(p2)) / 2 + alpha / 4 (KL(p1 | p2) + KL(p2 | p1)),  summed over the target pieces

    The original adds both cross-entropies and alpha / 2 of the divergences; halved, the learning rate keeps its meaning.
    Returns the loss with its gradient, and the negative log-likelihood of the first pass.
    """
    target = batch.target_grid.take(batch.target_out)
    filled = batch.target_grid.is_piece(target.device)  # filler repeats the first piece: it must not count
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
