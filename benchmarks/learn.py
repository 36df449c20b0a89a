"""Simulated editors teach a translator: what the gate refuses, what is learnt of people's translations, and what a server loses by it.

    python benchmarks/learn.py gate en-de                         of 10 % planted rubbish, by kind, and of good strings: the share refused
    python benchmarks/learn.py editors en-de --counts 200,500,2000 --minutes 10
    python benchmarks/learn.py editors en-de --counts 200 --next 300 --minutes 1      small
    python benchmarks/learn.py swap --clients 64 --seconds 30     a new version and back again under load: lost and mixed answers

`editors`: the strings of one package of l10n, as its translators made them, are corrections; chrF is of the strings that come next in it,
and of Tatoeba, before and after. EN-DE is a run with its text beside it, of which a copy learns. `swap` needs no translator: it serves the
number words of the repository, and a second version that says two words in each other's place. One JSON object on standard output.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import httpx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "bundles")]

from learning_versions import copy_bundle, learn_by_hand, put_in_use
from limelight.evaluation.config import InferenceOptions
from limelight.learning.effect import measure_effect, translate_sets
from limelight.learning.gate import Pair, sift
from limelight.translator import Translator
from memory import lines_of
from serve_process import limelight

ROWS = ("qwertzuiop", "asdfghjklö", "yxcvbnm")
TEXTS = ["three four", "four three", "three", "four"]
ANSWERS = [["drei vier", "vier drei", "drei", "vier"], ["vier drei", "drei vier", "vier", "drei"]]


def hit_keys(length: int, random: Random) -> str:
    """hit_keys(12, Random(1)) -> "hjk fgh wert" """
    made = ""
    while len(made) < length:
        row = random.choice(ROWS)
        begin = random.randrange(len(row) - 2)
        made += row[begin : begin + random.randrange(2, 6)] + (" " if random.random() < 0.25 else "")
    return made.strip()


def make_rubbish(pairs: list[Pair], others: list[Pair], random: Random) -> dict[str, list[Pair]]:
    """As many of each kind. `others` are sources with their translations into another language."""
    share = len(pairs) // 3
    copies, keys, swapped = (pairs[begin * share :][:share] for begin in range(3))
    return {
        "copies": [(source, source) for source, _ in copies],
        "keyboard noise": [(source, hit_keys(len(target), random)) for source, target in keys],
        "other languages": others[:share],
        "swapped": [(target, source) for source, target in swapped],
    }


def read_strings() -> tuple[list[Pair], list[Pair]]:
    """Software strings in German, and in Icelandic."""
    german, icelandic = (
        list(zip(lines_of(f"l10n/dev.en-{code}.en.gz"), lines_of(f"l10n/dev.en-{code}.{code}.gz"), strict=True)) for code in ("de", "is")
    )
    Random(7).shuffle(german)
    return german, icelandic


def measure_gate(bundle: Path) -> dict[str, Any]:
    german, icelandic = read_strings()
    good, rest = german[:1_350], german[1_350:]
    rubbish = {kind: pairs[:37] for kind, pairs in make_rubbish(rest[:150], icelandic, Random(3)).items()}
    with Translator.load(bundle, threads=1) as translator:
        refused = {kind: len(sift(pairs, translator).refused) / len(set(pairs)) for kind, pairs in rubbish.items()}
        kept = sift(good, translator)
    planted = sum(refused.values()) / len(refused)
    return {"rubbish_refused": planted, "by_kind": refused, "good_refused": 1 - len(kept.taken) / len(set(good)), "why": kept.reasons}


def read_package(least: int) -> tuple[str, list[Pair]]:
    """The first package of the held-out ones that has so many distinct strings."""
    strings: dict[str, dict[str, str]] = {}
    for line in lines_of("l10n/tm.en-de.jsonl.gz"):
        row = json.loads(line)
        if "\n" not in row["src"] + row["tgt"]:
            strings.setdefault(row["pkg"], {}).setdefault(row["src"], row["tgt"])
    name = next((name for name, found in strings.items() if len(found) >= least), max(strings, key=lambda name: len(strings[name])))
    return name, list(strings[name].items())


def teach(bundle: Path, pairs: list[Pair], minutes: float, folder: Path) -> dict[str, Any]:
    """What `limelight learn` says, of a copy."""
    copy = Path(shutil.copytree(bundle, folder / bundle.name))
    (folder / "c.jsonl").write_text("".join(json.dumps({"source": a, "correction": b}) + "\n" for a, b in pairs), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "limelight",
        "learn",
        str(copy),
        "--corrections",
        str(folder / "c.jsonl"),
        "--minutes",
        f"{minutes:g}",
        "--json",
    ]
    return dict(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))


def measure_editors(bundle: Path, counts: list[int], coming: int, minutes: float) -> dict[str, Any]:
    name, strings = read_package(max(counts) + coming)
    tatoeba = list(islice(zip(lines_of("tatoeba/de-en/test.en.gz"), lines_of("tatoeba/de-en/test.de.gz"), strict=True), coming))
    found: dict[str, Any] = {"package": name, "strings": len(strings)}
    with tempfile.TemporaryDirectory() as place:
        german, icelandic = read_strings()
        rubbish = [pair for pairs in make_rubbish(german[:600], icelandic, Random(3)).values() for pair in pairs]
        (Path(place) / "rubbish").mkdir()
        found["rubbish alone"] = teach(bundle, rubbish, minutes, Path(place) / "rubbish")
        for count in counts:
            folder = Path(place) / str(count)
            folder.mkdir()
            mixed = [*strings[:count], *Random(5).sample(rubbish, count // 9)]
            told = teach(bundle, mixed, minutes, folder)
            after = folder / bundle.name
            sets = {"next": tuple(zip(*strings[count:][:coming], strict=True)), "tatoeba": tuple(zip(*tatoeba, strict=True))}
            run = after / "learnt" / "1" / "run"
            made = [translate_sets(each, sets, InferenceOptions(threads=1)) for each in (bundle, run)] if run.is_dir() else []
            effect = measure_effect(*made, sets) if made else {}
            gained = {each: round(difference.difference, 2) for each, difference in effect.items()}
            found[str(count)] = {"kept": told["kept"], "why": told["why"], "refused": told.get("refused"), "chrf_gained": gained}
    return found


def measure_swap(clients: int, seconds: float) -> dict[str, Any]:
    """Clients ask without a pause while versions change every few seconds."""
    with tempfile.TemporaryDirectory() as place:
        folder = copy_bundle(Path(place) / "num")
        learn_by_hand(folder)
        command = limelight(folder, "--no-ui", "queue.wait_seconds=60")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                assert process.stdout is not None
                address = json.loads(process.stdout.readline())["address"]
                answers, over = Counter[str](), threading.Event()
                with ThreadPoolExecutor(clients) as pool:
                    asking = [pool.submit(_ask, address, answers, over) for _ in range(clients)]
                    end, number = time.monotonic() + seconds, 1
                    while time.monotonic() < end:
                        number = 1 - number
                        put_in_use(folder, number)
                        time.sleep(seconds / 6)
                    over.set()
                for each in asking:
                    each.result()
            finally:
                process.terminate()
    return {"clients": clients, **answers}


def _ask(address: str, answers: Counter[str], over: threading.Event) -> None:
    with httpx.Client(base_url=address, timeout=120) as client:
        while not over.is_set():
            try:
                found = client.post("/api/v1/translate", json={"text": TEXTS}).raise_for_status().json()["results"]
            except httpx.HTTPError:
                answers["lost"] += 1
                continue
            texts = [each["text"] for each in found]
            answers[f"version {ANSWERS.index(texts)}" if texts in ANSWERS else "mixed"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("gate", "editors", "swap"))
    parser.add_argument("bundle", type=Path, nargs="?")
    parser.add_argument("--counts", default="200,500,2000")
    parser.add_argument("--next", type=int, default=2_000, dest="coming")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    asked = parser.parse_args()
    if asked.part != "swap" and asked.bundle is None:
        parser.error("name the translator")
    if asked.part == "gate":
        found = measure_gate(asked.bundle)
    elif asked.part == "editors":
        found = measure_editors(asked.bundle, [int(count) for count in asked.counts.split(",")], asked.coming, asked.minutes)
    else:
        found = measure_swap(asked.clients, asked.seconds)
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
