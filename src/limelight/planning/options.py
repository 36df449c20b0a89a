"""Options say what can be trained on a text with given devices and time, and which of it to take.

    options(TextStats(29_000, 450_000, 515_000), this_machine(...), 1, 1_800, "masters")[0].name -> "small"

The first option is what the rules of `planning.rules` take, by which `limelight train --budget` goes too; the others follow by expected
loss, those that do not fit or that the text is too short for at the end. Times on devices that are only described rest on assumptions
(`planning.time.devices`, `planning.time.planned_step`), which `timing` replaces by what was measured.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from limelight.model.config import ModelConfig
from limelight.planning import rules
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.size import parameters
from limelight.planning.parallel_rule import choose_layout
from limelight.planning.rules import TextStats
from limelight.planning.scaling import FITTED, LossPrediction, predict_loss
from limelight.planning.time.described_time import StepTime
from limelight.planning.time.devices import Device
from limelight.planning.time.planned_step import Step, Timing, make_timing, plan_step

PRESETS: Final = ("tiny", "small", "base", "deep", "big", "3b", "10b")
# Sizes beside the presets: layers of encoder and decoder, d_model, num_heads. Feed-forward layers are 4 times as wide.
BETWEEN: Final = {"4+4 x 384": ((4, 4), 384, 6), "6+6 x 768": ((6, 6), 768, 12), "12+6 x 1024": ((12, 6), 1024, 16)}


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
    learning_rate: float
    why: tuple[str, ...]  # "what: reason", the first that of the size


@dataclass(frozen=True)
class _Plan:
    text: TextStats
    device: Device
    count: int
    budget: float | None
    precision: Precision
    timing: Timing
    spent: float
    corpus: str | None

    def option(self, name: str, config: ModelConfig) -> Option:
        parallel, shares = choose_layout(config, self.count, self.device.per_host, self.device.memory)
        step, seen, batch = self._settle_batch(config, parallel)
        steps = max(rules.LEAST_STEPS, int(seen / step.pieces))
        epochs = steps * step.pieces / self.text.target
        seconds = steps * step.time.worst / (1 - rules.VALIDATION_SHARE)
        price = self.device.price
        why = [f"batch: {batch}", *([f"devices: {shares}"] if self.count > 1 else [])]
        if self.budget is not None and self._fitting(step) > 1.05 * seen:
            left = 1 - (seconds + rules.reserve(self.budget) + self.spent) / self.budget
            why.append(
                f"passes: more than {epochs:.3g} would teach nothing more, so {left:.0%} of the time is left over"
            )
        if step.recompute:
            why.append("memory: only with each block computed twice, machine.recompute=true")
        if self.is_too_large(config):
            why.append(
                "size: larger than this text has use for; it would learn it by heart, which the expected loss does not know"
            )
        return Option(
            name=name,
            config=config.changed(dropout=rules.dropout_for(epochs)),
            parallel=parallel,
            precision=self.precision,
            recompute=step.recompute,
            pieces=step.pieces,
            accumulate=step.accumulate,
            steps=steps,
            epochs=epochs,
            step=step.time,
            memory=step.memory,
            fits=step.fits,
            seconds=seconds,
            cost=None if price is None else price * self.count * seconds / 3_600,
            expected=predict_loss(
                config,
                steps * step.pieces,
                self.text.target,
                self.corpus,
                steps=steps,
                frequencies=self.text.frequencies,
            ),
            learning_rate=rules.peak_rate(config),
            why=tuple(why),
        )

    def fitting(self, option: Option) -> float:
        """Pieces that the budget has time for."""
        return self._speed(option.pieces, option.step)

    def is_too_large(self, config: ModelConfig) -> bool:
        return rules.is_too_large(count_of(config), self.text.target, _presets(config.vocab_size))

    def _settle_batch(self, config: ModelConfig, parallel: Parallel) -> tuple[Step, float, str]:
        """The batch depends on how many pieces are seen, and what is seen on the speed with this batch: three rounds settle it."""
        enough = rules.enough(self.text.target, count_of(config))
        seen, before = enough, None
        for _ in range(3):
            batch = rules.batch_for(seen, self.text.target)
            if batch == before:
                break
            before = batch
            step = plan_step(config, parallel, self.precision, self.text, self.device, batch.pieces, self.timing)
            seen = min(enough, self._fitting(step))
        return step, seen, batch.why

    def _fitting(self, step: Step) -> float:
        return self._speed(step.pieces, step.time)

    def _speed(self, pieces: float, step: StepTime) -> float:
        """Nothing of what is sent is hidden: a real run is a little faster."""
        return (
            math.inf if self.budget is None else pieces / step.worst * rules.training_seconds(self.budget, self.spent)
        )


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
    plan = _Plan(text, device, count, seconds, precision, timing or make_timing(device, precision), spent, corpus)
    named = [*sizes(vocab_size or usual_pieces(text)), *more]
    best = _choose(plan, {name: plan.option(name, config) for name, config in named if name in rules.TEXT_FOR})

    def rank(option: Option) -> tuple[bool, bool, float]:
        return not option.fits, plan.is_too_large(option.config), option.expected.loss

    rest = sorted((plan.option(name, config) for name, config in named if name != best.name), key=rank)
    return [replace(best, why=(*best.why, *_better(best, rest[0], plan))), *rest]


def recommend(
    text: TextStats,
    device: Device,
    count: int,
    seconds: float | None,
    precision: Precision,
    vocab_size: int | None = None,
    timing: Timing | None = None,
) -> Option:
    """The first of `options` alone, without the others."""
    plan = _Plan(text, device, count, seconds, precision, timing or make_timing(device, precision), 0.0, None)
    named = sizes(vocab_size or usual_pieces(text))
    return _choose(plan, {name: plan.option(name, config) for name, config in named if name in rules.TEXT_FOR})


def _choose(plan: _Plan, found: Mapping[str, Option]) -> Option:
    """By the rule that a run goes by."""
    size = rules.preset_for(
        plan.text.target,
        {name: count_of(option.config) for name, option in found.items()},
        None if plan.budget is None else lambda name: plan.fitting(found[name]),
        lambda name: found[name].fits,
    )
    return replace(found[size.name], why=(f"size: {size.why}", *found[size.name].why))


def _better(best: Option, next_best: Option, plan: _Plan) -> tuple[str, ...]:
    """The rule is careful and takes presets only: where the fitted law sees more than its own spread in another size, that is said."""
    gained = best.expected.loss - next_best.expected.loss
    if gained < FITTED.spread or not next_best.fits or plan.is_too_large(next_best.config):
        return ()
    return (
        f"size: {next_best.name} may end {gained:.2f} nats lower by the fitted law, which the rule does not rely on; worth a run",
    )


def sizes(vocab_size: int) -> list[tuple[str, ModelConfig]]:
    """Presets and what lies between them, smallest first."""
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
    """Parameters of every size that the rules know."""
    names = [*rules.TEXT_FOR, *rules.TEXT_FOR_MORE]
    return {name: count_of(ModelConfig.preset(name, vocab_size)) for name in names}


def count_of(config: ModelConfig) -> int:
    return sum(parameters(config).values())
