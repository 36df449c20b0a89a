"""Small ranks for a real supervisor: they write down what they are and what they hear, and end as they are told.

    made = Launched(folder, {"killed": [(0, 1)]}, size=2)       in attempt 0 rank 1 kills itself; all others end well
    made.finish() -> 0;  made.told -> ["rank 1 was ended by SIGKILL after step 4; ..."]

This file is also the program of the supervisor and of the ranks.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from limelight.training.processes.rank_environment import end_with_supervisor
from limelight.training.processes.supervisor import Patience, supervise

# How a rank may end, by what name.
CODES = {"usage": 2, "data": 65, "model file": 66, "device": 69, "disk": 74, "internal": 70, "fault": 1}
PATIENCE = {"shutdown": 1.0, "settle": 0.3, "linger": 1.0, "saving": 20.0}


def everywhere(size: int = 2, attempts: int = 1) -> list[tuple[int, int]]:
    return [(attempt, rank) for attempt in range(attempts) for rank in range(size)]


class Starting:
    """Launches in a folder each, and in the end nothing of it is left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.made = folder, list[Launched]()

    def __call__(self, plan: dict[str, list[tuple[int, int]]], **more: Any) -> "Launched":
        self.made.append(Launched(self.folder / str(len(self.made)), plan, **more))
        return self.made[-1]

    def close(self) -> None:
        for each in self.made:
            each.process.kill()
            for number in alive(each.numbers):
                os.kill(number, signal.SIGKILL)
            each.process.communicate()


class Launched:
    """A supervisor in a process of its own, with ranks that follow a plan: a behaviour, and in which attempts which ranks have it."""

    def __init__(
        self, folder: Path, plan: dict[str, list[tuple[int, int]]], size: int = 2, *,
        restarts: int = 3, saves: bool = True, terminal: str = os.devnull, **patience: float,
    ) -> None:  # fmt: skip
        self.folder, self.run = folder, folder / "run"
        self.run.mkdir(parents=True)
        (self.run / "run.json").write_bytes(b"{}")
        plan_file = folder / "plan.json"
        plan_file.write_bytes(json.dumps({"plan": plan, "size": size, "restarts": restarts, "saves": saves,
                                          "patience": PATIENCE | patience}).encode())  # fmt: skip
        # The first terminal that the leader of a new session opens is its own.
        opened = ["sh", "-c", 'exec "$@" < "$0"', terminal]
        self.process = subprocess.Popen(
            [*opened, sys.executable, __file__, "supervisor", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def finish(self, seconds: float = 60) -> int:
        self.out, self.err = self.process.communicate(timeout=seconds)
        return self.process.returncode

    @property
    def told(self) -> list[str]:
        return [line for line in self.out.decode().split("\n") if line]

    def wait_for(self, attempt: int, *ranks: int, word: str = "ready") -> None:
        """Until each of them has said so."""
        until = time.monotonic() + 60
        while not all(word in words(self.folder, attempt, rank) for rank in ranks):
            assert time.monotonic() < until and self.process.poll() is None, (attempt, ranks, word)
            time.sleep(0.01)

    def words(self, attempt: int, rank: int) -> list[Any]:
        return words(self.folder, attempt, rank)

    @property
    def numbers(self) -> set[int]:
        """Of all processes that ranks were or started."""
        return {
            number for file in self.folder.glob("said-*") for word in _read(file) if isinstance(word, dict) for number in word["processes"]
        }


def words(folder: Path, attempt: int, rank: int) -> list[Any]:
    return _read(folder / f"said-{attempt}-{rank}")


def _read(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]] if file.exists() else []


def alive(numbers: set[int]) -> set[int]:
    """Those of the processes that run; one that waits to be collected does not."""

    def runs(number: int) -> bool:
        try:
            return Path(f"/proc/{number}/stat").read_bytes().rpartition(b") ")[2][:1] != b"Z"
        except OSError:
            return False

    return {number for number in numbers if runs(number)}


def gone_within(seconds: float, numbers: set[int]) -> bool:
    until = time.monotonic() + seconds
    while alive(numbers) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(numbers)


def _line(file: TextIO, line: str) -> None:
    file.write(f"{line}\n")
    file.flush()


def supervisor(folder: Path, given: dict[str, Any]) -> int:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as on a terminal, also where the tests run under nohup
    command = [sys.executable, __file__, "rank", str(folder)]
    return supervise(
        command, given["size"], folder / "run", lambda listening, size: None, lambda line: _line(sys.stdout, line),
        given["restarts"], Patience(**given["patience"]),
    )  # fmt: skip


class RankOfPlan:
    def __init__(self, folder: Path, given: dict[str, Any]) -> None:
        self.folder, self.run, self.saves = folder, folder / "run", given["saves"]
        self.size = given["size"]
        self.rank, self.attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        self.does = {name for name, places in given["plan"].items() if [self.attempt, self.rank] in places}
        self.heard = 0

    def say(self, word: Any) -> None:
        with (self.folder / f"said-{self.attempt}-{self.rank}").open("ab") as file:
            file.write(json.dumps(word).encode() + b"\n")

    def hear(self, number: int, frame: Any) -> None:
        self.heard += 1
        self.say(f"heard {number}")
        if self.heard == 1 and "slow" not in self.does and "deaf" not in self.does:
            sys.exit({signal.SIGINT: 130}.get(number, 75))
        if self.heard == 2 and "deaf" not in self.does:
            os._exit(75)

    def live(self) -> None:
        if "alone" not in self.does:
            end_with_supervisor()
        if "starting" not in self.does:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, self.hear)
        child = subprocess.Popen(["sleep", "1000"])
        self.say({"processes": [os.getpid(), child.pid], "variables": dict(os.environ)})
        _line(sys.stderr, f"rank {self.rank} prints")
        if self.rank == 0:
            step = 4 * (self.attempt + 1) if self.saves else 4
            (self.run / "checkpoints" / f"step-{step:07d}").mkdir(parents=True, exist_ok=True)
            with (self.run / "metrics.jsonl").open("ab") as file:
                file.write(json.dumps({"step": step + 1}).encode() + b"\n")
            (self.run / "status.json").write_bytes(json.dumps({"state": "training", "step": step, "steps": 99}).encode())
        self.say("ready")
        self.end()

    def wait_for_the_others(self) -> None:
        until = time.monotonic() + 30
        while not all("ready" in words(self.folder, self.attempt, rank) for rank in range(self.size)):
            assert time.monotonic() < until
            time.sleep(0.01)

    def end(self) -> None:
        if "diverged" in self.does:
            (self.run / "status.json").write_bytes(b'{"state": "diverged", "step": 7, "steps": 99}')
            sys.exit(70)
        if self.does & {"killed", "stopped", *CODES}:
            self.wait_for_the_others()
        if "killed" in self.does:
            os.kill(os.getpid(), signal.SIGKILL)
        if "stopped" in self.does:
            os.kill(os.getpid(), signal.SIGSTOP)
        for name in self.does & CODES.keys():
            _line(sys.stderr, f"error: rank {self.rank} has a reason")
            sys.exit(CODES[name])
        while self.does & {"waits", "slow", "deaf", "starting", "alone"}:
            time.sleep(0.05)


if __name__ == "__main__":
    place = Path(sys.argv[2])
    value = json.loads((place / "plan.json").read_bytes())
    if sys.argv[1] == "supervisor":
        sys.exit(supervisor(place, value))
    RankOfPlan(place, value).live()
