"""A wall clock that jumps by days and years, before and under a server and a run (libfaketime; needs Debian's `faketime`).

Monotonic clocks go on as they do in life. What must hold: a server answers, limits and deadlines of minutes stay what they are, a key ends
when its day has come and not before, a month begins anew only when it does; a run saves, stops, goes on and ends with the bits of one
whose clock was right, and keeps its budget.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import serve_numbers
from campaign_journal import Journal
from campaign_request_cases import Request
from campaign_requests import BROKEN, ask, make_key
from serve_process import Server, limelight
from survive_run import Job, differing

LIBRARY = "*/faketime/libfaketimeMT.so.1"
JUMPS = ("-30d", "+3650d", "+0", "-3650d", "+45d", "+0")
JSON = {"Content-Type": "application/json"}


class Clock:
    """One that processes read through a file."""

    def __init__(self, folder: Path, now: str) -> None:
        self.file = folder / "clock"
        self.set(now)
        library = str(next(Path("/usr/lib").glob(LIBRARY)))
        self.variables = {
            "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip

    def set(self, now: str) -> None:
        part = self.file.with_suffix(".part")
        part.write_text(f"{now}\n")
        part.replace(self.file)


def run(journal: Journal, count: int) -> None:
    for number in journal.numbers(min(count, len(CASES))):
        case = CASES[number]
        with tempfile.TemporaryDirectory(prefix="campaign-clock-") as folder:
            try:
                for what in case(Path(folder)):
                    journal.fault(number, f"{case.__name__}: {what}")
            except Exception as error:
                journal.fault(number, f"{case.__name__}: {type(error).__name__}", error=str(error)[-1500:])


def translated(port: int, key: str | None = None, text: str = "three seven one", **more: object) -> tuple[int | str, dict[str, Any]]:
    headers = JSON | ({"X-API-Key": key} if key else {})
    status, body = ask(port, Request("POST", "/api/v1/translate", headers, json.dumps({"text": text, **more}).encode()))
    return status, json.loads(body) if body[:1] == b"{" else {}


def served(folder: Path) -> list[str]:
    """Answers, deadlines, uploads and keys while the clock jumps."""
    wrong, clock = list[str](), Clock(folder, "+0")
    key, file = make_key(folder)
    file.write_text(file.read_text() + "expires = 2027-12-31\nrequests_per_minute = 30\ncharacters_per_month = 100000\n")
    state = folder / "state"
    with Server(limelight(serve_numbers.BUNDLE, "--api-key-file", file, f"state={state}"), environment=clock.variables) as server:
        for jump in JUMPS:
            clock.set(jump)
            status, answer = translated(server.port, key)
            expired = jump == "+3650d"
            if expired != (status in (401, 403)) or (not expired and (status != 200 or answer["results"][0]["text"] != "drei sieben eins")):
                wrong.append(f"{jump}: {status} {str(answer)[:200]}")
            late, _ = translated(server.port, key, "one " * 900, timeout=0.1, beam=16)
            if not expired and late not in (504, 503, 429):
                wrong.append(f"{jump}: a deadline of 0.1 s gave {late}")
        clock.set("+0")
        codes = [translated(server.port, key)[0] for _ in range(40)]
        if 429 not in codes or 200 not in codes:
            wrong.append(f"30 in a minute: {codes}")
        clock.set("+45d")
        if translated(server.port, key)[0] != 429:
            wrong.append("a jump of the clock gave a minute's share anew")
        wrong += upload(server.port, clock)
        server.signal()
        if server.ended(60) != 0:
            wrong.append("did not stop")
        wrong += ["traceback in the log"] if BROKEN.search(server.log) else []
    return wrong


def upload(port: int, clock: Clock) -> list[str]:
    """Whoever has no key is refused whatever the day is."""
    for jump in JUMPS:
        clock.set(jump)
        if translated(port)[0] not in (401, 429):
            return [f"{jump}: without a key {translated(port)[0]}"]
    return []


def kept_files(folder: Path) -> list[str]:
    """A file waits for its quarter of an hour by a clock that does not jump."""
    wrong, clock = list[str](), Clock(folder, "-30d")
    with Server(limelight(serve_numbers.BUNDLE), environment=clock.variables) as server:
        for jump in JUMPS:
            body = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nthree seven one\r\n'
            for name, value in (("source", "en"), ("target", "de")):
                body += f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            headers = {"Content-Type": "multipart/form-data; boundary=B"}
            status, answer = ask(server.port, Request("POST", "/translate_file", headers, body + b"--B--\r\n"))
            clock.set(jump)
            found = re.search(rb"/download_file/[^\"]+", answer)
            got = ask(server.port, Request("GET", found[0].decode(), {}, b"")) if found else (status, answer)
            if got != (200, b"drei sieben eins"):
                wrong.append(f"{jump}: {got}")
    return wrong


def quota(folder: Path) -> list[str]:
    """What a month has used up is not given again by a clock that went back, nor lost by a start in another year."""
    wrong, clock = list[str](), Clock(folder, "+0")
    key, file = make_key(folder)
    file.write_text(file.read_text() + "characters_per_month = 60\n")
    words = limelight(serve_numbers.BUNDLE, "--api-key-file", file, f"state={folder / 'state'}")
    with Server(words, environment=clock.variables) as server:
        spent = [translated(server.port, key)[0] for _ in range(6)]
        if spent[0] != 200 or spent[-1] != 456:
            wrong.append(f"60 characters: {spent}")
    clock.set("+0")
    with Server(words, environment=clock.variables) as server:
        if translated(server.port, key)[0] != 456:
            wrong.append("a restart gave the month anew")
        clock.set("+45d")
        if translated(server.port, key)[0] != 200:
            wrong.append("the next month did not begin")
        clock.set("-3650d")
        translated(server.port, key)
        clock.set("+0")
        status = translated(server.port, key)[0]
        if status not in (200, 456):
            wrong.append(f"back again: {status}")
    return wrong


def trained(folder: Path) -> list[str]:
    """Stopped and gone on with, while the clock jumps between and under. Without planted sleeps, which libfaketime makes fail (EINVAL)."""
    wrong, clock = list[str](), Clock(folder, "-30d")
    straight, job = Job(folder / "straight", 400, 1), Job(folder / "job", 400, 1, faults="", variables=clock.variables)
    try:
        if straight.finish() != 0:
            return [f"the straight run ended with {straight.process.returncode}"]
        for jump, next_jump in (("-30d", "+3650d"), ("+0", "-3650d")):
            clock.set(jump)
            job.start()
            job.wait_for("steps", Random(1))
            clock.set(next_jump)
            saved, until = job.saved, time.monotonic() + 120
            while job.saved == saved and job.process.poll() is None and time.monotonic() < until:
                time.sleep(0.2)
            job.process.send_signal(signal.SIGTERM)
            if (code := job.ended(240)) not in (75, 0):
                wrong.append(f"stopped under {next_jump}: {code}: {job.log[-500:]}")
        clock.set("+45d")
        if (code := job.finish()) != 0:
            wrong.append(f"in the end {code}: {job.log[-500:]}")
        elif (differ := differing(job, straight)) != 0:
            wrong.append(f"{differ} values differ from a run whose clock was right")
        wrong += ["a traceback"] if "Traceback" in (job.folder / "log").read_text() else []
    finally:
        job.close()
        straight.close()
    return wrong


def budget(folder: Path) -> list[str]:
    """A budget is spent by a clock that does not jump."""
    from small_runs import make_corpus

    corpus, clock = make_corpus(folder / "corpus"), Clock(folder, "+0")
    words = [
        sys.executable,
        "-m",
        "limelight",
        "train",
        str(corpus / "numbers.en"),
        str(corpus / "numbers.de"),
        "-o",
        str(folder / "run"),
    ]
    words += ["--budget", "40s", "--plain", "--source", "en", "--target", "de", "data.filters.wrong_language=off"]
    said = folder / "said"
    with said.open("wb") as file:
        process = subprocess.Popen(words, env=os.environ | clock.variables, stdout=file, stderr=file)
    try:
        until = time.monotonic() + 400
        for jump in JUMPS * 100:
            if process.poll() is not None or time.monotonic() > until:
                break
            clock.set(jump)
            time.sleep(5)
    finally:
        if process.poll() is None:
            process.kill()
        code = process.wait()
    told = said.read_text(errors="replace")
    return [f"{code}: {told[-600:]}"] if code or "Traceback" in told else []


CASES: tuple[Callable[[Path], list[str]], ...] = (served, kept_files, quota, trained, budget)
