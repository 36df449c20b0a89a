"""A training loop put together: in the process that leads a run, and in those that help it."""

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from limelight.corpus.loader import Loader
from limelight.corpus.shards import Prepared
from limelight.planning.parallel import Parallel
from limelight.runtime import choose_threads, memory_at_hand
from limelight.training import checkpoint, faults
from limelight.training.asked import Result
from limelight.training.augmentation import workers_for
from limelight.training.checkpoint import Checkpoint
from limelight.training.config import Recipe
from limelight.training.ending import EXIT_CODES
from limelight.training.kept import Kept
from limelight.training.layout import CHECKPOINTS, KEPT, PREPARED, Chosen
from limelight.training.loop import Training
from limelight.training.numbers import Numbers, new_numbers
from limelight.training.parallel import choose_parallel
from limelight.training.signals import Stop
from limelight.training.standing import plant
from limelight.training.validate import Validator
from limelight.training.world import World

FIRST_STEP = 3  # times the usual patience: until then kernels are built and files are read


@dataclass(frozen=True)
class Parts:
    """What every process of a run has."""

    numbers: Numbers
    validator: Validator
    loader: Loader


def assembled(
    recipe: Recipe,
    prepared: Prepared,
    resumed: Checkpoint | None,
    world: World,
    parallel: Parallel,
    stop: Stop,
    stack: ExitStack,
) -> Parts:
    """The stack closes the loader."""
    device = world.device(recipe.machine.device or "cpu")
    world.patient(FIRST_STEP * recipe.machine.patience)
    world.phase("building the model", long=True)
    faults.strike("start", step=0, rank=world.rank)
    numbers = new_numbers(recipe, device, resumed is not None, parallel)
    if world.size > 1:
        plant(recipe.seed, 0, parallel.data_rank(world.rank))
    tokenizers = prepared.tokenizers()
    validator = Validator(numbers.model, prepared, tokenizers, recipe.validation, recipe.batch.augment, world)
    ahead = recipe.machine.workers
    loader = Loader(
        prepared,
        recipe.batch,
        rank=parallel.data_rank(world.rank),
        world=parallel.data_size,
        workers=workers_for(recipe.batch, numbers.device) if ahead is None else ahead,
        state=resumed.state["loader"] if resumed else None,
    )
    stack.enter_context(loader)
    with stop.kept_from_children():
        loader.start()
    return Parts(numbers, validator, loader)


def led(recipe: Recipe, world: World) -> tuple[Parallel, Chosen | None]:
    """In the main process: how the others take part, which they are told."""
    if world.size == 1:
        return Parallel(), None
    device = world.device(recipe.machine.device or "cpu")
    memory = memory_at_hand(device)
    if memory is not None and device.type == "cpu":
        memory //= world.per_host
    chosen = choose_parallel(recipe.model, recipe.machine, world.size, world.per_host, memory)
    world.announce({"recipe": recipe.model_dump(mode="json"), "parallel": asdict(chosen.value)})
    return chosen.value, Chosen("processes", f"{world.size}, {chosen.value.described}", chosen.why)


def help_out(world: World, folder: Path, stop: Stop) -> Result:
    """In the other processes: wait for the main one's word, then take every step with it. They write only their parts of checkpoints."""
    world.phase("waiting for the main process", long=True)
    resumed = checkpoint.latest(folder / CHECKPOINTS, world).checkpoint
    word: dict[str, Any] = world.heard()
    if "over" in word:
        return Result(word["state"], folder, word["over"], None, [], {})
    recipe, parallel = Recipe(**word["recipe"]), Parallel(**word["parallel"])
    choose_threads(recipe.machine.threads)
    prepared = Prepared.open(folder / PREPARED)
    with ExitStack() as stack:
        parts = assembled(recipe, prepared, resumed, world, parallel, stop, stack)
        kept = Kept(folder / KEPT, recipe.average.best)
        training = Training(
            recipe, folder, parts.numbers, parts.loader, parts.validator, kept, lambda event: None, stop, world=world
        )
        if resumed is not None:
            training.resume(resumed)
        ending = training.run()
    return Result(ending, folder, EXIT_CODES[ending], None, [], {})
