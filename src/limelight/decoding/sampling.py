"""Translations are drawn with temperature, top-k and top-p, seeded by the sentence and not by its batch."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from limelight.chance import draws, key_of
from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.greedy import walk
from limelight.decoding.marks import Placeholders
from limelight.decoding.select import best, gather
from limelight.decoding.steps import Floats, Integers, Outcome, Request, Specials, Steppable
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
    draw = Draw(requests, settings.nbest, task.longest, settings.sampling)
    return walk(model, task, settings, specials, settings.nbest, draw, marks)


class Draw:
    """Draw takes one piece for each row, by inverting the cumulative distribution at a number between 0 and 1.

    The numbers are a function of the seed, the sentence's key, the draw and the step. So the first 3 of 5 draws are the same as 3
    draws, and a sentence draws the same alone and among others.
    """

    def __init__(self, requests: Sequence[Request], drawn: int, steps: int, sampling: Sampling) -> None:
        self.sampling = sampling
        self.numbers_NWT = np.stack([_numbers(sampling.seed, r.key, drawn, steps) for r in requests])

    def __call__(self, log_probs_BWV: Floats, number_B: Integers, step: int) -> Integers:
        values_BWK, ids_BWK = self._candidates(log_probs_BWV)
        # In float64: over a large vocabulary float32 sums reach 1 too early or never.
        scaled_BWK = (values_BWK / self.sampling.temperature).astype(np.float64)
        weights_BWK = np.exp(scaled_BWK - scaled_BWK.max(axis=-1, keepdims=True))
        weights_BWK /= weights_BWK.sum(axis=-1, keepdims=True)
        reached_BWK = weights_BWK.cumsum(axis=-1)
        if self.sampling.top_p is not None:
            before_BWK = reached_BWK - weights_BWK
            weights_BWK = np.where(before_BWK >= self.sampling.top_p, 0.0, weights_BWK)
            reached_BWK = weights_BWK.cumsum(axis=-1)
        number_BW1 = self.numbers_NWT[number_B, :, step][..., None] * reached_BWK[..., -1:]
        place_BW1 = (reached_BWK <= number_BW1).sum(axis=-1, keepdims=True).clip(max=ids_BWK.shape[-1] - 1)
        # Nothing can be drawn from what is not a distribution. The highest is then the culprit, and is noticed by whoever takes it.
        drawn_BW1 = np.where(np.isfinite(number_BW1), gather(ids_BWK, place_BW1), best(log_probs_BWV, 1)[1])
        return drawn_BW1[..., 0]

    def _candidates(self, log_probs_BWV: Floats) -> tuple[Floats, Integers]:
        """In the order of their probability where top-k or top-p asks for it."""
        size = log_probs_BWV.shape[-1]
        if self.sampling.top_k is not None and self.sampling.top_k < size:
            return best(log_probs_BWV, self.sampling.top_k)
        if self.sampling.top_p is not None:
            order_BWV = np.where(np.isnan(log_probs_BWV), -np.inf, -log_probs_BWV).argsort(axis=-1, kind="stable")
            return gather(log_probs_BWV, order_BWV), order_BWV
        return log_probs_BWV, np.broadcast_to(np.arange(size), log_probs_BWV.shape)


def _numbers(seed: int, key: int, draws_wanted: int, steps: int) -> npt.NDArray[np.float64]:
    """(draws, steps) between 0 and 1. A number belongs to its draw and step, so more of either changes none of the others."""
    rows = [draws(key_of(seed, key, draw), np.arange(steps)) for draw in range(draws_wanted)]
    numbers: npt.NDArray[np.float64] = (np.stack(rows) >> np.uint64(40)) / 2.0**24
    return numbers
