"""One of several real processes: takes a training step on gloo for each kind of parallelism that it is asked for, and says what it
handed to torch.distributed. Started by a test:

python counted_worker.py '[{"kind": "fsdp", "replicas": 1, "shards": 2, "tensor": 1}]'
"""

import json
import sys

import torch
import torch.distributed as dist

from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.planning.cost.collective_counter import CollectiveCounter
from limelight.planning.cost.parallel import Parallel
from limelight.training.step.sharding import Objective, spread


def counted(parallel: Parallel) -> dict[str, dict[str, int]]:
    torch.manual_seed(1)
    objective = Objective(Transformer(ModelConfig.preset("tiny", 503)))
    called = spread(objective, parallel, torch.device("cpu"), "float32")
    ids = torch.randint(4, 503, (8, 32))
    with CollectiveCounter() as counting, called.synchronizing(True):
        total, _ = called.objective(Batch.padded(ids, ids, ids), 0.1, None)
        total.backward()  # type: ignore[no-untyped-call]
    return {name: vars(each) for name, each in counting.counted.items()}


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    found = [counted(Parallel(**asked)) for asked in json.loads(sys.argv[1])]
    if dist.get_rank() == 0:
        sys.stdout.write(json.dumps(found) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
