"""A stepper takes one step of training, from batches and their gradient to changed and averaged weights:

    batches -> gradient -> clipped -> told to all -> judged -> optimizer -> averaged

Every process of a run takes it with its share of the text. They exchange what they found before any weight is changed, and so change the
same weights in the same way, or none.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from limelight.corpus.feeding.batches import PairBatch
from limelight.corpus.feeding.loader import Loader
from limelight.training.config import Recipe
from limelight.training.events import NoticeKind
from limelight.training.step import step_dump
from limelight.training.step.divergence import Watchdog
from limelight.training.step.gradients import gradients
from limelight.training.step.step_agreement import RankFlags, StepAgreement, agree_on_step
from limelight.training.step.train_state import TrainState


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

    def take(self, step: int, learning_rate: float, said: Callable[[], RankFlags]) -> StepResult:
        """`said` is asked, when the gradients are there, what this process has to tell beside them."""
        recipe, numbers, optimizers, world = (
            self.recipe,
            self.standing.numbers,
            self.standing.optimizers,
            self.standing.world,
        )
        began = time.perf_counter()
        world.phase("waiting for text", step)
        shares = [next(self.loader) for _ in range(recipe.accumulate)]
        waited = time.perf_counter() - began
        world.phase("gradients", step)
        last_chance = self.watchdog.in_a_row + 1 >= recipe.trouble.in_a_row
        chance = step_dump.chance(numbers.device) if last_chance else {}
        losses = gradients(
            numbers,
            shares,
            recipe.label_smoothing,
            recipe.r_drop,
            self.note,
            least=recipe.batch.budget * recipe.accumulate // 4,  # cells of both sides; half of a usual step
        )
        norm = optimizers.clip(recipe.optimizer.clip)
        agreed = agree_on_step(world, numbers.parallel, losses, norm, shares, said())
        world.phase("changing the weights", step)
        skipped = self.watchdog.judge(agreed.loss, agreed.norm)
        if skipped is None:
            optimizers.set_rate(learning_rate)
            optimizers.step()
            numbers.publish()
            if self.standing.average:
                self.standing.average.update(step)
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
