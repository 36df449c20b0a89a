"""The coverage penalty lowers translations that leave source pieces unlooked at (Wu et al. 2016, equation 14)."""

import torch
from torch import Tensor

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Attentive, Specials, Steppable
from limelight.decoding.task import Task
from limelight.errors import ConfigError

LEAST = 1e-6  # attention below this counts as this: a piece that nobody looked at costs much, and not everything


class Coverage:
    """The penalty is cp(X; Y) = beta * sum over source pieces i of log(min(sum over target pieces j of a_ij, 1))

    It is at most 0, so it does not touch the bound at which a search stops. The end of the source is no piece of it.
    """

    def __init__(self, model: Steppable, task: Task, settings: SearchSettings, specials: Specials) -> None:
        if not hasattr(model, "attention"):
            raise ConfigError(
                "coverage_penalty needs a model that tells where it looks, and this one does not; use coverage_penalty=0"
            )
        self.model: Attentive = model  # type: ignore[assignment]
        self.beta = settings.coverage_penalty
        self.counted_B1S = ((task.source != specials.pad) & (task.source != specials.end))[:, None]
        shape = (len(task), settings.beam, task.source.shape[1])
        self.covered_BWS = torch.zeros(shape, device=task.source.device)

    def penalty(self, state: object, parents_BW: Tensor) -> Tensor:
        """Add where the newest step looked, follow the rows to where they go, and give each its penalty (B, W).

        There may be more columns than rows of the beam: the rest end here and are not followed further.
        """
        width = self.covered_BWS.shape[1]
        looked_BWS = self.model.attention(state).view_as(self.covered_BWS)
        rows = parents_BW[..., None].expand(-1, -1, self.covered_BWS.shape[2])
        covered_BWS = (self.covered_BWS + looked_BWS).gather(1, rows)
        self.covered_BWS = covered_BWS[:, :width]
        logs_BWS = covered_BWS.clamp(LEAST, 1.0).log()
        return self.beta * logs_BWS.masked_fill(~self.counted_B1S, 0.0).sum(dim=-1)

    def select(self, sentences: Tensor) -> None:
        self.covered_BWS = self.covered_BWS.index_select(0, sentences)
        self.counted_B1S = self.counted_B1S.index_select(0, sentences)
