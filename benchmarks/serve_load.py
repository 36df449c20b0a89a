"""A load of HTTP requests that costs little processor time: clients that wait for their answers, and clients that do not.

    with Load(core=1) as load:
        load.closed(port, requests, clients=64, seconds=10)     # closed loop: each client sends when it has its answer
        load.opened(port, requests, rate=150, seconds=60)       # open loop: Poisson arrivals, whatever the server does

The clients live in a process of their own on a core of their own. `Answer.took` of an open loop counts from the moment at which the
request was due, so that a server that makes the clients wait cannot hide it.
"""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

import uvloop

sys.path.insert(0, str(Path(__file__).parent))
from contestant import Contestant
from serve_client import LEFT, Answer, Crowd


@dataclass
class Loaded:
    """What came of a load. `cpu` is the share of a core that the clients themselves took, `seconds` how long requests were sent."""

    answers: list[Answer]
    probes: list[Answer] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def good(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.good]

    @property
    def rate(self) -> float:
        """Good answers a second, from the first that was sent to the last that came."""
        good = self.good
        if not good:
            return 0.0
        return len(good) / (max(each.sent + each.took for each in good) - min(each.sent for each in good))

    @property
    def statuses(self) -> dict[str, int]:
        return dict(Counter(each.lost or str(each.status) for each in self.answers))


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest rank: percentile([1, 2, 3, 4], 0.5) -> 2."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)] if ordered else float("nan")


def latency(answers: Sequence[Answer], share: float) -> float:
    """In milliseconds."""
    return 1000 * percentile([answer.took for answer in answers], share)


async def closed(port: int, requests: Sequence[bytes], clients: int, seconds: float | None, probe: bytes | None) -> Loaded:
    """Each request once, or again and again for so many seconds. Who is refused a connection tries again after a moment."""
    crowd, answers = Crowd(port), list[Answer]()
    numbers = iter(range(len(requests)) if seconds is None else cycle(range(len(requests))))
    until = time.monotonic() + (seconds or 3600)

    async def client() -> None:
        for number in numbers:
            if time.monotonic() > until:
                return
            answers.append(answer := await crowd.ask(number, requests[number]))
            if answer.lost:
                await asyncio.sleep(0.02)

    probes = asyncio.create_task(probing(port, probe))
    began = time.monotonic()
    await asyncio.gather(*(client() for _ in range(clients)))
    took = time.monotonic() - began
    crowd.close()
    return Loaded(answers, await stopped(probes), took)


async def opened(
    port: int, requests: Sequence[bytes], rate: float, seconds: float, probe: bytes | None, patience: float, seed: int
) -> Loaded:
    """Requests arrive by chance, `rate` a second; those without an answer after `patience` seconds more are given up."""
    crowd, random, asked = Crowd(port), Random(seed), list[asyncio.Task[Answer]]()
    probes = asyncio.create_task(probing(port, probe))
    began = due = time.monotonic()
    for number in cycle(range(len(requests))):
        if (due := due + random.expovariate(rate)) > began + seconds:
            break
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asked.append(asyncio.create_task(crowd.ask(number, requests[number], due)))
    took = time.monotonic() - began
    if asked:
        _, late = await asyncio.wait(asked, timeout=patience)
        for task in late:
            task.cancel()
    answers = list(await asyncio.gather(*asked))
    crowd.close()
    return Loaded(answers, await stopped(probes), took)


async def probing(port: int, raw: bytes | None, every: float = 0.02, most: int = 1_000_000) -> list[Answer]:
    """One request after the other on a connection of its own, until it is stopped."""
    found, crowd = list[Answer](), Crowd(port)
    for number in islice(range(most), 0 if raw is None else most):
        assert raw is not None
        found.append(answer := await crowd.ask(number, raw))
        if answer.lost == LEFT:
            break
        try:
            await asyncio.sleep(every)
        except asyncio.CancelledError:
            break
    return [each for each in found if each.lost != LEFT]


async def stopped(task: asyncio.Task[list[Answer]]) -> list[Answer]:
    await asyncio.sleep(0)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return []


class Clients:
    """What lives in the other process."""

    def __init__(self, core: int | None) -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})

    def run(self, work: Any, *given: Any) -> Any:
        used, began = time.process_time(), time.monotonic()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found = runner.run(work(*given))
        if isinstance(found, Loaded):
            found.cpu = (time.process_time() - used) / (time.monotonic() - began)
        return found


class Load:
    """The clients, in their own process. `begin` and `end` leave the caller free while they work."""

    def __init__(self, core: int | None = None) -> None:
        self.clients = Contestant(Clients, core)

    def closed(
        self,
        port: int,
        requests: Sequence[bytes],
        clients: int,
        seconds: float | None = None,
        probe: bytes | None = None,
    ) -> Loaded:
        self.begin(closed, port, requests, clients, seconds, probe)
        found: Loaded = self.end()
        return found

    def opened(
        self, port: int, requests: Sequence[bytes], rate: float, seconds: float, probe: bytes | None = None,
        patience: float = 30.0, seed: int = 1,
    ) -> Loaded:  # fmt: skip
        self.begin(opened, port, requests, rate, seconds, probe, patience, seed)
        found: Loaded = self.end()
        return found

    def begin(self, work: Any, *given: Any) -> None:
        """`work` is a coroutine function of a module, such as `closed` of this one."""
        self.clients.pipe.send(("run", (work, *given)))

    def over(self, seconds: float) -> bool:
        """Has what was begun come to its end? Waits so long for it."""
        return self.clients.pipe.poll(seconds)

    def end(self) -> Any:
        return self.clients.pipe.recv()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clients.stop()
