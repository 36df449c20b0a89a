"""A budget clock tells how fast a run goes, how long is left, and how many steps the budget still allows."""

import math
import os
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Final

import psutil
import torch

from limelight.planning.sizing_rules import reserve

RECENT: Final = 50  # steps whose mean time is the pace
PAUSES: Final = 0.1  # of them, the slowest, that do not count: a pause of the machine is no slowness, time that others take of it is
FEW: Final = 20  # steps, before which nothing is said: the first ones prepare kernels and memory
LEAST: Final = 5  # steps that show that a budget will not hold
WORTH: Final = 0.03  # of the steps left; a smaller correction is not made
LOOKS: Final = 5  # at the pace between two validations
LATE: Final = 0.1  # of the steps left, that fewer must fit between validations
REPORT: Final = 8.0  # seconds that the last bundle and the report take on a machine that is not busy
MOST_FOR_THE_END: Final = 1 / 3  # of a budget; what does not fit is cut (`RemainingBudget`)
SLACK: Final = 1.2  # times what the end should take: nobody can wait for it any longer
BUSIEST: Final = 8.0
CROWDED: Final = 1.25  # of `busy`, from which on others are said to be at work


@dataclass
class PhaseSeconds:
    before: float = 0.0  # until training began: preparation and calibration
    train: float = 0.0
    validate: float = 0.0
    save: float = 0.0

    @property
    def total(self) -> float:
        return self.before + self.train + self.validate + self.save


class BudgetClock:
    def __init__(self, budget: float | None, validation_every: int) -> None:
        self.budget, self.validation_every = budget, validation_every
        self.spent = PhaseSeconds()
        self.last = 0.0
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._steps = 0
        self.validation = 0.0  # seconds of a usual one; 0.0 before the first
        self._began = time.monotonic()
        self._earlier = 0.0  # of former starts
        self._computed = time.process_time()
        self.validations_to_end = 0.0  # that what comes after the last step is worth

    @property
    def elapsed(self) -> float:
        return self.spent.before + self._earlier + time.monotonic() - self._began

    def add_step(self, seconds: float) -> None:
        self.last = seconds
        self._steps += 1
        self._recent.append(seconds)
        self.spent.train += seconds

    def add_validation(self, seconds: float) -> None:
        self.validation = seconds if not self.validation else (self.validation + seconds) / 2
        self.spent.validate += seconds

    def per_step(self) -> float:
        """Seconds of one step with its share of validation and of checkpoints."""
        usual = sorted(self._recent)[: len(self._recent) - math.ceil(PAUSES * len(self._recent))] or self._recent
        step = sum(usual) / len(usual) if usual else 0.0
        return step + self.validation / self.validation_every + self.spent.save / max(1, self._steps)

    def describe_pace(self) -> str:
        told = f"a step takes {self.per_step():.2g} s now, with its share of validations"
        return told + (f", and this process has {1 / self.busy():.0%} of a core" if self.busy() > CROWDED else "")

    def busy(self) -> float:
        """How many times as long as alone everything takes here, since others have their share of the machine: 1 to BUSIEST."""
        computed = time.process_time() - self._computed
        return min(BUSIEST, max(1.0, (time.monotonic() - self._began) / computed)) if computed > 0 else 1.0

    def report(self) -> float:
        """Seconds that are needed when all is scored."""
        return REPORT * self.busy()

    def ending(self) -> float:
        """Seconds of the budget to keep back for what comes after training, by how long validations take."""
        assert self.budget is not None
        needed = SLACK * self.validations_to_end * self.validation + self.report()
        return max(reserve(self.budget), min(needed, MOST_FOR_THE_END * self.budget))

    def is_looked_at(self, step: int) -> bool:
        """Between validations as well: a machine that has become slow must not be noticed when the budget is over."""
        return self.budget is not None and step % max(LEAST, self.validation_every // LOOKS) == 0

    def replan(
        self, step: int, steps: int, longer: bool = True, late: bool = False, heavier: float = 1.0, resumed: bool = False
    ) -> int | None:
        """How many steps end with the budget, if that is worth a change; only fewer ones unless `longer`, far fewer if `late`. Steps to
        come take `heavier` times as long as the last. A run that is `resumed` with a larger budget may have had few steps."""
        if self.budget is None or self._steps < (1 if resumed else LEAST if late else FEW):
            return None
        room = self.budget - self.ending() - self.elapsed
        fitting = step + max(0, int(room / (heavier * self.per_step())))
        if fitting > steps and (late or not longer):
            return None
        worth = LATE if late else WORTH
        return fitting if abs(fitting - steps) > worth * max(1, steps - step) + 1 else None

    def state(self) -> dict[str, Any]:
        return {
            "spent": asdict(self.spent),
            "elapsed": self.elapsed,
            "validation": self.validation,
            "recent": list(self._recent),
            "steps": self._steps,
        }

    def load(self, state: dict[str, Any]) -> None:
        """What this start has spent already, before training, counts as well."""
        before, self.spent = self.spent.before, PhaseSeconds(**state["spent"])
        self._earlier = state["elapsed"] - self.spent.before
        self.spent.before += before
        self.validation = state["validation"]
        self._recent.extend(state["recent"])
        self._steps = state["steps"]
        self._began, self._computed = time.monotonic(), time.process_time()


def memory_held(device: torch.device) -> int:
    """Most bytes that this process ever held, on the device it trains on."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if os.name == "nt":
        now = psutil.Process().memory_info()
        return int(getattr(now, "peak_wset", now.rss))
    resource = import_module("resource")  # Windows has none
    held = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return held if sys.platform == "darwin" else held * 1024
