"""Options say what can be trained on a text with given devices and time, and which of it to take.

The first option is what the rules of `planning.sizing_rules` take, by which `limelight train --budget` goes too; the others follow by
expected loss, those that do not fit or that the text is too short for at the end. Times on devices that are only described rest on
assumptions (`planning.time.devices`, `planning.time.planned_step`), which `timing` replaces by what was measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from limelight.model.config import ModelConfig
from limelight.planning import sizing_rules as rules
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.size import parameters
from limelight.planning.parallel_rule import choose_layout
from limelight.planning.scaling import FITTED, LossPrediction, predict_loss
from limelight.planning.sizing_rules import TextStats
from limelight.planning.time.described_time import StepTime
from limelight.planning.time.devices import Device
from limelight.planning.time.planned_step import Step, Timing, make_timing, plan_step

PRESETS: Final = ("tiny", "slim", "small", "base", "deep", "big", "3b", "10b")
# Sizes beside the presets: layers of encoder and decoder, d_model, num_heads. Feed-forward layers are 4 times as wide.
BETWEEN: Final = {"4+4 x 384": ((4, 4), 384, 6), "6+6 x 768": ((6, 6), 768, 12), "12+6 x 1024": ((12, 6), 1024, 16)}
MOST: Final = 1_024
HELPS: Final = 1.2  # times as fast as half as many: else the other half does not help
HOURS: Final = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 24, 48, 96, 168)


@dataclass(frozen=True)
class PlanReason:
    about: Literal["size", "batch", "devices", "passes", "memory"]
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}"


@dataclass(frozen=True)
class Option:
    name: str
    config: ModelConfig  # with the dropout that its passes want
    parallel: Parallel
    precision: Precision
    recompute: bool
    pieces: float  # target pieces a step, of all devices
    accumulate: int  # passes of each device to a step
    steps: int
    epochs: float
    step: StepTime  # of the whole step
    memory: float  # bytes of a device, at most
    fits: bool
    seconds: float  # of training, with its validations
    cost: float | None  # USD; None where a device has no price
    expected: LossPrediction
    muon: bool  # or AdamW
    learning_rate: float
    why: tuple[PlanReason, ...]  # the first that of the size

    def explain(self, *about: str) -> str:
        return "; ".join(reason.text for reason in self.why if reason.about in about)


@dataclass(frozen=True)
class DevicePoint:
    count: int
    option: Option  # the same text, seen as often, on `count` devices
    helps: bool  # against half as many


@dataclass(frozen=True)
class CostPoint:
    budget: float  # seconds
    option: Option
    better: bool  # than all that cost less


@dataclass(frozen=True)
class CostCurve:
    devices: tuple[DevicePoint, ...]
    frontier: tuple[CostPoint, ...]

    @property
    def useful(self) -> int:
        """The most devices of which the last half still helps."""
        return max((point.count for point in self.devices if point.helps), default=1)


@dataclass(frozen=True)
class _Plan:
    text: TextStats
    device: Device
    count: int
    budget: float | None
    precision: Precision
    timing: Timing | None = None
    spent: float = 0.0
    corpus: str | None = None

    def option(self, name: str, config: ModelConfig) -> Option:
        parallel, shares = choose_layout(config, self.count, self.device.per_host, self.device.memory)
        step, seen, why = self._settle_batch(config, parallel)
        steps = max(rules.LEAST_STEPS, int(seen / step.pieces))
        pieces = steps * step.pieces
        epochs = pieces / self.text.target
        seconds = steps * step.time.worst / (1 - rules.VALIDATION_SHARE)
        muon = self.muon and rules.fits_muon(config)
        reasons = [PlanReason("batch", why), *([PlanReason("devices", shares)] if self.count > 1 else [])]
        if self.budget is not None and self.pieces_in_time(step.pieces, step.time) > 1.05 * seen:
            left = 1 - (seconds + rules.reserve(self.budget) + self.spent) / self.budget
            said = f"more than {epochs:.3g} would teach nothing more, so {left:.0%} of the time is left over"
            reasons.append(PlanReason("passes", said))
        if step.recompute:
            reasons.append(PlanReason("memory", "only with each block computed twice, machine.recompute=true"))
        if self.is_too_large(config):
            said = "larger than this text has use for; it would learn it by heart, which the expected loss does not know"
            reasons.append(PlanReason("size", said))
        expected = predict_loss(config, pieces, self.text.target, self.corpus, None, steps, self.text.frequencies, muon)
        return Option(
            name=name, config=config.changed(dropout=rules.dropout_for(epochs)), parallel=parallel, precision=self.precision,
            recompute=step.recompute, pieces=step.pieces, accumulate=step.accumulate, steps=steps, epochs=epochs, step=step.time,
            memory=step.memory, fits=step.fits, seconds=seconds, cost=self.device.cost(self.count, seconds), expected=expected,
            muon=muon, learning_rate=rules.peak_rate(config, muon), why=tuple(reasons),
        )  # fmt: skip

    def choose(self, named: Sequence[tuple[str, ModelConfig]]) -> Option:
        found = {name: self.option(name, config) for name, config in named if name in rules.TEXT_BY_MUON}
        size = rules.preset_for(
            self.text.target,
            {name: count_of(option.config) for name, option in found.items()},
            None if self.budget is None else lambda name: self.pieces_in_time(found[name].pieces, found[name].step),
            lambda name: found[name].fits,
            self.muon,
        )
        best = found[size.name]
        return replace(best, why=(PlanReason("size", size.why), *best.why))

    @property
    def muon(self) -> bool:
        return self.device.kind == "cpu" and self.count == 1

    def is_too_large(self, config: ModelConfig) -> bool:
        return rules.is_too_large(count_of(config), self.text.target, _presets(config.vocab_size))

    def pieces_in_time(self, pieces: float, step: StepTime) -> float:
        """Pieces that the budget has time for. Nothing of what is sent is hidden: a real run is a little faster."""
        if self.budget is None:
            return math.inf
        return pieces / step.worst * rules.training_seconds(self.budget, self.spent)

    def _settle_batch(self, config: ModelConfig, parallel: Parallel) -> tuple[Step, float, str]:
        """The batch depends on how many pieces are seen, and what is seen on the speed with this batch: three rounds settle it."""
        timing = self.timing or make_timing(self.device, self.precision)
        enough = rules.enough(self.text.target, count_of(config), config.d_model)
        seen, before = enough, None
        for _ in range(3):
            batch = rules.batch_for(seen, self.text.target)
            if batch == before:
                break
            before = batch
            step = plan_step(config, parallel, self.precision, self.text, self.device, batch.pieces, timing)
            seen = min(enough, self.pieces_in_time(step.pieces, step.time))
        return step, seen, batch.why


def options(
    text: TextStats,
    device: Device,
    count: int,
    seconds: float | None,
    precision: Precision,
    *,
    vocab_size: int | None = None,
    timing: Timing | None = None,
    spent: float = 0.0,
    more: Sequence[tuple[str, ModelConfig]] = (),
    corpus: str | None = None,
) -> list[Option]:
    """What can be trained on `count` devices in `seconds` of budget, best first.

    `spent`: seconds that go by before training. `more`: configurations of one's own. `corpus`: one that was measured, whose level is known.
    """
    plan = _Plan(text, device, count, seconds, precision, timing, spent, corpus)
    named = [*sizes(vocab_size or usual_pieces(text)), *more]
    best = plan.choose(named)

    def rank(option: Option) -> tuple[bool, bool, float]:
        return not option.fits, plan.is_too_large(option.config), option.expected.loss

    rest = sorted((plan.option(name, config) for name, config in named if name != best.name), key=rank)
    second = rest[0]
    # The rule is careful and takes presets only: where the fitted law sees more than its own spread in another size, that is said.
    gained = best.expected.loss - second.expected.loss
    if gained >= FITTED.spread and second.fits and not plan.is_too_large(second.config):
        said = f"{second.name} may end {gained:.2f} nats lower by the fitted law, which the rule does not rely on; worth a run"
        best = replace(best, why=(*best.why, PlanReason("size", said)))
    return [best, *rest]


def curve(
    text: TextStats,
    device: Device,
    precision: Precision,
    *,
    count: int = 1,
    most: int = MOST,
    vocab_size: int | None = None,
    timing: Timing | None = None,
) -> CostCurve:
    """`count`: devices of the frontier, over times from minutes to a week. `timing` is of any number of devices."""
    named = sizes(vocab_size or usual_pieces(text))
    devices: list[DevicePoint] = []
    number = 1
    while number <= most:
        made = _Plan(text, device, number, None, precision, timing).choose(named)
        half = devices[-1].option if devices else None
        helps = half is None or not half.fits or half.seconds > HELPS * made.seconds
        devices.append(DevicePoint(number, made, made.fits and helps))
        number *= 2
    points: list[CostPoint] = []
    for hours in HOURS:
        made = _Plan(text, device, count, 3_600 * hours, precision, timing).choose(named)
        lowest = min((point.option.expected.loss for point in points), default=float("inf"))
        points.append(CostPoint(3_600 * hours, made, made.expected.loss < 0.999 * lowest))
        if made.seconds < 0.5 * 3_600 * hours:
            break  # the text is learnt: more time buys nothing
    return CostCurve(tuple(devices), tuple(points))


def sizes(vocab_size: int) -> list[tuple[str, ModelConfig]]:
    named = [(name, ModelConfig.preset(name, vocab_size)) for name in PRESETS]
    for name, ((encoder, decoder), d_model, num_heads) in BETWEEN.items():
        shape = {"encoder_layers": encoder, "decoder_layers": decoder, "num_heads": num_heads, "d_ff": 4 * d_model}
        named.append((name, ModelConfig.preset("base", vocab_size, d_model=d_model, norm_order="pre", **shape)))
    return sorted(named, key=lambda each: count_of(each[1]))


def usual_pieces(text: TextStats) -> int:
    """A vocabulary for a text that nobody has looked at: `prepare` suggests one from its words."""
    bounds = {50_000: 4_000, 300_000: 8_000, 3_000_000: 16_000}
    return next((size for most, size in bounds.items() if text.pairs < most), 32_000)


@cache
def _presets(vocab_size: int) -> dict[str, int]:
    names = [*rules.TEXT_FOR, *rules.TEXT_FOR_MORE]
    return {name: count_of(ModelConfig.preset(name, vocab_size)) for name in names}


def count_of(config: ModelConfig) -> int:
    return sum(parameters(config).values())
