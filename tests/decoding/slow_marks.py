"""Marks in plain Python: what a text with them has to be, and a slow beam that is written from the definition, text by text."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from slow_search import Path, comes_again, forced_log_probs, length_penalty, ranked
from table_models import Rows, TableModel, listed_rows

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Hypothesis, Outcome, Request


def well_nested(ids: Sequence[int], nested: Sequence[tuple[int, int]]) -> bool:
    opening, stack = {closing: opening for opening, closing in nested}, []
    for piece in ids:
        if piece in opening.values():
            stack.append(piece)
        elif piece in opening and (not stack or stack.pop() != opening[piece]):
            return False
    return not stack


def room(request: Request, settings: SearchSettings) -> int:
    """Most pieces, the end included."""
    in_phrases = {piece for phrase in request.phrases for piece in phrase}
    marks = set(request.once) - set(request.prefix) - in_phrases
    needed = len(request.prefix) + sum(map(len, request.phrases)) + len(marks) + 1
    return max(settings.limit(len(request.source)), needed)


def may_follow(model: TableModel, request: Request, settings: SearchSettings, path: Path) -> list[Path]:
    """All that may come next, best first."""
    row = model.rows(request.source[0], path.pieces).tolist()
    at, special = len(path.pieces), model.specials
    if at < len(request.prefix):
        return [path.longer(request.prefix[at], row[request.prefix[at]])]
    never = {special.pad, special.start, special.unknown, *settings.suppress} - {*request.once, *request.allowed}
    missing = [mark for mark in request.once if mark not in path.pieces]
    never |= {mark for mark in request.once if mark in path.pieces or not closes_the_innermost(mark, path, request)}
    never |= {mark for group in request.ordered for mark in [m for m in group if m in missing][1:]}
    found = [path.longer(piece, x) for piece, x in enumerate(row) if piece not in never and x > -math.inf]
    found = [longer for longer in found if not (settings.no_repeat_ngram and again(longer, settings))]
    if at < settings.min_length:
        found = [longer for longer in found if longer.pieces[-1] != special.end]
    found.sort(key=lambda longer: -longer.log_probs[-1])
    if not missing:
        return found
    marks = [longer for longer in found if longer.pieces[-1] in missing]
    hurry = len(missing) >= room(request, settings) - at - 1
    would_end = bool(found) and found[0].pieces[-1] == special.end and bool(marks)
    return marks if hurry or would_end else [longer for longer in found if longer.pieces[-1] != special.end]


def closes_the_innermost(mark: int, path: Path, request: Request) -> bool:
    """True also of what closes nothing."""
    closing = dict(request.nested)
    still_open = [piece for piece in path.pieces if piece in closing and closing[piece] not in path.pieces]
    return mark not in closing.values() or (bool(still_open) and closing[still_open[-1]] == mark)


def again(longer: Path, settings: SearchSettings) -> bool:
    return comes_again(longer.pieces, settings.no_repeat_ngram or 0)


def one_foremost(longer: list[Path], request: Request, settings: SearchSettings) -> list[Path]:
    """The best of those that miss the fewest marks, then all others, the best first."""
    longer.sort(key=lambda path: -path.total)
    if settings.beam == 1 or not request.once:
        return longer
    first = min(longer, key=lambda path: len(set(request.once) - set(path.pieces)), default=None)
    return [*([first] if first else []), *(path for path in longer if path is not first)]


def marked_beam(model: TableModel, request: Request, settings: SearchSettings) -> list[Hypothesis]:
    """The beam of the settings without stopping early. Of each text only its best continuations are looked at."""
    refilled = settings.patience is not None and settings.beam > 1
    each = 2 * settings.beam if refilled else settings.beam
    end, limit = model.specials.end, room(request, settings)
    finished: list[Path] = []
    alive = [Path((), ())]
    for step in range(1, limit + 1):
        longer = [longer for path in alive for longer in may_follow(model, request, settings, path)[:each]]
        longer = one_foremost(longer, request, settings)
        top = longer[: settings.beam if refilled else settings.beam - len(finished)]
        finished += [path for path in top if path.pieces[-1] == end or step == limit]
        going = longer if refilled else top
        alive = [path for path in going if path.pieces[-1] != end][: settings.beam]
        if refilled and len(finished) >= round(settings.beam * (settings.patience or 1)):
            break
    found = [path.as_hypothesis(end, length_penalty(settings)) for path in finished]
    return ranked([replace(h, score=score_of(h, request, settings)) for h in found])[: settings.nbest]


def score_of(h: Hypothesis, request: Request, settings: SearchSettings) -> float:
    """What marks cost is not divided by the length normalization."""
    paid = math.fsum(x for x, piece in zip(h.log_probs, h.ids, strict=False) if piece in request.once)
    return (math.fsum(h.log_probs) - paid) / length_penalty(settings)(h.steps) + paid


def check_marked(model: TableModel, request: Request, outcome: Outcome, settings: SearchSettings) -> None:
    """Every mark once and well nested, every phrase, the prefix, no other suppressed piece, within the limit, scored by the model."""
    assert outcome.hypotheses, f"no translation with {request.once} and {request.phrases}"
    assert len(outcome.hypotheses) <= settings.nbest
    foreign = {model.specials.pad, model.specials.start, model.specials.end, *settings.suppress}
    foreign -= {*request.once, *request.allowed}
    for h in outcome.hypotheses:
        assert all(h.ids.count(mark) == 1 for mark in request.once), f"{request.once} are not once in {h.ids}"
        assert well_nested(h.ids, request.nested), f"{h.ids} does not nest {request.nested}"
        for group in request.ordered:
            places = [h.ids.index(mark) for mark in group]
            assert places == sorted(places), f"{group} are in another order in {h.ids}"
        assert h.ids[: len(request.prefix)] == list(request.prefix)
        assert not foreign.intersection(h.ids[len(request.prefix) :]), f"foreign pieces in {h.ids}"
        for phrase in request.phrases:
            places = range(len(h.ids) - len(phrase) + 1)
            assert any(h.ids[i : i + len(phrase)] == list(phrase) for i in places), f"no {phrase} in {h.ids}"
        limit = room(request, settings)
        assert h.steps == limit if h.finish == "length" else h.steps <= limit
        assert len(h.log_probs) == h.steps
        assert np.allclose(h.log_probs, forced_log_probs(model, request.source[0], h), rtol=0, atol=1e-5)
        if settings.coverage_penalty == 0:
            assert math.isclose(h.score, score_of(h, request, settings), rel_tol=1e-5, abs_tol=1e-5)
    if settings.sampling is None:
        scores = [h.score for h in outcome.hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(h.ids) for h in outcome.hypotheses}) == len(outcome.hypotheses)


def adverse_rows(kind: str, marks: Sequence[int], vocab_size: int, end: int) -> Rows:
    """Models that want anything but marks in good order. Each gives nearly all probability to what it wants."""
    loved = {
        "shuns its marks": [piece for piece in range(4, vocab_size) if piece not in marks],
        "one piece for ever": [4],
        "ends at once": [end],
        "only marks, the last first": list(reversed(marks)),
    }[kind]

    def rows(number: int, prefix: tuple[int, ...]) -> np.ndarray:
        row = np.full(vocab_size, -30.0) - np.arange(vocab_size) / 97 - (number + 7 * len(prefix)) % 13 / 89
        row[loved] += 30 - np.arange(len(loved)) / 7
        return (row - np.log(np.exp(row).sum())).astype(np.float32)

    return rows


NATURAL = {
    (): {4: 0.9, 5: 0.06, 6: 0.04},
    (4,): {5: 0.9, 6: 0.1},
    (5,): {6: 1.0},
    (6,): {6: 0.96, 3: 0.04},  # a loop
    (4, 5): {6: 0.7, 7: 0.3},
    (4, 5, 6): {3: 0.9, 4: 0.06, 6: 0.04},
}


def blind_rows(marks: Sequence[int], vocab_size: int) -> Rows:
    """It says 4 5 6 and takes no notice of marks: after one it goes on as if it were not there. None is likelier than 1e-6."""
    listed = listed_rows(NATURAL, vocab_size)

    def rows(number: int, prefix: tuple[int, ...]) -> np.ndarray:
        text = tuple(piece for piece in prefix if piece not in marks)
        while text not in NATURAL:
            text = text[1:]
        row = listed(number, text).copy()
        row[list(marks)] = -13.8
        row[4:8] = row[4:8].clip(min=-9.0)
        return row

    return rows
