"""A stepper takes one step of training, from batches and their gradient to changed and averaged weights.

Every process of a run takes it with its share of the text. In one small message after the gradients they
agree on what they found, before any weight is changed, and so change the same weights in the same way, or none.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from limelight.corpus.feeding.batches import PairBatch
from limelight.corpus.feeding.loader import Loader
from limelight.planning.cost.parallel import Parallel
from limelight.training.config import Recipe
from limelight.training.events import NoticeKind
from limelight.training.processes.stop_signals import Reason
from limelight.training.processes.world import World
from limelight.training.step import step_dump
from limelight.training.step.divergence import Watchdog
from limelight.training.step.gradients import Losses, gradients
from limelight.training.step.train_state import TrainState, read_rng_states


@dataclass(frozen=True)
class StepAgreement:
    loss: float  # per target piece
    nll: float
    norm: float
    sources: int  # pieces
    cells: int
    stop: Reason | None
    save: bool  # the main process's clock says so
    written: bool  # everyone has written its part of the checkpoint


@dataclass(frozen=True)
class RankFlags:
    stop: Reason | None = None  # it got a signal
    save: bool = False  # its clock says so
    written: bool = False  # its part of the checkpoint is on disk


def agree_on_step(
    world: World, parallel: Parallel, losses: Losses, norm: float, shares: Sequence[PairBatch], said: RankFlags
) -> StepAgreement:
    """A gradient that went wrong in one process only is seen by all: the norm is the mean of what each of them measured."""
    sources, cells = sum(share.sources for share in shares), sum(share.cells for share in shares)
    if world.size == 1:
        return StepAgreement(losses.loss, losses.nll, norm, sources, cells, said.stop, said.save, said.written)
    signals = [said.stop == "interrupted", said.stop == "preempted"]
    total, nll, all_sources, all_cells, norms, interrupted, preempted, due, ready = world.all_reduce(
        [losses.total, losses.total_nll, sources, cells, norm, *signals, world.main and said.save, said.written]
    )
    seen = parallel.tensor * losses.pieces  # processes that share products count the same pieces
    return StepAgreement(
        loss=total / seen,
        nll=nll / seen,
        norm=norms / world.size,
        sources=round(all_sources / parallel.tensor),
        cells=round(all_cells / parallel.tensor),
        stop="interrupted" if interrupted else "preempted" if preempted else None,
        save=due > 0,
        written=ready == world.size,
    )


@dataclass(frozen=True)
class StepResult:
    shares: Sequence[PairBatch]
    agreed: StepAgreement
    skipped: str | None  # why nothing was changed
    waited: float  # seconds, for text
    notices: Sequence[tuple[NoticeKind, str]] = ()


@dataclass(frozen=True)
class Stepper:
    recipe: Recipe
    folder: Path
    loader: Loader
    standing: TrainState
    watchdog: Watchdog
    note: Callable[[str], None]

    def take(self, step: int, learning_rate: float, batches: int, said: Callable[[], RankFlags]) -> StepResult:
        """`said` is asked, when the gradients are there, what this process has to tell beside them."""
        recipe, state = self.recipe, self.standing
        numbers, optimizers, world = state.numbers, state.optimizers, state.world
        began = time.perf_counter()
        world.phase("waiting for text", step)
        shares = [next(self.loader) for _ in range(batches)]
        waited = time.perf_counter() - began
        world.phase("gradients", step)
        last_chance = self.watchdog.in_a_row + 1 >= recipe.trouble.in_a_row
        chance = read_rng_states(numbers.device) if last_chance else {}
        losses = gradients(
            numbers,
            shares,
            recipe.label_smoothing,
            recipe.r_drop,
            self.note,
            least=recipe.batch.budget * batches // 4,  # cells of both sides; half of a usual step
        )
        norm = optimizers.clip(recipe.optimizer.clip)
        agreed = agree_on_step(world, numbers.parallel, losses, norm, shares, said())
        world.phase("changing the weights", step)
        skipped = self.watchdog.judge(agreed.loss, agreed.norm)
        if skipped is None:
            optimizers.set_rate(learning_rate)
            optimizers.step()
            numbers.publish()
            if state.average:
                state.average.update(step)
        notices: list[tuple[NoticeKind, str]] = []
        if skipped is not None:
            notices.append(("skipped", f"step left out: {skipped}; samples {self._samples(shares)}"))
        if skipped is not None and last_chance:
            world.phase("writing down the step", step, long=True)
            evidence = step_dump.Evidence(step, skipped, shares, chance, losses, norm)
            notices.append(("note", step_dump.dump_step(self.folder, world, recipe, numbers, evidence)))
        optimizers.zero_gradients()
        return StepResult(shares, agreed, skipped, waited, notices)

    def _samples(self, shares: Sequence[PairBatch]) -> str:
        mine = sorted({int(number) for share in shares for number in share.samples})
        samples = sorted({number for some in self.standing.world.gather(mine) for number in some})
        return f"{', '.join(map(str, samples[:20]))}{', ...' if len(samples) > 20 else ''}"
