"""The planned peak of a step, against the most bytes of tensors that a real step ever has, and against what a fresh process holds."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from alive import Alive
from random_configs import random_config

from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.memory import memory
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.peak import PARTS, PROGRAM, peak
from limelight.planning.cost.shape import BatchShape
from limelight.training.step.trained_model import TrainedModel

RUN = Path(__file__).parents[2] / "benchmarks" / "plan_run.py"
COMES_AND_GOES = ("gradients", "activations", "logits", "passing")


def most_alive(config: ModelConfig, shape: BatchShape, precision: Precision, recompute: bool) -> int:
    """Of one forward and backward pass, beside the weights."""
    numbers = TrainedModel(Transformer(config).train(), precision)
    numbers.model.recompute_activations(recompute)
    source = torch.randint(4, config.source_vocab, (shape.rows, shape.S))
    target = torch.randint(4, config.vocab_size, (shape.rows, shape.T))
    model = numbers.model
    with Alive([*numbers.named.values(), *model.parameters(), *model.buffers(), source, target]) as counter:
        loss, _ = numbers.loss(Batch.packed(source, target, target, 0), 0.1, None)
        loss.backward()  # type: ignore[no-untyped-call]
    return counter.most


def planned(config: ModelConfig, shape: BatchShape, precision: Precision, recompute: bool) -> float:
    """What comes and goes in a pass: without the heap's holes, and without the float32 gradients of masters, which stay."""
    found = peak(config, Parallel(), precision, shape, "cpu", recompute)
    stays = memory(config, Parallel(), precision).gradients if precision == "masters" else 0.0
    return sum(found.parts[name] for name in COMES_AND_GOES) - stays - found.holes


def batch(rows: int, S: int, T: int) -> BatchShape:
    return BatchShape.packed(rows, S, T, rows * S, rows * T)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "masters", "autocast"])
@pytest.mark.parametrize("recompute", [False, True])
def test_the_planned_peak_is_the_most_that_is_alive_in_a_real_pass(precision: Precision, recompute: bool) -> None:
    chance = random.Random(5)
    for _ in range(6):
        config = random_config(chance, d_model=96, d_ff=384, num_heads=6, num_kv_heads=6)
        shape = batch(*chance.choice([(40, 40, 48), (48, 33, 20), (8, 100, 120)]))
        real = most_alive(config, shape, precision, recompute)
        assert planned(config, shape, precision, recompute) == pytest.approx(real, rel=0.15), (config, shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "vocab", "shape", "where"),
    [("toy", 20_000, (24, 30, 30), "loss"), ("base", 100, (2, 16, 16), "end")],
)
def test_a_large_vocabulary_is_felt_at_the_loss_and_a_small_batch_at_the_end(
    name: str, vocab: int, shape: tuple[int, int, int], where: str
) -> None:
    config = ModelConfig.preset(name, vocab)
    found = peak(config, Parallel(), "float32", batch(*shape), "cpu")
    assert found.moment == where
    real = most_alive(config, batch(*shape), "float32", False)
    assert planned(config, batch(*shape), "float32", False) == pytest.approx(real, rel=0.15)


def test_parts_stand_in_one_order_and_sum_to_the_total() -> None:
    config = ModelConfig.preset("small", 8000)
    for precision in ("float32", "masters", "autocast"):
        for where in ("cpu", "accelerator"):
            found = peak(config, Parallel(), precision, batch(32, 32, 32), where)  # type: ignore[arg-type]
            assert tuple(found.parts) == PARTS
            assert found.total == sum(found.parts.values()) and min(found.parts.values()) >= 0
            assert found.parts["program"] == PROGRAM[where]  # type: ignore[index]
            assert (found.parts["masters"] > 0) == (precision == "masters")


def test_no_average_no_twin_and_recomputation_each_need_less() -> None:
    config, shape = ModelConfig.preset("base", 16_000), batch(64, 32, 32)
    usual = peak(config, Parallel(), "masters", shape, "accelerator")
    alone = peak(config, Parallel(), "masters", shape, "accelerator", average=False)
    assert usual.total - alone.total == usual.parts["average"] > 0
    trains = peak(config, Parallel(), "masters", shape, "accelerator", validates=False)
    assert usual.total - trains.total == usual.parts["twin"] > 0
    assert peak(config, Parallel(), "masters", shape, "accelerator", recompute=True).total < usual.total
    muon = peak(config, Parallel(), "masters", shape, "accelerator", optimizer="muon")
    assert muon.parts["moments"] < usual.parts["moments"]


def test_shards_need_less_and_a_larger_batch_more() -> None:
    config = ModelConfig.preset("3b", 32_000)
    whole, cut, finer = (
        peak(config, parallel, "masters", batch(64, 64, 64), "accelerator", recompute=True).total
        for parallel in (Parallel("ddp", replicas=64), Parallel("fsdp", shards=8), Parallel("fsdp", shards=64))
    )
    assert finer < cut < whole
    larger = peak(config, Parallel("fsdp", shards=8), "masters", batch(128, 64, 64), "accelerator", recompute=True)
    assert larger.total > cut


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(("precision", "recompute"), [("float32", False), ("masters", True)])
def test_a_fresh_process_that_trains_holds_what_was_planned(precision: Precision, recompute: bool) -> None:
    """Within 10 %: VmHWM, by the kernel. Twelve larger ones: benchmarks/plan.py."""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc here to ask for the most memory that a process held")
    asked = {"model": "tiny", "vocab": 4000, "precision": precision, "shape": [64, 32, 32], "recompute": recompute}
    command = [sys.executable, str(RUN), json.dumps({**asked, "changes": {}, "validates": True})]
    done = subprocess.run(command, input="\n\n\n", capture_output=True, text=True, timeout=600, check=True)
    held = json.loads(done.stdout.strip().split("\n")[-1])["held"]
    found = peak(ModelConfig.preset("tiny", 4000), Parallel(), precision, batch(64, 32, 32), "cpu", recompute)
    assert found.total == pytest.approx(held, rel=0.1)
