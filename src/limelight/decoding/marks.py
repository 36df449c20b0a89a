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

import numpy as np

from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.paths import Grown
from limelight.decoding.select import gather, take_rows
from limelight.decoding.steps import Booleans, Floats, Integers, Request
from limelight.decoding.task import NOTHING, pad_rows


class Placeholders:
    """Placeholders are the marks of B sentences, at most M each, where they stand in W texts. A phrase with a mark sees to it itself."""

    def __init__(self, requests: Sequence[Request], width: int) -> None:
        self.once_BM = pad_rows([request.once for request in requests], NOTHING)
        self.opening_BM = pad_rows([_openings(request) for request in requests], NOTHING)
        self.before_BM = pad_rows([_predecessors(request) for request in requests], NOTHING)
        self.free_BM = pad_rows([_outside_phrases(request) for request in requests], False).astype(bool)
        sentences, most = self.once_BM.shape
        self.place_BWM: Integers = np.zeros((sentences, width, most), np.int64)  # from 1; 0: not yet
        self.paid_BW: Floats = np.zeros((sentences, width), np.float32)  # the sum of their log-probabilities
        self.length = 0

    def missing(self) -> Booleans:
        """(B, W, M)"""
        missing_BWM: Booleans = (self.place_BWM == 0) & self.free_BM[:, None]
        return missing_BWM

    def fitting(self) -> Booleans:
        """Which of the missing may come next (B, W, M); one at least, if any is missing."""
        missing_BWM, closing_B1M = self.missing(), (self.opening_BM != NOTHING)[:, None]
        before_BWM = np.broadcast_to(self.before_BM.clip(min=0)[:, None], missing_BWM.shape)
        turn_BWM = (self.before_BM == NOTHING)[:, None] | (gather(self.place_BWM, before_BWM) > 0)
        opening_BWM = np.broadcast_to(self.opening_BM.clip(min=0)[:, None], missing_BWM.shape)
        opened_BWM = gather(self.place_BWM, opening_BWM)
        open_BWM = closing_B1M & missing_BWM & (opened_BWM > 0)
        innermost_BW1 = np.where(open_BWM, opened_BWM, 0).max(axis=2, keepdims=True)
        fits_BWM: Booleans = np.where(closing_B1M, open_BWM & (opened_BWM == innermost_BW1), missing_BWM & turn_BWM)
        return fits_BWM

    def scores(self, log_probs_BWV: Floats, which_BWM: Booleans) -> tuple[Integers, Floats]:
        """The marks as ids, and what the model says of these, (B, W, M) each; -inf of the others."""
        ids_BWM = np.broadcast_to(self.once_BM.clip(min=0)[:, None], which_BWM.shape)
        return ids_BWM, np.where(which_BWM, gather(log_probs_BWV, ids_BWM), -np.inf)

    def restrict(self, log_probs_BWV: Floats, end: int, left_B: Integers) -> None:
        """`left`: pieces that may still come, this one and the end included."""
        fits_BWM, missing_BW = self.fitting(), self.missing().sum(axis=2)
        ids_BWM, scored_BWM = self.scores(log_probs_BWV, fits_BWM)
        sentence, row, mark = np.nonzero((self.once_BM != NOTHING)[:, None] & ~fits_BWM)
        log_probs_BWV[sentence, row, self.once_BM[sentence, mark]] = -np.inf
        end_BW = log_probs_BWV[:, :, end].copy()
        log_probs_BWV[:, :, end] = np.where(missing_BW > 0, -np.inf, end_BW)
        ends_BW = (end_BW > -np.inf) & (end_BW >= log_probs_BWV.max(axis=2)) & (scored_BWM > -np.inf).any(axis=2)
        forced_BW = (missing_BW > 0) & (ends_BW | (missing_BW > left_B[:, None] - 2))
        keep_only(log_probs_BWV, forced_BW, ids_BWM, scored_BWM)

    def missing_after(self, ids_BWC: Integers) -> Integers:
        """How many marks each row would still miss if it took each of C pieces (B, W, C)."""
        missing_BWM = self.missing()
        taken_BWC = ((ids_BWC[..., None] == self.once_BM[:, None, None]) & missing_BWM[:, :, None]).any(axis=3)
        after_BWC: Integers = missing_BWM.sum(axis=2)[..., None] - taken_BWC
        return after_BWC

    def foremost_first(self, total_BWC: Floats, ids_BWC: Integers) -> Floats:
        """What a beam sorts its candidates by (B, W * C): the best of those that miss the fewest marks before all others.

        A mark that the model does not want costs more than anything else. Without a place of their own, texts that have
        taken theirs would be crowded out by those that put it off. A beam of one has no place to spare.
        """
        total_BC = total_BWC.reshape(len(total_BWC), -1)
        if total_BWC.shape[1] == 1:
            return total_BC
        missing_BC = self.missing_after(ids_BWC).reshape(total_BC.shape)
        missing_BC = np.where(total_BC == -np.inf, self.once_BM.shape[1] + 1, missing_BC)
        behind_BC = missing_BC > missing_BC.min(axis=1, keepdims=True)
        foremost_B = np.where(behind_BC, -np.inf, total_BC).argmax(axis=1)
        first_BC = total_BC.copy()
        first_BC[np.arange(len(first_BC)), foremost_B] = np.inf
        return np.where(self.free_BM.any(axis=1, keepdims=True), first_BC, total_BC)

    def price(self, tokens_BW: Integers, log_probs_BW: Floats) -> Floats:
        """What a step costs in marks."""
        return np.where((tokens_BW[..., None] == self.once_BM[:, None]).any(axis=2), log_probs_BW, 0.0)

    def add_price(self, grown: Grown) -> Floats:
        """What marks have cost each text after a step, as wide as the step has grown."""
        return gather(self.paid_BW, grown.parents) + self.price(grown.tokens, grown.log_probs)

    def penalty(self, grown: Grown, settings: SearchSettings) -> Floats:
        """What is added to sum / lp so that it becomes (sum - paid) / lp + paid.

        Every translation has to pay for its marks, so it should not matter on how many pieces that falls: else the less the
        model likes a mark, the longer the best translation.
        """
        return self.add_price(grown) * (1 - 1 / length_penalty(self.length + 1, settings))

    def follow(self, tokens_BW: Integers) -> None:
        """Each text has one piece more."""
        self.length += 1
        now_BWM = (tokens_BW[..., None] == self.once_BM[:, None]) & (self.place_BWM == 0)
        self.place_BWM = np.where(now_BWM, self.length, self.place_BWM)

    def move(self, grown: Grown) -> None:
        """Each text goes on from its parent, with one piece more."""
        self.paid_BW = self.add_price(grown)
        self.place_BWM = take_rows(self.place_BWM, grown.parents)
        self.follow(grown.tokens)

    def select(self, sentences: Integers) -> None:
        for name in ("once_BM", "opening_BM", "before_BM", "free_BM", "place_BWM", "paid_BW"):
            setattr(self, name, getattr(self, name)[sentences])


def keep_only(log_probs_BWV: Floats, rows_BW: Booleans, ids_BWN: Integers, scores_BWN: Floats) -> None:
    """In these rows only these pieces, with these scores."""
    log_probs_BWV[rows_BW] = -np.inf
    sentence, row, piece = np.nonzero(rows_BW[..., None] & (scores_BWN != -np.inf))
    log_probs_BWV[sentence, row, ids_BWN[sentence, row, piece]] = scores_BWN[sentence, row, piece]


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
