"""The training loop: one readable loop of named steps.

    while steps are left:
        validate, if it is time: translate, keep the best weights
        save, if it is time or if someone asked the run to stop
        take a step: batches -> gradient -> judged -> clipped -> optimizer -> averaged -> told

All that the next step depends on is in `tensors` and `state`: a run that stops anywhere and goes on in a new process takes the same
steps, bit for bit. Watchers get frozen reports and never the trainer.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from limelight.corpus.batches import PairBatch
from limelight.corpus.loader import Loader
from limelight.runtime import give_back_memory
from limelight.training import checkpoint
from limelight.training.average import MovingAverage
from limelight.training.config import Recipe, ScheduleSettings, decisive, refuse_changed
from limelight.training.gradients import Losses, gradients
from limelight.training.kept import Kept
from limelight.training.layout import CHECKPOINTS
from limelight.training.numbers import Numbers
from limelight.training.optim import build
from limelight.training.pace import Pace, memory_held
from limelight.training.schedule import rate
from limelight.training.signals import Stop, Stopped
from limelight.training.trouble import Watchdog
from limelight.training.validate import Validator
from limelight.training.watch import Notice, NoticeKind, StepReport, ValidReport, Watcher

Ending = Literal["done", "interrupted", "preempted", "diverged"]

# Steps. R-Drop has the probabilities of all pieces at hand, 100 MB of another size in each step: the holes they leave add up to gigabytes.
TRIM_EVERY = 20


@dataclass
class Progress:
    """Where a run stands; saved with every checkpoint."""

    step: int = 0
    validated: int = 0  # the last step that was validated
    best: float | None = None
    since_best: int = 0  # validations
    pairs: int = 0  # seen so far


class Training:
    """One run of the loop. Build it, `resume` it if there is a checkpoint, `run` it."""

    def __init__(
        self,
        recipe: Recipe,
        run: Path,
        numbers: Numbers,
        loader: Loader,
        validator: Validator,
        kept: Kept,
        watch: Watcher,
        stop: Stop,
        better: Callable[[dict[str, Tensor], ValidReport], None] = lambda weights, report: None,
    ) -> None:
        """`better` is given the weights of each validation that is the best so far."""
        self.recipe, self.folder, self.numbers, self.loader = recipe, run, numbers, loader
        self.validator, self.kept, self._watch, self.stop, self._better = validator, kept, watch, stop, better
        self.schedule: ScheduleSettings = recipe.schedule
        self.optimizers = build(numbers.named, recipe.optimizer, numbers.device)
        decay = recipe.average.decay
        self.average = MovingAverage(numbers.named, decay) if decay is not None else None
        self.watchdog = Watchdog(recipe.trouble)
        self.pace = Pace(recipe.budget_seconds, recipe.validation.every)
        self.at = Progress()
        self.last_score: float | None = None  # of the latest validation
        self.saved = 0  # the step to go on from
        self._changed = True  # since then
        self._saved_when = time.monotonic()

    @property
    def weights(self) -> dict[str, Tensor]:
        """Those that would translate: the moving average, or the last."""
        return self.average.named if self.average else self.numbers.named

    def run(self) -> Ending:
        self.numbers.model.train()
        with self.stop.waiting_for_step():
            over = self._until_over()
        # A signal may have come during the last save; nobody would look at it again.
        return self.stop.asked or over if over == "done" else over

    def _until_over(self) -> Ending:
        while True:
            if self._validation_is_due():
                self._validate()
            over = self._over()
            # Not when it diverged: it would end again at once, and push out a checkpoint from before the trouble.
            if (over and over != "diverged") or self._save_is_due():
                self.save()
            if over:
                return over
            self._take_step()
            if self.recipe.r_drop is not None and self.at.step % TRIM_EVERY == 0:
                give_back_memory()

    def _over(self) -> Ending | None:
        patience = self.recipe.validation.patience
        if self.watchdog.in_a_row >= self.recipe.trouble.in_a_row:
            return "diverged"
        if self.stop.asked:
            return self.stop.asked
        if patience is not None and self.at.since_best >= patience:
            self.tell("stopped", f"no better validation in {patience} in a row")
            return "done"
        return "done" if self.at.step >= self.schedule.steps else None

    def _take_step(self) -> None:
        began = time.perf_counter()
        shares = [next(self.loader) for _ in range(self.recipe.accumulate)]
        waited = time.perf_counter() - began
        step = self.at.step + 1
        learning_rate = self.recipe.optimizer.learning_rate * rate(step, self.schedule)
        losses = gradients(
            self.numbers,
            shares,
            self.recipe.label_smoothing,
            self.recipe.r_drop,
            lambda text: self.tell("note", text),
            least=self.recipe.batch.budget * self.recipe.accumulate // 4,  # cells of both sides; half of a usual step
        )
        norm = self.optimizers.clip(self.recipe.optimizer.clip)
        skipped = self.watchdog.judge(losses.loss, norm)
        if skipped is None:
            self.optimizers.set_rate(learning_rate)
            self.optimizers.step()
            self.numbers.publish()
            if self.average:
                self.average.update(step)
        self.optimizers.zero_gradients()
        self.at.step, self._changed = step, True
        self.at.pairs += sum(share.rows for share in shares)
        self.pace.stepped(time.perf_counter() - began)
        self._report(shares, losses, norm, learning_rate, waited, skipped)

    def _report(
        self,
        shares: Sequence[PairBatch],
        losses: Losses,
        norm: float,
        learning_rate: float,
        waited: float,
        skipped: str | None,
    ) -> None:
        cells = sum(share.cells for share in shares)
        source = sum(share.sources for share in shares)
        target = sum(share.targets for share in shares)
        self._watch(
            StepReport(
                step=self.at.step,
                steps=self.schedule.steps,
                epoch=self.epoch,
                loss=losses.loss,
                nll=losses.nll,
                learning_rate=learning_rate,
                gradient_norm=norm,
                source_pieces=source,
                target_pieces=target,
                padding=1 - (source + target) / cells,
                seconds=self.pace.last,
                waited=waited,
                elapsed=self.pace.elapsed,
                left=self.pace.left(self.schedule.steps - self.at.step),
                memory=memory_held(self.numbers.device),
                skipped=skipped,
            )
        )
        if skipped is not None:
            samples = [int(sample) for share in shares for sample in share.samples]
            shown = f"{', '.join(map(str, samples[:20]))}{', ...' if len(samples) > 20 else ''}"
            self.tell("skipped", f"step left out: {skipped}; samples {shown}")

    @property
    def epoch(self) -> float:
        """How often the text has been seen."""
        return self.at.pairs / self.loader.pairs_per_epoch

    def _validation_is_due(self) -> bool:
        """Every so many steps, and at the end; not twice at the same step, as after a resume."""
        due = self.at.step % self.recipe.validation.every == 0 or self.at.step >= self.schedule.steps
        return due and self.at.step > self.at.validated and not self.stop.asked

    def _validate(self) -> None:
        """A signal ends a validation at once; it comes again when the run goes on."""
        began = time.perf_counter()
        try:
            with self.stop.not_waiting():
                found = self.validator.validate(self.weights, torch.get_num_threads())
        except Stopped:
            return
        finally:
            give_back_memory()
        score = self.last_score = found.score(self.recipe.validation.metric)
        better = self.at.best is None or score > self.at.best
        self.kept.offer(self.at.step, score, self.weights)
        self.at.best = score if better else self.at.best
        self.at.since_best = 0 if better else self.at.since_best + 1
        self.at.validated, self._changed = self.at.step, True
        seconds = time.perf_counter() - began
        report = ValidReport(
            self.at.step, self.pace.elapsed, seconds, found.nll, found.bleu, found.chrf, better, found.samples
        )
        self._watch(report)
        self.pace.validated(time.perf_counter() - began)  # with what its watchers do, such as tracing probes
        if better:
            self._better(self.weights, report)
        self._replan()

    def _replan(self, resumed: bool = False) -> None:
        """A machine may be slower or faster than it was measured; the schedule still ends within the budget."""
        ended = self.at.step >= self.schedule.steps
        steps = self.pace.replanned(self.at.step, self.schedule.steps, longer=not self.schedule.fixed)
        if steps is None or (ended and not resumed) or (ended and steps <= self.at.step):
            return
        steps = max(steps, self.at.step + 1)
        self.tell("replanned", f"{steps:,} steps in place of {self.schedule.steps:,}, to end within the budget")
        # A rate that would still rise when the run ends has to fall instead.
        warmup = min(self.schedule.warmup, max(self.at.step, steps // 10), steps - 1)
        self.schedule = self.schedule.changed(steps=steps, warmup=warmup)

    def _save_is_due(self) -> bool:
        since = time.monotonic() - self._saved_when
        return since >= self.recipe.checkpoints.every_seconds and not self.watchdog.in_a_row

    def save(self) -> None:
        if not self._changed:
            return
        began = time.perf_counter()
        root = self.folder / CHECKPOINTS
        checkpoint.save(root, self.at.step, self.tensors(), self.state(), self.recipe.checkpoints.keep)
        self.saved, self._changed, self._saved_when = self.at.step, False, time.monotonic()
        self.pace.saved(time.perf_counter() - began)
        self.tell("saved", f"checkpoint at step {self.at.step:,}")

    def tensors(self) -> dict[str, Tensor]:
        tensors = {f"weights/{name}": weight for name, weight in self.numbers.named.items()}
        tensors |= {f"optimizer/{name}": value for name, value in self.optimizers.tensors().items()}
        if self.average:
            tensors |= self.average.tensors()
        tensors["chance/cpu"] = torch.get_rng_state()
        if self.numbers.device.type == "cuda":
            tensors["chance/cuda"] = torch.cuda.get_rng_state(self.numbers.device)
        return tensors

    def state(self) -> dict[str, Any]:
        return {
            "progress": asdict(self.at),
            "schedule": self.schedule.model_dump(mode="json"),
            "planned": self.recipe.schedule.steps,  # before any change for the budget
            "budget": self.recipe.budget_seconds,
            "recipe": decisive(self.recipe),
            "loader": self.loader.state,
            "trouble": self.watchdog.state(),
            "pace": self.pace.state(),
        }

    def resume(self, found: checkpoint.Checkpoint) -> None:
        """The loader must have been opened with `found.state["loader"]`. More steps than before make the schedule longer."""
        tensors, state = found.tensors(), found.state
        refuse_changed(self.recipe, state["recipe"], self.folder)
        self.numbers.load(
            {name.removeprefix("weights/"): t for name, t in tensors.items() if name.startswith("weights/")}
        )
        self.optimizers.load(
            {name.removeprefix("optimizer/"): t for name, t in tensors.items() if name.startswith("optimizer/")}
        )
        if self.average:
            self.average.load(tensors)
        torch.set_rng_state(tensors["chance/cpu"])
        if "chance/cuda" in tensors and self.numbers.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["chance/cuda"], self.numbers.device)
        self.at = Progress(**state["progress"])
        was, asked = ScheduleSettings(**state["schedule"]), self.recipe.schedule
        self.schedule = was
        if asked.steps != state["planned"]:
            self.schedule, self.at.since_best = asked, 0
        self.watchdog.load(state["trouble"])
        self.pace.load(state["pace"])
        self.saved, self._changed = self.at.step, False
        if (self.recipe.budget_seconds or 0) > (state["budget"] or 0):
            self.at.since_best = 0
            self._replan(resumed=True)

    def tell(self, kind: NoticeKind, text: str) -> None:
        self._watch(Notice(self.at.step, self.pace.elapsed, kind, text))
