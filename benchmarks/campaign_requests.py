"""Requests that nobody would send, to two real servers, one with keys and one without, while /healthz is asked all the time.

What must hold: no status of 500 or more but 503 and 504 with their reasons; /healthz within a second of what the control takes; no
traceback and nothing of what was sent in the logs; flat memory; quiet within seconds after a 504; right at the end; and a clean stop.
"""

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from typing import Any

import serve_numbers
from campaign_journal import Journal
from campaign_probe import Probe
from campaign_request_cases import CANARY, Maker, Request
from serve_process import Server, limelight

ROUND, WORKERS = 200, 6
PATIENCE = 60.0  # seconds for an answer on a busy machine
LATE = 3.0  # seconds by which an answer may miss its deadline, and more where the control was slow
QUIET, WATCHED = 0.4, 1.5  # seconds of CPU, in so many seconds, after the last answer
GROWTH = 120.0  # megabytes over what it has after some rounds
SETTINGS = ("queue.timeout_seconds=8", "--metrics")
BROKEN = re.compile(rb"Traceback|File \"/")


@dataclass
class Target:
    name: str
    server: Server
    maker: Maker
    memory: list[float] = field(default_factory=list)


def run(journal: Journal, count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="campaign-") as place:
        key, file = make_key(Path(place))
        with Server(limelight(serve_numbers.BUNDLE, *SETTINGS)) as free, Server(limelight(serve_numbers.BUNDLE, *SETTINGS, "--api-key-file", file)) as locked:  # fmt: skip
            targets = [
                Target("open", free, Maker(_document(free, None), None)),
                Target("keys", locked, Maker(_document(locked, key), key)),
            ]
            with Probe({each.name: each.server.port for each in targets}) as probe:
                attack(journal, count, targets, probe)
            for target in targets:
                end(journal, target)


def make_key(place: Path) -> tuple[str, Path]:
    file = place / "keys.toml"
    words = [sys.executable, "-m", "limelight", "serve", "--make-key", "campaign", "--api-key-file", str(file)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[-1], file


def attack(journal: Journal, count: int, targets: list[Target], probe: Probe) -> None:
    for number in journal.numbers(count, ROUND):
        this = Round(journal, targets, probe, list(range(number, min(number + ROUND, count))))
        threads = [threading.Thread(target=this.work) for _ in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for freeze in probe.freezes():
            near = {one: shown(request) for one, (request, at) in this.sent.items() if freeze.at - 5 < at < freeze.at + freeze.seconds}
            journal.fault(number, "freeze", **freeze.__dict__, requests=near)
        slowest = {name: round(1000 * took) for name, took in probe.slowest().items()}
        for name, took in slowest.items():
            what = f"slowest /healthz of {name}, ms"
            journal.counts[what] = max(journal.counts[what], took)
        probe.seen.clear()
        judge_round(journal, number, targets, this.late)


@dataclass
class Round:
    """Some requests, of several clients at once."""

    journal: Journal
    targets: list[Target]
    probe: Probe
    waiting: list[int]
    lock: threading.Lock = field(default_factory=threading.Lock)
    sent: dict[int, tuple[Request, float]] = field(default_factory=dict)
    late: list[int] = field(default_factory=list)

    def work(self) -> None:
        while True:
            with self.lock:
                if not self.waiting:
                    return
                one = self.waiting.pop()
            target = self.targets[one % 2]
            request = target.maker.request(Random(f"{self.journal.seed}/{one}"), jobs=(one // ROUND) % 4 == 0)
            began = time.monotonic()
            self.sent[one] = request, began
            status, body = ask(target.server.port, request)
            with self.lock:
                judge(self.journal, one, target, request, status, body, time.monotonic() - began, self.probe)
                self.late += [one] if status == 504 else []


def ask(port: int, request: Request) -> tuple[int | str, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(request.method, request.path, request.body, request.headers)
        answer = connection.getresponse()
        return answer.status, answer.read(1 << 22)
    except (OSError, HTTPException, ValueError) as error:
        return type(error).__name__, b""
    finally:
        connection.close()


def judge(
    journal: Journal,
    number: int,
    target: Target,
    request: Request,
    status: int | str,
    body: bytes,
    took: float,
    probe: Probe,
) -> None:
    journal.counts[str(status)] += 1
    facts: dict[str, Any] = {
        "server": target.name,
        "status": status,
        "took": round(took, 2),
        "request": shown(request),
        "answer": repr(body[:400]),
    }
    if isinstance(status, str) and status not in ("BrokenPipeError", "InvalidURL", "UnicodeEncodeError", "ValueError"):
        journal.fault(number, f"no answer: {status}", **facts)
    elif isinstance(status, int) and status >= 500 and not (status in (503, 504) and len(body) > 20):
        journal.fault(number, f"status {status}", **facts)
    slack = LATE + 4 * probe.slowest()["control"]
    if request.timeout is not None and took > request.timeout + slack:
        journal.fault(number, "long after its deadline", **facts)
    if status in (200, 202) and body[:1] == b"{":
        target.maker.ids[5:] = [
            *target.maker.ids[5:],
            *re.findall(r'"(?:trace_id|job|document_id)": ?"([^"]+)"', body.decode("utf-8", "replace")),
        ][-40:]
        target.maker.ids += re.findall(r"/download_file/([^\"]+)\"", body.decode("utf-8", "replace"))


def judge_round(journal: Journal, number: int, targets: list[Target], late: list[int]) -> None:
    time.sleep(1.0)
    before = [target.server.cpu_seconds for target in targets]
    time.sleep(WATCHED)
    for target, was in zip(targets, before, strict=True):
        if target.server.process.poll() is not None:
            journal.fault(
                number,
                "the server is gone",
                server=target.name,
                log=target.server.log[-2000:].decode("utf-8", "replace"),
            )
            raise SystemExit(1)
        spent = target.server.cpu_seconds - was
        if spent > QUIET and (number // ROUND) % 4:
            journal.fault(number, "busy after all is answered", server=target.name, seconds=round(spent, 2), late=late)
        target.memory.append(round(target.server.megabytes))
        if len(target.memory) > 5 and target.memory[-1] > target.memory[4] + GROWTH:
            journal.fault(number, "memory grows", server=target.name, megabytes=target.memory)


def end(journal: Journal, target: Target) -> None:
    port, text = target.server.port, "three seven one"
    headers = {"Content-Type": "application/json"} | ({"X-API-Key": target.maker.key} if target.maker.key else {})
    status, body = ask(port, Request("POST", "/api/v1/translate", headers, json.dumps({"text": text}).encode()))
    if status != 200 or json.loads(body)["results"][0]["text"] != serve_numbers.in_german(text):
        journal.fault(journal.done, "wrong at the end", server=target.name, status=status, answer=repr(body[:400]))
    target.server.signal()
    code = target.server.ended(60)
    if code != 0:
        journal.fault(journal.done, "does not stop", server=target.name, code=code)
    log = target.server.log
    if BROKEN.search(log):
        journal.fault(journal.done, "traceback in the log", server=target.name, log=log[max(0, BROKEN.search(log).start() - 200) :][:1500].decode("utf-8", "replace"))  # type: ignore[union-attr]  # fmt: skip
    if CANARY.encode() in log.lower():
        at = log.lower().index(CANARY.encode())
        journal.fault(
            journal.done,
            "sent text in the log",
            server=target.name,
            log=log[max(0, at - 300) : at + 200].decode("utf-8", "replace"),
        )
    journal.counts[f"MB of {target.name} at first"], journal.counts[f"MB of {target.name} at last"] = (
        (int(target.memory[0]), int(target.memory[-1])) if target.memory else (0, 0)
    )


def shown(request: Request) -> str:
    return f"{request.method} {request.path[:300]} {request.headers.get('Content-Type', '')} {request.body[:1500]!r}"


def _document(server: Server, key: str | None) -> dict[str, Any]:
    asked = urllib.request.Request(f"http://127.0.0.1:{server.port}/openapi.json", headers={"X-API-Key": key} if key else {})
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        found: dict[str, Any] = json.load(answer)
        return found
