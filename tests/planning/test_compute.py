"""Planned arithmetic, against what torch counts in the real model."""

import random

import pytest
import torch
from random_configs import random_config
from torch.utils.flop_counter import FlopCounterMode

from limelight.model.config import PRESETS, ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.compute import flops, flops_of_pair
from limelight.planning.cost.shape import BatchShape


def counted_on_meta(config: ModelConfig, shape: BatchShape) -> float:
    """The forward pass of a model without storage. Attention is counted as two products of all queries with all keys."""
    with torch.device("meta"):
        model = Transformer(config).eval()
        source = torch.zeros(shape.rows, shape.S, dtype=torch.long)
        target = torch.zeros(shape.rows, shape.T, dtype=torch.long)
        with FlopCounterMode(display=False) as counter:
            model(source, target)
    return float(counter.get_total_flops())


def counted(config: ModelConfig, shape: BatchShape, packed: bool, recompute: bool = False) -> float:
    model = Transformer(config)
    model.recompute_activations(recompute)
    source = torch.randint(4, config.source_vocab, (shape.rows, shape.S))
    target = torch.randint(4, config.vocab_size, (shape.rows, shape.T))
    batch = Batch.packed(source, target, target, 0) if packed else Batch.padded(source, target, target)
    with FlopCounterMode(display=False) as counter:
        model.loss(batch, 0.1).total.backward()
    return float(counter.get_total_flops())


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_planned_operations_of_a_preset_equal_those_that_torch_counts(preset: str) -> None:
    config, shape = ModelConfig.preset(preset, 8_000), BatchShape.padded(3, 40, 56)
    assert flops(config, shape).forward == pytest.approx(counted_on_meta(config, shape), rel=0.01)


@pytest.mark.long
@pytest.mark.slow
def test_planned_operations_of_50_random_configs_equal_those_that_torch_counts_forward_and_backward() -> None:
    chance = random.Random(2)
    for _ in range(50):
        config = random_config(chance)
        rows, S, T = chance.choice([(5, 17, 19), (8, 33, 20), (3, 90, 70)])
        packed, recompute = chance.random() < 0.5, chance.random() < 0.3
        shape = BatchShape.packed(rows, S, T, rows * S, rows * T) if packed else BatchShape.padded(rows, S, T)
        planned = flops(config, shape).step(recompute)
        assert planned == pytest.approx(counted(config, shape, packed, recompute), rel=0.01), (config, shape)


def test_the_backward_pass_is_twice_the_forward_pass_and_a_fused_kernel_multiplies_once_more() -> None:
    found = flops(ModelConfig.preset("tiny", 97), BatchShape.padded(5, 200, 200))
    assert found.step() == 3 * found.forward
    assert found.step(fused=True) == pytest.approx(3 * found.forward + found.attention / 2)
    assert found.step(recompute=True) - found.step() == pytest.approx(found.blocks)


def test_a_pair_costs_six_operations_for_each_weight_that_a_piece_meets() -> None:
    config = ModelConfig.preset("3b", 32_000)
    weights_of_target = flops_of_pair(config, 0, 1) / 6
    products = 24 * (2048 * (2048 + 2 * 512) + 3 * 2048**2 + 3 * 2048 * 8192)
    assert weights_of_target == pytest.approx(products + 2048 * 32_000, rel=0.001)


def test_two_pairs_cost_twice_one_pair() -> None:
    config = ModelConfig.preset("base", 8_000)
    assert flops(config, BatchShape.padded(2, 24, 30)).step() == pytest.approx(2 * flops_of_pair(config, 24, 30))
