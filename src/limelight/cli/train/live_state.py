"""The live state keeps what a person wants to know of a run. That is smoothed numbers, their history, validations and the last notices."""

import itertools
import math
import re
from collections import deque
from dataclasses import dataclass, field

from limelight.training.events import Event, RunNotice, StepReport, ValidReport

WARM_UP = 10  # steps of a start that say nothing about its speed: allocation, compilation, caches
SMOOTHING = 0.96  # weight of the past at each step: about the last 25 steps count
LONGEST_HISTORY = 64
NOTICES = 3
FOREVER = 10 * 365 * 86_400.0  # seconds: no time left that is longer is a time
BARS = "▁▂▃▄▅▆▇█"
FLAT = 1e-6  # relative: smaller differences are rounding, and would be drawn as mountains

# Everything a terminal could take for a command or a line break, marks that turn the direction of what follows, and half characters.
_HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


def harmless(text: str) -> str:
    """harmless("a\\x1b[2Jb\\n") -> "a [2Jb ": text of others stays text, on one line."""
    return _HARMFUL.sub(" ", text)


class History:
    """A curve has at most LONGEST_HISTORY points: when it is full, neighbours become their mean and each point stands for twice as many."""

    def __init__(self) -> None:
        self.points: list[float] = []
        self._each, self._sum, self._count = 1, 0.0, 0

    def add(self, value: float) -> None:
        self._sum += value
        self._count += 1
        if self._count < self._each:
            return
        self.points.append(self._sum / self._count)
        self._sum, self._count = 0.0, 0
        if len(self.points) >= LONGEST_HISTORY:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [(a + b) / 2 for a, b in pairs]
            self._each *= 2

    def draw(self, width: int) -> str:
        """sparks of the whole curve, from its lowest to its highest: "▇▅▃▂▁"."""
        count = len(self.points)
        width = min(width, count)
        if width < 2:
            return ""
        cuts = [round(i * count / width) for i in range(width + 1)]
        means = [sum(self.points[a:b]) / (b - a) for a, b in itertools.pairwise(cuts)]
        low, high = min(means), max(means)
        if high - low <= FLAT * abs(high):
            return BARS[0] * width
        return "".join(BARS[round((mean - low) / (high - low) * (len(BARS) - 1))] for mean in means)


@dataclass
class Smooth:
    """`Smooth` is a moving ratio of two sums, which starts right without a correction: (1, 2) then (3, 2) -> about 1."""

    above: float = 0.0
    below: float = 0.0

    def add(self, above: float, below: float = 1.0) -> None:
        self.above = SMOOTHING * self.above + above
        self.below = SMOOTHING * self.below + below

    @property
    def value(self) -> float | None:
        return self.above / self.below if self.below > 0 else None


@dataclass
class LiveState:
    step: StepReport | None = None
    valids: list[ValidReport] = field(default_factory=list)
    notices: deque[RunNotice] = field(default_factory=lambda: deque(maxlen=NOTICES))
    skipped: int = 0
    loss: Smooth = field(default_factory=Smooth)
    nll: Smooth = field(default_factory=Smooth)
    gradient: Smooth = field(default_factory=Smooth)
    padding: Smooth = field(default_factory=Smooth)
    speed: Smooth = field(default_factory=Smooth)  # source and target pieces per second
    waiting: Smooth = field(default_factory=Smooth)  # share of the time
    losses: History = field(default_factory=History)
    rates: History = field(default_factory=History)
    _steps: int = 0

    def add(self, event: Event) -> None:
        if isinstance(event, StepReport):
            self._add_step(event)
        elif isinstance(event, ValidReport):
            self.valids.append(event)
        elif event.kind != "chosen":
            self.notices.append(event)

    def _add_step(self, report: StepReport) -> None:
        self.step = report
        self._steps += 1
        self.rates.add(report.learning_rate)
        self.padding.add(report.padding)
        if self._steps > WARM_UP:
            self.speed.add(report.source_pieces + report.target_pieces, report.seconds)
            self.waiting.add(report.waited, report.seconds)
        if report.skipped is not None:
            self.skipped += 1
        elif all(map(math.isfinite, (report.loss, report.nll, report.gradient_norm))):
            self.loss.add(report.loss)
            self.nll.add(report.nll)
            self.gradient.add(report.gradient_norm)
            if self.loss.value is not None:
                self.losses.add(self.loss.value)

    @property
    def best(self) -> ValidReport | None:
        return next((valid for valid in reversed(self.valids) if valid.best), None)

    def last_valids(self, most: int) -> list[ValidReport]:
        shown = self.valids[-most:] if most > 0 else []
        best = self.best
        if best is not None and len(shown) > 1 and best not in shown:
            shown[0] = best
        return shown

    def find_earlier(self, source: str, step: int) -> list[tuple[int, str]]:
        """How the same sentence was translated at earlier validations, the latest last."""
        return [
            (valid.step, sample.translation)
            for valid in self.valids
            if valid.step < step
            for sample in valid.samples
            if sample.source == source
        ]


def perplexity(nll: float) -> float:
    """e^nll, of a model that may know nothing yet."""
    return math.exp(min(nll, 700.0))
