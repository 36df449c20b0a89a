"""Three times more than the server can do, and then for a long time a little less than it can do (AT-07).

    python benchmarks/serve_overload.py en-de --lines newstest.en.gz --seconds 60
    python benchmarks/serve_overload.py en-de --lines newstest.en.gz --soak 600

C, the capacity, is what clients in a closed loop get out of it. Then requests arrive by chance, whatever the server does with them: half of
C as a baseline, three times C, and half of C again, the same requests at the same times as for the baseline.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import engines
from serve import requests
from serve_client import Answer, request
from serve_load import Load, Loaded, latency, opened
from serve_process import Server, limelight

ALIVE = request("/healthz")
TIMES = 3.0  # what the server can do
RELIEF = 5.0  # seconds after which everything is as it was


@dataclass(frozen=True)
class Overloaded:
    """Times in milliseconds."""

    capacity: float  # requests a second
    offered: float  # times the capacity
    goodput: float  # of the capacity
    refused: int
    refusals_p99: float
    accepted_p99: float
    healthz_p99: float
    other: int  # answers that are neither good nor a refusal that says when to come again
    lost: int  # connections that ended without a whole answer
    grown: float  # megabytes
    before_p95: float  # at half load
    after_p95: float  # at half load again, from `RELIEF` seconds on
    clients_cpu: float  # of a core


def overload(
    server: Server,
    load: Load,
    asked: Sequence[bytes],
    clients: int,
    warm: float,
    seconds: float,
    relief: float = RELIEF,
) -> Overloaded:
    """`warm` seconds for the capacity and for each half load, beside the seconds in which things calm down."""
    capacity = load.closed(server.port, asked, clients, warm).rate
    before = load.opened(server.port, asked, capacity / 2, relief + warm)
    memory = server.megabytes
    flood = load.opened(server.port, asked, TIMES * capacity, seconds, ALIVE)
    grown = server.megabytes - memory
    after = load.opened(server.port, asked, capacity / 2, relief + warm)
    refusals = [answer for answer in flood.answers if _refusal(answer)]
    lost = [answer for each in (before, flood, after) for answer in each.answers if answer.lost]
    other = [answer for answer in flood.answers if not (answer.good or _refusal(answer) or answer.lost)]
    return Overloaded(
        capacity,
        len(flood.answers) / flood.seconds / capacity,
        good_rate(flood) / capacity,
        len(refusals),
        latency(refusals, 0.99),
        latency(flood.good, 0.99),
        latency(flood.probes, 0.99),
        len(other) + sum(not answer.good for answer in flood.probes),
        len(lost),
        grown,
        latency(_from(before, relief), 0.95),
        latency(_from(after, relief), 0.95),
        flood.cpu,
    )


def _refusal(answer: Answer) -> bool:
    return answer.status in (429, 503) and (answer.retry_after or "").isdigit()


def good_rate(loaded: Loaded) -> float:
    """Good answers a second that came while requests were sent."""
    began = min(answer.sent for answer in loaded.answers)
    return sum(answer.sent + answer.took <= began + loaded.seconds for answer in loaded.good) / loaded.seconds


def _from(loaded: Loaded, seconds: float) -> list[Answer]:
    began = min(answer.sent for answer in loaded.answers)
    return [answer for answer in loaded.good if answer.sent >= began + seconds]


@dataclass(frozen=True)
class Soaked:
    seconds: float
    requests: int
    errors: int  # refused, lost or failed
    slope: float  # megabytes a minute, in the second half
    descriptors: int  # more than at the beginning
    threads: int
    p99: float  # milliseconds


def soak(server: Server, load: Load, asked: Sequence[bytes], rate: float, seconds: float) -> Soaked:
    """There are no workers to recycle: one process, which must not grow."""
    load.closed(server.port, asked[:64], 8)
    before = (server.descriptors, server.threads)
    load.begin(opened, server.port, asked, rate, seconds, None, 30.0, 2)
    began, seen = time.monotonic(), list[tuple[float, float]]()
    while not load.over(seconds / 200):
        seen.append(((time.monotonic() - began) / 60, server.megabytes))
    loaded: Loaded = load.end()
    time.sleep(1.0)  # connections that the clients left are closed
    late = np.array([(at, size) for at, size in seen if at * 60 >= seconds / 2])
    slope = float(np.polyfit(late[:, 0], late[:, 1], 1)[0])
    more = [now - then for now, then in zip((server.descriptors, server.threads), before, strict=True)]
    errors = len(loaded.answers) - len(loaded.good)
    return Soaked(seconds, len(loaded.answers), errors, slope, more[0], more[1], latency(loaded.good, 0.99))


def told(found: Overloaded | Soaked) -> str:
    return "\n".join(f"{each.name:14s} {getattr(found, each.name):10.4g}" for each in fields(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--lines", required=True, help="file of source lines, plain or .gz")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--warm", type=float, default=20.0, help="seconds for the capacity, and for each half load")
    parser.add_argument("--seconds", type=float, default=60.0, help="of three times the capacity")
    parser.add_argument("--soak", type=float, help="seconds at 0.7 of the capacity, instead of the overload")
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    args = parser.parse_args()
    asked = requests([line for line in engines.lines_of(args.lines) if line.strip()])
    serve = limelight(args.bundle, "--threads", 1, "--no-ui")
    with Server(serve, args.server_core) as server, Load(args.client_core) as load:
        if args.soak is None:
            print(told(overload(server, load, asked, args.clients, args.warm, args.seconds)))
        else:
            capacity = load.closed(server.port, asked, args.clients, args.warm).rate
            print(told(soak(server, load, asked, 0.7 * capacity, args.soak)))


if __name__ == "__main__":
    main()
