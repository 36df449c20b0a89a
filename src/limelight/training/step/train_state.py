"""The train state is all tensors that the next step depends on, from weights and optimizer to rng_state."""

from collections.abc import Mapping
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

    @property
    def weights(self) -> dict[str, Tensor]:
        """Those that would translate: the moving average, or the last."""
        return self.average.named if self.average else self.numbers.named

    def tensors(self) -> dict[str, Tensor]:
        return {**self.collect_learned(), **self._read_rng_states()}

    def load(self, found: Checkpoint, seed: int) -> None:
        chance = self._read_rng_states()
        tensor = self.numbers.parallel.tensor  # those who compute parts of the same products drop the same
        same = found.state["world"] == self.world.size and found.state.get("tensor", tensor) == tensor and chance.keys() <= found.names()
        found.load_into({**self.collect_learned(), **(chance if same else {})})
        self.numbers.publish()
        if not same:
            seed_rank(seed, found.step, self.numbers.parallel.data_rank(self.world.rank))
            return
        set_rng_states({name.split("/")[1]: state for name, state in chance.items()}, self.numbers.device)

    def collect_learned(self) -> dict[str, Tensor]:
        tensors = {f"weights/{name}": weight for name, weight in self.numbers.named.items()}
        tensors |= {f"optimizer/{name}": value for name, value in self.optimizers.tensors().items()}
        return tensors | (self.average.tensors() if self.average else {})

    def _read_rng_states(self) -> dict[str, Tensor]:
        return {f"chance/{kind}/{self.world.rank}": s for kind, s in read_rng_states(self.numbers.device).items()}


def read_rng_states(device: torch.device) -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    return states | ({"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {})


def set_rng_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)


def seed_rank(seed: int, step: int, data_rank: int) -> None:
    """Gives each process other random numbers, but the same to those that compute parts of the same products."""
    torch.manual_seed(((seed * 1_000_003 + step) * 65_537 + data_rank) % 2**63)
