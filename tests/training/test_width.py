"""Correct at any width: one process, and two or four that share the model in every way, take the same steps."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_runs import make_corpus

import warm_process

WORKER = Path(__file__).parent / "width_worker.py"
ALONE = {
    "plain": {},
    "short of pairs": {"budget": 40},  # batches of one or two pairs: some processes get none
    "masters": {"precision": "masters"},
    "three batches a step": {"accumulate": 3},
    "r-drop": {"r_drop": 1.0},
    "muon": {"optimizer": "muon"},
    "gated": {"model": {"activation": "swiglu", "norm": "rms", "positions": "rotary", "num_kv_heads": 2}},
}


def told(prepared: Path, size: int, cases: dict[str, Any]) -> dict[str, Any]:
    """What `size` processes say of these cases."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    base = {**os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size)}
    base |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, str(WORKER), str(prepared), json.dumps(cases)]
    processes = [
        warm_process.Popen(
            command,
            env={**base, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for rank in range(size)
    ]
    try:
        outputs = [process.communicate(timeout=200) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * size, outputs[0][1][-3000:].decode()
    stories: dict[str, Any] = json.loads(outputs[0][0].splitlines()[-1])
    return stories


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus")) / "prepared"


@pytest.fixture(scope="module")
def alone(starts_process: None, prepared: Path) -> dict[str, Any]:
    return told(prepared, 1, ALONE)


def apart(one: dict[str, Any], other: dict[str, Any], key: str = "loss") -> float:
    return max(abs(a - b) / a for a, b in zip(one[key], other[key], strict=True))


TWO = {
    "ddp": {"kind": "ddp", "replicas": 2},
    "fsdp": {"kind": "fsdp", "shards": 2},
    "tensor": {"kind": "tensor", "tensor": 2},
}
TRIED = {
    "ddp": ("plain", "short of pairs", "masters", "three batches a step"),
    "fsdp": ("plain", "masters", "r-drop", "gated", "muon"),
    "tensor": ("plain", "masters", "gated"),
}


def test_two_processes_take_the_steps_of_one(prepared: Path, alone: dict[str, Any]) -> None:
    cases = {f"{way} {name}": {**TWO[way], **ALONE[name]} for way, names in TRIED.items() for name in names}
    found = told(prepared, 2, {**cases, "wrong": {**TWO["ddp"], "wrong": True}})
    for way, names in TRIED.items():
        for name in names:
            one, two = alone[name], found[f"{way} {name}"]
            # bfloat16, in which Muon makes its steps orthogonal too, rounds what is added up in another order.
            bound = 3e-3 if name in ("masters", "muon") else 1e-6
            assert apart(one, two) < bound, f"{way} {name}"
            assert apart(one, two, "norm") < 100 * bound, f"{way} {name}"
            assert abs(one["weights"] - two["weights"]) / one["weights"] < bound, f"{way} {name}"
    assert apart(alone["plain"], found["wrong"]) > 1e-5, "a plain mean over processes would be noticed"
    one, two = alone["plain"]["bytes"], found["fsdp plain"]["bytes"]
    assert 0.5 <= two / one < 0.52, "each of two holds half of weights and moments"
    assert found["ddp plain"]["bytes"] == one


@pytest.mark.long
def test_four_processes_take_the_steps_of_one(prepared: Path, alone: dict[str, Any]) -> None:
    ways = {
        "ddp": {"kind": "ddp", "replicas": 4},
        "fsdp": {"kind": "fsdp", "shards": 4},
        "hybrid": {"kind": "hybrid", "replicas": 2, "shards": 2},
        "tensor": {"kind": "tensor", "shards": 2, "tensor": 2},
    }
    found = told(prepared, 4, {way: {**ways[way], **ALONE["short of pairs"]} for way in ways})
    for way in ways:
        assert apart(alone["short of pairs"], found[way]) < 1e-6, way
    assert found["fsdp"]["bytes"] < 0.27 * alone["plain"]["bytes"]
    assert found["tensor"]["bytes"] < 0.4 * alone["plain"]["bytes"]
