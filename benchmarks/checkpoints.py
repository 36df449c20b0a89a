"""What a checkpoint costs: bytes, seconds, and how long training stands still for it, against the size of the model.

    python benchmarks/checkpoints.py                        toy, small and base; whole and in two shards; at once and in the background
    python benchmarks/checkpoints.py --presets toy --times 1

One JSON object per line. A checkpoint has four numbers of float32 for each weight: the weight, two moments and the moving average. Each
process has one core. Seconds are the best of several.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))
from ranks import Ranks

from limelight.model import ModelConfig, Transformer
from limelight.model.config import PRESETS
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints.writer import CheckpointWriter
from limelight.training.processes.world import World

PIECES = 16_000


def tensors_of(world: World, preset: str) -> dict[str, Tensor]:
    with torch.device("meta"):
        model = Transformer(ModelConfig(vocab_size=PIECES, **PRESETS[preset]))
    mesh = init_device_mesh("cpu", (world.size,)) if world.size > 1 else None
    found: dict[str, Tensor] = {}
    for name, weight in model.named_parameters():
        for part in ("weights", "moment", "square", "average"):
            whole = torch.full(weight.shape, 0.5)
            found[f"{part}/{name}"] = distribute_tensor(whole, mesh, [Shard(0)], src_data_rank=None) if mesh else whole
    return found


def cost(world: World, root: str, preset: str, times: int) -> Any:
    """A scene: what every process measured."""
    tensors, folder, seconds = tensors_of(world, preset), Path(root), []
    begins, finishes, writes = [], [], []
    background = CheckpointWriter(folder / "behind", 1, world)
    for number in range(times):
        began = time.perf_counter()
        saved = checkpoint.save(folder / "at once", number, tensors, {}, 1, world)
        seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
        background.begin(number, tensors, {})
        begins.append(time.perf_counter() - began)
        while not background.ready:
            time.sleep(0.01)
        writes.append(time.perf_counter() - began)
        world.all_reduce([0.0])
        began = time.perf_counter()
        background.finish()
        finishes.append(time.perf_counter() - began)
    began = time.perf_counter()
    found = checkpoint.latest(folder / "at once", world).checkpoint
    verified = time.perf_counter() - began
    assert found is not None
    began = time.perf_counter()
    found.load_into(tensors)
    return {
        "bytes": sum(path.stat().st_size for path in saved.iterdir()),
        "save": min(seconds),
        "background_begin": min(begins),
        "background_write": min(writes),
        "background_finish": min(finishes),
        "verify": verified,
        "verify_and_load": time.perf_counter() - began,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--presets", default="toy,small,base")
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory(prefix="checkpoints-") as place, Ranks(2, "checkpoints") as ranks:
        for preset in asked.presets.split(","):
            for size in (1, 2):
                found = ranks.run(size, "cost", f"{place}/{preset}-{size}", preset, asked.times)
                if "error" in found[0]:
                    sys.exit(str(found))
                worst = {name: round(max(each[name] for each in found), 4) for name in found[0]}
                still = round(worst["background_begin"] + worst["background_finish"], 4)
                print(
                    json.dumps({"preset": preset, "shards": size if size > 1 else 0, **worst, "stands_still": still}),
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
