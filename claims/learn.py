"""What the docs state about what a server remembers and learns from its users.

make claim-learn               under a minute: a memory of some thousand made-up strings, in SQLite; the gate and a swap with number words
make claim-learn FULL=1        64 clients; a million segments of LIMELIGHT_DATA: about ten minutes, and a gigabyte of temporary files
"""

import statistics
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", "tests", "tests/bundles")]

from make_numbers import draw_pairs
from rapidfuzz import process
from rapidfuzz.distance import Indel

from claim import Claims, run
from learn import make_rubbish, measure_swap
from learning_versions import BUNDLE
from limelight.learning.gate import sift
from limelight.store.memory import LEAST
from limelight.store.store import Store, open_store
from limelight.translator import Translator
from memory import fill, lines_of, time_searches

PAIR = ("en", "de")
VERBS = ("open", "close", "rename", "delete", "copy", "move", "print", "mount", "lock", "import")
THINGS = ("file", "folder", "window", "account", "connection", "printer", "document", "picture", "message", "calendar")
WHY = ("permission denied", "no such device", "the disk is full", "it is used by another program", "the network is down", "it was moved")
FORMS = ("Could not {} the {}: {}", "Cannot {} this {} because {}", "{} of the {} failed ({})", "Do you want to {} the {} although {}?")


def remember(claims: Claims, store: Store) -> None:
    """Every string with a word more is looked for: comparing all says what should be found."""
    made = [form.format(*words) for form in FORMS for words in product(VERBS, THINGS, WHY)]
    list(store.memory.add(PAIR, [(text, text.upper()) for text in made], "made"))
    queries = [text.replace("the", "the old", 1) for text in made[:: len(made) // 150]]
    taken, right = [], 0
    for text in queries:
        began = time.process_time()
        found = store.memory.find(PAIR, text, most=1)
        taken.append((time.process_time() - began) * 1000)
        best = process.extractOne(text, made, scorer=Indel.normalized_similarity, score_cutoff=LEAST)
        right += bool(found) and best is not None and found[0].score >= best[1] - 1e-9
    claims.at_least("memory: share of best matches that are found", right / len(queries), 0.95)
    claims.at_most("... milliseconds of a processor for a search, 95th percentile", statistics.quantiles(taken, n=20)[-1], 20)
    exact = store.memory.find_exact(PAIR, made)
    claims.at_least("... the same text is found", sum(exact[text].target == text.upper() for text in made) / len(made), 1)


def refuse(claims: Claims) -> None:
    """Number words, as good corrections and as rubbish of each kind that needs no data."""
    drawn = draw_pairs(400, Random(3), held_out=True)
    good = [pair for pair in drawn if 2 <= len(pair[0].split()) <= 6 and "\u27e6" not in pair[0]][:90]
    with Translator.load(BUNDLE, threads=1) as translator:
        rubbish = make_rubbish(good, [(source, "einn tveir þrír fjórir") for source, _ in good], Random(5))
        refused = [len(sift(pairs, translator).refused) / len(set(pairs)) for pairs in rubbish.values()]
        taken = len(sift(good, translator).taken)
    claims.at_least("gate: share of rubbish that is refused", statistics.mean(refused), 0.95)
    claims.at_most("... share of good corrections that is", 1 - taken / len(good), 0.1)


def swap(claims: Claims, full: bool) -> None:
    found = measure_swap(64 if full else 16, 30 if full else 12)
    claims.at_least("swap: versions that answered under load", ("version 0" in found) + ("version 1" in found), 2)
    claims.at_most("... answers lost", found.get("lost", 0), 0)
    claims.at_most("... answers mixed", found.get("mixed", 0), 0)


def measure(claims: Claims, full: bool) -> None:
    refuse(claims)
    swap(claims, full)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/small.db")
        remember(claims, store)
        store.close()
        if full:
            large = open_store(f"sqlite:///{folder}/large.db")
            claims.at_least("segments", fill(large, 1_000_000)["segments"], 1_000_000)
            told, _ = time_searches(large, list(lines_of("l10n/test.en-de.en.gz"))[:1_000])
            claims.at_most("... milliseconds of a search, 95th percentile", told["p95_ms"], 20)
            large.close()


if __name__ == "__main__":
    run(measure, __doc__)
