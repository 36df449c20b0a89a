"""Greedy search takes one piece after the other, each row by itself: the most probable, or one drawn (`sampling`)."""

from collections.abc import Callable

import numpy as np

from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.marks import Placeholders
from limelight.decoding.paths import UNKNOWN_END, Ending, Grown, Paths
from limelight.decoding.record import Record
from limelight.decoding.rules import Rules
from limelight.decoding.select import best, gather, staying
from limelight.decoding.steps import Booleans, Floats, Integers, Outcome, Specials, Steppable
from limelight.decoding.task import Task

# (log-probabilities (B, W, V), numbers of the sentences (B,), step) -> the piece that each row takes (B, W)
Choose = Callable[[Floats, Integers, int], Integers]


def most_probable(log_probs_BWV: Floats, number_B: Integers, step: int) -> Integers:
    return best(log_probs_BWV, 1)[1][..., 0]


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
    rules, state = Rules(settings, specials, marks), model.start(task.source)
    # Not as rows of one sentence: these share a cache, and every one would look past the pieces of all the others.
    if width > 1:
        state.select(np.arange(len(task)).repeat(width))
    paths, walks = Paths(len(task), width), Walks(len(task), width)
    token_BW = np.full((len(task), width), specials.start)
    history_BWT: Integers | None = token_BW[..., None][..., :0] if rules.need_history else None
    own_row = np.arange(width)
    for step in range(task.longest):
        log_probs_RV, state = model.step(token_BW.flatten(), state)
        log_probs_BWV = log_probs_RV.reshape(-1, width, log_probs_RV.shape[1])
        rules.apply(log_probs_BWV, task, step, history_BWT)
        token_BW = choose(log_probs_BWV, task.number, step)
        taken_BW = gather(log_probs_BWV, token_BW[..., None])[..., 0]
        paths.record(task.number, token_BW, np.broadcast_to(own_row, token_BW.shape), taken_BW)
        if record is not None:
            sums_BW, over_B = walks.sum[task.number], walks.is_done(task.number)
            grown = Grown(sums_BW + taken_BW, np.broadcast_to(own_row, token_BW.shape), token_BW, taken_BW)
            record.note(task, specials.end, step, sums_BW, log_probs_BWV, grown, over_B)
        price_BW = None if marks is None else marks.price(token_BW, taken_BW)
        walks.go_on(task, token_BW == specials.end, taken_BW, step, price_BW)
        if marks is not None:
            marks.follow(token_BW)
        history_BWT = None if history_BWT is None else np.concatenate([history_BWT, token_BW[..., None]], axis=-1)
        waiting, stay = staying(task.is_done_or_over(walks.is_done(task.number)))
        if not waiting:
            break
        if stay is not None:
            task, token_BW = task.select(stay), token_BW[stay]
            history_BWT = None if history_BWT is None else history_BWT[stay]
            state.select(rows_of(stay, width))
            if marks is not None:
                marks.select(stay)
    return walks.outcomes(paths, settings)


def rows_of(sentences_B: Integers, width: int) -> Integers:
    """rows_of([0, 2], 2) -> [0, 1, 4, 5]"""
    return (sentences_B[:, None] * width + np.arange(width)).reshape(-1)


class Walks:
    """Walks say how far each row of each of N sentences came. A row that is over changes no more, whatever its neighbours do."""

    def __init__(self, sentences: int, width: int) -> None:
        shape = (sentences, width)
        self.over = np.zeros(shape, bool)
        self.invalid = np.zeros(shape, bool)  # its scores were not numbers
        self.stuck = np.zeros(shape, bool)  # nothing could follow
        self.length = np.zeros(shape, np.int64)  # pieces, the end not counted
        self.sum = np.zeros(shape, np.float32)
        self.paid = np.zeros(shape, np.float32)  # what of the sum is the price of marks
        self.end = np.full(shape, UNKNOWN_END, np.float32)

    def go_on(self, task: Task, ended_BW: Booleans, taken_BW: Floats, step: int, price_BW: Floats | None = None) -> None:
        here = task.number
        going = ~self.over[here]
        self.invalid[here] |= going & ~(taken_BW < np.inf)  # also what compares with nothing
        self.stuck[here] |= going & (taken_BW == -np.inf)
        self.sum[here] += np.where(going, taken_BW, 0.0)
        if price_BW is not None:
            self.paid[here] += np.where(going, price_BW, 0.0)
        self.end[here] = np.where(going & ended_BW, taken_BW, self.end[here])
        self.length[here] = np.where(going & ~ended_BW, step + 1, self.length[here])
        self.over[here] |= ended_BW | self.invalid[here] | self.stuck[here] | (task.limit <= step + 1)[:, None]

    def is_done(self, number_B: Integers) -> Booleans:
        """(B,)"""
        done_B: Booleans = np.all(self.over[number_B], axis=1)
        return done_B

    def outcomes(self, paths: Paths, settings: SearchSettings) -> list[Outcome]:
        """In the order of the rows, without those that were stuck. A sentence with a score that is not a number has no outcome at all."""
        endings = []
        for sentence, row in zip(*np.nonzero(~self.stuck & ~self.invalid.any(axis=1, keepdims=True)), strict=True):
            at = sentence, row
            length, end, paid = int(self.length[at]), float(self.end[at]), float(self.paid[at])
            score = (float(self.sum[at]) - paid) / length_penalty(length + (end == end), settings) + paid
            endings.append(Ending(int(sentence), length, int(row), score, end))
        return paths.outcomes(len(self.over), endings)
