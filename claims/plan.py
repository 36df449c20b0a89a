"""What the docs state about plans: parameters and arithmetic of the real model, memory and time of real steps, what many processes would
send and hold, pairs and pieces of a text that only a sample was prepared of.

make claim-plan             under a minute on a quiet core: a part of each
make claim-plan FULL=1      all of it, some 20 minutes: 12 configurations, 3b on 64 and 10b on 1,024 simulated devices, two texts

The texts are those of LIMELIGHT_DATA; without it they are left out.
"""

import gzip
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", "tests/planning")]
os.environ["OMP_NUM_THREADS"] = "1"

import test_compute
import torch
from random_configs import random_config

import plan as measured
from claim import Claims, run
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.prepare import prepare
from limelight.model.config import PRESETS, ModelConfig
from limelight.model.transformer import Transformer
from limelight.planning.cost.compute import flops
from limelight.planning.cost.parallel import Parallel
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.size import parameters
from limelight.training.forecast.simulated_ranks import simulate_step
from limelight.training.forecast.text_sample import sample_text
from limelight.training.forecast.text_size import measure_prepared

SHORT = (0, 3)  # of the 12 configurations: both in float32, so that one calibration is enough
TEXTS = {"multi30k": ("multi30k", "train"), "tatoeba": ("tatoeba/de-en", "train")}


def main(claims: Claims, full: bool) -> None:
    shapes(claims, full)
    screens(claims)
    played(claims, full)
    steps(claims, full)
    texts(claims, full)


def shapes(claims: Claims, full: bool) -> None:
    chance = random.Random(1)
    configs = {name: ModelConfig.preset(name, 32_000) for name in PRESETS}
    configs |= {f"random {n}": random_config(chance) for n in range(500 if full else 50)}
    wrong = [name for name, config in configs.items() if built(config) != sum(parameters(config).values())]
    claims.at_most(
        f"parameters, {len(PRESETS)} presets and {len(configs) - len(PRESETS)} random shapes: that differ",
        len(wrong),
        0,
    )
    shape, worst = BatchShape.padded(3, 40, 56), 0.0
    for config in (configs[name] for name in (PRESETS if full else ("tiny", "small", "base", "big"))):
        worst = max(worst, abs(flops(config, shape).forward / test_compute.counted_on_meta(config, shape) - 1))
    for n in range(50 if full else 5):
        rows, S, T = chance.choice([(5, 17, 19), (8, 33, 20), (3, 90, 70)])
        config, again = configs[f"random {n}"], chance.random() < 0.3
        shape = BatchShape.padded(rows, S, T)
        worst = max(worst, abs(flops(config, shape).step(again) / test_compute.counted(config, shape, False, again) - 1))
    claims.at_most("operations, off from what torch counts, %", 100 * worst, 1)


def built(config: ModelConfig) -> int:
    with torch.device("meta"):
        return sum(weight.numel() for weight in Transformer(config).parameters())


def screens(claims: Claims) -> None:
    """A plan for devices that nobody here has."""
    began = time.perf_counter()
    words = [sys.executable, "-m", "limelight", "plan", "--preset", "3b", "--budget", "64xH100 24h"]
    done = subprocess.run(words, capture_output=True, timeout=120)
    lines = done.stdout.decode().strip().split("\n")
    claims.at_least("plan of 3b on 64 x H100: lines with a reason", sum(line.endswith(")") for line in lines), 10)
    claims.at_most("... lines", len(lines), 13)
    claims.at_most("... seconds", time.perf_counter() - began, 10)


def played(claims: Claims, full: bool) -> None:
    worlds = [("tiny", Parallel("fsdp", shards=64))]
    if full:
        worlds += [("3b", Parallel("hybrid", replicas=8, shards=8)), ("10b", Parallel("fsdp", shards=1024))]
        worlds += [("10b", Parallel("tensor", shards=128, tensor=8))]
    for name, parallel in worlds:
        found = simulate_step(ModelConfig.preset(name, 32_000), parallel, "masters", BatchShape.padded(8, 64, 64))
        what = f"{name} on {parallel.size:,} ({parallel.kind}): {len(found.rows)} counts of the real model"
        claims.at_most(f"{what}, that differ from the plan", len(found.differing), 0)


def steps(claims: Claims, full: bool) -> None:
    """Each configuration in a process of its own, on one core."""
    cases = list(measured.CASES) if full else [measured.CASES[n] for n in SHORT]
    core = max(os.sched_getaffinity(0))
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    memory, seconds, spread = [], [], []
    for case, found, calibration in measured.timed(cases, core, measured.ROUNDS if full else 2):
        memory.append(abs(case.planned.total / found.held - 1))
        fastest = min(found.seconds)  # as the calibration counts its fastest steps
        said = calibration.step_seconds(case.config, case.batch, case.recompute)
        seconds.append(abs(said / fastest - 1))
        spread.append(calibration.spread)
    os.sched_setaffinity(0, everywhere)
    claims.at_most(f"peak memory of {len(cases)} configurations, worst off, %", 100 * max(memory), 10)
    claims.at_most("... seconds of a step after a calibration, worst off, %", 100 * max(seconds), 20)
    claims.note("... usual steps of the calibration slower than its fastest, %", 100 * max(spread))


def texts(claims: Claims, full: bool) -> None:
    """Pieces of an epoch by a sample, against the whole text prepared."""
    if "LIMELIGHT_DATA" not in os.environ:
        return
    for name, (folder, stem) in (TEXTS if full else {}).items():
        with tempfile.TemporaryDirectory(prefix="claim-plan-") as work:
            paths = [unpacked(Path(os.environ["LIMELIGHT_DATA"]) / folder / f"{stem}.{tag}.gz", Path(work)) for tag in ("en", "de")]
            corpus = CorpusSettings(name=name, paths=[str(path) for path in paths])
            settings = PrepareSettings(languages=("en", "de"), corpora=[corpus])
            engine = LocalEngine(0)
            (Path(work) / "sample").mkdir()
            began = time.perf_counter()
            found = sample_text(settings, engine, Path(work) / "sample", lambda progress: None)
            claims.note(
                f"{name}: seconds for a sample of {found.sampled:,} of {found.read:,} pairs",
                time.perf_counter() - began,
            )
            prepare(settings, Path(work) / "whole", engine, lambda progress: None)
            whole = measure_prepared(Path(work) / "whole")
        claims.at_most("... pairs off, %", 100 * abs(found.pairs / whole.pairs - 1), 5)
        claims.at_most("... source pieces off, %", 100 * abs(found.source / whole.source - 1), 5)
        claims.at_most("... target pieces off, %", 100 * abs(found.target / whole.target - 1), 5)


def unpacked(path: Path, folder: Path) -> Path:
    there = folder / path.stem
    there.write_bytes(gzip.decompress(path.read_bytes()))
    return there


if __name__ == "__main__":
    run(main, __doc__)
