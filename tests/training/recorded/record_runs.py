"""Makes the recorded runs: small ones on made-up number words, each of which fails in one way. About two minutes on one quiet core.

    python tests/training/recorded/record_runs.py [NAME ...]

What a report is made from is kept, without weights: recipe, status, facts, scores, manifest, and of `metrics.jsonl` every validation, every
step that was left out, and some of the others. The runs are real, and so is what went wrong in them.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

HERE: Final = Path(__file__).parent
ENGLISH: Final = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
GERMAN: Final = [
    "null",
    "eins",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
]
FRENCH: Final = ["zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze"]
STEPS_KEPT: Final = 40
KEPT: Final = ("recipe.toml", "status.json", "run.json", "scores.json", "metrics.jsonl", "prepared/manifest.json")
FILTERS_OFF: Final = ("data.filters.wrong_language=off", "data.filters.copied=off")  # words alone are hard to tell

Pairs = list[tuple[str, str]]


def numbers(count: int, seed: int, target: list[str] = GERMAN) -> Pairs:
    random, pairs = Random(seed), dict[str, str]()
    while len(pairs) < count:
        drawn = [random.randrange(len(ENGLISH)) for _ in range(random.randint(3, 9))]
        pairs[" ".join(ENGLISH[n] for n in drawn)] = " ".join(target[n] for n in drawn)
    return list(pairs.items())


def unrelated(count: int, seed: int) -> Pairs:
    """Targets that have nothing to do with their sources: only by heart can they be known."""
    pairs = numbers(count, seed)
    targets = [target for _, target in pairs]
    Random(seed).shuffle(targets)
    return [(source, target) for (source, _), target in zip(pairs, targets, strict=True)]


def swapped(pairs: Pairs) -> Pairs:
    return [(target, source) for source, target in pairs]


@dataclass(frozen=True)
class Failure:
    pairs: Callable[[], Pairs]
    steps: int
    keys: tuple[str, ...] = ()


FAILURES: Final = {
    "too_short": Failure(lambda: numbers(20_000, 1), 8, ("validation.every=2",)),
    "too_small": Failure(lambda: numbers(600, 2), 60, ("validation.every=10",)),
    "swapped": Failure(lambda: swapped(numbers(12_000, 3)), 60, ("validation.every=12",)),
    "wrong_language": Failure(lambda: numbers(12_000, 4, FRENCH), 60, ("validation.every=12",)),
    "overfitted": Failure(lambda: unrelated(300, 5), 400, ("validation.every=40", "model.dropout=0.0")),
    "diverged": Failure(lambda: numbers(3_000, 6), 100, (
        "validation.every=8", "optimizer.learning_rate=1", "schedule.warmup=60", "trouble.window=8",
    )),
}  # fmt: skip


def record(name: str, failure: Failure) -> None:
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        held_out = {"valid": numbers(120, 901), "test": numbers(120, 902)}
        if name == "overfitted":
            held_out = {"valid": unrelated(120, 901), "test": unrelated(120, 902)}
        for part, pairs in {"train": failure.pairs(), **held_out}.items():
            for side, language in enumerate(("en", "de")):
                lines = "".join(f"{pair[side]}\n" for pair in pairs)
                (work / f"{part}.{language}").write_text(lines, encoding="utf-8")
        sets = [word for part in held_out for side in ("en", "de") for word in (f"--{part}", f"{part}.{side}")]
        words = [
            "train.en",
            "train.de",
            *sets,
            "-o",
            "run",
            "--preset",
            "toy",
            "--steps",
            str(failure.steps),
            "--threads",
            "1",
        ]
        words += ["--no-augment", "-q", "--vocab-size", "320", "probes.sentences=0", *FILTERS_OFF, *failure.keys]
        done = subprocess.run([sys.executable, "-m", "limelight", "train", *words], cwd=work, check=False)
        sys.stdout.write(f"{name}: exit code {done.returncode}\n")
        keep(work / "run", HERE / name)


def keep(run: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    for name in KEPT:
        if (run / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(run / name, place / name)
    if (place / "scores.json").exists():
        with (place / "scores.json").open("a", encoding="utf-8") as stored:
            stored.write("\n")  # as every file of the repository ends
    facts = json.loads((place / "run.json").read_bytes())
    facts |= {"command": ["limelight", *facts["command"][1:]], "commit": None, "machine": {}}
    (place / "run.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = (place / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    steps = [i for i, line in enumerate(lines) if '"event": "step"' in line and '"skipped": null' in line]
    shown = {*steps[:: max(1, len(steps) // STEPS_KEPT)], *steps[-10:]}
    kept = [line for i, line in enumerate(lines) if i in shown or i not in steps]
    (place / "metrics.jsonl").write_text("".join(kept), encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:] or FAILURES:
        record(each, FAILURES[each])
