"""Planned memory of weights, gradients and moments, against the tensors that training holds. Shards: see test_communication.py."""

from typing import Any

import pytest
import torch

from limelight.model.config import PRESETS, ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.memory import checkpoint_bytes, memory
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.size import parameters
from limelight.planning.cost.weights import weights
from limelight.training.config import OptimizerSettings
from limelight.training.step.moving_average import MovingAverage
from limelight.training.step.optimizers import build
from limelight.training.step.trained_model import TrainedModel


def size(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)


@pytest.mark.parametrize("precision", ["float32", "autocast", "masters"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_planned_state_of_one_process_is_what_training_holds(precision: Precision, optimizer: Any) -> None:
    config = ModelConfig.preset("tiny", 503)
    numbers = TrainedModel(Transformer(config), precision)
    optimizers = build(numbers.named, OptimizerSettings(name=optimizer), numbers.device)
    average = MovingAverage(numbers.named, 0.999)
    ids = torch.randint(4, 503, (3, 16))
    numbers.loss(Batch.padded(ids, ids, ids), 0.1, None)[0].backward()  # type: ignore[no-untyped-call]
    passing = size(weight.grad for weight in numbers.model.parameters()) if precision == "masters" else 0
    numbers.take_gradients()
    planned = memory(config, Parallel(), precision, optimizer)
    assert size(numbers.model.parameters()) == planned.weights
    assert size(numbers.named.values()) == (planned.masters if precision == "masters" else planned.weights)
    assert size(weight.grad for weight in numbers.named.values()) == planned.gradients
    moments = [tensor for name, tensor in optimizers.tensors().items() if not name.endswith("/step")]
    assert size(moments) == planned.moments
    assert size(average.named.values()) == planned.average
    assert size(numbers.model.buffers()) == planned.tables
    assert passing == planned.passing
    saved = size(numbers.named.values()) + size(moments) + size(average.named.values())
    assert saved == checkpoint_bytes(config, optimizer)


@pytest.mark.parametrize("preset", PRESETS)
def test_sixteen_bytes_for_each_parameter_in_float32_and_an_eighth_of_it_over_eight(preset: str) -> None:
    config = ModelConfig.preset(preset, 8_000)
    count = sum(parameters(config).values())
    alone = memory(config, Parallel(), "float32", average=False)
    assert alone.state - alone.tables == 16 * count
    cut = memory(config, Parallel("fsdp", shards=8), "float32", average=False)
    assert cut.state - cut.tables == pytest.approx(2 * count, rel=0.001)


def test_doubling_the_shards_halves_the_state_and_replicas_change_nothing() -> None:
    config = ModelConfig.preset("3b", 32_000)
    for shards in (2, 8, 32):
        one, two = (memory(config, Parallel("fsdp", shards=n), "masters") for n in (shards, 2 * shards))
        assert (one.state - one.tables) == pytest.approx(2 * (two.state - two.tables), rel=0.001)
        assert memory(config, Parallel("hybrid", replicas=9, shards=shards), "masters") == one
    assert memory(config, Parallel("ddp", replicas=8), "masters") == memory(config, Parallel(), "masters")


def test_what_passes_through_does_not_grow_with_the_number_of_layers() -> None:
    few, many = (
        memory(ModelConfig.preset("3b", 32_000, encoder_layers=n, decoder_layers=n), Parallel("fsdp", shards=8), "masters") for n in (2, 24)
    )
    assert few.passing == many.passing
    assert many.state > 8 * few.state


def test_a_tensor_group_holds_each_product_once_and_the_embeddings_in_every_process() -> None:
    config = ModelConfig.preset("3b", 32_000)
    cut = memory(config, Parallel("tensor", tensor=8), "float32").weights
    whole = sum(parameters(config).values())
    embeddings = parameters(config)["embeddings"]
    norms = sum(shape[0] for name, shape in weights(config).items() if "norm" in name)
    assert cut / 4 == pytest.approx((whole - embeddings - norms) / 8 + embeddings + norms)


def test_the_twin_that_validates_is_whole_in_every_process() -> None:
    config = ModelConfig.preset("tiny", 503)
    twin = Transformer(config)
    whole = size(twin.parameters()) + size(twin.buffers())
    for parallel in (Parallel(), Parallel("fsdp", shards=64)):
        without, with_it = (memory(config, parallel, "masters", validates=asked) for asked in (False, True))
        assert with_it.state - without.state == with_it.twin == whole
