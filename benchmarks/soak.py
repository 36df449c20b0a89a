"""Everything that a run must survive, one trial after the other: for a night, or a weekend.

    python benchmarks/soak.py                            all of it, about an hour and a half on 2 quiet cores
    python benchmarks/soak.py --short                    a few cases of each, a quarter of an hour
    python benchmarks/soak.py --only resume,storm        some of it
    python benchmarks/soak.py -o soak --rounds 10        again and again, each round with another seed; logs in soak/

One line per figure, and `soak.json` with all of them. A trial holds if its script ends with 0 within its time; a script that finds its
control to be without effect does not. The exit code is 0 only if all trials hold.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
SECONDS_TO_END: Final = 20.0  # for a trial that is given up to take its hosts, disks and processes with it


@dataclass(frozen=True)
class Trial:
    name: str
    about: str
    script: str
    whole: tuple[str, ...]  # its options
    short: tuple[str, ...]
    minutes: float  # that it may take; usually a third of it
    seeded: bool = False  # other moments in each round


TRIALS: Final = (
    Trial("width", "one curve for 1, 2 and 4 processes", "survive_width", (), ("--steps", "8"), 20),
    Trial("resume", "bit-exact after a stop at any step", "survive_resume", (), ("--kinds", "fsdp", "--seeds", "1"), 30),
    Trial("storm", "kill -9, checkpoints of shards", "survive_storm", (), ("--kills", "4"), 30, seeded=True),
    Trial(
        "storm-behind",
        "kill -9, checkpoints in the background",
        "survive_storm",
        ("--background", "--kind", "ddp", "--kills", "16"),
        ("--background", "--kind", "ddp", "--kills", "4"),
        20,
        seeded=True,
    ),
    Trial("damage", "damaged checkpoints", "survive_damage", (), ("--few",), 20),
    Trial("disk", "a full disk", "survive_disk", (), ("--cases", "2"), 30),
    Trial("bad-steps", "no numbers, spikes, memory, bit flips", "survive_bad_steps", (), ("--short",), 20),
    Trial("preempt", "told to stop at any moment", "survive_preempt", (), ("--times", "4", "--short"), 30, seeded=True),
    Trial("frozen", "a rank is dead or frozen", "survive_frozen", (), ("--times", "1", "--short"), 30, seeded=True),
    Trial("hosts", "hosts cut off, killed, and back", "survive_hosts", (), ("--short",), 30),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    trial: str
    round: int
    code: int | None  # None: it took too long
    seconds: float
    figures: dict[str, Any] = field(default_factory=dict)  # of its last line

    @property
    def holds(self) -> bool:
        return self.code == 0


def tried(trial: Trial, options: Sequence[str], log: Path, number: int = 1) -> Outcome:
    """One trial in a session of its own, so that nothing of it is left."""
    seed = ("--seed", str(number)) if trial.seeded else ()
    began = time.monotonic()
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, f"{HERE / trial.script}.py", *options, *seed],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(60 * trial.minutes)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
    return Outcome(trial.name, number, code, round(time.monotonic() - began, 1), figures_of(log))


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):  # nobody of them is left
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_END)


def figures_of(log: Path) -> dict[str, Any]:
    """The last line that is a JSON object."""
    for line in reversed(log.read_bytes().split(b"\n")):
        if line.startswith(b"{"):
            with suppress(ValueError):
                return dict(json.loads(line))
    return {}


def lines_of(trial: Trial, outcome: Outcome) -> list[str]:
    verdict = "ok" if outcome.holds else "SHORT"
    said = "took too long" if outcome.code is None else f"exit {outcome.code}"
    first = f"{trial.name:14s} {trial.about:42s} {outcome.seconds:8.1f} s  {said:14s} {verdict}"
    figures = [f"    {name:40s} {value}" for name, value in outcome.figures.items()]
    return [first, *figures]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(trial.name for trial in TRIALS), help="names, with commas")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path("soak"), help="logs and soak.json")
    asked = parser.parse_args()
    unknown = set(asked.only.split(",")) - {trial.name for trial in TRIALS}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(trial.name for trial in TRIALS)}")
    asked.output.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # through `finally`
    outcomes: list[Outcome] = []
    for number in range(1, asked.rounds + 1):
        for trial in TRIALS:
            if trial.name in asked.only.split(","):
                log = asked.output / f"{trial.name}-{number}.log"
                outcomes.append(tried(trial, trial.short if asked.short else trial.whole, log, number))
                print("\n".join(lines_of(trial, outcomes[-1])), flush=True)
                content = json.dumps([asdict(each) | {"holds": each.holds} for each in outcomes], indent=1)
                (asked.output / "soak.json").write_bytes(content.encode() + b"\n")
    return 0 if all(outcome.holds for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
