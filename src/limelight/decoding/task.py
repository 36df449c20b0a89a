"""A `Task` is a batch of requests as arrays: sources, limits and prefixes of the sentences that are not done."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Booleans, Integers, IsOver, Request, Specials, room_for
from limelight.errors import DataError

NOTHING = -1  # where a row of ids is shorter than the longest


@dataclass(frozen=True)
class Task:
    """A task is B sentences. `number` is the place of each in the request, which it keeps when others have left."""

    number: Integers  # (B,)
    source: Integers  # (B, S) ids with their end if they have one, padded
    least: Integers  # (B,) fewest pieces before the end
    limit: Integers  # (B,) most pieces, the end included
    prefix: Integers  # (B, P) ids that come first, then NOTHING
    given: Integers  # (B,) so many of them have log-probability 0
    allowed: Integers | None  # (B, A) suppressed ids that may occur, then NOTHING; None if there are none at all
    longest_least: int  # these two as numbers of the host, which every step asks for
    longest: int
    highest_id: int  # of all that is asked for
    is_over: tuple[IsOver, ...]  # of every sentence of the request, by number

    def __len__(self) -> int:
        return len(self.number)

    def select(self, sentences: Integers) -> Self:
        """Only these stay."""
        rows = {f.name: getattr(self, f.name) for f in fields(self) if isinstance(getattr(self, f.name), np.ndarray)}
        return replace(self, **{name: array[sentences] for name, array in rows.items()})

    def is_done_or_over(self, done_B: Booleans) -> Booleans:
        """Which sentences need no further step (B,): those that are done, and those that nobody waits for any more."""
        over = [is_over() for is_over in self.is_over]
        return done_B | np.array(over)[self.number] if any(over) else done_B


def make_task(
    requests: Sequence[Request],
    settings: SearchSettings,
    specials: Specials,
    lengths: Sequence[int] | None = None,
) -> Task:
    """`lengths` fixes the number of pieces of each translation, for tests and benchmarks."""
    _check(requests, specials)
    allowed = [[*request.allowed, *request.once] for request in requests]
    source = pad_rows([specials.add_end(request.source) for request in requests], specials.pad)
    if lengths is None:
        limit = [max(settings.limit(len(r.source)), room_for(r)) for r in requests]
        least = [settings.min_length] * len(requests)
    else:
        limit = least = list(lengths)
    return Task(
        number=np.arange(len(requests)),
        source=source,
        least=np.array(least, np.int64),
        limit=np.array(limit, np.int64),
        given=np.array([request.given for request in requests], np.int64),
        prefix=pad_rows([request.prefix for request in requests], NOTHING),
        allowed=pad_rows(allowed, NOTHING) if any(allowed) else None,
        longest_least=max(least),
        longest=max(limit),
        highest_id=max((i for r in requests for ids in (r.prefix, r.once, r.allowed, *r.phrases) for i in ids), default=0),
        is_over=tuple(request.is_over for request in requests),
    )


def pad_rows(rows: Sequence[Sequence[int]], filler: int) -> Integers:
    """pad_rows([[5, 6], []], 0) -> [[5, 6], [0, 0]]"""
    width = max(map(len, rows), default=0)
    padded = np.full((len(rows), width), filler, np.int64)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded


def _check(requests: Sequence[Request], specials: Specials) -> None:
    """Every problem at once."""
    reserved = {specials.pad: "padding", specials.start: "start", specials.end: "end"}
    problems = []
    for number, request in enumerate(requests):
        named = (
            ("prefix", request.prefix),
            ("list of pieces that occur once", request.once),
            ("list of allowed pieces", request.allowed),
        )
        for what, ids in [*named, *(("phrase", phrase) for phrase in request.phrases)]:
            wrong = [reserved.get(i, f"{i} (no)") for i in ids if i in reserved or i < 0]
            if wrong:
                problems.append(f"the {what} of sentence {number} holds the {wrong[0]} piece, which no text has")
            if what == "phrase" and not ids:
                problems.append(f"a phrase of sentence {number} is empty; leave it out")
        problems += [f"sentence {number}: {problem}" for problem in _wrong_marks(request)]
    if problems:
        raise DataError("this cannot be searched for:\n" + "\n".join(f"  - {problem}" for problem in problems))


def _wrong_marks(request: Request) -> list[str]:
    """What no text could be: [] for those that can be searched for."""
    problems = [f"piece {mark} is twice among those that occur once" for mark in _twice(request.once)]
    paired = [mark for pair in request.nested for mark in pair]
    problems += [f"piece {mark} is in two pairs of tags; each opens or closes one" for mark in _twice(paired)]
    unknown = sorted(set(paired) - set(request.once))
    problems += [f"piece {mark} is in a pair of tags but not among those that occur once; add it" for mark in unknown]
    in_order = [mark for group in request.ordered for mark in group]
    problems += [f"piece {mark} is twice in what is ordered; each has one place" for mark in _twice(in_order)]
    unknown = sorted(set(in_order) - set(request.once))
    problems += [f"piece {mark} is ordered but not among those that occur once; add it" for mark in unknown]
    both = sorted(set(in_order) & set(paired))
    problems += [f"piece {mark} is in a pair of tags and ordered, which may contradict; leave one out" for mark in both]
    phrases = list(dict.fromkeys(tuple(phrase) for phrase in request.phrases))
    held = [piece for phrase in phrases for piece in phrase if piece in set(request.once)]
    problems += [f"piece {mark} occurs once and is in two places of the phrases" for mark in _twice(held)]
    for opening, closing in request.nested:
        if any((opening in phrase) != (closing in phrase) for phrase in phrases):
            problems.append(f"a phrase has one of the tags {opening} and {closing} without the other; give it both or none")
    return problems


def _twice(ids: Sequence[int]) -> list[int]:
    """_twice([5, 6, 5]) -> [5]"""
    return sorted({i for i in ids if list(ids).count(i) > 1})
