"""Required phrases are made to occur by beam search with dynamic beam allocation (Post and Vilar 2018), on arrays.

Each phrase is an automaton whose state is how much of it stands at the end of a text (Knuth, Morris and Pratt 1977), so phrases may
overlap, share beginnings or contain each other, and a step costs the same however long they are.

The beam is shared among the banks of hypotheses that have come equally far with their phrases, so those that go for a
phrase are not crowded out by those that put it off. And they cannot put it off for ever: when the room left is what the phrases
need, only phrases may follow. So every phrase occurs, whatever the model thinks of it. Marks (`marks`) need room as well: a mark
that is missing counts as a phrase of one piece.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from limelight.decoding.marks import Placeholders, keep_only
from limelight.decoding.paths import Grown
from limelight.decoding.select import best, gather, take_rows
from limelight.decoding.steps import Booleans, Floats, Integers, Request
from limelight.decoding.task import NOTHING, Task


class Phrases:
    """Phrases of B sentences are automata, at most F of at most L pieces each. A state is the pieces of a phrase that end a text.

    Few edges of such an automaton lead anywhere but to 0: at most two for each piece (Simon 1994). They are kept as sorted numbers, so
    that one is found in the logarithm of how many there are.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        distinct = [list(dict.fromkeys(tuple(phrase) for phrase in request.phrases)) for request in requests]
        most, longest = max(map(len, distinct)), max((len(p) for phrases in distinct for p in phrases), default=1)
        rows = [[list(p) for p in phrases] + [[]] * (most - len(phrases)) for phrases in distinct]
        flat = [[*p, *[NOTHING] * (longest - len(p))] for phrases in rows for p in phrases]
        self.ids_BFL = np.array(flat, np.int64).reshape(len(requests), most, longest)
        self.length_BF = (self.ids_BFL != NOTHING).sum(axis=2)
        self.number_BF = np.arange(len(requests) * most).reshape(len(requests), most)
        self.pieces = max((piece for phrases in distinct for p in phrases for piece in p), default=0) + 2
        edges = [
            (((number * (longest + 1)) + state) * self.pieces + piece, then)
            for number, phrase in enumerate(phrase for phrases in rows for phrase in phrases)
            for state, leads in enumerate(automaton(phrase))
            for piece, then in leads.items()
        ]
        edges.append((np.iinfo(np.int64).max, 0))  # behind all others, so that something is always found
        self.edge_E, self.then_E = np.array(sorted(edges), np.int64).T.copy()

    def advance(self, progress_BMF: Integers, ids_BM: Integers) -> Integers:
        """Pieces of each phrase that end each of M texts (B, M, F), after each text has taken one piece more."""
        states = self.ids_BFL.shape[2] + 1
        piece_BM1 = ids_BM.clip(max=self.pieces - 1)[..., None]  # the last stands for all that no phrase has
        asked_BMF = (self.number_BF[:, None] * states + progress_BMF) * self.pieces + piece_BM1
        place_BMF = np.searchsorted(self.edge_E, asked_BMF)
        return np.where(self.edge_E[place_BMF] == asked_BMF, self.then_E[place_BMF], 0)

    def next_pieces(self, progress_BMF: Integers, met_BMF: Booleans) -> Integers:
        """What takes each phrase one piece on (B, M, F); NOTHING where it has occurred."""
        sentences, phrases, longest = self.ids_BFL.shape
        of = np.arange(sentences)[:, None, None], np.arange(phrases), progress_BMF.clip(max=longest - 1)
        return np.where(met_BMF, NOTHING, self.ids_BFL[of])

    def missing(self, progress_BMF: Integers, met_BMF: Booleans) -> tuple[Integers, Integers]:
        """Pieces that all phrases still need (B, M): if the one that is furthest goes on, and if it is broken off."""
        broken_off = np.where(met_BMF, 0, self.length_BF[:, None]).sum(axis=2)
        return broken_off - np.where(met_BMF, 0, progress_BMF).max(axis=2), broken_off

    def select(self, sentences: Integers) -> None:
        for name in ("ids_BFL", "length_BF", "number_BF"):
            setattr(self, name, getattr(self, name)[sentences])


class Constrained:
    """Constrained chooses so that all phrases occur. For each row it knows how far each phrase is, and which have occurred."""

    groups = 1

    def __init__(self, requests: Sequence[Request], width: int, end: int, marks: Placeholders | None = None) -> None:
        self.phrases, self.end, self.marks = Phrases(requests), end, marks
        sentences, most, _ = self.phrases.ids_BFL.shape
        self.met_BWF = np.repeat((self.phrases.length_BF == 0)[:, None], width, axis=1)
        self.progress_BWF = np.zeros((sentences, width, most), np.int64)
        self.forbidden_BWF: Booleans = np.zeros_like(self.met_BWF)
        self.bound_BW = np.zeros((sentences, width), bool)
        self.wanted_BWF = self.phrases.next_pieces(self.progress_BWF, self.met_BWF)

    def exempt(self) -> Integers:
        return self.wanted_BWF

    def permit(self, forbidden_BWF: Booleans) -> None:
        """A row that takes one of these has to go on to the end of the phrase, or it would have broken the rule for nothing."""
        self.forbidden_BWF = forbidden_BWF

    def choose(self, sums_BW: Floats, log_probs_BWV: Floats, free_BG: Integers, task: Task, step: int) -> Grown:
        self._leave_room(log_probs_BWV, task, step)
        ids_BWC, fresh_BWC = self._candidates(best(log_probs_BWV, sums_BW.shape[1])[1])
        values_BWC = gather(log_probs_BWV, ids_BWC)
        total_BWC = np.where(fresh_BWC, sums_BW[..., None] + values_BWC, -np.inf)
        order_BW = self._allocate(total_BWC, ids_BWC, sums_BW.shape[1])
        sums = _pick(total_BWC, order_BW)
        room = np.arange(order_BW.shape[1]) < free_BG
        return Grown(
            sums=np.where(room | np.isnan(sums), sums, -np.inf),
            parents=order_BW // ids_BWC.shape[2],
            tokens=_pick(ids_BWC, order_BW),
            log_probs=_pick(values_BWC, order_BW),
        )

    def _leave_room(self, log_probs_BWV: Floats, task: Task, step: int) -> None:
        """No end while a phrase is missing; and nothing but the phrase that is furthest when there is only just room for all."""
        missing_BW, broken_off_BW = self.phrases.missing(self.progress_BWF, self.met_BWF)
        log_probs_BWV[:, :, self.end] = np.where(missing_BW > 0, -np.inf, log_probs_BWV[:, :, self.end])
        left_B1 = (task.limit - step)[:, None]  # pieces that may still come, this one included
        needed_BW = broken_off_BW if self.marks is None else broken_off_BW + self.marks.missing().sum(axis=2)
        urgent_BW = ((needed_BW > left_B1 - 2) & (missing_BW > 0)) | self.bound_BW
        if step < task.prefix.shape[1]:
            urgent_BW = urgent_BW & (task.prefix[:, step] == NOTHING)[:, None]
        furthest_BWF = np.where(self.met_BWF, -1, self.progress_BWF)
        go_on_BWF = (furthest_BWF == furthest_BWF.max(axis=2, keepdims=True)) & ~self.met_BWF
        ids_BWF = self.wanted_BWF.clip(min=0)
        kept_BWF = np.where(go_on_BWF, gather(log_probs_BWV, ids_BWF), -np.inf)
        if self.marks is not None:  # a mark breaks off the phrase that is furthest
            room_BW = (needed_BW <= left_B1 - 1) & ~self.bound_BW
            ids_BWM, scored_BWM = self.marks.scores(log_probs_BWV, self.marks.missing() & room_BW[..., None])
            ids_BWF = np.concatenate([ids_BWF, ids_BWM], axis=2)
            kept_BWF = np.concatenate([kept_BWF, scored_BWM], axis=2)
        keep_only(log_probs_BWV, urgent_BW, ids_BWF, kept_BWF)

    def _candidates(self, ids_BWk: Integers) -> tuple[Integers, Booleans]:
        """The best pieces of each row and those that its phrases want (B, W, C), and which are not there twice."""
        wanted_BWF = self.wanted_BWF
        known = (wanted_BWF[..., None] == ids_BWk[:, :, None]).any(axis=-1) | (wanted_BWF == NOTHING)
        earlier = np.tri(wanted_BWF.shape[2], k=-1, dtype=bool)
        twice = ((wanted_BWF[..., None] == wanted_BWF[:, :, None]) & earlier).any(axis=-1)
        ids_BWC = np.concatenate([ids_BWk, wanted_BWF.clip(min=0)], axis=2)
        return ids_BWC, np.concatenate([np.ones_like(ids_BWk, bool), ~(known | twice)], axis=2)

    def _allocate(self, total_BWC: Floats, ids_BWC: Integers, width: int) -> Integers:
        """The places of the beam among the banks: the best of each bank first, the fullest bank first, then the second best of each
        ..., (B, W) as positions in the flattened candidates. Banks with few candidates so leave their places to others."""
        total_BM = total_BWC.reshape(len(total_BWC), -1)
        progress_BMF = self.phrases.advance(self._rows_of(self.progress_BWF, ids_BWC), ids_BWC.reshape(total_BM.shape))
        met_BMF = self._rows_of(self.met_BWF, ids_BWC) | (progress_BMF == self.phrases.length_BF[:, None])
        needs_BM, _ = self.phrases.missing(progress_BMF, met_BMF)
        most = int(self.phrases.ids_BFL.shape[1] * self.phrases.ids_BFL.shape[2]) + 1
        if self.marks is not None:
            needs_BM = needs_BM + self.marks.missing_after(ids_BWC).reshape(total_BM.shape)
            most += self.marks.once_BM.shape[1]
        by_score_BM = np.where(np.isnan(total_BM), -np.inf, -total_BM).argsort(axis=1, kind="stable")
        needs_BM, alive_BM = gather(needs_BM, by_score_BM), gather(total_BM, by_score_BM) != -np.inf
        rank_BM = rank_among_equals(needs_BM)
        key_BM = np.where(alive_BM, rank_BM * most + needs_BM, np.iinfo(np.int64).max)
        return gather(by_score_BM, key_BM.argsort(axis=1, kind="stable")[:, :width])

    def _rows_of(self, known_BWX: npt.NDArray[Any], ids_BWC: Integers) -> npt.NDArray[Any]:
        """What is known of the row of each candidate (B, M, X)."""
        return known_BWX.repeat(ids_BWC.shape[2], axis=1)

    def follow(self, grown: Grown) -> None:
        took_BW = self._took_forbidden(grown)
        self.progress_BWF = self.phrases.advance(take_rows(self.progress_BWF, grown.parents), grown.tokens)
        met = take_rows(self.met_BWF, grown.parents)
        self.met_BWF = met | (self.progress_BWF == self.phrases.length_BF[:, None])
        inside_BW = ((self.progress_BWF > 0) & ~self.met_BWF).any(axis=2) & (self.met_BWF == met).all(axis=2)
        self.bound_BW = (gather(self.bound_BW, grown.parents) | took_BW) & inside_BW
        self.wanted_BWF = self.phrases.next_pieces(self.progress_BWF, self.met_BWF)

    def _took_forbidden(self, grown: Grown) -> Booleans:
        took_BWF = take_rows(self.wanted_BWF, grown.parents) == grown.tokens[..., None]
        forbidden_BW: Booleans = (took_BWF & take_rows(self.forbidden_BWF, grown.parents)).any(axis=2)
        return forbidden_BW

    def select(self, sentences: Integers) -> None:
        self.phrases.select(sentences)
        for name in ("met_BWF", "progress_BWF", "forbidden_BWF", "bound_BW", "wanted_BWF"):
            setattr(self, name, getattr(self, name)[sentences])


def automaton(phrase: Sequence[int]) -> list[dict[int, int]]:
    """What leads on from each state: automaton([4, 4, 5]) -> [{4: 1}, {4: 2}, {4: 2, 5: 3}, {4: 1}]; all else leads to 0."""
    states: list[dict[int, int]] = []
    fallback = 0  # the state without the first piece of what has been read: where a piece that does not fit is tried
    for at, piece in enumerate([*phrase, None]):
        leads = dict(states[fallback]) if states else {}
        if at:
            fallback = 0 if piece is None else leads.get(piece, 0)
        if piece is not None:
            leads[piece] = at + 1
        states.append(leads)
    return states


def rank_among_equals(x_BM: Integers) -> Integers:
    """rank_among_equals([[7, 5, 7, 7]]) -> [[0, 0, 1, 2]]"""
    order_BM, places = x_BM.argsort(axis=1, kind="stable"), np.arange(x_BM.shape[1])
    sorted_BM = gather(x_BM, order_BM)
    new_BM = np.diff(sorted_BM, axis=1, prepend=sorted_BM[:, :1] - 1) != 0
    first_BM = np.maximum.accumulate(np.where(new_BM, places, 0), axis=1)
    rank_BM = np.empty_like(x_BM)
    rank_BM[np.arange(len(x_BM))[:, None], order_BM] = places - first_BM
    return rank_BM


def _pick(x_BWC: npt.NDArray[Any], places_BM: Integers) -> npt.NDArray[Any]:
    """Of all candidates of each sentence these, (B, M)."""
    return gather(x_BWC.reshape(len(x_BWC), -1), places_BM)
