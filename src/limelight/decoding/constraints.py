"""Required phrases are made to occur by beam search with dynamic beam allocation (Post and Vilar 2018), on tensors.

Each phrase is an automaton whose state is how much of it stands at the end of a text (Knuth, Morris and Pratt 1977), so phrases may
overlap, share beginnings or contain each other, and a step costs the same however long they are.

The beam is shared among the banks of hypotheses that have come equally far with their phrases, so those that go for a
phrase are not crowded out by those that put it off. And they cannot put it off for ever: when the room left is what the phrases
need, only phrases may follow. So every phrase occurs, whatever the model thinks of it. Marks (`marks`) need room as well: a mark
that is missing counts as a phrase of one piece.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from limelight.decoding.marks import Placeholders, keep_only
from limelight.decoding.paths import Grown
from limelight.decoding.select import best
from limelight.decoding.steps import Request
from limelight.decoding.task import NOTHING, Task


class Phrases:
    """Phrases of B sentences are automata, at most F of at most L pieces each. A state is the pieces of a phrase that end a text.

    Few edges of such an automaton lead anywhere but to 0: at most two for each piece (Simon 1994). They are kept as sorted numbers, so
    that one is found in the logarithm of how many there are.
    """

    def __init__(self, requests: Sequence[Request], device: torch.device) -> None:
        distinct = [list(dict.fromkeys(tuple(phrase) for phrase in request.phrases)) for request in requests]
        most, longest = max(map(len, distinct)), max((len(p) for phrases in distinct for p in phrases), default=1)
        rows = [[list(p) for p in phrases] + [[]] * (most - len(phrases)) for phrases in distinct]
        flat = [[*p, *[NOTHING] * (longest - len(p))] for phrases in rows for p in phrases]
        self.ids_BFL = torch.tensor(flat, device=device).view(len(requests), most, longest)
        self.length_BF = (self.ids_BFL != NOTHING).sum(dim=2)
        self.number_BF = torch.arange(len(requests) * most, device=device).view(len(requests), most)
        self.pieces = max((piece for phrases in distinct for p in phrases for piece in p), default=0) + 2
        edges = [
            (((number * (longest + 1)) + state) * self.pieces + piece, then)
            for number, phrase in enumerate(phrase for phrases in rows for phrase in phrases)
            for state, leads in enumerate(automaton(phrase))
            for piece, then in leads.items()
        ]
        edges.append((torch.iinfo(torch.long).max, 0))  # behind all others, so that something is always found
        self.edge_E, self.then_E = torch.tensor(sorted(edges), device=device).T.contiguous()

    def advance(self, progress_BMF: Tensor, ids_BM: Tensor) -> Tensor:
        """Pieces of each phrase that end each of M texts (B, M, F), after each text has taken one piece more."""
        states = self.ids_BFL.shape[2] + 1
        piece_BM1 = ids_BM.clamp(max=self.pieces - 1)[..., None]  # the last stands for all that no phrase has
        asked_BMF = (self.number_BF[:, None] * states + progress_BMF) * self.pieces + piece_BM1
        place_BMF = torch.searchsorted(self.edge_E, asked_BMF)
        then_BMF: Tensor = self.then_E[place_BMF].masked_fill(self.edge_E[place_BMF] != asked_BMF, 0)
        return then_BMF

    def next_pieces(self, progress_BMF: Tensor, met_BMF: Tensor) -> Tensor:
        """What takes each phrase one piece on (B, M, F); NOTHING where it has occurred."""
        ids_BMFL = self.ids_BFL[:, None].expand(-1, progress_BMF.shape[1], -1, -1)
        place = progress_BMF.clamp(max=ids_BMFL.shape[3] - 1)[..., None]
        return ids_BMFL.gather(3, place).squeeze(-1).masked_fill(met_BMF, NOTHING)

    def missing(self, progress_BMF: Tensor, met_BMF: Tensor) -> tuple[Tensor, Tensor]:
        """Pieces that all phrases still need (B, M): if the one that is furthest goes on, and if it is broken off."""
        broken_off = self.length_BF[:, None].masked_fill(met_BMF, 0).sum(dim=2)
        return broken_off - progress_BMF.masked_fill(met_BMF, 0).amax(dim=2), broken_off

    def select(self, sentences: Tensor) -> None:
        for name in ("ids_BFL", "length_BF", "number_BF"):
            setattr(self, name, getattr(self, name).index_select(0, sentences))


class Constrained:
    """Constrained chooses so that all phrases occur. For each row it knows how far each phrase is, and which have occurred."""

    groups = 1

    def __init__(
        self, requests: Sequence[Request], width: int, end: int, device: torch.device, marks: Placeholders | None = None
    ) -> None:
        self.phrases, self.end, self.marks = Phrases(requests, device), end, marks
        sentences, most, _ = self.phrases.ids_BFL.shape
        self.met_BWF = (self.phrases.length_BF == 0)[:, None].expand(-1, width, -1)
        self.progress_BWF = torch.zeros((sentences, width, most), dtype=torch.long, device=device)
        self.forbidden_BWF = torch.zeros_like(self.met_BWF)
        self.bound_BW = torch.zeros((sentences, width), dtype=torch.bool, device=device)
        self.wanted_BWF = self.phrases.next_pieces(self.progress_BWF, self.met_BWF)

    def exempt(self) -> Tensor:
        return self.wanted_BWF

    def permit(self, forbidden_BWF: Tensor) -> None:
        """A row that takes one of these has to go on to the end of the phrase, or it would have broken the rule for nothing."""
        self.forbidden_BWF = forbidden_BWF

    def choose(self, sums_BW: Tensor, log_probs_BWV: Tensor, free_BG: Tensor, task: Task, step: int) -> Grown:
        self._leave_room(log_probs_BWV, task, step)
        ids_BWC, fresh_BWC = self._candidates(best(log_probs_BWV, sums_BW.shape[1])[1])
        values_BWC = log_probs_BWV.gather(2, ids_BWC)
        total_BWC = (sums_BW[..., None] + values_BWC).masked_fill(~fresh_BWC, -torch.inf)
        order_BW = self._allocate(total_BWC, ids_BWC, sums_BW.shape[1])
        sums = total_BWC.flatten(1).gather(1, order_BW)
        room = torch.arange(order_BW.shape[1], device=sums.device) < free_BG
        return Grown(
            sums=sums.masked_fill(~room & ~sums.isnan(), -torch.inf),
            parents=order_BW // ids_BWC.shape[2],
            tokens=ids_BWC.flatten(1).gather(1, order_BW),
            log_probs=values_BWC.flatten(1).gather(1, order_BW),
        )

    def _leave_room(self, log_probs_BWV: Tensor, task: Task, step: int) -> None:
        """No end while a phrase is missing; and nothing but the phrase that is furthest when there is only just room for all."""
        missing_BW, broken_off_BW = self.phrases.missing(self.progress_BWF, self.met_BWF)
        log_probs_BWV[:, :, self.end].masked_fill_(missing_BW > 0, -torch.inf)
        left_B1 = (task.limit - step)[:, None]  # pieces that may still come, this one included
        needed_BW = broken_off_BW if self.marks is None else broken_off_BW + self.marks.missing().sum(dim=2)
        urgent_BW = ((needed_BW > left_B1 - 2) & (missing_BW > 0)) | self.bound_BW
        if step < task.prefix.shape[1]:
            urgent_BW = urgent_BW & (task.prefix[:, step] == NOTHING)[:, None]
        furthest_BWF = self.progress_BWF.masked_fill(self.met_BWF, -1)
        go_on_BWF = (furthest_BWF == furthest_BWF.amax(dim=2, keepdim=True)) & ~self.met_BWF
        ids_BWF = self.wanted_BWF.clamp(min=0)
        scored_BWF = log_probs_BWV.gather(2, ids_BWF)
        kept_BWF = torch.where(go_on_BWF | ~urgent_BW[..., None], scored_BWF, -torch.inf)
        if self.marks is not None:  # a mark breaks off the phrase that is furthest
            room_BW = (needed_BW <= left_B1 - 1) & ~self.bound_BW
            marks = self.marks.scores(log_probs_BWV, self.marks.missing() & room_BW[..., None])
            ids_BWF, kept_BWF = (torch.cat(pair, dim=2) for pair in zip((ids_BWF, kept_BWF), marks, strict=True))
        keep_only(log_probs_BWV, urgent_BW, ids_BWF, kept_BWF)

    def _candidates(self, ids_BWk: Tensor) -> tuple[Tensor, Tensor]:
        """The best pieces of each row and those that its phrases want (B, W, C), and which are not there twice."""
        wanted_BWF = self.wanted_BWF
        known = (wanted_BWF[..., None] == ids_BWk[:, :, None]).any(dim=-1) | (wanted_BWF == NOTHING)
        earlier = torch.ones(2 * [wanted_BWF.shape[2]], dtype=torch.bool, device=ids_BWk.device).tril(-1)
        twice = ((wanted_BWF[..., None] == wanted_BWF[:, :, None]) & earlier).any(dim=-1)
        ids_BWC = torch.cat([ids_BWk, wanted_BWF.clamp(min=0)], dim=2)
        return ids_BWC, torch.cat([torch.ones_like(ids_BWk, dtype=torch.bool), ~(known | twice)], dim=2)

    def _allocate(self, total_BWC: Tensor, ids_BWC: Tensor, width: int) -> Tensor:
        """The places of the beam among the banks: the best of each bank first, the fullest bank first, then the second best of each
        ..., (B, W) as positions in the flattened candidates. Banks with few candidates so leave their places to others."""
        total_BM = total_BWC.flatten(1)
        progress_BMF = self.phrases.advance(self._rows_of(self.progress_BWF, ids_BWC), ids_BWC.flatten(1))
        met_BMF = self._rows_of(self.met_BWF, ids_BWC) | (progress_BMF == self.phrases.length_BF[:, None])
        needs_BM, _ = self.phrases.missing(progress_BMF, met_BMF)
        most = int(self.phrases.ids_BFL.shape[1] * self.phrases.ids_BFL.shape[2]) + 1
        if self.marks is not None:
            needs_BM = needs_BM + self.marks.missing_after(ids_BWC).flatten(1)
            most += self.marks.once_BM.shape[1]
        by_score_BM = total_BM.argsort(dim=1, descending=True, stable=True)
        needs_BM, alive_BM = needs_BM.gather(1, by_score_BM), total_BM.gather(1, by_score_BM) != -torch.inf
        rank_BM = rank_among_equals(needs_BM)
        key_BM = (rank_BM * most + needs_BM).masked_fill(~alive_BM, torch.iinfo(torch.long).max)
        return by_score_BM.gather(1, key_BM.argsort(dim=1, stable=True)[:, :width])

    def _rows_of(self, known_BWX: Tensor, ids_BWC: Tensor) -> Tensor:
        """What is known of the row of each candidate (B, M, X)."""
        return known_BWX[:, :, None].expand(-1, -1, ids_BWC.shape[2], -1).flatten(1, 2)

    def follow(self, grown: Grown) -> None:
        parents = grown.parents[..., None].expand(-1, -1, self.met_BWF.shape[2])
        took_BW = self._took_forbidden(grown)
        self.progress_BWF = self.phrases.advance(self.progress_BWF.gather(1, parents), grown.tokens)
        met = self.met_BWF.gather(1, parents)
        self.met_BWF = met | (self.progress_BWF == self.phrases.length_BF[:, None])
        inside_BW = (self.progress_BWF > 0).logical_and(~self.met_BWF).any(dim=2) & (self.met_BWF == met).all(dim=2)
        self.bound_BW = (self.bound_BW.gather(1, grown.parents) | took_BW) & inside_BW
        self.wanted_BWF = self.phrases.next_pieces(self.progress_BWF, self.met_BWF)

    def _took_forbidden(self, grown: Grown) -> Tensor:
        rows = grown.parents[..., None].expand(-1, -1, self.met_BWF.shape[2])
        wanted_BWF = self.wanted_BWF.gather(1, rows)
        return ((wanted_BWF == grown.tokens[..., None]) & self.forbidden_BWF.gather(1, rows)).any(dim=2)

    def select(self, sentences: Tensor) -> None:
        self.phrases.select(sentences)
        for name in ("met_BWF", "progress_BWF", "forbidden_BWF", "bound_BW", "wanted_BWF"):
            setattr(self, name, getattr(self, name).index_select(0, sentences))


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


def rank_among_equals(x_BM: Tensor) -> Tensor:
    """rank_among_equals([[7, 5, 7, 7]]) -> [[0, 0, 1, 2]]"""
    order_BM = x_BM.argsort(dim=1, stable=True)
    sorted_BM = x_BM.gather(1, order_BM)
    first_BM = torch.searchsorted(sorted_BM, sorted_BM)
    places = torch.arange(x_BM.shape[1], device=x_BM.device)
    return torch.empty_like(x_BM).scatter_(1, order_BM, places - first_BM)
