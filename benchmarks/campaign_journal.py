"""What a campaign found, as lines of JSON, and how far it came, so that the same command goes on.

journal = Journal(Path("campaign.jsonl"), "texts", seed=1, minutes=10)
for number in journal.numbers(40_000):      begins after the last one that is done; ends when the time is over
    journal.fault(number, "crash", text="...")
journal.summary() -> {"trial": "texts", "seed": 1, "done": 40000, "faults": {"crash": 1}}
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, AnyStr

EVERY = 10.0  # seconds between lines that say how far it came
MOST = 40  # faults of a kind that are written down; the others are counted


class Journal:
    def __init__(self, path: Path, trial: str, seed: int, minutes: float) -> None:
        self.path, self.trial, self.seed = path, trial, seed
        self.until = time.monotonic() + 60 * minutes
        self.done, self.faults, self.counts = 0, Counter[str](), Counter[str]()
        for line in path.read_bytes().splitlines() if path.exists() else []:
            self._recall(json.loads(line))
        self.recalled = self.faults.total()

    def _recall(self, line: dict[str, Any]) -> None:
        if (line["trial"], line["seed"]) != (self.trial, self.seed):
            return
        self.done = max(self.done, line.get("done", 0))
        self.faults.update([line["fault"]] if "fault" in line else [])

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.until

    def numbers(self, count: int, step: int = 1) -> Iterator[int]:
        """Of the cases that are left. A case counts as done when the next one is asked for."""
        told = time.monotonic()
        for number in range(self.done, count, step):
            if self.is_over:
                break
            yield number
            self.done = min(number + step, count)
            if time.monotonic() - told > EVERY:
                self._write({"done": self.done})
                told = time.monotonic()
        self._write({"done": self.done})

    def fault(self, number: int, what: str, **facts: Any) -> None:
        self.faults[what] += 1
        if self.faults[what] <= MOST:
            self._write({"fault": what, "number": number, **facts})

    def summary(self) -> dict[str, Any]:
        return {"trial": self.trial, "seed": self.seed, "done": self.done, **self.counts, "faults": dict(self.faults)}

    def _write(self, facts: dict[str, Any]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps({"trial": self.trial, "seed": self.seed, **facts}, default=repr).encode() + b"\n")


def shrunk(found: AnyStr, still: Callable[[AnyStr], bool], seconds: float = 20.0) -> AnyStr:
    """A smaller one that still shows the fault: parts are left out, large ones first."""
    until, size = time.monotonic() + seconds, max(1, len(found) // 2)
    while size and time.monotonic() < until:
        at = 0
        while at < len(found) and time.monotonic() < until:
            smaller = found[:at] + found[at + size :]
            if still(smaller):
                found = smaller
            else:
                at += size
        size //= 2
    return found
