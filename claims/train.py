"""What the docs state about training: one command from text to translator, steps that resume bit by bit, and the speed of the whole loop.

make claim-train            under a minute on 2 cores: a tiny translator from raw text, its resume, and the speed of `small`
make claim-train FULL=1     about two hours: Multi30k in 30 minutes with two seeds, fine-tuning, and the speed of other toolkits too

A toolkit that is not installed counts as SHORT in the full claim. Recurrent networks are compared by a command of its own,
`python benchmarks/recurrent.py`; that bad steps do no harm is for the tests to show.

Reads Multi30k, Tatoeba and l10n from the folder that LIMELIGHT_DATA names.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", "tests", "tests/training")]

from small_runs import STEPS, Signal, Small, make_corpus, remains, story

import train as speed
from claim import Claims, run
from limelight.training.events import StepReport, read_events

LIMELIGHT = [sys.executable, "-m", "limelight"]


def main(claims: Claims, full: bool) -> None:
    if "LIMELIGHT_DATA" not in os.environ:
        raise SystemExit("LIMELIGHT_DATA names no folder with corpora; set it to measure")
    data = Path(os.environ["LIMELIGHT_DATA"])
    with tempfile.TemporaryDirectory(prefix="limelight-") as work:
        tiny_translator(claims, Path(work))
        resume(claims, Path(work), full)
        throughput(claims, full)
        if full:
            multi30k(claims, data, Path(work))
            fine_tuning(claims, data, Path(work))


def command(*words: str, cwd: Path) -> dict[str, Any]:
    done = subprocess.run([*LIMELIGHT, *words, "--json"], cwd=cwd, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"limelight {' '.join(words)} ended with {done.returncode}:\n{done.stderr.decode()}")
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def tiny_translator(claims: Claims, work: Path) -> None:
    """Number words, from two text files to a translator by one command."""
    corpus = make_corpus(work / "numbers")
    files = [str(corpus / f"numbers.{language}") for language in ("en", "de")]
    began = time.monotonic()
    result = command("train", *files, "-o", "run", "--preset", "toy", "--steps", "60", "data.filters.wrong_language=off", cwd=work)
    claims.note("number words: seconds from text to translator", time.monotonic() - began)
    claims.at_least("number words: chrF after 60 steps", _score(result, "chrF2"), 25)
    steps = [event for event in read_events(work / "run" / "metrics.jsonl") if isinstance(event, StepReport)]
    claims.at_most("number words: share of steps left out", sum(step.skipped is not None for step in steps) / len(steps), 0.01)


def resume(claims: Claims, work: Path, full: bool) -> None:
    """Stopped after k steps by SIGTERM, continued by a new process: against the run that was never stopped."""
    corpus = make_corpus(work / "corpus")
    for seed in (1, 2, 3) if full else (1,):
        straight = Small(corpus, work / f"straight-{seed}", {"seed": seed})
        straight.live()
        for k in (1, 37, STEPS - 1) if full else (STEPS // 2,):
            broken = Small(corpus, work / f"stopped-{seed}-{k}", {"seed": seed})
            code, again = broken.live(Signal(after_step=k)), broken.live()
            claims.at_least(f"seed {seed}, stopped after {k} of {STEPS}: exit codes 75 and 0", (code, again) == (75, 0), 1)
            whole, parts = (story(run.run) + sorted(remains(run.run).items()) for run in (straight, broken))
            differ = abs(len(whole) - len(parts)) + sum(a != b for a, b in zip(whole, parts, strict=False))
            claims.at_most(f"seed {seed}, stopped after {k} of {STEPS}: steps and tensors that differ in a bit", differ, 0)


def throughput(claims: Claims, full: bool) -> None:
    """Interleaved, all of the loop; the bars leave room for a noisy machine below what the docs state."""
    names = speed.USUAL if full else (speed.OURS, speed.BARE)
    found = speed.measure(
        speed.runtime.choose_threads().value, 5 if full else 1, 10 if full else 3, names, warm_up=speed.WARM_UP if full else 1
    )
    # float32 is slow in the same products for everybody
    peers = 1.3 if speed.model.usual_precision() == "float32" else 1.8
    bars = {speed.BARE: 0.9 if full else 0.8, speed.HUGGING_FACE: peers, speed.EOLE: peers}
    for other in names:
        if other != speed.OURS:
            measured = other in found
            times = statistics.median(speed.ratio(found, speed.OURS, other)) if measured else math.nan
            said = "" if measured else ", not measured"
            claims.at_least(f"training `small`, whole loop: times {other}{said}", times, bars[other])


def multi30k(claims: Claims, data: Path, work: Path) -> None:
    """Two seeds, 30 minutes each, one command, nothing touched."""
    names = ("train", "val", "test_2016_flickr")
    pairs = {name: [str(data / "multi30k" / f"{name}.{side}.gz") for side in ("en", "de")] for name in names}
    given = [*pairs["train"], *held_out(pairs["val"], pairs["test_2016_flickr"])]
    scores = []
    for seed in (1, 2):
        result = command("train", *given, "-o", f"multi30k-{seed}", "--budget", "30m", "--seed", str(seed), cwd=work)
        scores.append(_score(result, "BLEU"))
        claims.note(f"Multi30k en-de, 30 minutes, seed {seed}: BLEU", scores[-1])
    claims.at_least("Multi30k en-de, 30 minutes, mean of 2 seeds: BLEU", statistics.mean(scores), 37)


def fine_tuning(claims: Claims, data: Path, work: Path) -> None:
    """A translator of everyday sentences learns software strings in ten minutes, and does not forget."""
    tatoeba, l10n = data / "tatoeba" / "de-en", data / "l10n"
    everyday = {name: [str(tatoeba / f"{name}.{side}.gz") for side in ("en", "de")] for name in ("train", "dev", "test")}
    strings = {name: [str(l10n / f"{name}.en-de.{side}.gz") for side in ("en", "de")] for name in ("dev", "test")}
    command(
        "train",
        *everyday["train"],
        *held_out(everyday["dev"], everyday["test"]),
        "-o",
        "everyday",
        "--budget",
        "20m",
        cwd=work,
    )
    new = [
        str(l10n / "tm.en-de.jsonl.gz"),
        "--source",
        "en",
        "--target",
        "de",
        *held_out(strings["dev"], strings["test"]),
    ]
    command("train", *new, "-o", "both", "--from", "everyday", "--budget", "10m", cwd=work)
    before, after = (
        {name: _bleu(run, pair, work) for name, pair in (("l10n", strings["test"]), ("everyday", everyday["test"]))}
        for run in ("everyday", "both")
    )
    claims.at_least("fine-tuning: BLEU gained on software strings", after["l10n"] - before["l10n"], 8)
    claims.at_most("fine-tuning: BLEU lost on everyday sentences", before["everyday"] - after["everyday"], 1)


def held_out(valid: list[str], test: list[str]) -> list[str]:
    return [word for flag, paths in (("--valid", valid), ("--test", test)) for path in paths for word in (flag, path)]


def _bleu(run: str, pair: list[str], work: Path) -> float:
    return _score(command("evaluate", run, *pair, "--metrics", "bleu", "--resamples", "0", cwd=work), "BLEU")


def _score(result: dict[str, Any], metric: str) -> float:
    return float(next(each["value"] for each in result["scores"] if each["name"] == metric))


if __name__ == "__main__":
    run(main, __doc__)
