"""The train state is all tensors that the next step depends on, from weights and optimizer to rng_state:

    state.tensors()                for a checkpoint: the tensors themselves, which the next step changes
    state.load(checkpoint, seed)   go on from there, bit by bit, also with another number of processes

Each process draws its own random numbers. When their number has changed since the checkpoint was written, each begins with a new seed.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from limelight.training.checkpoints.checkpoint import Checkpoint
from limelight.training.processes.world import World
from limelight.training.step.moving_average import MovingAverage
from limelight.training.step.optimizers import Optimizers
from limelight.training.step.trained_model import TrainedModel


@dataclass
class TrainProgress:
    """Progress tells where a run stands; it is saved with every checkpoint."""

    step: int = 0
    validated: int = 0  # the last step that was validated
    best: float | None = None
    since_best: int = 0  # validations
    pairs: int = 0  # seen so far


@dataclass(frozen=True)
class TrainState:
    numbers: TrainedModel
    optimizers: Optimizers
    average: MovingAverage | None
    world: World

    def tensors(self) -> dict[str, Tensor]:
        return {**self.collect_learned(), **self._read_rng_states()}

    def load(self, found: Checkpoint, seed: int) -> None:
        there = found.names()
        chance = {
            _old_name(name) if _old_name(name) in there else name: t for name, t in self._read_rng_states().items()
        }
        same = found.state.get("world", 1) == self.world.size and chance.keys() <= there
        found.load_into({**self.collect_learned(), **(chance if same else {})})
        self.numbers.publish()
        if not same:
            seed_rank(seed, found.step, self.numbers.parallel.data_rank(self.world.rank))
            return
        for name, state in chance.items():
            if "cuda" in name:
                torch.cuda.set_rng_state(state, self.numbers.device)
            else:
                torch.set_rng_state(state)

    def collect_learned(self) -> dict[str, Tensor]:
        tensors = {f"weights/{name}": weight for name, weight in self.numbers.named.items()}
        tensors |= {f"optimizer/{name}": value for name, value in self.optimizers.tensors().items()}
        return tensors | (self.average.tensors() if self.average else {})

    def _read_rng_states(self) -> dict[str, Tensor]:
        tensors = {f"chance/cpu/{self.world.rank}": torch.get_rng_state()}
        if self.numbers.device.type == "cuda":
            tensors[f"chance/cuda/{self.world.rank}"] = torch.cuda.get_rng_state(self.numbers.device)
        return tensors


def seed_rank(seed: int, step: int, data_rank: int) -> None:
    """Gives each process other random numbers, but the same to those that compute parts of the same products."""
    torch.manual_seed((seed * 1_000_003 + step) * 65_537 + data_rank)


def _old_name(name: str) -> str:
    """Return the name from before there were several processes: "chance/cpu"."""
    return name.rsplit("/", 1)[0]
