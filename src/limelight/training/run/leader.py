"""The leader takes a run through its phases, in the main process, which alone decides, writes and tells."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from limelight.corpus.cleaning.mistakes import summary
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine import ExchangeEngine, Progress
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.prepare import prepare
from limelight.corpus.remote import place_prepared
from limelight.corpus.work_folder import REPORT
from limelight.errors import ConfigError, LimelightError, ModelFileError
from limelight.evaluation.config import InferenceOptions, Speed
from limelight.runtime import choose_device, choose_threads, keep_freed_memory
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints.best_weights import BestWeights
from limelight.training.checkpoints.checkpoint import LatestCheckpoint
from limelight.training.config import Recipe
from limelight.training.events import RunNotice, Watcher
from limelight.training.processes.stop_signals import Stop, Stopped
from limelight.training.processes.world import World
from limelight.training.recipe.replay import mix_old_text
from limelight.training.recipe.request import TrainRequest, TrainResult, refuse_other
from limelight.training.recipe.resolve import asks_for_more, describe_extension, extend_recipe, resolve_recipe
from limelight.training.recipe.text_stats import PreparedText
from limelight.training.report.report import write_report
from limelight.training.report.run_record import read_run
from limelight.training.run.assembly import announce_parallel, assemble
from limelight.training.run.event_writers import OptionalFiles, add_writers, forget_after
from limelight.training.run.loop import TrainingLoop
from limelight.training.run.provenance import describe, origin
from limelight.training.run.result import divergence, dry_result, result_of
from limelight.training.run_folder import (
    BUNDLE,
    CHECKPOINTS,
    KEPT,
    PREPARED,
    RECIPE,
    SCORES,
    RunChoice,
    RunFacts,
    State,
    read_status,
    write_status,
)
from limelight.training.step.budget_clock import memory_held
from limelight.training.step.step_dump import TROUBLE
from limelight.training.validation.final_weights import (
    RemainingBudget,
    add_export,
    calibrate_confidence,
    choose_search,
    choose_winner,
    validations_to_end,
    write_bundle,
)
from limelight.training.validation.probes import add_probes
from limelight.training.validation.scoring import score

logger = logging.getLogger(__name__)
Told = Callable[[str], Callable[[int, int], None]]
Said = Callable[[str], Callable[[Speed, int], None]]


@dataclass
class RunLeader:
    asked: TrainRequest
    folder: Path
    engine: ExchangeEngine
    watch: Watcher
    progress: Callable[[Progress], None]
    stop: Stop
    began: float  # a budget counts from when the command was given
    world: World
    facts: RunFacts
    found: LatestCheckpoint
    resumes: bool  # a run that was asked for the same
    step: int
    steps: int
    spared: OptionalFiles = field(default_factory=OptionalFiles)

    @classmethod
    def open(
        cls,
        asked: TrainRequest,
        folder: Path,
        engine: ExchangeEngine,
        watch: Watcher,
        progress: Callable[[Progress], None],
        command: Sequence[str],
        stop: Stop,
        began: float,
        world: World,
    ) -> "RunLeader":
        """Return a leader that is ready to go. A folder that cannot go on with this request is refused."""
        facts, fingerprint = RunFacts.load(folder), asked.fingerprint()
        world.phase("preparing", long=True)
        found = checkpoint.latest(folder / CHECKPOINTS, world)
        saved, resumes = found.checkpoint, facts.asked == fingerprint
        if found.refused and saved is None:
            raise ModelFileError(
                "\n  - ".join([f"{folder} cannot go on, every checkpoint of it is damaged:", *found.refused])
                + f"\nto begin again from the first step, copy its {BUNDLE}/, which gives way, and remove {folder / CHECKPOINTS}"
            )
        if facts.asked and (saved is not None or (folder / BUNDLE).exists()):
            refuse_other(f"{folder} holds a run that was asked for other things", facts.asked, fingerprint)
        if not resumes:  # nothing is lost: what was asked for before failed or was stopped before the first step
            facts = replace(origin(command), asked=fingerprint)
        step, steps = (saved.step, int(saved.state["schedule"]["steps"])) if saved else (0, 0)
        return cls(asked, folder, engine, watch, progress, stop, began, world, facts, found, resumes, step, steps)

    def go(self) -> TrainResult:
        """However it ends, there is a status and a report."""
        choose_device(self.asked.named_device)  # refused before hours of preparation, not after
        state: State = read_status(self.folder).get("state", "failed")
        # The same steps would diverge again, bit for bit; what to do instead stands in the facts.
        ended = self.resumes and state in ("done", "diverged")
        if ended and not asks_for_more(self.asked, Recipe.load(self.folder / RECIPE), self.steps):
            return result_of(self.folder, state)
        if ended and self.found.checkpoint is None and (self.folder / BUNDLE).exists():
            raise ConfigError(f"{self.folder} is done, and cannot go on without its {CHECKPOINTS}/; give another folder with -o")
        self.facts.problem, state = None, "failed"  # what stood there was of an earlier start
        try:
            state = self._go_through_phases()
        except Stopped as stopped:
            state = stopped.reason
        except BaseException as error:
            self.facts.problem = str(error) if isinstance(error, LimelightError) else f"{type(error).__name__}: {error}"
            raise
        finally:
            if not self.asked.dry_run:
                self._close(state)
        if self.asked.dry_run and state == "done":
            return dry_result(self.folder, self.facts)
        return result_of(self.folder, state)

    def _close(self, state: State) -> None:
        """What goes wrong here must not hide why the run ended."""
        works: list[Callable[[], object]] = [
            lambda: self.facts.save(self.folder),
            lambda: write_status(self.folder, state, self.step, self.steps),
        ]
        if not self.stop.again:  # it takes seconds, and `limelight report` writes it at any time
            works.append(lambda: write_report(self.folder))
        for work in works:
            try:
                work()
            except Exception as error:
                logger.error("%s: the end of the run could not be recorded: %s", self.folder, error)

    def _go_through_phases(self) -> State:
        if not self.asked.dry_run:
            self.facts.save(self.folder)
            write_status(self.folder, "preparing", self.step, self.steps)
        with nullcontext() if (goes_on := self.found.checkpoint is not None) else self._timing("prepare"):
            prepared = PreparedCorpus.open(self.folder / PREPARED) if goes_on else self._prepare()
        self.engine.close()  # its processes would wait through hours of training
        keep_freed_memory()
        with self._timing("calibrate"):
            recipe = self._recipe(prepared, goes_on)
        if self.asked.dry_run:
            return "done"
        with ExitStack() as stack:
            return self._train(recipe, prepared, stack)

    def _prepare(self) -> PreparedCorpus:
        settings = self.asked.data or (self.asked.recipe.data if self.asked.recipe else None)
        if settings is None:
            raise ConfigError("there is nothing to train on; name two files, such as corpus.en corpus.de")
        place, ready = self.folder / PREPARED, self.asked.prepared

        def into_place(wanted: PrepareSettings) -> CorpusManifest:
            return prepare(wanted, place, self.engine, self.progress, force=True, anyway=self.asked.anyway)[0]

        if (old := self.asked.old_text) is not None:
            seed = self.asked.seed if self.asked.seed is not None else int(self.asked.changes.get("seed", 1))
            settings = mix_old_text(settings, old, self.folder, seed, into_place)
            self._say(RunChoice("replay", *old.described))
        corpora = (into_place(settings) if ready is None else place_prepared(ready, place)).corpora
        self._say(RunChoice("text", summary(corpora), f"what was dropped: {place / REPORT}"))
        return PreparedCorpus.open(place)

    def _recipe(self, prepared: PreparedCorpus, goes_on: bool) -> Recipe:
        """That of the folder when the run goes on; else the one given, or a chosen one."""
        path = self.folder / RECIPE
        if goes_on and path.exists():
            recipe = extend_recipe(before := Recipe.load(path), self.asked, self._say)
            choose_threads(recipe.machine.threads)
            if chosen := describe_extension(before, recipe, self.step):  # what was expected of the run was of the shorter one
                self.facts.chosen = [each for each in self.facts.chosen if each.name != "expect"]
                self._say(chosen)
        else:
            recipe = resolve_recipe(self.asked, prepared, time.monotonic() - self.began, self._say)
            spent, budget = time.monotonic() - self.began, recipe.budget_seconds
            if budget is not None and spent > budget:
                raise ConfigError(
                    f"the budget of {budget:.0f} s is too small: preparing the text and measuring the machine took {spent:.0f} s of it; "
                    f"give {math.ceil(spent / 10)} minutes or more; what is prepared stays, so this part will be shorter"
                )
        if not self.asked.dry_run:
            recipe.save(path)
        return recipe

    def _train(self, recipe: Recipe, prepared: PreparedCorpus, stack: ExitStack) -> State:
        resumed, world = self.found.checkpoint, self.world
        describe(self.facts, recipe, PreparedText.of(prepared.manifest))
        self.facts.winner, self.facts.compared, self.facts.searched, self.facts.calibrated = None, {}, {}, None
        parallel, chosen = announce_parallel(recipe, world)
        if chosen is not None:
            self._say(chosen)
        with self.spared("run.json"):
            self.facts.save(self.folder)
        (self.folder / SCORES).unlink(missing_ok=True)  # of the translator that was: the bundle is about to change
        kept = BestWeights(self.folder / KEPT, recipe.average.best, recipe.average.latest)
        at = resumed.state["progress"] if resumed else {"step": 0, "validated": 0}
        forget_after(self.folder, at["step"], at["validated"])
        kept.forget_after(at["step"])
        parts = assemble(recipe, prepared, resumed, world, parallel, self.stop, stack)
        watch = add_writers(self.folder, self.watch, stack, at["step"])
        watch = add_probes(watch, self.folder, recipe.probes, parts.validator, at["validated"] if resumed else None)

        def write_better(weights: Mapping[str, Tensor], step: int) -> None:
            with self.spared("the translator"):
                write_bundle(self.folder, recipe, prepared, weights, step)

        training = TrainingLoop(recipe, self.folder, parts, kept, self.stop, world, watch, write_better)
        training.pace.spent.before = time.monotonic() - self.began
        training.pace.validations_to_end = validations_to_end(prepared, len(parts.validator.sources), recipe.validation.search)
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
            self.facts.memory = max(self.facts.memory, memory_held(parts.numbers.device))
        if ending == "diverged":
            self.step = training.at.step
            self.facts.problem = f"{divergence(recipe, self.step)}; the last of them is kept in {self.folder / TROUBLE}"
        if ending == "done":
            self.facts.seconds["score"] = 0.0
            with self._timing("score"):
                self._finish(training, prepared)
        return ending

    def _finish(self, training: TrainingLoop, prepared: PreparedCorpus) -> None:
        write_status(self.folder, "scoring", self.step, self.steps)
        recipe, threads = training.recipe, torch.get_num_threads()
        told: Told = lambda phase: lambda done, total: self.progress(Progress(phase, done, total))  # noqa: E731
        metric, last, validator = recipe.validation.metric, training.last_found, training.parts.validator
        self.world.phase("scoring", self.step, long=True)
        self.world.leave()  # the other processes are done
        self.stop.raise_if_asked()
        validator.world = World()
        remaining = RemainingBudget(training.pace, len(validator.sources))
        affordable = lambda: remaining.seconds > 3 * training.pace.validation  # noqa: E731 (for it and for what follows)
        won = choose_winner(training.last, self.step, training.kept, validator, metric, threads, told("compare"), last, affordable)
        self.facts.winner, self.facts.compared = won.name, won.compared
        search, self.facts.searched = choose_search(won, recipe, validator, threads, remaining, told("length penalty"))
        write_bundle(self.folder, recipe, prepared, won.weights, self.step, search=search)
        running = InferenceOptions(device=recipe.machine.device, threads=threads)
        said: Said = lambda phase: lambda speed, total: told(phase)(speed.sentences, total)  # noqa: E731
        confidence = calibrate_confidence(self.folder, prepared, running, said("confidence"), remaining)
        self.facts.calibrated = None if confidence is None else confidence.lines
        found = score(self.folder, prepared, running, said("score"), remaining, confidence, recipe.fine_tuning)
        if found is None:
            training.tell("note", "there is no test set, so there are no scores; give one with --test")
        scores, verdict = found[1] if found else (), read_run(self.folder).verdict
        write_bundle(self.folder, recipe, prepared, won.weights, self.step, scores, confidence, verdict, search)
        if self.asked.export:
            told("export, compared with torch")(0, 1)
            if missing := add_export(self.folder, remaining):
                training.tell("note", missing)

    @contextmanager
    def _timing(self, phase: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.facts.seconds[phase] = self.facts.seconds.get(phase, 0.0) + time.monotonic() - began

    def _say(self, chosen: RunChoice) -> None:
        if chosen not in self.facts.chosen:
            self.facts.chosen = [each for each in self.facts.chosen if each.name != chosen.name] + [chosen]
            self.watch(RunNotice(0, time.monotonic() - self.began, "chosen", str(chosen)))
