"""The coverage penalty lowers translations that leave source pieces unlooked at (Wu et al. 2016, equation 14)."""

import numpy as np

from limelight.decoding.config import SearchSettings
from limelight.decoding.select import take_rows
from limelight.decoding.steps import Attentive, Floats, Integers, Specials, Steppable
from limelight.decoding.task import Task
from limelight.errors import ConfigError

LEAST = 1e-6  # attention below this counts as this: a piece that nobody looked at costs much, and not everything


class Coverage:
    """The penalty is cp(X; Y) = beta * sum over source pieces i of log(min(sum over target pieces j of a_ij, 1))

    It is at most 0, so it does not touch the bound at which a search stops. The end of the source is no piece of it.
    """

    def __init__(self, model: Steppable, task: Task, settings: SearchSettings, specials: Specials) -> None:
        if not hasattr(model, "attention"):
            raise ConfigError("coverage_penalty needs a model that tells where it looks, and this one does not; use coverage_penalty=0")
        self.model: Attentive = model  # type: ignore[assignment]
        self.beta = settings.coverage_penalty
        self.counted_B1S = ((task.source != specials.pad) & (task.source != specials.end))[:, None]
        shape = (len(task), settings.beam, task.source.shape[1])
        self.covered_BWS: Floats = np.zeros(shape, np.float32)

    def penalty(self, state: object, parents_BW: Integers) -> Floats:
        """Add where the newest step looked, follow the rows to where they go, and give each its penalty (B, W).

        There may be more columns than rows of the beam: the rest end here and are not followed further.
        """
        width = self.covered_BWS.shape[1]
        looked_BWS = self.model.attention(state).reshape(self.covered_BWS.shape)
        covered_BWS = take_rows(self.covered_BWS + looked_BWS, parents_BW)
        self.covered_BWS = covered_BWS[:, :width]
        logs_BWS = np.log(covered_BWS.clip(LEAST, 1.0))
        cost_BW: Floats = self.beta * np.where(self.counted_B1S, logs_BWS, 0.0).sum(axis=-1)
        return cost_BW

    def select(self, sentences: Integers) -> None:
        self.covered_BWS, self.counted_B1S = self.covered_BWS[sentences], self.counted_B1S[sentences]
