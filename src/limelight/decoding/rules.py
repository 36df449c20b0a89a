"""Rules say what may come next: each sets the log-probability of what may not to -inf, for all rows at once.

What must occur wins over what must not: a prefix is put back after all rules, as the model scored it.
"""

import numpy as np

from limelight.decoding.config import SearchSettings
from limelight.decoding.marks import Placeholders
from limelight.decoding.select import gather
from limelight.decoding.steps import Booleans, Floats, Integers, Specials
from limelight.decoding.task import NOTHING, Task
from limelight.errors import DataError


class Rules:
    """Rules are applied to the log-probabilities of a step, in place."""

    def __init__(self, settings: SearchSettings, specials: Specials, marks: Placeholders | None = None) -> None:
        self.end, self.ngram, self.marks = specials.end, settings.no_repeat_ngram, marks
        unknown = () if settings.allow_unknown or specials.unknown is None else (specials.unknown,)
        never = {specials.pad, specials.start, *unknown, *settings.suppress} - {specials.end}
        self.never = np.array(sorted(never))
        self.highest = max(never)

    @property
    def need_history(self) -> bool:
        return self.ngram is not None

    def apply(self, log_probs_BWV: Floats, task: Task, step: int, history_BWT: Integers | None) -> None:
        """`history` holds the pieces of each row so far; only some rules need it."""
        if step == 0:
            self._check(log_probs_BWV.shape[2], task)
        asked = task.prefix[:, step] if step < task.prefix.shape[1] else None
        scored = None if asked is None else prefix_scores(log_probs_BWV, asked)
        forbid(log_probs_BWV, self.never, task.allowed)
        if step < task.longest_least:
            hold_end(log_probs_BWV, self.end, task.least > step)
        if self.ngram is not None and history_BWT is not None:
            forbid_repeats(log_probs_BWV, history_BWT, self.ngram)
        if self.marks is not None:
            self.marks.restrict(log_probs_BWV, self.end, task.limit - step)
        if asked is not None and scored is not None:
            given = (task.given > step)[:, None, None]
            force_prefix(log_probs_BWV, asked, np.where(given, 0.0, scored))

    def _check(self, vocab_size: int, task: Task) -> None:
        highest = max(task.highest_id, self.highest)
        if highest >= vocab_size:
            raise DataError(f"piece {highest} is asked for or suppressed, but the model has pieces 0 to {vocab_size - 1}")


def forbid(log_probs_BWV: Floats, never_N: Integers, allowed_BA: Integers | None) -> None:
    """None of these pieces, but those that a sentence is allowed."""
    if allowed_BA is None:
        log_probs_BWV[:, :, never_N] = -np.inf
        return
    allowed_BN = (allowed_BA[..., None] == never_N).any(axis=1)
    log_probs_BWV[:, :, never_N] = np.where(allowed_BN[:, None], log_probs_BWV[:, :, never_N], -np.inf)


def hold_end(log_probs_BWV: Floats, end: int, too_early_B: Booleans) -> None:
    """No end before the fewest pieces."""
    log_probs_BWV[too_early_B, :, end] = -np.inf


def prefix_scores(log_probs_BWV: Floats, asked_B: Integers) -> Floats:
    """What the model says of the piece that is asked for, (B, W, 1); anything where nothing is asked."""
    asked_BW1 = np.broadcast_to(asked_B.clip(min=0)[:, None, None], (*log_probs_BWV.shape[:2], 1))
    return gather(log_probs_BWV, asked_BW1)


def force_prefix(log_probs_BWV: Floats, asked_B: Integers, scored_BW1: Floats) -> None:
    """Only the piece that is asked for, where one is."""
    here = np.flatnonzero(asked_B != NOTHING)
    log_probs_BWV[here] = -np.inf
    log_probs_BWV[here, :, asked_B[here]] = scored_BW1[here, :, 0]


def forbid_repeats(log_probs_BWV: Floats, history_BWT: Integers, n: int) -> None:
    """No sequence of n pieces occurs twice: a piece is forbidden if it followed the newest n - 1 pieces before.

    n = 2, history a b a   ->   not b
    """
    if history_BWT.shape[2] < n:
        return
    windows_BWMN = np.lib.stride_tricks.sliding_window_view(history_BWT, n, axis=2)
    newest_BWN = history_BWT[:, :, history_BWT.shape[2] - n + 1 :]
    sentence, row, window = np.nonzero((windows_BWMN[..., :-1] == newest_BWN[:, :, None]).all(axis=-1))
    log_probs_BWV[sentence, row, windows_BWMN[sentence, row, window, -1]] = -np.inf
