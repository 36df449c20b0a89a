"""Translating on a cluster of two nodes beside one process: lines per second and start-up; and what is killed at random moments.

python benchmarks/ray_translate.py lines --lines 1000000           one process with two threads, then two nodes with a core each, in turn
python benchmarks/ray_translate.py faults --runs 20 --lines 20000  each run loses a node or a process: equal output, or an error in time

The nodes are raylets of this machine. Lines are number words, and the translator is the repository's own, unless --bundle names one.
A busy machine may need RAY_raylet_start_wait_time_s=300 to start a node.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

ROOT = Path(__file__).parents[1]
NODES = 2
IN_TIME = 120.0  # seconds from a fault to an error
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Nodes:
    """A cluster whose head has no core, so that all work is on nodes that can be lost."""

    def __init__(self) -> None:
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        self.alive: list[Any] = []
        self.fill()

    def fill(self) -> None:
        while len(self.alive) < NODES:
            self.alive.append(self.cluster.add_node(num_cpus=1))

    def lose_node(self, draw: random.Random) -> str:
        self.cluster.remove_node(self.alive.pop(draw.randrange(len(self.alive))), allow_graceful=False)
        return "node"

    def lose_process(self, draw: random.Random) -> str:
        """One of those that translate, if there is one by now."""
        raylets = {str(each.process.pid) for node in self.alive for each in node.all_processes["raylet"]}
        found = [number for number, parent, name in list_processes() if parent in raylets and name.startswith("ray::translate_shard")]
        if found:
            os.kill(draw.choice(found), signal.SIGKILL)
        return "process" if found else "nothing"


def list_processes() -> Iterator[tuple[int, str, str]]:
    """Number, parent and name of each."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = (place / "stat").read_text("utf-8").rpartition(")")[2].split()[1]
            yield int(place.name), parent, (place / "cmdline").read_text("utf-8", errors="replace")
        except OSError:  # it has ended
            continue


@contextmanager
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    try:
        yield made
    finally:
        made.cluster.shutdown()


def write_lines(path: Path, count: int) -> None:
    draw = random.Random(1)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{' '.join(draw.choices(WORDS, k=draw.randint(1, 6)))}\n" for _ in range(count))


def begin(bundle: Path, given: Path, output: Path, address: str | None, log: Path) -> subprocess.Popen[bytes]:
    own = ["--threads", str(NODES)] if address is None else ["--threads", "1", "--cluster", "ray"]
    words = [sys.executable, "-m", "limelight", "translate", str(bundle), "-i", str(given), "-o", str(output), *own]
    with log.open("wb") as told:
        return subprocess.Popen(words, stderr=told, env=os.environ | ({"RAY_ADDRESS": address} if address else {}))


def measure(*given: Any) -> float:
    began = time.monotonic()
    if code := begin(*given).wait():
        sys.exit(f"translating ended with {code}: {given[-1].read_text('utf-8')}")
    return time.monotonic() - began


def compare_speeds(bundle: Path, count: int, work: Path) -> None:
    write_lines(work / "text", count)
    write_lines(work / "line", 1)
    began = time.monotonic()
    with nodes() as made:
        print(f"the cluster was there after {time.monotonic() - began:.1f} s\n")
        print("| | start-up and one line, s | all, s | lines/s |\n| --- | ---: | ---: | ---: |")
        for name, address in (("one process", None), ("two nodes", made.cluster.address)):
            start = measure(bundle, work / "line", work / f"{name} line", address, work / "log")
            whole = measure(bundle, work / "text", work / name, address, work / "log")
            print(f"| {name} | {start:.1f} | {whole:.1f} | {count / whole:.0f} |", flush=True)
    equal = (work / "one process").read_bytes() == (work / "two nodes").read_bytes()
    print(f"\n{count:,} lines; output {'equal' if equal else 'DIFFERS'}")
    sys.exit(not equal)


def lose_at_random(bundle: Path, count: int, runs: int, work: Path) -> None:
    write_lines(work / "text", count)
    measure(bundle, work / "text", work / "one", None, work / "log")
    draw, seen, harmed = random.Random(2), Counter[str](), 0
    with nodes() as made:
        usual = measure(bundle, work / "text", work / "unharmed", made.cluster.address, work / "log")
        for number in range(1, runs + 1):
            output, log = work / f"run{number}", work / f"log{number}"
            process = begin(bundle, work / "text", output, made.cluster.address, log)
            time.sleep(moment := draw.random() * 0.8 * usual)
            lose = draw.choice((made.lose_node, made.lose_process))
            lost, began = "nothing" if process.poll() is not None else lose(draw), time.monotonic()
            harmed += lost != "nothing"
            ended = end(process, output, work / "one", log, usual)
            print(f"run {number}: {lost} lost after {moment:.0f} s: {ended} after {time.monotonic() - began:.0f} s more", flush=True)
            seen[ended] += 1
            made.fill()
    print(f"{runs} runs, {harmed} with a loss: {', '.join(f'{times} {how}' for how, times in seen.most_common())}")
    sys.exit(bool(seen.keys() - {"equal", "error in time"}))


def end(process: subprocess.Popen[bytes], output: Path, one: Path, log: Path, usual: float) -> str:
    """How it ended; the node that is left may need twice as long as two."""
    began = time.monotonic()
    try:
        code = process.wait(IN_TIME + 3 * usual)
    except subprocess.TimeoutExpired:
        process.kill()
        return "HUNG"
    if code == 0:
        return "equal" if output.read_bytes() == one.read_bytes() else "DIFFERENT"
    told = log.read_text("utf-8")
    known = "the cluster lost" in told or "were sent" in told
    return "error in time" if known and not output.exists() and time.monotonic() - began <= IN_TIME else f"UNCLEAR {code}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=("lines", "faults"))
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--bundle", type=Path, default=ROOT / "tests" / "bundles" / "format-1")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ray-translate-") as work:
        if asked.experiment == "lines":
            compare_speeds(asked.bundle.resolve(), asked.lines, Path(work))
        lose_at_random(asked.bundle.resolve(), asked.lines, asked.runs, Path(work))


if __name__ == "__main__":
    main()
