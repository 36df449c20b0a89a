"""How fast training runs, all of it: our loop against our bare steps, Hugging Face's `Seq2SeqTrainer` and eole.

    python benchmarks/train.py --rounds 5 --steps 10
    LIMELIGHT_EOLE=eole-venv/bin/python python benchmarks/train.py --only bare eole

Multi30k's lengths in batches of about 4,096 target pieces, `small`, interleaved: a turn of so many steps of each after the other. What
counts is ratios, round by round: machines differ, and on a shared one the same code moves by half. All compute in the numbers that
`limelight train` would choose here: bfloat16 where the processor multiplies it, else float32 (--precision: masters is bfloat16).
"""

import argparse
import importlib
import importlib.util
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

sys.path.insert(0, str(Path(__file__).parent))
import model
import train_peers as peers
import yardstick
from limelight import runtime
from limelight.model.config import ModelConfig
from limelight.training.config import Precision
from train_peers import Gate, Timed

OURS, BARE, HUGGING_FACE, EOLE = "limelight", "bare", "huggingface", "eole"
UNSMOOTHED = "huggingface-unsmoothed"  # labels as they are: not the same training, but its trainer smooths slowly
USUAL = (OURS, BARE, HUGGING_FACE, EOLE)
REST = 0.3  # seconds: OpenMP threads of the one before spin for 0.2 s before they sleep
WARM_UP = 10  # steps, beside the first
Loop = Callable[[Gate], None]


class Trainer(Protocol):
    def turn(self, steps: int) -> Timed: ...
    def stop(self) -> None: ...


class Contestant:
    """A training loop in a process of its own, so that one's memory settings do not help or hurt another. Held by a gate between turns."""

    def __init__(self, loop: Loop, threads: int) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        # No daemon, since those may not start the workers that load batches. Without us its gate breaks, and that ends it.
        self.process = context.Process(target=_serve, args=(loop, threads, theirs))
        self.process.start()
        theirs.close()
        self.pipe.recv()  # it has made its first step

    def turn(self, steps: int) -> Timed:
        self.pipe.send(steps)
        timed: Timed = self.pipe.recv()
        return timed

    def stop(self) -> None:
        with suppress(OSError):  # it may have died, and that error is the one to show
            self.pipe.send(None)
        self.process.join(timeout=10)
        self.process.kill()


def _serve(loop: Loop, threads: int, pipe: Connection) -> None:
    runtime.choose_threads(threads)
    loop(Gate(pipe))


def bare(gate: Gate, precision: Precision) -> None:
    """The steps that `benchmarks/model.py` times, on tensors that are there already: what a loop could reach at best."""
    step = model.LimelightStep(ModelConfig.preset("small", yardstick.VOCAB), precision)
    batches = yardstick.real_batches()
    while True:
        for batch in batches:
            step(*batch)
            gate(int((batch[2] != yardstick.PAD).sum()))


def contestants(threads: int, precision: Precision, only: Collection[str]) -> dict[str, Callable[[], Trainer]]:
    """{name: what starts it}. Who cannot take part is left out, and the reason is printed."""
    short = precision != "float32"  # the others compute in bfloat16 by autocast
    makers: dict[str, Callable[[], Trainer]] = {
        OURS: partial(Contestant, partial(ours, precision=precision), threads),
        BARE: partial(Contestant, partial(bare, precision=precision), threads),
        HUGGING_FACE: partial(Contestant, partial(peers.hugging_face, bf16=short), threads),
        UNSMOOTHED: partial(Contestant, partial(peers.hugging_face, bf16=short, smoothing=0.0), threads),
        EOLE: partial(peers.Eole, threads, bf16=short),
    }
    missing = {}
    if not importlib.util.find_spec("train_ours"):
        missing[OURS] = "there is no benchmarks/train_ours.py"
    if not importlib.util.find_spec("accelerate"):
        missing[HUGGING_FACE] = missing[UNSMOOTHED] = "transformers trains with accelerate only: pip install accelerate"
    if not os.environ.get(peers.EOLE):
        missing[EOLE] = f"{peers.EOLE} does not name the interpreter of its environment; eole.yaml says how to make one"
    names = [name for name in makers if name in only]
    for name in names:
        if name in missing:
            print(f"{name} is left out: {missing[name]}", flush=True)
    return {name: makers[name] for name in names if name not in missing}


def ours(gate: Gate, precision: Precision) -> None:
    importlib.import_module("train_ours").ours(gate, precision)


def measure(
    threads: int, rounds: int, steps: int, only: Collection[str] = USUAL, precision: Precision | None = None, warm_up: int = WARM_UP
) -> dict[str, list[float]]:
    """{name: [target pieces per second, one per round]}, a turn of each after the other. The first turn warms up and is not counted."""
    with ExitStack() as stack:
        started: dict[str, Trainer] = {}
        for name, make in contestants(threads, precision or model.usual_precision(), only).items():
            started[name] = make()
            stack.callback(started[name].stop)
        found: dict[str, list[float]] = {name: [] for name in started}
        for number in range(-1, rounds):
            for name, contestant in started.items():
                time.sleep(REST)
                seconds, pieces = contestant.turn(steps if number >= 0 else warm_up)
                if number >= 0:
                    found[name].append(pieces / seconds)
        return found


def ratio(found: dict[str, list[float]], name: str, other: str) -> list[float]:
    """Round by round, so that a slow minute of the machine counts for both."""
    return [a / b for a, b in zip(found[name], found[other], strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="batches in a turn")
    parser.add_argument("--threads", type=int, help="for each; one for each core if not given")
    parser.add_argument("--only", nargs="+", choices=(*USUAL, UNSMOOTHED), default=USUAL)
    parser.add_argument("--precision", choices=("masters", "float32"), default=model.usual_precision())
    args = parser.parse_args()
    threads = runtime.choose_threads(args.threads).value
    found = measure(threads, args.rounds, args.steps, args.only, args.precision)
    print(f"small, {args.precision}, {threads} threads: target pieces per second; times each of the others; median of the rounds (range)")
    for name, values in found.items():
        print(f"  {name:22s} {statistics.median(values):7.0f} ({min(values):.0f}-{max(values):.0f})", end="")
        for other in found:
            if other != name:
                times = ratio(found, name, other)
                print(f"  {other} {statistics.median(times):.2f} ({min(times):.2f}-{max(times):.2f})", end="")
        print()


if __name__ == "__main__":
    main()
