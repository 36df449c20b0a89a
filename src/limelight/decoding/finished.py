"""Ended hypotheses are kept here, and decide when a search may stop."""

import torch
from torch import Tensor

from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.paths import UNKNOWN_END, Ending, Grown, Paths
from limelight.decoding.steps import Outcome
from limelight.decoding.task import Task


class Finished:
    """Finished has the ended hypotheses of each of N sentences, in G groups, and one place more where everything else is written to.

    Scores are final: the sum over the length penalty, plus the coverage penalty. A sentence whose scores are not numbers is marked
    `invalid`, is over at once, and has no outcome.
    """

    def __init__(
        self, sentences: int, groups: int, settings: SearchSettings, device: torch.device, enough: int | None = None
    ) -> None:
        """`enough`: the number of ended hypotheses that end the search of a sentence; None: only places are counted."""
        self.settings, self.groups, self.each = settings, groups, settings.beam // groups
        self.enough = enough
        self.places = self.each if enough is None else enough + self.each  # W may end in the last step
        shape = (sentences, groups, self.places + 1)
        self.score = torch.full(shape, -torch.inf, device=device)
        self.length = torch.zeros(shape, dtype=torch.long, device=device)
        self.row = torch.zeros(shape, dtype=torch.long, device=device)
        self.end = torch.full(shape, UNKNOWN_END, device=device)
        self.count = torch.zeros(shape[:2], dtype=torch.long, device=device)
        self.invalid = torch.zeros(sentences, dtype=torch.bool, device=device)
        # Nothing changes these, whatever their neighbours do.
        self.over = torch.zeros(sentences, dtype=torch.bool, device=device)

    def free(self, number_B: Tensor) -> Tensor:
        """Places left in each group (B, G)."""
        return self.each - self.count.index_select(0, number_B)

    def take(self, task: Task, grown: Grown, end: int, step: int, penalty_BW: Tensor | None) -> Tensor:
        """Keep the hypotheses that end here or have reached their limit. Returns the sums of those that go on, -inf elsewhere."""
        over_B = self.over.index_select(0, task.number)
        invalid_B = (grown.sums.isnan() | (grown.sums == torch.inf)).any(dim=1) & ~over_B
        self.invalid.index_copy_(0, task.number, self.invalid.index_select(0, task.number) | invalid_B)
        sums = grown.sums.masked_fill((invalid_B | over_B)[:, None], -torch.inf)
        alive, ended = sums > -torch.inf, grown.tokens == end
        cut = (task.limit <= step + 1)[:, None] & ~ended
        score = sums / length_penalty(step + 1, self.settings)
        score = score if penalty_BW is None else score + penalty_BW
        own_row = torch.arange(sums.shape[1], device=sums.device)
        self._write(
            task.number,
            alive & (ended | cut),
            score,
            length=torch.where(ended, step, step + 1),
            row=torch.where(ended, grown.parents, own_row),
            end=torch.where(ended, grown.log_probs, UNKNOWN_END),
        )
        return sums.masked_fill(ended | cut, -torch.inf)

    def _write(
        self, number_B: Tensor, over_BW: Tensor, score: Tensor, length: Tensor, row: Tensor, end: Tensor
    ) -> None:
        """Each to the next place of its group; what is not over goes to the place that nobody reads."""
        over_BGW = self._in_groups(over_BW)
        count_BG = self.count.index_select(0, number_B)
        place_BGW = torch.where(over_BGW, count_BG[..., None] + over_BGW.cumsum(dim=2) - 1, self.places)
        for room, value_BW in ((self.score, score), (self.length, length), (self.row, row), (self.end, end)):
            held = room.index_select(0, number_B)
            held.scatter_(2, place_BGW, self._in_groups(value_BW).to(room.dtype))
            room.index_copy_(0, number_B, held)
        self.count.index_copy_(0, number_B, count_BG + over_BGW.sum(dim=2))

    def _in_groups(self, x_BW: Tensor) -> Tensor:
        return x_BW.view(len(x_BW), self.groups, -1)

    def mark_complete(self, task: Task, sums_BW: Tensor) -> Tensor:
        """Mark and return the sentences that are over (B,): those of which nothing that goes on can come among the n best.

        Log-probabilities are at most 0, so a sum never rises, and the length penalty is greatest at the limit: no hypothesis can end
        with more than sum / lp(limit). Stopping there never changes the n best. Groups are each searched to their own end.
        With patience a search also ends when enough hypotheses have.
        """
        wanted = min(self.settings.nbest, self.each)
        score_BGW = self.score.index_select(0, task.number)[..., : self.places]
        worst_BG = score_BGW.topk(wanted, dim=2).values[..., -1]
        highest_BG = self._in_groups(sums_BW).amax(dim=2)
        bound_BG: Tensor = highest_BG / length_penalty(task.limit, self.settings)[:, None]
        over_BG = (worst_BG >= bound_BG) | (highest_BG == -torch.inf)
        if self.enough is not None:
            over_BG |= self.count.index_select(0, task.number) >= self.enough
        over_B = over_BG.all(dim=1)
        self.over.index_copy_(0, task.number, over_B)
        return over_B

    def outcomes(self, paths: Paths) -> list[Outcome]:
        """Best first, distinct (groups may come to the same), at most n."""
        rooms = [room[..., : self.places].flatten(1).tolist() for room in (self.score, self.length, self.row, self.end)]
        invalid, endings = self.invalid.tolist(), []
        for sentence, columns in enumerate(zip(*rooms, strict=True)):
            if invalid[sentence]:
                continue
            found = [
                Ending(sentence, length, row, score, end) for score, length, row, end in zip(*columns, strict=True)
            ]
            kept = [ending for ending in found if ending.score > float("-inf")]
            kept.sort(key=lambda ending: -ending.score)
            endings += kept if self.groups > 1 else kept[: self.settings.nbest]
        return [self._distinct(outcome) for outcome in paths.outcomes(len(invalid), endings)]

    def _distinct(self, outcome: Outcome) -> Outcome:
        first = {(*h.ids, h.finish): h for h in reversed(outcome.hypotheses)}
        kept = sorted(first.values(), key=lambda hypothesis: -hypothesis.score)
        return Outcome(kept[: self.settings.nbest])
