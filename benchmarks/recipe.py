"""Variants of a recipe beside a baseline in equal work, and the recipe that others published for the same text.

python benchmarks/recipe.py trials --steps 4000 --seeds 1,2 -o /tmp/recipe     every variant of VARIANTS on Multi30k en-de
python benchmarks/recipe.py trials --steps 4000 --only muon,search -o /tmp/recipe
python benchmarks/recipe.py public --steps 8000 -o /tmp/recipe                 the recipe behind BLEU 41.02 (arXiv 2105.14462)
python benchmarks/recipe.py public --steps 8000 --processes 2 -o /tmp/recipe   the same steps, shared by two processes

Text is found by LIMELIGHT_DATA. What is trained or translated is not done again: the same command goes on where it was stopped. Trainings
run one after the other, with one thread. Equal work is equal batches with gradients: a variant whose steps cost twice as much takes half.
A variant is compared with the baseline of the same seed, sentence by sentence, on the four test sets; nothing is chosen by them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from languages import NO_TEST, unpack
from limelight.corpus.config import FilterSettings, PrepareSettings
from limelight.decoding.config import SearchSettings
from limelight.files import write_whole
from limelight.model.config import ModelConfig
from limelight.planning.sizing_rules import peak_rate
from limelight.training.config import Recipe, ScheduleSettings
from limelight.training.run_folder import read_status
from limelight.training.step.learning_rate import compute_growth_ahead

DATA = Path(os.environ.get("LIMELIGHT_DATA", ""))
LIMELIGHT: Final = [sys.executable, "-m", "limelight"]
TESTS: Final = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
LANGUAGES: Final = ("en", "de")
GROWTH: Final = 2.0
COST_OF_GROWTH: Final = compute_growth_ahead(0, ScheduleSettings(batch_growth=GROWTH), 1)


@dataclass(frozen=True)
class Variant:
    keys: tuple[str, ...]  # of a recipe, or options
    cost: float = 1.0  # of a step, in steps of the baseline
    rate: float | None = None  # times that which a run of this size would get


BASELINE: Final = "baseline"
VARIANTS: Final = {
    BASELINE: Variant(()),
    "text as it is": Variant(("--no-augment",)),
    "post-norm": Variant(("model.norm_order=post",)),
    "adamw": Variant(("optimizer.name=adamw",)),
    "half the rate": Variant((), rate=0.5),
    "twice the rate": Variant((), rate=2.0),
    "four times the rate": Variant((), rate=4.0),
    "half the batch": Variant(("batch.budget=3072",), cost=0.5),
    "weight decay 0.1": Variant(("optimizer.weight_decay=0.1",)),
    "dropout 0.3": Variant(("model.dropout=0.3",)),
    "dropout of attention and activations": Variant(("model.attention_dropout=0.1", "model.activation_dropout=0.1")),
    "2000 pieces": Variant(("--vocab-size", "2000")),
    "8000 pieces": Variant(("--vocab-size", "8000")),
    "r-drop": Variant(("r_drop=5.0",), cost=2.0),
    "subword sampling": Variant(("batch.sampling.dropout=0.1",)),
    "inverse square root": Variant(("schedule.name=inverse_sqrt",)),
    "cosine": Variant(("schedule.name=cosine",)),
    "larger batches at the end": Variant((f"schedule.batch_growth={GROWTH}",), cost=COST_OF_GROWTH),
    "both directions at first": Variant(("schedule.both_directions=0.33",)),
    "guided alignment": Variant(("guided_alignment=0.05",)),
    "mean of up to ten": Variant(("average.best=10",)),
    "search chosen by BLEU": Variant(("validation.search=true", "validation.metric=bleu")),
}

# The public recipe, read in its repository: fairseq's `transformer_tiny`, 2 x 4,096 tokens a step, some 60 steps an epoch.
PUBLIC_WARMUP: Final = 2000
PUBLIC_STEPS: Final = 8000
PUBLIC_SEARCH: Final = SearchSettings(beam=5, length_penalty=1.0, length_norm="power")
PUBLISHED: Final = {"test.2016": 41.02}
PUBLIC_TESTS: Final = ("test.2016", "test.2017", "test.coco")


def run_limelight(words: Sequence[str], log: Path) -> None:
    """A command whose words go to a log; stopped by a signal it goes on when asked again."""
    with log.open("ab") as file:
        code = subprocess.run([*LIMELIGHT, *words], stdout=file, stderr=file).returncode
    if code:
        sys.exit(f"limelight {words[0]} ended with {code}; see {log}, and give the same command again to go on")


def train(folder: Path, words: Sequence[str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    if read_status(folder).get("state") != "done":
        run_limelight(["train", *words, "-o", str(folder), "--plain", "--anyway"], Path(f"{folder}.log"))


def evaluate(words: Sequence[str]) -> dict[str, Any]:
    options = ["--json", "--metrics", "bleu", "--worst", "0", "--quiet"]
    found: dict[str, Any] = json.loads(subprocess.run([*LIMELIGHT, "evaluate", *words, *options], capture_output=True, check=True).stdout)
    return found


# Trials.


def translate(run: Path, name: str, source: Path, target: Path) -> Path:
    written = run / f"{name}.out"
    if not written.exists():
        evaluate([str(run), str(source), str(target), "--save", str(written), "--threads", "1"])
    return written


def describe_row(name: str, found: dict[tuple[str, int], dict[str, Any]]) -> str:
    """BLEU on each set, the mean over seeds; the mean difference, and in how many comparisons it is more than chance."""
    sets = [statistics.mean(each["other"] for (test, _), each in found.items() if test == wanted) for wanted in TESTS]
    cells = [*(f"{value:.2f}" for value in sets), f"{statistics.mean(sets):.2f}"]
    if name == BASELINE:
        return f"| {name} | {' | '.join(cells)} | | |"
    sure = [each for each in found.values() if each["significant"]]
    better, worse = (sum(each["difference"] * sign > 0 for each in sure) for sign in (1, -1))
    difference = statistics.mean(each["difference"] for each in found.values())
    return f"| {name} | {' | '.join(cells)} | {difference:+.2f} | {better} better, {worse} worse of {len(found)} |"


def trials(folder: Path, preset: str, steps: int, seeds: Sequence[int], names: Sequence[str]) -> str:
    sets = {"train": "train", "valid": "val", **{test: test for test in TESTS}}
    files = unpack(DATA / "multi30k", folder / "text", sets, LANGUAGES)
    given = [str(files["train"][each]) for each in LANGUAGES]
    given += [word for each in LANGUAGES for word in ("--valid", str(files["valid"][each]))]
    lines = [
        f"| {preset}, {steps:,} steps, seeds {', '.join(map(str, seeds))}; BLEU | {' | '.join(TESTS)} | mean | difference | p < 0.05 |"
    ]
    lines.append("| --- |" + " --- |" * (len(TESTS) + 3))
    usual = peak_rate(ModelConfig.preset(preset, vocab_size=8_000), muon=True)
    for name in dict.fromkeys((BASELINE, *names)):
        variant, found = VARIANTS[name], dict[tuple[str, int], dict[str, Any]]()
        rate = [] if variant.rate is None else [f"optimizer.learning_rate={variant.rate * usual}"]
        for seed in seeds:
            place = folder / f"{preset}-{steps}" / str(seed)
            run, baseline = (place / each.replace(" ", "-") for each in (name, BASELINE))
            work = ["--preset", preset, "--steps", str(round(steps / variant.cost)), "--seed", str(seed), "--threads", "1"]
            train(run, [*given, *work, NO_TEST, *variant.keys, *rate])
            for test in TESTS:
                source, target = (files[test][each] for each in LANGUAGES)
                outputs = [translate(each, test, source, target) for each in (baseline, run)]
                words = [str(outputs[0]), str(target), "--compare", str(outputs[1]), "--source", str(source), "--to", LANGUAGES[1]]
                found[test, seed] = evaluate(words)["compare"]["differences"][0]
        lines.append(describe_row(name, found))
        write_whole(folder / f"{preset}-{steps}.md", ("\n".join(lines) + "\n").encode())  # from the first variant on
        print(lines[-1], flush=True)
    return "\n".join(lines)


# The public recipe.


def learn_words(files: Sequence[Path], place: Path) -> int:
    """A vocabulary in which every public piece is a word: `@@` at its end is a part of it. Returns how many there are."""
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    if not place.exists():
        lines = [line for path in files for line in path.read_text("utf-8").split("\n") if line]
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=str(place.with_suffix("")), model_type="word", use_all_vocab=True,
            vocab_size=len({word for line in lines for word in line.split(" ")}) + 4, hard_vocab_limit=False, character_coverage=1.0,
            normalization_rule_name="identity", remove_extra_whitespaces=False, pad_id=0, unk_id=1, bos_id=2, eos_id=3, minloglevel=2,
        )  # fmt: skip
    return int(SentencePieceProcessor(model_file=str(place)).get_piece_size())


def make_public_recipe(files: dict[str, dict[str, Path]], words: Path, vocab_size: int) -> Recipe:
    """Nothing of the text is changed or left out, and nothing is chosen."""
    off = {name: "off" for name, field in FilterSettings.model_fields.items() if field.default in ("warn", "drop")}
    data = PrepareSettings(
        languages=LANGUAGES,
        corpora=[{"name": "multi30k", "paths": [str(files["train"][each]) for each in LANGUAGES]}],
        normalize=(),
        filters={**off, "longest": 1_000_000},
        dedup={"exact": False, "targets_per_source": None},
        held_out={"valid": [str(files["valid"][each]) for each in LANGUAGES], "test_pairs": 0, "leaks": "off"},
        given_pieces=[str(words)],
    )
    shape = {"encoder_layers": 4, "decoder_layers": 4, "d_model": 128, "d_ff": 256, "num_heads": 4, "dropout": 0.3}
    return Recipe(
        data=data,
        model=ModelConfig(vocab_size=vocab_size, norm_order="post", position_layout="tensor2tensor", max_length=256, **shape),
        # Source and target of 4,096 tokens: theirs counts the longer side of a pair.
        batch={"budget": 2 * 4096},
        accumulate=2,
        optimizer={"learning_rate": 0.005, "beta2": 0.98, "epsilon": 1e-8, "weight_decay": 0.0},
        schedule={"name": "inverse_sqrt", "steps": PUBLIC_STEPS, "warmup": PUBLIC_WARMUP},
        average={"best": 10, "latest": True},
        validation={"every": 60, "metric": "bleu", "sentences": 1014, "patience": 10},
        machine={"threads": 1},
    )


def count_public_bleu(made: Sequence[str], references: Sequence[str]) -> Any:
    """As published: pieces joined to words, words as Moses cut them."""
    from sacrebleu import BLEU

    joined = [[line.replace("@@ ", "").removesuffix("@@") for line in side] for side in (made, references)]
    return BLEU(tokenize="none", force=True).corpus_score(joined[0], [joined[1]])


def public(folder: Path, steps: int, processes: int = 1) -> str:
    from limelight.translator import Translator

    names = {each: each for each in ("train", "valid", *PUBLIC_TESTS)}
    files = unpack(DATA / "multi30k" / "public-recipe", folder / "text", names, LANGUAGES)
    words = folder / "words.model"
    size = learn_words([files["train"][each] for each in LANGUAGES], words)
    recipe = make_public_recipe(files, words, size)
    recipe.save(folder / "public.toml")
    # Its schedule has no end: fewer steps are the same run, cut. Before its warm-up is over there is nothing to compare.
    cut = steps <= PUBLIC_WARMUP
    run = folder / (f"cut-{steps}" if cut else "run")
    keys = [f"schedule.warmup={steps // 2}", f"validation.every={max(1, steps // 2)}", "validation.sentences=50"] if cut else []
    if read_status(run).get("steps", 0) < steps or read_status(run).get("state") != "done":
        run.parent.mkdir(parents=True, exist_ok=True)
        command = ["train", str(folder / "public.toml"), "-o", str(run), "--steps", str(steps), "--plain", "--anyway", *keys]
        command += ["--nproc", str(processes)] if processes > 1 else []
        run_limelight(command, Path(f"{run}.log"))
    lines = [
        f"| {steps:,} steps of {PUBLIC_STEPS:,}, {size:,} pieces | BLEU | published | precisions | brevity |",
        "| --- |" + " --- |" * 4,
    ]
    with Translator.load(run, threads=1) as translator:
        for test in PUBLIC_TESTS:
            source, reference = (files[test][each].read_text("utf-8").removesuffix("\n").split("\n") for each in LANGUAGES)
            found = translator.translate(source, PUBLIC_SEARCH, protect=False, guards=False, segment=False)
            score = count_public_bleu([each.text for each in found], reference)
            precisions = "/".join(f"{each:.1f}" for each in score.precisions)
            lines.append(f"| {test} | {score.score:.2f} | {PUBLISHED.get(test, '')} | {precisions} | {score.bp:.3f} |")
    write_whole(Path(f"{run}.md"), ("\n".join(lines) + "\n").encode())
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=("trials", "public"))
    parser.add_argument("--steps", type=int, required=True, help="of the baseline, or of the public recipe (8,000 there)")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=1, help="that share the steps of the public recipe")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--seeds", default="1", help="with commas")
    parser.add_argument("--only", default=",".join(VARIANTS), help="names of variants, with commas")
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    if not (DATA / "multi30k").is_dir():
        parser.error("LIMELIGHT_DATA names no folder with corpora")
    names, seeds = asked.only.split(","), [int(seed) for seed in asked.seeds.split(",")]
    if unknown := [name for name in names if name not in VARIANTS]:
        parser.error(f"there is no variant {', '.join(unknown)}; there are: {', '.join(VARIANTS)}")
    if asked.steps < 4:
        parser.error("--steps: at least 4")
    folder = asked.output / asked.experiment
    folder.mkdir(parents=True, exist_ok=True)
    if asked.experiment == "public":
        print(public(folder, asked.steps, asked.processes))
    else:
        print(trials(folder, asked.preset, asked.steps, seeds, names))


if __name__ == "__main__":
    main()
