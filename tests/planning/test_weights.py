"""Names and shapes from the config alone, against the model that is built; and what each process holds of them."""

import random

import pytest
import torch
from random_configs import random_config

from limelight.model.config import PRESETS, ModelConfig
from limelight.model.transformer import Transformer
from limelight.planning.cost.parallel import Parallel
from limelight.planning.cost.size import parameters
from limelight.planning.cost.weights import Shape, blocks, count_held, cut_by_tensor, elements, weights


def built(config: ModelConfig) -> dict[str, Shape]:
    with torch.device("meta"):
        return {name: tuple(weight.shape) for name, weight in Transformer(config).named_parameters()}


@pytest.mark.parametrize("preset", PRESETS)
def test_planned_names_and_shapes_of_a_preset_are_those_of_the_built_model(preset: str) -> None:
    config = ModelConfig.preset(preset, 8_000)
    assert weights(config) == built(config)


@pytest.mark.slow
def test_planned_names_and_shapes_of_200_random_configs_are_those_of_the_built_models() -> None:
    chance = random.Random(1)
    for _ in range(200):
        config = random_config(chance)
        assert weights(config) == built(config), config
        assert sum(map(elements, weights(config).values())) == sum(parameters(config).values())


def test_every_parameter_stands_in_one_block_or_in_none() -> None:
    config = ModelConfig.preset("small", 97)
    groups = blocks(config)
    assert len(groups) == 1 + config.encoder_layers + config.decoder_layers
    assert {name for block in groups.values() for name in block} == set(weights(config))
    assert "target_embedding.weight" in groups[""]


def test_what_the_processes_of_a_tensor_group_hold_differs_only_in_what_is_not_cut() -> None:
    config = ModelConfig.preset("3b", 97)
    named = weights(config)
    cut = {n: s for n, s in named.items() if cut_by_tensor(n, s, 4) != s}
    assert all(4 * elements(cut_by_tensor(n, s, 4)) == elements(s) for n, s in cut.items())
    assert sum(map(elements, cut.values())) > 0.99 * sum(elements(s) for n, s in named.items() if ".blocks." in n)


def test_shards_add_up_to_the_whole_and_no_rank_holds_more_than_the_first() -> None:
    config = ModelConfig(vocab_size=97, d_model=48, d_ff=80, num_heads=6, encoder_layers=1, decoder_layers=1)
    whole = sum(map(elements, weights(config).values()))
    for shards in (2, 3, 7, 64):
        of_first = count_held(weights(config).items(), Parallel("fsdp", shards=shards))
        assert whole / shards <= of_first <= whole / shards + sum(s[-1] for s in weights(config).values() if len(s) > 1) + 99
    assert count_held(weights(config).items(), Parallel("fsdp", shards=2)) * 2 == whole + 48  # 97 rows of 48 do not divide
