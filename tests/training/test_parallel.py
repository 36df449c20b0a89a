"""Which way many processes share a model: by its size and theirs, and said why."""

from typing import Any

import pytest

from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.planning.cost.parallel import Parallel
from limelight.training.config import MachineSettings, Recipe
from limelight.training.recipe.request import TrainRequest
from limelight.training.recipe.resolve import extend_recipe
from limelight.training.run.assembly import choose_parallel

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
