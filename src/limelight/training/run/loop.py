"""The training loop validates, saves and takes steps until none are left.

All that the next step depends on is in `TrainState.tensors` and `TrainingLoop.state`: a run that stops anywhere and goes on in a new
process takes the same steps, bit for bit. Watchers get frozen reports and never the trainer.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from limelight.corpus.feeding.loader import Loader
from limelight.errors import StorageError
from limelight.runtime import give_back_memory
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints.best_weights import BestWeights
from limelight.training.checkpoints.writer import CheckpointSaver
from limelight.training.config import Recipe, ScheduleSettings, decisive, refuse_changed
from limelight.training.events import NoticeKind, RunNotice, StepReport, ValidReport, Watcher
from limelight.training.processes import replica_check
from limelight.training.processes.stop_signals import Reason, Stop, Stopped
from limelight.training.processes.world import World
from limelight.training.run_folder import CHECKPOINTS
from limelight.training.step.budget_clock import BudgetClock, memory_held
from limelight.training.step.divergence import Watchdog
from limelight.training.step.learning_rate import compute_growth_ahead, count_batches, rate
from limelight.training.step.moving_average import MovingAverage
from limelight.training.step.optimizers import build
from limelight.training.step.sharding import whole
from limelight.training.step.step import RankFlags, StepAgreement, Stepper, StepResult
from limelight.training.step.train_state import TrainProgress, TrainState
from limelight.training.step.trained_model import TrainedModel
from limelight.training.validation.validator import ValidationResult, Validator

Ending = Literal["done", "interrupted", "preempted", "diverged"]

# Steps. R-Drop has the probabilities of all pieces at hand, 100 MB of another size in each step: the holes they leave add up to gigabytes.
TRIM_EVERY = 20


@dataclass(frozen=True)
class Parts:
    numbers: TrainedModel
    validator: Validator
    loader: Loader


class TrainingLoop:
    """A training loop runs once. Build it, `resume` it if there is a checkpoint, `run` it."""

    def __init__(
        self,
        recipe: Recipe,
        run: Path,
        parts: Parts,
        kept: BestWeights,
        stop: Stop,
        world: World,
        watch: Watcher = lambda event: None,
        better: Callable[[Mapping[str, Tensor], int], None] = lambda weights, step: None,
    ) -> None:
        """`better` is given the weights of each validation that is the best so far, and its step."""
        self.recipe, self.folder, self.parts, self.kept, self.stop, self.world = recipe, run, parts, kept, stop, world
        self._watch, self._better = watch, better
        self.schedule: ScheduleSettings = recipe.schedule
        named, decay = parts.numbers.named, recipe.average.decay
        optimizers = build(named, recipe.optimizer, parts.numbers.device, world)
        average = MovingAverage(named, decay) if decay is not None else None
        self.standing = TrainState(parts.numbers, optimizers, average, world)
        self.saving = CheckpointSaver(run / CHECKPOINTS, recipe.checkpoints, world)
        self.watchdog = Watchdog(recipe.trouble)
        self.stepper = Stepper(recipe, run, parts.loader, self.standing, self.watchdog, partial(self.tell, "note"))
        self.at, self.pace = TrainProgress(), BudgetClock(recipe.budget_seconds, recipe.validation.every)
        self.last_found: ValidationResult | None = None  # by the latest validation
        self.saved, self._changed = 0, True  # the step to go on from, and whether anything changed since
        self._agreed: StepAgreement | None = None  # of the latest step, by all processes
        self.last: Mapping[str, Tensor] = {}  # the weights at the end, whole, when it is done

    def run(self) -> Ending:
        self.parts.numbers.model.train()
        with self.stop.waiting_for_step():
            over = self._until_over()
            if over == "done":
                self.last = self._whole()
        # A signal may have come during the last save; nobody would look at it again.
        return self.stop.asked or over if over == "done" and self.world.size == 1 else over

    def _whole(self) -> Mapping[str, Tensor]:
        if not self.parts.numbers.same_passes:
            return self.standing.weights
        self.world.phase("gathering the weights", self.at.step, long=True)
        return {name: whole(weight).detach().cpu() for name, weight in self.standing.weights.items()}

    def _until_over(self) -> Ending:
        while True:
            if self._validation_is_due():
                self._validate()
            over = self._over()
            # Not when it diverged: it would end again at once, and push out a checkpoint from before the trouble.
            if (over and over != "diverged") or self._save_is_due():
                self.save(wait=over is not None)
            if over:
                self._settle()
                if over in ("interrupted", "preempted") and self._changed:
                    raise StorageError(f"step {self.at.step:,} is not saved; the same command goes on from {self.saved:,}")
                return over
            self._take_step()
            self.world.set_patience(self.recipe.machine.patience)
            if self.pace.is_looked_at(self.at.step):
                self._replan(late=True)
            if self.recipe.r_drop is not None and self.at.step % TRIM_EVERY == 0:
                give_back_memory()

    def _over(self) -> Ending | None:
        patience = self.recipe.validation.patience
        if self.is_diverging or self.stopping:
            return "diverged" if self.is_diverging else self.stopping
        if patience is not None and self.at.since_best >= patience:
            self.tell("stopped", f"no better validation in {patience} in a row")
            return "done"
        return "done" if self.at.step >= self.schedule.steps else None

    @property
    def is_diverging(self) -> bool:
        return self.watchdog.in_a_row >= self.recipe.trouble.in_a_row

    @property
    def stopping(self) -> Reason | None:
        """Several processes stop when all of them have heard it, at the same step."""
        if self.world.size == 1:
            return self.stop.asked
        return self._agreed.stop if self._agreed else None

    def _take_step(self) -> None:
        began, step = time.perf_counter(), self.at.step + 1
        learning_rate = self.recipe.optimizer.learning_rate * rate(step, self.schedule)
        if self.parts.loader.turned and step > self.schedule.both_directions * self.schedule.steps:
            with self.stop.shield_children():  # for good, also if a budget then allows more steps
                self.parts.loader.turn_forward()
        batches = count_batches(step, self.schedule, self.recipe.accumulate)
        made = self.stepper.take(
            step, learning_rate, batches, lambda: RankFlags(self.stop.asked, self.saving.is_due(), self.saving.written)
        )
        self._agreed = made.agreed
        self.at.step, self._changed = step, True
        self.at.pairs += sum(share.rows for share in made.shares)
        self.pace.add_step(time.perf_counter() - began)
        self._report(made, learning_rate)
        for kind, text in made.notices:
            self.tell(kind, text)
        if self.is_diverging:  # only one of them? Then starting again is the cure
            replica_check.refuse_differing(self.world, self.parts.numbers.parallel, self.parts.numbers.named, step)
        if made.agreed.written:
            self._settle()

    def _report(self, made: StepResult, learning_rate: float) -> None:
        agreed, target = made.agreed, sum(share.targets for share in made.shares)
        heavier = compute_growth_ahead(self.at.step, self.schedule, self.recipe.accumulate)
        self._watch(
            StepReport(
                step=self.at.step,
                steps=self.schedule.steps,
                epoch=self.at.pairs / self.parts.loader.pairs_per_epoch,
                loss=agreed.loss,
                nll=agreed.nll,
                learning_rate=learning_rate,
                gradient_norm=agreed.norm,
                source_pieces=agreed.sources,
                target_pieces=target,
                padding=1 - (agreed.sources + target) / agreed.cells,
                seconds=self.pace.last,
                waited=made.waited,
                elapsed=self.pace.elapsed,
                left=(self.schedule.steps - self.at.step) * heavier * self.pace.per_step(),
                memory=memory_held(self.parts.numbers.device),
                skipped=made.skipped,
            )
        )

    def _validation_is_due(self) -> bool:
        """Every `validation.every` steps, and at the end; not twice at the same step, as after a resume."""
        due = self.at.step % self.recipe.validation.every == 0 or self.at.step >= self.schedule.steps
        return due and self.at.step > self.at.validated and not self.stopping

    def _validate(self) -> None:
        """A signal ends a validation at once; it comes again when the run goes on."""
        began = time.perf_counter()
        self.world.phase("validating", self.at.step, long=True)
        try:
            found = self.parts.validator.validate(self.standing.weights, torch.get_num_threads(), self.stop.not_waiting)
        except Stopped as stopped:
            if self._agreed is not None:
                self._agreed = replace(self._agreed, stop=stopped.reason)
            return
        finally:
            give_back_memory()
        self.last_found, score = found, found.rank(self.recipe.validation.metric)
        better = self.at.best is None or score > self.at.best
        # Where weights are cut, the twin that has just translated is the only place that holds them whole.
        weights = self.parts.validator.weights if self.parts.numbers.same_passes else self.standing.weights
        if self.world.main:
            self.kept.offer(self.at.step, score, weights)
        self.at.best, self.at.since_best = (score, 0) if better else (self.at.best, self.at.since_best + 1)
        self.at.validated, self._changed = self.at.step, True
        figures = (time.perf_counter() - began, found.nll, found.bleu, found.chrf)
        self._watch(ValidReport(self.at.step, self.pace.elapsed, *figures, better, found.samples, found.directions))
        if better and self.world.main:
            self._better(weights, self.at.step)
        self.pace.add_validation(time.perf_counter() - began)  # with what its watchers do, such as tracing probes
        self._replan()

    def _replan(self, resumed: bool = False, late: bool = False) -> None:
        """A machine may be slower or faster than it was measured; the schedule still ends within the budget. `late`: only slower."""
        ended = self.at.step >= self.schedule.steps
        longer, heavier = not self.schedule.fixed, compute_growth_ahead(self.at.step, self.schedule, self.recipe.accumulate)
        steps = self.world.broadcast(self.pace.replan(self.at.step, self.schedule.steps, longer, late, heavier, resumed))
        if steps is None or (ended and not resumed) or (ended and steps <= self.at.step):
            return
        steps = max(steps, self.at.step + 1)
        self.tell(
            "replanned", f"{steps:,} steps in place of {self.schedule.steps:,}, to end within the budget; {self.pace.describe_pace()}"
        )
        # A rate that would still rise when the run ends has to fall instead.
        warmup = min(self.schedule.warmup, max(self.at.step, steps // 10), steps - 1)
        self.schedule = self.schedule.changed(steps=steps, warmup=warmup)

    def _save_is_due(self) -> bool:
        due = self.saving.is_due() if self.world.size == 1 else self._agreed is not None and self._agreed.save
        return due and not self.watchdog.in_a_row

    def save(self, wait: bool = True) -> None:
        """Without `wait` it may be written while the next steps are taken."""
        if not self._changed:
            return
        began = time.perf_counter()
        self.world.phase("saving", self.at.step, long=True)
        self._settle()
        self._changed = False
        replica_check.refuse_differing(self.world, self.parts.numbers.parallel, self.standing.collect_learned(), self.at.step)
        self.saving.begin(self.at.step, self.standing.tensors(), self.state(), wait)
        if not self.saving.waits:
            self._settle()
        self.pace.spent.save += time.perf_counter() - began

    def _settle(self) -> None:
        step, problem = self.saving.finish()
        if step is not None:
            self.saved = step
            self.tell("saved", f"checkpoint at step {step:,}")
        if problem is not None:
            self._changed = True
            self.tell("note", problem)

    def state(self) -> dict[str, Any]:
        return {
            "progress": asdict(self.at),
            "schedule": self.schedule.model_dump(mode="json"),
            "planned": self.recipe.schedule.steps,  # before any change for the budget
            "budget": self.recipe.budget_seconds,
            "recipe": decisive(self.recipe),
            "loader": self.parts.loader.state,
            "trouble": self.watchdog.state(),
            "pace": self.pace.state(),
            "world": self.world.size,
            "tensor": self.parts.numbers.parallel.tensor,
        }

    def resume(self, found: checkpoint.Checkpoint) -> None:
        """The loader must have been opened with `found.state["loader"]`. More steps than before make the schedule longer."""
        state = found.state
        refuse_changed(self.recipe, state["recipe"], self.folder)
        self.standing.load(found, self.recipe.seed)
        self.at = TrainProgress(**state["progress"])
        was, asked, before = ScheduleSettings(**state["schedule"]), self.recipe.schedule, state["budget"]
        larger = before is not None and (self.recipe.budget_seconds or math.inf) > before
        longer = asked.steps != state["planned"] or (larger and was.steps < asked.steps)  # which the smaller budget had no time for
        self.schedule, self.at.since_best = (asked, 0) if longer else (was, self.at.since_best)
        self.watchdog.load(state["trouble"])
        self.pace.load(state["pace"])
        self.saved, self._changed = self.at.step, False
        if (self.recipe.budget_seconds or 0) > (before or 0):
            self.at.since_best = 0
            self._replan(resumed=True)
            if self.at.step >= self.schedule.steps:
                why = "its steps were asked for, or are enough for this text" if self.schedule.fixed else "no step fits into it"
                self.tell("note", f"the larger budget adds nothing, since {why}; --steps does")

    def tell(self, kind: NoticeKind, text: str) -> None:
        self._watch(RunNotice(self.at.step, self.pace.elapsed, kind, text))
