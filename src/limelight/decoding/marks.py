"""Marks are pieces that stand for something else, such as a placeholder or a tag, and so occur exactly once.

    once = (20, 21, 22), nested = ((20, 21),)        x 20 y 22 z 21        yes
                                                     x 21 y 20 22          no: closed before it was opened
    nested = ((20, 21), (22, 23))                    20 22 21 23           no: the innermost is closed first
    ordered = ((22, 20),)                            x 22 y 21 20          yes, and 20 before 22 is not

A mark that was taken may not come again, one that closes only when what it closes is the innermost that is open, one of an ordered group
only when the one before it has come, and there is no end while a mark is missing. A text that would rather end than go on takes a
missing mark instead: made to go on otherwise, a model rambles up to the limit. There, when the room left is what the marks need, nothing
else may come. One that may come is always there, so this holds for every model that thinks no mark impossible.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.paths import Grown
from limelight.decoding.steps import Request
from limelight.decoding.task import NOTHING, pad_rows


class Placeholders:
    """Placeholders are the marks of B sentences, at most M each, where they stand in W texts. A phrase with a mark sees to it itself."""

    def __init__(self, requests: Sequence[Request], width: int, device: torch.device) -> None:
        self.once_BM = pad_rows([request.once for request in requests], NOTHING).to(device)
        self.opening_BM = pad_rows([_openings(request) for request in requests], NOTHING).to(device)
        self.before_BM = pad_rows([_predecessors(request) for request in requests], NOTHING).to(device)
        self.free_BM = pad_rows([_outside_phrases(request) for request in requests], False).bool().to(device)
        sentences, most = self.once_BM.shape
        self.place_BWM = torch.zeros((sentences, width, most), dtype=torch.long, device=device)  # from 1; 0: not yet
        self.paid_BW = torch.zeros((sentences, width), device=device)  # the sum of their log-probabilities
        self.length = 0

    def missing(self) -> Tensor:
        """(B, W, M)"""
        return (self.place_BWM == 0) & self.free_BM[:, None]

    def fitting(self) -> Tensor:
        """Which of the missing may come next (B, W, M); one at least, if any is missing."""
        missing_BWM, closing_B1M = self.missing(), (self.opening_BM != NOTHING)[:, None]
        before_BWM = self.before_BM.clamp(min=0)[:, None].expand_as(missing_BWM)
        turn_BWM = (self.before_BM == NOTHING)[:, None] | (self.place_BWM.gather(2, before_BWM) > 0)
        opening_BWM = self.opening_BM.clamp(min=0)[:, None].expand_as(missing_BWM)
        opened_BWM = self.place_BWM.gather(2, opening_BWM)
        open_BWM = closing_B1M & missing_BWM & (opened_BWM > 0)
        innermost_BW1 = opened_BWM.masked_fill(~open_BWM, 0).amax(dim=2, keepdim=True)
        return torch.where(closing_B1M, open_BWM & (opened_BWM == innermost_BW1), missing_BWM & turn_BWM)

    def scores(self, log_probs_BWV: Tensor, which_BWM: Tensor) -> tuple[Tensor, Tensor]:
        """The marks as ids, and what the model says of these, (B, W, M) each; -inf of the others."""
        ids_BWM = self.once_BM.clamp(min=0)[:, None].expand_as(which_BWM)
        return ids_BWM, log_probs_BWV.gather(2, ids_BWM).masked_fill(~which_BWM, -torch.inf)

    def restrict(self, log_probs_BWV: Tensor, end: int, left_B: Tensor) -> None:
        """`left`: pieces that may still come, this one and the end included."""
        fits_BWM, missing_BW = self.fitting(), self.missing().sum(dim=2)
        ids_BWM, scored_BWM = self.scores(log_probs_BWV, fits_BWM)
        forbidden_BWM = (self.once_BM != NOTHING)[:, None] & ~fits_BWM
        # Added, since where a sentence has fewer marks the ids say 0, which must stay as it is.
        verdict_BWM = torch.zeros_like(scored_BWM).masked_fill(forbidden_BWM, -torch.inf)
        log_probs_BWV.scatter_add_(2, ids_BWM, verdict_BWM)
        end_BW = log_probs_BWV[:, :, end].clone()
        log_probs_BWV[:, :, end].masked_fill_(missing_BW > 0, -torch.inf)
        ends_BW = (end_BW > -torch.inf) & (end_BW >= log_probs_BWV.amax(dim=2)) & (scored_BWM > -torch.inf).any(dim=2)
        forced_BW = (missing_BW > 0) & (ends_BW | (missing_BW > left_B[:, None] - 2))
        keep_only(log_probs_BWV, forced_BW, ids_BWM, scored_BWM)

    def missing_after(self, ids_BWC: Tensor) -> Tensor:
        """How many marks each row would still miss if it took each of C pieces (B, W, C)."""
        missing_BWM = self.missing()
        taken_BWC = ((ids_BWC[..., None] == self.once_BM[:, None, None]) & missing_BWM[:, :, None]).any(dim=3)
        return missing_BWM.sum(dim=2)[..., None] - taken_BWC.long()

    def foremost_first(self, total_BWC: Tensor, ids_BWC: Tensor) -> Tensor:
        """What a beam sorts its candidates by (B, W * C): the best of those that miss the fewest marks before all others.

        A mark that the model does not want costs more than anything else. Without a place of their own, texts that have
        taken theirs would be crowded out by those that put it off. A beam of one has no place to spare.
        """
        total_BC = total_BWC.flatten(1)
        if total_BWC.shape[1] == 1:
            return total_BC
        missing_BC = self.missing_after(ids_BWC).flatten(1)
        behind_BC = missing_BC.masked_fill(total_BC == -torch.inf, self.once_BM.shape[1] + 1)
        behind_BC = behind_BC > behind_BC.amin(dim=1, keepdim=True)
        foremost_B1 = total_BC.masked_fill(behind_BC, -torch.inf).argmax(dim=1, keepdim=True)
        first_BC = total_BC.scatter(1, foremost_B1, torch.inf)
        return torch.where(self.free_BM.any(dim=1, keepdim=True), first_BC, total_BC)

    def price(self, tokens_BW: Tensor, log_probs_BW: Tensor) -> Tensor:
        """What a step costs in marks."""
        return log_probs_BW.masked_fill((tokens_BW[..., None] != self.once_BM[:, None]).all(dim=2), 0.0)

    def add_price(self, grown: Grown) -> Tensor:
        """What marks have cost each text after a step, as wide as the step has grown."""
        return self.paid_BW.gather(1, grown.parents) + self.price(grown.tokens, grown.log_probs)

    def penalty(self, grown: Grown, settings: SearchSettings) -> Tensor:
        """What is added to sum / lp so that it becomes (sum - paid) / lp + paid.

        Every translation has to pay for its marks, so it should not matter on how many pieces that falls: else the less the
        model likes a mark, the longer the best translation.
        """
        return self.add_price(grown) * (1 - 1 / length_penalty(self.length + 1, settings))

    def follow(self, tokens_BW: Tensor) -> None:
        """Each text has one piece more."""
        self.length += 1
        now_BWM = (tokens_BW[..., None] == self.once_BM[:, None]) & (self.place_BWM == 0)
        self.place_BWM = self.place_BWM.masked_fill(now_BWM, self.length)

    def move(self, grown: Grown) -> None:
        """Each text goes on from its parent, with one piece more."""
        self.paid_BW = self.add_price(grown)
        self.place_BWM = self.place_BWM.gather(1, grown.parents[..., None].expand_as(self.place_BWM))
        self.follow(grown.tokens)

    def select(self, sentences: Tensor) -> None:
        for name in ("once_BM", "opening_BM", "before_BM", "free_BM", "place_BWM", "paid_BW"):
            setattr(self, name, getattr(self, name).index_select(0, sentences))


def keep_only(log_probs_BWV: Tensor, rows_BW: Tensor, ids_BWN: Tensor, scores_BWN: Tensor) -> None:
    """In these rows only these pieces, with these scores. In the others scores must be those that are there, or -inf."""
    log_probs_BWV.masked_fill_(rows_BW[..., None], -torch.inf)
    log_probs_BWV.scatter_reduce_(2, ids_BWN, scores_BWN, reduce="amax")


def _openings(request: Request) -> list[int]:
    """For each mark the place of the one that it closes: once = (20, 21, 22), nested = ((22, 20),) -> [2, NOTHING, NOTHING]"""
    opening = {closing: opening for opening, closing in request.nested}
    return [list(request.once).index(opening[mark]) if mark in opening else NOTHING for mark in request.once]


def _predecessors(request: Request) -> list[int]:
    """For each mark the place of the one that comes before it in its group: once = (20, 21, 22), ordered = ((22, 20),) -> [2, NOTHING,
    NOTHING]. One that a phrase holds comes when the phrase does, and nothing waits for it."""
    free = {mark for mark, is_free in zip(request.once, _outside_phrases(request), strict=True) if is_free}
    groups = [[mark for mark in group if mark in free] for group in request.ordered]
    before = {mark: earlier for group in groups for earlier, mark in pairwise(group)}
    return [list(request.once).index(before[mark]) if mark in before else NOTHING for mark in request.once]


def _outside_phrases(request: Request) -> list[bool]:
    inside = {piece for phrase in request.phrases for piece in phrase}
    return [mark not in inside for mark in request.once]
