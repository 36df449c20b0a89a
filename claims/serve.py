"""What the docs state about serving: single sentences of many clients nearly as fast as a file, overload refused at once, nothing lost when
it stops, no answer to the wrong request, nothing translated for nobody, hostile clients, keys, and logs without a word of a user's.

make claim-serve                under a minute on 2 quiet cores: speed with random weights, answers to the wrong request, cancellation
make claim-serve FULL=1         all of it, about 40 minutes, and quiet: the server has one core, its clients the other. LIMELIGHT_SERVED may
                                name a bundle, English to German, to measure speed with

Reads newstest2019 from the folder that LIMELIGHT_DATA names.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims")]

import serve as speed
import serve_canaries as canaries
import serve_cancel as cancel
import serve_crossovers as crossovers
import serve_drain as draining
import serve_exposure as exposure
import serve_hostile as hostile
import serve_numbers as numbers
import serve_overload as flood
from claim import Claims, run
from engines import lines_of
from limelight.serving.settings import Limits, QueueSettings
from serve_bundle import plain, random_bundle
from serve_load import Load
from serve_process import Server, limelight

NEWS = Path(os.environ.get("LIMELIGHT_DATA", "."), "wmt-news", "newstest2019.en-de.en.gz")
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = (CORES[0], CORES[-1]) if len(CORES) > 1 else (None, None)
BATCH = 2.0  # seconds that a batch may take, after the wait in the queue


def fast(claims: Claims, work: Path, full: bool) -> None:
    """Throughput and latency, and then AT-07."""
    lines = plain(lines_of(str(NEWS)))
    given = os.environ.get("LIMELIGHT_SERVED") if full else None
    bundle = Path(given) if given else random_bundle(work / "random", lines, "small" if full else "tiny")
    with ExitStack() as stack:
        only = (speed.FILE, speed.BARE, speed.SERVED, speed.ONE) if full else (speed.FILE, speed.SERVED)
        field = speed.Field(bundle, 64, SERVER_CORE, CLIENT_CORE, stack, ("queue.wait_seconds=60",), only)
        found = speed.measure(field, *(lines[:1000], 5, 200, 300) if full else (lines[:64], 1, 16, 0))
        sys.stdout.write(speed.table(found) + "\n")
        against = {name: statistics.median(speed.ratios(found, speed.SERVED, name)) for name in field.names}
        claims.at_least("64 clients with single sentences: of the speed of a file", against[speed.FILE], 0.85)
        if full:
            claims.at_least("... times the speed of one text at a time", against[speed.ONE], 1.5)
            claims.note("... of the speed of CTranslate2 alone", against.get(speed.BARE, float("nan")))
            half = statistics.median(speed.ratios(found, speed.HALF, speed.ALONE))
            claims.at_most("p95 at half load, times that of one client alone", half, 2)
    with Server(limelight(bundle, "--threads", 1, "--no-ui"), SERVER_CORE) as server, Load(CLIENT_CORE) as load:
        overloaded(claims, server, load, speed.requests(lines), full)


def overloaded(claims: Claims, server: Server, load: Load, asked: list[bytes], full: bool) -> None:
    """AT-07, with the settings that a server has by default."""
    seconds = {"warm": 20.0, "seconds": 60.0} if full else {"warm": 1.5, "seconds": 5.0, "relief": 0.5}
    found = flood.overload(server, load, asked, 64, **seconds)
    claims.note("requests a second that it can do", found.capacity)
    claims.at_least("three times as many offered: goodput, of what it can do", found.goodput, 0.9 if full else 0.8)
    claims.at_least("... refused", found.refused, 1)
    claims.at_most("... p99 of refusals, ms", found.refusals_p99, 100)
    claims.at_most("... p99 of what was let in, ms", found.accepted_p99, 1000 * (QueueSettings().wait_seconds + BATCH))
    claims.at_most("... p99 of /healthz, ms", found.healthz_p99, 200)
    claims.at_most("... answers that are neither good nor say when to come again", found.other, 0)
    claims.at_most("... connections that ended without an answer", found.lost, 0)
    claims.at_most("... memory grown, MB", found.grown, 64)
    if full:
        claims.at_most("5 s after it: p95, times that of before", found.after_p95 / found.before_p95, 1.1)
        soaked = flood.soak(server, load, asked, 0.7 * found.capacity, 600)
        claims.at_most(f"10 minutes at 0.7 of it: errors, of {soaked.requests} requests", soaked.errors, 0)
        claims.at_most("... memory grown in the second half, MB a minute", soaked.slope, 1)
        claims.at_most("... descriptors more", soaked.descriptors, 2)
        claims.at_most("... threads more", soaked.threads, 2)


def drained(claims: Claims, load: Load, full: bool) -> None:
    """AT-06."""
    short = {"moments": (0.5, 1.5), "after": 1.5}
    found = draining.drain(20, load, core=SERVER_CORE) if full else draining.drain(1, load, **short)
    claims.at_least("SIGTERM: requests sent before it", found.before, 2000 if full else 5)
    claims.at_most(f"... lost, in {found.rounds} rounds", found.lost, 0)
    claims.at_most(f"... of {found.later} later ones cut in the middle", found.cut, 0)
    claims.at_most("... neither right nor refused as they should be", found.odd, 0)
    claims.note("... closed without a word", found.silent)
    claims.at_most("... exits that were late or not 0", found.wrong_exits, 0)
    if full:
        claims.at_most("... ms until /readyz says so", found.unready, 100)
        claims.at_most("a second SIGTERM: seconds until it ends", draining.second_signal(load, SERVER_CORE), 4)


def crossed(claims: Claims, load: Load, full: bool) -> None:
    """AT-16 over HTTP."""
    count = 10_000 if full else 300
    serve = limelight(numbers.BUNDLE, "--threads", len(CORES), "--no-ui", "queue.wait_seconds=60")
    with Server(serve) as server:
        found = crossovers.measure(server, load, count, 16)
    claims.at_most(f"answers to somebody else, of {count} at 16 at a time", found.crossed, 0)
    claims.at_most("... that are wrong, or missing", found.wrong + found.lost, 0)
    texts = numbers.drawn(50)
    swapped = [numbers.in_german(text) for text in (texts[1], texts[0], *texts[2:])]
    control = crossovers.judge(texts, list(swapped), numbers.in_german)
    claims.at_least("... two that changed places are found (control)", control.crossed, 2)


def cancelled(claims: Claims, load: Load, full: bool) -> None:
    """AT-23."""
    found = cancel.measure(load, 100, core=SERVER_CORE) if full else cancel.measure(load, 20, slow=0.6)
    claims.at_most(f"{found.clients} clients leave: their sentences that reach the engine", found.reached, 0)
    claims.at_most("... of a long request, after its client left", found.long_rest, 0)
    claims.at_least(f"... of {cancel.STAY} clients that stay (control)", found.stayed, cancel.STAY)
    claims.at_most(f"{found.deadlines} deadlines missed: answers that come late", found.late_good, 0)
    claims.at_most("... that are neither 504 nor refused at once", found.not_504, 0)
    claims.at_most("work for nobody, % of the engine's", 100 * found.wasted, 10)
    if full:
        claims.at_most("deadline of 200 ms: p99 of the answer that it is over, ms", found.expired_p99, 250)
        claims.at_most("a slot is free after, ms (batches of 300)", found.freed, 650)


def besieged(claims: Claims, load: Load, full: bool) -> None:
    """AT-18."""
    limits, sockets = (Limits(), 500) if full else (hostile.QUICK, 30)
    with Server(hostile.command(limits), SERVER_CORE if full else None) as server:
        found = hostile.measure(server, load, limits, sockets, 1.0 if full else 0.2)
    if full or found.wrong:
        sys.stdout.write(hostile.table(found) + "\n")
    claims.at_most(f"hostile clients, {len(found.rows)} kinds: not answered as they should be", len(found.wrong), 0)
    claims.at_most("... answers of 5xx", found.failures, 0)
    claims.at_least("... the server lives", found.same_process, 1)
    if full:
        claims.at_most("... memory grown, MB", found.grown, 32)
        claims.at_most("... p99 of a good client, times that of before", found.meanwhile_p99 / found.before_p99, 2)


def private(claims: Claims, load: Load, full: bool) -> None:
    """AT-24, the part of logs."""
    found = canaries.measure(load, 1000 if full else 2 * len(canaries.WAYS))
    claims.at_most(f"words of users in logs, metrics and files, of {found.requests} ({found.where})", found.leaks, 0)
    claims.at_least("... planted ones are found (control)", found.control, 2)
    claims.at_least("... requests that failed on purpose", found.failed_on_purpose, 5)
    claims.at_most("... requests without their line in the log", abs(found.lines_missing), 0)
    claims.at_most("... lines that are no JSON", found.lines_broken, 0)
    claims.at_most("... files left behind", found.files_left, 0)


def exposed(claims: Claims, load: Load, full: bool) -> None:
    """AT-08."""
    found = exposure.matrix(load)
    claims.at_most(f"{found.cells} of route, method and key: let in without a key", len(found.let_in), 0)
    claims.at_most("... shut out with one", len(found.shut_out), 0)
    claims.at_least("... answer where no key is asked for (control)", found.control, 10)
    claims.at_least("listening wide without a key is refused", "--api-key-file" in exposure.listens_wide(), 1)
    if full:
        claims.at_most("time of a wrong key against a nearly right one, t", exposure.timing(10_000), 4.5)


def fuzzed(claims: Claims, wanted: int) -> None:
    """AT-19."""
    small = ("limits.characters=120", "limits.texts=3", "limits.terms=3")
    with Server(limelight(numbers.BUNDLE, *small, "--threads", len(CORES), "--no-ui")) as server:
        script, address = ROOT / "tests" / "serving" / "fuzzing.py", f"http://127.0.0.1:{server.port}"
        done = subprocess.run([sys.executable, script, address, str(wanted)], capture_output=True, check=False)
        report = json.loads(done.stdout)
        claims.at_least("requests drawn from our own document", report["requests"], 0.9 * wanted)
        claims.at_most("... problems with their answers", len(report["problems"]), 0)
        claims.at_most("... largest status", max(map(int, report["statuses"])), 499)
        claims.at_least("... the server lives", server.process.poll() is None, 1)


def tested(claims: Claims, name: str, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", *words], cwd=ROOT, capture_output=True, check=False)
    claims.ended_well(f"{name}: failures", done.returncode)


def measure(claims: Claims, full: bool) -> None:
    if not NEWS.is_file():
        sys.exit("LIMELIGHT_DATA must name the folder with wmt-news/newstest2019.en-de.en.gz")
    with tempfile.TemporaryDirectory() as place:
        fast(claims, Path(place), full)
    parts = (crossed, drained, cancelled, besieged, private, exposed)
    if full:
        with Load(CLIENT_CORE) as load:
            for part in parts:
                part(claims, load, full)
        fuzzed(claims, 5000)
        tested(claims, "real clients, and everything about serving", "tests/serving", "-m", "slow or not slow")
    else:  # these count, and time nothing, so they may share the cores; the others are among the tests
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(apart, (crossed, cancelled)):
                for name, values in found:
                    getattr(claims, name)(*values)


def apart(part: Callable[[Claims, Load, bool], None]) -> list[tuple[str, tuple[Any, ...]]]:
    """What one part states, to be printed when those before it have been."""
    stated: list[tuple[str, tuple[Any, ...]]] = []

    class Later(Claims):
        def __getattribute__(self, name: str) -> Any:
            return lambda *values: stated.append((name, values))

    with Load() as load:
        part(Later(), load, False)
    return stated


if __name__ == "__main__":
    run(measure, __doc__)
