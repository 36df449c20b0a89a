"""Attribution says which pieces a word came from, by one of four methods, over the source and the translation before it.

    occlusion        effect(i) = log p(w) - log p(w, i hidden)                      (Zeiler and Fergus 2014, Li et al. 2016)
    value-zeroing    effect(i) = log p(w) - log p(w, v_i = 0 in every attention)    (after Mohebbi et al. 2023)
    gradient         effect(i) = (e_i - blank) . d log p(w) / d e_i                 (Simonyan et al. 2014)
    integrated       the same, its gradient averaged on the way from blanks to e    (Sundararajan et al. 2017)

All four are linear in log p(w), so "why this and not that" (Yin and Neubig 2022) is the difference of two attributions.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.inspection.causes import Method

COMPLETE = 0.01  # of the sum: with less, integrated gradients take more points
FEWEST, MOST = 16, 128  # points on the way


@dataclass(frozen=True)
class Effects:
    """Effects of all pieces (P,), the log-probability of the word, and of integrated gradients what they miss of the `whole`."""

    each: Tensor
    logp: float
    missed: float | None = None
    whole: float = 0.0

    def minus(self, other: "Effects") -> "Effects":
        missed = None if self.missed is None or other.missed is None else self.missed - other.missed
        return Effects(self.each - other.each, self.logp - other.logp, missed, self.whole - other.whole)


def find_effects(passes: VariedPass, method: Method) -> Effects:
    if method == "integrated":
        return _integrate(passes)
    if method == "gradient":
        gradient_BP, logp_B = passes.gradients([1.0])
        return Effects(gradient_BP[0].cpu(), float(logp_B))
    own, *gone = passes.without([(), *([piece] for piece in passes.pieces)], method == "value-zeroing").sum(dim=1).tolist()
    each_P = torch.zeros(passes.size, dtype=torch.float64)
    each_P[passes.pieces] = own - torch.tensor(gone, dtype=torch.float64)
    return Effects(each_P, own)


def _integrate(passes: VariedPass) -> Effects:
    """By Gauss and Legendre's points, twice as many until the effects add up to log p(w) - log p(w, all blank)."""
    (blank, own), points = passes.gradients([0.0, 1.0])[1].tolist(), FEWEST
    while True:
        places, weights = np.polynomial.legendre.leggauss(points)
        each_P = torch.from_numpy(weights / 2) @ passes.gradients(((places + 1) / 2).tolist())[0].cpu()
        missed = float(each_P.sum()) - (own - blank)
        if abs(missed) <= COMPLETE * abs(own - blank) or points >= MOST:
            return Effects(each_P, own, missed, own - blank)
        points *= 2
