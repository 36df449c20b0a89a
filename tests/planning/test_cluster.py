"""Times on machines that are only described: the laws that they obey."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from limelight.model.config import ModelConfig
from limelight.planning.cost.communication import Traffic
from limelight.planning.cost.parallel import Parallel
from limelight.planning.cost.shape import BatchShape
from limelight.planning.time.described_time import seconds, step_time
from limelight.planning.time.devices import device
from scale_paper import bytes_needed

H100 = device("H100")
SHAPE = BatchShape.padded(256, 64, 64)


def big() -> ModelConfig:
    return ModelConfig.preset("3b", 32_000)


def test_one_device_only_computes_and_half_the_peak_takes_twice_as_long() -> None:
    alone = step_time(big(), Parallel(), "masters", SHAPE, H100)
    assert (alone.hidden, alone.exposed, alone.efficiency) == (0, 0, (1, 1))
    slower = step_time(big(), Parallel(), "masters", SHAPE, replace(H100, peak=H100.peak / 2))
    assert slower.computing == pytest.approx(2 * alone.computing)


def test_a_step_lies_between_all_beside_the_arithmetic_and_nothing_beside_it() -> None:
    for parallel in (Parallel("fsdp", shards=64), Parallel("tensor", shards=8, tensor=8)):
        time = step_time(big(), parallel, "masters", SHAPE, H100)
        assert time.computing < time.best <= time.worst == time.computing + time.hidden + time.exposed


def test_wires_between_machines_count_only_for_those_who_stand_in_several() -> None:
    faster = replace(H100, between=2 * H100.between)
    inside, across = Parallel("fsdp", shards=8), Parallel("hybrid", replicas=8, shards=8)
    gathered = Traffic("weights, forward", "all_gather", 8, 1, 1e9)
    assert seconds(gathered, inside, H100) == seconds(gathered, inside, faster)
    summed = Traffic("gradients between groups", "all_reduce", 8, 0, 1e9)
    assert seconds(summed, across, H100) == pytest.approx(2 * seconds(summed, across, faster))


def test_once_around_a_ring_takes_longer_the_more_there_are_and_a_tree_hardly() -> None:
    def delay(among: int, collective: str) -> float:
        return seconds(Traffic("gradients", collective, among, 1, 0.0), Parallel("fsdp", shards=among), H100)  # type: ignore[arg-type]

    assert delay(1024, "all_gather") > 10 * delay(64, "all_gather")
    assert delay(1024, "all_reduce") < 3 * delay(64, "all_reduce")


def test_shards_and_recomputation_each_need_less_memory() -> None:
    whole = bytes_needed(big(), Parallel("ddp", replicas=8), "masters", SHAPE)
    cut = bytes_needed(big(), Parallel("fsdp", shards=8), "masters", SHAPE)
    assert bytes_needed(big(), Parallel("fsdp", shards=8), "masters", SHAPE, recompute=True) < cut < whole
