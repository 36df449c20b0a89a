"""One model for many languages beside one for each, in the same total of work on one core each; and registers by a tag.

python benchmarks/languages.py multi30k --minutes 60 -o /tmp/many     English with German, French and Czech, both ways: one model and six
python benchmarks/languages.py ebible --minutes 90 -o /tmp/many       English to nine Bantu languages: one model and nine
python benchmarks/languages.py register --steps 1500 -o /tmp/many     a translator of Tatoeba goes on for as long again, with 400 pairs
                                                                      in two registers and tags for what is told by its pronouns, and
                                                                      without: matched accuracy, BLEU

Text is found by LIMELIGHT_DATA. What is trained is not trained again: the same command goes on where it was stopped. Two trainings run at
a time, with one thread each. --minutes lets each choose its size as a user's would; --steps takes `tiny` for all, so that a noisy machine
changes nothing.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from limelight.training.run_folder import read_status

DATA = Path(os.environ.get("LIMELIGHT_DATA", ""))
BANTU = ("swh", "sna", "nde", "yao", "xnj", "wbi", "kiz", "poy", "ndg")
FEW = BANTU[3:]  # those with 6,500 verses
CAPTIONS = ("de", "fr", "cs")
REGISTERED = re.compile(r"\[F\](.*?)\[/F\]")  # the words that carry the register
ADDRESSED = {
    "formal": re.compile(r"(?<=[\w,] )(?:Sie|Ihnen|Ihre?[mnrs]?)\b"),  # not at the beginning of a sentence, where it may be "she" or "they"
    "informal": re.compile(r"\b(?:[Dd]u|[Dd]ich|[Dd]ir|[Dd]eine?[mnrs]?|[Ee]u(?:ch|re?[mnrs]?))\b"),
}
NO_TEST = "data.held_out.test_pairs=0"  # nothing is split off, since the test sets are of others


@dataclass(frozen=True)
class Work:
    """Minutes of one core, or steps of a preset; without a preset, of the size that a parent has."""

    minutes: float = 0.0
    steps: int = 0
    preset: str | None = "tiny"

    def __truediv__(self, parts: int) -> "Work":
        return replace(self, minutes=self.minutes / parts, steps=self.steps // parts)

    @property
    def options(self) -> list[str]:
        if not self.steps:
            return ["--budget", f"{round(self.minutes * 60)}s"]
        return [*(["--preset", self.preset] if self.preset else []), "--steps", str(self.steps)]


@dataclass(frozen=True)
class Run:
    """A run trains a translator in a folder."""

    folder: Path
    arguments: list[str]
    work: "Work"

    def train(self) -> None:
        if read_status(self.folder).get("state") == "done":
            return
        command = ["train", *self.arguments, "-o", str(self.folder), *self.work.options, "--threads", "1", "--plain", "--anyway", NO_TEST]
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with Path(f"{self.folder}.log").open("ab") as log:
            done = subprocess.run([sys.executable, "-m", "limelight", *command], stdout=log, stderr=log)
        if done.returncode:
            sys.exit(f"{self.folder} ended with {done.returncode}; see {log.name}")

    @property
    def megabytes(self) -> float:
        return (self.folder / "bundle" / "model.safetensors").stat().st_size / 1e6


def unpack(place: Path, folder: Path, names: dict[str, str], languages: Sequence[str]) -> dict[str, dict[str, Path]]:
    """{"train": {"en": Path, ...}}: files as a user would have them. `names`: how those of a split are called."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Path]] = {}
    for split, name in names.items():
        for language in languages:
            path = found.setdefault(split, {})[language] = folder / f"{split}.{language}"
            if not path.exists():
                path.write_bytes(gzip.decompress((place / f"{name}.{language}.gz").read_bytes()))
    return found


def train_all(many: Run, single: Sequence[Run]) -> None:
    """The one on one core, the others one after the other on the other."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda runs: [run.train() for run in runs], [[many], single]))


def evaluate(run: Run, source: Path, target: Path, *more: str) -> dict[str, Any]:
    """{"BLEU": {...}, "chrF2": {...}} with their intervals."""
    command = ["evaluate", str(run.folder), str(source), str(target), "--json", "--metrics", "bleu,chrf", "--worst", "0", *more]
    done = subprocess.run([sys.executable, "-m", "limelight", *command], capture_output=True, check=True)
    return {score["name"]: score for score in json.loads(done.stdout)["scores"]}


def show(score: dict[str, Any]) -> str:
    return f"{score['value']:5.1f} ({score['low']:.1f}-{score['high']:.1f})"


def compare(title: str, metric: str, pairs: Sequence[tuple[str, str]], many: Run, single: Sequence[Run], test: dict[str, Path]) -> None:
    print(f"| {title}, {metric} | one model | one for each |\n| --- | --- | --- |")
    sums = [0.0, 0.0]
    for (source, target), alone in zip(pairs, single, strict=True):
        scores = [evaluate(many, test[source], test[target], "--from", source, "--to", target), evaluate(alone, test[source], test[target])]
        print(f"| {source}-{target} | {' | '.join(show(each[metric]) for each in scores)} |", flush=True)
        sums = [total + each[metric]["value"] for total, each in zip(sums, scores, strict=True)]
    print(f"| mean | {' | '.join(f'{total / len(pairs):.2f}' for total in sums)} |")
    print(f"\none model {many.megabytes:.1f} MB, the others {sum(run.megabytes for run in single):.1f} MB together")


def multi30k(folder: Path, work: Work) -> None:
    languages = ("en", *CAPTIONS)
    files = unpack(DATA / "multi30k", folder / "text", {"train": "train", "valid": "val", "test": "test_2016_flickr"}, languages)
    pairs = [(a, b) for other in CAPTIONS for a, b in (("en", other), (other, "en"))]

    def given(some: Sequence[str]) -> list[str]:
        return [*(str(files["train"][each]) for each in some), *(word for each in some for word in ("--valid", str(files["valid"][each])))]

    many = Run(folder / "many", [*given(languages), "--both-directions"], work)
    single = [Run(folder / f"{a}-{b}", given((a, b)), work / len(pairs)) for a, b in pairs]
    train_all(many, single)
    compare("test_2016_flickr", "BLEU", pairs, many, single, files["test"])
    for source, target in (("de", "fr"), ("fr", "de")):
        found = evaluate(many, files["test"][source], files["test"][target], "--from", source, "--to", target)
        print(f"never trained: {source}-{target} BLEU {show(found['BLEU'])}")


def ebible(folder: Path, work: Work) -> None:
    files = unpack(DATA / "ebible", folder / "text", {"train": "train", "valid": "dev", "test": "test"}, ("en", *BANTU))
    whole = folder / "whole"  # verses that both sides have: those of a single pair
    whole.mkdir(exist_ok=True)
    kept: dict[str, list[Path]] = {}
    for split in files:
        for language in BANTU:
            lines = [files[split][each].read_text("utf-8").split("\n") for each in ("en", language)]
            both = [pair for pair in zip(*lines, strict=True) if all(pair)]
            for at, name in enumerate(("en", language)):
                path = whole / f"{split}-{language}.{name}"
                path.write_text("\n".join(pair[at] for pair in both) + "\n", "utf-8")
                kept.setdefault(f"{split} {language}", []).append(path)
    every = [str(files["train"][each]) for each in ("en", *BANTU)]
    valid = [word for each in ("en", *BANTU) for word in ("--valid", str(files["valid"][each]))]
    many = Run(folder / "many", [*every, *valid], work)
    single = [
        Run(
            folder / f"en-{each}",
            [*map(str, kept[f"train {each}"]), *(word for path in kept[f"valid {each}"] for word in ("--valid", str(path)))],
            work / len(BANTU),
        )
        for each in BANTU
    ]
    train_all(many, single)
    print("| Acts of the Apostles, chrF | one model | one for each |\n| --- | --- | --- |")
    gains = dict[str, float]()
    for language, alone in zip(BANTU, single, strict=True):
        test = kept[f"test {language}"]
        scores = [evaluate(many, *test, "--to", language)["chrF2"], evaluate(alone, *test)["chrF2"]]
        gains[language] = scores[0]["value"] - scores[1]["value"]
        print(f"| en-{language} | {' | '.join(map(show, scores))} |", flush=True)
    few = sum(gains[each] for each in FEW) / len(FEW)
    print(f"\nmean gain: all {sum(gains.values()) / len(BANTU):+.2f}, the six with 6,500 verses {few:+.2f}")


def register(folder: Path, work: Work) -> None:
    text = folder / "text"
    general = unpack(DATA / "tatoeba" / "de-en", text, {"train": "train", "valid": "dev", "test": "test"}, ("en", "de"))
    told: dict[str, dict[str, Path]] = {}
    for split in ("train", "test"):
        for kind in ("formal", "informal"):
            for language, name in (("en", "en"), ("de", f"{kind}.de")):
                path = told.setdefault(f"{split} {kind}", {})[language] = text / f"{split}-{kind}.{language}"
                path.write_bytes(gzip.decompress((DATA / "cocoa-mt" / f"{split}.{name}.gz").read_bytes()))
    base = [str(general["train"]["en"]), str(general["train"]["de"])]
    valid = ["--valid", str(general["valid"]["en"]), "--valid", str(general["valid"]["de"])]
    more = [str(told[f"train {kind}"][language]) for kind in ("formal", "informal") for language in ("en", "de")]
    for kind in ("formal", "informal"):
        more += ["--tag", f"{kind}=train-{kind}", "--weight", f"train-{kind}=7"]
    more += ["--pair", f"en-de={tag_by_words(general['train'], text / 'told.jsonl')}", "batch.untagged=0.5"]
    old = Run(folder / "general", [*base, *valid], work)
    old.train()
    later, parent = replace(work, preset=None), ["--from", str(old.folder), "--new-pieces"]  # the old one has no pieces for tags
    with_tags = Run(folder / "with-tags", [*more, *valid, *parent], later)
    without = Run(folder / "without", [*base, *valid, *parent], later)
    train_all(with_tags, [without])
    for kind in ("formal", "informal"):
        written = folder / f"{kind}.out"
        evaluate(with_tags, told[f"test {kind}"]["en"], told[f"test {kind}"]["de"], "--tag", kind, "--save", str(written))
        print(f"{kind}: matched accuracy {100 * matched_accuracy(written.read_text('utf-8').split(chr(10)), kind):.1f} %")
    test = str(general["test"]["en"]), str(general["test"]["de"])
    command = ["evaluate", str(with_tags.folder), *test, "--compare", str(without.folder), "--metrics", "bleu,chrf", "--worst", "0"]
    print(subprocess.run([sys.executable, "-m", "limelight", *command], capture_output=True, check=True, text=True).stdout)


def tag_by_words(text: dict[str, Path], told: Path) -> Path:
    """What a user does with text that has both registers: lines in which only words of one stand are told it, the others nothing."""
    with told.open("w", encoding="utf-8") as file:
        for source, target in zip(*(text[each].read_text("utf-8").split("\n")[:-1] for each in ("en", "de")), strict=True):
            tags = [kind for kind, words in ADDRESSED.items() if words.search(target)]
            file.write(json.dumps({"source": source, "target": target, "tags": tags if len(tags) == 1 else []}) + "\n")
    return told


def matched_accuracy(lines: Sequence[str], kind: str) -> float:
    """As the data's paper counts it: of the translations with marked words of one register alone, the share that has the right one."""
    marked = [
        gzip.decompress((DATA / "cocoa-mt" / f"test.{each}.annotated.de.gz").read_bytes()).decode().split("\n")
        for each in (kind, "informal" if kind == "formal" else "formal")
    ]
    right = wrong = 0
    for line, *references in zip(lines, *marked, strict=False):
        words = set(line.split(" "))
        own, other = (any(words >= set(phrase.split(" ")) for phrase in REGISTERED.findall(each)) for each in references)
        right, wrong = right + (own and not other), wrong + (other and not own)
    return right / max(1, right + wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    experiments = {"multi30k": multi30k, "ebible": ebible, "register": register}
    parser.add_argument("experiment", choices=experiments)
    amount = parser.add_mutually_exclusive_group(required=True)
    amount.add_argument("--minutes", type=float, default=0.0, help="of one core, for the model of many and for all others together")
    amount.add_argument("--steps", type=int, default=0, help="likewise, of the preset tiny")
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    experiments[asked.experiment](asked.output / asked.experiment, Work(asked.minutes, asked.steps))


if __name__ == "__main__":
    main()
