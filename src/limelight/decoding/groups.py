"""Groups of a diverse beam search avoid the pieces of the groups before them (Vijayakumar et al. 2016).

The penalty decides who goes on; the scores stay those of the model.
"""

import torch
from torch import Tensor

from limelight.decoding.beam import most_probable
from limelight.decoding.paths import Grown
from limelight.decoding.select import best
from limelight.decoding.task import Task


class Diverse:
    """At each step group g takes its best after log p - strength * (how often earlier groups took the piece at this step)."""

    def __init__(self, groups: int, strength: float) -> None:
        self.groups, self.strength = groups, strength

    def exempt(self) -> Tensor | None:
        return None

    def permit(self, forbidden_BWF: Tensor) -> None: ...

    def choose(self, sums_BW: Tensor, log_probs_BWV: Tensor, free_BG: Tensor, task: Task, step: int) -> Grown:
        each = sums_BW.shape[1] // self.groups
        taken_BV = torch.zeros_like(log_probs_BWV[:, 0])
        parts = []
        for group in range(self.groups):
            rows = slice(group * each, (group + 1) * each)
            scored_BWV = log_probs_BWV[:, rows]
            values_BWk, ids_BWk = best(scored_BWV - self.strength * taken_BV[:, None], each)
            liked = most_probable(sums_BW[:, rows], values_BWk, ids_BWk, free_BG[:, group, None])
            part = self._as_scored(liked, sums_BW[:, rows], scored_BWV)
            taken_BV.scatter_add_(1, part.tokens, (part.sums > -torch.inf).to(taken_BV.dtype))
            parts.append((part.sums, part.parents + group * each, part.tokens, part.log_probs))
        return Grown(*(torch.cat(columns, dim=1) for columns in zip(*parts, strict=True)))

    def _as_scored(self, liked: Grown, sums_BW: Tensor, log_probs_BWV: Tensor) -> Grown:
        """The same choice with the model's own scores."""
        own_BWV = log_probs_BWV.gather(1, liked.parents[..., None].expand(-1, -1, log_probs_BWV.shape[2]))
        log_probs = own_BWV.gather(2, liked.tokens[..., None]).squeeze(-1)
        sums = sums_BW.gather(1, liked.parents) + log_probs
        return Grown(sums.masked_fill(liked.sums == -torch.inf, -torch.inf), liked.parents, liked.tokens, log_probs)

    def follow(self, grown: Grown) -> None: ...

    def select(self, sentences: Tensor) -> None: ...
