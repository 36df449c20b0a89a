"""A server that is told to stop loses nothing that it was sent before (AT-06).

    python benchmarks/serve_drain.py --rounds 20

Each round: a new server, ten clients in a closed loop with requests of 1 to 60 sentences, SIGTERM at a random moment, and clients that go
on for five seconds.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))
import serve_numbers as numbers
from limelight.translator import Translator
from serve_client import CUT, REFUSED, Answer, request
from serve_load import Load, Loaded, closed
from serve_process import Server, limelight

READY = request("/readyz")
CLOSE = 0.005  # seconds before the signal: what was sent later may or may not have been sent before it


@dataclass(frozen=True)
class Drained:
    """One round, or the sum of several; of times the worst."""

    rounds: int
    before: int  # requests that were sent before the signal
    lost: int  # of them, without the right answer
    later: int
    cut: int  # of the later ones, answers that ended in the middle
    odd: int  # of the later ones, neither right nor refused as it should be
    silent: int  # of the later ones, connections that were closed without a word
    unready: float  # milliseconds until /readyz says so
    exit_seconds: float
    wrong_exits: int  # not 0, or after more than the limit

    def __add__(self, other: "Drained") -> "Drained":
        worst = ("unready", "exit_seconds")
        values = {each.name: (getattr(self, each.name), getattr(other, each.name)) for each in fields(self)}
        return Drained(**{name: max(both) if name in worst else sum(both) for name, both in values.items()})


class Asked:
    """Requests with their right answers, which the same bundle gave for each text alone."""

    def __init__(self, count: int, longest: int, seed: int = 1) -> None:
        random, pool = Random(seed), numbers.drawn(300, seed)
        with Translator.load(numbers.BUNDLE, threads=1) as translator:
            right = dict(zip(pool, (one.text for one in translator.translate(pool, segment=True)), strict=True))
        self.texts = [random.choices(pool, k=random.randint(1, longest)) for _ in range(count)]
        self.requests = [numbers.native(texts) for texts in self.texts]
        self.right = [[right[text] for text in texts] for texts in self.texts]

    def holds(self, answer: Answer) -> bool:
        return answer.good and numbers.translations(answer) == self.right[answer.number]


def round_(asked: Asked, load: Load, before: float, after: float, limit: float, core: int | None) -> Drained:
    """SIGTERM `before` seconds after the first request; clients go on for `after` more."""
    serve = limelight(numbers.BUNDLE, "--threads", 1, "--no-ui", f"drain_seconds={limit:g}")
    with Server(serve, core) as server:
        load.begin(closed, server.port, asked.requests, 10, before + after, READY)
        time.sleep(before)
        signalled = server.signal()
        code = server.ended(limit + 10)
        took = time.monotonic() - signalled
        return judged(asked, load.end(), signalled, took, code, limit)


def judged(asked: Asked, loaded: Loaded, signalled: float, took: float, code: int | None, limit: float) -> Drained:
    earlier = [answer for answer in loaded.answers if answer.sent < signalled - CLOSE]
    later = [answer for answer in loaded.answers if answer.sent > signalled]
    unready = [each.sent + each.took - signalled for each in loaded.probes if each.sent > signalled and not each.good]
    odd = [answer for answer in later if not (answer.lost or asked.holds(answer) or (answer.status == 503 and answer.retry_after))]
    return Drained(
        1,
        len(earlier),
        sum(not asked.holds(answer) for answer in earlier),
        len(later),
        sum(answer.lost == CUT for answer in later),
        len(odd),
        sum(answer.lost not in (None, REFUSED, CUT) for answer in later),
        1000 * min(unready, default=float("inf")),
        took,
        int(code != 0 or took > limit + 2),
    )


def drain(
    rounds: int, load: Load, *, count: int = 400, longest: int = 60, moments: Sequence[float] = (0.5, 3.0),
    after: float = 5.0, limit: float = 30.0, core: int | None = None, seed: int = 1,
) -> Drained:  # fmt: skip
    asked, random = Asked(count, longest), Random(seed)
    found = [round_(asked, load, random.uniform(*moments), after, limit, core) for _ in range(rounds)]
    return sum(found[1:], found[0])


def second_signal(load: Load, core: int | None = None) -> float:
    """Seconds from the second SIGTERM to the end, with much under way."""
    asked = Asked(20, 120)
    with Server(limelight(numbers.BUNDLE, "--threads", 1, "--no-ui", "queue.wait_seconds=60"), core) as server:
        load.begin(closed, server.port, asked.requests, 20, 2.0, None)
        time.sleep(0.5)
        server.signal()
        time.sleep(0.3)
        second = server.signal()
        server.ended(60)
        took = time.monotonic() - second
        load.end()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    args = parser.parse_args()
    with Load(args.client_core) as load:
        print(json.dumps(vars(drain(args.rounds, load, core=args.server_core)), indent=1))
        print(f"second SIGTERM: ended after {second_signal(load, args.server_core):.2f} s")


if __name__ == "__main__":
    main()
