"""How fast a run goes, how long is left, and how many steps the budget still allows."""

import resource
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final

import torch

from limelight.planning.choosing import reserve

RECENT: Final = 50  # steps whose median time is the pace: a pause of the machine does not count as slowness
FEW: Final = 20  # steps, before which nothing is said: the first ones prepare kernels and memory
WORTH: Final = 0.03  # of the steps left; a smaller correction is not made


@dataclass
class Spent:
    """Seconds, over all starts of the run."""

    before: float = 0.0  # until training began: preparation and calibration
    train: float = 0.0
    validate: float = 0.0
    save: float = 0.0

    @property
    def total(self) -> float:
        return self.before + self.train + self.validate + self.save


class Pace:
    def __init__(self, budget: float | None, validation_every: int) -> None:
        self.budget, self.validation_every = budget, validation_every
        self.spent = Spent()
        self.last = 0.0
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._steps = 0
        self._validation = 0.0
        self._began = time.monotonic()
        self._earlier = 0.0  # of former starts

    @property
    def elapsed(self) -> float:
        return self.spent.before + self._earlier + time.monotonic() - self._began

    def stepped(self, seconds: float) -> None:
        self.last = seconds
        self._steps += 1
        self._recent.append(seconds)
        self.spent.train += seconds

    def validated(self, seconds: float) -> None:
        self._validation = seconds if not self._validation else (self._validation + seconds) / 2
        self.spent.validate += seconds

    def saved(self, seconds: float) -> None:
        self.spent.save += seconds

    def per_step(self) -> float:
        """Of one step with its share of validation."""
        return (median(self._recent) if self._recent else 0.0) + self._validation / self.validation_every

    def left(self, steps: int) -> float:
        return steps * self.per_step()

    def replanned(self, step: int, steps: int, longer: bool = True) -> int | None:
        """How many steps end with the budget, if that is worth a change; only fewer ones unless `longer`."""
        if self.budget is None or self._steps < FEW:
            return None
        room = self.budget - reserve(self.budget) - self.elapsed
        fitting = step + max(0, int(room / self.per_step()))
        if fitting > steps and not longer:
            return None
        return fitting if abs(fitting - steps) > WORTH * max(1, steps - step) + 1 else None

    def state(self) -> dict[str, Any]:
        return {
            "spent": asdict(self.spent),
            "elapsed": self.elapsed,
            "validation": self._validation,
            "recent": list(self._recent),
            "steps": self._steps,
        }

    def load(self, state: dict[str, Any]) -> None:
        """What this start has spent already, before training, counts as well."""
        before, self.spent = self.spent.before, Spent(**state["spent"])
        self._earlier = state["elapsed"] - self.spent.before
        self.spent.before += before
        self._validation = state["validation"]
        self._recent.extend(state["recent"])
        self._steps = state["steps"]
        self._began = time.monotonic()


def memory_held(device: torch.device) -> int:
    """Most bytes that this process ever held, on the device it trains on."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024
