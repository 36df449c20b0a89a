"""A detector finds which processes are lost, by what each of them said last and when that was heard.

Lost is a process that says nothing any more, since it is frozen, dead or cut off. Lost is also one that still speaks and does not get on:

    stalled     its phase is not a long one, and lasts longer than `patience`
    waits       it is inside of a collective: the reason is elsewhere
    lost        stalled and not waiting, while nobody who moves is as far back as it is

When all are stalled and all wait, they wait for one that has left, or for each other. Places are comparable since all processes begin the
same phases in the same order. Who waits for a long phase of another must be in a long phase itself.
"""

import json
from dataclasses import dataclass
from typing import Final

NOT_HEARD: Final = b"-"  # stands where a process has said nothing yet
ENDED: Final = "ended"
LEFT_ALONE: Final = "left alone"  # ended since another did not answer


@dataclass(frozen=True)
class RankStatus:
    host: str
    count: int  # of its words: one that does not grow is old
    name: str  # of the phase: "gradients"
    step: int
    place: tuple[int, int]  # the step, and which phase of it
    long: bool
    age: float  # seconds in this phase
    where: str = ""  # in which function, when it lasts
    waits: bool = False  # for others
    over: str | None = None  # ENDED, LEFT_ALONE, or why it failed

    @property
    def phase(self) -> str:
        return f"{self.name} of step {self.step:,}" if self.step else self.name

    @property
    def doing(self) -> str:
        return f"{self.phase}, at {self.where}" if self.where else self.phase

    def pack(self) -> bytes:
        return json.dumps([*vars(self).values()]).encode()

    @classmethod
    def of(cls, content: bytes) -> "RankStatus | None":
        if content == NOT_HEARD:
            return None
        host, count, name, step, place, *rest = json.loads(content)
        return cls(host, count, name, step, (place[0], place[1]), *rest)


class LostRankDetector:
    def __init__(self) -> None:
        self.words: dict[int, RankStatus | None] = {}
        self._when: dict[int, float] = {}

    def record(self, rank: int, word: RankStatus | None, now: float) -> None:
        old = self.words.get(rank)
        if rank not in self._when or (word and (old is None or word.count != old.count)):
            self.words[rank], self._when[rank] = word, now

    def find_lost(self, now: float, patience: float) -> list[str]:
        """A sentence for each process that is lost; none as long as all is well."""
        return self.find_silent(now, patience) or self._find_stalled(patience)

    def find_silent(self, now: float, patience: float) -> list[str]:
        found = []
        for rank, when in sorted(self._when.items()):
            word = self.words[rank]
            if now - when > patience and (word is None or word.over is None):
                last = word.doing if word else "none since the run began"
                found.append(f"{self._name_rank(rank)} has not been heard of for {now - when:.0f} s; its last word: {last}")
        return found

    def find_failed(self) -> list[str]:
        return [
            f"{self._name_rank(rank)} failed in {word.phase}: {word.over}"
            for rank, word in sorted(self.words.items())
            if word and word.over not in (None, ENDED, LEFT_ALONE)
        ]

    def _find_stalled(self, patience: float) -> list[str]:
        active = {rank: word for rank, word in self.words.items() if word and word.over is None}
        stalled = {rank: word for rank, word in active.items() if word.age > patience and not word.long}
        busy = {rank: word for rank, word in stalled.items() if not word.waits}
        if stalled and (failed := self.find_failed()):  # on GPUs those who wait for it look busy
            return failed
        moving = [word.place for rank, word in active.items() if rank not in stalled]
        if busy:
            least = min(word.place for word in busy.values())
            if any(place <= least for place in moving):
                return []
            return [self._describe_stuck(rank) for rank, word in sorted(busy.items()) if word.place == least]
        if not stalled or moving:
            return []
        ended = [f"{self._name_rank(rank)} has ended" for rank, word in sorted(self.words.items()) if word and word.over]
        behind = min(word.place for word in stalled.values())
        return ended or [self._describe_stuck(rank) for rank, word in sorted(stalled.items()) if word.place == behind]

    def _describe_stuck(self, rank: int) -> str:
        word = self.words[rank]
        assert word is not None
        return f"{self._name_rank(rank)} has not got on for {word.age:.0f} s in {word.doing}"

    def _name_rank(self, rank: int) -> str:
        word = self.words[rank]
        return f"rank {rank} (host {word.host})" if word else f"rank {rank}"
