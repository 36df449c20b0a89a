"""A watchdog finds harmful steps before they change a weight: no numbers, or loss or gradient out of proportion.

What is usual is said by the last `window` accepted steps, with the mean m and the standard deviation s:

    loss           bad above m + sigmas max(s, 0.1)
    gradient norm  the same of its logarithm, with max(s, 0.5), and only above 0.1

The smallest deviations are there because a curve may be very flat and a harmless batch then many deviations away. Norms are
judged by their logarithm because they are heavy-tailed: one that is six times the usual is ordinary, and clipping takes care of it.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from limelight.errors import ModelFileError
from limelight.training.config import DivergenceSettings

# Measured on four clean runs of toy models, 2,000 steps each, late in which a mean loss of 0.06 meets a batch of 0.44: without these
# three, 1 to 6 steps of each run were left out (up to 0.3 %), with them none.
LEAST_LOSS_DEVIATION = 0.1  # nats per piece
LEAST_LOG_NORM_DEVIATION = 0.5  # six are a factor of 20: real batches of software strings reach 6, and are clipped
HARMLESS_NORM = 0.1  # a tenth of where gradients are usually clipped


class Watchdog:
    """A watchdog judges each step. Only accepted steps say what is usual, so a bad one does not excuse the next."""

    def __init__(self, settings: DivergenceSettings) -> None:
        self.in_a_row = 0  # bad steps since the last accepted one
        self.skipped = 0  # bad steps in all
        self._sigmas = settings.sigmas
        self._losses = RollingStatistics(settings.window, LEAST_LOSS_DEVIATION)
        self._log_norms = RollingStatistics(settings.window, LEAST_LOG_NORM_DEVIATION)

    def judge(self, loss: float, gradient_norm: float) -> str | None:
        """Why this step must be left out, in words; None if it is to be taken."""
        reason = _no_number("loss", loss) or _no_number("gradient", gradient_norm) or self._spike(loss, gradient_norm)
        if reason is not None:
            self.in_a_row += 1
            self.skipped += 1
            return reason
        self.in_a_row = 0
        self._losses.values.append(loss)
        if gradient_norm > 0:
            self._log_norms.values.append(math.log(gradient_norm))
        return None

    def _spike(self, loss: float, gradient_norm: float) -> str | None:
        away = self._losses.deviations(loss)
        if away > self._sigmas:
            return _out_of_proportion("loss", loss, away, self._losses.mean, self._losses.window)
        if gradient_norm > HARMLESS_NORM:
            away = self._log_norms.deviations(math.log(gradient_norm))
            if away > self._sigmas:
                usual = math.exp(self._log_norms.mean)
                return _out_of_proportion("gradient norm", gradient_norm, away, usual, self._log_norms.window)
        return None

    def state(self) -> dict[str, Any]:
        """For a checkpoint: a JSON value of finite numbers, from which `load` goes on exactly."""
        return {
            "losses": list(self._losses.values),
            "log_norms": list(self._log_norms.values),
            "in_a_row": self.in_a_row,
            "skipped": self.skipped,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on with what `state` gave. With a shorter window than then, the last steps of it remain."""
        problems = [f"{key} is missing" for key in self.state() if key not in state]
        for key in ("losses", "log_norms"):
            if not all(math.isfinite(value) for value in state.get(key, ())):
                problems.append(f"{key} has values that are infinite or no numbers")
        if problems:
            raise ModelFileError(
                f"The checkpoint does not say what is usual in this run: {'; '.join(problems)}. Go on from an earlier one."
            )
        for known, saved in ((self._losses, state["losses"]), (self._log_norms, state["log_norms"])):
            known.values = deque(saved, known.window)
        self.in_a_row, self.skipped = int(state["in_a_row"]), int(state["skipped"])


class RollingStatistics:
    def __init__(self, window: int, least_deviation: float) -> None:
        self.window = window
        self.values: deque[float] = deque(maxlen=window)
        self._least_deviation = least_deviation

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    def deviations(self, value: float) -> float:
        """(value - mean) / max(deviation, least); 0 until there are enough values to say."""
        if len(self.values) < self.window:
            return 0.0
        mean = self.mean
        deviation = math.sqrt(math.fsum((each - mean) ** 2 for each in self.values) / len(self.values))
        return (value - mean) / max(deviation, self._least_deviation)


def _no_number(what: str, value: float) -> str | None:
    if math.isnan(value):
        return f"the {what} is not a number"
    return f"the {what} is infinite" if math.isinf(value) else None


def _out_of_proportion(what: str, value: float, away: float, usual: float, window: int) -> str:
    return f"the {what} {value:.4g} is {away:.4g} standard deviations above the last {window} steps ({usual:.2g})"
