"""A forecast puts together model, batch, memory, speed, time, disk, money and expected loss from `planning`. See docs/plan.md."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from limelight.errors import ConfigError
from limelight.model.config import PRESETS, ModelConfig
from limelight.planning.corpus_work import CorpusWork, corpus_work
from limelight.planning.cost.activations import Where
from limelight.planning.cost.memory import checkpoint_bytes
from limelight.planning.cost.parallel import Precision
from limelight.planning.cost.peak import Peak, peak
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.size import parameters
from limelight.planning.options import CostCurve, Option, PlanReason, curve, options, sizes
from limelight.planning.scaling import predict_loss
from limelight.planning.shortfall import Shortfall, find_shortfall
from limelight.planning.sizing_rules import VALIDATION_SHARE, dropout_for, reserve
from limelight.planning.time.described_time import StepTime
from limelight.planning.time.devices import Device
from limelight.planning.time.planned_step import HELD, Timing, make_timing, shape_of
from limelight.training.config import AverageSettings, CheckpointSettings, Recipe
from limelight.training.forecast.text_size import EpochSize
from limelight.training.step.learning_rate import compute_growth_ahead

ALTERNATIVES: Final = 3  # shown beside what was chosen


@dataclass(frozen=True)
class ForecastRequest:
    """A request holds text, devices and budget. `name`: a preset that was asked for; `recipe`: if given, decides model, batch and steps."""

    seen: EpochSize
    device: Device
    count: int
    precision: Precision
    seconds: float | None = None
    name: str | None = None
    recipe: Recipe | None = None
    model: Mapping[str, Any] = field(default_factory=dict)  # keys of the section `model` that were given
    steps: int | None = None
    timing: Timing | None = None  # measured, where it was
    cores: int = 1  # that prepare the text
    is_prepared: bool = False


@dataclass(frozen=True)
class Forecast:
    question: ForecastRequest
    chosen: Option
    others: tuple[Option, ...]
    advised: str  # the size that would be chosen, also where another was asked for
    peak: Peak  # of a batch of the longest sentences
    preparing: float  # seconds
    scoring: float  # seconds after training: choosing among the weights, the test set, the report
    disk: Mapping[str, float]  # bytes by what they hold
    parameters: Mapping[str, int]

    @property
    def seconds(self) -> float:
        return self.preparing + self.chosen.seconds + self.scoring

    @property
    def fits(self) -> bool:
        return self.peak.total <= HELD * self.question.device.memory

    @property
    def rate(self) -> float:
        return self.chosen.pieces / self.chosen.step.worst

    @property
    def shape(self) -> BatchShape:
        """Batch shape of one pass of one device, at mean lengths."""
        chosen = self.chosen
        return shape_of(self.question.seen.text, chosen.pieces / chosen.parallel.data_size / _count_batches(self.question, chosen))

    @property
    def shortfall(self) -> Shortfall | None:
        """What is missing to a translator that is of any use; nothing of a recipe that goes on from one."""
        q, chosen = self.question, self.chosen
        if q.recipe is not None and q.recipe.fine_tuning is not None:
            return None
        seen, speed = chosen.steps * chosen.pieces, None if q.steps or q.recipe else self.rate
        return find_shortfall(chosen.config, q.seen.text, seen, chosen.steps, speed, self.preparing, chosen.muon)

    @property
    def at_half_speed(self) -> float | None:
        """The loss to expect if a budget is spent at half of a speed that was only assumed."""
        q, chosen = self.question, self.chosen
        if q.timing is not None or q.seconds is None or q.steps or q.recipe:
            return None
        seen, steps = chosen.steps * chosen.pieces / 2, chosen.steps / 2
        return predict_loss(chosen.config, seen, q.seen.target, steps=steps, frequencies=q.seen.frequencies, muon=chosen.muon).loss

    def values(self) -> dict[str, Any]:
        q = self.question
        return {
            "model": {**_of_option(self.chosen)["model"], "parameters": dict(self.parameters)},
            "text": {**vars(q.seen), "asked_seconds": q.seconds},
            "device": {**vars(q.device), "count": q.count},
            "precision": q.precision,
            "plan": _of_option(self.chosen),
            "memory": {"parts": dict(self.peak.parts), "total": self.peak.total, "device": q.device.memory, "fits": self.fits},
            "speed": {"pieces_per_second": self.rate, "measured": q.timing is not None},
            "seconds": {"prepare": self.preparing, "train": self.chosen.seconds, "score": self.scoring, "total": self.seconds},
            "disk": dict(self.disk),
            "cost": self.chosen.cost,
            "advised": self.advised,
            "shortfall": None if self.shortfall is None else {**vars(self.shortfall), "expected": vars(self.shortfall.expected)},
            "others": [_of_option(option) for option in self.others],
        }  # fmt: skip


def forecast(question: ForecastRequest) -> Forecast:
    q = question
    work = corpus_work(q.seen.read, q.cores, bytes_of_pair=q.seen.bytes_of_pair)
    preparing = 0.0 if q.is_prepared else work.seconds
    weighed = _sizes(q)
    found = options(
        q.seen.text, q.device, q.count, q.seconds, q.precision,
        vocab_size=q.seen.vocab_sizes[1], timing=q.timing, spent=preparing, more=weighed,
    )  # fmt: skip
    found = _as_asked(q, found, dict(weighed))
    chosen = _choose_option(q, found)
    others = tuple(each for each in found if each.name != chosen.name)[:ALTERNATIVES]
    where: Where = "cpu" if q.device.kind == "cpu" else "accelerator"
    most = peak(
        chosen.config, chosen.parallel, q.precision, _longest(q, chosen), where, chosen.recompute, "muon" if chosen.muon else "adamw"
    )  # fmt: skip
    if q.recipe is not None:
        chosen = replace(chosen, memory=most.total, fits=most.total <= HELD * q.device.memory)
    # A run keeps back a part of its budget; one that ends earlier does not need all of it, but some seconds whatever it is.
    scoring = min(reserve(q.seconds or math.inf), 20 + 0.02 * chosen.seconds)
    return Forecast(
        question=q, chosen=chosen, others=others, advised=found[0].name, peak=most, preparing=preparing, scoring=scoring,
        disk=_disk(q, chosen, work), parameters=parameters(chosen.config),
    )  # fmt: skip


def curves(question: ForecastRequest) -> CostCurve:
    """What more devices, and more time, would buy: of a chosen size, for pictures."""
    q = question
    # What was measured is this machine alone; of several nothing was.
    return curve(
        q.seen.text, q.device, q.precision, count=q.count, vocab_size=q.seen.vocab_sizes[1],
        most=1 if q.device.kind == "cpu" else 1_024, timing=q.timing,
    )  # fmt: skip


def _sizes(q: ForecastRequest) -> list[tuple[str, ModelConfig]]:
    """Every size as this text and the keys that were given want it; those that cannot be are left out, unless they were asked for."""
    own: dict[str, Any] = {"vocab_size": q.seen.vocab_sizes[1]}
    if not q.seen.joint:
        own |= {"tie": "decoder", "source_vocab_size": q.seen.vocab_sizes[0]}
    if q.recipe is not None:
        return [(_recipes_name(q.recipe), q.recipe.model)]
    made = []
    for name, config in sizes(q.seen.vocab_sizes[1]):
        try:
            made.append((name, ModelConfig(**{**config.model_dump(), **own, **q.model})))
        except ConfigError:
            if name == q.name or len(q.model) == 0:
                raise
    if q.name is not None and q.name not in dict(made):  # such as toy, which is never advised
        made.append((q.name, ModelConfig.preset(q.name, **{**own, **q.model})))
    return made


def _as_asked(q: ForecastRequest, found: list[Option], own: Mapping[str, ModelConfig]) -> list[Option]:
    """Of each size the one with the keys that were given; what cannot be had with them is no option."""

    def is_ours(option: Option) -> bool:
        if option.name not in own:
            return q.recipe is not None
        return option.config.changed(dropout=0.0) == own[option.name].changed(dropout=0.0)  # dropout goes by the passes

    once = {option.name: option for option in reversed(found) if is_ours(option)}  # an unchanged preset is there twice
    return list(reversed(once.values()))


def _recipes_name(recipe: Recipe) -> str:
    for name, shape in PRESETS.items():
        if all(getattr(recipe.model, key) == value for key, value in shape.items() if "dropout" not in key):
            return name
    return "recipe"


def _choose_option(q: ForecastRequest, found: list[Option]) -> Option:
    if q.recipe is not None:
        name = _recipes_name(q.recipe)
        return _as_written(q, next(each for each in found if each.name == name), q.recipe)
    option = found[0] if q.name is None else next(each for each in found if each.name == q.name)
    if q.name is not None:
        others = (each for each in option.why if each.about != "size")
        option = replace(option, why=(PlanReason("size", "asked for"), *others))
    return option if q.steps is None else _taking(q, option, q.steps)


def _as_written(q: ForecastRequest, option: Option, recipe: Recipe) -> Option:
    share = q.seen.target / (q.seen.source + q.seen.target)
    each = recipe.batch.budget * share
    batches = _count_batches(q, option)
    pieces = min(each, q.seen.target) * batches
    shape = shape_of(q.seen.text, pieces / batches / option.parallel.data_size)
    once = (q.timing or make_timing(q.device, q.precision))(recipe.model, option.parallel, shape, recipe.machine.recompute)
    passes = batches * (2 if recipe.r_drop else 1)
    gathers = passes if option.parallel.sharded else 1  # gradients travel once a step, weights once a pass
    step = StepTime(passes * once.computing, gathers * once.hidden, passes * once.exposed)
    option = replace(
        option, config=recipe.model, recompute=recipe.machine.recompute, pieces=pieces, accumulate=recipe.accumulate, step=step,
        muon=recipe.optimizer.name == "muon", learning_rate=recipe.optimizer.learning_rate,
        why=(PlanReason("size", "as the recipe says"), PlanReason("batch", "as the recipe says")),
    )  # fmt: skip
    return replace(_taking(q, option, q.steps or recipe.schedule.steps), config=recipe.model)


def _count_batches(q: ForecastRequest, option: Option) -> float:
    """Of a step, in the mean: that of a recipe may grow."""
    if q.recipe is None:
        return option.accumulate
    return q.recipe.accumulate * compute_growth_ahead(0, q.recipe.schedule, q.recipe.accumulate)


def _taking(q: ForecastRequest, option: Option, steps: int) -> Option:
    seen = steps * option.pieces
    seconds = steps * option.step.worst / (1 - VALIDATION_SHARE)
    epochs = seen / q.seen.target
    expected = predict_loss(option.config, seen, q.seen.target, steps=steps, frequencies=q.seen.frequencies, muon=option.muon)
    return replace(
        option, steps=steps, epochs=epochs, seconds=seconds, cost=q.device.cost(q.count, seconds), expected=expected,
        config=option.config.changed(dropout=dropout_for(epochs)),
    )  # fmt: skip


def _longest(q: ForecastRequest, option: Option) -> BatchShape:
    """Return the shape of a batch of the longest sentences: as many cells, fewer rows, and more for each to look at."""
    source, target = (min(length, option.config.max_length) for length in q.seen.longest)
    means = q.seen.means
    cells = option.pieces / option.parallel.data_size / _count_batches(q, option) * sum(means) / means[1]
    return BatchShape.padded(max(1, round(cells / (source + target))), source, target)


def _disk(q: ForecastRequest, option: Option, work: CorpusWork) -> dict[str, float]:
    recipe = q.recipe
    kept = (recipe.checkpoints if recipe else CheckpointSettings()).keep
    best = (recipe.average if recipe else AverageSettings()).best
    weights = 4.0 * sum(parameters(option.config).values())
    whole = checkpoint_bytes(option.config, "muon" if option.muon else "adamw")
    return {
        "checkpoints": (kept + 1) * whole,  # one more while it is written
        "best weights": best * weights,
        "translator": weights,
        "prepared text": work.written,
    }


def _of_option(option: Option) -> dict[str, Any]:
    values = {key: value for key, value in vars(option).items() if key not in ("config", "name")}
    return {
        **values,
        "model": {"name": option.name, "config": option.config.model_dump(mode="json")},
        "parallel": vars(option.parallel),
        "step": {**vars(option.step), "seconds": option.step.worst},
        "expected": vars(option.expected),
        "why": [str(reason) for reason in option.why],
    }
