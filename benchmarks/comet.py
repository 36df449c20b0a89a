"""COMET as it is, in an environment of its own, judging by a model of its architecture that was made here with random weights.

    python3.11 -m venv comet && comet/bin/pip install unbabel-comet 'setuptools<81'
    python benchmarks/comet.py comet/bin/python

What the scores say means nothing; that they come is what is tried: the real package, its checkpoint, its tokenizer, its loop. They must be
the same that the package gives when it is called without us, and another model must give others. With a published checkpoint the command
is `limelight evaluate output.de reference.de --source test.en --comet comet/bin/python`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

MAKE = """
import sys
from pathlib import Path
import torch
from comet.models import RegressionMetric
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import XLMRobertaConfig, XLMRobertaTokenizerFast
folder, seed, *files = sys.argv[1:]
folder = Path(folder)
special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
pieces = Tokenizer(models.Unigram())
pieces.normalizer, pieces.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
pieces.train(files, trainers.UnigramTrainer(vocab_size=400, special_tokens=special, unk_token="<unk>"))
XLMRobertaTokenizerFast(tokenizer_object=pieces).save_pretrained(folder / "encoder")
shape = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=514)
XLMRobertaConfig(vocab_size=pieces.get_vocab_size(), **shape).save_pretrained(folder / "encoder")
torch.manual_seed(int(seed))
model = RegressionMetric(pretrained_model=str(folder / "encoder"), hidden_sizes=[64, 16], load_pretrained_weights=False)
import pytorch_lightning
(folder / "checkpoints").mkdir()
saved = {"state_dict": model.state_dict(), "hyper_parameters": dict(model.hparams)}
torch.save({**saved, "pytorch-lightning_version": pytorch_lightning.__version__}, folder / "checkpoints" / "model.ckpt")
(folder / "hparams.yaml").write_text("class_identifier: regression_metric\\n")
"""
ALONE = """
import json, sys
from comet import load_from_checkpoint
sides = [open(name, encoding="utf-8").read().split("\\n")[:-1] for name in sys.argv[2:]]
rows = [dict(zip(("src", "mt", "ref"), each)) for each in zip(*sides)]
print(json.dumps(float(load_from_checkpoint(sys.argv[1]).predict(rows, batch_size=16, gpus=0, progress_bar=False).system_score)))
"""
SOURCE = "A dog runs over the grass.\nTwo men sit on a bench.\nA child eats an apple.\n"
OUTPUT = "Ein Hund rennt über das Gras.\nZwei Männer sitzen auf einer Bank.\nEin Kind isst.\n"
REFERENCE = "Ein Hund läuft über die Wiese.\nZwei Männer sitzen auf einer Bank.\nEin Kind isst einen Apfel.\n"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    python = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory() as work:
        files = []
        for name, text in (("source", SOURCE), ("output", OUTPUT), ("reference", REFERENCE)):
            files.append(Path(work, name))
            files[-1].write_text(text, "utf-8")
        found = []
        for seed in (1, 2):
            folder = Path(work, str(seed))
            folder.mkdir()
            subprocess.run([python, "-c", MAKE, folder, str(seed), *files], check=True, stdout=subprocess.DEVNULL)
            model = folder / "checkpoints" / "model.ckpt"
            alone = subprocess.run([python, "-c", ALONE, model, *files], check=True, capture_output=True, text=True).stdout
            source, output, reference = files
            command = [
                "evaluate",
                output,
                reference,
                "--source",
                source,
                "--comet",
                python,
                "--comet-model",
                model,
                "--json",
                "--worst",
                "0",
            ]
            told = subprocess.run(
                [sys.executable, "-m", "limelight", *map(str, command)], check=True, capture_output=True, text=True
            ).stdout
            [ours] = [score["value"] for score in json.loads(told)["scores"] if score["name"] == "COMET"]
            found.append(ours)
            bare = json.loads(alone.splitlines()[-1])
            print(f"random weights {seed}: COMET by `limelight evaluate` {ours:.6f}, by the package alone {bare:.6f}")
            if abs(ours - bare) > 1e-5:
                sys.exit("these differ")
        if abs(found[0] - found[1]) < 1e-5:
            sys.exit("another model gives the same scores: it is not read")


if __name__ == "__main__":
    main()
