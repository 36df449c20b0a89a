"""A fair queue orders sentences of many requests: fair among callers, similar ones together in a batch.

Fairness is that of start-time fair queueing (Goyal, Vin and Cheng 1996), counted in source pieces. A sentence gets the tag

    tag = max(now, end of the flow's sentence before it),    end = tag + pieces

and the smallest tag goes first; `now` goes on with the work that is done. A flow is a caller, or a request where nobody is known. So a
document of a thousand sentences delays a single sentence by one batch, not by a thousand sentences. The first pieces of a flow that had
nothing waiting are free: the few sentences of a paragraph go together, in their turn.

A request of many sentences comes out of its list a portion at a time, so that to put it in, and to take it out again, costs little.

It knows no engine, no clock and no thread.
"""

import heapq
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

FREE = 256  # pieces, a long paragraph
PORTION = 256  # sentences of a request that stand in the heap
LOOK = 2  # batches' worth of the oldest sentences are a round, and those of like length in it go together: more pad less


@dataclass(eq=False)
class RequestSentences:
    """These are the sentences of one request that are still in the queue. `kind` is what may share a batch."""

    kind: Hashable
    flow: Hashable
    waiting: int = 0  # sentences
    pieces: int = 0  # of these
    rest: "Iterator[QueuedSentence]" = field(default_factory=lambda: iter(()))  # those that are not in the heap yet
    last: int = -1  # number of the last one that is
    gone: bool = False  # nobody waits for the answer


class QueuedSentence(NamedTuple):
    """A sentence waits here. `place` is its number in the request. They are ordered by the first two: no number occurs twice."""

    tag: float
    number: int
    request: RequestSentences
    place: int
    pieces: int
    payload: Any
    arrived: float


class FairQueue:
    def __init__(self) -> None:
        self.pieces = 0  # of all that waits
        self._heap: list[QueuedSentence] = []
        self._now = 0.0
        self._numbers = 0  # given so far
        self._round = (0.0, -1)  # tag and number of its last sentence
        self._ends: dict[Hashable, float] = {}  # of the flows that have something waiting
        self._longest: dict[Hashable, int] = {}  # their longest sentence
        self._left: dict[Hashable, int] = {}  # their pieces
        self._requests: dict[Hashable, int] = {}  # and sentences

    def __len__(self) -> int:
        """Count the sentences that wait."""
        return sum(self._requests.values())

    @property
    def oldest(self) -> float | None:
        """When the sentence that goes next arrived."""
        self._drop_gone()
        return self._heap[0].arrived if self._heap else None

    def ahead(self, pieces: int, flow: Hashable) -> float:
        """Count pieces before a flow's next sentence, if `pieces` of its own stand before it: of each flow what has a smaller tag."""
        tag = self._tag(flow) + pieces
        # A flow's sentences have the tags from end - left on. The one that begins before ours goes whole.
        return sum(min(left, max(0.0, tag - (self._ends[other] - left)) + self._longest[other]) for other, left in self._left.items())

    def put(self, request: RequestSentences, payloads: Sequence[Any], pieces: Sequence[int], arrived: float) -> None:
        tag, free = self._tag(request.flow), 0 if request.flow in self._ends else FREE
        total, flow = sum(pieces), request.flow
        request.rest = _items(request, payloads, pieces, arrived, tag, free, self._numbers)
        self._numbers += len(payloads)
        self._next_portion(request)
        request.waiting, request.pieces = len(payloads), total
        self.pieces += total
        self._ends[flow] = tag + max(0, total + pieces.count(0) - free)
        self._longest[flow] = max(self._longest.get(flow, 0), max(pieces))
        self._left[flow] = self._left.get(flow, 0) + total
        self._requests[flow] = self._requests.get(flow, 0) + len(payloads)

    def take(self, room: int, rows: int) -> list[QueuedSentence]:
        """The sentence whose turn it is and those most like it, of its kind: rows * longest <= room, and always one.

        Those passed over go before any of the next round, so that none waits long for being unlike the others.
        """
        self._drop_gone()
        if not self._heap:
            return []
        first = self._pop()
        others: list[QueuedSentence] = []
        passed: list[QueuedSentence] = []
        seen = 0
        while self._heap and seen < LOOK * room and len(others) + len(passed) < LOOK * rows:
            item = self._pop()
            if item.request.gone:
                continue
            seen += max(1, item.pieces)
            (others if item.request.kind == first.request.kind else passed).append(item)
        if others and first[:2] > self._round:
            self._round = others[-1][:2]
        others.sort(key=lambda item: (item[:2] > self._round, abs(item.pieces - first.pieces), item.tag, item.number))
        taken, longest = [first], max(1, first.pieces)
        for at, item in enumerate(others):
            longest = max(longest, item.pieces)
            if len(taken) == rows or longest * (len(taken) + 1) > room:
                passed += others[at:]
                break
            taken.append(item)
        for item in passed:
            heapq.heappush(self._heap, item)
        # Also where newcomers come without end, each with the tag `now`, what came before them gets its turn: the clock goes on with the
        # work, a round for each flow.
        self._now = max(first.tag, self._now + sum(item.pieces for item in taken) / len(self._left))
        for item in taken:
            self._count_out(item.request, 1, item.pieces)
        return taken

    def leave(self, request: RequestSentences) -> None:
        """What still waits of a request never goes: it is passed over when its turn comes, and counts no more from now on."""
        if request.gone:
            return
        request.gone = True
        if request.waiting:
            self._count_out(request, request.waiting, request.pieces)
            request.rest = iter(())
            self._heap = [item for item in self._heap if item.request is not request]
            heapq.heapify(self._heap)

    def _tag(self, flow: Hashable) -> float:
        return max(self._now, self._ends.get(flow, 0.0))

    def _drop_gone(self) -> None:
        while self._heap and self._heap[0].request.gone:
            self._pop()

    def _pop(self) -> QueuedSentence:
        item = heapq.heappop(self._heap)
        if item.number == item.request.last:
            self._next_portion(item.request)
        return item

    def _next_portion(self, request: RequestSentences) -> None:
        for item in islice(request.rest, PORTION):
            heapq.heappush(self._heap, item)
            request.last = item.number

    def _count_out(self, request: RequestSentences, sentences: int, pieces: int) -> None:
        flow = request.flow
        request.waiting -= sentences
        request.pieces -= pieces
        self.pieces -= pieces
        self._left[flow] -= pieces
        self._requests[flow] -= sentences
        if not self._requests[flow]:
            del self._requests[flow], self._left[flow], self._ends[flow], self._longest[flow]


def _items(
    request: RequestSentences,
    payloads: Sequence[Any],
    pieces: Sequence[int],
    arrived: float,
    tag: float,
    free: int,
    number: int,
) -> Iterator[QueuedSentence]:
    """The sentences of a request with their tags."""
    for place, (payload, length) in enumerate(zip(payloads, pieces, strict=True)):
        yield QueuedSentence(tag, number + place, request, place, length, payload, arrived)
        free -= max(1, length)
        tag += min(max(1, length), max(0, -free))
