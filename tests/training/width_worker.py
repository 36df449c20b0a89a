"""One of several processes that take a few steps together, in each of the ways that a case asks for. The main one prints the losses.

python width_worker.py PREPARED '{"ddp": {"kind": "ddp", "replicas": 2}}'
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.planning.cost.parallel import Parallel
from limelight.training.config import OptimizerSettings
from limelight.training.processes.world import World, join_world
from limelight.training.step.gradients import gradients
from limelight.training.step.optimizers import build
from limelight.training.step.sharding import whole
from limelight.training.step.step import RankFlags, agree_on_step
from limelight.training.step.trained_model import TrainedModel

STEPS = 8


def story(case: dict[str, Any], prepared: PreparedCorpus, world: World) -> dict[str, Any]:
    """Losses and norms of a few steps, and what the weights came to."""
    parallel = Parallel(**{key: case[key] for key in ("kind", "replicas", "shards", "tensor") if key in case})
    vocabulary = prepared.manifest.vocab_sizes[1]
    config = ModelConfig(
        vocab_size=vocabulary, d_model=64, encoder_layers=2, decoder_layers=2, num_heads=4, d_ff=128, dropout=0.0,
        max_length=32, **case.get("model", {}),
    )  # fmt: skip
    began = time.perf_counter()
    torch.manual_seed(5)
    numbers = TrainedModel(Transformer(config).train(), case.get("precision", "float32"), parallel)
    settings = OptimizerSettings(name=case.get("optimizer", "adamw"), learning_rate=1e-3, clip=1.0)
    optimizers = build(numbers.named, settings, numbers.device, world)
    rank, size = parallel.data_rank(world.rank), parallel.data_size
    found: dict[str, Any] = {"loss": [], "norm": [], "bytes": 0}
    with Loader(prepared, BatchSettings(budget=case.get("budget", 512)), rank=rank, world=size) as loader:
        for step in range(STEPS):
            world.phase("step", step)
            shares = [next(loader) for _ in range(case.get("accumulate", 1))]
            if case.get("wrong"):  # each process divides by its own pieces: what a plain mean over processes does
                own = int((shares[0].target != 0).sum())
                shares = [replace(shares[0], targets=own * size)]
            losses = gradients(numbers, shares, 0.1, case.get("r_drop"))
            norm = optimizers.clip(settings.clip)
            agreed = agree_on_step(world, parallel, losses, norm, shares, RankFlags())
            optimizers.step()
            numbers.publish()
            optimizers.zero_gradients()
            found["loss"].append(agreed.loss)
            found["norm"].append(agreed.norm)
    held = {**numbers.named, **optimizers.tensors()}.values()
    found["bytes"] = sum(getattr(each, "_local_tensor", each).nbytes for each in held)
    found["weights"] = sum(float(whole(weight.detach()).double().abs().sum()) for weight in numbers.named.values())
    return {**found, "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    torch.set_num_threads(1)
    prepared = PreparedCorpus.open(Path(sys.argv[1]))
    with join_world(patience=60) as world:
        stories = {name: story(case, prepared, world) for name, case in json.loads(sys.argv[2]).items()}
        if world.main:
            sys.stdout.write(json.dumps(stories) + "\n")
