"""What the docs state about corpora: nothing shifted or lost, filters that find, batches that resume, speed, memory.

make claim-corpus            under a minute on 2 cores: a sample of the evidence, and the local engine at half a million pairs, once
make claim-corpus FULL=1     all of it, about 45 minutes and 30 GB of disk

Reads Multi30k, Europarl, Tatoeba and l10n from the folder that LIMELIGHT_DATA names.
"""

import itertools
import os
import random
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", "tests/corpus")]

import corpus_battery
import line_parallelism
import prepared_corpora

import corpus as scale
from claim import Claims, run
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.batches import BatchSettings, SamplingSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.prepare import Findings, check, prepare
from limelight.errors import DataError
from limelight.runtime import available_cores

MILLION = 1_000_000
CORPORA = {
    "multi30k": ["multi30k/train.en.gz", "multi30k/train.de.gz"],
    "tatoeba": ["tatoeba/de-en/train.en.gz", "tatoeba/de-en/train.de.gz"],
    "europarl": ["europarl/train.en.gz", "europarl/train.de.gz"],
    "l10n": ["l10n/tm.en-de.jsonl.gz"],
}
UNTRANSLATED = ["europarl/untranslated-2012.en.gz", "europarl/untranslated-2012.de.gz"]
GERMAN_AMONG_UNTRANSLATED = 207  # lines of its German side that are German indeed, by py3langid itself


def settings_for(data: Path, name: str, paths: list[str], **values: object) -> PrepareSettings:
    corpus = {"name": name, "paths": [str(data / path) for path in paths]}
    return PrepareSettings(languages=("en", "de"), corpora=[corpus], **values)


def checked(data: Path, name: str, paths: list[str], workers: int, **values: object) -> Findings:
    with tempfile.TemporaryDirectory() as work, closing(LocalEngine(workers)) as engine:
        settings = settings_for(data, name, paths, **values)
        return check(settings, Path(work), engine, lambda progress: None)


def cleaning(claims: Claims, data: Path, full: bool) -> None:
    for name, paths in CORPORA.items():
        if full or name == "multi30k":
            entry = checked(data, name, paths, available_cores() if full else 0).corpora[0]
            lost = entry.read - sum(entry.kept.values()) - sum(entry.dropped.values())
            claims.at_most(f"{name}: read {entry.read:,}, neither kept nor dropped", abs(lost), 0)
            if name == "multi30k":
                claims.at_most("multi30k: dropped, %", 100 * sum(entry.dropped.values()) / entry.read, 1)
            else:
                claims.note(f"{name}: dropped, %", 100 * sum(entry.dropped.values()) / entry.read)
    entry = checked(data, "untranslated", UNTRANSLATED, 0, dedup={"exact": False}).corpora[0]
    wrong = entry.read - GERMAN_AMONG_UNTRANSLATED
    claims.at_least("untranslated session: found of what is not German, %", 100 * sum(entry.dropped.values()) / wrong, 95)


def faithful(claims: Claims, full: bool) -> None:
    corpora = 10_000 if full else 20
    claims.at_most(f"line parallelism: shifts in {corpora:,} corpora", line_parallelism.shifts(corpora, seed=1), 0)
    if full:
        outcomes = corpus_battery.battery()
        claims.at_least("corpus battery: documented outcomes of 20", sum(ok for _, ok in outcomes), 20)


def order(claims: Claims, full: bool) -> None:
    """The same batches at any world size, a changed byte refused, and resuming at the very sample."""
    with tempfile.TemporaryDirectory() as place:
        folder = prepared_corpora.make(Path(place) / "prepared")
        settings = BatchSettings(budget=512, window=1000)
        worlds, workers, batches = ((1, 2, 4), (0, 1, 2), 500) if full else ((1, 2), (0, 1), 20)
        digests = [
            prepared_corpora.digest_of(prepared_corpora.global_batches(folder, settings, world, worker, batches))
            for world, worker in itertools.product(worlds, workers)
        ]
        claims.at_most(f"orders of {batches} batches over {len(digests)} world sizes and workers: distinct", len(set(digests)), 1)
        sampled = BatchSettings(budget=512, window=1000, sampling=SamplingSettings())
        stops = random.Random(4).choices(range(1, 300), k=200 if full else 2)
        differing = prepared_corpora.stops_that_differ(folder, sampled, stops, last=310, per_process=20)
        claims.at_most(f"resumed runs that differ, of {len(stops)}: sampling, buckets, 3 corpora", len(differing), 0)
        claims.at_least("a changed byte in a shard is refused by name", refused(folder), 1)


def refused(folder: Path) -> bool:
    shard = sorted((folder / "shards").glob("*.ids.arrow"))[0]
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    try:
        PreparedCorpus.open(folder)
    except DataError as error:
        return shard.name in str(error)
    return False


def feeding(claims: Claims, data: Path, full: bool) -> None:
    """Padding, and the loader against what training `small` consumes, turn by turn."""
    import torch  # only here: the rest runs without it

    from limelight import runtime
    from limelight.model.config import ModelConfig
    from model import LimelightStep

    runtime.choose_threads()
    names = ("multi30k", "europarl") if full else ("multi30k",)
    for name in names:
        with tempfile.TemporaryDirectory() as place, closing(LocalEngine(available_cores())) as engine:
            settings = settings_for(data, name, CORPORA[name], pieces={"size": 8000})
            prepare(settings, Path(place), engine, lambda progress: None)
            prepared = PreparedCorpus.open(Path(place))
            with Loader(prepared, BatchSettings(budget=4096)) as loader:
                filled = cells = 0
                for batch in loader.epoch(0):
                    filled += int((batch.source != 0).sum() + (batch.target != 0).sum())
                    cells += batch.cells
            claims.at_most(f"{name}: padding at a budget of 4,096 pieces, %", 100 * (1 - filled / cells), 5)
            if name == "multi30k":
                step = LimelightStep(ModelConfig.preset("small", prepared.manifest.vocab_sizes[0]))
                ratios = [loading(prepared, turn) / training(step, prepared, turn, torch) for turn in range(4 if full else 1)]
                claims.note("loader against training `small`, one process, least of the turns", min(ratios))
                claims.at_least("loader against training `small`, times, median", sorted(ratios)[len(ratios) // 2], 20)


def loading(prepared: PreparedCorpus, turn: int) -> float:
    """Pieces of source and target per second, over one epoch."""
    with Loader(prepared, BatchSettings(budget=8192, seed=turn)) as loader:
        began, pieces = time.perf_counter(), 0
        for batch in loader.epoch(0):
            pieces += int((batch.source != 0).sum() + (batch.target != 0).sum())
        return pieces / (time.perf_counter() - began)


def training(step: object, prepared: PreparedCorpus, turn: int, torch: object) -> float:
    with Loader(prepared, BatchSettings(budget=8192, seed=turn)) as loader:
        pieces, began = 0, 0.0
        for number, batch in enumerate(itertools.islice(loader, 8)):
            if number == 3:  # the first steps compile kernels
                began, pieces = time.perf_counter(), 0
            step(*(torch.from_numpy(array) for array in (batch.source, batch.target_in, batch.target_out)))
            pieces += int((batch.source != 0).sum() + (batch.target != 0).sum())
        return pieces / (time.perf_counter() - began)


def speed(claims: Claims, full: bool) -> None:
    """Pairs per second from raw files to verified shards, start-up included; every filter but language identification."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("LIMELIGHT_SCRATCH")) as place:
        folder, corpus = Path(place), Path(place, "1M")
        pairs = MILLION if full else MILLION // 2
        scale.make(pairs, corpus)
        pieces = folder / "pieces.model"
        pieces.write_bytes(scale.learnt(corpus, 200_000 if full else 60_000))
        runs = [scale.run(corpus, folder / f"local-{number}", pieces=pieces) for number in range(3 if full else 1)]
        local = sorted(runs, key=lambda each: each["pairs_per_second"])[len(runs) // 2]
        claims.at_least(f"local engine, {pairs / MILLION:g} M pairs: pairs/s", local["pairs_per_second"], 60_000 if full else 40_000)
        if not full:
            return
        ray = scale.run(corpus, folder / "ray", engine="ray", pieces=pieces)
        claims.at_least("Ray Data, 1 M pairs: pairs/s", ray["pairs_per_second"], 25_000)
        claims.at_least("both engines wrote the same bytes", ray["shards"] == local["shards"], 1)
        identified = scale.run(corpus, folder / "langid", pieces=pieces, langid=True)
        claims.note("local engine with language identification, 1 M pairs: pairs/s", identified["pairs_per_second"])
        large = Path(place, "20M")
        scale.make(20 * MILLION, large)
        grown = scale.run(large, folder / "large", pieces=pieces)
        claims.at_least("local engine, 20 M pairs: pairs/s", grown["pairs_per_second"], 60_000)
        small, grown = (scale.run(each, folder / f"memory-{each.name}", pieces=pieces, memory=True) for each in (corpus, large))
        claims.at_most("peak memory, 20 M against 1 M pairs", grown["peak_megabytes"] / small["peak_megabytes"], 1.2)


def measure(claims: Claims, full: bool) -> None:
    data = Path(os.environ.get("LIMELIGHT_DATA", ""))
    if not (data / "multi30k").is_dir():
        sys.exit("LIMELIGHT_DATA must name the folder with multi30k, europarl, tatoeba and l10n")
    speed(claims, full)  # first: torch, which `feeding` loads, would keep threads of its own
    cleaning(claims, data, full)
    faithful(claims, full)
    order(claims, full)
    feeding(claims, data, full)


if __name__ == "__main__":
    run(measure, __doc__)
