"""A few real steps of small models, from which the steps of others follow. How well: benchmarks/plan.py, which needs a quiet machine."""

import pytest
import torch

from limelight.model.config import ModelConfig
from limelight.planning.cost.shape import BatchShape
from limelight.training.config import Precision
from limelight.training.recipe.calibrate import SpeedProbe, measure

FEW = (
    SpeedProbe((1, 1), 32, 2, 100, 4, 20),
    SpeedProbe((2, 2), 32, 2, 100, 8, 20),
    SpeedProbe((1, 1), 64, 2, 400, 8, 30),
)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "masters"])
def test_a_calibration_foretells_no_fewer_seconds_for_more_work(precision: Precision) -> None:
    found = measure(precision, seconds=0.0, probes=FEW)
    config, larger = ModelConfig.preset("tiny", 1000), ModelConfig.preset("base", 1000)
    shape, longer = (BatchShape.packed(rows, 32, 32, rows * 32, rows * 32) for rows in (8, 32))
    # Not less for more work; beside other tests so small a measurement may find some kind of work to be free.
    assert 0 < found.step_seconds(config, shape) <= found.step_seconds(config, longer)
    assert found.step_seconds(config, shape) <= found.step_seconds(larger, shape) <= found.step_seconds(larger, longer)
    assert found.step_seconds(larger, shape, recompute=True) >= found.step_seconds(larger, shape)
    assert found.threads == torch.get_num_threads() and found.spread >= 0
