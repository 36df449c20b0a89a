"""A dump holds text, weights and rng_state of the last step before a run gave up, to compute it again. See docs/survive.md."""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from limelight.corpus.config import SpecialIds
from limelight.corpus.feeding.batches import BatchShare
from limelight.errors import ModelFileError
from limelight.files import force_to_disk, put_folder, write_whole
from limelight.model.transformer import Transformer
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints.tensors import read_tensors, write_tensors
from limelight.training.config import Recipe
from limelight.training.processes.replica_check import bit_sums
from limelight.training.processes.world import World
from limelight.training.run_folder import RECIPE
from limelight.training.step.gradients import Losses, gradients
from limelight.training.step.guided_alignment import AlignmentGuide
from limelight.training.step.train_state import set_rng_states
from limelight.training.step.trained_model import TrainedModel

TROUBLE: Final = "trouble"
FACTS: Final = "trouble.json"
ARRAYS: Final = ("samples", "source", "target")


@dataclass(frozen=True)
class Evidence:
    step: int
    reason: str
    shares: Sequence[BatchShare]
    chance: Mapping[str, Tensor]  # `read_rng_states(device)`, before the step
    losses: Losses
    norm: float


@dataclass(frozen=True)
class Reproduced:
    loss: float
    norm: float  # of the gradient, before clipping


def dump_step(run: Path, world: World, recipe: Recipe, numbers: TrainedModel, evidence: Evidence) -> str:
    """Writes it, and says where it is; that it could not be written must not hide why the run ends."""
    try:
        folder = write(run, world, recipe, numbers, evidence)
    except OSError as error:
        return f"the step could not be written down: {error}"
    return (
        f"the step is kept in {folder}; to compute it again: "
        f"python -c \"from limelight.training.step.step_dump import reproduce; print(reproduce('{folder}', '{numbers.device.type}'))\""
    )


def write(run: Path, world: World, recipe: Recipe, numbers: TrainedModel, evidence: Evidence) -> Path:
    """Called by all processes, before anything has changed the weights. An OSError in one of them is one in all; nothing is left then."""
    folder = run / TROUBLE / checkpoint.name_of(evidence.step)
    beside = folder.with_name(f".{folder.name}.part")
    try:
        world.run_on_main(lambda: _begin(beside, recipe))
        weights = {f"weights/{name}": weight for name, weight in numbers.named.items()}
        whole = not any(isinstance(weight, DTensor) for weight in weights.values())
        main_sums = world.broadcast(bit_sums(weights) if whole else {})
        # A flip in one process is in no other: its weights are not those of the main process, which are saved for all.
        own = weights if whole and bit_sums(weights) != main_sums else {}
        tensors = {**_tensors(evidence), **own, **_describe_guide(numbers.guide)}
        world.run_on_all(lambda: write_tensors(beside / _file_of(world.rank), tensors))
        checkpoint.save(beside / "weights", evidence.step, weights, {}, 1, world)
        told = world.gather(_facts(evidence))
        world.run_on_main(lambda: _finish(beside, folder, evidence, told, numbers.parallel.tensor))
    except OSError:
        if world.main:
            shutil.rmtree(beside, ignore_errors=True)
        raise
    return folder


def _begin(beside: Path, recipe: Recipe) -> None:
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    recipe.save(beside / RECIPE)


def _finish(beside: Path, folder: Path, evidence: Evidence, told: list[Any], tensor: int) -> None:
    facts = {"format": 1, "step": evidence.step, "reason": evidence.reason, "tensor": tensor, "ranks": told}
    write_whole(beside / FACTS, json.dumps(facts, indent=1).encode() + b"\n")
    force_to_disk(beside)
    put_folder(beside, folder)


def _file_of(rank: int) -> str:
    return f"rank-{rank:04}.safetensors"


def _tensors(evidence: Evidence) -> dict[str, Tensor]:
    arrays = {
        f"share/{number}/{name}": torch.from_numpy(getattr(share, name).copy())
        for number, share in enumerate(evidence.shares)
        for name in ARRAYS
    }
    return arrays | {f"chance/{name}": state for name, state in evidence.chance.items()}


def _facts(evidence: Evidence) -> dict[str, Any]:
    shares = [
        {name: int(getattr(share, name)) for name in ("epoch", "window", "batch", "rows", "targets")}
        | {"marks": share.marks.model_dump(mode="json")}
        for share in evidence.shares
    ]
    # As words: JSON has no NaN.
    measured = {"loss": str(evidence.losses.total / evidence.losses.pieces), "norm": str(evidence.norm)}
    return {**measured, "shares": shares}


def _describe_guide(guide: AlignmentGuide | None) -> dict[str, Tensor]:
    if guide is None:
        return {}
    return {"guide/keys": guide.keys, "guide/probabilities": guide.probabilities, "guide/stride": torch.tensor(guide.stride)}


def _read_guide(recipe: Recipe, tensors: Mapping[str, Tensor]) -> AlignmentGuide | None:
    if recipe.guided_alignment is None:
        return None
    keys, probabilities, stride = (tensors[f"guide/{name}"] for name in ("keys", "probabilities", "stride"))
    return AlignmentGuide(recipe.guided_alignment, keys, probabilities, int(stride))


def reproduce(folder: Path | str, device: str = "cpu") -> Reproduced:
    """The step once more: loss per target piece and norm of the gradient, of all processes together. Weights are not changed."""
    folder = Path(folder)
    if not (folder / FACTS).exists():
        raise ModelFileError(f"{folder} holds no {FACTS}; name a folder such as RUN/{TROUBLE}/step-0000037")
    facts, recipe = json.loads((folder / FACTS).read_bytes()), Recipe.load(folder / RECIPE)
    saved = checkpoint.latest(folder / "weights").checkpoint
    if saved is None:
        raise ModelFileError(f"{folder / 'weights'} is damaged: the step cannot be computed again")
    weights = saved.tensors()
    model, guide = Transformer(recipe.model).to(device).train(), _read_guide(recipe, read_tensors(folder / _file_of(0)))
    numbers = TrainedModel(model, recipe.machine.precision or "float32", guide=guide)
    total, pieces, summed = 0.0, 1, dict[str, Tensor]()
    # Processes that cut products between them have the same text.
    for rank in range(0, len(facts["ranks"]), facts["tensor"]):
        tensors = read_tensors(folder / _file_of(rank))
        _load(numbers, {**weights, **tensors})
        losses = _again(numbers, recipe, _shares(facts["ranks"][rank]["shares"], tensors), tensors)
        total, pieces = total + losses.total, losses.pieces
        for name, weight in numbers.named.items():
            if weight.grad is not None:
                summed[name] = summed.get(name, 0) + weight.grad.double()
        numbers.drop_gradients()
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in summed.values()))
    return Reproduced(total / pieces, norm)


@torch.no_grad()
def _load(numbers: TrainedModel, tensors: Mapping[str, Tensor]) -> None:
    for name, weight in numbers.named.items():
        weight.copy_(tensors[f"weights/{name}"])
    numbers.publish()


def _shares(facts: Sequence[Mapping[str, Any]], tensors: Mapping[str, Tensor]) -> list[BatchShare]:
    shares = []
    for number, each in enumerate(facts):
        arrays: dict[str, Any] = {name: tensors[f"share/{number}/{name}"].numpy() for name in ARRAYS}
        shares.append(BatchShare(**arrays, **{**each, "marks": SpecialIds(**each["marks"])}))
    return shares


def _again(numbers: TrainedModel, recipe: Recipe, shares: Sequence[BatchShare], tensors: Mapping[str, Tensor]) -> Losses:
    cuda = numbers.device.type == "cuda"
    with torch.random.fork_rng(devices=[numbers.device] if cuda else []):
        states = {n.removeprefix("chance/"): state for n, state in tensors.items() if n.startswith("chance/")}
        set_rng_states(states, numbers.device)
        least = recipe.batch.budget * len(shares) // 4
        return gradients(numbers, shares, recipe.label_smoothing, recipe.r_drop, least=least)
