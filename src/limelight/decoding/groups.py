"""Groups of a diverse beam search avoid the pieces of the groups before them (Vijayakumar et al. 2016).

The penalty decides who goes on; the scores stay those of the model.
"""

import numpy as np

from limelight.decoding.beam import most_probable
from limelight.decoding.paths import Grown
from limelight.decoding.select import best, gather
from limelight.decoding.steps import Booleans, Floats, Integers
from limelight.decoding.task import Task


class Diverse:
    """At each step group g takes its best after log p - strength * (how often earlier groups took the piece at this step)."""

    def __init__(self, groups: int, strength: float) -> None:
        self.groups, self.strength = groups, strength

    def exempt(self) -> Integers | None:
        return None

    def permit(self, forbidden_BWF: Booleans) -> None: ...

    def choose(self, sums_BW: Floats, log_probs_BWV: Floats, free_BG: Integers, task: Task, step: int) -> Grown:
        each = sums_BW.shape[1] // self.groups
        taken_BV = np.zeros_like(log_probs_BWV[:, 0])
        parts = []
        for group in range(self.groups):
            rows = slice(group * each, (group + 1) * each)
            scored_BWV = log_probs_BWV[:, rows]
            values_BWk, ids_BWk = best(scored_BWV - self.strength * taken_BV[:, None], each)
            liked = most_probable(sums_BW[:, rows], values_BWk, ids_BWk, free_BG[:, group, None])
            part = self._as_scored(liked, sums_BW[:, rows], scored_BWV)
            np.add.at(taken_BV, (np.arange(len(taken_BV))[:, None], part.tokens), part.sums > -np.inf)
            parts.append((part.sums, part.parents + group * each, part.tokens, part.log_probs))
        return Grown(*(np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True)))

    def _as_scored(self, liked: Grown, sums_BW: Floats, log_probs_BWV: Floats) -> Grown:
        """The same choice with the model's own scores."""
        log_probs = log_probs_BWV[np.arange(len(sums_BW))[:, None], liked.parents, liked.tokens]
        sums = np.where(liked.sums == -np.inf, -np.inf, gather(sums_BW, liked.parents) + log_probs)
        return Grown(sums, liked.parents, liked.tokens, log_probs)

    def follow(self, grown: Grown) -> None: ...

    def select(self, sentences: Integers) -> None: ...
