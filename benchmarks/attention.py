"""Attention in stages against the fused kernel, by length: where `limelight.model.attention.CPU_STAGES_UP_TO` comes from.

    python benchmarks/attention.py [--device cuda]

Forward and backward of one multi-head attention (8,192 queries in all, 4 heads of 64), interleaved, best of 5. Below 1 the stages win.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from limelight import runtime
from limelight.model.attention import Visible, attend_fused, attend_in_stages

PIECES, HEADS, D_HEAD = 8192, 4, 64


def seconds(attend: Callable[..., Tensor], length: int, visible: Visible, dtype: torch.dtype, device: str, train: bool) -> float:
    shape = (PIECES // length, HEADS, length, D_HEAD)
    q, k, v = (torch.randn(shape, dtype=dtype, device=device, requires_grad=train) for _ in range(3))
    start = time.perf_counter()
    out = attend(q, k, v, visible)
    if train:
        out.backward(torch.ones_like(out))
    if device != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    runtime.choose_threads()
    runtime.keep_freed_memory()
    print("length  " + "  ".join(f"{dtype} {what:9s}" for dtype in ("bf16", "fp32") for what in ("training", "inference")))
    for length in (16, 32, 64, 128, 256, 512, 1024):
        ratios = []
        for dtype in (torch.bfloat16, torch.float32):
            for train in (True, False):
                keys = torch.ones(PIECES // length, length, dtype=torch.bool, device=device)
                both = [
                    [seconds(f, length, Visible(keys=keys), dtype, device, train) for f in (attend_in_stages, attend_fused)]
                    for _ in range(6)
                ]
                stages, fused = (min(times[1:]) for times in zip(*both, strict=True))
                ratios.append(stages / fused)
        print(f"{length:6d}  " + "  ".join(f"{ratio:14.2f}" for ratio in ratios))


if __name__ == "__main__":
    main()
