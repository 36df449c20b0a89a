"""What several processes cost on this machine, each on one core, against what `planning` says. One JSON object a line.

python benchmarks/scale.py weak        1 -> 2 processes, the same batch for each: time, and what of it is waiting
python benchmarks/scale.py wire        bytes on the loopback device in a step, against the formula (needs root: a network namespace)
python benchmarks/scale.py memory      what each of 1, 2 and 4 processes holds under FSDP2
python benchmarks/scale.py checkpoint  bytes and seconds of checkpoints against the size of the model
python benchmarks/scale.py             all of it
"""

import json
import os
import socket
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from limelight.model.config import ModelConfig
from limelight.planning.cost.communication import communication
from limelight.planning.cost.memory import memory
from limelight.planning.cost.parallel import Parallel
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.size import parameters

RANK = Path(__file__).with_name("scale_rank.py")


def started(size: int, asked: dict[str, Any], apart: bool = False) -> list[dict[str, Any]]:
    """What each process found. `apart`: in a network namespace of their own, where nothing else is sent."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    shared |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    commands = [f"RANK={rank} {sys.executable} {RANK} '{json.dumps(asked)}' &" for rank in range(size)]
    script = "\n".join(["ip link set lo up" if apart else "", *commands, "wait"])
    whole = ["unshare", "-n", "bash", "-c", script] if apart else ["bash", "-c", script]
    done = subprocess.run(whole, env=os.environ | shared, capture_output=True, timeout=1800)
    lines = [line for line in done.stdout.decode().split("\n") if line.startswith("[")]
    if not lines:
        raise SystemExit(f"{whole} said nothing:\n{done.stderr.decode()[-2000:]}")
    return list(json.loads(lines[-1]))


def say(**figures: Any) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


def weak(models: tuple[str, ...] = ("tiny", "small"), precisions: tuple[str, ...] = ("masters", "float32")) -> None:
    for model in models:
        for precision in precisions:
            asked = {"job": "weak", "model": model, "vocab": 8000, "rows": 32, "length": 32, "steps": 4}
            ranks = started(2, {**asked, "precision": precision, "rounds": 5})
            alone = [turn["seconds"] for turn in ranks[0]["ways"]["alone"]]
            for way in ("alone", "strangers", "ddp", "fsdp"):
                turns = [
                    {name: statistics.mean(each[name] for each in both) for name in both[0]}
                    for both in zip(*(rank["ways"][way] for rank in ranks if rank["ways"][way]), strict=True)
                ]
                seconds = [turn["seconds"] for turn in turns]
                ratios = sorted(one / now for one, now in zip(alone, seconds, strict=True))
                say(
                    weak=way,
                    model=model,
                    precision=precision,
                    milliseconds=round(1000 * statistics.median(seconds), 1),
                    spread=[round(1000 * min(seconds), 1), round(1000 * max(seconds), 1)],
                    efficiency=round(statistics.median(ratios), 3),
                    efficiency_spread=[round(ratios[0], 3), round(ratios[-1], 3)],
                    **{
                        name: round(statistics.median(turn[name] / turn["seconds"] for turn in turns), 3)
                        for name in ("computing", "queueing", "waiting")
                    },
                )


WAYS = {
    2: [Parallel("ddp", replicas=2), Parallel("fsdp", shards=2), Parallel("tensor", tensor=2)],
    4: [Parallel("fsdp", shards=4), Parallel("hybrid", replicas=2, shards=2), Parallel("tensor", shards=2, tensor=2)],
}


def wire() -> None:
    config, shape = ModelConfig.preset("tiny", 8000), BatchShape.packed(32, 32, 32, 1024, 1024)
    for size, kinds in WAYS.items():
        ways = [(parallel, precision) for parallel in kinds for precision in ("float32", "masters")]
        asked = {"job": "wire", "model": "tiny", "vocab": 8000, "rows": 32, "length": 32, "steps": 3}
        asked["ways"] = [{"parallel": vars(parallel), "precision": precision} for parallel, precision in ways]
        for (parallel, precision), found in zip(ways, started(size, asked, apart=True)[0]["ways"], strict=True):
            plan = communication(config, parallel, precision, shape)  # type: ignore[arg-type]
            counted = sum(each["payload"] for each in found["counted"].values())
            twice = sum(each.sent for each in plan.traffic if each.collective == "reduce_scatter")
            say(
                wire=parallel.kind,
                mesh=[parallel.replicas, parallel.shards, parallel.tensor],
                precision=precision,
                planned_sent=round(plan.sent),
                on_the_wire=round(found["sent"]),
                ratio=round(found["sent"] / plan.sent, 3),
                ratio_with_gloos_reduce_scatter=round(found["sent"] / (plan.sent + twice), 3),
                payload_counted_to_planned=round(counted / sum(each.payload for each in plan.traffic), 4),
                calls={name: each["calls"] for name, each in found["counted"].items()},
            )


def holding() -> None:
    for precision in ("masters", "float32"):
        for size in (1, 2, 4):
            parallel = Parallel("fsdp", shards=size) if size > 1 else Parallel()
            config = ModelConfig.preset("base", 32_000)
            asked = {"job": "memory", "model": "base", "vocab": 32_000, "rows": 4, "length": 16, "steps": 2}
            ranks = started(size, {**asked, "precision": precision, "parallel": vars(parallel)})
            plan = memory(config, parallel, precision)  # type: ignore[arg-type]
            # The gradients of masters stay where they are; others are dropped after each step.
            keeps = precision == "masters" and size == 1
            state = plan.state - (0 if keeps else plan.gradients)
            first = max(ranks, key=lambda rank: rank["held"]["weights"])
            held = sum(first["held"].values())
            resident = statistics.mean(rank["resident"] for rank in ranks)
            beside = plan.tables + (plan.weights + plan.gradients if keeps else 0)
            say(
                memory=size,
                precision=precision,
                parameters=sum(parameters(config).values()),
                planned_state=round(state),
                shards=held,
                shards_to_planned=round((held + beside) / state, 4),
                resident=round(resident),
                resident_to_planned=round(resident / state, 3),
            )


if __name__ == "__main__":
    jobs = {"weak": weak, "wire": wire, "memory": holding}
    for name in sys.argv[1:] or jobs:
        jobs[name]()
