"""Translations are drawn with temperature, top-k and top-p, seeded by the sentence and not by its batch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from limelight.chance import draws, key_of
from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.greedy import walk
from limelight.decoding.marks import Placeholders
from limelight.decoding.select import best
from limelight.decoding.steps import Outcome, Request, Specials, Steppable
from limelight.decoding.task import Task


def sample(
    model: Steppable,
    task: Task,
    requests: Sequence[Request],
    settings: SearchSettings,
    specials: Specials,
    marks: Placeholders | None = None,
) -> list[Outcome]:
    """`settings.nbest` translations of each sentence, as drawn: one may come twice, and how often says how probable it is."""
    assert settings.sampling is not None
    draw = Draw(requests, settings.nbest, task.longest, settings.sampling, task.source.device)
    return walk(model, task, settings, specials, settings.nbest, draw, marks)


class Draw:
    """Draw takes one piece for each row, by inverting the cumulative distribution at a number between 0 and 1.

    The numbers are a function of the seed, the sentence's key, the draw and the step. So the first 3 of 5 draws are the same as 3
    draws, and a sentence draws the same alone and among others.
    """

    def __init__(
        self, requests: Sequence[Request], drawn: int, steps: int, sampling: Sampling, device: torch.device
    ) -> None:
        self.sampling = sampling
        # In float64: over a large vocabulary float32 sums reach 1 too early or never. Apple's devices have no float64.
        self.exact = torch.float32 if device.type == "mps" else torch.float64
        numbers_NWT = torch.stack([_numbers(sampling.seed, r.key, drawn, steps) for r in requests])
        self.numbers_NWT = numbers_NWT.to(self.exact).to(device)

    def __call__(self, log_probs_BWV: Tensor, number_B: Tensor, step: int) -> Tensor:
        values_BWK, ids_BWK = self._candidates(log_probs_BWV)
        weights_BWK = torch.softmax((values_BWK / self.sampling.temperature).to(self.exact), dim=-1)
        reached_BWK = weights_BWK.cumsum(dim=-1)
        if self.sampling.top_p is not None:
            before_BWK = reached_BWK - weights_BWK
            weights_BWK = weights_BWK.masked_fill(before_BWK >= self.sampling.top_p, 0.0)
            reached_BWK = weights_BWK.cumsum(dim=-1)
        number_BW1 = self.numbers_NWT[number_B, :, step][..., None] * reached_BWK[..., -1:]
        place_BW1 = torch.searchsorted(reached_BWK, number_BW1, right=True).clamp(max=ids_BWK.shape[-1] - 1)
        drawn_BW1 = ids_BWK.gather(-1, place_BW1)
        # Nothing can be drawn from what is not a distribution. The highest is then the culprit, and is noticed by whoever takes it.
        return torch.where(number_BW1.isfinite(), drawn_BW1, best(log_probs_BWV, 1)[1]).squeeze(-1)

    def _candidates(self, log_probs_BWV: Tensor) -> tuple[Tensor, Tensor]:
        """In the order of their probability where top-k or top-p asks for it."""
        size = log_probs_BWV.shape[-1]
        if self.sampling.top_k is not None and self.sampling.top_k < size:
            return best(log_probs_BWV, self.sampling.top_k)
        if self.sampling.top_p is not None:
            return log_probs_BWV.sort(dim=-1, descending=True, stable=True)
        return log_probs_BWV, torch.arange(size, device=log_probs_BWV.device).expand_as(log_probs_BWV)


def _numbers(seed: int, key: int, draws_wanted: int, steps: int) -> Tensor:
    """(draws, steps) between 0 and 1. A number belongs to its draw and step, so more of either changes none of the others."""
    rows = [draws(key_of(seed, key, draw), np.arange(steps)) for draw in range(draws_wanted)]
    # 24 bits, which float32 holds: rounded up to 1, a number would point behind the last candidate.
    return torch.from_numpy((np.stack(rows) >> np.uint64(40)) / 2.0**24)
