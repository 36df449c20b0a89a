"""How fast we translate, against Hugging Face `generate` and CTranslate2 with the same architecture and weights.

    python benchmarks/translate.py --size small --size base --rounds 5
    python benchmarks/translate.py --size small --latency
    python benchmarks/translate.py --count-lengths       # makes multi30k_test_lengths.json again, from the folder LIMELIGHT_DATA

Sentences are sorted by source length and cut into batches of 4,096 pieces; every engine gets the same. What counts is ratios, round
by round: machines differ, and on a shared one the same code moves by half. Everything is interleaved in one run.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

import torch

sys.path.insert(0, str(Path(__file__).parent))
import translate_peers as peers
from limelight import runtime
from limelight.decoding.config import SearchSettings
from limelight.decoding.search import search
from limelight.decoding.steps import Request, Specials
from limelight.engines.torch import OnHost
from translate_work import BUDGET, LENGTHS, SHAPES, SINGLES, Work, count_lengths, our_model, real_works

REST = 0.3  # seconds: OpenMP threads of the one before spin for 0.2 s before they sleep
Turn = list[int]  # numbers of the batches that are handed over at once
Timed = tuple[float, int]  # seconds, and the target pieces that came out
Translate = Callable[[Sequence[Work], int], list[list[list[int]]]]


class Limelight:
    """The search on the torch model."""

    def __init__(self, size: str, dtype: str = "float32") -> None:
        runtime.keep_freed_memory()
        self.model = our_model(size).to(getattr(torch, dtype))

    def translate(self, work: Work, beam: int) -> list[list[int]]:
        requests = [Request(source) for source in work.sources]
        settings, specials = SearchSettings(beam=beam, max_length=1000), Specials()
        found = search(OnHost(self.model), requests, settings, specials, lengths=work.lengths)
        return [outcome.hypotheses[0].ids for outcome in found]


class OneByOne(Protocol):
    def translate(self, work: Work, beam: int) -> list[list[int]]: ...


class Together:
    """One batch after the other, each on all cores."""

    def __init__(self, make: Callable[[], OneByOne]) -> None:
        self.engine = make()

    def __call__(self, works: Sequence[Work], beam: int) -> list[list[list[int]]]:
        return [self.engine.translate(work, beam) for work in works]


class Workers:
    """A worker with one thread for each core, as a `Translator` has them on a CPU: each takes the next batch."""

    def __init__(self, make: Callable[[], OneByOne], workers: int) -> None:
        torch.set_num_threads(1)
        self.engine, self.workers = make(), workers
        self.pool = ThreadPoolExecutor(workers)

    def __call__(self, works: Sequence[Work], beam: int) -> list[list[list[int]]]:
        return list(self.pool.map(lambda work: self.engine.translate(work, beam), works))


OURS, HUGGING_FACE, CTRANSLATE2 = "Limelight fp32", "Hugging Face fp32", "CTranslate2 fp32"
Makers = dict[str, Callable[[], Translate]]


def contestants(size: str, cores: int) -> Makers:
    """Each engine in more than one setting. The first of each is its usual one on a CPU; what is compared with is the fastest of a run."""
    ours, theirs, ct2 = partial(Limelight, size), partial(peers.HuggingFace, size), partial(peers.CTranslate2, size)
    return {
        OURS: partial(Workers, ours, cores),
        HUGGING_FACE: partial(Together, theirs),
        CTRANSLATE2: partial(ct2, workers=cores),
        f"{OURS}, one worker": partial(Together, ours),
        f"{HUGGING_FACE}, workers": partial(Workers, theirs, cores),
        f"{HUGGING_FACE}, eager": partial(Together, partial(theirs, attention="eager")),
        f"{CTRANSLATE2}, one worker": partial(ct2, workers=1, threads=cores, part=BUDGET),
        f"{CTRANSLATE2}, exact lengths": partial(ct2, workers=cores, way="exact"),
        "Limelight bf16": partial(Workers, partial(ours, "bfloat16"), cores),
        "Limelight bf16, one worker": partial(Together, partial(ours, "bfloat16")),
        "Hugging Face bf16": partial(Together, partial(theirs, "bfloat16")),
        "CTranslate2 int8": partial(ct2, "int8", workers=cores),
    }


class Contestant:
    """One engine in a process of its own, so that one's memory settings and threads do not help or hurt another. Idle while others run."""

    def __init__(self, make: Callable[[], Translate], threads: int) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=_serve, args=(make, threads, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def ready(self) -> None:
        assert self.pipe.recv() == "ready"

    def run(self, turns: Sequence[Turn], beam: int) -> list[Timed]:
        self.pipe.send((turns, beam))
        found: list[Timed] = self.pipe.recv()
        return found

    def stop(self) -> None:
        self.pipe.send(None)
        self.process.join(timeout=10)


def _serve(make: Callable[[], Translate], threads: int, pipe: Connection) -> None:
    runtime.choose_threads(threads)
    works, translate = real_works(), make()
    pipe.send("ready")
    while (asked := pipe.recv()) is not None:
        turns, beam = asked
        time.sleep(REST)
        found = []
        for turn in turns:
            start = time.perf_counter()
            translations = translate([works[number] for number in turn], beam)
            seconds = time.perf_counter() - start
            found.append((seconds, sum(len(ids) for each in translations for ids in each)))
        pipe.send(found)


def together(makers: Makers, threads: int) -> dict[str, Contestant]:
    """All start at once, and nothing is timed before all are ready."""
    started = {name: Contestant(make, threads) for name, make in makers.items()}
    for contestant in started.values():
        contestant.ready()
    return started


def speeds(
    started: dict[str, Contestant], beam: int, rounds: int, turns: Sequence[Turn], warm_up: Sequence[Turn]
) -> dict[str, list[float]]:
    """{name: [target pieces per second, one per round]}, a turn of each after the other. `warm_up` is run first and not counted."""
    for contestant in started.values():
        contestant.run(warm_up, beam)
    found: dict[str, list[float]] = {name: [] for name in started}
    for _ in range(rounds):
        timed: dict[str, list[Timed]] = {name: [] for name in started}
        for turn in turns:
            for name, contestant in started.items():
                timed[name] += contestant.run([turn], beam)
        for name, each in timed.items():
            found[name].append(sum(pieces for _, pieces in each) / sum(seconds for seconds, _ in each))
    return found


def latencies(started: dict[str, Contestant], beam: int, rounds: int) -> dict[str, list[float]]:
    """{name: [seconds of each single sentence, rounds times]}, five sentences of each after the other."""
    first = len(real_works()) - SINGLES
    found: dict[str, list[float]] = {name: [] for name in started}
    for number in range(-1, rounds):  # the first round warms up
        for five in range(first, first + SINGLES, 5):
            for name, contestant in started.items():
                timed = contestant.run([[single] for single in range(five, five + 5)], beam)
                found[name] += [seconds for seconds, _ in timed] if number >= 0 else []
    return found


def ratio(found: dict[str, list[float]], name: str, other: str) -> list[float]:
    """Round by round, so that a slow minute of the machine counts for both."""
    return [a / b for a, b in zip(found[name], found[other], strict=True)]


def fastest(found: dict[str, list[float]], engine: str) -> str:
    """The setting of an engine that was fastest in this run."""
    return max((name for name in found if name.startswith(engine)), key=lambda name: statistics.median(found[name]))


def agreement(size: str, works: Sequence[Work], beam: int) -> dict[str, float]:
    """The share of sentences that the other engines translate with the very same pieces as we do."""
    ours = [ids for each in Together(partial(Limelight, size))(works, beam) for ids in each]
    assert [len(ids) for ids in ours] == [length for work in works for length in work.lengths]
    others: Makers = {
        HUGGING_FACE: partial(Together, partial(peers.HuggingFace, size)),
        CTRANSLATE2: partial(peers.CTranslate2, size, way="exact"),
    }
    found = {}
    for name, make in others.items():
        theirs = [ids for each in make()(works, beam) for ids in each]
        found[name] = sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)
    return found


def prove_same(size: str, rows: int = 24) -> None:
    """Nothing is compared that is not the same model."""
    works = [Work(work.sources[:rows], work.lengths[:rows]) for work in real_works()[:5:2]]
    apart = {"logits": peers.logits_apart(size, works), "log-probabilities": peers.scores_apart(size, works)}
    shares = {f"beam {beam}, {name}": share for beam in (1, 4) for name, share in agreement(size, works, beam).items()}
    print(f"{size}: apart at most", ", ".join(f"{what} {value:.1e}" for what, value in apart.items()))
    print(f"{size}: same pieces", ", ".join(f"{what} {share:.0%}" for what, share in shares.items()))
    assert max(apart.values()) < 1e-4 and min(shares.values()) > 0.5, (apart, shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", choices=SHAPES, default=[])
    parser.add_argument("--beam", action="append", type=int, default=[], help="1 is greedy; both 1 and 4 if not given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, nargs="+", help="only these of the batches, counted from 0")
    parser.add_argument("--threads", type=int, help="cores for each engine; all of them if not given")
    parser.add_argument("--only", nargs="+", help="contestants by name; the references always")
    parser.add_argument("--latency", action="store_true", help="of single sentences, instead of batches")
    parser.add_argument("--count-lengths", action="store_true", help="write the file of lengths and do nothing else")
    args = parser.parse_args()
    if args.count_lengths:
        LENGTHS.write_bytes(count_lengths(Path(os.environ["LIMELIGHT_DATA"], "multi30k")))
        return
    threads = runtime.choose_threads(args.threads).value
    for size in args.size or ["small", "base"]:
        prove_same(size)
        makers = contestants(size, threads)
        if args.only:
            references = {name: makers[name] for name in (HUGGING_FACE, CTRANSLATE2)}
            makers = references | {name: make for name, make in makers.items() if name in args.only}
        started = together(makers, threads)
        for beam in args.beam or [1, 4]:
            if args.latency:
                print_latencies(size, beam, latencies(started, beam, args.rounds))
            else:
                # All at once, longest sentences first as a translator does it: so that several workers are done at about the same time.
                turns = [sorted(args.batches or range(len(real_works()) - SINGLES), reverse=True)]
                print_speeds(size, beam, speeds(started, beam, args.rounds, turns, warm_up=turns))
        for contestant in started.values():
            contestant.stop()


def print_speeds(size: str, beam: int, found: dict[str, list[float]]) -> None:
    others = [fastest(found, engine) for engine in (HUGGING_FACE, CTRANSLATE2)]
    print(f"{size}, beam {beam}: target pieces/s, times {others[0]}, of {others[1]}: median of the rounds (range)")
    for name, values in found.items():
        columns = [
            f"{statistics.median(ratios):5.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
            for ratios in (ratio(found, name, other) for other in others)
        ]
        print(f"  {name:32s} {statistics.median(values):7.0f} ({min(values):.0f}-{max(values):.0f})", *columns, sep="  ")


def print_latencies(size: str, beam: int, found: dict[str, list[float]]) -> None:
    print(f"{size}, beam {beam}: milliseconds of a single sentence, median and 95th percentile")
    for name, values in found.items():
        print(f"  {name:32s} {1000 * percentile(values, 50):6.1f} {1000 * percentile(values, 95):6.1f}")


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


if __name__ == "__main__":
    main()
