"""Which way many processes share a model: by its size and theirs, and said why."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.planning.cost.parallel import Parallel
from limelight.training.config import MachineSettings, OptimizerSettings, Recipe
from limelight.training.processes.world import World
from limelight.training.recipe.request import TrainRequest
from limelight.training.recipe.resolve import extend_recipe
from limelight.training.run.assembly import choose_parallel
from limelight.training.step import train_state
from limelight.training.step.optimizers import build
from limelight.training.step.train_state import TrainState
from limelight.training.step.trained_model import TrainedModel

BASE = ModelConfig(vocab_size=37_000)  # 63 M parameters, 1.4 GB of state
WIDE = ModelConfig(vocab_size=32_000, d_model=4096, d_ff=16384, num_heads=32, encoder_layers=24, decoder_layers=24)


def chosen(config: ModelConfig, size: int, per_host: int, gigabytes: float | None, **machine: Any) -> Parallel:
    memory = None if gigabytes is None else int(gigabytes * 1e9)
    choice = choose_parallel(config, MachineSettings(**machine), size, per_host, memory)
    assert choice.why
    return choice.value


@pytest.mark.parametrize(
    ("size", "per_host", "gigabytes", "expected"),
    [
        (1, 1, 0.1, Parallel()),
        (8, 8, 16, Parallel("ddp", replicas=8)),
        (16, 8, None, Parallel("ddp", replicas=16)),  # nobody tells, so it is tried
        (8, 8, 1.5, Parallel("fsdp", shards=8)),
        (16, 8, 1.5, Parallel("hybrid", replicas=2, shards=8)),  # a machine holds it together
        (16, 2, 1.5, Parallel("fsdp", shards=16)),  # two do not
    ],
)
def test_the_first_way_that_fits_is_taken(size: int, per_host: int, gigabytes: float | None, expected: Parallel) -> None:
    assert chosen(BASE, size, per_host, gigabytes) == expected


def test_wide_layers_are_cut_inside_a_machine() -> None:
    assert chosen(WIDE, 64, 8, 80) == Parallel("tensor", shards=8, tensor=8)


def test_what_is_asked_for_is_taken_or_refused_with_what_would_do() -> None:
    assert chosen(BASE, 4, 4, 80, parallel="tensor", tensor=2) == Parallel("tensor", shards=2, tensor=2)
    assert chosen(BASE, 4, 4, 80, parallel="hybrid", shard=2) == Parallel("hybrid", replicas=2, shards=2)
    with pytest.raises(ConfigError, match=r"machine.shard=3 does not divide 4 processes; try one of 1, 2, 4"):
        chosen(BASE, 4, 4, 80, parallel="hybrid", shard=3)
    with pytest.raises(ConfigError, match="each process holds whole heads"):
        chosen(BASE, 16, 16, 80, parallel="tensor", tensor=16)


def recipe(**machine: Any) -> Recipe:
    return Recipe(
        data={"languages": ("en", "de"), "corpora": [{"name": "a", "paths": ["a.en", "a.de"]}]},
        model=BASE,
        machine=machine,
    )


def test_how_processes_share_a_run_may_change_when_it_goes_on_and_its_numbers_may_not() -> None:
    one, other = (TrainRequest(data=None, recipe=recipe(parallel=kind)) for kind in (None, "fsdp"))
    assert one.fingerprint() == other.fingerprint()
    assert extend_recipe(recipe(parallel="ddp"), other).machine.parallel == "fsdp"
    assert extend_recipe(recipe(parallel="ddp"), one).machine.parallel == "ddp"
    assert one.fingerprint() != TrainRequest(data=None, recipe=recipe(precision="float32")).fingerprint()


def test_any_seed_of_a_recipe_gives_each_process_its_own_numbers() -> None:
    before = torch.get_rng_state()
    drawn = set()
    for rank in (0, 1):
        train_state.seed_rank(2**63 - 1, 7, rank)
        drawn.add(float(torch.rand(1)))
    torch.set_rng_state(before)
    assert len(drawn) == 2


def test_who_computes_parts_of_the_same_products_gets_no_random_numbers_of_its_own_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many processes as before, but cut in another way: each process's own state would drop other elements in each part."""
    seeded = list[int]()
    monkeypatch.setattr(train_state, "seed_rank", lambda seed, step, data_rank: seeded.append(data_rank))
    numbers = TrainedModel(Transformer(ModelConfig.preset("toy", 12)), "float32")
    numbers.parallel = Parallel("tensor", tensor=2)
    state = TrainState(numbers, build(numbers.named, OptimizerSettings(), torch.device("cpu")), None, World(0, 1))
    found = SimpleNamespace(step=3, names=lambda: state.tensors().keys(), load_into=lambda tensors: None)
    for before, expected in (({"tensor": 2}, []), ({}, []), ({"tensor": 1}, [0])):
        found.state = {"world": 1, **before}
        state.load(found, 1)  # type: ignore[arg-type]
        assert seeded == expected
