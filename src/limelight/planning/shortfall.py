"""A `Shortfall` says that a run will not get the gist of a text across, and how much longer it would take."""

import math
from dataclasses import dataclass
from typing import Final

from limelight.model.config import ModelConfig
from limelight.planning import sizing_rules as rules
from limelight.planning.scaling import BLEU_UP_TO, LossPrediction, predict_loss
from limelight.planning.sizing_rules import TextStats
from limelight.reporting.units import rough

# Nats: of our runs on captions those that ended at 3.1 have chrF 34 to 36 and 12 to 15 BLEU, the one at 2.95 has 19 BLEU
# (benchmarks/scaling_runs.json); a verdict of "for gist" takes 38 and 10 (`evaluation.verdict`).
GIST: Final = BLEU_UP_TO
FEW_PAIRS: Final = 10_000  # below it the law promises too much: it was made for more text (docs/plan.md)
PARENT: Final = "add text, or go on from a finished translator of these or related languages (--from)"
NOT_ENOUGH: Final = "NOT ENOUGH for a usable translator"  # as it is said, in capitals


@dataclass(frozen=True)
class Shortfall:
    expected: LossPrediction
    unique: float  # target pieces of the text
    passes: float
    pieces: float | None  # to see until it does; None: no time does it with this text
    seconds: float | None  # the budget for that; None: no time does it, or the speed is not known
    steps: int | None
    few: bool  # so little text that time alone will hardly do it

    @property
    def value(self) -> str:
        e = self.expected
        return f"{NOT_ENOUGH}: validation loss about {e.loss:.1f} ({e.low:.1f} to {e.high:.1f}), and it would have to be below {GIST:.0f}"

    @property
    def why(self) -> str:
        seen = f"the text is seen {rough(self.passes)} times"
        if self.pieces is None:
            first = ", less than once: more time comes first. Even then" if self.passes < 1 else ", and"
            return f"{seen}{first} by this estimate no time is enough for a model of this size with so little of it: {PARENT}"
        wanted = f"about --steps {self.steps}" if self.seconds is None else f"about --budget {format_budget(self.seconds)}"
        return f"{seen}; {wanted} would do{f', but with so few pairs rather {PARENT}' if self.few else ''}"


def find_shortfall(
    config: ModelConfig,
    text: TextStats,
    seen: float,
    steps: float,
    pieces_per_second: float | None = None,
    spent: float = 0.0,
    muon: bool = False,
) -> Shortfall | None:
    """None: GIST is within reach. `spent`: seconds of a budget before the first step. `muon`: the optimizer."""
    found = predict_loss(config, seen, text.target, steps=steps, frequencies=text.frequencies, muon=muon)
    if found.loss <= GIST:
        return None
    step, count = seen / max(1.0, steps), rules.enough(text.target, math.inf, config.d_model)
    pieces = _pieces_for_gist(config, text, step, max(count, seen), muon)
    seconds = None
    if pieces is not None and pieces_per_second is not None:
        seconds = rules.budget_for(pieces / pieces_per_second, spent)
    wanted = None if pieces is None else math.ceil(pieces / step)
    return Shortfall(found, text.target, seen / text.target, pieces, seconds, wanted, text.pairs < FEW_PAIRS)


def _pieces_for_gist(config: ModelConfig, text: TextStats, step: float, most: float, muon: bool) -> float | None:
    """The least that is expected to reach GIST; by halving, since more never raises the loss."""

    def is_reached(seen: float) -> bool:
        expected = predict_loss(config, seen, text.target, steps=seen / step, frequencies=text.frequencies, muon=muon)
        return expected.loss <= GIST

    low, high = step, most
    if not is_reached(high):
        return None
    while high > 1.02 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_reached(middle) else (middle, high)
    return high


def format_budget(seconds: float) -> str:
    """Round up, as --budget reads it: format_budget(1_480) -> "25m", format_budget(8_000) -> "2.5h"; 200_000 seconds are "3d"."""
    if seconds <= 3_600:
        return f"{5 * math.ceil(seconds / 300)}m"
    if seconds <= 48 * 3_600:
        return f"{math.ceil(seconds / 1_800) / 2:g}h"
    return f"{math.ceil(seconds / 86_400)}d"
