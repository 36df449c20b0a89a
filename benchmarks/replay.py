"""Two checkouts answer the same requests, and every answer is compared: status, type and body.

    python benchmarks/replay.py OTHER               2,000 requests to the server of this checkout and to that of OTHER
    python benchmarks/replay.py OTHER --count 200 --seed 3 --bundle en-de

Requests are drawn from the other server's OpenAPI document, a third of them spoilt on purpose, and come one after the other. Left out of
the comparison is what no two runs of one server share either: ids, times, and deadlines, which no request asks for.
"""

import argparse
import json
import os
import re
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random

import serve_numbers
from campaign_request_cases import Maker, Request
from serve_process import Server, limelight

HERE = Path(__file__).parents[1]
PATIENCE = 60.0  # seconds for an answer
SETTINGS = ("queue.timeout_seconds=60",)
TOLD_ID = re.compile(rb'"(?:trace_id|job|document_id|document_key)": ?"([^"]+)"|/download_file/([^"]+)"')
CHANGING = (
    re.compile(rb'"(?:[a-z_]*id|job|document_key|created|started|expires)": ?"[^"]*"'),
    re.compile(rb'"[a-z_]*(?:seconds|time|took|ms|age|uptime|remaining)[a-z_]*": ?[-0-9.e]+'),
    re.compile(rb'"timing_ms": ?\{[^}]*\}'),
    re.compile(rb"(?:http://127\.0\.0\.1:\d+)?/download_file/[^\"]+"),
    re.compile(rb"\b[0-9a-f]{16,64}\b|\b[tj]_[A-Za-z0-9_-]{6,}"),
)
TIMES = re.compile(rb'"timeout": ?[-0-9.e+]+,?|timeout=[^&]*')


@dataclass
class Answer:
    status: int | str
    kind: str
    body: bytes


class Answering:
    """The server of one checkout, and the ids that it told."""

    def __init__(self, checkout: Path, bundle: Path) -> None:
        self.server = Server(limelight(bundle, *SETTINGS), environment={**os.environ, "PYTHONPATH": str(checkout / "src")})
        self.ids: list[str] = []

    def document(self) -> dict[str, object]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.port}/openapi.json", timeout=PATIENCE) as answer:
            return dict(json.load(answer))

    def ask(self, request: Request) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        try:
            connection.request(request.method, request.path, request.body, request.headers)
            got = connection.getresponse()
            body = got.read(1 << 24)
            self.ids += [(one or other).decode() for one, other in TOLD_ID.findall(body)]
            return Answer(got.status, got.headers.get("Content-Type", ""), body)
        except (OSError, HTTPException, ValueError) as error:
            return Answer(type(error).__name__, "", b"")
        finally:
            connection.close()


def draw(maker: Maker, ids: list[str], name: str) -> Request:
    """The same for both servers but for ids, of which each told as many as the other."""
    maker.ids[5:] = ids[-20:]
    request = maker.request(Random(name), jobs=False)
    return replace(request, body=TIMES.sub(b"", request.body), path=re.sub(r"timeout=[^&]*", "", request.path))


def without_chance(body: bytes) -> bytes:
    for pattern in CHANGING:
        body = pattern.sub(b"", body)
    return body


def compare(one: Answer, other: Answer) -> str | None:
    """What differs."""
    if one.status != other.status:
        return f"status {other.status} -> {one.status}"
    if one.kind != other.kind:
        return f"type {other.kind} -> {one.kind}"
    if without_chance(one.body) != without_chance(other.body):
        return "body"
    return None


def replay(ours: Answering, theirs: Answering, count: int, seed: int) -> int:
    document = theirs.document()
    makers, statuses, differing = (Maker(document, None), Maker(document, None)), Counter[int | str](), 0
    began = time.monotonic()
    for number in range(count):
        name = f"{seed}/{number}"
        request = draw(makers[0], ours.ids, name)
        now, before = ours.ask(request), theirs.ask(draw(makers[1], theirs.ids, name))
        statuses[before.status] += 1
        difference = compare(now, before)
        if difference:
            differing += 1
            asked = f"{request.method} {request.path[:200]} {request.body[:300]!r}"
            bodies = {"before": repr(before.body[:600]), "now": repr(now.body[:600])}
            print(json.dumps({"number": number, "differs": difference, "request": asked, **bodies}), flush=True)
        if number % 100 == 99:
            took = time.monotonic() - began
            print(f"{number + 1} of {count}, {differing} differ, {took:.0f} s", file=sys.stderr, flush=True)
    print(json.dumps({"requests": count, "differing": differing, "statuses": {str(k): v for k, v in statuses.most_common()}}))
    return differing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bundle", type=Path, default=serve_numbers.BUNDLE)
    options = parser.parse_args()
    ours, theirs = Answering(HERE, options.bundle), Answering(options.other, options.bundle)
    try:
        sys.exit(1 if replay(ours, theirs, options.count, options.seed) else 0)
    finally:
        ours.server.stop()
        theirs.server.stop()


if __name__ == "__main__":
    main()
