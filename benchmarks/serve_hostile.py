"""Clients that are slow, greedy or broken, against a running server, while a good one works (AT-18).

    python benchmarks/serve_hostile.py                  # with the limits that a server has: about a minute
    python benchmarks/serve_hostile.py --quick          # with deadlines of a second or two

Slow ones send a byte now and then: of a header, of a body, or nothing at all. The table says what each got.
"""

import argparse
import asyncio
import json
import re
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import serve_numbers as numbers
from limelight.serving.settings import Limits
from serve_hostile_cases import Case, cases, head, post
from serve_load import Load, closed, latency
from serve_process import Server, limelight

QUICK = Limits(header_seconds=1.0, body_seconds=1.5, idle_seconds=1.0, write_seconds=1.5)
MARGIN = 2.0  # seconds after a deadline
PATIENCE = 20.0
NEVER = "never reads"


@dataclass(frozen=True)
class Row:
    name: str
    wanted: str
    found: str
    ok: bool


@dataclass(frozen=True)
class Survived:
    rows: list[Row]
    failures: int  # answers of 500 and above, except 503
    grown: float  # megabytes, at the highest
    before_p99: float  # milliseconds, of a good client
    meanwhile_p99: float
    same_process: bool

    @property
    def wrong(self) -> list[Row]:
        return [row for row in self.rows if not row.ok]


async def statuses(port: int, raw: bytes, ends: bool = False, most: int = 1) -> list[int]:
    """Of the answers, up to `most`; [] for a connection that was closed without one; [-1] when nothing happened."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    came, found = b"", list[int]()
    try:
        async with asyncio.timeout(PATIENCE):
            writer.write(raw)
            if ends:
                writer.write_eof()
            while len(found) < most and (more := await reader.read(1 << 16)):
                came += more
                found = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", came)]
    except TimeoutError:
        found.append(-1)
    except OSError:  # it was closed while we sent; an answer may have been lost with it
        pass
    finally:
        writer.transport.abort()
    return found


async def judged(port: int, case: Case) -> tuple[Row, list[int]]:
    found = await statuses(port, case.raw, case.ends)
    ok = (found[0] if found else 0) in case.statuses
    return Row(case.name, "/".join(map(str, case.statuses)), str(found[0] if found else "closed"), ok), found


async def until_closed(port: int, begin: bytes, more: bytes, every: float, longest: float) -> float:
    """Seconds until the server has had enough of a client that sends a byte at a time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.monotonic()
    writer.write(begin)
    over = asyncio.create_task(reader.read())  # ends with the connection
    try:
        while not over.done() and time.monotonic() - began < longest:
            if more:
                writer.write(more)
            await asyncio.wait([over], timeout=every)
        return time.monotonic() - began
    finally:
        over.cancel()
        await asyncio.gather(over, return_exceptions=True)
        writer.transport.abort()


async def until_dropped(port: int, longest: float) -> float:
    """Seconds that the server goes on with a client that asks much and never reads, from the last byte that it could get rid of. Such a
    client cannot see it; the system can."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.setblocking(False)
        began = moved = time.monotonic()
        client.send(post("/api/v1/tokenize", json.dumps({"text": "o n e " * 800}).encode()) * 15)
        pair = f"0100007F:{port:04X} 0100007F:{client.getsockname()[1]:04X} 01 ".encode()  # 01: established
        queued = b""
        while time.monotonic() - began < 10 * longest:
            _, there, row = (await asyncio.to_thread(Path("/proc/net/tcp").read_bytes)).partition(pair)
            if not there or time.monotonic() - moved > longest:
                break
            if (now := row.split(b":")[0]) != queued:
                queued, moved = now, time.monotonic()
            await asyncio.sleep(0.1)
        return time.monotonic() - moved


async def slow_rows(port: int, limits: Limits, sockets: int, every: float) -> list[Row]:
    body = head("/translate", "Content-Type: application/json", "Content-Length: 1000")
    kinds: dict[str, tuple[float, Callable[[float], Awaitable[float]]]] = {
        "a byte of the header now and then": (
            limits.header_seconds,
            lambda longest: until_closed(port, b"GET /healthz HTTP/1.1\r\nX-Slow: ", b"x", every, longest),
        ),
        "a byte of the body now and then": (
            limits.body_seconds,
            lambda longest: until_closed(port, body, b" ", every, longest),
        ),
        "silent": (limits.idle_seconds, lambda longest: until_closed(port, b"", b"", every, longest)),
        NEVER: (max(limits.write_seconds, limits.idle_seconds), lambda longest: until_dropped(port, longest)),
    }
    work = {name: [slow(2 * seconds + 10) for _ in range(sockets // 3 if name != NEVER else 3)] for name, (seconds, slow) in kinds.items()}
    found = await asyncio.gather(*(asyncio.gather(*each) for each in work.values()))
    rows = []
    for (name, (seconds, _)), took in zip(kinds.items(), found, strict=True):
        wanted = f"{seconds:g}-{seconds + MARGIN:g} s"
        ok = max(took) <= seconds + MARGIN and (min(took) >= 0.9 * seconds or name == NEVER)
        rows.append(Row(f"{len(took)} sockets: {name}", wanted, f"closed after {min(took):.1f}-{max(took):.1f} s", ok))
    return rows


async def pipelined(port: int) -> tuple[Row, list[int]]:
    """A hundred requests at once on one connection: answered in order, or the connection is closed; never a failure."""
    one = post("/api/v1/translate", b'{"text": "one"}')
    found = await statuses(port, (head("/healthz", method="GET") + one) * 50, most=100)
    return Row("100 requests in one go", "200 each, or closed", f"{found.count(200)} times 200", set(found) <= {200, 503}), found


async def battery(server: Server, limits: Limits, sockets: int, every: float) -> tuple[list[Row], list[int], float]:
    """Rows, all statuses, and the most memory that was seen."""
    highest = server.megabytes

    async def watch() -> None:
        nonlocal highest
        while True:
            highest = max(highest, server.megabytes)
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    slow = asyncio.create_task(slow_rows(server.port, limits, sockets, every))
    rows, seen = [], list[int]()
    for case in cases():
        row, found = await judged(server.port, case)
        rows.append(row)
        seen += found
    row, found = await pipelined(server.port)
    rows += [row, *await slow]
    watching.cancel()
    return rows, [*seen, *found], highest


def measure(server: Server, load: Load, limits: Limits, sockets: int = 500, every: float = 1.0) -> Survived:
    good = [numbers.native([text]) for text in numbers.drawn(200)]
    before = load.closed(server.port, good, 1, 5.0)
    load.closed(server.port, good, 16, 2.0)  # what memory it takes for work
    memory = server.megabytes
    load.begin(closed, server.port, good, 1, max(limits.body_seconds, limits.idle_seconds) + 6, None)
    rows, seen, highest = asyncio.run(battery(server, limits, sockets, every))
    meanwhile = load.end()
    failures = sum(status >= 500 and status != 503 for status in seen)
    lost = len(meanwhile.answers) - len(meanwhile.good)
    rows.append(Row(f"a good client's {len(meanwhile.answers)} requests meanwhile", "0 lost", f"{lost} lost", not lost))
    return Survived(
        rows,
        failures,
        highest - memory,
        latency(before.good, 0.99),
        latency(meanwhile.good, 0.99),
        server.process.poll() is None,
    )


def command(limits: Limits) -> list[str]:
    changed = limits.model_dump(exclude_defaults=True)
    settings = [f"limits.{name}={value}" for name, value in changed.items()]
    return limelight(numbers.BUNDLE, *settings, "--threads", 1, "--no-ui")


def table(found: Survived) -> str:
    rows = [f"{'ok' if row.ok else 'WRONG':5s} {row.name:62s} {row.wanted:22s} {row.found}" for row in found.rows]
    rows.append(f"5xx: {found.failures}   memory: +{found.grown:.1f} MB   alive: {found.same_process}")
    rows.append(f"a good client's p99: {found.before_p99:.1f} ms before, {found.meanwhile_p99:.1f} ms meanwhile")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sockets", type=int, default=500)
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    args = parser.parse_args()
    limits = QUICK if args.quick else Limits()
    with Server(command(limits), args.server_core) as server, Load(args.client_core) as load:
        print(table(measure(server, load, limits, args.sockets, 0.2 if args.quick else 1.0)))


if __name__ == "__main__":
    main()
