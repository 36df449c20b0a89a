"""Rules say what may come next: each sets the log-probability of what may not to -inf, for all rows at once.

What must occur wins over what must not: a prefix is put back after all rules, as the model scored it.
"""

import torch
from torch import Tensor

from limelight.decoding.config import SearchSettings
from limelight.decoding.marks import Placeholders
from limelight.decoding.steps import Specials
from limelight.decoding.task import NOTHING, Task
from limelight.errors import DataError


class Rules:
    """Rules are applied to the log-probabilities of a step, in place."""

    def __init__(
        self, settings: SearchSettings, specials: Specials, device: torch.device, marks: Placeholders | None = None
    ) -> None:
        self.end, self.ngram, self.marks = specials.end, settings.no_repeat_ngram, marks
        unknown = () if settings.allow_unknown or specials.unknown is None else (specials.unknown,)
        never = {specials.pad, specials.start, *unknown, *settings.suppress} - {specials.end}
        self.never = torch.tensor(sorted(never), device=device)
        self.highest = max(never)

    @property
    def need_history(self) -> bool:
        return self.ngram is not None

    def apply(self, log_probs_BWV: Tensor, task: Task, step: int, history_BWT: Tensor | None) -> None:
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
            force_prefix(log_probs_BWV, asked, scored.masked_fill(given, 0.0))

    def _check(self, vocab_size: int, task: Task) -> None:
        highest = max(task.highest_id, self.highest)
        if highest >= vocab_size:
            raise DataError(
                f"piece {highest} is asked for or suppressed, but the model has pieces 0 to {vocab_size - 1}"
            )


def forbid(log_probs_BWV: Tensor, never_N: Tensor, allowed_BA: Tensor | None) -> None:
    """None of these pieces, but those that a sentence is allowed."""
    if allowed_BA is None:
        log_probs_BWV.index_fill_(2, never_N, -torch.inf)
        return
    allowed_BN = (allowed_BA[..., None] == never_N).any(dim=1)
    ruled_BWN = log_probs_BWV.index_select(2, never_N).masked_fill_(~allowed_BN[:, None], -torch.inf)
    log_probs_BWV.index_copy_(2, never_N, ruled_BWN)


def hold_end(log_probs_BWV: Tensor, end: int, too_early_B: Tensor) -> None:
    """No end before the fewest pieces."""
    log_probs_BWV[:, :, end].masked_fill_(too_early_B[:, None], -torch.inf)


def prefix_scores(log_probs_BWV: Tensor, asked_B: Tensor) -> Tensor:
    """What the model says of the piece that is asked for, (B, W, 1); anything where nothing is asked."""
    asked_BW1 = asked_B.clamp(min=0)[:, None, None].expand(-1, log_probs_BWV.shape[1], 1)
    return log_probs_BWV.gather(2, asked_BW1)


def force_prefix(log_probs_BWV: Tensor, asked_B: Tensor, scored_BW1: Tensor) -> None:
    """Only the piece that is asked for, where one is."""
    given_B11 = (asked_B != NOTHING)[:, None, None]
    asked_BW1 = asked_B.clamp(min=0)[:, None, None].expand_as(scored_BW1)
    kept_BW1 = torch.where(given_B11, scored_BW1, log_probs_BWV.gather(2, asked_BW1))
    log_probs_BWV.masked_fill_(given_B11, -torch.inf)
    log_probs_BWV.scatter_(2, asked_BW1, kept_BW1)


def forbid_repeats(log_probs_BWV: Tensor, history_BWT: Tensor, n: int) -> None:
    """No sequence of n pieces occurs twice: a piece is forbidden if it followed the newest n - 1 pieces before.

    n = 2, history a b a   ->   not b
    """
    if history_BWT.shape[2] < n:
        return
    windows_BWMN = history_BWT.unfold(2, n, 1)
    newest_BWN = history_BWT[:, :, history_BWT.shape[2] - n + 1 :]
    seen_BWM = (windows_BWMN[..., :-1] == newest_BWN[:, :, None]).all(dim=-1)
    followed_BWM = windows_BWMN[..., -1]
    # Added, since several windows may name the same piece: -inf stays -inf whatever is added.
    verdict_BWM = torch.zeros_like(followed_BWM, dtype=log_probs_BWV.dtype).masked_fill(seen_BWM, -torch.inf)
    log_probs_BWV.scatter_add_(2, followed_BWM, verdict_BWM)
