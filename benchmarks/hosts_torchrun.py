"""One run of `limelight train` on several hosts, through torchrun's rendezvous, and what can be seen of it from outside.

    with hosts(4) as lan:                                       three that compute, and one that keeps the rendezvous
        job = Job(lan, recipe, run, "2:3")
        for host in range(3):
            job.start(host)
        job.wait_for(step=40);  lan.cut(2);  found = job.recovers()
        job.ends() -> {0: 0, 1: 0, 2: None}
    compared(run, straight) -> how far its curve is from that of a run that nobody disturbed

Ranks and the size of their world are read from the environment of the processes, steps from the run's metrics.jsonl: nothing of the
trained program is changed, but that a pause makes its steps last (`PAUSE`), so that there is time to do harm.
"""

import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))
from inject_fault import fault_environment

from hosts import Lan
from limelight.training.events import RunNotice, StepReport, read_events
from limelight.training.run_folder import METRICS

PORT: Final = 29400
# Seconds. torchrun waits 30 for a last call and calls a host dead after 15 of silence; docs/cluster.md has values between.
RENDEZVOUS: Final = "last_call_timeout=2,keep_alive_interval=2,keep_alive_max_attempt=3,join_timeout=120,read_timeout=10"
STORE: Final = (
    "import sys, time; from torch.distributed import TCPStore; "
    "store = TCPStore(sys.argv[1], int(sys.argv[2]), is_master=True, wait_for_workers=False); print('up', flush=True); time.sleep(1e9)"
)
BOUND: Final = 1e-3  # of the loss at step 200 between worlds of different sizes, relative
PAUSE: Final = "step.forward:sleep=0.05"
ENVIRONMENT: Final = {
    "OMP_NUM_THREADS": "1",
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # else a round finds the addresses of the round before, and fails
    "LIMELIGHT_PATIENCE": "8",
    **fault_environment(PAUSE),
}


@dataclass(frozen=True)
class Recovery:
    """From a disturbance until steps are taken again."""

    noticed: float  # seconds until no process of the old world is left on the hosts that others can reach
    again: float  # seconds until the next step
    lost: int  # steps that were taken twice
    worlds: tuple[int, int]  # processes before and after


class Job:
    def __init__(
        self,
        lan: Lan,
        recipe: Path,
        run: Path,
        nodes: str,
        env: Mapping[str, str] | None = None,
        conf: str = RENDEZVOUS,
    ) -> None:
        """The last host of the network keeps the rendezvous and does not compute: any other may be lost."""
        self.lan, self.run, self._env = lan, run, {**ENVIRONMENT, **(env or {})}
        self._agents: dict[int, subprocess.Popen[bytes]] = {}
        self.worlds: list[int] = []  # sizes, as they came
        self.highest = 0  # step
        control = len(lan.names) - 1
        endpoint = f"{lan.addresses[control]}:{PORT}"
        self._command = [
            *(
                sys.executable,
                "-m",
                "torch.distributed.run",
                f"--nnodes={nodes}",
                "--nproc-per-node=1",
                "--rdzv-backend=c10d",
            ),
            *(f"--rdzv-endpoint={endpoint}", f"--rdzv-id={run.name}", f"--rdzv-conf={conf}", "--max-restarts=10"),
            *("--shutdown-timeout=10", "-m", "limelight", "train", str(recipe), "-o", str(run), "--quiet"),
        ]
        store = lan.run(control, [sys.executable, "-c", STORE, *endpoint.split(":")], stdout=subprocess.PIPE)
        assert store.stdout is not None
        with store.stdout:
            if not store.stdout.readline():
                raise RuntimeError(f"the rendezvous does not start at {endpoint}")

    def start(self, host: int) -> None:
        with self.log(host).open("ab") as log:
            self._agents[host] = self.lan.run(host, self._command, self._env, stdout=log, stderr=log)

    def log(self, host: int) -> Path:
        return self.run.with_name(f"{self.run.name}.host{host}.log")

    def ranks(self, host: int) -> dict[int, int]:
        """Of the processes that train on a host: pid -> size of their world."""
        found = {}
        for pid in self.lan.processes(host):
            with suppress(OSError):
                words = dict(word.partition(b"=")[::2] for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
                parent = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
                if b"RANK" in words and parent == self._agents[host].pid:
                    found[pid] = int(words[b"WORLD_SIZE"])
        return found

    @property
    def step(self) -> int:
        """The last that was told."""
        steps = [event.step for event in read_events(self.run / METRICS) if isinstance(event, StepReport)]
        self.highest = max(self.highest, *steps[-1:], 0)
        return steps[-1] if steps else 0

    def world(self) -> int:
        """How many processes train together now; 0 while they look for each other."""
        sizes = {size for host in self._agents for size in self.ranks(host).values()}
        return sizes.pop() if len(sizes) == 1 else 0

    def wait_for(self, step: int, seconds: float = 240) -> None:
        self._wait(lambda: self.step >= step, seconds, f"step {step}")
        self._note(self.world())

    def recovers(self, reached: set[int], seconds: float = 240) -> Recovery:
        """Right after a disturbance: until a new world of the hosts that can be `reached` takes steps."""
        began, before, old = time.monotonic(), self.worlds[-1], {pid for host in reached for pid in self.ranks(host)}
        self._wait(lambda: not old & {pid for host in reached for pid in self.ranks(host)}, seconds, "the old world's end")
        noticed = time.monotonic() - began
        told, highest = self._resumed(), max(self.step, self.highest)
        self._wait(lambda: self._resumed() not in ([], told), seconds, "a new world")
        at = self._resumed()[-1].step
        self._wait(lambda: self.step > at, seconds, f"step {at + 1}")
        self._note(self.world())
        return Recovery(round(noticed, 1), round(time.monotonic() - began, 1), highest - at, (before, self.worlds[-1]))

    def ends(self, seconds: float = 180) -> dict[int, int | None]:
        """Exit codes of the torchruns, when the hosts that take part have ended; None where one still runs."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and any(agent.poll() is None for agent in self._agents.values()):
            time.sleep(0.2)
            if any(agent.poll() == 0 for agent in self._agents.values()):
                end = min(end, time.monotonic() + 20)  # the others are done too, or lost
        return {host: agent.poll() for host, agent in self._agents.items()}

    def _note(self, size: int) -> None:
        if self.worlds[-1:] != [size]:
            self.worlds.append(size)

    def _resumed(self) -> list[RunNotice]:
        return [event for event in read_events(self.run / METRICS) if isinstance(event, RunNotice) and event.kind == "resumed"]

    def _wait(self, there: Callable[[], bool], seconds: float, what: str) -> None:
        end = time.monotonic() + seconds
        while not there():
            codes = {host: agent.poll() for host, agent in self._agents.items()}
            if time.monotonic() > end or all(code is not None for code in codes.values()):
                raise TimeoutError(f"{self.run.name}: {what} did not come within {seconds:.0f} s; torchruns ended with {codes}")
            time.sleep(0.1)


@dataclass(frozen=True)
class Difference:
    """Between the curves of two runs."""

    steps: tuple[int, int]  # how far they came
    text: int  # steps that saw another number of pieces or another part of the corpus
    largest: float  # of the losses of a step, relative
    last: float  # of the last ten steps, relative

    @property
    def none(self) -> bool:
        return self.steps[0] == self.steps[1] > 0 and self.text == 0 and self.last <= BOUND


def compared(run: Path, straight: Path) -> Difference:
    ours, theirs = _curve(run), _curve(straight)
    pairs = list(zip(ours, theirs, strict=False))
    text = sum(_text(a) != _text(b) for a, b in pairs)
    apart = [abs(a.loss - b.loss) / b.loss for a, b in pairs] or [math.inf]
    ends = tuple(curve[-1].step if curve else 0 for curve in (ours, theirs))
    return Difference((ends[0], ends[1]), text, max(apart), max(apart[-10:]))


def _curve(run: Path) -> list[StepReport]:
    return [event for event in read_events(run / METRICS) if isinstance(event, StepReport)]


def _text(report: StepReport) -> tuple[object, ...]:
    """What of the corpus a step was made of, as far as a run tells it."""
    return report.step, report.epoch, report.source_pieces, report.target_pieces
