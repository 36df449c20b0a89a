"""Model, validator and loader are put together for a training loop, in the leading process and in its helpers."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Parallel
from limelight.planning.parallel_rule import choose_layout, divides
from limelight.runtime import RuntimeChoice, choose_threads, memory_at_hand
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints.best_weights import BestWeights
from limelight.training.checkpoints.checkpoint import Checkpoint
from limelight.training.config import MachineSettings, Recipe
from limelight.training.processes.stop_signals import Stop
from limelight.training.processes.world import World
from limelight.training.recipe.augmentation import workers_for
from limelight.training.recipe.parent import load_first_weights
from limelight.training.recipe.request import TrainResult
from limelight.training.run.loop import Parts, TrainingLoop
from limelight.training.run.result import EXIT_CODES
from limelight.training.run_folder import CHECKPOINTS, KEPT, PREPARED, RunChoice
from limelight.training.step.guided_alignment import AlignmentGuide
from limelight.training.step.train_state import seed_rank
from limelight.training.step.trained_model import build_model
from limelight.training.validation.validator import Validator

FIRST_STEP = 3  # times the usual patience: until then kernels are built and files are read


def assemble(
    recipe: Recipe,
    prepared: PreparedCorpus,
    resumed: Checkpoint | None,
    world: World,
    parallel: Parallel,
    stop: Stop,
    stack: ExitStack,
) -> Parts:
    """Builds the parts of this process. The stack closes the loader."""
    device = world.device(recipe.machine.device or "cpu")
    world.set_patience(FIRST_STEP * recipe.machine.patience)
    world.phase("building the model", long=True)
    weights = load_first_weights(recipe.fine_tuning, prepared) if recipe.fine_tuning is not None and resumed is None else None
    if recipe.guided_alignment is not None and parallel.tensor > 1:
        raise ConfigError("guided_alignment needs all heads of a layer in one process; take machine.parallel=fsdp in place of tensor")
    guide = None if recipe.guided_alignment is None else AlignmentGuide.learn(prepared, recipe.guided_alignment)
    numbers = build_model(recipe, device, weights, parallel, guide)
    if world.size > 1:
        seed_rank(recipe.seed, 0, parallel.data_rank(world.rank))
    tokenizers = prepared.tokenizers()
    validator = Validator(numbers.model, prepared, tokenizers, recipe.validation, recipe.batch.augment, world)
    ahead, state = recipe.machine.workers, resumed.state["loader"] if resumed else None
    loader = Loader(
        prepared,
        recipe.batch,
        rank=parallel.data_rank(world.rank),
        world=parallel.data_size,
        workers=workers_for(recipe.batch, numbers.device) if ahead is None else ahead,
        state=state,
        turned=recipe.schedule.both_directions > 0 if state is None else "turned" in state,
    )
    stack.enter_context(loader)
    with stop.shield_children():
        loader.start()
    return Parts(numbers, validator, loader)


def announce_parallel(recipe: Recipe, world: World) -> tuple[Parallel, RunChoice | None]:
    """Chooses, in the main process, how the others take part, and tells them."""
    if world.size == 1:
        return Parallel(), None
    device = world.device(recipe.machine.device or "cpu")
    memory = memory_at_hand(device)
    if memory is not None and device.type == "cpu":
        memory //= world.per_host
    chosen = choose_parallel(recipe.model, recipe.machine, world.size, world.per_host, memory)
    world.announce({"recipe": recipe.model_dump(mode="json"), "parallel": asdict(chosen.value)})
    return chosen.value, RunChoice("processes", f"{world.size}, {chosen.value.described}", chosen.why)


def help_out(world: World, folder: Path, stop: Stop) -> TrainResult:
    """In the other processes: wait for the main one's word, then take every step with it. They write only their parts of checkpoints."""
    world.phase("waiting for the main process", long=True)
    resumed = checkpoint.latest(folder / CHECKPOINTS, world).checkpoint
    word: dict[str, Any] = world.await_announcement()
    if "over" in word:
        return TrainResult(word["state"], folder, word["over"], None, [], {})
    recipe, parallel = Recipe(**word["recipe"]), Parallel(**word["parallel"])
    choose_threads(recipe.machine.threads)
    prepared = PreparedCorpus.open(folder / PREPARED)
    with ExitStack() as stack:
        parts = assemble(recipe, prepared, resumed, world, parallel, stop, stack)
        kept = BestWeights(folder / KEPT, recipe.average.best, recipe.average.latest)
        training = TrainingLoop(recipe, folder, parts, kept, stop, world)
        if resumed is not None:
            training.resume(resumed)
        ending = training.run()
    return TrainResult(ending, folder, EXIT_CODES[ending], None, [], {})


def choose_parallel(config: ModelConfig, machine: MachineSettings, size: int, per_host: int, memory: int | None) -> RuntimeChoice[Parallel]:
    """Choose for `size` processes, `per_host` on a machine, with `memory` bytes for each. None: unknown, so all is thought to fit."""
    if size > 1 and machine.parallel is not None:
        return RuntimeChoice(_build_requested(config, machine, size, per_host), "asked for")
    return RuntimeChoice(*choose_layout(config, size, per_host, memory))


def _build_requested(config: ModelConfig, machine: MachineSettings, size: int, per_host: int) -> Parallel:
    if machine.parallel == "ddp":
        return Parallel("ddp", replicas=size)
    if machine.parallel == "fsdp":
        return Parallel("fsdp", shards=size)
    name = "shard" if machine.parallel == "hybrid" else "tensor"
    width = getattr(machine, name) or per_host
    if size % width:
        raise ConfigError(
            f"machine.{name}={width} does not divide {size} processes; try one of "
            f"{', '.join(str(n) for n in range(1, size + 1) if size % n == 0)}"
        )
    if machine.parallel == "hybrid":
        return Parallel("hybrid", replicas=size // width, shards=width)
    if not divides(config, width):
        raise ConfigError(
            f"machine.tensor={width} does not divide num_heads={config.num_heads}, num_kv_heads={config.kv_heads} and "
            f"d_ff={config.d_ff}: each process holds whole heads"
        )
    return Parallel("tensor", shards=size // width, tensor=width)
