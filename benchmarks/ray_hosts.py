"""Ray on three hosts of which one is killed or cut off at a random moment: does `prepare`, or a translation, end with the same output?

python benchmarks/ray_hosts.py --runs 20          half the runs prepare, half translate: equal output, or an error within 120 s
python benchmarks/ray_hosts.py --runs 4 --lines 5000
python benchmarks/ray_hosts.py --curve            seconds with one, two and three hosts, nothing lost

The hosts are network namespaces of this machine (`hosts.py`): the first has the head of the cluster and the command, the others a core each
to be lost. Pairs are number words, and the translator is the repository's own. One line for each run; the exit code is 1 if any hung, gave
another output or ended with an error that names nobody.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hosts import Lan, address_of, available, hosts
from ray_translate import IN_TIME, ROOT, WORDS

HEAD: Final = 0
PORT: Final = 6399
RAY: Final = Path(sys.executable).with_name("ray")
GERMAN: Final = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
# Nobody else can reach these hosts: tokens are left out.
USUAL: Final = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_worker_niceness": "0",
}


class HostCluster:
    """The cluster lives in a folder of its own, since all hosts have one disk."""

    def __init__(self, lan: Lan, folder: Path) -> None:
        self.lan, self.folder, self.address = lan, folder, f"{lan.addresses[HEAD]}:{PORT}"
        self._start(HEAD, "--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={folder}")
        for host in range(1, len(lan.names)):
            self.join(host)

    def join(self, host: int) -> None:
        self._start(host, f"--address={self.address}")

    def _start(self, host: int, *own: str) -> None:
        words = [str(RAY), "start", "--num-cpus=1", f"--node-ip-address={self.lan.addresses[host]}", "--disable-usage-stats", *own]
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = self.lan.run(host, words, USUAL, **quiet)
        told = process.communicate(timeout=300)[0]
        if process.returncode:
            sys.exit(f"ray does not start on host {host}: {told.decode(errors='replace')[-2000:]}")

    def lose(self, host: int, how: str) -> None:
        (self.lan.kill if how == "killed" else self.lan.cut)(host)

    def restore(self, host: int) -> None:
        self.lan.kill(host)
        self.lan.mend(host)
        time.sleep(2)
        self.join(host)


def write_pairs(folder: Path, count: int) -> None:
    draw = random.Random(1)
    numbers = [draw.choices(range(10), k=draw.randint(3, 8)) for _ in range(count)]
    for name, words in (("en", WORDS), ("de", GERMAN)):
        lines = (" ".join(words[each] for each in some) + f" {at}\n" for at, some in enumerate(numbers))
        (folder / f"text.{name}").write_bytes("".join(lines).encode())


def command(verb: str, folder: Path, output: Path, clustered: bool) -> list[str]:
    limelight = [sys.executable, "-m", "limelight"]
    if verb == "translate":
        bundle = ROOT / "tests" / "bundles" / "format-1"
        own = ["--cluster", "ray"] if clustered else []
        return [*limelight, "translate", str(bundle), "-i", str(folder / "text.en"), "-o", str(output), "--threads", "1", *own]
    own = ["--engine", "ray"] if clustered else []
    sides = [str(folder / f"text.{each}") for each in ("en", "de")]
    return [*limelight, "prepare", *sides, "--source", "en", "--target", "de", "-o", str(output), "--anyway", "--vocab-size", "200", *own]


def content_of(output: Path) -> Mapping[str, bytes]:
    """Shards, or the translated file."""
    if output.is_file():
        return {"": output.read_bytes()}
    return {str(path.relative_to(output)): path.read_bytes() for path in sorted((output / "shards").rglob("*")) if path.is_file()}


def start(cluster: HostCluster, verb: str, folder: Path, output: Path) -> tuple["subprocess.Popen[bytes]", Path]:
    log = output.with_suffix(".log")
    with log.open("wb") as told:
        words = command(verb, folder, output, clustered=True)
        return cluster.lan.run(HEAD, words, {**USUAL, "RAY_ADDRESS": cluster.address}, stdout=told, stderr=told), log


def judge(process: "subprocess.Popen[bytes]", output: Path, log: Path, wanted: Mapping[str, bytes], patience: float) -> str:
    """How it ended. One that goes on with fewer hosts may take longer than they all did."""
    began = time.monotonic()
    try:
        code = process.wait(IN_TIME + patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return "HUNG"
    if code == 0:
        return "equal" if content_of(output) == wanted else "DIFFERENT"
    told = log.read_bytes().decode(errors="replace")
    named = "lost" in told and any(address_of(host) in told or f"host{host}" in told for host in range(3))
    return "error in time" if named and time.monotonic() - began <= IN_TIME else f"UNCLEAR {code}: {told[-300:]}"


def measure_curve(folder: Path) -> int:
    """Each host has a core of its own by Ray's count; how many there really are, the machine decides."""
    print("| hosts | prepare | translate |\n| --- | --- | --- |")
    for count in (1, 2, 3):
        seconds = []
        with hosts(count) as lan:
            cluster = HostCluster(lan, folder / f"ray{count}")
            for verb in ("prepare", "translate"):
                output, began = folder / f"{verb}{count}", time.monotonic()
                process, log = start(cluster, verb, folder, output)
                if process.wait(1_800):
                    sys.exit(f"{verb} on {count} hosts ended with {process.returncode}: {log.read_text(errors='replace')[-2000:]}")
                seconds.append(time.monotonic() - began)
                if content_of(output) != content_of(folder / f"{verb}1"):
                    sys.exit(f"{verb} on {count} hosts gave another output than on one")
        print(f"| {count} | {' | '.join(f'{each:.0f} s' for each in seconds)} |", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--curve", action="store_true")
    asked = parser.parse_args()
    if why := available():
        sys.exit(why)
    if asked.curve:
        with tempfile.TemporaryDirectory(prefix="ray-hosts-") as work:
            write_pairs(Path(work), asked.lines)
            return measure_curve(Path(work))
    draw, seen = random.Random(asked.seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="ray-hosts-") as work, hosts(3) as lan:
        folder = Path(work)
        write_pairs(folder, asked.lines)
        cluster, wanted, usual = HostCluster(lan, folder / "ray"), dict[str, Mapping[str, bytes]](), dict[str, float]()
        for verb in ("prepare", "translate"):
            subprocess.run(command(verb, folder, folder / verb, clustered=False), check=True, capture_output=True)
            wanted[verb], began = content_of(folder / verb), time.monotonic()
            process, log = start(cluster, verb, folder, folder / f"{verb}-unharmed")
            ended = judge(process, folder / f"{verb}-unharmed", log, wanted[verb], 600)
            usual[verb] = time.monotonic() - began
            print(f"{verb}, nothing lost: {ended} after {usual[verb]:.0f} s", flush=True)
            if ended != "equal":
                return 1
        for number in range(asked.runs):
            verb, how, host = ("prepare", "translate")[number % 2], draw.choice(("killed", "cut")), draw.randrange(1, 3)
            output = folder / f"run{number}"
            process, log = start(cluster, verb, folder, output)
            time.sleep(moment := draw.random() * 0.8 * usual[verb])
            was_over, began = process.poll() is not None, time.monotonic()
            cluster.lose(host, how)
            ended = judge(process, output, log, wanted[verb], 2 * usual[verb])
            seen[ended.partition(":")[0]] += 1
            late = " (it was over)" if was_over else ""
            print(
                f"{number + 1} {verb}: host{host} {how} after {moment:.0f} s{late}: {ended}, {time.monotonic() - began:.0f} s later",
                flush=True,
            )
            cluster.restore(host)
    print(f"{asked.runs} runs: {', '.join(f'{times} {how}' for how, times in seen.most_common())}")
    return bool(seen.keys() - {"equal", "error in time"})


if __name__ == "__main__":
    sys.exit(main())
