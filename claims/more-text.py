"""What the docs state about more text than there is: `--mono` goes on after kill -9 in every stage with the same bits, a child keeps its
parent's rows, a teacher that was stopped says the same, and a cluster translates what one process does.

make claim-more-text            under a minute on 2 quiet cores: number words; the cluster if Ray is installed
make claim-more-text FULL=1     also benchmarks/more_text.py, more_text_mono.py (LIMELIGHT_DATA) and ray_translate.py: a day
"""

import hashlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("claims", "tests", "tests/training", "tests/corpus", "tests/interop")]

import test_monolingual as mono
import test_parent as parent
import test_teacher as teacher
import torch
from small_runs import DONE, make_corpus, remains, story

from claim import Claims, run
from limelight.bundle import read
from limelight.training.recipe.parent import find_inherited

STEPS = {"parent": 3000, "student": 3000}
LINES = 2_100  # two shards, so that their order counts


def killed(claims: Claims, work: Path) -> None:
    corpus = make_corpus(work / "corpus")
    mono.write(corpus / "news.de", (corpus / "numbers.de").read_text("utf-8").split("\n")[:60])
    asked = mono.ask(corpus, steps=18, changes=mono.SMALL, threads=1, precision="float32", preset="toy", export=False)
    straight, broken = work / "straight", work / "broken"
    ended = [mono.begin(asked, straight)]
    ends = [mono.begin(asked, broken, mono.Signal(**when, number=signal.SIGKILL)) for when in mono.MOMENTS.values()]
    ended.append(mono.begin(asked, broken))
    claims.at_least("--mono: stages that were ended by kill -9", ends.count(-signal.SIGKILL), len(mono.MOMENTS))
    claims.at_least("... runs that ended well, the killed one too", ended.count(DONE), 2)
    pairs = [hashlib.sha256((place / "synthetic" / "1-de-en" / mono.PAIRS).read_bytes()).digest() for place in (straight, broken)]
    differing = (pairs[0] != pairs[1]) + (story(straight) != story(broken)) + (remains(straight) != remains(broken))
    claims.at_most("... synthetic pairs, losses and weights that differ", differing, 0)


def inherited(claims: Claims) -> None:
    old, new = read(parent.STORED), parent.new_tokenizer()
    rows = find_inherited(old, (new, new))[1]
    before = old.weights()["target_embedding.weight"]
    moved, theirs = rows.move(before), old.target_tokenizer.vocabulary
    both = [(number, theirs.index(piece)) for number, piece in enumerate(new.vocabulary) if piece in theirs and piece.startswith("▁")]
    claims.at_least("a parent: pieces that both have", len(both), 5)
    claims.at_most("... of them, rows that are not kept", sum(not torch.equal(moved[ours], before[old]) for ours, old in both), 0)


def taught(claims: Claims, work: Path) -> None:
    teacher.teacher.SHARD = 4
    places = [work / name for name in ("whole", "stopped")]
    for place in places:
        place.mkdir()
    whole, stopped = (teacher.asked(place, noise=3) for place in places)
    whole.go(teacher.load, lambda *_: None)

    def stop(done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    try:
        stopped.go(teacher.load, stop)
    except KeyboardInterrupt:
        claims.at_least("a teacher: files that it left when it was stopped", len(list(stopped.translations.iterdir())), 1)
    stopped.go(teacher.load, lambda *_: None)
    differing = sum(a != b for a, b in zip(teacher.rows(whole), teacher.rows(stopped), strict=True))
    claims.at_most(f"... of {len(teacher.rows(whole))} pairs, that differ when it has gone on", differing, 0)


def on_cluster(claims: Claims, work: Path) -> None:
    draw, words = random.Random(1), ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    (work / "in").write_bytes("".join(f"{' '.join(draw.choices(words, k=draw.randint(1, 6)))}\n" for _ in range(LINES)).encode())
    for name, more in (("one", []), ("cluster", ["--cluster", "ray"])):
        words = ["translate", str(teacher.STORED), "-i", str(work / "in"), "-o", str(work / name), "--threads", "1", "-q", *more]
        done = subprocess.run([sys.executable, "-m", "limelight", *words], capture_output=True, text=True)
        claims.ended_well(f"{LINES} lines by {'Ray' if more else 'one process'}: exit code", done.returncode)
        if done.returncode:
            print(done.stderr)
            return
    lines = [(work / name).read_bytes().split(b"\n") for name in ("one", "cluster")]
    claims.at_most("... lines that differ", sum(a != b for a, b in zip(*lines, strict=True)), 0)


def measure(claims: Claims, full: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="claim-more-text-") as folder:
        work = Path(folder)
        inherited(claims)
        taught(claims, work)
        if importlib.util.find_spec("ray") is not None:
            on_cluster(claims, work)
        killed(claims, work)
        if full:
            commands = [["ray_translate.py", "lines", "--lines", "1000000"], ["ray_translate.py", "faults", "--runs", "20"]]
            if "LIMELIGHT_DATA" in os.environ:
                commands += [["more_text.py", name, "--steps", str(steps), "-o", folder] for name, steps in STEPS.items()]
                commands.append(["more_text_mono.py", "--steps", "6000", "-o", f"{folder}/mono"])
            for script, *words in commands:
                code = subprocess.run([sys.executable, str(ROOT / "benchmarks" / script), *words]).returncode
                claims.ended_well(f"benchmarks/{script} {words[0]}", code)


if __name__ == "__main__":
    run(measure, __doc__)
