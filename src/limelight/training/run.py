"""A whole run: text in, translator and report out.

    prepare     clean, split, learn pieces                  limelight.corpus
    choose      calibrate, then fix size, steps, schedule   recipe.toml
    train       the loop, with validation and checkpoints   metrics.jsonl, checkpoints/, best/, bundle/
    finish      the best weights, the test set              bundle/, scores.json
    report      always, however the run ended               report.md, report.html

The same command on the same folder goes on where the run was stopped.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from limelight.corpus.config import PrepareSettings
from limelight.corpus.engine import Engine, Progress
from limelight.corpus.loader import Loader
from limelight.corpus.manifest import Manifest
from limelight.corpus.prepare import prepare
from limelight.corpus.shards import Prepared
from limelight.errors import ConfigError, LimelightError, ModelFileError
from limelight.evaluation.config import Running, Speed
from limelight.runtime import choose_threads, keep_freed_memory
from limelight.training import checkpoint
from limelight.training.asked import Asked as Asked
from limelight.training.asked import Result as Result
from limelight.training.augmentation import workers_for
from limelight.training.choose import Text
from limelight.training.config import Recipe
from limelight.training.ending import divergence, dry_result, result_of
from limelight.training.finish import calibrated, score, winner, write_bundle
from limelight.training.journal import forget_after, written
from limelight.training.kept import Kept
from limelight.training.layout import (
    CHECKPOINTS,
    KEPT,
    PREPARED,
    RECIPE,
    SCORES,
    Chosen,
    Facts,
    State,
    read_status,
    write_status,
)
from limelight.training.lock import alone_in, refuse_foreign
from limelight.training.loop import Training
from limelight.training.numbers import new_numbers
from limelight.training.origin import describe, origin
from limelight.training.pace import memory_held
from limelight.training.probes import probed
from limelight.training.replay import continued
from limelight.training.report import write_report
from limelight.training.resolve import asks_for_more, longer, refuse_device, resolved
from limelight.training.signals import Stop, Stopped
from limelight.training.validate import Validator
from limelight.training.watch import Notice, Watcher

logger = logging.getLogger(__name__)


def train(
    asked: Asked,
    folder: Path,
    engine: Engine,
    watch: Watcher,
    progress: Callable[[Progress], None],
    command: Sequence[str],
) -> Result:
    """Begins a run in `folder`, or goes on with the one that is there."""
    refuse_foreign(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder):
        return _train_alone(Run(asked, folder, engine, watch, progress, command))


def _train_alone(run: "Run") -> Result:
    folder = run.folder
    with run.stop.listening():
        try:
            return run.go()
        except Stopped as stopped:  # while it was already closing
            write_status(folder, stopped.reason, run.step, run.steps)
            return result_of(folder, stopped.reason)


class Run:
    """The phases of one start. What must outlive it is in the folder."""

    def __init__(
        self,
        asked: Asked,
        folder: Path,
        engine: Engine,
        watch: Watcher,
        progress: Callable[[Progress], None],
        command: Sequence[str],
    ) -> None:
        self.asked, self.folder, self.engine, self.watch, self.progress = asked, folder, engine, watch, progress
        self.began = time.monotonic()
        self.stop = Stop()
        self.facts = Facts.load(folder)
        self.resumes = bool(self.facts.asked)
        self.found = checkpoint.latest(self.folder / CHECKPOINTS)
        saved = self.found.checkpoint
        self._check(saved is not None)
        if not self.resumes:
            self.facts = replace(origin(command), asked=asked.fingerprint())
        self.step = saved.step if saved else 0
        self.steps = int(saved.state["schedule"]["steps"]) if saved else 0

    def _check(self, started: bool) -> None:
        if self.found.refused and not started:
            raise ModelFileError(
                "\n  - ".join([f"{self.folder} cannot go on, every checkpoint of it is damaged:", *self.found.refused])
                + f"\nto begin again from the first step, remove {self.folder / CHECKPOINTS}; its bundle and best weights stay"
            )
        if self.resumes and self.facts.asked != self.asked.fingerprint():
            if not started:  # nothing is lost: what was asked for before failed or was stopped before the first step
                self.resumes = False
                return
            raise ConfigError(
                f"{self.folder} holds a run that was asked for other things; go on with the same command, or give another "
                "folder with -o"
            )

    def go(self) -> Result:
        """However it ends, there is a status and a report."""
        refuse_device(self.asked)
        state: State = read_status(self.folder).get("state", "failed")
        # The same steps would diverge again, bit for bit; what to do instead stands in the facts.
        if (
            self.resumes
            and state in ("done", "diverged")
            and not asks_for_more(self.asked, Recipe.load(self.folder / RECIPE))
        ):
            return result_of(self.folder, state)
        self.facts.problem = None  # of an earlier start
        state = "failed"
        try:
            state = self._phases()
        except Stopped as stopped:
            state = stopped.reason
        except BaseException as error:
            self.facts.problem = str(error) if isinstance(error, LimelightError) else f"{type(error).__name__}: {error}"
            raise
        finally:
            if not self.asked.dry_run:
                self._close(state)
        return (
            dry_result(self.folder, self.facts)
            if self.asked.dry_run and state == "done"
            else result_of(self.folder, state)
        )

    def _close(self, state: State) -> None:
        """What goes wrong here must not hide why the run ended."""
        for work in (
            lambda: self.facts.save(self.folder),
            lambda: write_status(self.folder, state, self.step, self.steps),
            lambda: write_report(self.folder),
        ):
            try:
                work()
            except Exception as error:
                logger.error("%s: the end of the run could not be recorded: %s", self.folder, error)

    def _phases(self) -> State:
        if not self.asked.dry_run:
            self.facts.save(self.folder)
            write_status(self.folder, "preparing", self.step, self.steps)
        goes_on = self.found.checkpoint is not None
        prepared = Prepared.open(self.folder / PREPARED) if goes_on else self._timed("prepare", self._prepare)
        self.engine.close()  # its processes would wait through hours of training
        keep_freed_memory()
        recipe = self._timed("calibrate", lambda: self._recipe(prepared, goes_on))
        if self.asked.dry_run:
            return "done"
        with ExitStack() as stack:
            return self._train(recipe, prepared, stack)

    def _prepare(self) -> Prepared:
        settings = self.asked.data or (self.asked.recipe.data if self.asked.recipe else None)
        if settings is None:
            raise ConfigError("there is nothing to train on; name two files, such as corpus.en corpus.de")
        place = self.folder / PREPARED

        def into_place(wanted: PrepareSettings) -> Manifest:
            return prepare(wanted, place, self.engine, self.progress, force=True)[0]

        old = self.asked.old_text
        if old is not None:
            seed = self.asked.seed if self.asked.seed is not None else int(self.asked.changes.get("seed", 1))
            settings = continued(settings, old, self.folder, seed, into_place)
            self._say(Chosen("replay", *old.described))
        into_place(settings)
        return Prepared.open(place)

    def _recipe(self, prepared: Prepared, goes_on: bool) -> Recipe:
        """That of the folder when the run goes on; else the one given, or a chosen one."""
        path = self.folder / RECIPE
        if goes_on and path.exists():
            recipe = longer(Recipe.load(path), self.asked)
            choose_threads(recipe.machine.threads)
        else:
            recipe = resolved(self.asked, prepared, time.monotonic() - self.began, self._say)
        if not self.asked.dry_run:
            recipe.save(path)
        return recipe

    def _train(self, recipe: Recipe, prepared: Prepared, stack: ExitStack) -> State:
        resumed, device = self.found.checkpoint, torch.device(recipe.machine.device or "cpu")
        numbers = new_numbers(recipe, device, resumed is not None)
        describe(self.facts, recipe, Text.of(prepared.manifest))
        self.facts.winner, self.facts.compared, self.facts.calibrated = None, {}, None
        self.facts.save(self.folder)
        (self.folder / SCORES).unlink(missing_ok=True)  # of the translator that was: the bundle is about to change
        validator = Validator(numbers.model, prepared, prepared.tokenizers(), recipe.validation, recipe.batch.augment)
        kept = Kept(self.folder / KEPT, recipe.average.best)
        at = resumed.state["progress"] if resumed else {"step": 0, "validated": 0}
        forget_after(self.folder, at["step"], at["validated"])
        kept.forget_after(at["step"])
        watch = written(self.folder, self.watch, stack, at["step"])
        watch = probed(watch, self.folder, recipe.probes, validator, at["validated"] if resumed else None)
        ahead = recipe.machine.workers
        workers = workers_for(recipe.batch, numbers.device) if ahead is None else ahead
        state = resumed.state["loader"] if resumed else None
        loader = stack.enter_context(Loader(prepared, recipe.batch, workers=workers, state=state))
        with self.stop.kept_from_children():
            loader.start()
        training = Training(
            recipe, self.folder, numbers, loader, validator, kept, watch, self.stop, self._better(recipe, prepared)
        )
        training.pace.spent.before = time.monotonic() - self.began
        if resumed is not None:
            training.resume(resumed)
            training.tell("resumed", f"goes on from step {resumed.step:,}")
        for sentence in self.found.refused:
            training.tell("note", sentence)
        try:
            ending = training.run()
        finally:
            self.step, self.steps = training.saved, training.schedule.steps
            spent = training.pace.spent
            self.facts.seconds |= {"train": spent.train, "validate": spent.validate, "save": spent.save}
            self.facts.memory = max(self.facts.memory, memory_held(device))
        if ending == "diverged":
            self.step = training.at.step
            self.facts.problem = divergence(recipe, self.step)
        if ending == "done":
            self.facts.seconds["score"] = 0.0
            self._timed("score", lambda: self._finish(training, prepared))
        return ending

    def _better(self, recipe: Recipe, prepared: Prepared) -> Callable[[Any, Any], None]:
        """From the first validation on there is a translator to try."""
        return lambda weights, report: write_bundle(self.folder, recipe, prepared, weights, report.step)

    def _finish(self, training: Training, prepared: Prepared) -> None:
        write_status(self.folder, "scoring", self.step, self.steps)
        recipe, threads = training.recipe, torch.get_num_threads()
        told = lambda done, total: self.progress(Progress("compare", done, total))  # noqa: E731
        metric, last = recipe.validation.metric, training.last_score
        won = winner(training.weights, self.step, training.kept, training.validator, metric, threads, told, last)
        self.facts.winner, self.facts.compared = won.name, won.compared
        write_bundle(self.folder, recipe, prepared, won.weights, self.step)
        running = Running(device=recipe.machine.device, threads=threads)

        def said(phase: str) -> Callable[[Speed, int], None]:
            return lambda speed, total: self.progress(Progress(phase, speed.sentences, total))

        confidence = calibrated(self.folder, prepared, running, said("confidence"))
        self.facts.calibrated = None if confidence is None else confidence.lines
        found = score(self.folder, prepared, running, said("score"), confidence)
        if found is None:
            training.tell("note", "there is no test set, so there are no scores; give one with --test")
        scores = () if found is None else found[1]
        if scores or confidence:
            write_bundle(self.folder, recipe, prepared, won.weights, self.step, scores, confidence)

    def _timed(self, name: str, work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            return work()
        finally:
            self.facts.seconds[name] = self.facts.seconds.get(name, 0.0) + time.monotonic() - began

    def _say(self, chosen: Chosen) -> None:
        if chosen not in self.facts.chosen:
            self.facts.chosen = [each for each in self.facts.chosen if each.name != chosen.name] + [chosen]
            text = f"{chosen.name}: {chosen.value} ({chosen.why})"
            self.watch(Notice(0, time.monotonic() - self.began, "chosen", text))
