"""A planner chooses model size, batch, steps and schedule of a run from the corpus and the time at hand.

The rules stand in `limelight.planning.sizing_rules`, which plans go by too, and here; a value that a person gave wins over every rule.
Speed is that of one process, also where several will train: steps are put right at validations, the size is not.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.planning import sizing_rules as rules
from limelight.planning.cost.compute import flops_of_pair
from limelight.planning.cost.size import parameters
from limelight.planning.parallel_rule import BYTES_PER_PARAMETER
from limelight.planning.shortfall import find_shortfall
from limelight.runtime import memory_at_hand
from limelight.training.config import FineTuning, OptimizerSettings, Recipe, ScheduleSettings
from limelight.training.processes.world import is_distributed
from limelight.training.recipe.augmentation import choose_augmentation
from limelight.training.recipe.calibrate import CalibrationResult, ComputeSetup, calibrate
from limelight.training.recipe.request import TrainRequest
from limelight.training.recipe.text_stats import PreparedText, choose_temperature, frequencies
from limelight.training.run_folder import RunChoice
from limelight.training.step.learning_rate import compute_growth_ahead

# Those without a reason were set by hand, after trials on tens of thousands of pairs; what was measured stands in docs/experiments.md.
MOST_AT_ONCE: Final = 16_384  # cells of one batch on a CPU: more are no faster
MEMORY_TO_USE: Final = 0.6  # of what is free: long sentences need more than the mean that was measured
SHARE_TO_CALIBRATE, LONGEST_CALIBRATION = 0.02, 20.0
CALIBRATION_FOR_STEPS: Final = 2.0  # seconds: when the steps are given, only the threads depend on it
VALIDATIONS: Final = 20
BETWEEN_VALIDATIONS: Final = 20.0  # seconds of training at least: an untrained model takes long to say nothing
SENTENCES: Final = (100, 500)  # translated at a validation: one for each second of a budget, within these bounds
PATIENCE: Final = 8
# The validation set chooses the search where it says something, and where that takes little of the time: four searches of all of it.
LEAST_TO_CHOOSE_BY, LEAST_STEPS_TO_CHOOSE, LEAST_SECONDS_TO_CHOOSE = 200, 500, 1_200  # sentences; and how long a run is
CLIP: Final = 1.0
FINE_TUNING_RATE: Final = 0.25  # of the rate that a new model of this width would get by AdamW
# Of that by its own optimizer: rows of new pieces have as far to go as in a new model, and layers that know another language shall stay.
PARENT_RATE: Final = 0.5


@dataclass(frozen=True)
class Plan:
    recipe: Recipe
    chosen: list[RunChoice]


@dataclass
class RecipePlanner:
    """A planner fills a recipe. `model` is that of a bundle to go on from."""

    prepared: PreparedCorpus
    stand: ComputeSetup
    asked: TrainRequest
    spent: float = 0.0  # seconds of the budget that are gone
    model: ModelConfig | None = None
    fine_tuning: FineTuning | None = None
    takes_matches: bool = False  # was that translator taught to be told them? Then this one is, too
    chosen: list[RunChoice] = field(default_factory=list)

    def plan(self) -> Plan:
        self.text = replace(PreparedText.of(self.prepared.manifest), frequencies=frequencies(self.prepared))
        self.keeps_pieces = self.fine_tuning is not None and self.fine_tuning.parent is None
        self.augment, told = choose_augmentation(self.prepared, self._read_changes("batch"), self.takes_matches, not self.keeps_pieces)
        self.temperature, shared = choose_temperature(self.prepared, self._read_changes("batch"))
        self.optimizer = self._choose_optimizer()
        config, measured = self._size()
        self.optimizer = self._choose_optimizer(config)
        self.enough = rules.enough(self.text.target, sum(parameters(config).values()), config.d_model)
        seen = self._pieces(measured)
        batch, accumulate, pieces = self._batch(config, seen, measured)
        pieces *= compute_growth_ahead(0, ScheduleSettings(**self._read_changes("schedule")), accumulate)
        steps = self.asked.steps or max(rules.LEAST_STEPS, int(seen / pieces))
        epochs = steps * pieces / self.text.target
        config, curve = self._choose_dropout(config, epochs), rules.curve_for(steps, epochs, not self.keeps_pieces)
        rate = rules.peak_rate(config, muon=self.optimizer == "muon")
        slower = FINE_TUNING_RATE if self.keeps_pieces else PARENT_RATE if self.fine_tuning else 1.0
        for each in (told, *([shared] if shared else [])):
            self._say(each.name, each.value, each.why)
        if guided := self.asked.changes.get("guided_alignment"):
            self._say("guided alignment", f"{guided}", "asked for; a head learns where words come from, and the loss shown contains it")
        self._say("schedule", f"{steps:,} steps, {epochs:.1f} epochs", self._why(seen, measured))
        self._say_shortfall(config, steps * pieces, steps, measured)
        values: dict[str, Any] = {
            "data": self.prepared.manifest.settings,
            "model": config.model_dump(),
            "batch": batch.model_dump(),
            "accumulate": accumulate,
            "optimizer": {"name": self.optimizer, "learning_rate": rate * slower, "clip": CLIP},
            "schedule": {
                "steps": steps,
                "fixed": self.asked.steps is not None or self._is_enough(seen),
                **curve.schedule,
            },
            "average": curve.average,
            "validation": self._validation(steps, epochs, pieces / measured.pieces_per_second),
            "machine": {
                "device": str(self.stand.device),
                "precision": self.stand.precision,
                "threads": measured.threads,
            },
            "budget_seconds": self.asked.budget_seconds,
            "seed": self.seed,
            "fine_tuning": self.fine_tuning.model_dump() if self.fine_tuning else None,
        }
        return Plan(Recipe(**merge(values, self.asked.changes)), self.chosen)

    @property
    def seed(self) -> int:
        return 1 if self.asked.seed is None else self.asked.seed

    def _read_changes(self, section: str) -> Mapping[str, Any]:
        given: Mapping[str, Any] = self.asked.changes.get(section, {})
        return given

    def _size(self) -> tuple[ModelConfig, CalibrationResult]:
        """A preset that was asked for, or the model to go on from; else the largest that text and time have use for."""
        if self.model is not None:
            _refuse_another_shape(self.model, self._read_changes("model"))
            self._say("model", _describe_model(self.model), "that of the translator it goes on from")
            return self.model, self._measure(self.model)
        if self.asked.preset is not None:
            config = self._config(self.asked.preset)
            self._say("model", f"{self.asked.preset}: {_describe_model(config)}", "asked for")
            return config, self._measure(config)
        muon = self.optimizer == "muon"
        sizes = rules.list_sizes(self.text.target, muon)
        measured_on = self._config("small" if "small" in sizes else sizes[-1])
        measured = self._measure(measured_on)
        configs = {name: self._config(name) for name in rules.TEXT_BY_MUON}

        def seen(name: str) -> float:
            source, target = self.text.source / self.text.pairs, self.text.target / self.text.pairs
            slower = flops_of_pair(configs[name], source, target) / flops_of_pair(measured_on, source, target)
            return measured.pieces_per_second / slower * self._training_seconds()

        counts = {name: sum(parameters(config).values()) for name, config in configs.items()}
        unlimited = self.asked.budget_seconds is None or self.asked.steps is not None
        size = rules.preset_for(self.text.target, counts, None if unlimited else seen, muon=muon)
        config = configs[size.name]
        self._say("model", f"{size.name}: {_describe_model(config)}", size.why)
        return config, measured if config == measured_on else self._measure(config)

    def _config(self, preset: str) -> ModelConfig:
        sizes = self.prepared.manifest.vocab_sizes
        shared = len(self.prepared.manifest.pieces) == 1
        apart = {} if shared else {"tie": "decoder", "source_vocab_size": sizes[0]}
        return ModelConfig.preset(preset, **{"vocab_size": sizes[1], **apart, **self._read_changes("model")})

    def _choose_optimizer(self, config: ModelConfig | None = None) -> str:
        """Muon where it was measured: with new pieces or from nothing, in one process, on a CPU, up to a width."""
        asked = self._read_changes("optimizer").get("name")
        elsewhere = self.keeps_pieces or is_distributed() or self.stand.device.type != "cpu"
        if asked or elsewhere or (config is not None and not rules.fits_muon(config)):
            return str(asked or OptimizerSettings().name)
        if config is not None:
            self._say("optimizer", "muon", f"on a CPU new models up to {rules.WIDEST_BY_MUON} wide learn more by it in equal time")
        return "muon"

    def _measure(self, config: ModelConfig) -> CalibrationResult:
        budget = self.asked.budget_seconds or 600.0
        seconds = min(LONGEST_CALIBRATION, SHARE_TO_CALIBRATE * budget)
        if self.asked.steps is not None:
            seconds = min(seconds, CALIBRATION_FOR_STEPS)
        batch = self._settings_of_batch(config, 2 * rules.BATCH[0])
        optimizer = OptimizerSettings(**{"name": self.optimizer, **self._read_changes("optimizer")})
        began = time.monotonic()
        measured = calibrate(config, self.prepared, batch, optimizer, self.stand, seconds, self.asked.changes.get("r_drop"))
        self.spent += time.monotonic() - began
        if measured.one_thread is not None:
            why = "more were hardly faster, or slower: other programs seem to be busy"
            if measured.threads > 1:
                why = f"{measured.pieces_per_second:,.0f} target pieces/s, and {measured.one_thread:,.0f} with one"
            self._say("threads", str(measured.threads), why)
            self.stand = ComputeSetup(self.stand.device, self.stand.precision, measured.threads)
        return measured

    def _training_seconds(self) -> float:
        assert self.asked.budget_seconds is not None
        return rules.training_seconds(self.asked.budget_seconds, self.spent)

    def _say_shortfall(self, config: ModelConfig, seen: float, steps: int, measured: CalibrationResult) -> None:
        """Before it begins: what would end useless, and the time that would do. A translator to go on from is beyond that."""
        speed = measured.pieces_per_second if self.asked.steps is None else None
        short = None if self.fine_tuning else find_shortfall(config, self.text, seen, steps, speed, self.spent, self.optimizer == "muon")
        if short is not None:
            self._say("expect", short.value, short.why)

    def _why(self, seen: float, measured: CalibrationResult) -> str:
        if self.asked.steps is not None:
            return "asked for"
        speed = f"{measured.pieces_per_second:,.0f} target pieces/s were measured"
        if self.asked.budget_seconds is None:
            minutes = seen / measured.pieces_per_second / 60
            return f"{speed}, so about {minutes:,.0f} minutes at most; it ends earlier when it no longer improves"
        if self._training_seconds() <= rules.LEAST_TRAINING:
            return (
                f"{self.spent:.0f} of the {self.asked.budget_seconds:.0f} seconds went by before training, so it is short and ends "
                "after the budget; give a larger one"
            )
        if self._is_enough(seen):
            return f"{speed}; it ends before the budget, since more passes over this text teach nothing more"
        return f"{speed}: so many fit within the budget"

    def _is_enough(self, seen: float) -> bool:
        """Is the text learnt before the time is up? Then the time left makes no more steps."""
        return self.asked.steps is None and self.asked.budget_seconds is not None and seen >= self.enough

    def _pieces(self, measured: CalibrationResult) -> float:
        if self.asked.steps is not None:
            return float(self.asked.steps * rules.BATCH[0])
        if self.asked.budget_seconds is None:
            return self.enough
        return min(self.enough, measured.pieces_per_second * self._training_seconds())

    def _batch(self, config: ModelConfig, seen: float, measured: CalibrationResult) -> tuple[BatchSettings, int, float]:
        """Settings of one batch, how many make a step, and the target pieces of the step. A batch fits into memory."""
        wanted = rules.batch_for(seen, self.text.target)
        # The share of the cells of a batch that hold a target piece; the others hold a source piece, or padding.
        share = (1 - measured.padding) * self.text.target / (self.text.source + self.text.target)
        cells = wanted.pieces / share
        at_once = cells if self.stand.device.type != "cpu" else min(cells, MOST_AT_ONCE)
        room = memory_at_hand(self.stand.device)
        if room is not None:
            state = BYTES_PER_PARAMETER * sum(parameters(config).values()) if self.stand.device.type != "cpu" else 0
            room = max(room - state, room // 10)  # on a CPU it is among what was measured for a cell
            at_once = min(at_once, MEMORY_TO_USE * room / measured.bytes_per_cell)
        asked = "budget" in self._read_changes("batch")
        accumulate = 1 if asked else max(1, math.ceil(cells / at_once - 0.01))
        if self._settings_of_batch(config, int(cells / accumulate)).budget * share >= self.text.target:
            accumulate = 1  # one batch holds the text
        accumulate = int(self.asked.changes.get("accumulate", accumulate))
        batch = self._settings_of_batch(config, int(cells / accumulate))
        pieces = min(batch.budget * share, self.text.target) * accumulate
        told = f"{pieces:,.0f} target pieces a step" + (f", in {accumulate} parts" if accumulate > 1 else "")
        self._say("batch", told, "asked for" if asked else wanted.why)
        return batch, accumulate, pieces

    def _settings_of_batch(self, config: ModelConfig, cells: int) -> BatchSettings:
        longest, augment = max(1, config.max_length - 1), self.augment and self.augment.model_dump()
        chosen = {"budget": max(cells, 2 * longest + 4), "longest": longest, "seed": self.seed, "augment": augment}
        return BatchSettings(**merge({**chosen, "temperature": self.temperature}, self._read_changes("batch")))

    def _choose_dropout(self, config: ModelConfig, epochs: float) -> ModelConfig:
        if "dropout" in self._read_changes("model"):
            return config
        if self.keeps_pieces:  # more makes it forget, and learn less (docs/experiments.md)
            self._say("dropout", f"{config.dropout}", "that of the translator it goes on from")
            return config
        self._say("dropout", f"{(rate := rules.dropout_for(epochs))}", f"the text is seen {epochs:.1f} times")
        return config.changed(dropout=rate)

    def _validation(self, steps: int, epochs: float, step_seconds: float) -> dict[str, Any]:
        often = int(epochs) if rules.is_seen_often(epochs) and not self.keeps_pieces else VALIDATIONS
        values: dict[str, Any] = {"every": max(1, steps // often, int(BETWEEN_VALIDATIONS / step_seconds))}
        if self.asked.budget_seconds is not None:  # half of them in a validation of a budget of some minutes
            values["sentences"] = int(min(SENTENCES[1], max(SENTENCES[0], self.asked.budget_seconds)))
        if self.asked.budget_seconds is None and self.asked.steps is None:
            values["patience"] = PATIENCE * max(1, steps // VALIDATIONS // values["every"])
        long = steps >= LEAST_STEPS_TO_CHOOSE and (self.asked.budget_seconds or math.inf) >= LEAST_SECONDS_TO_CHOOSE
        enough = self.prepared.split("valid").fed >= LEAST_TO_CHOOSE_BY and not (self.fine_tuning and self.fine_tuning.keeps_search)
        if long and enough and "search" not in self._read_changes("validation"):
            values["search"] = True
            self._say("search", "its length penalty by the validation set", "at the end")
        return values

    def _say(self, name: str, value: str, why: str) -> None:
        self.chosen = [each for each in self.chosen if each.name != name] + [RunChoice(name, value, why)]


def _refuse_another_shape(model: ModelConfig, changes: Mapping[str, Any]) -> None:
    """Weights fit one shape. What is not in them, such as dropout, may change."""
    shape = {key: value for key, value in changes.items() if "dropout" not in key and getattr(model, key) != value}
    if shape:
        raise ConfigError(
            "the translator to go on from has its shape, which cannot be changed; leave these out, or train a new one without --from:",
            [f"model.{key}={value}, but it has {key}={getattr(model, key)}" for key, value in shape.items()],
        )


def _describe_model(config: ModelConfig) -> str:
    layers, total = f"{config.encoder_layers}+{config.decoder_layers} layers", sum(parameters(config).values())
    return f"{layers}, {config.d_model} wide, {total / 1e6:.1f} M parameters"


def merge(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """merge({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}) -> {"a": {"x": 1, "y": 3}}"""
    result = dict(values)
    for key, value in changes.items():
        inner = result.get(key)
        both = isinstance(value, Mapping) and isinstance(inner, Mapping)
        result[key] = merge(inner, value) if both else value  # type: ignore[arg-type]
    return result
