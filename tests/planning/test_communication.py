"""Planned traffic, against what the real model hands to torch.distributed: in real processes, and in a world of up to 64 played by one."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from simulated import Simulated

from limelight.model.config import ModelConfig
from limelight.planning.cost.collective_counter import CollectiveCounter
from limelight.planning.cost.communication import WORDS, Communication, Traffic, communication
from limelight.planning.cost.memory import memory
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.weights import weights

SHAPE = BatchShape.padded(8, 32, 32)
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")


def tiny() -> ModelConfig:
    return ModelConfig.preset("tiny", 503)


def found_in(counted: CollectiveCounter) -> dict[str, tuple[int, int]]:
    return {name: (counted[name].calls, counted[name].payload) for name in COLLECTIVES}


def planned_by(plan: Communication) -> dict[str, tuple[int, float]]:
    """Of the two passes; words are exchanged after them."""
    by_name = {name: [each for each in plan.traffic if each.purpose != WORDS and each.collective == name] for name in COLLECTIVES}
    return {name: (sum(each.calls for each in some), sum(each.payload for each in some)) for name, some in by_name.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parallel", "precision"),
    [
        (Parallel("fsdp", shards=64), "masters"),  # 64 does not divide 503 rows: padding
        (Parallel("hybrid", replicas=4, shards=8), "masters"),
        (Parallel("ddp", replicas=8), "masters"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_planned_calls_bytes_and_shards_equal_those_of_the_real_model_in_a_simulated_world(
    parallel: Parallel, precision: Precision
) -> None:
    simulated = Simulated(tiny(), parallel, precision, SHAPE)
    assert found_in(simulated.counted) == planned_by(communication(tiny(), parallel, precision, SHAPE))
    planned = memory(tiny(), parallel, precision)
    assert simulated.weights == (planned.masters if precision == "masters" else planned.weights)
    assert (simulated.gradients, simulated.average) == (planned.gradients, planned.average)
    steps = 4 * len(weights(tiny()))  # AdamW counts them for each weight
    assert simulated.moments == planned.moments + steps


@pytest.mark.slow
def test_planned_sums_of_tensor_parallelism_count_the_gate_and_few_heads_of_k_and_v() -> None:
    modern = ModelConfig.preset("3b", 503, encoder_layers=1, decoder_layers=2, d_model=128, d_ff=256)
    parallel = Parallel("tensor", shards=2, tensor=4)
    simulated = Simulated(modern, parallel, "masters", SHAPE)
    assert found_in(simulated.counted) == planned_by(communication(modern, parallel, "masters", SHAPE))


def counted_on_gloo(kinds: list[Parallel]) -> list[dict[str, dict[str, int]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    asked, size = json.dumps([vars(parallel) for parallel in kinds]), kinds[0].size
    processes = []
    for rank in range(size):
        environment = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        command = [sys.executable, str(Path(__file__).with_name("counted_worker.py")), asked]
        processes.append(subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    outputs = [process.communicate(timeout=200) for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    return list(json.loads(outputs[0][0]))


@pytest.mark.long
@pytest.mark.process
def test_planned_bytes_equal_those_of_two_real_processes() -> None:
    kinds = [Parallel("ddp", replicas=2), Parallel("fsdp", shards=2), Parallel("tensor", tensor=2)]
    for parallel, counted in zip(kinds, counted_on_gloo(kinds), strict=True):
        plan = communication(tiny(), parallel, "float32", SHAPE)
        sent = {name: counted.get(name, {}).get("payload", 0) for name in COLLECTIVES}
        assert sent == {name: payload for name, (_, payload) in planned_by(plan).items()}, parallel
        assert "broadcast" not in counted


@pytest.mark.slow
def test_a_plan_for_another_number_format_would_be_found_out() -> None:
    parallel = Parallel("fsdp", shards=8)
    counted = found_in(Simulated(tiny(), parallel, "masters", SHAPE).counted)
    assert counted != planned_by(communication(tiny(), parallel, "float32", SHAPE))


def test_a_ring_sends_less_than_twice_the_payload_however_many_there_are() -> None:
    for among in (2, 8, 1024):
        assert Traffic("gradients", "all_reduce", among, 1, 100.0).sent == pytest.approx(200 * (among - 1) / among)
        assert Traffic("weights", "all_gather", among, 1, 100.0).sent < 100


def test_one_process_sends_nothing_and_the_gradient_of_ddp_is_sent_once_a_step() -> None:
    assert communication(tiny(), Parallel(), "masters", SHAPE).sent == 0
    once = communication(tiny(), Parallel("ddp", replicas=4), "float32", SHAPE)
    assert communication(tiny(), Parallel("ddp", replicas=4), "float32", SHAPE, accumulate=5).sent == once.sent
    cut = communication(tiny(), Parallel("fsdp", shards=4), "float32", SHAPE)
    five = communication(tiny(), Parallel("fsdp", shards=4), "float32", SHAPE, accumulate=5)
    assert five.sent == pytest.approx(5 * cut.sent, rel=1e-4)  # all but the words


def test_hybrid_sends_little_between_the_groups() -> None:
    plan = communication(ModelConfig.preset("3b", 32_000), Parallel("hybrid", replicas=8, shards=8), "masters", SHAPE)
    between = sum(each.sent for each in plan.traffic if each.purpose == "gradients between groups")
    assert between < 0.15 * plan.sent
