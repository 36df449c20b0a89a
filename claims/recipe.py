"""What the docs state about the switches of a recipe: rules that hold, a run with all of them, and what they bring in equal work.

make claim-recipe            under a minute on 2 quiet cores: the rules of rate, batch and turned pairs, and a tiny run with every switch
make claim-recipe FULL=1     a day or two: every variant of `benchmarks/recipe.py` with two seeds, and the public recipe to its end

The full claim reads Multi30k from the folder that LIMELIGHT_DATA names, and leaves what it trained in ./recipe-trials, to go on from.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", "tests", "tests/training")]

from small_runs import make_corpus, recipe

from claim import Claims, run
from limelight.bundle import read
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.model.config import ModelConfig
from limelight.planning.sizing_rules import explain_high_rate
from limelight.training.config import ScheduleSettings
from limelight.training.events import StepReport, read_events
from limelight.training.run_folder import RunFacts
from limelight.training.step.learning_rate import count_batches
from limelight.training.validation.final_weights import PENALTIES

SWITCHES = {
    "schedule": {"steps": 12, "warmup": 3, "batch_growth": 3, "both_directions": 0.34},
    "average": {"decay": None, "best": 2, "latest": True},
    "validation": {"search": True, "every": 6, "sentences": 2},
}
TRIALS, STEPS, SEEDS = "recipe-trials", 8_000, "1,2"


def main(claims: Claims, full: bool) -> None:
    rules(claims)
    with tempfile.TemporaryDirectory(prefix="limelight-") as work:
        tiny_run(claims, Path(work))
    if full:
        budgets(claims)


def rules(claims: Claims) -> None:
    shape = {"vocab_size": 1000, "d_model": 128, "num_heads": 4}
    post = [ModelConfig(**shape, encoder_layers=layers, decoder_layers=layers) for layers in (4, 12)]
    warned = [explain_high_rate(config, 0.005) is not None for config in post]
    claims.at_least("rate 0.005, 128 wide, norms after: trained with 4 layers, warned of with 12", warned == [False, True], 1)
    grown = ScheduleSettings(steps=1000, batch_growth=2)
    seen = sum(count_batches(step, grown, 8) for step in range(1, 1001)) / 8000
    claims.at_most("batch_growth=2: batches of a run, times those without; off 1.25 by", abs(seen - 1.25), 0.01)


def tiny_run(claims: Claims, work: Path) -> None:
    """Number words, every switch at once."""
    corpus = make_corpus(work / "corpus")
    prepared = PreparedCorpus.open(corpus / "prepared")
    rows, settings = prepared.split("train").rows, recipe(corpus).batch
    with Loader(prepared, settings, turned=True) as loader:
        turned = sum(int((share.samples >= rows).sum()) for share in loader.epoch(0))
    claims.at_least("both_directions: share of pairs that come turned in an epoch", turned / (2 * rows), 0.49)
    recipe(corpus, **SWITCHES).save(work / "recipe.toml")
    command = [sys.executable, "-m", "limelight", "train", str(work / "recipe.toml"), "-o", str(work / "run"), "--plain", "--no-export"]
    claims.ended_well(
        "a run with every switch: exit code", subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    )
    steps = [event for event in read_events(work / "run" / "metrics.jsonl") if isinstance(event, StepReport)]
    claims.at_least("... pieces of the last step, times those of the first", steps[-1].target_pieces / steps[0].target_pieces, 2)
    facts, search = RunFacts.load(work / "run"), read(work / "run" / "bundle").settings.search
    best = max(facts.searched, key=lambda name: facts.searched[name])
    claims.at_least("... searches tried", len(facts.searched), len(PENALTIES))
    written = best == f"beam {search.beam}, length penalty {search.length_penalty:g}"
    claims.at_least("... the best of them is the bundle's", written, 1)


def budgets(claims: Claims) -> None:
    if "LIMELIGHT_DATA" not in os.environ:
        raise SystemExit("LIMELIGHT_DATA names no folder with corpora; set it to measure")
    command = [sys.executable, str(ROOT / "benchmarks" / "recipe.py")]
    subprocess.run([*command, "trials", "--steps", str(STEPS), "--seeds", SEEDS, "-o", TRIALS], check=True)
    told = subprocess.run([*command, "public", "--steps", "8000", "-o", TRIALS], check=True, capture_output=True, text=True).stdout
    found = next(line for line in told.split("\n") if line.startswith("| test.2016"))
    claims.at_least("the public recipe to the letter: BLEU on test.2016, 41.02 published", float(found.split("|")[2]), 40.5)
    table = Path(TRIALS, "trials", f"tiny-{STEPS}.md").read_text("utf-8")
    claims.note("variants tried in equal work", table.count("\n") - 2)


if __name__ == "__main__":
    run(main, __doc__)
