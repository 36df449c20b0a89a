"""Faults happen where, when and to whom the environment says, and nowhere else."""

import errno
import math
import time

import inject_fault as faults
import pytest
import torch

from limelight.errors import ConfigError


def loss(step: int = 5, rank: int = 0) -> float:
    return faults.corrupt_value("step.loss", 2.0, step=step, rank=rank)


def test_without_the_variable_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(faults.VARIABLE, raising=False)
    faults.inject_fault("start", step=0, rank=0)
    assert loss() == 2.0


@pytest.mark.parametrize(
    ("asked", "hit"),
    [
        ("step.loss:nan", [(4, 0), (4, 1), (5, 0), (5, 1), (6, 0), (6, 1)]),
        ("step.loss:nan@5", [(5, 0), (5, 1)]),
        ("step.loss:nan@5#1", [(5, 1)]),
        ("step.loss:nan@5-6#0", [(5, 0), (6, 0)]),
        ("step.loss:nan@5#1/0", [(5, 1)]),
        ("step.loss:nan@5#1/1", []),
        ("step.gradient:nan@5", []),
        ("step.loss:nan@4#0,step.loss:nan@6#1", [(4, 0), (6, 1)]),
    ],
)
def test_a_fault_hits_its_step_rank_and_start(asked: str, hit: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(faults.VARIABLE, asked)
    assert [(s, r) for s in (4, 5, 6) for r in (0, 1) if math.isnan(loss(s, r))] == hit


def test_numbers_are_bent_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, value in (("inf", math.inf), ("scale", 200.0), ("scale=3", 6.0), ("flip", 0.0)):
        monkeypatch.setenv(faults.VARIABLE, f"step.loss:{asked}")
        assert loss() == value


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_bit_of_the_exponent_of_one_element_is_flipped(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(faults.VARIABLE, "step.gradient:flip")
    tensors = {"a": torch.tensor([[0.0, 0.5], [-0.25, 8.0]], dtype=dtype), "b": torch.ones(3, dtype=dtype)}
    bent = faults.corrupt_value("step.gradient", tensors, step=1, rank=0)
    assert bent["a"][0, 1] > 1e37 and bent["a"].flatten()[[0, 2, 3]].tolist() == [0.0, -0.25, 8.0]
    assert bent["b"].tolist() == [1.0, 1.0, 1.0]


def test_memory_is_missing_once_and_the_disk_is_full_until_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(faults.VARIABLE, "step.forward:oom@7,ckpt.write:enospc")
    with pytest.raises(torch.OutOfMemoryError, match=r"step.forward of step 7, asked for by LIMELIGHT_FAULT"):
        faults.inject_fault("step.forward", step=7, rank=0)
    faults.inject_fault("step.forward", step=7, rank=0)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left") as raised:
            faults.inject_fault("ckpt.write", step=1, rank=0)
        assert raised.value.errno == errno.ENOSPC


@pytest.mark.process
def test_any_is_every_point_and_sleep_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(faults.VARIABLE, "any:sleep=0.05")
    began = time.monotonic()
    faults.inject_fault("validate", step=1, rank=0)
    assert time.monotonic() - began >= 0.05


def test_what_cannot_be_understood_is_refused_with_every_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(faults.VARIABLE, "step.lost:nan,step.loss:none,start:nan,step.loss,step.loss:scale=x")
    with pytest.raises(ConfigError) as raised:
        faults.inject_fault("start", step=0, rank=0)
    assert len(raised.value.problems) == 5
    assert "there is no point step.lost; there are start, step.forward" in str(raised.value)
    assert "nan needs a value, and start has none" in str(raised.value)
