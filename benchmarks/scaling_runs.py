"""Small runs, through `limelight train` to their end: what validation loss becomes with model, text and passes.

    python benchmarks/scaling_runs.py -o FOLDER                       all of them, about an hour on one quiet core
    python benchmarks/scaling_runs.py -o FOLDER --only multi30k-tiny  those whose names begin so
    python benchmarks/scaling_runs.py -o FOLDER --short               those of seconds to minutes alone, none of which comes to its end
    python benchmarks/scaling_runs.py -o FOLDER --write               those that are done, into benchmarks/scaling_runs.json

Each run has a fixed number of steps, one thread, seed 1 and the text as it is; batch, rate and dropout are those that `limelight train`
would choose. Loss is the validation at the last step, in nats per target piece, of the moving average of the weights. Runs on a part of a
corpus have the pieces and the validation set of the whole one, so that their losses compare. A run that is done is not repeated.
`limelight.planning.scaling` is fitted to the file; `--write` prints the new fit, which belongs there. Points whose runs are not in FOLDER
stay in the file.
"""

import argparse
import datetime
import gzip
import json
import os
import platform
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.training.recipe.text_stats import PreparedText, frequencies
from scaling_fit import beginnings, fit, fit_beginning, runs

WRITTEN: Final = Path(__file__).with_name("scaling_runs.json")
CORPORA: Final = {  # folder of LIMELIGHT_DATA, source and target (or one file of both), validation set, pieces
    "multi30k": ("multi30k", ("train.en.gz", "train.de.gz"), ("val.en.gz", "val.de.gz"), 4_000),
    "tatoeba": ("tatoeba/de-en", ("train.de.gz", "train.en.gz"), ("dev.de.gz", "dev.en.gz"), 8_000),
    "ebible_swh": ("ebible", ("train.en.gz", "train.swh.gz"), ("dev.en.gz", "dev.swh.gz"), 4_000),
    "ebible_kiz": ("ebible", ("train.en.gz", "train.kiz.gz"), ("dev.en.gz", "dev.kiz.gz"), 4_000),
    "l10n_is": ("l10n", ("tm.en-is.jsonl.gz",), ("dev.en-is.en.gz", "dev.en-is.is.gz"), 8_000),
}
LANGUAGES: Final = {"l10n_is": ("--source", "en", "--target", "is")}  # where no name of a file says them


@dataclass(frozen=True)
class Trial:
    corpus: str
    preset: str
    steps: int
    pairs: int | None = None  # the first so many; None: all

    @property
    def name(self) -> str:
        return f"{self.corpus}-{self.preset}-{self.steps}" + (f"-of-{self.pairs}" if self.pairs else "")


# In the order in which they are worth their time, since a machine may be taken away.
TRIALS: Final = (
    Trial("multi30k", "toy", 150), Trial("multi30k", "tiny", 150), Trial("multi30k", "tiny", 400),
    Trial("multi30k", "tiny", 400, 7_000), Trial("tatoeba", "tiny", 300), Trial("multi30k", "toy", 400),
    Trial("multi30k", "small", 150), Trial("multi30k", "small", 400), Trial("tatoeba", "small", 300),
    Trial("multi30k", "small", 400, 7_000), Trial("tatoeba", "toy", 300), Trial("multi30k", "tiny", 800),
)  # fmt: skip
# Runs that end long before they have learnt: by them the law knows how a run begins, which the long ones do not tell.
SHORT: Final = (
    Trial("multi30k", "toy", 20), Trial("multi30k", "tiny", 40), Trial("multi30k", "small", 20),
    Trial("ebible_kiz", "tiny", 30), Trial("ebible_kiz", "toy", 100), Trial("multi30k", "tiny", 60, 1_000),
    Trial("tatoeba", "tiny", 50, 40_000), Trial("ebible_swh", "small", 30), Trial("l10n_is", "tiny", 80, 40_000),
    Trial("ebible_swh", "tiny", 120), Trial("ebible_kiz", "tiny", 6), Trial("multi30k", "tiny", 10),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--only", default="", help="runs whose names begin so")
    parser.add_argument("--short", action="store_true", help="the short ones alone")
    parser.add_argument("--write", action="store_true", help="what is there into the file that the fit reads")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    if not asked.write:
        data = Path(os.environ["LIMELIGHT_DATA"])
        for trial in SHORT if asked.short else (*SHORT, *TRIALS):
            if trial.name.startswith(asked.only):
                run(trial, data, asked.output)
                print(json.dumps(point(trial, asked.output)), flush=True)
        return
    stored = json.loads(WRITTEN.read_text(encoding="utf-8"))
    parts = []
    for part_of, trials in (("points", TRIALS), ("beginnings", SHORT)):
        points = {each["name"]: each for each in stored.get(part_of, ())}
        points |= {each.name: point(each, asked.output) for each in trials if is_done(asked.output / each.name)}
        lines = ",\n  ".join(json.dumps(each) for each in points.values())
        parts.append(f'"{part_of}": [\n  {lines}\n ]')
    made = ",\n ".join([f'{{"made": {json.dumps(facts())}', *parts])
    WRITTEN.write_text(f"{made}}}\n", encoding="utf-8")
    print(fit(runs()))
    print(fit_beginning(beginnings()))


def is_done(folder: Path) -> bool:
    status = folder / "status.json"
    return status.exists() and json.loads(status.read_text(encoding="utf-8"))["state"] == "done"


def run(trial: Trial, data: Path, output: Path) -> None:
    """One run; nothing if it is done."""
    if is_done(output / trial.name):
        return
    folder, names, held_out, vocabulary = CORPORA[trial.corpus]
    texts = [data / folder / name for name in names]
    if trial.pairs:
        texts = [part(text, trial.pairs, output) for text in texts]
    whole = output / f"{trial.corpus}-pieces"
    if not whole.exists():
        everything = [str(data / folder / name) for name in names]
        # `prepare` calls the languages --from and --to.
        languages = [{"--source": "--from", "--target": "--to"}.get(word, word) for word in LANGUAGES.get(trial.corpus, ())]
        pieces_of = ["--vocab-size", str(vocabulary), "-o", str(whole), "held_out.test_pairs=0"]
        limelight("prepare", *everything, *languages, *pieces_of)
    pieces = next(whole.glob("*.model"))
    valid = [option for name in held_out for option in ("--valid", str(data / folder / name))]
    limelight(
        "train", *map(str, texts), *LANGUAGES.get(trial.corpus, ()), *valid, "-o", str(output / trial.name), "--preset", trial.preset,
        "--steps", str(trial.steps), "--threads", "1", "--seed", "1", "--no-augment", "-q", f'data.given_pieces=["{pieces}"]',
        "data.held_out.test_pairs=0", f"validation.every={trial.steps}", "probes.sentences=0",
    )  # fmt: skip


def part(text: Path, pairs: int, output: Path) -> Path:
    """The first lines of a packed text."""
    place = output / f"first-{pairs}.{text.name.removesuffix('.gz')}"
    with gzip.open(text, "rt", encoding="utf-8", newline="\n") as whole:
        place.write_text("".join(islice(whole, pairs)), encoding="utf-8", newline="\n")
    return place


def limelight(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "limelight", *words], check=True)


def point(trial: Trial, output: Path) -> dict[str, Any]:
    """What the fit needs of a run, all of it read from what the run wrote."""
    folder = output / trial.name
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [line for line in lines if line["event"] == "step"]
    last = [line for line in lines if line["event"] == "valid"][-1]
    recipe = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))
    prepared = PreparedCorpus.open(folder / "prepared")
    text = PreparedText.of(prepared.manifest)
    return {
        "name": trial.name, "corpus": trial.corpus, "preset": trial.preset, "vocab_size": recipe["model"]["vocab_size"],
        "dropout": recipe["model"]["dropout"], "pairs": round(text.pairs), "unique": round(text.target),
        "frequencies": round(frequencies(prepared) or 0.0, 3),
        "steps": len(steps), "seen": sum(line["target_pieces"] for line in steps), "loss": round(last["nll"], 4),
        "chrf": round(last["chrf"], 2), "bleu": round(last["bleu"], 2),
    }  # fmt: skip


def facts() -> dict[str, Any]:
    import torch

    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, one thread of {os.cpu_count()} cores, shared",
        "torch": torch.__version__,
    }


if __name__ == "__main__":
    main()
