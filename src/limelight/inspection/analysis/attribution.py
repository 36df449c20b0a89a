"""Attribution says which pieces a word came from, by one of four methods, and which words of both sides nothing came from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.inspection.causes import Method, Unmatched
from limelight.inspection.trace import SourceToken, TargetToken

COMPLETE = 0.01  # of the sum: with less, integrated gradients take more points
OMITTED, ADDED = -1.8, -7.5  # natural log-probability; measured (decision 0044)
POINTS, MOST = 8, 512  # on a part of the way, and on all of it


@dataclass(frozen=True)
class Effects:
    """Effects of all pieces (P,), the log-probability of the word, and of integrated gradients what they miss of the `whole`."""

    each: Tensor
    logp: float
    missed: float | None = None
    whole: float = 0.0

    def minus(self, other: "Effects") -> "Effects":
        """What is before both words; the pieces of a longer one have no effect on themselves."""
        missed = None if self.missed is None or other.missed is None else self.missed - other.missed
        both = min(len(self.each), len(other.each))
        return Effects(self.each[:both] - other.each[:both], self.logp - other.logp, missed, self.whole - other.whole)


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
    """By Gauss and Legendre's points on parts of the way. What the effects of a part must add up to is known from its ends, so those that
    miss most are halved until the effects of all add up to log p(w) - log p(w, all blank)."""
    (places, weights), taken, own = np.polynomial.legendre.leggauss(POINTS), 0, 0.0
    parts: dict[tuple[float, float], tuple[Tensor, float, float]] = {}  # by begin and end: effects, what they miss, and should be
    halves = [(0.0, 1.0)]
    while True:
        lights = [begin + (end - begin) * (place + 1) / 2 for begin, end in halves for place in (-1.0, *places.tolist(), 1.0)]
        gradient_NP, logp_N = (found.cpu().view(len(halves), POINTS + 2, -1) for found in passes.gradients(lights))
        for (begin, end), gradient_BP, logp_B in zip(halves, gradient_NP, logp_N, strict=True):
            each_P, rise = torch.from_numpy(weights / 2 * (end - begin)) @ gradient_BP[1:-1], float(logp_B[-1] - logp_B[0])
            parts[begin, end] = each_P, float(each_P.sum()) - rise, rise
            own = float(logp_B[-1]) if end == 1 else own
        taken, missed, whole = taken + len(lights), sum(part[1] for part in parts.values()), sum(part[2] for part in parts.values())
        room = (MOST - taken) // (2 * (POINTS + 2))  # parts that can be halved yet
        if not abs(missed) > COMPLETE * abs(whole) or not room:
            return Effects(torch.stack([part[0] for part in parts.values()]).sum(dim=0), own, missed, whole)
        missing = sorted((place for place, part in parts.items() if abs(part[1]) * len(parts) > COMPLETE * abs(whole)),
                         key=lambda place: -abs(parts[place][1]))  # fmt: skip
        worst = missing[:room]
        halves = [half for begin, end in worst for half in ((begin, (begin + end) / 2), ((begin + end) / 2, end))]
        parts = {place: part for place, part in parts.items() if place not in worst}


def find_unmatched(passes: VariedPass, source: Sequence[SourceToken], target: Sequence[TargetToken], given: int) -> list[Unmatched]:
    """`passes` wants every piece of the translation; its first `given` were never a choice."""
    asked = [(word, pieces) for word, pieces in words_of(source) if set(pieces) <= set(passes.seen)]
    every = [piece for _, pieces in asked for piece in pieces]
    own_T, *gone, alone_T = passes.without([(), *(pieces for _, pieces in asked), every]).cpu()[:, given:]
    found = [Unmatched("omission", *word, float((own_T - gone_T).sum())) for word, gone_T in zip(asked, gone, strict=True)]
    found = [each for each in found if each.effect < OMITTED]
    for word, pieces in words_of(target, given):
        rows = [piece - given for piece in pieces]
        effect = float(own_T[rows].min() + (own_T - alone_T)[rows].sum())
        found += [Unmatched("addition", word, pieces, effect)] * (effect < ADDED)
    return found


def words_of(tokens: Sequence[SourceToken | TargetToken], first: int = 0) -> list[tuple[str, tuple[int, ...]]]:
    """Words with their pieces, without marks and punctuation."""
    pieces: dict[int, list[int]] = {}
    for at, token in enumerate(tokens):
        if token.word is not None and at >= first:
            pieces.setdefault(token.word, []).append(at)
    words = [(spell(tokens, some), tuple(some)) for some in pieces.values()]
    return [(word, some) for word, some in words if any(sign.isalnum() for sign in word)]


def spell(tokens: Sequence[SourceToken | TargetToken], some: Sequence[int]) -> str:
    return "".join(tokens[at].piece for at in some).strip("\u2581")
