"""A memory of a million segments: how long a search takes, how many it finds of what comparing all would, and what its matches are worth.

    python benchmarks/memory.py --database sqlite:////tmp/m.db                   a million: l10n, then Europarl; the file stays
    python benchmarks/memory.py --database postgresql://user@/name?host=/socket
    python benchmarks/memory.py --database sqlite:////tmp/m.db --segments 100000 --queries 200

What is searched for are strings of l10n that are not in the memory: its test set. `recall` is of the best match by comparing all.
`cpu_ms` is the time of our own process, for a machine that others use, too.
`bands`: chrF of the target of the best match against the human translation, by similarity. One JSON object on standard output.
"""

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from rapidfuzz import process
from rapidfuzz.distance import Indel
from sacrebleu.metrics import CHRF

from limelight.store.memory import LEAST
from limelight.store.schema import segments
from limelight.store.store import Store, open_store

PAIR = ("en", "de")
BANDS = ((1.0, 1.01), (0.85, 1.0), (0.7, 0.85))
DATA = Path(os.environ.get("LIMELIGHT_DATA", "/data"))


def lines_of(name: str) -> Iterator[str]:
    with gzip.open(DATA / name) as lines:
        for line in lines:
            yield line.decode().rstrip("\n")


def strings() -> Iterator[tuple[str, str]]:
    rows = [line.split("\t") for line in (DATA / "l10n/packages.tsv").read_bytes().decode().split("\n") if line]
    package, split = rows[0].index("package"), rows[0].index("split")
    held_out = {row[package] for row in rows if row[split] != "train"}
    for line in lines_of("l10n/tm.en-de.jsonl.gz"):
        row = json.loads(line)
        if row["pkg"] not in held_out:
            yield row["src"], row["tgt"]


def sentences() -> Iterator[tuple[str, str]]:
    return zip(lines_of("europarl/train.en.gz"), lines_of("europarl/train.de.gz"), strict=True)


def fill(store: Store, most: int) -> dict[str, Any]:
    have = sum(count for _, _, count in store.memory.list_origins())
    began = time.perf_counter()
    made = chain(strings(), sentences(), ((f"{en} {at}", de) for at, (en, de) in enumerate(sentences())))  # enough for a million
    if have < most:
        for done in store.memory.add(PAIR, made, "benchmark"):
            have += done.added
            if have >= most:
                break
    return {"segments": have, "fill_seconds": round(time.perf_counter() - began, 1)}


def time_searches(store: Store, queries: list[str]) -> tuple[dict[str, Any], list[Any]]:
    for text in queries[:50]:
        store.memory.find(PAIR, text)
    taken: dict[str, list[float]] = {"ms": [], "cpu_ms": []}
    best = []
    for text in queries:
        began = time.perf_counter(), time.process_time()
        found = store.memory.find(PAIR, text)
        for name, since, now in zip(taken, began, (time.perf_counter(), time.process_time()), strict=True):
            taken[name].append((now - since) * 1000)
        best.append(found[0] if found else None)
    told = {f"p{share}_{name}": round(sorted(each)[len(each) * share // 100], 2) for name, each in taken.items() for share in (50, 95, 99)}
    return told, best


def recall(queries: list[str], best: list[Any], sources: Sequence[str]) -> dict[str, Any]:
    """Of those queries that have a match at all, the share whose match is as good as the best there is."""
    told: dict[str, list[bool]] = {}
    for text, found in zip(queries, best, strict=True):
        there = process.extractOne(text.strip(), sources, scorer=Indel.normalized_similarity, score_cutoff=LEAST)
        if there is not None:
            band = next(f"{low:.2f}" for low, high in BANDS if low <= there[1] < high)
            told.setdefault(band, []).append(found is not None and found.score >= there[1] - 1e-9)
    return {band: {"queries": len(each), "recall": round(sum(each) / len(each), 3)} for band, each in sorted(told.items())}


def judge(best: list[Any], references: list[str]) -> dict[str, Any]:
    told = {}
    for low, high in BANDS:
        chosen = [(found.target, wanted) for found, wanted in zip(best, references, strict=True) if found and low <= found.score < high]
        if chosen:
            score = CHRF().corpus_score([target for target, _ in chosen], [[wanted for _, wanted in chosen]]).score
            told[f"{low:.2f}"] = {"queries": len(chosen), "chrF": round(score, 1)}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", required=True)
    parser.add_argument("--segments", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--recall", type=int, default=0, help="Queries that are compared with all segments, a second each.")
    asked = parser.parse_args()
    store = open_store(asked.database)
    told = fill(store, asked.segments)
    queries, references = (list(islice(lines_of(f"l10n/test.en-de.{side}.gz"), asked.queries)) for side in PAIR)
    times, best = time_searches(store, queries)
    told |= {"database": store.database.name.partition(":")[0], "queries": len(queries), **times, "bands": judge(best, references)}
    if asked.recall:
        with store.database.read() as connection:
            sources = connection.execute(sql.select(segments.c.source).distinct()).scalars().all()
        told["recall"] = recall(queries[: asked.recall], best[: asked.recall], sources)
    json.dump(told, sys.stdout)
    print()


if __name__ == "__main__":
    main()
