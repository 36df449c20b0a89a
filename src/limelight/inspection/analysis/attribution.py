"""Attribution says which pieces a word came from, by one of four methods, over the source and the translation before it.

    occlusion        effect(i) = log p(w) - log p(w, i hidden)                      (Zeiler and Fergus 2014, Li et al. 2016)
    value-zeroing    effect(i) = log p(w) - log p(w, v_i = 0 in every attention)    (Mohebbi et al. 2023)
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
    """Effects of all pieces (P,), in natural log-probability, that of the word, and of integrated gradients what they miss and should be."""

    each: Tensor
    logp: float
    missed: float | None = None
    whole: float = 0.0


def find_effects(passes: VariedPass, method: Method) -> Effects:
    if method == "integrated":
        return _integrate(passes)
    if method == "gradient":
        gradient_BP, total_B = passes.gradients([1.0])
        return Effects(gradient_BP[0].cpu(), float(total_B))
    each_P = torch.zeros(passes.size, dtype=torch.float64)
    logp = float(passes.own().sum())
    if passes.pieces:
        gone = passes.without([[piece] for piece in passes.pieces], zero_values=method == "value-zeroing")
        each_P[passes.pieces] = logp - gone.sum(dim=1).cpu()
    return Effects(each_P, logp)


def subtract(one: Effects, other: Effects) -> Effects:
    missed = None if one.missed is None or other.missed is None else one.missed - other.missed
    return Effects(one.each - other.each, one.logp - other.logp, missed, one.whole - other.whole)


def _integrate(passes: VariedPass) -> Effects:
    """By Gauss and Legendre's points, twice as many until the effects add up to log p(w) - log p(w, all blank)."""
    blank, own = passes.gradients([0.0, 1.0])[1].tolist()
    points = FEWEST
    while True:
        places, weights = np.polynomial.legendre.leggauss(points)
        each_P = torch.from_numpy(weights / 2) @ passes.gradients(((places + 1) / 2).tolist())[0].cpu()
        missed = float(each_P.sum()) - (own - blank)
        if abs(missed) <= COMPLETE * abs(own - blank) or points >= MOST:
            return Effects(each_P, own, missed, own - blank)
        points *= 2
