"""What the light runtime keeps of the whole one: translations, promises, speed.

`make claim-light FULL=1` calls `prove`, with a translator of Multi30k's captions: the one that LIMELIGHT_CAPTIONS names, or one trained for
it in half an hour. It reads Multi30k and the software strings from the folder that LIMELIGHT_DATA names.

Two processes work in turn on the same texts (`light_worker.py`), and what is compared is the time of the processor that each took: other
programs of the machine change that less than the clock. Ratios are taken turn by turn, and their range is told.
"""

import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

import sacrebleu

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "tests/translator")]

import careful_sentences as careful
from random_weights import random_bundle

from claim import Claims
from serve_bundle import plain
from serve_client import request
from serve_load import Load, latency, percentile
from serve_process import Server

DATA = Path(os.environ.get("LIMELIGHT_DATA", "."))
CAPTIONS = DATA / "multi30k"
WORKER, CLIENTS, REQUESTS = ROOT / "claims" / "light_worker.py", 64, 10_000
BATCH_TEXTS = 32  # captions that fill a batch of CTranslate2
# Found by a plain pattern, and not by those that protect them.
POSITIONAL = re.compile(r"%[-+0#]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?[sdiuxcf](?![a-zA-Z])")
SIZED = re.compile(POSITIONAL.pattern.replace("(?![a-zA-Z])", "(?!(?!x%)[a-zA-Z])"))  # also the first of %dx%d
Command = list[str]


def prove(claims: Claims, python: Path, work: Path) -> None:
    """`python` is the interpreter of an environment without torch; this one has it."""
    whole, light = [sys.executable, str(WORKER)], [str(python), str(WORKER)]
    bundle = Path(os.environ.get("LIMELIGHT_CAPTIONS") or train_captions(work / "captions"))
    texts = gzip.decompress((CAPTIONS / "test_2016_flickr.en.gz").read_bytes()).decode().removesuffix("\n").split("\n")
    same(claims, whole, light, bundle, texts)
    fast(claims, light, bundle, texts, 5)
    served(claims, python, bundle, texts, 3, REQUESTS)
    promises(claims, whole, light, bundle, 1000)
    # What these compare files with is no part of the runtime.
    subprocess.run([python, "-m", "pip", "install", "--quiet", "polib", "lxml"], check=True)
    given = {"LIMELIGHT_RANDOM": str(random_bundle(work / "random")), "LIMELIGHT_SOFTWARE": str(bundle), "LIMELIGHT_CAPTIONS": str(bundle)}
    done = subprocess.run([python, ROOT / "claims" / "careful.py", "--full"], env={**given, **os.environ}, check=False)
    claims.ended_well("claim-careful without torch", done.returncode)


def train_captions(folder: Path) -> Path:
    sides = [str(CAPTIONS / f"train.{side}.gz") for side in ("en", "de")]
    subprocess.run([sys.executable, "-m", "limelight", "train", *sides, "-o", str(folder), "--budget", "30m", "-q"], check=True)
    return folder


class Side:
    """A worker in a process of its own, idle while others have their turn."""

    def __init__(self, command: Command, side: str, bundle: Path, numbers: str, core: int | None = None) -> None:
        prefix = [] if core is None else ["taskset", "--cpu-list", str(core)]
        words = [*prefix, *command, side, str(bundle), numbers]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, do: str, texts: Sequence[str]) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": do, "texts": list(texts)}) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def spread(claims: Claims, name: str, values: Sequence[float], least: float | None = None, most: float | None = None) -> None:
    """The median against its bar, and the range."""
    middle = statistics.median(values)
    if least is not None:
        claims.at_least(name, middle, least)
    elif most is not None:
        claims.at_most(name, middle, most)
    else:
        claims.note(name, middle)
    claims.note("... lowest", min(values))
    claims.note("... highest", max(values))


def same(claims: Claims, whole: Command, light: Command, bundle: Path, texts: Sequence[str]) -> None:
    """The same translations, letter by letter, with torch and without."""
    with Side(whole, "ours", bundle, "float32") as one, Side(light, "ours", bundle, "float32") as other:
        made = [side.ask("file", texts) for side in (one, other)]
    assert [answer["torch"] for answer in made] == [True, False], "one side has torch, the other has not"
    equal = sum(a == b for a, b in zip(*(answer["texts"] for answer in made), strict=True))
    claims.at_least(f"without torch: the same translations, of {len(texts)}", equal, len(texts))


def fast(claims: Claims, light: Command, bundle: Path, texts: Sequence[str], rounds: int) -> None:
    """A file, and single sentences in int8, against CTranslate2 alone. What is searched a second time, for its numbers, is told apart."""
    usual = plain(texts)
    single = usual[:: max(1, len(usual) // 40)][:40]
    for numbers in ("float32", "int8"):
        name = f"translate, {numbers}: speed, of the bare engine's"
        spread(claims, name, against_bare(light, bundle, numbers, "file", usual, rounds), least=0.95)
    all_lines = against_bare(light, bundle, "float32", "file", texts, rounds)
    spread(claims, "... in float32, with lines that have numbers", all_lines)
    each = against_bare(light, bundle, "int8", "each", single, rounds)
    spread(claims, "translate, one sentence, int8: times the bare engine", [1 / ratio for ratio in each], most=1.1)


def against_bare(light: Command, bundle: Path, numbers: str, do: str, texts: Sequence[str], rounds: int) -> list[float]:
    """Of each turn, the bare engine's processor time over ours; of single sentences the middle of all ratios."""
    ratios = []
    with Side(light, "ours", bundle, numbers) as ours, Side(light, "bare", bundle, numbers) as bare:
        for turn in range(rounds + 1):
            a, b = (side.ask(do, texts)["processor"] for side in (ours, bare))
            if turn:  # the first fetches files, and makes kernels
                ratios.append(b / a if do == "file" else statistics.median(y / x for x, y in zip(a, b, strict=True)))
    return ratios


def served(claims: Claims, python: Path, bundle: Path, texts: Sequence[str], rounds: int, most: int) -> None:
    """Many clients against CTranslate2 alone; latency at half load; start and memory. The clients have a core of their own."""
    cores = sorted(os.sched_getaffinity(0))
    server_core, client_core = (cores[0], cores[-1]) if len(cores) > 1 else (None, None)
    command = [str(python), "-P", "-m", "limelight", "serve", str(bundle), "--threads", "1", "--no-ui", "--port", "0", "--json"]
    texts = plain(texts)  # a second search for lost numbers is no part of what the bare engine does
    asked = [request("/translate", json.dumps({"q": t, "source": "en", "target": "de", "format": "text"}).encode()) for t in texts]
    with ExitStack() as stack:
        bare = stack.enter_context(Side([str(python), str(WORKER)], "bare", bundle, "float32", server_core))
        load = stack.enter_context(Load(client_core))
        bare.ask("file", texts[:1])  # so that it does not load while the server does
        began = time.perf_counter()
        server = stack.enter_context(Server([*command, "queue.wait_seconds=60"], server_core))
        with urlopen(f"http://127.0.0.1:{server.port}/readyz") as answer:
            assert answer.status == 200
        claims.at_most("serve: seconds until it is ready", time.perf_counter() - began, 2)
        claims.note("... of them on a processor", server.cpu_seconds)
        ratios, calm, busy, ideal = list[float](), list[float](), list[float](), list[float]()
        rate, lost = 1.0, 0
        for turn in range(rounds + 1):
            before = server.cpu_seconds
            found = load.closed(server.port, asked, CLIENTS)
            lost += len(asked) - len(found.good)
            used, alone = server.cpu_seconds - before, bare.ask("file", [texts[each.number] for each in found.good])["processor"]
            if turn:
                rate = found.rate
                ratios.append(alone / used)
                calm.append(latency(load.closed(server.port, asked[:300], 1).good, 0.95))
                half = load.opened(server.port, asked, rate / 2, 600 / rate).good
                busy.append(latency(half, 0.95))
                ideal.append(wait_ideally(bare, [(each.sent, texts[each.number]) for each in half]))
        spread(claims, f"serve, {CLIENTS} clients: speed, of the bare engine's", ratios, least=0.85)
        claims.note("... answers a second", rate)
        claims.at_most(f"... of {(rounds + 1) * len(asked)} without a translation", lost, 0)
        spread(claims, "p95 of one client alone, ms", calm)
        spread(claims, "p95 at half load, times that", [b / a for a, b in zip(calm, busy, strict=True)])
        spread(claims, "... times an ideal queue before the bare engine", [b / a for a, b in zip(ideal, busy, strict=True)], most=1.2)
        done = (rounds + 1) * len(asked)
        claims.note(f"megabytes after {done} requests", before_all := server.megabytes)
        while done < most:
            done += len(load.closed(server.port, asked, CLIENTS).good)
        claims.note(f"megabytes after {done} requests", server.megabytes)
        claims.at_most("... more", server.megabytes - before_all, 32)


def wait_ideally(bare: Side, arrivals: Sequence[tuple[float, str]]) -> float:
    """The p95 in milliseconds if the same texts came at the same moments to a queue that costs nothing: when the bare engine is free, it
    takes all that wait, up to what fills a batch. The engine really works; only the waiting is reckoned."""
    coming, free, waits = sorted(arrivals), 0.0, list[float]()
    while coming:
        free = max(free, coming[0][0])
        batch = [each for each in coming if each[0] <= free][:BATCH_TEXTS]
        del coming[: len(batch)]
        free += bare.ask("file", [text for _, text in batch])["wall"]
        waits += [free - sent for sent, _ in batch]
    return 1000 * percentile(waits, 0.95)


def software(count: int) -> list[tuple[str, str]]:
    """Strings that a program fills in by position, two places or more, and their translations by people."""
    found: dict[str, str] = {}
    with gzip.open(DATA / "l10n" / "tm.en-de.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if "\n" not in row["src"] and len(row["src"]) < 120 and len(set(POSITIONAL.findall(row["src"]))) > 1:
                found.setdefault(row["src"], row["tgt"])
    return list(found.items())[:: max(1, len(found) // count)][:count]


def promises(claims: Claims, whole: Command, light: Command, bundle: Path, count: int) -> None:
    """What was kept, in which order, and what those that were searched again are worth beside torch's."""
    templated, pairs = careful.templated(count), software(count)
    references = [target for _, target in pairs]
    scores, totals = {}, {}
    for name, command in (("with torch", whole), ("without torch", light)):
        with Side(command, "ours", bundle, "float32") as side:
            first, second = side.ask("file", [each.text for each in templated]), side.ask("file", [source for source, _ in pairs])
        held = [not careful.lost(each, text) for each, text in zip(templated, first["texts"], strict=True)]
        kept = [sum(held)]
        claims.note(f"{name}: sentences with all they must keep, of {len(templated)}", kept[0])
        claims.at_most("... lost something and did not say so", silent(held, first), 0)
        held = [SIZED.findall(source) == SIZED.findall(text) for (source, _), text in zip(pairs, second["texts"], strict=True)]
        kept.append(sum(held))
        claims.note(f"{name}: strings whose placeholders keep their order, of {len(pairs)}", kept[1])
        claims.at_most("... lost it and did not say so", silent(held, second), 0)
        again = [at for at, codes in enumerate(second["codes"]) if "redecoded" in codes]
        claims.note("... searched under constraints", len(again))
        claims.note("... processor seconds for all", first["processor"] + second["processor"])
        scores[name], totals[name] = (second["texts"], again), kept
    fewer = max(a - b for a, b in zip(totals["with torch"], totals["without torch"], strict=True))
    claims.at_most("without torch: kept less often than with it", fewer, 0)
    both = sorted(set(scores["with torch"][1]) & set(scores["without torch"][1]))
    if both:
        wanted = [references[at] for at in both]
        chrf = {name: sacrebleu.corpus_chrf([texts[at] for at in both], [wanted]).score for name, (texts, _) in scores.items()}
        bleu = {name: sacrebleu.corpus_bleu([texts[at] for at in both], [wanted]).score for name, (texts, _) in scores.items()}
        claims.note(f"BLEU of the {len(both)} under constraints, with torch", bleu["with torch"])
        claims.at_least("... without torch", bleu["without torch"], bleu["with torch"] - 0.2)
        claims.note("chrF of them, with torch", chrf["with torch"])
        claims.at_least("... without torch", chrf["without torch"], chrf["with torch"] - 0.2)
        equal = sum(scores["with torch"][0][at] == scores["without torch"][0][at] for at in both)
        claims.note("... the same, letter by letter, %", 100 * equal / len(both))


def silent(held: Sequence[bool], made: dict[str, Any]) -> int:
    """Those that lost something, say that all is kept, and warn of nothing."""
    warned = [{"unprotected", "numbers"} & set(codes) for codes in made["codes"]]
    return sum(not kept and safe and not said for kept, safe, said in zip(held, made["protected"], warned, strict=True))
