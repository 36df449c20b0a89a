"""A `Record` keeps the branches that a search saw and cut; `Paths` holds those that it took.

    record = Record()
    search(model, requests, settings, record=record)
    record.steps[0].cut.tokens          # (B, C) the best continuations of the first step that did not go on

Without a record a search does none of this.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from limelight.decoding.config import SearchSettings
from limelight.decoding.paths import Grown
from limelight.decoding.select import best, gather
from limelight.decoding.steps import Booleans, Floats, Specials
from limelight.decoding.task import Task

CUT = 8  # continuations of a sentence that are noted at each step although they do not go on

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Branches:
    """Branches are continuations of B sentences, (B, M) each, as `Grown` has them: a sum of -inf means that there is none."""

    sums: Scores
    parents: Numbers
    tokens: Numbers
    log_probs: Scores

    @classmethod
    def of(cls, grown: Grown) -> Self:
        columns = (getattr(grown, field.name) for field in fields(cls))
        return cls(*columns)


@dataclass(frozen=True)
class RecordedStep:
    """`number` (B,) are the sentences as in the request; those whose search was over are not there. A row of the step after it goes
    on from the same row of `taken`; columns beyond the width of the beam are ends."""

    step: int
    number: Numbers
    taken: Branches
    done: npt.NDArray[np.bool_]  # (B, M) which of them have come to their end or to their limit
    cut: Branches


class Record:
    """Give a new one to each search. A search that draws notes nothing."""

    def __init__(self, cut: int = CUT) -> None:
        self.most_cut = cut
        self.steps: list[RecordedStep] = []
        self.settings: SearchSettings | None = None
        self.specials: Specials | None = None

    def begin(self, settings: SearchSettings, specials: Specials) -> None:
        self.settings, self.specials = settings, specials

    def note(
        self,
        task: Task,
        end: int,
        step: int,
        sums_BW: Floats,
        log_probs_BWV: Floats,
        grown: Grown,
        over_B: Booleans,
    ) -> None:
        """`sums` and `log_probs` are from before the step, and after the rules; `over` are sentences that nothing changes any more."""
        here = np.flatnonzero(~over_B)
        if not len(here):
            return
        sums_BW, log_probs_BWV, limit_B = sums_BW[here], log_probs_BWV[here], task.limit[here]
        taken = Grown(*(getattr(grown, field.name)[here] for field in fields(grown)))
        done_BM = (taken.tokens == end) | (limit_B <= step + 1)[:, None]
        cut = Branches.of(not_taken(sums_BW, log_probs_BWV, taken, self.most_cut))
        self.steps.append(RecordedStep(step, task.number[here], Branches.of(taken), done_BM & (taken.sums > -np.inf), cut))

    def adopt(self, other: "Record", numbers: Sequence[int]) -> None:
        """What the search of some of the sentences noted; sentence i of it is sentence numbers[i] of this."""
        places = np.array(numbers, dtype=np.int64)
        self.steps += [replace(each, number=places[each.number]) for each in other.steps]


def not_taken(sums_BW: Floats, log_probs_BWV: Floats, taken: Grown, most: int) -> Grown:
    """The best continuations beside those taken, best first: (B, C), with the sum -inf where there are fewer.

    M are taken, so the best C of the others lie among the M + C best of all.
    """
    size, enough = log_probs_BWV.shape[2], taken.tokens.shape[1] + most
    values_BWk, ids_BWk = best(log_probs_BWV, enough)
    k = ids_BWk.shape[2]
    total_BX = (sums_BW[..., None] + values_BWk).reshape(len(sums_BW), -1)
    total_BX = np.nan_to_num(total_BX, nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
    values, places = best(total_BX, enough)
    parents, tokens = places // k, gather(ids_BWk.reshape(total_BX.shape), places)
    # A row and a piece as one number; what is not alive among the taken was not taken.
    key_BM = np.where(taken.sums > -np.inf, taken.parents * size + taken.tokens, -1)
    known = ((parents * size + tokens)[..., None] == key_BM[:, None]).any(axis=2)
    sums = np.where(known, -np.inf, values)
    order = (-sums).argsort(axis=1, kind="stable")[:, :most]
    log_probs = gather(values_BWk.reshape(total_BX.shape), places)
    return Grown(sums, parents, tokens, log_probs).reorder(order)
