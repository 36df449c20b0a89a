"""Planned activation memory, against the bytes that are alive at the end of a real forward pass."""

import random
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from alive import Alive
from random_configs import random_config

from limelight.model import attention, grid, loss
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost import activations, shape
from limelight.planning.cost.activations import estimate_activations
from limelight.planning.cost.parallel import Precision
from limelight.planning.cost.shape import BatchShape
from limelight.training.step.trained_model import MasterWeights


def alive(config: ModelConfig, shape: BatchShape, precision: Precision, recompute: bool) -> int:
    model = Transformer(config).train()
    if precision == "masters":
        MasterWeights(model)
    model.recompute_activations(recompute)
    source = torch.randint(4, config.source_vocab, (shape.rows, shape.S))
    target = torch.randint(4, config.vocab_size, (shape.rows, shape.T))
    rounding = torch.autocast("cpu", torch.bfloat16) if precision == "autocast" else nullcontext()
    with Alive([*model.parameters(), *model.buffers(), source, target]) as counter:
        packed = shape.is_packed
        batch = Batch.packed(source, target, target, 0) if packed else Batch.padded(source, target, target)
        with rounding:
            found = model.loss(batch, 0.1)
        held = counter.now
    assert found.total.requires_grad
    return held


def shapes(chance: random.Random) -> BatchShape:
    rows, S, T = chance.choice([(20, 40, 48), (24, 33, 20), (4, 150, 140)])
    packed = chance.random() < 0.5
    return BatchShape.packed(rows, S, T, rows * S, rows * T) if packed else BatchShape.padded(rows, S, T)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "masters", "autocast"])
def test_planned_activations_of_random_configs_are_the_bytes_alive_after_a_forward_pass(precision: Precision) -> None:
    chance = random.Random(3)
    for _ in range(12):
        config, shape = random_config(chance, d_model=96, d_ff=320), shapes(chance)
        planned = estimate_activations(config, shape, precision, "cpu").total
        assert planned == pytest.approx(alive(config, shape, precision, recompute=False), rel=0.03), (config, shape)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "masters"])
def test_planned_activations_with_recomputation_are_what_stands_between_blocks(precision: Precision) -> None:
    chance = random.Random(4)
    for _ in range(8):
        config, shape = random_config(chance, d_model=96, encoder_layers=4, decoder_layers=4), shapes(chance)
        found = estimate_activations(config, shape, precision, "cpu")
        planned = found.between + found.outside
        assert planned == pytest.approx(alive(config, shape, precision, recompute=True), rel=0.05), (config, shape)


def test_a_plan_that_forgets_the_masks_of_dropout_would_be_found_out() -> None:
    config, shape = ModelConfig.preset("tiny", 97), BatchShape.padded(20, 40, 48)
    forgetful = estimate_activations(config.changed(dropout=0.0), shape, "float32", "cpu").total
    assert forgetful != pytest.approx(alive(config, shape, "float32", recompute=False), rel=0.03)


def test_recomputation_pays_from_the_second_layer_on() -> None:
    for layers in (2, 6, 24):
        config = ModelConfig.preset("base", 8_000, encoder_layers=layers, decoder_layers=layers)
        found = estimate_activations(config, BatchShape.padded(32, 64, 64), "masters", "accelerator")
        again = max(found.encoder, found.decoder)  # one block at a time is computed again (Chen et al. 2016)
        assert found.between + found.outside + again + found.casts < found.total
        assert replace(found, layers=(2 * layers, 2 * layers)).total > found.total


def test_numbers_of_the_model_that_planning_repeats_are_the_models() -> None:
    assert (shape.ROUND_TO, shape.NARROWEST) == (grid.ROUND_TO, grid.NARROWEST)
    stages = attention.CPU_STAGES_UP_TO
    assert {2: stages["train, bfloat16"], 4: stages["train, float32"]} == activations.STAGES_UP_TO
    at_once = {"cpu": loss.LOGITS_AT_ONCE["cpu"], "accelerator": loss.LOGITS_AT_ONCE_ELSEWHERE}
    assert at_once == activations.LOGITS_AT_ONCE


def test_the_planned_stream_of_a_packed_batch_is_that_of_the_grid() -> None:
    for rows, S, T in ((5, 51, 17), (3, 7, 90), (8, 32, 32)):
        source, target = torch.ones(rows, S, dtype=torch.long), torch.ones(rows, T, dtype=torch.long)
        batch = Batch.packed(source, target, target, 0)
        planned = BatchShape.packed(rows, S, T, rows * S, rows * T)
        assert batch.source_grid.cells is not None and batch.target_grid.cells is not None
        assert (planned.source_stream, planned.target_stream) == (
            len(batch.source_grid.cells),
            len(batch.target_grid.cells),
        )
        assert (batch.source_grid.width, batch.target_grid.width) == (planned.S, planned.T)
