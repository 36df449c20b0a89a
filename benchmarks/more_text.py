"""What stands in for text that is lacking: a parent beside nothing, and a student beside its teacher, in equal steps.

python benchmarks/more_text.py parent --steps 3000 -o /tmp/more      English to Yao, Vwanji and Pogolo: from nothing, from English to
                                                                     Swahili, and from one model of nine Bantu languages
python benchmarks/more_text.py student --steps 3000 -o /tmp/more     Tatoeba, English to German: a teacher, its student, and a model of the
                                                                     student's size that learnt from people's pairs
python benchmarks/more_text.py software --steps 300 -o /tmp/more     software strings, English to Icelandic: 5,000, 20,000 and all 160,000
                                                                     entries, from nothing and from English to German, which takes four
                                                                     times as many steps

Text is found by LIMELIGHT_DATA. What is trained is not trained again: the same command goes on where it was stopped. Everything is trained
in the same number of steps on one thread each, two at a time, but the model of nine languages, which takes as many steps for each of them.
"""

import argparse
import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from languages import BANTU, DATA, NO_TEST, Run, Work, evaluate, show, unpack
from limelight.files import write_whole

CHILDREN = ("yao", "wbi", "poy")  # Yao, Vwanji, Pogolo: 6,500 verses each
PARENT = "swh"


def keep_whole(files: dict[str, dict[str, Path]], folder: Path, language: str) -> dict[str, list[Path]]:
    """{"train": [English, the other]}: verses that both sides have."""
    folder.mkdir(parents=True, exist_ok=True)
    kept: dict[str, list[Path]] = {}
    for split, paths in files.items():
        sides = [paths[each].read_text("utf-8").split("\n") for each in ("en", language)]
        both = [pair for pair in zip(*sides, strict=True) if all(pair)]
        kept[split] = [folder / f"{split}-{language}.{each}" for each in ("en", language)]
        for at, path in enumerate(kept[split]):
            path.write_text("".join(f"{pair[at]}\n" for pair in both), "utf-8")
    return kept


def text_of(kept: dict[str, list[Path]]) -> list[str]:
    return [*map(str, kept["train"]), *(word for path in kept["valid"] for word in ("--valid", str(path)))]


def train_each(*lanes: Sequence[Run]) -> None:
    with ThreadPoolExecutor(len(lanes)) as pool:
        list(pool.map(lambda runs: [run.train() for run in runs], lanes))


def curve(run: Run) -> str:
    """chrF of the validations: step and score."""
    lines = map(json.loads, (run.folder / "metrics.jsonl").read_text("utf-8").strip().split("\n"))
    found = [(line["step"], line["chrf"]) for line in lines if "chrf" in line]
    return ", ".join(f"{step}: {chrf:.1f}" for step, chrf in found)


def parent(folder: Path, steps: int) -> None:
    files = unpack(DATA / "ebible", folder / "text", {"train": "train", "valid": "dev", "test": "test"}, ("en", *BANTU))
    whole = {each: keep_whole(files, folder / "whole", each) for each in (*CHILDREN, PARENT)}
    many = [str(files["train"][each]) for each in ("en", *BANTU)]
    many += [word for each in ("en", *BANTU) for word in ("--valid", str(files["valid"][each]))]
    parents = [
        Run(folder / f"en-{PARENT}", text_of(whole[PARENT]), Work(steps=steps)),
        Run(folder / "bantu", many, Work(steps=steps * len(BANTU))),
    ]
    train_each(*([each] for each in parents))
    alone = {each: Run(folder / f"en-{each}", text_of(whole[each]), Work(steps=steps)) for each in CHILDREN}
    born = {
        (each, old.folder.name): Run(
            folder / f"en-{each}-from-{old.folder.name}",
            [*text_of(whole[each]), "--from", str(old.folder), "--new-pieces"],  # the nine were taught the child's language too
            Work(steps=steps, preset=None),
        )
        for each in CHILDREN
        for old in parents
    }
    train_each(list(alone.values()), list(born.values()))
    names = [old.folder.name for old in parents]
    print(f"| Acts of the Apostles, chrF | from nothing | {' | '.join(f'from {name}' for name in names)} |\n| --- | {'--- | ' * 3}")
    for each in CHILDREN:
        runs = [alone[each], *(born[each, name] for name in names)]
        print(f"| en-{each} | {' | '.join(show(evaluate(run, *whole[each]['test'])['chrF2']) for run in runs)} |", flush=True)
    print_curves([*alone.values(), *born.values()])


def print_curves(runs: Sequence[Run]) -> None:
    print("\nchrF of the validations, by step")
    for run in runs:
        print(f"{run.folder.name}: {curve(run)}")


def student(folder: Path, steps: int) -> None:
    files = unpack(DATA / "tatoeba" / "de-en", folder / "text", {"train": "train", "valid": "dev", "test": "test"}, ("en", "de"))
    sets = [word for each in ("en", "de") for word in ("--valid", str(files["valid"][each]))]
    people = [str(files["train"][each]) for each in ("en", "de")]
    teacher = Run(folder / "teacher", [*people, *sets], Work(steps=steps, preset="small"))
    alone = Run(folder / "alone", [*people, *sets], Work(steps=steps, preset="student"))
    taught = Run(folder / "student", [], Work(steps=steps, preset="student"))
    train_each([teacher], [alone])
    if not (taught.folder / "report.md").is_file():
        command = ["distill", str(teacher.folder), "--text", people[0], "--references", people[1], "-o", str(taught.folder), *sets]
        with Path(f"{taught.folder}.log").open("ab") as log:
            words = [sys.executable, "-m", "limelight", *command, *taught.work.options, "--threads", "2", "--plain", "--anyway", NO_TEST]
            if code := subprocess.run(words, stdout=log, stderr=log).returncode:
                sys.exit(f"{taught.folder} ended with {code}; see {log.name}")
    print("| Tatoeba en-de, test | BLEU | chrF | MB |\n| --- | --- | --- | --- |")
    for run in (teacher, taught, alone):
        scores = evaluate(run, files["test"]["en"], files["test"]["de"])
        print(f"| {run.folder.name} | {show(scores['BLEU'])} | {show(scores['chrF2'])} | {run.megabytes:.1f} |", flush=True)


def take_entries(memory: str, most: int | None, place: Path) -> str:
    """Entries of the packages for training, no more than `most`: drawn by their text, so that the fewer are among the more."""
    if not place.exists():
        rows = [line.split("\t") for line in (DATA / "l10n" / "packages.tsv").read_text("utf-8").splitlines()]
        name, split = rows[0].index("package"), rows[0].index("split")
        training = {row[name] for row in rows[1:] if row[split] == "train"}
        with gzip.open(DATA / "l10n" / f"{memory}.jsonl.gz", "rb") as lines:
            found = [line for line in lines if json.loads(line)["pkg"] in training]
        found.sort(key=lambda line: hashlib.sha256(line).digest())
        write_whole(place, b"".join(found[:most]))
    return str(place)


def software(folder: Path, steps: int) -> None:
    sets = unpack(DATA / "l10n", folder / "text", {"valid": "dev.en-is", "test": "test.en-is"}, ("en", "is"))
    valid = [word for each in ("en", "is") for word in ("--valid", str(sets["valid"][each]))]
    german = [take_entries("tm.en-de", 300_000, folder / "text" / "de.jsonl"), "--source", "en", "--target", "de"]
    old = Run(folder / "en-de", german, Work(steps=4 * steps))
    old.train()
    sizes = {"5,000": 5_000, "20,000": 20_000, "all": None}
    print("| strings en-is, chrF | from nothing | from English to German |\n| --- | --- | --- |")
    runs = []
    for size, most in sizes.items():
        text = [take_entries("tm.en-is", most, folder / "text" / f"is-{most}.jsonl"), "--source", "en", "--target", "is", *valid]
        alone = Run(folder / f"en-is-{most}", text, Work(steps=steps))
        born = Run(folder / f"en-is-{most}-from-de", [*text, "--from", str(old.folder)], Work(steps=steps, preset=None))
        train_each([alone], [born])
        scores = [show(evaluate(run, sets["test"]["en"], sets["test"]["is"])["chrF2"]) for run in (alone, born)]
        print(f"| {size} | {' | '.join(scores)} |", flush=True)
        runs += [alone, born]
    print_curves(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    experiments = {"parent": parent, "student": student, "software": software}
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--steps", type=int, required=True, help="of each training")
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    experiments[asked.experiment](asked.output / asked.experiment, asked.steps)


if __name__ == "__main__":
    main()
