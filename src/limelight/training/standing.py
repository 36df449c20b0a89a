"""The tensors that the next step depends on: weights, the optimizer's memory, averages, and the state of chance.

    standing.tensors()          for a checkpoint: the tensors themselves, which the next step changes
    standing.load(checkpoint)   go on from there, bit by bit, also with another number of processes

Each process draws its own random numbers. When their number has changed since the checkpoint was written, each begins with a new seed.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from limelight.training.average import MovingAverage
from limelight.training.checkpoint import Checkpoint
from limelight.training.numbers import Numbers
from limelight.training.optim import Optimizers
from limelight.training.world import World


@dataclass
class Progress:
    """Where a run stands; saved with every checkpoint."""

    step: int = 0
    validated: int = 0  # the last step that was validated
    best: float | None = None
    since_best: int = 0  # validations
    pairs: int = 0  # seen so far


@dataclass(frozen=True)
class Standing:
    numbers: Numbers
    optimizers: Optimizers
    average: MovingAverage | None
    world: World

    def tensors(self) -> dict[str, Tensor]:
        return {**self.learned(), **self._chance()}

    def load(self, found: Checkpoint, seed: int) -> None:
        there = found.names()
        chance = {_old_name(name) if _old_name(name) in there else name: t for name, t in self._chance().items()}
        same = found.state.get("world", 1) == self.world.size and chance.keys() <= there
        found.load_into({**self.learned(), **(chance if same else {})})
        self.numbers.publish()
        if not same:
            plant(seed, found.step, self.numbers.parallel.data_rank(self.world.rank))
            return
        for name, state in chance.items():
            if "cuda" in name:
                torch.cuda.set_rng_state(state, self.numbers.device)
            else:
                torch.set_rng_state(state)

    def learned(self) -> dict[str, Tensor]:
        tensors = {f"weights/{name}": weight for name, weight in self.numbers.named.items()}
        tensors |= {f"optimizer/{name}": value for name, value in self.optimizers.tensors().items()}
        return tensors | (self.average.tensors() if self.average else {})

    def _chance(self) -> dict[str, Tensor]:
        tensors = {f"chance/cpu/{self.world.rank}": torch.get_rng_state()}
        if self.numbers.device.type == "cuda":
            tensors[f"chance/cuda/{self.world.rank}"] = torch.cuda.get_rng_state(self.numbers.device)
        return tensors


def plant(seed: int, step: int, data_rank: int) -> None:
    """Other random numbers for each process, but the same for those that compute parts of the same products."""
    torch.manual_seed((seed * 1_000_003 + step) * 65_537 + data_rank)


def _old_name(name: str) -> str:
    """Before there were several: "chance/cpu"."""
    return name.rsplit("/", 1)[0]
