"""What serving costs: many clients with single sentences against the same sentences as one file, and against one text at a time.

    python benchmarks/serve.py en-de --lines newstest2019.en-de.en.gz --rounds 5 --json serve.json

file            Translator.translate of all lines at once, its own sorting and batches
bare            CTranslate2 and SentencePiece, nothing of ours, all lines in one call (where the bundle has an export)
served          `limelight serve`: 64 clients, each of which sends one line and waits for its answer
one at a time   the pattern of LibreTranslate, with the same clients (serve_one_at_a_time.py)

All on one core, in turns, each in a process of its own; the clients on the other core. Ratios are taken turn by turn, since the speed of
a shared machine moves. Latency: one client alone against Poisson arrivals at half the rate that the 64 clients reached in that turn.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import engines
from contestant import Contestant
from limelight.bundle import read
from limelight.bundle.layout import EXPORT
from limelight.translator.translate import Translator
from serve_client import Answer, request
from serve_load import Load, latency
from serve_process import Server, beside, limelight

FILE, BARE, SERVED, ONE = "file", "bare", "served", "one at a time"
ALONE, HALF = "alone p95", "half load p95"


class File:
    """All lines at once, as the server translates them: sentence by sentence."""

    def __init__(self, folder: str, core: int | None) -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})
        self.translator = Translator.load(folder, threads=1)

    def seconds(self, lines: list[str]) -> float:
        began = time.perf_counter()
        self.translator.translate(lines, segment=True)
        return time.perf_counter() - began


class BareEngine:
    """The engine by itself, on the core of the server."""

    def __init__(self, folder: str, core: int | None, beam: int) -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})
        self.engine = engines.Bare(folder, "", None, 1, beam)

    def seconds(self, lines: list[str]) -> float:
        began = time.perf_counter()
        self.engine.translated(lines, 2048)
        return time.perf_counter() - began


class Field:
    """Everybody who takes part, started once. `ask(name, lines)` gives lines a second."""

    def __init__(
        self,
        folder: Path,
        clients: int,
        server_core: int | None,
        client_core: int | None,
        stack: ExitStack,
        settings: Sequence[str] = (),
        only: Collection[str] = (FILE, BARE, SERVED, ONE),
    ) -> None:
        bundle = read(folder)
        self.clients, self.load = clients, stack.enter_context(Load(client_core))
        self.served = stack.enter_context(Server(limelight(folder, *settings, "--threads", 1, "--no-ui"), server_core))
        if ONE in only:
            self.one = stack.enter_context(Server(beside("serve_one_at_a_time.py", folder), server_core))
        self.files = {FILE: Contestant(File, str(folder), server_core)}
        if BARE in only and (bundle.folder / EXPORT).is_dir():
            self.files[BARE] = Contestant(BareEngine, str(bundle.folder), server_core, bundle.settings.search.beam)
        for contestant in self.files.values():
            stack.callback(contestant.stop)
        self.names = [*self.files, *(name for name in (SERVED, ONE) if name in only)]

    def speed(self, name: str, lines: list[str]) -> float:
        if name in self.files:
            return len(lines) / float(self.files[name].ask("seconds", lines))
        server = self.served if name == SERVED else self.one
        loaded = self.load.closed(server.port, requests(lines), self.clients)
        missing = len(lines) - len(loaded.good)
        assert not missing, f"{missing} of {len(lines)} lines have no translation: {loaded.statuses}"
        return loaded.rate

    def alone(self, lines: list[str]) -> list[Answer]:
        return self.load.closed(self.served.port, requests(lines), 1).good

    def at(self, rate: float, lines: list[str]) -> list[Answer]:
        """Poisson arrivals, about as many as there are lines."""
        return self.load.opened(self.served.port, requests(lines), rate, len(lines) / rate).good


def requests(lines: Sequence[str]) -> list[bytes]:
    return [request("/translate", json.dumps({"q": line, "source": "en", "target": "de", "format": "text"}).encode()) for line in lines]


def measure(field: Field, lines: list[str], rounds: int, one_lines: int, latency_lines: int) -> dict[str, Any]:
    """Lines a second by name and round, and 95th percentiles in milliseconds, unless there are no lines for them. The slow pattern gets
    `one_lines` of the lines."""
    sample, timed = spread(lines, one_lines), spread(lines, latency_lines)
    found: dict[str, Any] = {name: [] for name in field.names}
    found |= {ALONE: [], HALF: []} if timed else {}
    for name in field.names:  # the first calls make kernels
        field.speed(name, sample[:64])
    for _ in range(rounds):
        for name in field.names:
            found[name].append(field.speed(name, sample if name == ONE else lines))
        if timed:
            found[ALONE].append(latency(field.alone(timed), 0.95))
            found[HALF].append(latency(field.at(found[SERVED][-1] / 2, timed), 0.95))
    return found


def spread(lines: list[str], count: int) -> list[str]:
    """So many of them, from everywhere."""
    return lines[:: max(1, len(lines) // count)][:count] if count else []


def ratios(found: dict[str, Any], name: str, to: str) -> list[float]:
    """Round by round."""
    return [a / b for a, b in zip(found[name], found[to], strict=True)]


def table(found: dict[str, Any]) -> str:
    def row(name: str, values: Sequence[float], unit: str) -> str:
        return f"{name:44s} {statistics.median(values):9.2f}  ({min(values):.2f}-{max(values):.2f}) {unit}"

    rows = [row(name, values, "ms" if "p95" in name else "lines/s") for name, values in found.items()]
    for to in (FILE, BARE, ONE):
        if to in found:
            rows.append(row(f"served against {to}", ratios(found, SERVED, to), "times"))
    if HALF in found:
        rows.append(row("p95 at half load against alone", ratios(found, HALF, ALONE), "times"))
    return "\n".join(rows)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path, help="a bundle or a run")
    parser.add_argument("settings", nargs="*", help="of the server, as queue.wait_seconds=60 on a busy machine")
    parser.add_argument("--lines", required=True, help="file of source lines, plain or .gz")
    parser.add_argument("--most", type=int, default=1000, help="lines at most")
    parser.add_argument("--one-lines", type=int, default=200, help="of them for the pattern of one at a time")
    parser.add_argument("--latency-lines", type=int, default=300, help="of them to measure latency with")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser


def main() -> None:
    args = parser().parse_args()
    lines = [line for line in engines.lines_of(args.lines) if line.strip()][: args.most]
    with ExitStack() as stack:
        field = Field(args.bundle, args.clients, args.server_core, args.client_core, stack, args.settings)
        found = measure(field, lines, args.rounds, args.one_lines, args.latency_lines)
    print(table(found))
    if args.json:
        args.json.write_bytes(json.dumps(found, indent=1).encode())


if __name__ == "__main__":
    main()
