"""Ended hypotheses are kept here, and decide when a search may stop."""

from typing import Any

import numpy as np
import numpy.typing as npt

from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.paths import UNKNOWN_END, Ending, Grown, Paths
from limelight.decoding.steps import Booleans, Floats, Integers, Outcome
from limelight.decoding.task import Task


class Finished:
    """Finished has the ended hypotheses of each of N sentences, in G groups, and one place more where everything else is written to.

    Scores are final: the sum over the length penalty, plus the coverage penalty. A sentence whose scores are not numbers is marked
    `invalid`, is over at once, and has no outcome.
    """

    def __init__(self, sentences: int, groups: int, settings: SearchSettings, enough: int | None = None) -> None:
        """`enough`: the number of ended hypotheses that end the search of a sentence; None: only places are counted."""
        self.settings, self.groups, self.each = settings, groups, settings.beam // groups
        self.enough = enough
        self.places = self.each if enough is None else enough + self.each  # W may end in the last step
        shape = (sentences, groups, self.places + 1)
        self.score = np.full(shape, -np.inf, np.float32)
        self.length = np.zeros(shape, np.int64)
        self.row = np.zeros(shape, np.int64)
        self.end = np.full(shape, UNKNOWN_END, np.float32)
        self.count = np.zeros(shape[:2], np.int64)
        self.invalid = np.zeros(sentences, bool)
        # Nothing changes these, whatever their neighbours do.
        self.over = np.zeros(sentences, bool)

    def free(self, number_B: Integers) -> Integers:
        """Places left in each group (B, G)."""
        return self.each - self.count[number_B]

    def take(self, task: Task, grown: Grown, end: int, step: int, penalty_BW: Floats | None) -> Floats:
        """Keep the hypotheses that end here or have reached their limit. Returns the sums of those that go on, -inf elsewhere."""
        over_B = self.over[task.number]
        invalid_B = (np.isnan(grown.sums) | (grown.sums == np.inf)).any(axis=1) & ~over_B
        self.invalid[task.number] |= invalid_B
        sums = np.where((invalid_B | over_B)[:, None], -np.inf, grown.sums)
        alive, ended = sums > -np.inf, grown.tokens == end
        cut = (task.limit <= step + 1)[:, None] & ~ended
        score = sums / length_penalty(step + 1, self.settings)
        score = score if penalty_BW is None else score + penalty_BW
        own_row = np.arange(sums.shape[1])
        self._write(
            task.number,
            alive & (ended | cut),
            score,
            length=np.where(ended, step, step + 1),
            row=np.where(ended, grown.parents, own_row),
            end=np.where(ended, grown.log_probs, UNKNOWN_END),
        )
        return np.where(ended | cut, -np.inf, sums)

    def _write(self, number_B: Integers, over_BW: Booleans, score: Floats, length: Integers, row: Integers, end: Floats) -> None:
        """Each to the next place of its group; what is not over goes to the place that nobody reads."""
        over_BGW = self._in_groups(over_BW)
        count_BG = self.count[number_B]
        place_BGW = np.where(over_BGW, count_BG[..., None] + over_BGW.cumsum(axis=2) - 1, self.places)
        at = number_B[:, None, None], np.arange(self.groups)[:, None], place_BGW
        rooms: tuple[tuple[npt.NDArray[Any], npt.NDArray[Any]], ...]
        rooms = (self.score, score), (self.length, length), (self.row, row), (self.end, end)
        for room, value_BW in rooms:
            room[at] = self._in_groups(value_BW)
        self.count[number_B] = count_BG + over_BGW.sum(axis=2)

    def _in_groups(self, x_BW: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return x_BW.reshape(len(x_BW), self.groups, -1)

    def mark_complete(self, task: Task, sums_BW: Floats) -> Booleans:
        """Mark and return the sentences that are over (B,): those of which nothing that goes on can come among the n best.

        Log-probabilities are at most 0, so a sum never rises, and the length penalty is greatest at the limit: no hypothesis can end
        with more than sum / lp(limit). Stopping there never changes the n best. Groups are each searched to their own end.
        With patience a search also ends when enough hypotheses have.
        """
        wanted = min(self.settings.nbest, self.each)
        score_BGW = self.score[task.number][..., : self.places]
        worst_BG = np.partition(score_BGW, self.places - wanted, axis=2)[..., self.places - wanted]
        highest_BG = self._in_groups(sums_BW).max(axis=2)
        bound_BG = highest_BG / length_penalty(task.limit.astype(np.float32), self.settings)[:, None]
        over_BG = (worst_BG >= bound_BG) | (highest_BG == -np.inf)
        if self.enough is not None:
            over_BG |= self.count[task.number] >= self.enough
        over_B: Booleans = over_BG.all(axis=1)
        self.over[task.number] = over_B
        return over_B

    def outcomes(self, paths: Paths) -> list[Outcome]:
        """Best first, distinct (groups may come to the same), at most n."""
        rooms = [room[..., : self.places].reshape(len(room), -1).tolist() for room in (self.score, self.length, self.row, self.end)]
        invalid, endings = self.invalid.tolist(), []
        for sentence, columns in enumerate(zip(*rooms, strict=True)):
            if invalid[sentence]:
                continue
            found = [Ending(sentence, length, row, score, end) for score, length, row, end in zip(*columns, strict=True)]
            kept = [ending for ending in found if ending.score > float("-inf")]
            kept.sort(key=lambda ending: -ending.score)
            endings += kept if self.groups > 1 else kept[: self.settings.nbest]
        return [self._distinct(outcome) for outcome in paths.outcomes(len(invalid), endings)]

    def _distinct(self, outcome: Outcome) -> Outcome:
        first = {(*h.ids, h.finish): h for h in reversed(outcome.hypotheses)}
        kept = sorted(first.values(), key=lambda hypothesis: -hypothesis.score)
        return Outcome(kept[: self.settings.nbest])
