"""Limelight, eole, Hugging Face's trainer and JoeyNMT after as many steps of as many pieces: which translates better?

python benchmarks/equal_steps.py --steps 1200 -o /tmp/equal
LIMELIGHT_EOLE=eole-venv/bin/python LIMELIGHT_JOEYNMT=joey-venv/bin/python python benchmarks/equal_steps.py --steps 1200 -o /tmp/equal

Multi30k en-de, `tiny`. Limelight trains as `limelight train --preset tiny --steps N` does, with nothing else set. The others get its
pieces, shape, dropout, smoothing, highest rate, warm-up and target pieces a step, and their own loop, batches, start and search (beam 4).
Text is found by LIMELIGHT_DATA. What is trained is not trained again. eole.yaml says how to make eole's environment; JoeyNMT's is
`pip install torch==2.13.0 joeynmt==2.3.0 importlib_metadata`. One that is not named is left out; transformers wants accelerate.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import sacrebleu
import sentencepiece
import yaml

from languages import Run, Work, unpack
from limelight.files import write_whole
from limelight.planning.sizing_rules import peak_rate
from limelight.training.config import Recipe
from train_peers import EOLE, collate, describe_peer

DATA: Final = Path(os.environ.get("LIMELIGHT_DATA", ""))
JOEYNMT: Final = "LIMELIGHT_JOEYNMT"
SETS: Final = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
PAD, UNKNOWN, START, END = range(4)


@dataclass(frozen=True)
class Task:
    """A task is what all of them are given."""

    files: dict[str, dict[str, Path]]
    folder: Path
    steps: int
    recipe: Recipe
    pieces: sentencepiece.SentencePieceProcessor
    target_pieces: int  # of a step

    @property
    def shape(self) -> dict[str, int]:
        model = self.recipe.model
        return {"layers": model.encoder_layers, "d": model.d_model, "heads": model.num_heads, "ff": model.d_ff}

    @property
    def rate(self) -> float:
        """That of AdamW, by which the others learn."""
        return peak_rate(self.recipe.model)

    def write_pieces(self, folder: Path) -> None:
        """The text as pieces with blanks between them, and the list of all pieces but the special ones."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, sides in self.files.items():
            for language, path in sides.items():
                rows = self.pieces.encode(path.read_text(encoding="utf-8").splitlines(), out_type=str)
                write_whole(folder / f"{name}.{language}", "".join(f"{' '.join(row)}\n" for row in rows).encode())
        every = (self.pieces.id_to_piece(number) for number in range(4, self.pieces.get_piece_size()))
        write_whole(folder / "vocab.txt", "".join(f"{piece}\n" for piece in every).encode())

    def join(self, lines: list[str]) -> list[str]:
        return [self.pieces.decode(line.split()) for line in lines]


def run_in(folder: Path, interpreter: str, words: list[str]) -> None:
    with (folder / "log").open("ab") as log:
        done = subprocess.run([str(Path(interpreter).absolute()), *words], cwd=folder, stdout=log, stderr=log)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}; see {folder / 'log'}")


def train_eole(task: Task, folder: Path) -> list[str]:
    task.write_pieces(folder)
    settings: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("eole.yaml").read_bytes())
    del settings["transforms_configs"]
    settings |= {"transforms": [], "src_vocab_size": task.recipe.model.vocab_size, "tgt_vocab_size": task.recipe.model.vocab_size}
    settings["data"] = {name: {"path_src": f"{name}.en", "path_tgt": f"{name}.de"} for name in ("train", "valid")}
    shape, recipe = task.shape, task.recipe
    settings["model"] |= {"hidden_size": shape["d"], "layers": shape["layers"], "heads": shape["heads"], "transformer_ff": shape["ff"]}
    settings["model"]["embeddings"]["word_vec_size"] = shape["d"]
    settings["training"] |= {
        "batch_size": round(task.target_pieces * 1.22),  # it counts the longer side of each row, padding included
        "compute_dtype": "fp32",
        "dropout": [recipe.model.dropout],
        "learning_rate": task.rate,
        "warmup_steps": recipe.schedule.warmup,
        "train_steps": task.steps,
        "valid_steps": task.steps,
    }
    write_whole(folder / "eole.json", json.dumps(settings).encode())
    eole = ["-m", "eole.bin.main"]
    run_in(folder, os.environ[EOLE], [*eole, "train", "-c", "eole.json"])
    search = ["--beam_size", "4", "--batch_size", "4096", "--batch_type", "tokens"]
    run_in(folder, os.environ[EOLE], [*eole, "predict", "--model_path", "model", "--src", "test.en", "--output", "test.out", *search])
    return task.join((folder / "test.out").read_text(encoding="utf-8").splitlines())


def train_joeynmt(task: Task, folder: Path) -> list[str]:
    task.write_pieces(folder)
    words = (folder / "vocab.txt").read_text(encoding="utf-8")
    write_whole(folder / "joey.txt", f"<unk>\n<pad>\n<s>\n</s>\n{words}".encode())
    recipe, shape = task.recipe, task.shape
    side = {"voc_file": "joey.txt", "level": "word", "lowercase": False, "normalize": False, "max_length": 512}
    half = {
        "type": "transformer",
        "num_layers": shape["layers"],
        "num_heads": shape["heads"],
        "embeddings": {"embedding_dim": shape["d"], "scale": True, "dropout": 0.0},
        "hidden_size": shape["d"],
        "ff_size": shape["ff"],
        "dropout": recipe.model.dropout,
        "layer_norm": "pre",
    }
    settings = {
        "name": "joey",
        "joeynmt_version": "2.3.0",
        "model_dir": "model",
        "use_cuda": False,
        "fp16": False,
        "random_seed": recipe.seed,
        "data": {
            "train": "train",
            "dev": "valid",
            "test": "test",
            "dataset_type": "plain",
            "src": {**side, "lang": "en"},
            "trg": {**side, "lang": "de"},
        },
        "testing": {"n_best": 1, "beam_size": 4, "beam_alpha": 1.0, "batch_size": 4096, "batch_type": "token", "eval_metrics": ["bleu"]},
        "training": {
            "optimizer": "adamw",
            "adam_betas": [recipe.optimizer.beta1, recipe.optimizer.beta2],
            "learning_rate": task.rate,
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": recipe.schedule.warmup,
            "clip_grad_norm": recipe.optimizer.clip,
            "weight_decay": recipe.optimizer.weight_decay,
            "label_smoothing": recipe.label_smoothing,
            "batch_size": round(task.target_pieces * 1.2),
            "batch_type": "token",
            "normalization": "tokens",
            "epochs": 1000,
            "updates": task.steps,
            "validation_freq": task.steps,
            "logging_freq": max(1, task.steps // 10),
            "keep_best_ckpts": 1,
            "overwrite": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "init_gain": 1.0,
            "embed_initializer": "xavier_uniform",
            "embed_init_gain": 1.0,
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": half,
            "decoder": half,
        },
    }
    write_whole(folder / "joey.yaml", yaml.safe_dump(settings).encode())
    run_in(folder, os.environ[JOEYNMT], ["-m", "joeynmt", "train", "joey.yaml", "--skip-test"])
    run_in(folder, os.environ[JOEYNMT], ["-m", "joeynmt", "test", "joey.yaml", "--output-path", "hypotheses"])
    return task.join((folder / "hypotheses.test").read_text(encoding="utf-8").splitlines())


def cut_batches(task: Task, seed: int) -> list[tuple[list[list[int]], list[list[int]]]]:
    """An epoch: pairs sorted by length, cut by target pieces, in random order."""
    rows = [
        [[*row, END] for row in task.pieces.encode(task.files["train"][language].read_text(encoding="utf-8").splitlines())]
        for language in ("en", "de")
    ]
    random = Random(seed)
    order = sorted(range(len(rows[0])), key=lambda at: (len(rows[1][at]), len(rows[0][at]), random.random()))
    batches, begun, held = list[tuple[list[list[int]], list[list[int]]]](), list[int](), 0
    for at in order:
        begun.append(at)
        held += len(rows[1][at])
        if held >= task.target_pieces:
            batches.append(([rows[0][each] for each in begun], [rows[1][each] for each in begun]))
            begun, held = [], 0
    random.shuffle(batches)
    return batches


def train_transformers(task: Task, folder: Path) -> list[str]:
    """Pegasus, which has its norms where ours are: Marian's, after the sub-layers, want a lower rate. An item of the data set is a batch,
    since the trainer counts sentences."""
    import torch
    import transformers

    recipe, shape = task.recipe, task.shape
    torch.manual_seed(recipe.seed)
    config = transformers.PegasusConfig(**describe_peer(shape, recipe.model.vocab_size, recipe.model.dropout, "eager"))
    model = transformers.PegasusForConditionalGeneration(config)
    epochs = -(-task.steps // len(cut_batches(task, 0)))
    arguments = transformers.Seq2SeqTrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        per_device_train_batch_size=1,
        train_sampling_strategy="sequential",
        max_steps=task.steps,
        learning_rate=task.rate,
        warmup_steps=recipe.schedule.warmup,
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        adam_beta2=recipe.optimizer.beta2,
        adam_epsilon=recipe.optimizer.epsilon,
        weight_decay=recipe.optimizer.weight_decay,
        max_grad_norm=recipe.optimizer.clip,
        label_smoothing_factor=recipe.label_smoothing,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        logging_steps=100,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    batches = [batch for epoch in range(epochs) for batch in cut_batches(task, epoch)]
    transformers.Seq2SeqTrainer(model=model, args=arguments, train_dataset=batches, data_collator=collate).train()
    model.eval()
    made, lines = list[str](), task.files["test"]["en"].read_text(encoding="utf-8").splitlines()
    for begin in range(0, len(lines), 50):
        rows = [[*row, END] for row in task.pieces.encode(lines[begin : begin + 50])]
        given = collate([(rows, rows)])
        found = model.generate(
            input_ids=given["input_ids"],
            attention_mask=given["attention_mask"],
            num_beams=4,
            max_length=128,
            bad_words_ids=[[PAD], [START], [UNKNOWN]],
        )
        made += [task.pieces.decode([number for number in row if number > END]) for row in found.tolist()]
    return made


def measure(name: str, train: Callable[[Task, Path], list[str]], task: Task) -> None:
    """Once: the translations and the seconds are kept."""
    folder = task.folder / name
    if not (folder / "test.txt").exists():
        folder.mkdir(parents=True, exist_ok=True)
        began = time.process_time(), os.times().children_user
        made = train(task, folder)
        spent = time.process_time() - began[0] + os.times().children_user - began[1]
        write_whole(folder / "seconds", f"{spent:.0f}".encode())
        write_whole(folder / "test.txt", "".join(f"{line}\n" for line in made).encode())
    made = (folder / "test.txt").read_text(encoding="utf-8").split("\n")[:-1]
    wanted = task.files["test"]["de"].read_text(encoding="utf-8").splitlines()
    bleu, chrf = (metric.corpus_score(made, [wanted]).score for metric in (sacrebleu.BLEU(), sacrebleu.CHRF()))
    print(f"| {name} | {bleu:.1f} | {chrf:.1f} | {int((folder / 'seconds').read_bytes()):,} |", flush=True)


def train_limelight(task: Task, folder: Path) -> list[str]:
    words = [sys.executable, "-m", "limelight", "translate", str(task.folder / "run"), "-i", str(task.files["test"]["en"])]
    return subprocess.run([*words, "--threads", "1"], capture_output=True, check=True, text=True).stdout.splitlines()


SYSTEMS: Final[dict[str, tuple[str | None, Callable[[Task, Path], list[str]]]]] = {
    "limelight": (None, train_limelight),
    "transformers": (None, train_transformers),
    "eole": (EOLE, train_eole),  # with the variable that names its interpreter
    "joeynmt": (JOEYNMT, train_joeynmt),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--only", default=",".join(SYSTEMS), help="names of systems, with commas")
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    if unknown := set(asked.only.split(",")) - set(SYSTEMS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are: {', '.join(SYSTEMS)}")
    files = unpack(DATA / "multi30k", asked.output / "text", SETS, ("en", "de"))
    given = [str(files["train"][each]) for each in ("en", "de")]
    given += [word for each in ("en", "de") for word in ("--valid", str(files["valid"][each]))]
    run = Run(asked.output / "run", given, Work(steps=asked.steps))
    run.train()
    recipe = Recipe.load(run.folder / "recipe.toml")
    lines = map(json.loads, (run.folder / "metrics.jsonl").read_bytes().splitlines())
    steps = [line for line in lines if line["event"] == "step"]
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(run.folder / "bundle" / "pieces.model"))
    seen = round(statistics.mean(step["target_pieces"] for step in steps))
    task = Task(files, asked.output, asked.steps, recipe, pieces, seen)
    print(f"{asked.steps:,} steps of {seen:,} target pieces; ours took {sum(step['seconds'] for step in steps):,.0f} s for them\n")
    print("| | BLEU | chrF | processor seconds, translating included |\n| --- | --- | --- | --- |")
    for name in asked.only.split(","):
        variable, train = SYSTEMS[name]
        if variable is None or variable in os.environ:
            measure(name, train, task)
        else:
            print(f"{name} was left out: {variable} names no interpreter", file=sys.stderr)


if __name__ == "__main__":
    main()
