"""Greedy search takes one piece after the other, each row by itself: the most probable, or one drawn (`sampling`)."""

from collections.abc import Callable

import torch
from torch import Tensor

from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.marks import Placeholders
from limelight.decoding.paths import UNKNOWN_END, Ending, Grown, Paths
from limelight.decoding.record import Record
from limelight.decoding.rules import Rules
from limelight.decoding.select import best, staying
from limelight.decoding.steps import Outcome, Specials, Steppable
from limelight.decoding.task import Task

# (log-probabilities (B, W, V), numbers of the sentences (B,), step) -> the piece that each row takes (B, W)
Choose = Callable[[Tensor, Tensor, int], Tensor]


def most_probable(log_probs_BWV: Tensor, number_B: Tensor, step: int) -> Tensor:
    return best(log_probs_BWV, 1)[1].squeeze(-1)


def greedy(
    model: Steppable,
    task: Task,
    settings: SearchSettings,
    specials: Specials,
    marks: Placeholders | None = None,
    record: Record | None = None,
) -> list[Outcome]:
    """The most probable piece, again and again. The same as a beam of one."""
    return walk(model, task, settings, specials, 1, most_probable, marks, record)


def walk(
    model: Steppable,
    task: Task,
    settings: SearchSettings,
    specials: Specials,
    width: int,
    choose: Choose,
    marks: Placeholders | None = None,
    record: Record | None = None,
) -> list[Outcome]:
    """`width` translations of each sentence, which do not know of each other."""
    device, end = task.source.device, specials.end
    rules, state = Rules(settings, specials, device, marks), model.start(task.source)
    # Not as rows of one sentence: these share a cache, and every one would look past the pieces of all the others.
    if width > 1:
        state.select(torch.arange(len(task), device=device).repeat_interleave(width))
    paths, walks = Paths(len(task), width, device), Walks(len(task), width, device)
    token_BW = torch.full((len(task), width), specials.start, device=device)
    history_BWT: Tensor | None = token_BW[..., None][..., :0] if rules.need_history else None
    own_row = torch.arange(width, device=device)
    for step in range(task.longest):
        log_probs_RV, state = model.step(token_BW.flatten(), state)
        log_probs_BWV = log_probs_RV.view(-1, width, log_probs_RV.shape[1])
        rules.apply(log_probs_BWV, task, step, history_BWT)
        token_BW = choose(log_probs_BWV, task.number, step)
        taken_BW = log_probs_BWV.gather(2, token_BW[..., None]).squeeze(-1)
        paths.record(task.number, token_BW, own_row.expand_as(token_BW), taken_BW)
        if record is not None:
            sums_BW, over_B = walks.sum.index_select(0, task.number), walks.is_done(task.number)
            grown = Grown(sums_BW + taken_BW, own_row.expand_as(token_BW), token_BW, taken_BW)
            record.note(task, end, step, sums_BW, log_probs_BWV, grown, over_B)
        price_BW = None if marks is None else marks.price(token_BW, taken_BW)
        walks.go_on(task, token_BW == end, taken_BW, step, price_BW)
        if marks is not None:
            marks.follow(token_BW)
        history_BWT = None if history_BWT is None else torch.cat([history_BWT, token_BW[..., None]], dim=-1)
        waiting, stay = staying(task.is_done_or_over(walks.is_done(task.number)))
        if not waiting:
            break
        if stay is not None:
            task, token_BW = task.select(stay), token_BW.index_select(0, stay)
            history_BWT = None if history_BWT is None else history_BWT.index_select(0, stay)
            state.select(rows_of(stay, width))
            if marks is not None:
                marks.select(stay)
    return walks.outcomes(paths, settings)


def rows_of(sentences_B: Tensor, width: int) -> Tensor:
    """rows_of([0, 2], 2) -> [0, 1, 4, 5]"""
    return (sentences_B[:, None] * width + torch.arange(width, device=sentences_B.device)).flatten()


class Walks:
    """Walks say how far each row of each of N sentences came. A row that is over changes no more, whatever its neighbours do."""

    def __init__(self, sentences: int, width: int, device: torch.device) -> None:
        shape = (sentences, width)
        self.over = torch.zeros(shape, dtype=torch.bool, device=device)
        self.invalid = torch.zeros(shape, dtype=torch.bool, device=device)  # its scores were not numbers
        self.stuck = torch.zeros(shape, dtype=torch.bool, device=device)  # nothing could follow
        self.length = torch.zeros(shape, dtype=torch.long, device=device)  # pieces, the end not counted
        self.sum = torch.zeros(shape, device=device)
        self.paid = torch.zeros(shape, device=device)  # what of the sum is the price of marks
        self.end = torch.full(shape, UNKNOWN_END, device=device)

    def go_on(self, task: Task, ended_BW: Tensor, taken_BW: Tensor, step: int, price_BW: Tensor | None = None) -> None:
        rooms = (self.over, self.invalid, self.stuck, self.length, self.sum, self.end)
        over, invalid, stuck, length, total, end = (room.index_select(0, task.number) for room in rooms)
        going = ~over
        invalid = invalid | (going & ~(taken_BW < torch.inf))  # also what compares with nothing
        stuck = stuck | (going & (taken_BW == -torch.inf))
        total = torch.where(going, total + taken_BW, total)
        if price_BW is not None:
            self.paid.index_add_(0, task.number, price_BW.masked_fill(over, 0.0).to(self.paid.dtype))
        end = torch.where(going & ended_BW, taken_BW, end)
        length = torch.where(going & ~ended_BW, step + 1, length)
        over = over | ended_BW | invalid | stuck | (task.limit <= step + 1)[:, None]
        for room, value in zip(rooms, (over, invalid, stuck, length, total, end), strict=True):
            room.index_copy_(0, task.number, value.to(room.dtype))

    def is_done(self, number_B: Tensor) -> Tensor:
        """(B,)"""
        return self.over.index_select(0, number_B).all(dim=1)

    def outcomes(self, paths: Paths, settings: SearchSettings) -> list[Outcome]:
        """In the order of the rows, without those that were stuck. A sentence with a score that is not a number has no outcome at all."""
        invalid, stuck = self.invalid.any(dim=1).tolist(), self.stuck.tolist()
        lengths, sums, paids, ends = (room.tolist() for room in (self.length, self.sum, self.paid, self.end))
        endings = []
        for sentence, rows in enumerate(stuck):
            for row in (row for row, dead in enumerate(rows) if not dead and not invalid[sentence]):
                length, end = lengths[sentence][row], ends[sentence][row]
                paid = paids[sentence][row]
                score = (sums[sentence][row] - paid) / length_penalty(length + (end == end), settings) + paid
                endings.append(Ending(sentence, length, row, score, end))
        return paths.outcomes(len(invalid), endings)
