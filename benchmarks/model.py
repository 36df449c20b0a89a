"""How fast the model trains, against torch.nn.Transformer and against the matrix products alone.

    python benchmarks/model.py --size small --size base --rounds 3 --steps 10
    python benchmarks/model.py --lengths

Ratios are what counts: machines differ, and on a shared one the same code moves by half. Everything is interleaved in one run.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent))
import yardstick
from limelight import runtime
from limelight.model import attention
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.training.config import Precision
from limelight.training.step.trained_model import TrainedModel, choose_precision

LENGTHS = (512, 2048, 8192)


def usual_precision() -> Precision:
    """What `limelight train` chooses on this machine's cores."""
    return choose_precision(torch.device("cpu"), None).value


def usual_numbers() -> torch.dtype:
    return torch.float32 if usual_precision() == "float32" else torch.bfloat16


class LimelightStep:
    """One training step as a run does it: packed batch, the numbers that a run chooses here, clipping, fused AdamW."""

    def __init__(self, config: ModelConfig, precision: Precision | None = None) -> None:
        runtime.keep_freed_memory()
        torch.manual_seed(0)
        self.model = Transformer(config).train()
        self.numbers = TrainedModel(self.model, precision or usual_precision())
        self.weights = list(self.numbers.named.values())
        self.optimizer = torch.optim.AdamW(self.weights, lr=3e-4, fused=True)

    def __call__(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> None:
        batch = Batch.packed(source, target_in, target_out, self.model.config.pad_token)
        loss, _ = self.numbers.loss(batch, smoothing=0.1, r_drop=None)
        (loss / (target_out != self.model.config.pad_token).sum()).backward()
        self.numbers.take_gradients()
        nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()
        self.numbers.drop_gradients()
        self.numbers.publish()


def contestants(size: str, every: bool) -> dict[str, Callable[[], yardstick.Step]]:
    config = ModelConfig.preset(size, yardstick.VOCAB)
    makers: dict[str, Callable[[], yardstick.Step]] = {"nn.Transformer fp32": partial(yardstick.StockStep, size, bf16=False)}
    if every:
        makers["nn.Transformer bf16 autocast"] = partial(yardstick.StockStep, size, bf16=True)
    makers["Limelight"] = partial(LimelightStep, config)
    if every:
        # torch.nn.Transformer also drops attention weights and inner activations, which the paper does not.
        everywhere = config.changed(attention_dropout=0.1, activation_dropout=0.1)
        makers["Limelight, dropout everywhere"] = partial(LimelightStep, everywhere)
        makers["Limelight, bf16 autocast"] = partial(LimelightStep, config, "autocast")  # what a GPU run does
    return makers


def measure(size: str, rounds: int, per_round: int, every: bool = True) -> dict[str, list[float]]:
    return yardstick.speeds(contestants(size, every), size, rounds, per_round, usual_numbers())


def ratio(found: dict[str, list[float]], name: str, other: str) -> list[float]:
    """Round by round, so that a slow minute of the machine counts for both."""
    return [a / b for a, b in zip(found[name], found[other], strict=True)]


def one_length(length: int, path: str, pieces: int = 8192) -> tuple[float, float]:
    """Seconds per step and peak megabytes of one layer each as wide as `small`, always the same number of pieces."""
    attention.CPU_STAGES_UP_TO = dict.fromkeys(attention.CPU_STAGES_UP_TO, 10**9 if path == "stages" else 0)
    config = ModelConfig.preset("small", yardstick.VOCAB, encoder_layers=1, decoder_layers=1, max_length=max(LENGTHS))
    step = LimelightStep(config)
    ids = torch.randint(4, yardstick.VOCAB, (pieces // length, length))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        step(ids, ids, ids)
        times.append(time.perf_counter() - start)
    return min(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_lengths(path: str, lengths: tuple[int, ...] = LENGTHS) -> dict[int, tuple[float, float]]:
    """A process for each, so that the peak memory of one is not that of another."""
    found = {}
    for length in lengths:
        call = [sys.executable, __file__, "--one-length", str(length), "--path", path]
        seconds, megabytes = subprocess.run(call, check=True, capture_output=True, text=True).stdout.split()
        found[length] = (float(seconds), float(megabytes))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", choices=yardstick.SIZES, default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10, help="batches per round")
    parser.add_argument("--lengths", action="store_true", help="step time and peak memory at 512, 2,048 and 8,192 pieces")
    parser.add_argument("--one-length", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--path", choices=("fused", "stages"), default="fused", help=argparse.SUPPRESS)
    args = parser.parse_args()
    runtime.choose_threads()
    if args.one_length:
        print(*one_length(args.one_length, args.path))
        return
    for size in args.size or ([] if args.lengths else ["small", "base"]):
        found = measure(size, args.rounds, args.steps)
        print(f"{size}: target pieces per second, median of {args.rounds} rounds (range), times stock fp32, of the bf16 limit")
        for name, values in found.items():
            times, share = ratio(found, name, "nn.Transformer fp32"), ratio(found, name, "limit")
            print(
                f"  {name:30s} {statistics.median(values):7.0f} ({min(values):.0f}-{max(values):.0f})"
                f"  {statistics.median(times):5.2f} ({min(times):.2f}-{max(times):.2f})"
                f"  {statistics.median(share):.3f} ({min(share):.3f}-{max(share):.3f})"
            )
    if args.lengths:
        for path in ("fused", "stages"):
            for length, (seconds, megabytes) in measure_lengths(path).items():
                print(f"{path:7s} {length:5d} pieces  {seconds:6.2f} s per step  {megabytes:6.0f} MB peak")


if __name__ == "__main__":
    main()
