"""What nobody waits for any more is not translated (AT-23).

    python benchmarks/serve_cancel.py

The engine is slowed to 300 ms for a batch and writes down every sentence that reaches it (serve_strange.py). Each text is another number,
so it is known whose sentence it was.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import serve_numbers as numbers
from limelight.translator import Translator
from serve_client import Answer, Crowd, connect
from serve_load import Load, latency
from serve_process import Server, beside

SLOW = 0.3  # seconds for a batch, unless asked
PIECES = 16  # source pieces of a batch: two or three texts
LEAVE, DEADLINE = 0.05, 0.2  # seconds
HEARD = 0.02  # seconds from leaving until the server can know
STAY = 6  # clients of the control


@dataclass(frozen=True)
class Cancelled:
    """`stayed` is the control: of `STAY` clients who do not leave, how many reach the engine."""

    clients: int
    reached: int  # sentences that came to the engine after their client had left
    freed: float  # milliseconds until somebody who came after them has the answer
    long_rest: int  # sentences of a long request that did so after its client had left
    deadlines: int
    late_good: int  # 200 after the deadline
    not_504: int  # neither that nor refused at once
    expired_p99: float  # milliseconds
    expired_reached: int  # sentences whose deadline was over before they reached the engine
    wasted: float  # of all rows of the engine, those for nobody
    stayed: int


class Watched:
    """A server with a slow engine, and what reached it."""

    def __init__(self, stack: ExitStack, slow: float, core: int | None) -> None:
        self.file = Path(stack.enter_context(tempfile.TemporaryDirectory()), "reached")
        waits = ("queue.wait_seconds=600", f"queue.batch_pieces={PIECES}")
        command = beside("serve_strange.py", numbers.BUNDLE, *waits, "--slow", slow, "--reached", self.file)
        self.server = stack.enter_context(Server(command, core))
        self.translator = stack.enter_context(Translator.load(numbers.BUNDLE, threads=1))

    def reached(self, texts: Sequence[str], after: float = 0.0) -> list[float]:
        """When those of the texts that reached the engine did."""
        ids = {tuple(each) for each in self.translator.source_ids(texts)}
        lines = [json.loads(line) for line in self.file.read_bytes().split(b"\n") if line]
        return [line["at"] for line in lines for source in line["sources"] if tuple(source) in ids and line["at"] >= after]

    def rows(self) -> int:
        return sum(len(json.loads(line)["sources"]) for line in self.file.read_bytes().split(b"\n") if line)


async def leaving(port: int, first: bytes, requests: Sequence[bytes], after: float, last: bytes) -> tuple[float, Answer]:
    """Somebody is being translated; many come, and leave after a moment, half of them without a word; one more comes. When they left,
    and the answer of the last."""
    crowd, connections = Crowd(port), [await connect(port) for _ in requests]
    begun = asyncio.create_task(crowd.ask(0, first))
    await asyncio.sleep(0.1)  # it is in the engine now
    asked = [asyncio.create_task(each.ask(at, requests[at])) for at, each in enumerate(connections)]
    await asyncio.sleep(after)
    for at, connection in enumerate(connections):
        connection.transport.abort() if at % 2 else connection.transport.close()
    left = time.monotonic()
    await asyncio.gather(*asked)
    answer = await crowd.ask(1, last)
    await begun
    return left, answer


async def behind(port: int, full: Sequence[bytes], requests: Sequence[bytes]) -> tuple[list[Answer], list[Answer]]:
    """Requests that come to a full queue all at once, and those that fill it."""
    crowd = Crowd(port)
    filling = [asyncio.create_task(crowd.ask(number, raw)) for number, raw in enumerate(full)]
    await asyncio.sleep(0.1)
    found = await asyncio.gather(*(crowd.ask(number, raw) for number, raw in enumerate(requests)))
    return list(found), list(await asyncio.gather(*filling))


async def walks_away(port: int, raw: bytes, after: float) -> float:
    """When it left."""
    connection = await connect(port)
    asked = asyncio.create_task(connection.ask(0, raw))
    await asyncio.sleep(after)
    connection.transport.close()
    left = time.monotonic()
    await asked
    return left


def measure(load: Load, clients: int = 100, slow: float = SLOW, core: int | None = None) -> Cancelled:
    with ExitStack() as stack:
        watched = Watched(stack, slow, core)
        port, pool = watched.server.port, iter(numbers.drawn(5 * clients + 200))

        def texts(count: int) -> list[str]:
            return [next(pool) for _ in range(count)]

        left, long, filling, expiring, staying = texts(clients), texts(60), texts(8), texts(clients), texts(STAY)
        load.begin(leaving, port, one(next(pool)), list(map(one, left)), LEAVE, one(next(pool)))
        they_left, last = load.end()
        load.begin(walks_away, port, numbers.native(long), 2.5 * slow)
        gone = load.end()
        time.sleep(2 * slow)
        full = [one(text) for text in filling]
        load.begin(behind, port, full, [numbers.native([text], timeout=DEADLINE) for text in expiring])
        expired, waited = load.end()
        reached, rest = watched.reached(left, they_left + HEARD), watched.reached(long, gone + HEARD)
        over = [at for at in watched.reached(expiring) if at > min(each.sent for each in expired) + DEADLINE + 0.05]
        wasted = (len(reached) + len(rest) + len(over)) / watched.rows()
        load.closed(port, list(map(one, staying)), STAY)
        assert all(answer.good for answer in waited), "who waited patiently got no answer"
        return Cancelled(
            clients,
            len(reached),
            1000 * last.took if last.good else float("inf"),
            len(rest),
            len(expired),
            sum(each.good and each.took > DEADLINE for each in expired),
            sum(each.status not in (503, 504) and not (each.good and each.took <= DEADLINE) for each in expired),
            latency(expired, 0.99),
            len(over),
            wasted,
            len(watched.reached(staying)),
        )


def one(text: str) -> bytes:
    return numbers.native([text])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    args = parser.parse_args()
    with Load(args.client_core) as load:
        found = measure(load, core=args.server_core)
    print("\n".join(f"{each.name:16s} {getattr(found, each.name):10.4g}" for each in fields(found)))


if __name__ == "__main__":
    main()
