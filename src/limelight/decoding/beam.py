"""Beam search goes on with the W most probable beginnings of each sentence side by side (section 6.1).

With `patience`, the beam of today's toolkits: a hypothesis that ends makes room for the next best, and the search ends when
W * patience have ended (Kasai et al. 2022), or when nothing that goes on can still win (`Finished.mark_complete`). Without, the classical
one (Sutskever et al. 2014): what ends keeps its place among the W, the rest go on with the places left; a full beam is exhaustive. Groups
and constraints are always searched so. A beam of one is greedy search in both.

How the next W are chosen is a `Choice`: the best (here), the best of groups that avoid each other (`groups`), or so that required
phrases come about (`constraints`).
"""

from typing import Any, Protocol

import numpy as np

from limelight.decoding.config import SearchSettings
from limelight.decoding.coverage import Coverage
from limelight.decoding.finished import Finished
from limelight.decoding.marks import Placeholders
from limelight.decoding.paths import Grown, Paths
from limelight.decoding.record import Record
from limelight.decoding.rules import Rules
from limelight.decoding.select import best, gather, staying, take_rows
from limelight.decoding.steps import Booleans, Floats, Integers, Outcome, Specials, Steppable
from limelight.decoding.task import NOTHING, Task


class Choice(Protocol):
    """A choice says which W continuations go on. `free` (B, G) is the places that ended hypotheses leave in each of G groups.

    What it gives may have more columns than W: those after the first W end here and have no row.
    """

    groups: int

    def exempt(self) -> Integers | None:
        """Pieces (B, W, F) that no rule may forbid, NOTHING where there are fewer; None if there are none at all."""

    def permit(self, forbidden_BWF: Booleans) -> None:
        """Which of these the rules had forbidden."""

    def choose(self, sums_BW: Floats, log_probs_BWV: Floats, free_BG: Integers, task: Task, step: int) -> Grown: ...

    def follow(self, grown: Grown) -> None:
        """The hypotheses have moved."""

    def select(self, sentences: Integers) -> None: ...


class Best:
    """Best takes the W most probable of all continuations. With marks, one of the W is the text that has come furthest with its own."""

    groups = 1

    def __init__(self, marks: Placeholders | None = None) -> None:
        self.marks = marks

    def exempt(self) -> Integers | None:
        return None

    def permit(self, forbidden_BWF: Booleans) -> None: ...

    def choose(self, sums_BW: Floats, log_probs_BWV: Floats, free_BG: Integers, task: Task, step: int) -> Grown:
        return most_probable(sums_BW, *best(log_probs_BWV, sums_BW.shape[1]), free_BG, marks=self.marks)

    def follow(self, grown: Grown) -> None: ...

    def select(self, sentences: Integers) -> None: ...


class Refilled(Best):
    """Refilled takes the W most probable that do not end, and beside them those among the W most probable of all that do."""

    def __init__(self, end: int, marks: Placeholders | None = None) -> None:
        super().__init__(marks)
        self.end = end

    def choose(self, sums_BW: Floats, log_probs_BWV: Floats, free_BG: Integers, task: Task, step: int) -> Grown:
        width = sums_BW.shape[1]
        # Each row ends in one way, so of twice as many at least W go on.
        room = np.full_like(free_BG, 2 * width)
        found = most_probable(sums_BW, *best(log_probs_BWV, 2 * width), room, 2 * width, self.marks)
        ended, place = found.tokens == self.end, np.arange(found.tokens.shape[1])
        # At the limit nothing goes on, so nothing is replaced.
        late = (task.limit <= step + 1)[:, None] & (place >= width)
        order = ended.argsort(axis=1, kind="stable")[:, :width]
        goes_on = found.mask(ended | late).reorder(order)
        return goes_on.beside(found.mask(~ended).reorder(np.broadcast_to(place[:width], order.shape)))


def most_probable(
    sums_BW: Floats,
    values_BWk: Floats,
    ids_BWk: Integers,
    free_B1: Integers,
    count: int | None = None,
    marks: Placeholders | None = None,
) -> Grown:
    """The best continuations among the k best of each row: as many as there are places free, and no more."""
    width, k = values_BWk.shape[1:]
    total_BWk = sums_BW[..., None] + values_BWk
    total_BM = total_BWk.reshape(len(sums_BW), -1)
    ranked_BM = total_BM if marks is None else marks.foremost_first(total_BWk, ids_BWk)
    places = best(ranked_BM, count or width)[1]
    sums = gather(total_BM, places)
    room = np.arange(sums.shape[1]) < free_B1
    return Grown(
        sums=np.where(room, sums, -np.inf),
        parents=places // k,
        tokens=gather(ids_BWk.reshape(total_BM.shape), places),
        log_probs=gather(values_BWk.reshape(total_BM.shape), places),
    )


def beam(
    model: Steppable,
    task: Task,
    settings: SearchSettings,
    specials: Specials,
    choice: Choice,
    marks: Placeholders | None = None,
    record: Record | None = None,
) -> list[Outcome]:
    """The n best translations of each sentence that the beam comes to."""
    width = settings.beam
    rules, state = Rules(settings, specials, marks), model.start(task.source, width)
    enough = round(width * settings.patience) if isinstance(choice, Refilled) and settings.patience else None
    paths, finished = Paths(len(task), width), Finished(len(task), choice.groups, settings, enough)
    coverage = Coverage(model, task, settings, specials) if settings.coverage_penalty else None
    token_BW = np.full((len(task), width), specials.start)
    sums_BW = init_sums(len(task), width, choice.groups)
    history_BWT = token_BW[..., None][..., :0] if rules.need_history else None
    for step in range(task.longest):
        log_probs_RV, state = model.step(token_BW.reshape(-1), state)
        log_probs_BWV = log_probs_RV.reshape(-1, width, log_probs_RV.shape[1])
        allow(log_probs_BWV, rules, choice, task, step, history_BWT)
        grown = choice.choose(sums_BW, log_probs_BWV, finished.free(task.number), task, step)
        if record is not None:
            over_B = finished.over[task.number]
            record.note(task, specials.end, step, sums_BW, log_probs_BWV, grown, over_B)
        penalty_BW = None if coverage is None else coverage.penalty(state, grown.parents)
        if marks is not None:
            penalty_BW = marks.penalty(grown, settings) + (0.0 if penalty_BW is None else penalty_BW)
        sums_BW = finished.take(task, grown, specials.end, step, penalty_BW)[:, :width]
        grown = grown.first(width)
        token_BW = grown.tokens
        paths.record(task.number, token_BW, grown.parents, grown.log_probs)
        choice.follow(grown)
        if marks is not None:
            marks.move(grown)
        history_BWT = None if history_BWT is None else extend_history(history_BWT, grown)
        waiting, stay = staying(task.is_done_or_over(finished.mark_complete(task, sums_BW)))
        if not waiting:
            break
        move(state, grown.parents)
        if stay is not None:
            task, token_BW, sums_BW = task.select(stay), token_BW[stay], sums_BW[stay]
            history_BWT = None if history_BWT is None else history_BWT[stay]
            for part in (part for part in (state, choice, coverage, marks) if part is not None):
                part.select(stay)
    return finished.outcomes(paths)


def init_sums(sentences: int, width: int, groups: int) -> Floats:
    """(B, W): one empty hypothesis for each group of rows, since equal beginnings would go on equally."""
    sums = np.full((sentences, groups, width // groups), -np.inf, np.float32)
    sums[:, :, 0] = 0.0
    return sums.reshape(sentences, width)


def allow(log_probs_BWV: Floats, rules: Rules, choice: Choice, task: Task, step: int, history_BWT: Integers | None) -> None:
    """The rules, and after them what is wanted again as the model scored it. A prefix leaves no choice."""
    wanted_BWF = choice.exempt()
    if wanted_BWF is None:
        rules.apply(log_probs_BWV, task, step, history_BWT)
        return
    ids_BWF = wanted_BWF.clip(min=0)
    scored_BWF = gather(log_probs_BWV, ids_BWF)
    rules.apply(log_probs_BWV, task, step, history_BWT)
    if step < task.prefix.shape[1]:
        wanted_BWF = np.where((task.prefix[:, step] != NOTHING)[:, None, None], NOTHING, wanted_BWF)
    choice.permit((wanted_BWF != NOTHING) & (gather(log_probs_BWV, ids_BWF) == -np.inf))
    sentence, row, phrase = np.nonzero(wanted_BWF != NOTHING)
    log_probs_BWV[sentence, row, ids_BWF[sentence, row, phrase]] = scored_BWF[sentence, row, phrase]


def move(state: Any, parents_BW: Integers) -> None:
    """Each row goes on from its parent."""
    sentences, width = parents_BW.shape
    first_B1 = np.arange(sentences)[:, None] * width
    state.reorder((parents_BW + first_B1).reshape(-1))


def extend_history(history_BWT: Integers, grown: Grown) -> Integers:
    return np.concatenate([take_rows(history_BWT, grown.parents), grown.tokens[..., None]], axis=-1)
