"""Prints the tables of docs/scale.md that are computed and not measured: memory and time of a step on 8, 64 and 1,024 devices."""

import sys

from limelight.model.config import ModelConfig
from limelight.planning.cost.activations import estimate_activations
from limelight.planning.cost.communication import communication
from limelight.planning.cost.memory import memory
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.shape import BatchShape
from limelight.planning.time.described_time import step_time
from limelight.planning.time.devices import device

SIZES = (8, 64, 1024)
S = T = 64
H100 = device("H100")


def ways(size: int) -> list[Parallel]:
    found = [Parallel("ddp", replicas=size), Parallel("fsdp", shards=size)]
    if size > 8:
        found.append(Parallel("hybrid", replicas=size // 8, shards=8))
    return [*found, Parallel("tensor", shards=size // 8, tensor=8)]


def bytes_needed(config: ModelConfig, parallel: Parallel, precision: Precision, shape: BatchShape, recompute: bool = False) -> float:
    """Of one process on an accelerator: state with the twin that validates, what passes through, and activations, of which a tensor group
    shares what is inside a block."""
    found = estimate_activations(config, shape, precision, "accelerator")
    inside = max(found.encoder, found.decoder) if recompute else found.total - found.outside
    outside = found.outside + found.logits + (found.between if recompute else 0.0)
    return memory(config, parallel, precision, validates=True).total + inside / parallel.tensor + outside


def row(model: str, parallel: Parallel, pieces: int) -> str:
    """`pieces`: target pieces of a step for each device; a tensor group shares one batch of eight times as many."""
    config = ModelConfig.preset(model, 32_000, dropout=0.1)
    rows = max(1, pieces * parallel.tensor // T)
    shape = BatchShape.padded(rows, S, T)
    recompute = model != "big"
    needed = bytes_needed(config, parallel, "masters", shape, recompute)
    time = step_time(config, parallel, "masters", shape, H100, recompute)
    sent = communication(config, parallel, "masters", shape, recompute=recompute).sent
    worst, best = time.efficiency
    fits = "" if needed <= 0.9 * H100.memory else " **no**"
    rate = parallel.data_size * shape.rows * T / time.best
    return (
        f"| `{model}` | {parallel.size:,} | {parallel.kind} {parallel.replicas} x {parallel.shards} x {parallel.tensor} "
        f"| {needed / 1e9:.0f}{fits} | {sent / 1e9:.1f} | {1000 * time.computing:,.0f} "
        f"| {1000 * time.hidden:,.0f} | {1000 * time.exposed:,.0f} | {worst:.0%}-{best:.0%} | {rate / 1e6:.2f} |"
    )


def main() -> None:
    columns = (
        "model",
        "devices",
        "replicas x shards x tensor",
        "GB needed",
        "GB sent",
        "computing, ms",
        "beside it, ms",
    )
    head = " | ".join(("", *columns, "in its way, ms", "efficiency", "M pieces/s", "")).strip()
    for title, per_device in (
        ("The same batch for each device", None),
        ("The same step for all: 2^20 target pieces", 2**20),
    ):
        sys.stdout.write(f"\n{title}\n\n{head}\n|{' --- |' * 10}\n")
        for model in ("big", "3b", "10b"):
            for size in SIZES:
                for parallel in ways(size):
                    pieces = 16_384 if per_device is None else per_device // size
                    sys.stdout.write(row(model, parallel, pieces) + "\n")


if __name__ == "__main__":
    main()
